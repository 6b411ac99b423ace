// Files of the scenario and its result.
import { h } from "./dom.js";

/** Gives the reader a file. */
function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * The files as `[{ label, save() }]`, without a `result` the scenario alone. The report saves its own figures.
 *
 * If the `text` of the editor is not that of the result, both are there under their names.
 */
export function files(text, result) {
  const scenario = (what, of) => ({ label: `${what} (TOML)`, save: () => save("scenario.toml", "application/toml", of) });
  if (!result) return [scenario("Scenario", text)];
  const found =
    result.text === text
      ? [scenario("Scenario", text)]
      : [scenario("Scenario of the result", result.text), scenario("Scenario in the editor", text)];
  found.push({ label: "Report (HTML)", save: () => save("report.html", "text/html", result.html) });
  for (const [name, table] of Object.entries(result.tables)) {
    const rows = table.split("\n", 3)[1];
    if (rows) found.push({ label: `Table ${name} (CSV)`, save: () => save(`${name}.csv`, "text/csv", table) });
  }
  return found;
}
