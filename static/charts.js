// The Metrics tab: three charts over one time axis. The numbers themselves are in the table below them.
(() => {
  "use strict";
  const host = document.getElementById("charts");
  if (!host || typeof uPlot === "undefined") return;
  const words = JSON.parse(document.getElementById("chart-words").textContent);
  const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });
  const REFRESH_MS = 5000;
  const HEIGHT = 190;

  const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
  const shown = (unit) => (_, value) => (value === null || value === undefined ? "\u2013" : `${number.format(value)}${unit}`);

  const axes = () => [{ stroke: colour("--tblr-secondary"), grid: { stroke: colour("--tblr-border-color") }, ticks: { stroke: colour("--tblr-border-color") } },
    { stroke: colour("--tblr-secondary"), grid: { stroke: colour("--tblr-border-color") }, ticks: { stroke: colour("--tblr-border-color") }, size: 56 }];
  const line = (label, tone, unit, more) => ({ label, stroke: colour(tone), fill: `${colour(tone)}22`, width: 1.5, value: shown(unit), points: { show: false }, ...more });

  const charts = {
    cpu: { series: () => [line(words.cpu, "--claw-blue", " %")], columns: (data) => [data.cpu] },
    memory: {
      series: () => [line(words.memory, "--claw-purple", " MB"), line(words.limit, "--claw-red", " MB", { fill: undefined, dash: [6, 4] })],
      columns: (data) => [data.memory, data.limit],
    },
    items: { series: () => [line(words.items, "--claw-green", "")], columns: (data) => [data.items] },
  };

  const width = (element) => Math.max(200, element.clientWidth);
  // One sample has no line: it is drawn as a point.
  const build = (name, data) => {
    const element = host.querySelector(`[data-chart="${name}"]`);
    const chart = charts[name];
    chart.plot?.destroy();
    const series = chart.series();
    if (data.at.length === 1) for (const each of series) each.points = { show: true };
    chart.plot = new uPlot({
      width: width(element), height: HEIGHT, cursor: { sync: { key: "run" } }, legend: { live: true },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: axes(), series: [{ label: words.time, value: (_, at) => (at ? new Date(at * 1000).toLocaleTimeString(document.documentElement.lang) : "\u2013") }, ...series],
    }, [data.at, ...chart.columns(data)], element);
    chart.single = data.at.length === 1;
  };

  let last = null;
  const draw = (data) => {
    for (const [name, chart] of Object.entries(charts)) {
      if (!chart.plot || chart.single) build(name, data); else chart.plot.setData([data.at, ...chart.columns(data)]);
    }
    last = data;
  };

  const refresh = async () => {
    let again = true;
    try {
      const answer = await fetch(host.dataset.samples, { credentials: "same-origin" });
      if (answer.ok) {
        const data = await answer.json();
        draw(data);
        again = data.active;
      } else again = answer.status >= 500;
    } catch { /* the network is away: try again later */ }
    if (again) setTimeout(refresh, REFRESH_MS);
  };

  // Colours are read when a chart is built: a change of theme or width builds it anew.
  const rebuild = () => { if (last) for (const name of Object.keys(charts)) build(name, last); };
  new MutationObserver(rebuild).observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });
  let seen = host.clientWidth;
  new ResizeObserver(() => {
    if (host.clientWidth === seen) return;
    seen = host.clientWidth;
    requestAnimationFrame(rebuild);
  }).observe(host);
  refresh();
})();
