// The log tab: only the visible rows are in the document, whatever the length of the log.
import { LogStore } from "./log_store.js";
import { fillLine } from "./log_text.js";

const ROW_PX = 20;
// Browsers cap the height of an element (Firefox near 17.9 million px): longer logs are scrolled to scale.
const MAX_PX = 8000000;
const OVERSCAN = 10;
const LETTERS = { 10: "D", 20: "", 30: "W", 40: "E", 50: "C" };
const GONE = [4401, 4403, 4404];

class LogViewer {
  constructor(root) {
    this.root = root;
    this.words = JSON.parse(document.getElementById("log-words").textContent);
    const part = (name) => root.querySelector(`[data-log="${name}"]`);
    this.parts = Object.fromEntries(
      ["view", "sizer", "layer", "search", "hit", "level", "follow", "wrap", "full", "clear", "error", "next", "previous", "footer", "strip", "empty", "all", "line", "line-text"]
        .map((name) => [name, part(name)]),
    );
    this.store = new LogStore({
      rowsUrl: root.dataset.rows, indexUrl: root.dataset.index,
      changed: () => this.schedule(), failed: () => this.retryRows(),
    });
    this.active = root.dataset.active === "1";
    this.follow = this.active && !location.hash;
    this.wrap = false;
    this.top = 0;
    this.nodes = new Map();
    this.partial = "";
    this.needle = "";
    this.marked = 0;
    this.delay = 1000;
    this.number = new Intl.NumberFormat(document.documentElement.lang);
    this.store.level = Number(this.parts.level.value) || 20;
    this.ready = new Promise((resolve) => { this.isReady = resolve; });
    this.listen();
    this.start();
  }

  async start() {
    try {
      await this.store.load();
    } catch {
      this.strip(this.words.retrying);
      setTimeout(() => this.start(), (this.delay = Math.min(this.delay * 2, 15000)));
      return;
    }
    this.loaded = true;
    this.isReady();
    this.strip("");
    if (location.hash) this.goToHash();
    if (this.active) this.connect();
    this.schedule();
  }

