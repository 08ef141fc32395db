// Keeps the run list true: notices over a websocket, or a question every ten seconds while something is active.
(() => {
  "use strict";
  const list = document.getElementById("run-list");
  if (!list) return;
  const strip = document.getElementById("new-runs");
  const connection = document.getElementById("connection");
  const waiting = new Set();
  let fetching = false, again = false, timer = 0, socket = null, live = false, delay = 1000;

  const row = (id) => document.getElementById(`run-${id}`);
  const activeIds = () => [...list.querySelectorAll("tr[data-active]")].map((each) => each.dataset.run);

  // Rows chosen for the buttons above the list. Without a script the bar is always there.
  const bar = document.getElementById("bulk");
  const all = list.querySelector("[data-choose-all]");
  const boxes = () => [...list.querySelectorAll("input[name=ids]")];
  const count = () => {
    if (!bar) return;
    const chosen = boxes().filter((each) => each.checked).length;
    const words = bar.querySelector(".claw-bulk-count");
    words.textContent = chosen === 1 ? words.dataset.one : words.dataset.many.replace("%n", chosen);
    bar.hidden = chosen === 0;
    all.checked = chosen > 0 && chosen === boxes().length;
    all.indeterminate = chosen > 0 && !all.checked;
  };
  if (bar) {
    const choose = (on) => { boxes().forEach((each) => { each.checked = on; }); count(); };
    all.hidden = false;
    bar.querySelector("[data-unchoose]").hidden = false;
    all.addEventListener("change", () => choose(all.checked));
    bar.querySelector("[data-unchoose]").addEventListener("click", () => choose(false));
    list.addEventListener("change", (event) => { if (event.target.name === "ids") count(); });
    window.addEventListener("pageshow", count);
    count();
  }

  const showNew = (count) => {
    if (!strip || !count) return;
    strip.hidden = false;
    strip.querySelector("span").textContent = count === 1 ? strip.dataset.one : strip.dataset.many.replace("%n", count >= 100 ? "99+" : count);
  };

  const refresh = async (ids) => {
    if (fetching) { again = true; ids.forEach((id) => waiting.add(id)); return; }
    fetching = true;
    try {
      const [address, own] = list.dataset.rows.split("?");
      const query = new URLSearchParams(own ?? location.search);
      query.delete("after");
      query.set("ids", ids.filter(row).join(","));
      if (list.hasAttribute("data-selectable")) query.set("select", "1");
      if (list.hasAttribute("data-top")) query.set("newest", list.dataset.newest);
      const answer = await fetch(`${address}?${query}`, { headers: { "X-Requested-With": "XMLHttpRequest" }, redirect: "error" });
      if (!answer.ok) return;
      showNew(Number(answer.headers.get("X-New-Runs") || 0));
      const holder = document.createElement("template");
      holder.innerHTML = `<table><tbody>${await answer.text()}</tbody></table>`;
      for (const fresh of holder.content.querySelectorAll("tr[data-run]")) {
        const old = row(fresh.dataset.run);
        // A row someone works in with the keyboard stays as it is until they leave it.
        const held = document.activeElement;
        if (!old || (old.contains(held) && held.name !== "ids")) continue;
        const changed = old.querySelector("[data-state]")?.dataset.state !== fresh.querySelector("[data-state]")?.dataset.state;
        const box = fresh.querySelector("input[name=ids]");
        if (box) box.checked = old.querySelector("input[name=ids]")?.checked ?? false;
        const hadFocus = old.contains(held);
        old.replaceWith(fresh);
        if (hadFocus) box?.focus({ preventScroll: true });
        if (changed) fresh.classList.add("claw-fresh");
      }
      window.claw?.tick();
      window.claw?.age();
      count();
    } catch {
      // The next notice or tick asks again.
    } finally {
      fetching = false;
      if (again) { again = false; soon(); }
    }
  };

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => { const ids = [...waiting]; waiting.clear(); refresh(ids); }, 250);
  };

  const connect = () => {
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${list.dataset.socket}`);
    socket.onopen = () => {
      if (!live) { activeIds().forEach((id) => waiting.add(id)); soon(); }
      live = true; delay = 1000;
      if (connection) connection.hidden = true;
    };
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.t !== "run") return;
      waiting.add(String(message.id));
      soon();
    };
    socket.onclose = (event) => {
      live = false;
      if (event.code === 4401) { location.reload(); return; }
      if (connection) connection.hidden = false;
      setTimeout(connect, delay);
      delay = Math.min(delay * 2, 30000);
    };
  };
  connect();

  // Counters of running rows move without a notice; without a socket this is also how changes are seen.
  let beat = 0;
  setInterval(() => {
    beat += 1;
    if (document.hidden) return;
    const ids = activeIds();
    if (ids.length && (live || beat % 2 === 0)) refresh(ids);
    else if (!live && beat % 6 === 0) refresh([]);
  }, 5000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(activeIds()); });
})();
