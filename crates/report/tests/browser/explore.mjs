// Checks in a browser that a report can be explored, and the page of a run: `node explore.mjs REPORT.html CHROMIUM [ADDRESS]`. `.ci/explore` runs it;
// PLAYWRIGHT is the folder with `playwright-core`.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const require = createRequire(process.env.PLAYWRIGHT ?? import.meta.url);
const { chromium } = require("playwright-core");
const [report, executablePath, watched] = process.argv.slice(2);
const address = pathToFileURL(report).href;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

const open = async (options = {}, url = address) => {
  const context = await browser.newContext({ viewport: { width: 1500, height: 900 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") page.faults.push(message.text()); });
  page.on("request", (request) => { if (!/^(file|blob|data|about):/.test(request.url()) && !(watched && request.url().startsWith(watched))) page.faults.push(request.url()); });
  await page.goto(url);
  return page;
};
const close = async (page) => {
  assert.deepEqual(page.faults, []);
  await page.context().close();
};

// The first figure whose horizontal axis is of this name, with its data.
const figure = async (page, axis) => {
  const scripts = page.locator('figure:has(> svg[tabindex]) > script[type="application/json"]');
  for (let at = 0; at < await scripts.count(); at++) {
    const data = JSON.parse(await scripts.nth(at).textContent());
    for (const of of data.series) Object.assign(of, { x: expand(of.x), y: expand(of.y) });
    const found = data.x.name.startsWith(axis) && (axis !== "throughput" || data.series.length > 1);
    if (found) return { data, node: scripts.nth(at).locator(".."), svg: scripts.nth(at).locator("..").locator("> svg") };
  }
  throw new Error(`no figure over ${axis}`);
};
const expand = (of) => {
  if (Array.isArray(of)) return of;
  if (of.step) return [...Array.from({ length: of.count }, (_, k) => Number((of.from + k * of.step).toPrecision(7))), ...of.rest];
  let sum = 0;
  return (of.n ?? of.d).map((x) => Number(`${of.n ? x : sum += x}e${of.e}`));
};

const checks = {
  async "a value is read with the mouse"(page) {
    const { data, svg } = await figure(page, "time");
    await svg.scrollIntoViewIfNeeded();
    const box = await svg.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const said = await page.locator(".readout").innerText();
    const time = Number(said.match(/^time ([\d.]+) s/)[1]);
    const at = data.series[0].x.indexOf(time);
    assert.ok(at > 0, said);
    for (const series of data.series) assert.ok(said.includes(`${series.name}: ${series.y[at]} Mb/s`), said);
    await page.mouse.move(2, 2);
    assert.ok(await page.locator(".readout").isHidden());
  },

  async "every figure is read with the keyboard"(page) {
    for (const svg of await page.locator("figure svg[tabindex]").all()) {
      if (!await svg.isVisible()) continue;
      await svg.focus();
      await page.keyboard.press("ArrowRight");
      const first = await page.locator(".spoken").innerText();
      assert.match(first, /\d/);
      await page.keyboard.press("End");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("Home");
      assert.match(await page.locator(".spoken").innerText(), /\d/);
      assert.ok(await page.locator(".readout").isVisible());
      await page.keyboard.press("Escape");
      assert.ok(await page.locator(".readout").isHidden());
    }
  },

  async "arrow keys go along a series"(page) {
    const { data, svg } = await figure(page, "time");
    await svg.focus();
    for (let at = 0; at < 4; at++) await page.keyboard.press("ArrowRight");
    const said = await page.locator(".spoken").innerText(), [series] = data.series;
    assert.equal(said.startsWith(`time ${series.x[3]} s: ${series.name}: ${series.y[3]} Mb/s`), true, said);
  },

  async "arrow keys lead to the next value beyond a narrow view"(page) {
    const { data, svg } = await figure(page, "time"), [series] = data.series;
    await svg.focus();
    await page.keyboard.press("ArrowRight");
    for (let at = 0; at < 9; at++) await page.keyboard.press("+");
    const isRead = async (key, at) => {
      await page.keyboard.press(key);
      const said = await page.locator(".spoken").innerText();
      assert.equal(said.startsWith(`time ${series.x[at]} s: ${series.name}: ${series.y[at]} Mb/s`), true, `${key}: ${said}`);
      assert.ok((await page.locator(".readout div").count()) > 0);
    };
    for (const at of [1, 2, 3, 4]) await isRead("ArrowRight", at);
    for (const at of [3, 2]) await isRead("ArrowLeft", at);
    for (const key of ["Home", "End"]) await isRead(key, 2);
    // A wheel moves the view away from the mark: there is no readout, and keys go on.
    const box = await svg.boundingBox();
    await page.keyboard.press("0");
    await isRead("Home", 0);
    await page.mouse.move(box.x + 0.8 * box.width, box.y + 60);
    await svg.focus();
    await page.keyboard.press("Home");
    await page.keyboard.down("Shift");
    for (let at = 0; at < 12; at++) await page.mouse.wheel(0, -100);
    await page.keyboard.up("Shift");
    await page.locator("figure.zoomed").first().waitFor();
    for (const key of ["Home", "ArrowRight"]) await page.keyboard.press(key);
    assert.ok((await page.locator(".readout div").count()) > 0);
  },

  async "all figures over time of a section zoom together"(page) {
    const { data, node, svg } = await figure(page, "time");
    const labels = () => svg.locator("text").allTextContents();
    const before = await labels();
    await svg.focus();
    await page.keyboard.press("+");
    assert.notDeepEqual(await labels(), before);
    const section = node.locator("xpath=ancestor::details[contains(@class, 'point')]");
    const zoomed = await section.locator("figure.zoomed").count();
    const timed = await section.locator("figure > script").evaluateAll((all) =>
      all.filter((script) => JSON.parse(script.textContent).x.name === "time, s").length);
    assert.equal(zoomed, timed);
    assert.equal(await page.locator("figure.zoomed").count(), timed, "other sections stay");
    await page.keyboard.press("0");
    assert.equal(await page.locator("figure.zoomed").count(), 0);
    // A drag from a quarter to a half.
    await svg.scrollIntoViewIfNeeded();
    const box = await svg.boundingBox(), [left, , right] = data.area, ratio = box.width / 640;
    const x = (part) => box.x + (left + part * (right - left)) * ratio;
    await page.mouse.move(x(0.25), box.y + 60);
    await page.mouse.down();
    await page.mouse.move(x(0.4), box.y + 60);
    await page.mouse.move(x(0.5), box.y + 60);
    await page.mouse.up();
    await page.mouse.move(x(0.001), box.y + 60);
    const from = Number((await page.locator(".readout b").innerText()).match(/[\d.]+/)[0]), [low, high] = data.x.ends;
    assert.ok(Math.abs(from - (low + 0.25 * (high - low))) < 0.02 * (high - low), String(from));
    await svg.dblclick({ position: { x: box.width / 2, y: 60 } });
    assert.equal(await page.locator("figure.zoomed").count(), 0);
  },

  async "a legend hides a series in all figures"(page) {
    const button = page.locator("ul.legend button").first(), name = await button.getAttribute("value");
    const groups = page.locator("svg g[data-s]");
    const off = () => page.locator("svg g.off").count();
    assert.ok(await groups.count() > 0 && await off() === 0);
    await button.focus();
    await page.keyboard.press("Enter");
    const pressed = await page.locator(`ul.legend button[value="${name}"]`).evaluateAll((all) => all.map((one) => one.getAttribute("aria-pressed")));
    assert.ok(pressed.length > 0 && pressed.every((is) => is === "false"));
    assert.ok(await off() > 1);
    const { svg } = await figure(page, "time");
    await svg.focus();
    await page.keyboard.press("ArrowRight");
    assert.ok(!(await page.locator(".readout").innerText()).includes(`${name}:`));
    await button.click();
    assert.equal(await off(), 0);
  },

  async "a mark leads to its row and a row to its mark"(page) {
    const bars = await figure(page, "throughput");
    await bars.svg.scrollIntoViewIfNeeded();
    await bars.svg.focus();
    await page.keyboard.press("ArrowDown");
    const rows = page.locator("tr.linked");
    assert.ok(await rows.count() > 0);
    const name = await rows.first().locator("th").textContent();
    await page.keyboard.press("Enter");
    const head = page.locator("th.leads:focus");
    assert.equal((await head.innerText()).trim(), name.trim());
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("svg:focus").count(), 1);
    assert.ok((await page.locator(".readout").innerText()).length > 0);
  },

  async "a figure is saved as SVG and as CSV and printed alone"(page) {
    const { data, node } = await figure(page, "time");
    const save = async (text) => {
      await node.hover();
      const [file] = await Promise.all([page.waitForEvent("download"), node.locator(".tools button", { hasText: text }).click()]);
      return readFileSync(await file.path(), "utf8");
    };
    const [head, ...rows] = (await save("CSV")).trim().split("\n"), [series] = data.series;
    assert.equal(head, `series,"${data.x.name}","${data.y.name}",lowest,highest`);
    assert.equal(rows.length, data.series.reduce((sum, { y }) => sum + y.length, 0));
    assert.ok(rows[2].startsWith(`${series.name},${series.x[2]},${series.y[2]},`), rows[2]);
    const svg = await save("SVG");
    const parsed = await page.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").documentElement.nodeName, svg);
    assert.ok(parsed === "svg" && svg.includes("<title>"));
    await page.evaluate(() => { window.print = () => { window.printed = document.querySelectorAll("body > .sheet svg").length; }; });
    await node.locator(".tools button", { hasText: "PDF" }).click();
    assert.equal(await page.evaluate(() => window.printed), 1);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await page.locator(".sheet").count(), 0);
  },

  async "contents stay beside a wide page and fold on a narrow one"(page) {
    const list = page.locator("nav.contents ul");
    assert.ok(await list.isVisible());
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    assert.ok((await list.boundingBox()).y >= 0);
    await page.setViewportSize({ width: 400, height: 800 });
    assert.ok(await list.isHidden());
    await page.locator("nav.contents summary").click();
    await page.locator("nav.contents a").last().click();
    assert.ok(await list.isHidden());
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 400, `${wide} pixels on a phone`);
  },
};

