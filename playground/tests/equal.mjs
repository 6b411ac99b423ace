// The engine's reports and tables equal those of the native command: APPORTION=... node tests/equal.mjs ENGINE.wasm [EXAMPLE...]
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "../src/engine.js";

const [engine, ...only] = process.argv.slice(2);
const native = process.env.APPORTION;
if (!engine || !native) {
  console.error("usage: APPORTION=PROGRAM node tests/equal.mjs ENGINE.wasm [EXAMPLE...]");
  process.exit(2);
}
const module = await WebAssembly.compile(await readFile(engine));
const { examples } = (await start(module))({ op: "catalog" });
const folder = await mkdtemp(join(tmpdir(), "apportion-equal-"));
let failed = 0;

/** Files of a native run by name. */
async function files(scenario) {
  execFileSync(native, ["run", scenario, "--out", join(folder, "results"), "--no-cache", "--quiet"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [run] = (await readdir(join(folder, "results"))).filter((each) => /^\d+$/.test(each));
  const at = join(folder, "results", run);
  const names = (await readdir(at)).filter((each) => each.endsWith(".csv") || each === "report.html");
  const found = await Promise.all(names.map(async (each) => [each, await readFile(join(at, each), "utf8")]));
  await rm(join(folder, "results"), { recursive: true });
  return new Map(found);
}

try {
  for (const { name, text } of examples) {
    if (only.length && !only.includes(name)) continue;
    const scenario = join(folder, `${name}.toml`);
    await writeFile(scenario, text);
    const expected = await files(scenario);
    const began = performance.now();
    const result = (await start(module))({ op: "run", text, name: `${name}.toml`, tables: true });
    const took = ((performance.now() - began) / 1000).toFixed(1);
    const found = new Map([
      ["report.html", result.html],
      ...Object.entries(result.tables ?? {}).map(([table, csv]) => [`${table}.csv`, csv]),
    ]);
    const different = [...expected.keys()].filter((each) => expected.get(each) !== found.get(each));
    if (!result.ok || different.length) failed += 1;
    console.log(
      `${name}: ${result.ok ? (different.length ? `different: ${different.join(", ")}` : `${expected.size} files equal`) : result.problems[0].message} (${took} s)`,
    );
  }
} finally {
  await rm(folder, { recursive: true });
}
process.exitCode = failed ? 1 : 0;
