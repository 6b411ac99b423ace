// Zoom along the horizontal axis. All figures of a section with the same axis zoom together.

const groupOf = ({ svg, data, isLive }) => {
  if (isLive) return { section: svg.closest("dialog, main"), axis: "" };
  if (!/^(time|delay)\b/.test(data.x.name) || data.x.names || data.along !== "x") return null;
  const section = svg.closest("details.point, section, dialog, main");
  return { section, axis: JSON.stringify([data.x.name, data.x.ends]) };
};
const togetherWith = (figure, figures) => figures.filter(({ group }) =>
  group && group.section === figure.group.section && group.axis === figure.group.axis);

// The narrowest view: a few marks.
const NARROWEST = 1 / 200;
const zoomTo = (figure, [from, to]) => {
  if (!figure.group) return;
  const { ends, log } = figure.data.x, warp = log ? Math.log : (x) => x, back = log ? Math.exp : (x) => x;
  const [low, high] = ends.map(warp), least = (high - low) * NARROWEST;
  let [a, b] = [warp(from), warp(to)].sort((x, y) => x - y);
  if (b - a < least) [a, b] = [(a + b - least) / 2, (a + b + least) / 2];
  [a, b] = b - a >= high - low ? [low, high] : [clamp(a, low, high - (b - a)), clamp(b, low + (b - a), high)];
  const isWhole = a <= low && b >= high;
  for (const one of togetherWith(figure, all)) {
    one.view = isWhole ? one.data.x.ends : [back(a), back(b)];
    paint(one);
    one.svg.closest("figure")?.classList.toggle("zoomed", !isWhole);
    // The mark that is read moves with the view, or leaves it.
    if (current?.figure === one) show(one, marksOf(one).find(({ of, i }) => of === current.mark.of && i === current.mark.i) ?? null);
  }
};

// Narrows or widens the view around a place of the axis.
const zoomBy = (figure, factor, centre) => {
  const { log } = figure.data.x, warp = log ? Math.log : (x) => x, back = log ? Math.exp : (x) => x;
  const [low, high] = figure.view.map(warp), at = warp(centre);
  zoomTo(figure, [back(at - (at - low) * factor), back(at + (high - at) * factor)]);
};
const middleOf = (figure) => {
  const mark = current?.figure === figure ? current.mark : null;
  const [low, high] = figure.view;
  return mark === null ? (figure.data.x.log ? Math.sqrt(low * high) : (low + high) / 2) : mark.of.x[mark.i];
};
// Moves the view by a quarter, or as far as the next value of the series that is read, or of any.
const pan = (figure, key, mark) => {
  const sign = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
  if (sign === 0) return false;
  const { ends } = figure.data.x, [low, high] = figure.view, quarter = (high - low) / 4, edge = sign > 0 ? high : low;
  let next = Infinity;
  for (const { x, y } of mark === null ? figure.series.filter(isShown) : [mark.of]) {
    x.forEach((at, i) => { if (y[i] != null && sign * (at - edge) > 0) next = Math.min(next, sign * (at - edge)); });
  }
  if (next === Infinity) return false;
  const by = Math.max(quarter, next + quarter / 2);
  const shift = clamp(sign * by, ends[0] - low, ends[1] - high);
  if (Math.abs(shift) < 1e-9) return false;
  zoomTo(figure, [low + shift, high + shift]);
  return true;
};

const zoomByKey = (figure, key) => {
  if (!figure.group || !["+", "=", "-", "0"].includes(key)) return false;
  if (key === "0") zoomTo(figure, figure.data.x.ends);
  else zoomBy(figure, key === "-" ? 2 : 0.5, middleOf(figure));
  const unit = unitOf(figure.data.x), [low, high] = figure.view.map((x) => Number(x.toPrecision(4)));
  spoken.textContent = `${quantityOf(figure.data.x)} from ${low} to ${high} ${unit}`;
  return true;
};

// A drag marks the part to show.
const zoomable = (figure) => {
  if (!figure.group) return;
  const { svg, data } = figure;
  const at = (event) => clamp(placeIn(figure, event)[0], data.area[0], data.area[2]);
  const valueOf = (x) => valueAt(data.x, data.area[0], data.area[2], figure.view, x);
  let from = null, box = null;
  const end = () => { box?.remove(); from = box = null; figure.isDragged = false; };
  svg.addEventListener("pointerdown", (event) => {
    figure.wasDragged = false;
    if (event.pointerType !== "touch" && event.button === 0) from = at(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (from === null || (box === null && Math.abs(at(event) - from) < 8)) return;
    if (box === null) {
      hide();
      const [, top, , bottom] = data.area;
      svg.setPointerCapture(event.pointerId);
      box = element(svg, "rect", { class: "selection", y: top, height: bottom - top, fill: INKS.muted, opacity: 0.25 });
      figure.isDragged = figure.wasDragged = true;
    }
    box.setAttribute("x", Math.min(from, at(event)));
    box.setAttribute("width", Math.abs(at(event) - from));
  });
  svg.addEventListener("pointerup", (event) => {
    if (box !== null) zoomTo(figure, [valueOf(from), valueOf(at(event))]);
    end();
  });
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("dblclick", () => zoomTo(figure, data.x.ends));
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    zoomBy(figure, (event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, valueOf(at(event)));
  }, { passive: false });
};
