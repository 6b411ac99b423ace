// Positions in a text: bytes of UTF-8, as the engine counts, and UTF-16 units, as the editor does.
import { scan } from "./scan.js";

/** A function from byte offsets of `text` to its positions. */
export function positions(text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length === text.length) return (offset) => offset;
  const decoder = new TextDecoder();
  return (offset) => decoder.decode(bytes.subarray(0, offset)).length;
}

/** The bytes of a text in UTF-8. */
export const size = (text) => new TextEncoder().encode(text).length;

/** Splits the inside of a TOML list, or takes a single value, into the texts of its items. */
export function items(value) {
  const text = value.trim();
  if (!text.startsWith("[")) return [text];
  const found = [];
  let depth = 0;
  let item = "";
  for (const [token] of text.slice(1, -1).matchAll(/"(?:\\.|[^"\\])*"|'[^']*'|#[^\n]*|[\s\S]/g)) {
    if (token.startsWith("#")) continue;
    if ("[{".includes(token)) depth += 1;
    if ("]}".includes(token)) depth -= 1;
    if (token === "," && depth === 0) {
      found.push(item);
      item = "";
    } else item += token;
  }
  return [...found, item].map((each) => each.trim()).filter((each) => each !== "");
}

/** The name in an item of a list of disciplines or TCPs: `"fifo"` or `{ kind = "fifo", ... }`. */
export function itemName(item) {
  return (/^["']([^"']*)["']$/.exec(item) ?? /\b(?:kind|profile|algorithm)\s*=\s*["']([^"']*)["']/.exec(item))?.[1];
}

/** Knobs for the TCP of flows that name none and send greedily, in sections of their own: `tcp` becomes their first key. */
export function absentTcp(text) {
  const sections = [...text.matchAll(/^\[flow\.([\w-]+)\][^\n]*$/gm)];
  const { tables } = scan(text, -1);
  const names = (flow, key) => tables.has(`${flow}\n${key}`) || (tables.get(flow)?.has(key) && tables.get(flow).get(key) !== "greedy");
  return sections
    .map((header) => ({ name: header[1], at: header.index + header[0].length }))
    .filter(({ name }) => !["tcp", "quic", "source"].some((key) => names(`flow\n${name}`, key)))
    .map(({ name, at }) => ({ path: `flow.${name}.tcp`, kind: "tcp", value: null, from: at, to: at, template: "\ntcp = %" }));
}
