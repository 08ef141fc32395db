// Keeps a list of schedules true: it is asked for again now and then, but not while somebody works in it.
(() => {
  "use strict";
  const EVERY_MS = 15000;
  const refresh = () => {
    const list = document.getElementById("schedules");
    if (!list || document.hidden || list.querySelector("details[open]") || list.contains(document.activeElement)) return;
    window.htmx?.ajax("GET", location.href, { target: list, select: "#schedules", swap: "outerHTML" });
  };
  setInterval(refresh, EVERY_MS);
})();