for (const [name, check] of Object.entries(checks)) {
  const page = await open();
  await check(page).catch((error) => { throw new Error(`${name}: ${error.message}`, { cause: error }); });
  await close(page);
  console.log(`ok: ${name}`);
}

{
  const page = await open({ viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true });
  const { svg } = await figure(page, "time");
  await svg.scrollIntoViewIfNeeded();
  await svg.tap({ position: { x: 150, y: 60 } });
  assert.match(await page.locator(".readout").innerText(), /^time/);
  await close(page);
  console.log("ok: a tap shows the value");
}
// Long names without blanks wrap, or scroll in the box of their table.
for (const [length, width] of [[40, 360], [240, 1300], [240, 1500]]) {
  const page = await open({ viewport: { width, height: 900 } }, "about:blank");
  await page.setContent(readFileSync(report, "utf8").replaceAll("bulk", "b".repeat(length)));
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  assert.ok(await page.locator("ul.legend button", { hasText: "b".repeat(length) }).count() > 0);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `names of ${length} letters`);
  await close(page);
  console.log(`ok: names of ${length} letters at ${width} pixels`);
}
{
  // A name keeps its blanks.
  const page = await open({}, "about:blank");
  await page.setContent(readFileSync(report, "utf8").replaceAll(/(["<>])bulk(?=["<])/g, "$1 bulk"));
  assert.ok(await page.locator('ul.legend button[value=" bulk"]').count() > 0);
  await close(page);
  console.log("ok: a name that begins with a blank is in the legend");
}
{
  // Without a script all figures show, and nothing else.
  const page = await open({ javaScriptEnabled: false });
  assert.ok(await page.locator("figure svg").first().isVisible());
  assert.equal(await page.locator(".tools, nav.contents, [tabindex]").count(), 0);
  await close(page);
  console.log("ok: without a script");
}
{
  // In a page within a page, with a policy that allows nothing but what the page holds.
  const policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src \'unsafe-inline\'; style-src \'unsafe-inline\'"/>';
  const html = readFileSync(report, "utf8").replace("<head>", `<head>${policy}`);
  const page = await open({}, "about:blank");
  await page.setContent('<iframe sandbox="allow-scripts allow-downloads" style="width:1450px;height:850px"></iframe>');
  await page.locator("iframe").evaluate((frame, text) => { frame.srcdoc = text; }, html);
  const frame = page.frameLocator("iframe");
  await frame.locator("figure svg[tabindex]").first().focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await frame.locator(".spoken").innerText(), /\d/);
  await frame.locator("nav.contents a").last().click();
  assert.ok(await frame.locator("footer").isVisible());
  await close(page);
  console.log("ok: in a sandboxed page within a page");
}
if (watched) {
  // The page of a run, under its own policy.
  const page = await open({}, watched);
  const svg = page.locator("#flows-chart svg"), drops = page.locator("#drops-chart");
  await svg.focus();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  assert.match(await page.locator(".readout").innerText(), /^time [\d.]+ s/);
  assert.match(await page.locator("#when").innerText(), /^at /);
  const labels = () => drops.locator("text").allTextContents();
  const before = await labels();
  await page.keyboard.press("+");
  assert.notDeepEqual(await labels(), before);
  await page.keyboard.press("0");
  assert.deepEqual(await labels(), before);
  await drops.locator("button", { hasText: "marked" }).click();
  assert.equal(await drops.locator("g.off").count(), 1);
  await close(page);
  console.log("ok: the page of a run");
}
await browser.close();
