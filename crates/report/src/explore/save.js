// Saves a figure as SVG, its values as CSV, and prints it alone, for PDF.

const fileOf = (figure) => figure.label.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "figure";

const download = (name, type, content) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// The names and colours of a figure alone, whose legend is elsewhere on the page.
const namesOf = (figure) => {
  const named = figure.series.filter((of) => of.name !== "" && of.key !== undefined && isShown(of));
  return new Map(named.map((of) => [of.name, figure.colour(of)]));
};

// With its label and legend above it.
const svgText = (figure) => {
  const { svg, label } = figure;
  const copy = svg.cloneNode(true);
  copy.querySelectorAll(".cursor, .selection, .off").forEach((node) => node.remove());
  if (svg.classList.contains("replaced")) copy.querySelectorAll(":scope > :not(.painted)").forEach((node) => node.remove());
  for (const name of ["tabindex", "role", "aria-roledescription", "aria-label", "class"]) copy.removeAttribute(name);
  const { width, height } = svg.viewBox.baseVal, ratio = Number(svg.getAttribute("width")) / width;
  copy.setAttribute("viewBox", `0 -64 ${width} ${height + 64}`);
  copy.setAttribute("height", (height + 64) * ratio);
  element(copy, "text", { x: 4, y: -40, "font-size": 22, "font-weight": "bold", fill: INKS.ink }, label);
  let left = 4;
  for (const [name, colour] of namesOf(figure)) {
    element(copy, "rect", { x: left, y: -26, width: 18, height: 18, fill: colour });
    element(copy, "text", { x: left + 24, y: -10, "font-size": 22, fill: INKS.ink }, name);
    left += 48 + 13 * name.length;
  }
  copy.prepend(element(copy, "title", {}, label));
  const text = new XMLSerializer().serializeToString(copy);
  // Two drawings of a page have no name in common.
  return figure.clip ? text.replaceAll(figure.clip, `${figure.clip}-alone`) : text;
};

// One mark a row: its series, its place and its values.
const csvText = ({ data, series }) => {
  const cell = (value) => value === null || value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
  const { fields = [] } = data, isNamed = series.some(({ names }) => names);
  const head = ["series", ...isNamed ? ["name"] : [], data.x.name, data.y.name, ...fields];
  const of = (axis, value) => axis.names ? axis.names[value] : value;
  const rows = series.flatMap((one) => one.x.map((x, i) =>
    [one.name, ...isNamed ? [one.names?.[i]] : [], of(data.x, x), of(data.y, one.y[i]), ...fields.map((_, at) => one.more[at]?.[i])]));
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
};

const printAlone = (figure) => {
  const sheet = document.createElement("div"), image = document.createElement("figure");
  sheet.className = "sheet";
  image.innerHTML = svgText(figure);
  sheet.append(image);
  document.body.append(sheet);
  addEventListener("afterprint", () => sheet.remove(), { once: true });
  print();
};

const saveable = (figure) => {
  const parent = figure.svg.closest("figure");
  const bar = document.createElement("div");
  bar.className = "tools";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Zoom and save");
  const add = (text, title, act) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text, title });
    button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
    bar.append(button);
    return button;
  };
  if (figure.group) {
    add("+", "Zoom in", () => zoomBy(figure, 0.5, middleOf(figure)));
    add("−", "Zoom out", () => zoomBy(figure, 2, middleOf(figure)));
    add("whole", "Show all of the axis", () => zoomTo(figure, figure.data.x.ends)).className = "whole";
  }
  add("SVG", "Save as SVG", () => download(`${fileOf(figure)}.svg`, "image/svg+xml", svgText(figure)));
  add("CSV", "Save the values as CSV", () => download(`${fileOf(figure)}.csv`, "text/csv", csvText(figure)));
  add("PDF", "Print this figure alone, for PDF", () => printAlone(figure));
  parent.append(bar);
};
