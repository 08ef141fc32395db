// Redraws the batch at once when one of its runs changes; without a socket the page asks every three seconds anyway.
(() => {
  "use strict";
  const live = () => document.getElementById("batch-live");
  const watched = () => (live()?.dataset.runs || "").split(",");
  let timer = 0, delay = 1000;

  // Where a graph is wider than the screen, it begins at its root; then it stays where it was scrolled to.
  const root = document.querySelector("#batch-graph [data-root]")?.getBoundingClientRect();
  const frame = document.getElementById("batch-graph")?.getBoundingClientRect();
  if (root && frame) document.getElementById("batch-graph").scrollLeft = root.left + root.width / 2 - frame.left - frame.width / 2;
  let left = 0;
  document.addEventListener("htmx:beforeSwap", () => { left = document.getElementById("batch-graph")?.scrollLeft || 0; });
  document.addEventListener("htmx:afterSwap", () => {
    const graph = document.getElementById("batch-graph");
    if (graph) graph.scrollLeft = left;
    window.claw?.tick();
    window.claw?.age();
  });

  const connect = () => {
    if (!live()?.hasAttribute("hx-get")) return;
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/runs/`);
    socket.onopen = () => { delay = 1000; };
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.t !== "run" || !watched().includes(String(message.id))) return;
      clearTimeout(timer);
      timer = setTimeout(() => { if (live()) window.htmx?.trigger(live(), "refresh"); }, 150);
    };
    socket.onclose = (event) => {
      if (event.code === 4401) { location.reload(); return; }
      setTimeout(connect, delay);
      delay = Math.min(delay * 2, 30000);
    };
  };
  connect();
})();
