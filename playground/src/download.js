// Files of the scenario and its result.
import { h } from "./dom.js";

/** Gives the reader a file. */
function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The files as `[{ label, save() }]`, without a `result` that of the scenario alone. The report saves its own figures. */
export function files(text, result) {
  const found = [{ label: "Scenario (TOML)", save: () => save("scenario.toml", "application/toml", text) }];
  if (!result) return found;
  found.push({ label: "Report (HTML)", save: () => save("report.html", "text/html", result.html) });
  for (const [name, table] of Object.entries(result.tables)) {
    const rows = table.split("\n", 3)[1];
    if (rows) found.push({ label: `Table ${name} (CSV)`, save: () => save(`${name}.csv`, "text/csv", table) });
  }
  return found;
}
