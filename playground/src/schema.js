// Look-ups in the JSON Schema of scenarios.

/** The alternatives of a schema, with references followed. */
function alternatives(root, schema) {
  if (schema.$ref) {
    const target = root.$defs[schema.$ref.split("/").at(-1)];
    return alternatives(root, target);
  }
  return schema.anyOf ? schema.anyOf.flatMap((each) => alternatives(root, each)) : [schema];
}

/** Those of `schemas` that a table with this `kind` can be. */
function ofKind(schemas, kind) {
  const tables = schemas.filter((each) => each.properties);
  const exact = tables.filter((each) => each.properties.kind?.const === kind);
  return kind !== undefined && exact.length ? exact : tables;
}

/** The schemas of the table at `path`; `tables` is of `scan`. */
export function at(root, path, tables) {
  let schemas = [root];
  for (const [index, key] of path.entries()) {
    if (key === "[]") {
      schemas = schemas.flatMap((each) => (each.items ? alternatives(root, each.items) : each.properties ? [each] : []));
      continue;
    }
    const kind = tables.get(path.slice(0, index).join("\n"))?.get("kind");
    schemas = [...ofKind(schemas, kind), ...schemas.filter((each) => !each.properties)].flatMap((each) => {
      const next = each.properties?.[key] ?? (typeof each.additionalProperties === "object" ? each.additionalProperties : undefined);
      return next ? alternatives(root, next) : [];
    });
  }
  return schemas;
}

/** The keys of the table at `path` as `[{ key, description, required, schema }]`. */
export function keysAt(root, path, tables) {
  const kind = tables.get(path.join("\n"))?.get("kind");
  const found = new Map();
  for (const schema of ofKind(at(root, path, tables), kind)) {
    for (const [key, value] of Object.entries(schema.properties)) {
      if (!found.has(key))
        found.set(key, { key, description: about(value, kind), required: schema.required?.includes(key) ?? false, schema: value });
    }
  }
  return [...found.values()];
}

/** A key's description; of a key that disciplines share, the paragraph of `kind` if there is one. */
function about(schema, kind) {
  const text = schema.description ?? (schema.properties?.kind?.description || "");
  const own = text.split("\n\n").find((each) => kind !== undefined && each.split(": ")[0].includes(`\`${kind}\``));
  const fallback = schema.default === undefined ? "" : ` Default: ${JSON.stringify(schema.default)}.`;
  return (own ?? text) + fallback;
}

/** Values that the schemas offer, as `[{ value, example }]`. */
export function valuesOf(root, schema) {
  const found = new Map();
  const add = (value, example) => found.has(value) || found.set(value, { value, example });
  const visit = (each) => {
    for (const one of alternatives(root, each)) {
      if (one.const !== undefined) add(one.const, false);
      for (const value of one.enum ?? []) add(value, false);
      if (one.type === "boolean") [true, false].forEach((value) => add(value, false));
      for (const value of one.examples ?? []) add(value, true);
      if (one.properties?.kind?.const) add(one.properties.kind.const, false);
      if (one.type === "array" && one.items) visit(one.items);
    }
  };
  if (schema.default !== undefined && typeof schema.default !== "object") add(schema.default, false);
  visit(schema);
  return [...found.values()];
}
