// Where the lines of a log are: blocks of about 2 000 lines with their counts by level. The counts place any row of a
// filtered view without having read it; rows are fetched for what is on the screen and forgotten again.

const BLOCK_LINES = 2000;
const KEPT_ROWS = 40000;
const FETCH_ROWS = 1500;
const LEVELS = [10, 20, 30, 40, 50];

export class LogStore {
  constructor({ rowsUrl, indexUrl, changed, failed }) {
    Object.assign(this, { rowsUrl, indexUrl, changed, failed });
    this.level = 20;
    this.floor = 0;
    this.bytes = 0;
    this.lastLine = 0;
    // Lines before those of the attempt that is shown; 0 when all are.
    this.base = 0;
    this.firstError = null;
    this.generation = 0;
    this.reset();
  }

  reset() {
    this.generation += 1;
    this.blocks = [];
    this.starts = [];
    this.total = 0;
  }

  count(block) {
    if (block.all || block.rows) return block.rows.length;
    return LEVELS.reduce((sum, level, i) => (level >= this.level ? sum + block.counts[i] : sum), 0);
  }

  place() {
    let total = 0;
    this.starts = this.blocks.map((block) => { const start = total; total += this.count(block); return start; });
    this.total = total;
  }

  async json(url, params) {
    const address = new URL(url, location.href);
    for (const [name, value] of Object.entries(params ?? {})) address.searchParams.set(name, value);
    const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  async load() {
    const index = await this.json(this.indexUrl);
    this.reset();
    this.bytes = 0;
    this.base = index.base;
    this.lastLine = Math.max(this.lastLine, this.base);
    for (const [first, last, d, i, w, e, c, bytes] of index.blocks) {
      // Rows are stored as JSON: the text with its number, time and level around it.
      this.bytes += Math.max(0, bytes - (d + i + w + e + c) * (22 + String(last).length));
      if (last > this.floor) this.blocks.push({ first, last, counts: [d, i, w, e, c], rows: null, all: null, loading: false });
      this.lastLine = Math.max(this.lastLine, last);
    }
    this.firstError = index.first_error;
    this.place();
    this.changed();
    return index;
  }

  setLevel(level) {
    this.level = level;
    this.generation += 1;
    for (const block of this.blocks) {
      block.loading = false;
      block.rows = block.all ? block.all.filter((row) => row[2] >= level) : null;
    }
    this.place();
    this.changed();
  }

  // Hide what is there now.
  clear() {
    this.floor = this.lastLine;
    this.reset();
    this.changed();
  }

  blockAt(index) {
    let low = 0, high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= index) low = middle; else high = middle - 1;
    }
    return low;
  }

  // The row at a place of the view, or null while it is on its way.
  row(index) {
    const at = this.blockAt(index);
    const block = this.blocks[at];
    return block && block.rows ? block.rows[index - this.starts[at]] || null : null;
  }

  // Fetch what is missing between two places, neighbouring blocks together.
  want(from, to) {
    if (!this.blocks.length) return;
    let at = this.blockAt(Math.max(0, from));
    const end = this.blockAt(Math.max(0, Math.min(to, this.total - 1)));
    while (at <= end) {
      const group = [];
      let rows = 0;
      for (; at <= end; at += 1) {
        const block = this.blocks[at];
        const count = this.count(block);
        if (block.rows || block.loading || (group.length && rows + count > FETCH_ROWS)) break;
        if (count === 0) { block.rows = []; continue; }
        group.push(block);
        rows += count;
      }
      if (group.length) this.fetchGroup(group);
      else if (at <= end && (this.blocks[at].rows || this.blocks[at].loading)) at += 1;
    }
  }

  async fetchGroup(group) {
    const generation = this.generation;
    for (const block of group) block.loading = true;
    try {
      const rows = await this.range(group[0].first - 1, group[group.length - 1].last + 1, generation);
      if (generation !== this.generation) return;
      let at = 0;
      for (const block of group) {
        const own = [];
        while (at < rows.length && rows[at][0] <= block.last) { if (rows[at][0] > this.floor) own.push(rows[at]); at += 1; }
        block.rows = own;
        block.loading = false;
      }
      this.forget(group[0]);
      this.place();
      this.changed();
    } catch (error) {
      if (generation !== this.generation) return;
      for (const block of group) block.loading = false;
      this.failed(error);
    }
  }

  async range(after, before, generation) {
    const rows = [];
    for (;;) {
      const page = await this.json(this.rowsUrl, { after, before, level: this.level, limit: 5000 });
      rows.push(...page.rows);
      if (page.complete || generation !== this.generation || page.scanned <= after) return rows;
      after = page.scanned;
    }
  }

  // Keep memory bounded: the blocks farthest from the one just read go first.
  forget(near) {
    let kept = this.blocks.reduce((sum, block) => sum + (block.rows ? block.rows.length : 0), 0);
    if (kept <= KEPT_ROWS) return;
    const centre = this.blocks.indexOf(near);
    const far = this.blocks.map((block, at) => [Math.abs(at - centre), block]).filter(([, block]) => block.rows && !block.all);
    far.sort((a, b) => b[0] - a[0]);
    for (const [distance, block] of far) {
      if (kept <= KEPT_ROWS * 0.75 || distance < 3) break;
      kept -= block.rows.length;
      block.counts = this.recount(block);
      block.rows = null;
    }
  }

  // The counts of a live block are known from its lines; of a fetched one only those of the shown levels.
  recount(block) {
    if (block.exact) return block.exact;
    const counts = [0, 0, 0, 0, 0];
    for (const row of block.rows) counts[LEVELS.indexOf(row[2])] += 1;
    return block.counts.map((count, i) => (LEVELS[i] >= this.level ? counts[i] : count));
  }

  // Add live rows. False when lines are missing in between: then the caller asks again from lastLine.
  append(rows) {
    let added = false;
    for (const row of rows) {
      if (row[0] <= this.lastLine) continue;
      if (row[0] !== this.lastLine + 1) { if (added) this.changed(); return false; }
      let tail = this.blocks[this.blocks.length - 1];
      if (!tail || !tail.all || tail.all.length >= BLOCK_LINES) {
        if (tail && tail.all) { tail.exact = tail.counts; tail.all = null; this.forget(tail); this.place(); }
        tail = { first: row[0], last: row[0], counts: [0, 0, 0, 0, 0], rows: [], all: [], loading: false };
        this.blocks.push(tail);
        this.starts.push(this.total);
      }
      tail.all.push(row);
      tail.last = this.lastLine = row[0];
      tail.counts[LEVELS.indexOf(row[2])] += 1;
      this.bytes += row[3].length + 1;
      if (row[2] >= this.level) { tail.rows.push(row); this.total += 1; }
      if (row[2] >= 40 && this.firstError === null) this.firstError = row[0];
      added = true;
    }
    if (added) this.changed();
    return true;
  }

  // The place of a line in the view: its own, or that of the next shown line.
  async indexOf(line) {
    let low = 0, high = this.blocks.length - 1;
    if (high < 0) return -1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle].first <= line) low = middle; else high = middle - 1;
    }
    const block = this.blocks[low];
    if (!block.rows) await this.fetchGroup([block]);
    if (!block.rows) return -1;
    const at = block.rows.findIndex((row) => row[0] >= line);
    return this.starts[this.blocks.indexOf(block)] + (at < 0 ? block.rows.length : at);
  }

  // The next line with the text, in the given direction, around the end once. Resolves to a line or 0.
  async find(text, from, backwards) {
    const generation = this.generation;
    const ask = { search: text, level: this.level, limit: 1 };
    for (let round = 0; round < 2; round += 1) {
      let at = round === 0 ? from : backwards ? this.lastLine + 1 : this.floor;
      for (;;) {
        const page = await this.json(this.rowsUrl, { ...ask, ...(backwards ? { before: at } : { after: at }) });
        if (generation !== this.generation) return 0;
        const hit = page.rows[0];
        if (hit && hit[0] > this.floor) return hit[0];
        if (page.complete || page.scanned === at) break;
        at = page.scanned;
      }
    }
    return 0;
  }
}
