// The Metrics tab: three charts over one time axis. The numbers themselves are in the table below them.
(() => {
  "use strict";
  const host = document.getElementById("charts");
  if (!host || typeof uPlot === "undefined") return;
  const words = JSON.parse(document.getElementById("chart-words").textContent);
  const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });
  const REFRESH_MS = 5000;
  const HEIGHT = 190;

  // A canvas knows no CSS variables: the browser resolves the colour on an element.
  const colour = (value) => {
    const probe = host.appendChild(document.createElement("span"));
    probe.style.color = value;
    const resolved = getComputedStyle(probe).color;
    probe.remove();
    return resolved;
  };
  const clock = new Intl.DateTimeFormat(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const timeOf = (seconds) => clock.format(new Date(seconds * 1000));
  // Without a pointer over the chart the legend says how it stands at the end.
  const at = (plot, value, series, index) => (index === null || index === undefined ? plot.data[series]?.at(-1) : value);
  const shown = (unit) => (plot, value, series, index) => {
    const found = at(plot, value, series, index);
    return found === null || found === undefined ? "\u2013" : `${number.format(found)}${unit}`;
  };

  const axes = () => {
    const rule = { stroke: colour("var(--tblr-border-color)"), width: 1 };
    const look = { stroke: colour("var(--tblr-secondary)"), grid: rule, ticks: rule, font: "12px system-ui, sans-serif" };
    return [{ ...look, space: 80, values: (_, splits) => splits.map(timeOf) }, { ...look, size: 52 }];
  };
  const line = (label, tone, unit, more) => ({
    label, stroke: colour(`var(${tone})`), fill: colour(`color-mix(in srgb, var(${tone}) 14%, transparent)`), width: 1.5,
    value: shown(unit), points: { show: false }, ...more,
  });

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
      axes: axes(), series: [{ label: words.time, value: (...given) => { const when = at(...given); return when ? timeOf(when) : "\u2013"; } }, ...series],
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
