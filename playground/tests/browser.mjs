// What tests of the page share: the browser, and the page in it as a file without a network.
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));

/** The page under test: `PLAYGROUND`, or what `build.mjs` writes. */
export const ADDRESS = pathToFileURL(process.env.PLAYGROUND ?? join(here, "..", "index.html")).href;

function browserPath() {
  const folders = process.env.PATH.split(delimiter);
  const found = ["chromium", "chromium-browser", "google-chrome"]
    .flatMap((name) => folders.map((each) => join(each, name)))
    .find(existsSync);
  return process.env.CHROMIUM ?? found;
}

let browser;

/** Starts the browser, once for a file of tests. */
export async function launch() {
  browser = await chromium.launch({ executablePath: browserPath(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}

export const close = () => browser.close();

/**
 * Runs `test(page)` on the opened page, or on the file `address`, after its first result unless `wait` is false.
 *
 * Fails if the page throws or asks for anything but itself.
 */
export async function withPage(options, test) {
  const { address, fragment = "", width = 1400, height = 900, dark = false, wait = true } = options;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", acceptDownloads: true });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => /^(file|blob|data|about):/.test(request.url()) || errors.push(`request of ${request.url()}`));
  try {
    await page.goto(address ? pathToFileURL(address).href : ADDRESS + fragment);
    if (wait) await settled(page);
    await test(page);
    if (errors.length) throw new Error(errors.join("\n"));
  } catch (error) {
    const seen = await page.evaluate(() =>
      ["status", "message", "question"].map((id) => document.getElementById(id)?.textContent).join(" | "),
    );
    error.message += `\nThe page says: ${seen}\n${errors.join("\n")}`;
    throw error;
  } finally {
    await context.close();
  }
}

/** Waits until a result of the present text is shown. */
export async function settled(page) {
  await page.waitForFunction(
    () =>
      performance.getEntriesByName("result").length > 0 &&
      !document.querySelector("#result.stale") &&
      document.querySelector("#cancel").disabled,
    undefined,
    { timeout: 60_000 },
  );
}

/** Makes `action`, and waits for the result that follows it. */
export async function result(page, action) {
  await page.evaluate(() => performance.clearMarks("result"));
  await action();
  await settled(page);
}

/** Throughputs in the strip as `{ "point flow": Mb/s }`. */
export const shares = (page) =>
  page.$$eval("#strip .point", (points) =>
    Object.fromEntries(
      points.flatMap((point) =>
        [...point.querySelectorAll("tbody tr")].map((row) => [
          `${point.querySelector("caption").textContent} ${row.cells[0].textContent}`,
          Number(row.cells[2].textContent),
        ]),
      ),
    ),
  );

/** Replaces the scenario by typing over it. */
export async function type(page, text) {
  await page.locator("#toml .cm-content").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

/** A picture in the folder `SCREENSHOTS`, if it is set. */
export async function picture(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
