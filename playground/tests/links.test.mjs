// Links of reports and of leagues, followed into the page: APPORTION=PROGRAM node --test tests/links.test.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { decode } from "../src/fragment.js";
import { ADDRESS, close, launch, settled, shares, withPage } from "./browser.mjs";

const program = process.env.APPORTION;
const skip = !program && "no APPORTION, the program that writes reports";
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "apportion-links-"));
  await launch();
});
after(async () => {
  await close();
  await rm(folder, { recursive: true });
});

/** The path of a page that the program writes, with the address of the playground as a build would have it. */
async function written(name, ...command) {
  execFileSync(program, [...command, "--quiet", "--out", folder], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const page = join(folder, "latest", name);
  const html = await readFile(page, "utf8");
  await writeFile(page, html.replace("<main>", `<main data-playground="${ADDRESS}">`));
  return page;
}

/** Follows a link to the playground: its page, which has run the scenario, and what the link holds. */
async function followed(page, link) {
  const state = await decode(new URL(await link.getAttribute("href")).hash);
  const [opened] = await Promise.all([page.waitForEvent("popup"), link.click()]);
  await settled(opened);
  return { opened, state };
}

test("a report opens its run", { skip }, async () => {
  const file = join(folder, "evil.toml");
  await writeFile(
    file,
    `title = "</script><b>"
seed = 3
link.l = { from = "a", to = "b", rate = "4Mbit", delay = "5ms", queue = ["fifo", "drr"] }
flow.tcp = { from = "a", to = "b" }
flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "3Mbit" } }
`,
  );
  const page = await written("report.html", "run", file, "--set", "stop=5s", "--seeds", "3");
  const rows = (await readFile(join(page, "..", "flows.csv"), "utf8")).trim().split("\n").map((line) => line.split(","));
  const [point, flow, rate] = ["point", "flow", "throughput_mbps"].map((name) => rows[0].indexOf(name));
  const expected = {};
  for (const row of rows.slice(1)) (expected[`${row[point]} ${row[flow]}`] ??= []).push(Number(row[rate]));
  await withPage({ address: page, wait: false }, async (shown) => {
    const { opened } = await followed(shown, shown.locator("p.sub a.playground"));
    assert.equal(await opened.locator("#seeds").inputValue(), "3");
    assert.match(await opened.locator("#toml").textContent(), /stop = "5s"/);
    const found = await shares(opened);
    assert.deepEqual(Object.keys(found).sort(), Object.keys(expected).sort());
    for (const [name, rates] of Object.entries(expected)) {
      const mean = rates.reduce((sum, each) => sum + each) / rates.length;
      assert.ok(Math.abs(found[name] - mean) < 0.006, `${name}: ${found[name]} and ${mean}`);
    }
  });
});

test("a cell of a league opens its run", { skip }, async () => {
  const page = await written("league.html", "league", "--disciplines", "fifo,pie", "--situations", "mixed-l4s", "--seeds", "1");
  const html = await readFile(join(page, "..", "cells", "mixed-l4s", "pie.html"), "utf8");
  await withPage({ address: page, wait: false }, async (shown) => {
    await shown.getByLabel("Open pie in the playground").waitFor();
    assert.equal(await shown.locator("section.situation a.playground").count(), 2);
    assert.deepEqual(await shown.locator("section.situation tbody th").allTextContents(), ["fifo", "pie"]);
    const { opened, state } = await followed(shown, shown.getByLabel("Open pie in the playground"));
    assert.match(state.text, /queue = \{ kind = "pie", ecn = true \}/);
    const report = opened.frameLocator("#report iframe");
    const numbers = (table) => table.locator("td").allTextContents();
    const own = await numbers(report.locator("#numbers + div.scroll table"));
    await shown.setContent(html);
    assert.deepEqual(own, await numbers(shown.locator("#numbers + div.scroll table")));
  });
});

test("without an address a report has no link", { skip }, async () => {
  execFileSync(program, ["run", "quickstart", "--set", "stop=2s", "--set", "measure_from=1s", "--quiet", "--out", join(folder, "plain")]);
  await withPage({ address: join(folder, "plain", "latest", "report.html"), wait: false }, async (shown) => {
    assert.equal(await shown.locator("a.playground").count(), 0);
  });
});
