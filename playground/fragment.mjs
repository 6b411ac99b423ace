// Prints the fragment of a link to the playground: node fragment.mjs SCENARIO.toml [seeds=5] [a=fifo b=fq_codel] ...
import { readFile } from "node:fs/promises";
import { encode, PARTS } from "./src/fragment.js";

const [file, ...settings] = process.argv.slice(2);
const state = Object.fromEntries(settings.map((each) => [each.split("=", 1)[0], each.slice(each.indexOf("=") + 1)]));
if (!file || Object.keys(state).some((name) => !PARTS.includes(name))) {
  console.error(`usage: node fragment.mjs SCENARIO.toml [${PARTS.join("=...] [")}=...]`);
  process.exit(2);
}
console.log(await encode({ ...state, text: await readFile(file, "utf8") }));
