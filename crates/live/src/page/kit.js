"use strict";
const byId = (id) => document.getElementById(id);
const rateText = (bytes) => {
  if (bytes === null || bytes === undefined) return "–";
  const bits = bytes * 8;
  return bits >= 1e9 ? (bits / 1e9).toFixed(2) + " Gbit/s"
    : bits >= 1e6 ? (bits / 1e6).toFixed(2) + " Mbit/s" : (bits / 1e3).toFixed(1) + " kbit/s";
};
const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
const timeText = (seconds) =>
  seconds === null || seconds === undefined ? "–" : (seconds * 1e3).toFixed(2) + " ms";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const text = (parent, tag, content) => {
  const node = document.createElement(tag);
  node.textContent = content;
  parent.append(node);
  return node;
};
const get = async (path) => {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
const charts = new Set();
const draw = (parent, series, data, times, more) => {
  const axis = { stroke: () => colour("quiet"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line") } };
  const plot = new uPlot({
    width: Math.max(parent.clientWidth, 200), height: 130, series,
    axes: [{ ...axis, space: 75, size: 34, values: (_, at) => at.map(times) }, { ...axis, size: more.side ?? 55 }],
    ...more,
    scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] }, ...more.scales },
  }, data, parent);
  charts.add(plot);
  plot.parent = parent;
  return plot;
};
new ResizeObserver(() => {
  for (const plot of charts) plot.setSize({ width: Math.max(plot.parent.clientWidth, 200), height: plot.height });
}).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of charts) plot.redraw();
});
