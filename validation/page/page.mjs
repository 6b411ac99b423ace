// What the page of a gateway shows in Chromium: see run.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
const { chromium } = createRequire(import.meta.url)("playwright-core");

const shots = process.env.SHOTS;
const fail = (what) => { console.error(`failed: ${what}`); process.exitCode = 1; };
const check = (is, what) => { if (is) console.log(`ok: ${what}`); else fail(what); };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const errors = [];
const open = async (width, height, colorScheme) => {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith("http://127.0.0.1:9617/") && !request.url().startsWith("data:")) errors.push(request.url()); });
  await page.goto("http://127.0.0.1:9617/");
  await page.waitForSelector("#up .flows tbody tr");
  await page.waitForTimeout(4000);
  return page;
};
const rows = (page) => page.$$eval("#up .flows tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));

const page = await open(1280, 900, "light");
const before = await rows(page);
await page.waitForTimeout(2500);
const after = await rows(page);
check(before.length >= 2 && before.length <= 3 && before[0].length === 6 && JSON.stringify(before) !== JSON.stringify(after), "flows move");
const shares = Object.fromEntries(after.map((row) => [row[1], row.slice(3, 5).map(Number.parseFloat)]));
for (const [rule, due] of [["light", 2.5], ["heavy", 7.5]]) {
  const [rate, entitled] = shares[rule] ?? [];
  check(Math.abs(rate / entitled - 1) < 0.05 && Math.abs(entitled / due - 1) < 0.01, `${rule} has ${rate} of ${entitled} Mbit/s`);
}
const lit = await page.$$eval("#up canvas, #down canvas", (all) => all.map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, at) => at % 4 === 3 && value > 0);
}));
check(lit.length === 6 && lit.every(Boolean), "six charts are drawn");
const unnamed = await page.$$eval("button, meter, [role=img], [role=region], dialog", (all) =>
  all.filter((node) => !(node.getAttribute("aria-label") || node.getAttribute("aria-labelledby") || node.textContent.trim())).map((node) => node.outerHTML));
check(unnamed.length === 0, `everything has a name for readers of the screen ${unnamed}`);

// By the keyboard alone.
let focused = "";
for (let at = 0; at < 20 && focused !== "BUTTON"; at++) {
  await page.keyboard.press("Tab");
  focused = await page.evaluate(() => document.activeElement.tagName);
}
await page.keyboard.press("Enter");
await page.waitForSelector("#flow[open] canvas");
await page.screenshot({ path: `${shots}/history.png` });
check((await page.textContent("#flow-rule")).includes("entitlement"), "a flow's history opens by the keyboard");
await page.keyboard.press("Escape");
check(!(await page.isVisible("#flow")), "and closes");

// A reload is an event on the page.
const edit = `${process.env.WORK}/page.toml`;
execFileSync("sed", ["-i", "s/^weight = 3/weight = 1/", edit]);
execFileSync(process.env.APPORTION, ["gateway", "reload", edit]);
await page.waitForFunction(() => document.querySelector("#event-list").textContent.includes("reload"), null, { timeout: 4000 });
check(true, "a reload is an event");
await page.waitForTimeout(3000);
const equal = Object.fromEntries((await rows(page)).map((row) => [row[1], row.slice(3, 5).map(Number.parseFloat)]));
for (const rule of ["light", "heavy"]) {
  const [rate, entitled] = equal[rule] ?? [];
  check(Math.abs(rate / entitled - 1) < 0.05 && Math.abs(entitled / 5 - 1) < 0.01, `3 s after the reload ${rule} has ${rate} of ${entitled} Mbit/s`);
}
await page.screenshot({ path: `${shots}/desktop.png`, fullPage: true });
for (const [name, width, height, scheme] of [["tablet", 800, 1000, "light"], ["phone", 380, 800, "dark"]]) {
  const other = await open(width, height, scheme);
  const wide = await other.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= width, `${name}: ${wide} of ${width} pixels are used`);
  const cut = await other.$$eval(".scroll", (all) => all.map((node) => node.scrollWidth - node.clientWidth));
  check(cut.every((pixels) => pixels <= 0), `${name}: no table is cut (${cut})`);
  await other.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}
check(errors.length === 0, `the console is silent ${errors}`);
await browser.close();
