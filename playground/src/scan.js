// Where a position of a TOML text is: in which table, at a key or at a value. Errors are no obstacle.

const TOKEN =
  /(?<space>[ \t\r]+)|(?<line>\n)|(?<comment>#[^\n]*)|(?<string>"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?)|(?<mark>[[\]{}=,.])|(?<word>[^\s#"'[\]{}=,.]+)|(?<other>.)/gy;

/**
 * Scans `text`.
 *
 * Returns `{ path, place, key, from, to, tables }`: the path of the table around `position` (`"[]"` for an item of a
 * list), `"key"`, `"value"` or `"none"` (a comment), the key whose value it is, and the token that touches it. `tables`
 * maps the path of each table, joined by newlines, to its keys and the strings they hold.
 */
export function scan(text, position) {
  const tables = new Map();
  const table = (path) => {
    const name = path.join("\n");
    if (!tables.has(name)) tables.set(name, new Map());
    return tables.get(name);
  };
  let section = [];
  let keys = []; // parts of the key before the cursor
  let nest = []; // open brackets of a value: { list, path, keys }
  let place = "key";
  let header;
  let found;
  const around = () => nest.at(-1)?.path ?? section;
  const here = (start, end) => {
    if (found || position > end || position < start) return;
    const value = place === "value";
    const owner =
      nest.at(-1)?.list && value ? around().slice(0, around().findLastIndex((key) => key !== "[]") + 1) : [...around(), ...keys];
    found = {
      path: header ? [...header.path] : owner,
      place: header ? "header" : place,
      from: start,
      to: end,
    };
    if (value && !header) found = { ...found, path: owner.slice(0, -1), key: owner.at(-1) };
  };
  for (const match of text.matchAll(TOKEN)) {
    const { space, line, comment, string, mark, word } = match.groups;
    const start = match.index;
    const end = start + match[0].length;
    if (comment !== undefined) {
      if (position > start && position <= end) found ??= { path: around(), place: "none", from: start, to: end };
    } else if (string !== undefined || word !== undefined) {
      here(start, end);
      const part = string === undefined ? word : string.replace(/^["']+|["']+$/g, "");
      if (header) header.path.push(part);
      else if (place === "key") keys.push(part);
      else if (keys.length && !nest.at(-1)?.list) table([...around(), ...keys.slice(0, -1)]).set(keys.at(-1), part);
    } else if (space !== undefined) {
      if (position > start && position < end) here(position, position);
    } else if (line !== undefined) {
      here(start, start);
      if (nest.length === 0) {
        [place, keys, header] = ["key", [], undefined];
      }
    } else if (mark === "=") {
      here(start, start);
      if (place === "key") {
        if (keys.length) table([...around(), ...keys.slice(0, -1)]).set(keys.at(-1), undefined);
        place = "value";
      }
    } else if (mark === ".") {
      if (position === end && text[end]?.match(/[\w"']/) === null) here(end, end);
    } else if (mark === "[" && place === "key" && nest.length === 0) {
      header ??= { path: [], list: text[start + 1] === "[" };
      section = header.path;
    } else if (mark === "]" && header) {
      here(start, start);
      if (header.list && header.path.at(-1) !== "[]") header.path.push("[]");
      table(header.path);
    } else if (mark === "[" || mark === "{") {
      here(start, start);
      const path = [...around(), ...keys];
      nest.push({ list: mark === "[", path: mark === "[" ? [...path, "[]"] : path, keys });
      [keys, place] = [[], mark === "[" ? "value" : "key"];
    } else if (mark === "]" || mark === "}") {
      here(start, start);
      keys = nest.pop()?.keys ?? [];
      place = "value";
    } else if (mark === ",") {
      here(start, start);
      if (nest.length && !nest.at(-1).list) [keys, place] = [[], "key"];
      else place = "value";
    }
  }
  here(position, position);
  return { ...found, tables };
}
