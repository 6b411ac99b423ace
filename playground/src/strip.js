// The strip above the report: what each group of flows got, beside what it is entitled to.
import { h } from "./dom.js";

/** Most points, and most groups of a point, that the strip shows. */
const MOST_POINTS = 24;
const MOST_ROWS = 40;

/** A number with three significant digits. */
const number = (value) =>
  value === undefined ? "–" : value >= 999.5 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));

/** Shows the points (of `byPoint`) in `panel`, beside guesses: `[{ name, of(point, group) }]` in percent. */
export function strip(panel, points, guesses) {
  const shown = points.slice(0, MOST_POINTS);
  const rows = shown.flatMap((each) => each.rows.slice(0, MOST_ROWS));
  const scale = Math.max(...rows.flatMap((each) => [each.most, each.entitlement ?? 0]), 1e-9);
  panel.replaceChildren(
    ...shown.map((point) => table(point, scale, guesses)),
    ...leftOut(points.length - MOST_POINTS, "points"),
    h(
      "p",
      { class: "note" },
      `Bar: throughput of a flow, in a group the mean; thin line: least to most. Upright line: entitlement; red: above it.${guesses.length ? " Triangle: predicted." : ""}`,
    ),
  );
}

function table({ point, rows, total }, scale, guesses) {
  const names = guesses.length ? [...guesses.map((each) => each.name), "result"] : ["Mb/s", "p95 ms", "drops"];
  const heads = names.map((each) => h("th", { scope: "col" }, each));
  const body = rows.slice(0, MOST_ROWS).map((row) =>
    line(
      row,
      scale,
      total,
      guesses.map((each) => each.of(point, row.name)),
    ),
  );
  const scores = guesses.map((each) => h("p", { class: "score" }, score(each, point, rows)));
  return h(
    "div",
    { class: "point" },
    h(
      "table",
      {},
      h("caption", {}, point || "Result"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "flow"), h("td"), ...heads)),
      h("tbody", {}, ...body),
    ),
    ...leftOut(rows.length - MOST_ROWS, "groups of flows"),
    ...scores,
  );
}

/** A note about what is not shown, if there is any. */
function leftOut(count, what) {
  return count > 0 ? [h("p", { class: "note" }, `${count.toLocaleString("en")} more ${what} are in the tables.`)] : [];
}

function line(row, scale, total, guesses) {
  const at = (value) => `${Math.min(100, (100 * value) / scale)}%`;
  const over = row.entitlement !== undefined && row.mean > 1.05 * row.entitlement;
  const bar = h(
    "div",
    { class: "bar", "aria-hidden": "true" },
    h("i", { class: over ? "got over" : "got", style: `width:${at(row.mean)}` }),
  );
  const mark = (name, style) => bar.append(h("i", { class: name, style }));
  if (row.flows > 1) mark("range", `left:${at(row.least)};width:${at(row.most - row.least)}`);
  if (row.entitlement !== undefined) mark("due", `left:${at(row.entitlement)}`);
  guesses.filter((each) => each !== undefined).forEach((each) => mark("guess", `left:${at((each / 100) * (total / row.flows))}`));
  const due = row.entitlement === undefined ? "no entitlement" : `entitlement ${number(row.entitlement)} Mb/s`;
  const percent = (value) => (value === undefined ? "–" : `${Math.round(value)} %`);
  const cells = guesses.length
    ? [...guesses, row.percent].map(percent)
    : [number(row.mean), number(row.delay), Math.round(row.drops).toLocaleString("en")];
  return h(
    "tr",
    {},
    h("th", { scope: "row", title: row.name }, row.flows > 1 ? `${row.name} × ${row.flows}` : row.name),
    h("td", { class: "bars", title: due }, bar, h("span", { class: "hidden" }, due)),
    ...cells.map((each) => h("td", {}, each)),
  );
}

/** How far guesses are from the result; nothing for a point without guesses. */
function score({ name, of }, point, rows) {
  const errors = rows.map((each) => Math.abs(each.percent - of(point, each.name))).filter((each) => !Number.isNaN(each));
  if (errors.length === 0) return "";
  const mean = errors.reduce((sum, each) => sum + each, 0) / errors.length;
  return `${name[0].toUpperCase()}${name.slice(1)}: mean error ${mean.toFixed(0)} percentage points`;
}
