// Files of the scenario and its result.
import { h } from "./dom.js";

/** Gives the reader a file. */
function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A figure of the report as a file of its own: styles of the page become attributes. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const style = svg.ownerDocument.defaultView.getComputedStyle(svg);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((each, index) => {
    const computed = svg.ownerDocument.defaultView.getComputedStyle(originals[index]);
    for (const name of [
      "fill",
      "stroke",
      "stroke-width",
      "stroke-dasharray",
      "opacity",
      "fill-opacity",
      "font-family",
      "font-size",
      "font-weight",
      "text-anchor",
    ]) {
      each.setAttribute(name, computed.getPropertyValue(name));
    }
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.background = style.getPropertyValue("--page");
  return new XMLSerializer().serializeToString(copy);
}

/** The files as `[{ label, save() }]`; `result` and the report's `document` may be absent. */
export function files(text, result, document) {
  const found = [{ label: "Scenario (TOML)", save: () => save("scenario.toml", "application/toml", text) }];
  if (!result) return found;
  found.push({ label: "Report (HTML)", save: () => save("report.html", "text/html", result.html) });
  for (const [name, table] of Object.entries(result.tables)) {
    if (table.indexOf("\n") < table.length - 1)
      found.push({ label: `Table ${name} (CSV)`, save: () => save(`${name}.csv`, "text/csv", table) });
  }
  for (const [index, svg] of [...(document?.querySelectorAll("svg") ?? [])].entries()) {
    const caption = svg.closest("figure")?.querySelector("figcaption b, figcaption") ?? svg.closest(".card")?.querySelector("h3");
    const title = caption?.textContent.trim() || `Figure ${index + 1}`;
    found.push({ label: `${title.slice(0, 60)} (SVG)`, save: () => save(`figure-${index + 1}.svg`, "image/svg+xml", standalone(svg)) });
  }
  return found;
}
