// On a narrow screen the calendar opens where the present is.
(() => {
  "use strict";
  const scroller = document.querySelector(".claw-calendar")?.parentElement;
  const now = document.querySelector(".claw-calendar thead .claw-now");
  if (scroller && now) scroller.scrollLeft = now.offsetLeft - scroller.clientWidth / 2;
})();
