// Figures of data that arrive: a run that goes on, or a gateway.

const SIDE = 50, TOP = 6, END = 16, FOOT = 20;

// The width of its place, in CSS pixels.
const fit = (figure) => {
  const { svg, data, height, parent } = figure, width = Math.max(parent.clientWidth, 200);
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) svg.setAttribute(name, value);
  data.area = [SIDE, TOP, width - END, height - FOOT];
};

// The highest shown value.
const highest = ({ data, series }) => {
  const sums = data.stacked ? stackOf(series) : [];
  let high = 0;
  series.filter(isShown).forEach((of) => {
    for (const value of sums[of.at] ?? of.y) if (value > high) high = value;
  });
  return high;
};

const redraw = (figure) => {
  const high = highest(figure);
  figure.data.y.ends = [0, high > 0 ? 1.1 * high : 1];
  paint(figure);
};

const names = (figure) => {
  const list = document.createElement("ul");
  list.className = "legend";
  for (const of of figure.series) {
    const item = document.createElement("li"), swatch = document.createElement("span");
    swatch.style.color = of.colour;
    if (!figure.data.stacked || of.line) swatch.className = of.style?.["stroke-dasharray"] ? "dashed line" : "line";
    item.append(swatch, of.name);
    list.append(item);
  }
  figure.parent.append(list);
};

// A figure in `parent`: its label, the axis of values with its unit, its series, each with a name, a colour and a style, and how times are
// written. `ends` is the whole time axis, if it is known before.
const live = (parent, { label, quantity, series, text, steps, ends, height = 130, stacked = false, hasLegend = true, ...more }) => {
  parent.insertAdjacentHTML("beforeend", "<svg></svg>");
  const data = {
    area: [], along: "x", stacked, spans: true, x: { name: "time, s", ends: ends ?? [0, 1], text, steps }, y: { name: quantity, ends: [0, 1] },
    series: series.map((of) => ({ ...of, x: [], y: [] })),
  };
  const figure = figureOf(parent.lastElementChild, data);
  Object.assign(figure, { parent, height, label, isLive: true, unit: 1, colour: ({ colour }) => colour, ...more });
  fit(figure);
  adopt(figure);
  if (hasLegend && series.length > 1) {
    names(figure);
    linkLegends([figure]);
  }
  // Takes times and the values of each series.
  figure.set = ([times, ...values], events = []) => {
    const isWhole = !isZoomed(figure);
    figure.series.forEach((of, at) => { of.x = times; of.y = values[at]; });
    data.x.ends = ends ?? [times[0] ?? 0, Math.max(times.at(-1) ?? 1, (times[0] ?? 0) + 1)];
    if (isWhole) figure.view = data.x.ends;
    data.events = events;
    redraw(figure);
    if (current?.figure === figure) keep(figure, current.mark, current.along);
  };
  figure.destroy = () => {
    if (current?.figure === figure) hide();
    all.splice(all.indexOf(figure), 1);
    parent.replaceChildren();
  };
  return figure;
};

// The readout stays at its time while data arrive.
const keep = (figure, { of }, along) => {
  const mark = marksOf(figure).find((other) => other.of === of && other.of.x[other.i] === along);
  if (mark === undefined) hide(); else show(figure, mark);
};

new ResizeObserver(() => {
  for (const figure of all) { fit(figure); redraw(figure); }
}).observe(document.body);