  // ---- live ----

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}${this.root.dataset.socket}?after=${this.store.lastLine}`);
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = (event) => this.closed(event.code);
  }

  say(frame) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  receive(frame) {
    if (frame.t === "hello") {
      this.delay = 1000;
      this.strip("");
      if (frame.last - this.store.lastLine > 20000) this.leap();
    } else if (frame.t === "lines") {
      if (this.leaping) return;
      this.partial = "";
      if (this.store.append(frame.rows)) this.say({ t: "ack", line: frame.rows[frame.rows.length - 1][0] });
      else if (this.askedFrom !== this.store.lastLine) {
        this.askedFrom = this.store.lastLine;
        this.say({ t: "from", after: this.store.lastLine });
      }
    } else if (frame.t === "partial") {
      this.partial = frame.text;
      this.schedule();
    } else if (frame.t === "run") {
      const own = Number(this.root.dataset.attempt || 0);
      if (own && frame.attempt > own) { this.left(); return; }
      if (this.state !== undefined && this.state !== frame.state) window.htmx?.trigger("#run-head", "refresh");
      this.state = frame.state;
    } else if (frame.t === "end") {
      this.active = false;
      this.partial = "";
      this.socket.close(1000);
      window.htmx?.trigger("#run-head", "refresh");
      this.schedule();
    }
  }

  // The attempt that is shown is over and another one has begun: lines that are not its own may have come.
  left() {
    this.active = false;
    this.partial = "";
    this.socket.close(1000);
    this.store.lastLine = 0;
    this.store.load().catch(() => this.retryRows());
    window.htmx?.trigger("#run-head", "refresh");
  }

  // Far behind: take the shape of the log anew instead of reading every line through the socket.
  async leap() {
    this.leaping = true;
    try {
      await this.store.load();
      this.say({ t: "from", after: this.store.lastLine });
    } catch {
      this.socket.close();
    }
    this.leaping = false;
  }

  closed(code) {
    if (!this.active) return;
    if (GONE.includes(code)) {
      this.strip(code === 4401 ? this.words.signed_out : this.words.no_right);
      this.active = false;
      this.store.reset();
      this.schedule();
      return;
    }
    this.askedFrom = undefined;
    this.strip(this.words.retrying);
    setTimeout(() => this.connect(), this.delay * (0.75 + Math.random() / 2));
    this.delay = Math.min(this.delay * 2, 15000);
  }

  retryRows() {
    this.strip(this.words.retrying);
    setTimeout(() => { this.strip(""); this.schedule(); }, 2000);
  }

  strip(text) {
    this.parts.strip.hidden = !text;
    this.parts.strip.lastElementChild.textContent = text;
  }

  // ---- drawing ----

  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  get rows() { return this.store.total + (this.partial ? 1 : 0); }
  get pageRows() { return Math.max(1, Math.floor(this.parts.view.clientHeight / ROW_PX)); }
  // In wrap mode a row may be higher than ROW_PX, so the last one may come up to the top.
  get lastTop() { return Math.max(0, this.rows - (this.wrap ? 1 : this.parts.view.clientHeight / ROW_PX)); }

  size() {
    const { view, sizer } = this.parts;
    const height = Math.min(this.lastTop * ROW_PX, MAX_PX) + view.clientHeight;
    if (this.height !== height) { this.height = height; sizer.style.height = `${height}px`; }
    this.scaled = this.lastTop * ROW_PX > MAX_PX;
  }

  // Rows and pixels of the scroll bar, both ways.
  toPx(top) { return this.scaled ? (top / this.lastTop) * MAX_PX : top * ROW_PX; }
  toTop(px) { return this.scaled ? (px / MAX_PX) * this.lastTop : px / ROW_PX; }

  scrollTo(top) {
    this.top = Math.max(0, Math.min(top, this.lastTop));
    this.parts.view.scrollTop = this.toPx(this.top);
    this.setPx = this.parts.view.scrollTop;
    this.schedule();
  }

  draw() {
    if (!this.loaded) return;
    this.size();
    if (this.follow) this.scrollTo(this.lastTop);
    else if (this.top > this.lastTop) this.scrollTo(this.lastTop);
    // Wrapped, the last page is filled from above: it may need a page of rows before the one at the top.
    const first = Math.max(0, Math.floor(this.top) - (this.wrap ? this.pageRows : OVERSCAN));
    const last = Math.min(this.rows - 1, Math.ceil(this.top) + this.pageRows + OVERSCAN);
    this.store.want(first, last);
    const wanted = [];
    const kept = new Map();
    for (let i = first; i <= last; i += 1) {
      const row = i < this.store.total ? this.store.row(i) : null;
      const key = row ? row[0] : i < this.store.total ? `?${i}` : `partial ${this.partial}`;
      const node = this.nodes.get(key) || (row ? this.rowNode(row) : this.otherNode(i));
      node.classList.toggle("claw-log-marked", row !== null && row[0] === this.marked);
      kept.set(key, node);
      wanted.push(node);
    }
    this.arrange(wanted, kept);
    this.position(wanted, first);
    this.status();
  }

  // Only what changed is moved, so that a selection survives.
  arrange(wanted, kept) {
    const { layer } = this.parts;
    for (const [key, node] of this.nodes) if (kept.get(key) !== node) node.remove();
    this.nodes = kept;
    let at = layer.firstChild;
    for (const node of wanted) {
      if (node === at) at = at.nextSibling; else layer.insertBefore(node, at);
    }
  }

  position(wanted, first) {
    const { view, layer } = this.parts;
    const whole = Math.floor(this.top);
    let y = view.scrollTop - (this.top - whole) * ROW_PX - (whole - first) * ROW_PX;
    if (this.wrap && wanted.length) {
      const anchor = wanted[Math.min(whole - first, wanted.length - 1)];
      y = view.scrollTop - anchor.offsetTop;
      const rest = layer.offsetHeight - anchor.offsetTop;
      // The last row never leaves the bottom edge; fewer rows than fit begin at the top.
      if (first + wanted.length >= this.rows && rest < view.clientHeight) {
        y = view.scrollTop + Math.min(0, view.clientHeight - layer.offsetHeight);
      }
    }
    layer.style.transform = `translateY(${y}px)`;
  }

  rowNode([line, at, level, text]) {
    const node = document.createElement("div");
    node.className = `claw-log-row claw-log-${level}`;
    node.dataset.line = line;
    const gutter = document.createElement("a");
    gutter.className = "claw-log-number";
    gutter.href = `#L${line}`;
    gutter.title = new Date(at).toLocaleString(document.documentElement.lang);
    gutter.textContent = line;
    const letter = document.createElement("span");
    letter.className = "claw-log-letter";
    letter.textContent = LETTERS[level] ?? "";
    const body = document.createElement("span");
    body.className = "claw-log-text";
    const left = fillLine(body, text, this.needle);
    if (left > 0) {
      const more = document.createElement("button");
      more.type = "button";
      more.className = "claw-log-more";
      more.textContent = this.words.more.replace("%(n)s", this.number.format(left));
      more.addEventListener("click", () => this.showWhole(line, text));
      body.append(more);
    }
    node.append(gutter, letter, body);
    return node;
  }

  otherNode(index) {
    const node = document.createElement("div");
    node.className = "claw-log-row claw-log-other";
    const body = document.createElement("span");
    body.className = "claw-log-text";
    if (index >= this.store.total) fillLine(body, this.partial, ""); else body.textContent = "\u22ef";
    node.append(document.createElement("span"), document.createElement("span"), body);
    node.children[0].className = "claw-log-number";
    node.children[1].className = "claw-log-letter";
    return node;
  }

  showWhole(line, text) {
    this.parts.line.querySelector("h2").textContent = this.words.line.replace("%(n)s", this.number.format(line));
    this.parts["line-text"].replaceChildren();
    fillLine(this.parts["line-text"], text, "", Infinity);
    this.parts.line.showModal();
  }

  status() {
    const { store, number } = this;
    const shown = store.total, all = store.lastLine - store.base;
    const fill = (text, n) => text.replace("%(n)s", number.format(n));
    const mb = store.bytes / 1048576;
    const size = mb >= 0.1 ? `${number.format(Math.round(mb * 10) / 10)} MB` : `${number.format(Math.ceil(store.bytes / 1024))} KB`;
    const texts = [fill(this.words.lines, all), size, this.active ? this.words.live : this.words.complete];
    if (shown !== all) texts.splice(1, 0, fill(this.words.shown, shown));
    this.parts.footer.textContent = texts.join(" \u00b7 ");
    this.parts.footer.classList.toggle("claw-log-live", this.active);
    this.parts.empty.hidden = this.rows > 0;
    this.parts.empty.textContent = store.floor && store.floor === store.lastLine ? this.words.cleared : all ? this.words.nothing_shown : this.active ? this.words.nothing_yet : this.words.nothing;
    this.parts.all.hidden = store.floor === 0;
    this.parts.error.disabled = store.firstError === null;
    this.parts.follow.setAttribute("aria-pressed", String(this.follow));
    this.parts.wrap.setAttribute("aria-pressed", String(this.wrap));
  }

  // ---- what the person does ----

  listen() {
    const { parts } = this;
    parts.view.addEventListener("scroll", () => this.scrolled());
    parts.view.addEventListener("wheel", (event) => {
      if (event.deltaY < 0) this.follow = false;
      if (!this.scaled || event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      this.scrollBy(event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW_PX);
    }, { passive: false });
    parts.view.addEventListener("keydown", (event) => this.viewKey(event));
    parts.level.addEventListener("change", () => this.setLevel(Number(parts.level.value)));
    parts.follow.addEventListener("click", () => this.setFollow(!this.follow));
    parts.wrap.addEventListener("click", () => this.setWrap(!this.wrap));
    parts.full.addEventListener("click", () => this.setFull(!this.root.classList.contains("claw-log-full")));
    parts.clear.addEventListener("click", () => { this.store.clear(); this.top = 0; });
    parts.all.addEventListener("click", () => { this.store.floor = 0; this.store.load(); });
    parts.error.addEventListener("click", () => { if (this.store.firstError !== null) this.goTo(this.store.firstError); });
    parts.next.addEventListener("click", () => this.find(false));
    parts.previous.addEventListener("click", () => this.find(true));
    parts.search.addEventListener("input", () => this.setNeedle(parts.search.value));
    parts.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.find(event.shiftKey); }
      if (event.key === "Escape") { parts.search.value = ""; this.setNeedle(""); parts.view.focus(); }
    });
    document.addEventListener("keydown", (event) => this.pageKey(event));
    window.addEventListener("hashchange", () => this.goToHash());
    new ResizeObserver(() => this.schedule()).observe(parts.view);
  }

  scrolled() {
    const px = this.parts.view.scrollTop;
    if (px === this.setPx) { this.schedule(); return; }
    this.setPx = undefined;
    this.top = Math.max(0, Math.min(this.toTop(px), this.lastTop));
    this.follow = this.active && this.top >= this.lastTop - 1;
    this.schedule();
  }

  scrollBy(rows) {
    this.follow = false;
    this.scrollTo(this.top + rows);
    if (this.active && this.top >= this.lastTop) this.follow = true;
  }

  viewKey(event) {
    const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -this.pageRows + 1, PageDown: this.pageRows - 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.scrollBy(step);
  }

  pageKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog[open]")) return;
    const action = {
      f: () => this.setFollow(!this.follow), w: () => this.setWrap(!this.wrap),
      n: () => this.find(false), N: () => this.find(true), Escape: () => this.setFull(false),
    }[event.key];
    if (action) { if (event.key !== "Escape") event.preventDefault(); action(); }
  }

  setFollow(on) { this.follow = on; this.schedule(); }

  setWrap(on) {
    const top = Math.floor(this.top);
    this.wrap = on;
    this.root.classList.toggle("claw-log-wrapped", on);
    this.parts.view.scrollLeft = 0;
    this.size();
    this.scrollTo(top);
  }

  setFull(on) {
    this.root.classList.toggle("claw-log-full", on);
    document.body.classList.toggle("claw-log-covers", on);
    this.parts.full.setAttribute("aria-pressed", String(on));
    this.schedule();
  }

  async setLevel(level) {
    const line = this.topLine();
    this.redraw();
    this.store.setLevel(level);
    this.parts.level.value = String(level);
    const address = new URL(location.href);
    address.searchParams.set("level", level);
    history.replaceState(null, "", address);
    if (!this.follow && line) await this.show(line, false);
  }

  setNeedle(text) {
    this.needle = text.toLowerCase();
    this.parts.hit.textContent = "";
    this.redraw();
  }

  redraw() {
    for (const node of this.nodes.values()) node.remove();
    this.nodes = new Map();
    this.schedule();
  }

  topLine() {
    const row = this.store.row(Math.min(Math.ceil(this.top), Math.max(0, this.store.total - 1)));
    return row ? row[0] : 0;
  }

  async find(backwards) {
    const text = this.parts.search.value;
    if (!text) { this.parts.search.focus(); return; }
    const from = this.marked || (backwards ? this.topLine() : Math.max(0, this.topLine() - 1));
    this.parts.hit.textContent = this.words.searching;
    await this.ready; // a hit cannot be shown in a log that is not there yet
    try {
      const line = await this.store.find(text, from, backwards);
      this.parts.hit.textContent = (line ? this.words.line : this.words.no_match).replace("%(n)s", this.number.format(line));
      if (line) await this.show(line, true);
    } catch {
      this.parts.hit.textContent = this.words.retrying;
    }
  }

  goToHash() {
    const line = Number((location.hash.match(/^#L(\d{1,15})$/) || [])[1]);
    if (line) this.goTo(line);
  }

  // A line that the filter hides is asked for by name: show everything.
  async goTo(line) {
    await this.show(line, true);
    const row = this.store.row(this.shownAt);
    if ((!row || row[0] !== line) && this.store.level > 10 && line <= this.store.lastLine) {
      await this.setLevel(10);
      await this.show(line, true);
    }
  }

  async show(line, mark) {
    this.follow = false;
    const index = await this.store.indexOf(line);
    if (index < 0) return;
    this.shownAt = index;
    if (mark) this.marked = line;
    this.size();
    const visible = index >= this.top + 1 && index <= this.top + this.pageRows - 2;
    if (!visible || !mark) this.scrollTo(mark ? index - Math.floor(this.pageRows / 2) : index);
    this.schedule();
  }
}

const root = document.getElementById("log");
if (root) window.clawLog = new LogViewer(root);
