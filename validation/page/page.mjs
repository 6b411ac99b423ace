// What the page of a gateway shows in Chromium: see run.
import { createRequire } from "node:module";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
const { chromium } = createRequire(import.meta.url)("playwright-core");

const shots = process.env.SHOTS;
const fail = (what) => { console.error(`failed: ${what}`); process.exitCode = 1; };
const check = (is, what) => { if (is) console.log(`ok: ${what}`); else fail(what); };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const errors = [];
// What Chromium says of an answer that refuses something, where a check expects one.
const refused = [];
const open = async (width, height, colorScheme) => {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  page.on("console", (message) => { if (!["error", "warning"].includes(message.type())) return;
    const text = message.text();
    (/Failed to load resource.* 40[01] /.test(text) && message.location().url.endsWith("/change") ? refused : errors).push(text);
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith("http://127.0.0.1:9617/") && !request.url().startsWith("data:")) errors.push(request.url()); });
  await page.goto("http://127.0.0.1:9617/");
  await page.waitForSelector("#up .flows tbody tr");
  await page.waitForTimeout(4000);
  return page;
};
const rows = (page) => page.$$eval("#up .flows:not(.customers) tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));

const page = await open(1280, 900, "light");
// Two seconds may have the same numbers.
const before = await rows(page);
let after = before;
for (let second = 0; second < 10 && (second < 2 || JSON.stringify(before) === JSON.stringify(after)); second++) {
  await page.waitForTimeout(1000);
  after = await rows(page);
}
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
for (let at = 0; at < 20 && focused !== "flow"; at++) {
  await page.keyboard.press("Tab");
  focused = await page.evaluate(() => document.activeElement.matches("#up .flows button") ? "flow" : "");
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

// Customers and their history.
const customers = await page.$$eval("#up .customers tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
check(customers.length === 2 && customers.map((row) => row[0]).sort().join() === "jones & co,smith", `customers are shown ${customers.map((row) => row[0])}`);
for (const row of customers) {
  const [rate, , , entitled] = row.slice(2, 6).map(Number.parseFloat);
  check(Math.abs(rate / entitled - 1) < 0.05 && Math.abs(entitled / 5 - 1) < 0.01, `customer ${row[0]} has ${rate} of ${entitled} Mbit/s`);
}
await page.click("#up .customers tbody tr button");
await page.waitForSelector("#flow[open] canvas");
check((await page.textContent("#flow-rule")).includes("customer"), "a customer's history opens");
await page.keyboard.press("Escape");

// A weight is set in the browser, by the keyboard: shown first, then applied.
const token = readFileSync(`${process.env.WORK}/token`, "utf8").trim();
const file = readFileSync(edit, "utf8");
const tabTo = async (id) => {
  for (let at = 0; at < 60; at++) {
    if (await page.evaluate((id) => document.activeElement?.id === id || document.activeElement?.textContent === id, id)) return true;
    await page.keyboard.press("Tab");
  }
  return false;
};
const ask = async (key, value, secret) => {
  await page.selectOption("#change-key", key);
  await page.fill("#change-value", value);
  if (secret !== undefined) await page.fill("#change-token", secret);
  check(await tabTo("Show what changes"), "the keyboard reaches the button");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#change-error").textContent + document.querySelector("#change-shown").textContent !== "");
  return [await page.textContent("#change-error"), await page.textContent("#change-shown")];
};
await page.focus("#edit");
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.querySelector("#change-key").options.length > 4);
const [denied] = await ask("rule.heavy.weight", "3", "not-the-token-of-this");
check(denied.includes("this is not the token") && !(await page.isVisible("#change-apply")), `a wrong token is refused: ${denied.trim()}`);
const [, shown] = await ask("rule.heavy.weight", "3", token);
check(shown === "rule.heavy.weight: 1.0 -> 3.0" && await page.isVisible("#change-apply"), `what would change is shown: ${shown}`);
check((await rows(page)).every((row) => row[2] === "1"), "and nothing has changed");
check(await tabTo("change-apply"), "the keyboard reaches Apply");
const began = Date.now();
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.querySelector("#change-shown").textContent.startsWith("applied: "));
let near = false;
while (!near && Date.now() - began < 10000) {
  await page.waitForTimeout(100);
  const all = Object.fromEntries((await rows(page)).map((row) => [row[1], row.slice(3, 5).map(Number.parseFloat)]));
  near = [["light", 2.5], ["heavy", 7.5]].every(([rule, due]) => {
    const [rate, entitled] = all[rule] ?? [];
    return Math.abs(rate / entitled - 1) < 0.05 && Math.abs(entitled / due - 1) < 0.01;
  });
}
const took = (Date.now() - began) / 1e3;
check(near && took < 3, `shares are within 5 % of the entitlement ${took} s after the change`);
check((await page.textContent("#event-list")).includes("change: rule.heavy.weight: 1.0 → 3.0"), "the change is an event");
check(readFileSync(edit, "utf8") === file, "the file is as it was");
check(!(await page.isVisible("#change-token")), "the token is asked for once");
const kept = await page.evaluate(() => JSON.stringify([localStorage.length, sessionStorage.length, document.cookie, document.documentElement.outerHTML]));
check(kept.startsWith('[0,0,"",') && !kept.includes(token), "and is kept nowhere but in memory");
const [unknown] = await ask("up.queue", "nosuch");
check(unknown.startsWith("up.queue") && unknown.includes("nosuch") && !(await page.isVisible("#change-apply")), `a queue that does not exist is refused: ${unknown.trim().slice(0, 80)}`);
const [, queue] = await ask("up.queue", '{ kind = "stfq", limit = "500p" }');
check(queue.startsWith("up.queue: ") && queue.includes("stfq"), "a queue is a table");
await page.keyboard.press("Escape");
check(!(await page.isVisible("#change")), "the dialog closes by Escape");
check(refused.length === 2, `two requests were refused ${refused}`);
execFileSync(process.env.APPORTION, ["gateway", "reload", edit]);
await page.waitForFunction(() => document.querySelector("#event-list").textContent.includes("rule.heavy.weight: 3.0 → 1.0"), null, { timeout: 4000 });
check(true, "a reload takes the change back");

// The thread that moves packets, which is the first of the process, is stopped alone: the others go on to serve the page.
const seize = `
import ctypes, os, sys, time
ptrace, thread = ctypes.CDLL(None, use_errno=True).ptrace, int(os.environ["GATEWAY"])
ptrace.argtypes = [ctypes.c_long] * 4
for request in 0x4206, 0x4207:  # PTRACE_SEIZE, PTRACE_INTERRUPT
    if ptrace(request, thread, 0, 0): sys.exit(os.strerror(ctypes.get_errno()))
print("stopped", flush=True)
time.sleep(60)`;
const health = () => page.$eval("#health", (node) => [node.className, node.textContent]);
const isHealth = (name) => page.waitForFunction((name) => document.querySelector("#health").className === name, name, { timeout: 8000 });
check((await health())[0] === "good", `frames pass: ${await health()}`);
const tracer = spawn("python3", ["-c", seize], { stdio: ["ignore", "pipe", "inherit"] });
await new Promise((done) => { tracer.stdout.once("data", done); tracer.once("exit", done); });
await isHealth("bad").catch(() => {});
const [colour, said] = await health();
check(colour === "bad" && said.startsWith("the thread that moves packets has not reported for "), `a thread that stands still turns the page red: ${said}`);
const answer = await fetch("http://127.0.0.1:9617/healthz");
check(answer.status === 503 && (await answer.text()).includes("has not reported for"), "and /healthz answers 503");
tracer.kill();
await isHealth("good").catch(() => {});
check((await health())[0] === "good", `frames pass again: ${await health()}`);

for (const width of [390, 820, 1440]) {
  for (const scheme of ["light", "dark"]) {
    const name = `${width}-${scheme}`;
    const other = await open(width, width === 390 ? 844 : 1000, scheme);
    const wide = await other.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= width, `${name}: ${wide} of ${width} pixels are used`);
    const cut = await other.$$eval(".scroll:not([hidden])", (all) => all.map((node) => node.scrollWidth - node.clientWidth));
    check(cut.every((pixels) => pixels <= 0), `${name}: no table is cut (${cut})`);
    await other.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
    await other.click("#edit");
    await other.waitForFunction(() => document.querySelector("#change-value").value !== "");
    await other.selectOption("#change-key", "up.rate");
    await other.fill("#change-value", "9Mbit");
    await other.fill("#change-token", token);
    await other.click("#change-form button");
    await other.waitForSelector("#change-apply:not([hidden])");
    const over = await other.$eval("#change", (node) => node.scrollWidth - node.clientWidth);
    check(over <= 0, `${name}: the dialog fits`);
    await other.screenshot({ path: `${shots}/${name}-change.png` });
    await other.close();
  }
}
check(errors.length === 0, `the console is silent ${errors}`);
await browser.close();
