// Builds the playground: node build.mjs ENGINE.wasm [PAGE.html]. Beside the page, scenarios.json lists the scenarios in it.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";
import { start } from "./src/engine.js";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

/** The script of an entry as text, with the folders of packages in it. */
async function bundle(entry, define = {}) {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: ["chrome110", "firefox115", "safari16.4"],
    define,
    absWorkingDir: here,
  });
  const packages = Object.keys(metafile.inputs).map((each) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(each)?.[0]);
  return { text: outputFiles[0].text, packages: new Set(packages.filter(Boolean)) };
}

/** Files below a folder whose names end in `ending`, sorted. */
async function below(folder, ending) {
  const found = await readdir(folder, { recursive: true });
  return found
    .filter((each) => each.endsWith(ending))
    .sort()
    .map((each) => join(folder, each));
}

/** Scenarios of the repository that are no examples and that a page can run, as `[{ group, title, name, text }]`. */
async function scenarios(wasm) {
  const ask = await start(await WebAssembly.compile(wasm));
  const seen = new Set(ask({ op: "catalog" }).examples.map(({ text }) => text));
  const found = [];
  const add = (group, name, text) => {
    if (seen.has(text)) return;
    seen.add(text);
    const answer = ask({ op: "check", text, name });
    if (answer.ok) found.push({ group, title: answer.title, name, text });
  };
  for (const file of await below(join(root, "scenarios"), ".toml")) {
    add("Scenarios", relative(root, file), await readFile(file, "utf8"));
  }
  for (const file of await below(join(root, "docs"), ".md")) {
    const page = await readFile(file, "utf8");
    for (const [index, match] of [...page.matchAll(/^```toml[^\n]*\n([\s\S]*?)^```$/gm)].entries()) {
      add("Documents", `${relative(root, file)}, block ${index + 1}`, match[1]);
    }
  }
  return found;
}

/** Licences of the packages in the page, as an HTML comment. */
async function licences(packages) {
  const texts = new Map();
  for (const each of packages) {
    const text = await readFile(join(here, each, "LICENSE"), "utf8");
    texts.set(text, [...(texts.get(text) ?? []), each.replace("node_modules/", "")]);
  }
  return `<!--\n${[...texts].map(([text, names]) => `${names.join(", ")}:\n${text.replaceAll("--", "- -")}`).join("\n")}-->\n`;
}

/**
 * Bytes as the text of a script element: each is the lower half of a character.
 *
 * A connection's brotli compresses this nearly as well as the bytes themselves: a fifth better than base64 of their gzip. NUL, CR and
 * `<`, which HTML changes, are shifted by 256.
 */
function spelled(bytes) {
  const characters = Array.from(bytes, (byte) => String.fromCharCode([0, 13, 60].includes(byte) ? byte + 256 : byte));
  return characters.join("");
}

/** A module without its custom sections: names, and descriptions for tools that are not used. */
function bare(wasm) {
  const kept = [wasm.subarray(0, 8)];
  for (let at = 8; at < wasm.length; ) {
    const start = at;
    const kind = wasm[at++];
    let length = 0;
    let shift = 0;
    do length += (wasm[at] & 127) * 2 ** (7 * shift++);
    while (wasm[at++] & 128);
    at += length;
    if (kind !== 0) kept.push(wasm.subarray(start, at));
  }
  return Buffer.concat(kept);
}

/** Builds the page around an engine, and returns its text and the list of scenarios in it. */
export async function page(wasm) {
  const worker = await bundle("worker.js");
  const main = await bundle("main.js", { WORKER: JSON.stringify(worker.text) });
  const list = JSON.stringify(await scenarios(wasm), null, 1);
  const parts = {
    style: (await build({ entryPoints: [join(here, "style.css")], minify: true, write: false })).outputFiles[0].text,
    scenarios: list.replaceAll("<", "\\u003c"),
    engine: spelled(wasm),
    script: main.text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--"),
  };
  const template = await readFile(join(here, "template.html"), "utf8");
  return { text: template.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]) + (await licences(main.packages)), list };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [engine, out = join(here, "index.html")] = process.argv.slice(2);
  if (!engine) {
    console.error("usage: node build.mjs ENGINE.wasm [PAGE.html]");
    process.exit(2);
  }
  const wasm = bare(await readFile(engine));
  const { text, list } = await page(wasm);
  await writeFile(out, text);
  await writeFile(join(dirname(out), "scenarios.json"), `${list}\n`);
  const size = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
  console.log(
    `${out}: ${size(Buffer.byteLength(text))}, brotli ${size(brotliCompressSync(text).length)}; engine brotli ${size(brotliCompressSync(wasm).length)}`,
  );
}
