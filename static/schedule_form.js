// The boxes that say when a job runs: a preset fills in the cron expression it stands for, so that it can be changed
// by hand. What the boxes come to is asked of the server by htmx.
(() => {
  "use strict";

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "when-preview") return;
    const expression = event.target.querySelector("[data-expression]")?.dataset.expression;
    const cron = document.getElementById("id_when-cron");
    const kind = document.querySelector("input[name='when-kind']:checked")?.value;
    if (expression && cron && kind !== "cron") cron.value = expression;
    window.claw?.tick();
  });
})();
