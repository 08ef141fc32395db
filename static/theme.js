// Runs before the first paint. The server writes the theme; only "as the system" is settled here.
(() => {
  "use strict";
  const root = document.documentElement;
  if (root.dataset.theme !== "system") return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => root.setAttribute("data-bs-theme", dark.matches ? "dark" : "light");
  apply();
  dark.addEventListener("change", apply);
})();
