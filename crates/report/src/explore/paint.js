// Draws curves with their axes: a part of a figure in the page, or a figure of data that arrive.

// A number on an axis, with no more decimals than it needs.
const tick = (x) => {
  if (Math.abs(x) >= 10000) return `${tick(x / 1000)}k`;
  const text = String(Number(x.toPrecision(6)));
  return text === "-0" ? "0" : text;
};

// Round numbers between the ends, about this many.
const ticksOf = ([low, high], count, { log, steps }) => {
  if (log && high > 8 * low) {
    const decades = Array.from({ length: 40 }, (_, k) => k - 20);
    const at = (steps) => decades.flatMap((k) => steps.map((x) => Number((x * 10 ** k).toPrecision(3)))).filter((x) => x >= low && x <= high);
    return [[1, 2, 5], [1, 3], [1]].map(at).find((all) => all.length <= count) ?? at([1]);
  }
  const least = (high - low) / count, power = 10 ** Math.floor(Math.log10(least));
  const width = (steps ?? [1, 2, 5, 10].map((x) => x * power)).find((x) => x >= least) ?? power;
  const first = Math.ceil(low / width - 1e-9);
  const many = Math.max(Math.floor(high / width + 1e-9) - first + 1, 0);
  return Array.from({ length: Math.min(many, 50) }, (_, k) => Number(((first + k) * width).toPrecision(12)));
};

// A path through points; a gap where a value is missing. Of more points than pixels the extremes of each pixel are drawn.
const pathOf = (points, width) => {
  let from = -1, path = "";
  const put = ([x, y]) => { path += `${from < 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`; };
  if (points.length > 3 * width) points = thinned(points);
  points.forEach((point, i) => {
    if (point === null) { from = -1; return; }
    put(point);
    from = i;
  });
  return path;
};
const thinned = (points) => {
  const kept = [];
  for (let from = 0; from < points.length;) {
    if (points[from] === null) { kept.push(points[from++]); continue; }
    let to = from, low = from, high = from;
    for (; to < points.length && points[to] !== null && Math.round(points[to][0]) === Math.round(points[from][0]); to++) {
      if (points[to][1] < points[low][1]) low = to;
      if (points[to][1] > points[high][1]) high = to;
    }
    for (const i of [...new Set([from, low, high, to - 1])].sort((a, b) => a - b)) kept.push(points[i]);
    from = to;
  }
  return kept;
};

const drawAxes = (group, figure) => {
  const { data, view, unit } = figure, [left, top, right, bottom] = data.area;
  const x = scaleOf(data.x, left, right, view), y = scaleOf(data.y, bottom, top);
  const label = (at, height, anchor, content) =>
    element(group, "text", { x: at, y: height, "font-size": 11 * unit, "text-anchor": anchor, fill: INKS.muted }, content);
  const line = (d, stroke = INKS.grid) => element(group, "path", { d, stroke, "stroke-width": unit, fill: "none" });
  if (data.warmUp > view[0]) {
    element(group, "rect", { x: left, y: top, width: x(Math.min(data.warmUp, view[1])) - left, height: bottom - top, fill: INKS.shade });
    label(left + 4 * unit, top + 11 * unit, "start", "warm-up");
  }
  for (const at of ticksOf(data.y.ends, 5, data.y)) {
    line(`M${left} ${y(at)}H${right}`);
    label(left - 5 * unit, y(at) + 4 * unit, "end", tick(at));
  }
  line(`M${left} ${top}V${bottom}H${right}`);
  const room = (right - left) / (unit * (data.x.text ? 62 : 48)), suffix = unitOf(data.x) === "" ? "" : ` ${unitOf(data.x)}`;
  for (const at of ticksOf(view, Math.max(room, 2), data.x)) {
    line(`M${x(at)} ${bottom}v${3 * unit}`);
    label(x(at), bottom + 15 * unit, "middle", data.x.text?.(at) ?? tick(at) + suffix);
  }
};

const drawCurves = (group, figure) => {
  const { data, view, series, unit } = figure, [left, top, right, bottom] = data.area;
  const x = scaleOf(data.x, left, right, view), y = scaleOf(data.y, bottom, top);
  const width = (right - left) / unit, high = (value) => clamp(y(value), top, bottom);
  for (const at of (data.events ?? []).filter((at) => at >= view[0] && at <= view[1])) {
    element(group, "path", { d: `M${x(at)} ${top}V${bottom}`, stroke: INKS.muted, fill: "none", ...data.eventStyle });
  }
  const sums = data.stacked ? stackOf(series) : null;
  // The highest layer of a stack comes first, so that the lower ones lie on it.
  const order = sums ? [...series.filter(({ line }) => !line).reverse(), ...series.filter(({ line }) => line)] : series;
  const groups = [];
  for (const of of order) groups[of.at] = element(group, "g", { "data-s": of.at, class: isShown(of) ? "" : "off" });
  const draw = (of, values, style) => {
    const each = of.x.map((at, i) => values(i) == null ? null : [x(at), high(values(i))]);
    const points = data.spans ? each.filter((point) => point !== null) : each;
    element(groups[of.at], "path", { d: pathOf(points, width), fill: "none", stroke: figure.colour(of), "stroke-width": (figure.isLive ? 1.5 : 2) * unit, ...style });
  };
  for (const of of series) {
    const both = of.more.length === 2 ? of.x.map((_, i) => i).filter((i) => of.more[0][i] !== null && of.more[1][i] !== null) : [];
    const edge = (field, all) => all.map((i) => `${x(of.x[i]).toFixed(1)} ${high(of.more[field][i]).toFixed(1)}`).join("L");
    if (both.length > 0) {
      element(groups[of.at], "path", { d: `M${edge(1, both)}L${edge(0, [...both].reverse())}z`, fill: figure.colour(of), opacity: 0.22 });
    }
  }
  for (const [at, from = view[0], to = view[1]] of data.levels ?? []) {
    element(group, "path", { d: `M${x(from)} ${y(at)}H${x(to)}`, stroke: INKS.level, "stroke-width": 3, "stroke-dasharray": "10 8", fill: "none" });
  }
  for (const of of series) {
    if (!sums || of.line) { draw(of, (i) => of.y[i], of.style); continue; }
    if (!isShown(of)) continue;
    const points = of.x.map((at, i) => [x(at), high(sums[of.at][i])]);
    if (points.length === 0) continue;
    const d = `M${points[0][0].toFixed(1)} ${bottom}L${pathOf(points, width).slice(1)}V${bottom}z`;
    element(groups[of.at], "path", { d, fill: figure.colour(of) });
  }
};

// The upper edge of each layer.
const stackOf = (series) => {
  const sums = [];
  return series.map((of) => of.line ? of.y : of.y.map((value, i) => (sums[i] = (sums[i] ?? 0) + (isShown(of) ? value ?? 0 : 0))));
};

// Draws the figure in view in place of its whole drawing, which returns with the whole axis.
let clips = 0;
const paint = (figure) => {
  const { svg, data } = figure, [left, top, right, bottom] = data.area;
  svg.querySelector(":scope > .painted")?.remove();
  svg.classList.toggle("replaced", isZoomed(figure) || figure.isLive === true);
  figure.kept = null;
  if (!svg.classList.contains("replaced")) return;
  const group = element(svg, "g", { class: "painted" });
  drawAxes(group, figure);
  figure.clip ??= `clip-${++clips}`;
  const clip = element(group, "clipPath", { id: figure.clip });
  element(clip, "rect", { x: left, y: top, width: right - left, height: bottom - top });
  drawCurves(element(group, "g", { "clip-path": `url(#${figure.clip})` }), figure);
};
