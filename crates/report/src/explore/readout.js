// The value under the pointer, under a finger, or at the place to which arrow keys lead.

// One readout and one line for screen readers serve all figures.
const readout = document.createElement("div");
readout.className = "readout";
readout.hidden = true;
const spoken = document.createElement("div");
spoken.className = "spoken";
spoken.setAttribute("aria-live", "polite");
let current = null;

const MOST_LINES = 14;
const fill = (figure, mark) => {
  const title = document.createElement("b");
  title.textContent = headOf(figure, mark);
  const all = together(figure, mark), at = all.indexOf(mark);
  const from = clamp(at - MOST_LINES + 1, 0, all.length), shown = all.slice(from, from + MOST_LINES);
  const lines = shown.map((one) => {
    const line = document.createElement("div"), swatch = document.createElement("i");
    // Style sheets have the colour of a key in light and dark.
    if (figure.isLive) swatch.style.background = figure.colour(one.of);
    else swatch.className = one.of.key === undefined ? "line" : `k${Math.min(one.of.key, INKS.keys.length - 1)}`;
    line.append(swatch, lineOf(figure, one));
    line.className = one === mark ? "chosen" : "";
    return line;
  });
  readout.replaceChildren(title, ...lines);
  if (all.length > shown.length) readout.append(`and ${all.length - shown.length} more`);
  if (figure.data.note) readout.append(figure.data.note);
};

// Beside the mark, within the window.
const put = (figure, mark) => {
  const box = figure.svg.getBoundingClientRect(), ratio = box.width / figure.svg.viewBox.baseVal.width;
  const [x, y] = [box.left + mark.x * ratio, box.top + mark.y * ratio];
  const { offsetWidth: width, offsetHeight: height } = readout;
  const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
  readout.style.left = `${clamp(left, 4, Math.max(innerWidth - width - 4, 4))}px`;
  readout.style.top = `${clamp(y - height - 10, 4, Math.max(innerHeight - height - 4, 4))}px`;
};

const point = (figure, mark) => {
  const { svg, data, unit } = figure, [left, top, right, bottom] = data.area;
  svg.querySelector(":scope > .cursor")?.remove();
  if (mark === null) return;
  const group = element(svg, "g", { class: "cursor" });
  const isCell = data.x.names && data.y.names;
  const d = isCell ? "" : data.along === "x" ? `M${mark.x} ${top}V${bottom}` : `M${left} ${mark.y}H${right}`;
  element(group, "path", { d, stroke: INKS.muted, "stroke-width": unit, "stroke-dasharray": `${2 * unit} ${2 * unit}` });
  element(group, "circle", { cx: mark.x, cy: mark.y, r: (isCell ? 11 : 4.5) * unit, fill: "none", stroke: INKS.ink, "stroke-width": 2 * unit });
};

const show = (figure, mark, isSpoken = false) => {
  if (mark === null) { hide(); return; }
  if (current !== null && current.figure !== figure) hide();
  current = { figure, mark, along: alongOf(figure, mark) };
  fill(figure, mark);
  (figure.svg.closest("dialog") ?? document.body).append(readout);
  readout.hidden = false;
  point(figure, mark);
  put(figure, mark);
  figure.onMark?.(mark);
  if (isSpoken) spoken.textContent = `${headOf(figure, mark)}: ${lineOf(figure, mark)}`;
};
const hide = () => {
  if (current === null) return;
  const { figure } = current;
  current = null;
  readout.hidden = true;
  point(figure, null);
  figure.onMark?.(null);
};

// The place of the pointer in the pixels of the drawing.
const placeIn = ({ svg }, event) => {
  const box = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / box.width;
  return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
};

const onKey = (figure, event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const mark = current?.figure === figure ? current.mark : null;
  const { key } = event;
  if (/^(Arrow|Home$|End$)/.test(key)) {
    const next = step(figure, mark, key);
    if (next === mark && isZoomed(figure) && pan(figure, key, mark)) show(figure, step(figure, mark, key), true);
    else show(figure, next, true);
  } else if (key === "Escape" && mark !== null) hide();
  else if (key === "Enter" && mark !== null) figure.onGo?.(mark);
  else if (!zoomByKey(figure, key)) return;
  event.preventDefault();
};

const readable = (figure) => {
  const { svg } = figure;
  // An image has no parts for screen readers, and a figure that answers keys is more than an image.
  svg.closest("[role=img]")?.removeAttribute("role");
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "application");
  svg.setAttribute("aria-roledescription", "figure with values");
  svg.setAttribute("aria-label", `${figure.label}: arrow keys read values${figure.group ? ", plus and minus zoom" : ""}`);
  svg.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || figure.isDragged) return;
    show(figure, nearest(figure, ...placeIn(figure, event)));
  });
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
  svg.addEventListener("click", (event) => {
    const mark = nearest(figure, ...placeIn(figure, event));
    if (figure.wasDragged || mark === null) return;
    // A tap shows the value; a mouse shows it already.
    if (event.pointerType === "mouse" && current?.figure === figure) figure.onGo?.(mark);
    else show(figure, mark);
  });
  svg.addEventListener("keydown", (event) => onKey(figure, event));
  svg.addEventListener("blur", hide);
};

addEventListener("scroll", () => { if (current !== null) put(current.figure, current.mark); }, { passive: true, capture: true });
document.addEventListener("pointerdown", (event) => {
  if (current !== null && !current.figure.svg.contains(event.target)) hide();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
