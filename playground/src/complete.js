// Completion and documentation of keys and values in the editor.
import { snippetCompletion } from "@codemirror/autocomplete";
import { scan } from "./scan.js";
import { keysAt, valuesOf } from "./schema.js";

/** Documentation of a completion as an element. */
const info = (text) => () => {
  const element = document.createElement("div");
  element.className = "doc";
  element.textContent = text;
  return element;
};

/** A completion source from the catalogue's schema and disciplines. */
export function completions({ schema, disciplines }) {
  const summaries = new Map(disciplines.map(({ name, summary }) => [name, summary]));
  return (context) => {
    const text = context.state.doc.toString();
    const place = scan(text, context.pos);
    if (place.place === "key" || place.place === "header") return keys(schema, place, context);
    if (place.place === "value") return values(schema, summaries, place, context, text);
    return null;
  };
}

function keys(schema, { path, place, from, to, tables }, context) {
  if (from === to && !context.explicit) return null;
  const used = tables.get(path.join("\n")) ?? new Map();
  const word = context.state.sliceDoc(from, context.pos);
  const options = keysAt(schema, path, tables)
    .filter(({ key }) => key === word || !used.has(key))
    .map(({ key, description, required }) => {
      const option = {
        label: key,
        type: "property",
        detail: required ? "required" : undefined,
        info: description ? info(description) : undefined,
      };
      return place === "header" ? option : snippetCompletion(`${key} = \${}`, option);
    });
  return { from: Math.min(from, context.pos), options, validFor: /^\w*$/ };
}

function values(schema, summaries, { path, key, from, to, tables }, context, text) {
  if (key === undefined || (from === to && !context.explicit && text[from - 1] !== " ")) return null;
  const found = keysAt(schema, path, tables).find((each) => each.key === key);
  if (!found) return null;
  const quote = /["']/.test(text[from] ?? "") && from < context.pos;
  const options = valuesOf(schema, found.schema).map(({ value, example }) => ({
    label: typeof value === "string" && !quote ? `"${value}"` : String(value),
    detail: example ? "example" : undefined,
    type: "constant",
    info: summaries.has(value) ? info(summaries.get(value)) : undefined,
  }));
  return { from: quote ? from + 1 : Math.min(from, context.pos), options, validFor: /^"?[\w-]*$/ };
}

/** What the key at a position means, as `{ from, to, text }`. */
export function meaning({ schema }, text, position) {
  const { path, place, from, to, tables } = scan(text, position);
  if (place !== "key" || from === to) return undefined;
  const found = keysAt(schema, path, tables).find(({ key }) => key === text.slice(from, to));
  return found?.description ? { from, to, text: found.description } : undefined;
}
