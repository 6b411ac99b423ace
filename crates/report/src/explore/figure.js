// A figure: its data, the places of its marks in the pixels of its drawing, and their values as text.

const element = (parent, tag, attributes = {}, content = "") => {
  const node = document.createElementNS(parent.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = content;
  parent.append(node);
  return node;
};

// Numbers as they are; places in equal steps as their start and step; many values as whole numbers of a power of ten, or as the difference of
// each to the one before.
const expand = (of) => {
  if (Array.isArray(of)) return of;
  if (of.step) return [...Array.from({ length: of.count }, (_, k) => Number((of.from + k * of.step).toPrecision(7))), ...of.rest];
  let sum = 0;
  return (of.n ?? of.d).map((x) => x === null ? null : Number(`${of.n ? x : sum += x}e${of.e}`));
};

// A name ends with its unit: "throughput, Mb/s".
const unitOf = ({ name }) => name.includes(", ") ? name.slice(name.lastIndexOf(", ") + 2) : "";
const quantityOf = ({ name }) => name.includes(", ") ? name.slice(0, name.lastIndexOf(", ")) : name;

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// The place of a value on an axis from one pixel to another.
const scaleOf = (axis, from, to, ends = axis.ends) => {
  if (axis.names) return (index) => axis.at[index];
  const warp = axis.log ? Math.log : (value) => value;
  const [low, high] = ends.map(warp);
  return (value) => from + (warp(value) - low) / (high - low) * (to - from);
};
const valueAt = (axis, from, to, ends, place) => {
  const part = (place - from) / (to - from), [low, high] = ends;
  return axis.log ? low * (high / low) ** part : low + part * (high - low);
};

// Series that a legend hides, in all figures.
const hidden = new Set();
const isShown = (series) => !hidden.has(series.name);

const figureOf = (svg, data) => ({
  svg, data, colour: ({ key }) => key === undefined ? INKS.ink : INKS.keys[Math.min(key, INKS.keys.length - 1)],
  series: data.series.map((of, at) => ({ ...of, at, x: expand(of.x), y: expand(of.y), more: (of.more ?? []).map(expand) })),
  // The shown part of the horizontal axis, and the drawn pixels of a CSS pixel.
  view: data.x.ends, unit: 2, label: svg.closest("figure")?.getAttribute("aria-label") ?? "", kept: null,
});

const isZoomed = ({ view, data }) => view !== data.x.ends;

// The marks in view; those of hidden series are left out.
const marksOf = (figure) => {
  const { data, series } = figure, [left, top, right, bottom] = data.area;
  const key = JSON.stringify([figure.view, [...hidden]]);
  if (figure.kept?.key === key) return figure.kept.marks;
  const x = scaleOf(data.x, left, right, figure.view), y = scaleOf(data.y, bottom, top);
  const sums = new Map(), marks = [];
  for (const of of series) {
    of.x.forEach((_, i) => {
      let [at, height] = [of.x[i], of.y[i]];
      if (at == null || height == null) return;
      // Layers fall onto those below when one is hidden; parts of a row stay where they are drawn.
      if (data.stacked && !of.line && (data.along === "y" || isShown(of))) {
        // Parts of a row stand end to end, and the last one of a moment on top.
        const along = data.along === "y" ? height : at, value = data.along === "y" ? at : height;
        const sum = sums.get(along) ?? 0;
        sums.set(along, sum + value);
        if (data.along === "y") at = sum + value / 2; else height = sum + value;
      }
      if (!isShown(of) || (figure.view && (at < figure.view[0] || at > figure.view[1]))) return;
      marks.push({ of, i, x: clamp(x(at), left, right), y: clamp(y(height) + (of.shift ?? 0), top, bottom) });
    });
  }
  figure.kept = { key, marks };
  return marks;
};

const alongOf = (figure, { of, i }) => of[figure.data.along][i];
const axesOf = ({ data }) => data.along === "x" ? [data.x, data.y] : [data.y, data.x];

const withUnit = (axis, value) => {
  if (axis.text) return axis.text(value);
  const unit = unitOf(axis), text = axis.names ? axis.names[value] : String(Number(value.toPrecision(6)));
  return unit === "" ? text : `${text} ${unit}`;
};

// The first line: the place along the axis, or the name of the mark.
const headOf = (figure, mark) => {
  const [axis] = axesOf(figure), value = alongOf(figure, mark);
  if (mark.of.names) return `${mark.of.names[mark.i]}, ${quantityOf(axis)} ${withUnit(axis, value)}`;
  const name = axis.name === "row" || axis.name === "group" ? "" : `${quantityOf(axis)} `;
  return name + withUnit(axis, value);
};

// The line of a series at a mark: its name, value and further values.
const lineOf = (figure, { of, i }) => {
  const [, axis] = axesOf(figure), { fields = [], along } = figure.data;
  const value = of[along === "x" ? "y" : "x"][i];
  const quantity = of.name === "" || (unitOf(axis) === "" && !axis.names) ? `${quantityOf(axis)} ` : "";
  const text = quantity + (axis.names ? `${quantityOf(axis)} ` : "") + withUnit(axis, value);
  const more = fields.flatMap((field, at) => of.more[at]?.[i] == null ? []
    : [`${quantityOf({ name: field })} ${withUnit({ name: field }, of.more[at][i])}`]);
  const named = of.name === "" || axis.names ? text : `${of.name}: ${text}`;
  return more.length > 0 ? `${named}, ${more.join(", ")}` : named;
};

// The marks of all series at the same place, and the chosen one alone where places are not shared.
const together = (figure, mark) => {
  const [, axis] = axesOf(figure);
  if (axis.names || mark.of.names) return [mark];
  const along = alongOf(figure, mark);
  return marksOf(figure).filter((other) => alongOf(figure, other) === along);
};

// The nearest mark to a place: by the axis along which marks follow each other, then by the other one.
const nearest = (figure, x, y) => {
  const far = ({ x: left, y: top }) => figure.data.along === "x" && figure.data.x.ends && !figure.series.some((of) => of.names)
    ? Math.abs(left - x) + 1e-3 * Math.abs(top - y) : Math.hypot(left - x, top - y);
  let best = null, least = Infinity;
  for (const mark of marksOf(figure)) {
    const distance = far(mark);
    if (distance < least) [best, least] = [mark, distance];
  }
  return best;
};

// The mark to which an arrow key leads: along the series, or to the series beside it.
const step = (figure, mark, key) => {
  const { along } = figure.data, marks = marksOf(figure);
  if (mark === null) return marks[0] ?? null;
  const own = marks.filter(({ of }) => of === mark.of).sort((a, b) => a[along] - b[along]);
  // The view may have left the mark, and all of its series.
  if (own.length === 0) return marks[0] ?? null;
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const found = own.findIndex(({ i }) => i === mark.i), at = found < 0 && sign < 0 ? own.length : found;
  if (key === "Home") return own[0];
  if (key === "End") return own.at(-1);
  const isAlong = (along === "x") === (key === "ArrowLeft" || key === "ArrowRight");
  if (isAlong) return own[clamp(at + sign, 0, own.length - 1)];
  // Series side by side, in the order of their marks on the screen.
  const across = along === "x" ? "y" : "x";
  const each = [...new Set(marks.map(({ of }) => of))].map((of) => {
    const all = marks.filter((other) => other.of === of);
    return all.reduce((a, b) => Math.abs(b[along] - mark[along]) < Math.abs(a[along] - mark[along]) ? b : a);
  }).sort((a, b) => a[across] - b[across] || a.of.at - b.of.at);
  const place = each.findIndex(({ of }) => of === mark.of);
  return each[clamp(place + sign, 0, each.length - 1)] ?? mark;
};
