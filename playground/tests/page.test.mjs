// The page in a browser, as its readers use it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { decode, encode } from "../src/fragment.js";
import { close, launch, picture, result, shares, settled, type, withPage } from "./browser.mjs";

const SMALL = `title = "Two flows"
seed = 1
stop = "6s"
measure_from = "1s"
[topology]
kind = "dumbbell"
pairs = 2
[topology.bottleneck]
rate = "4Mbit"
delay = "10ms"
queue = "fifo"
[flow.bulk]
from = "l1"
to = "r1"
[flow.udp]
from = "l2"
to = "r2"
source = { kind = "cbr", rate = "3Mbit" }
`;
const small = (settings = {}) => encode({ text: SMALL, ...settings });

const OWN = SMALL.replace('"fifo"', '"own"');
const DOUBT = "This link has a policy in JavaScript";
const accept = (comment = "") => `function admit() { ${comment}\n return "accept"; }`;
const results = (page) => page.evaluate(() => performance.getEntriesByName("result").length);
const agree = (page) => page.getByRole("button", { name: "Run it" }).click();
/** Follows a link in the open page. */
const follow = (page, fragment) => page.evaluate((hash) => (location.hash = hash), fragment);
const writePolicy = async (page, text) => {
  await page.locator("#code .cm-content").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
};

before(launch);
after(close);

test("the page opens with a result", () =>
  withPage({}, async (page) => {
    assert.match(await page.locator("#status").textContent(), /Simulated in/);
    assert.ok(Object.keys(await shares(page)).length >= 8);
    await page.frameLocator("#report iframe").locator("h1").waitFor();
  }));

test("a slider changes the scenario and the shares", async () =>
  withPage({ fragment: await small() }, async (page) => {
    const before = await shares(page);
    const slider = page.getByRole("slider", { name: "bottleneck rate" });
    await result(page, async () => {
      await slider.focus();
      for (let step = 0; step < 4; step += 1) await page.keyboard.press("ArrowRight");
    });
    const after = await shares(page);
    assert.match(await page.locator("#toml").textContent(), /rate = "10Mbit"/);
    assert.ok(after["Result bulk"] > before["Result bulk"] + 3, JSON.stringify([before, after]));
    await page.locator("#toml .cm-content").focus();
    await result(page, () => page.keyboard.press("ControlOrMeta+z"));
    assert.match(await page.locator("#toml").textContent(), /rate = "4Mbit"/);
  }));

test("two disciplines are side by side", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await result(page, () => page.getByLabel("bottleneck queue B").selectOption("fq_codel"));
    const both = await shares(page);
    assert.equal(Object.keys(both).length, 4);
    assert.ok(both["queue=fq_codel bulk"] > both["queue=fifo bulk"], JSON.stringify(both));
    await result(page, () => page.getByLabel("bottleneck queue B").selectOption(""));
    assert.match(await page.locator("#toml").textContent(), /queue = "fifo"/);
  }));

test("a TCP can be chosen where the text names none", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await result(page, () => page.getByLabel("bulk TCP A").selectOption("bbr"));
    assert.match(await page.locator("#toml").textContent(), /\[flow.bulk\]tcp = "bbr"/);
    await result(page, () => page.getByLabel("bulk TCP B").selectOption("cubic"));
    assert.equal(Object.keys(await shares(page)).length, 4);
  }));

test("a link restores the scenario, seeds and disciplines", async () => {
  let address;
  await withPage({ fragment: await small({ a: "drr", b: "red" }) }, async (page) => {
    await page.waitForFunction(() => document.querySelectorAll("#strip .point").length === 2);
    await result(page, async () => {
      await page.locator("#seeds").fill("2");
      await page.locator("#seeds").blur();
    });
    await page.waitForFunction(() => location.hash.includes("seeds=2"));
    address = new URL(await page.evaluate(() => location.href)).hash;
  });
  await withPage({ fragment: address }, async (page) => {
    assert.equal(await page.locator("#seeds").inputValue(), "2");
    assert.match(await page.locator("#toml").textContent(), /queue = \["drr", "red"\]/);
    assert.equal(Object.keys(await shares(page)).length, 4);
  });
});

test("the address keeps the newest scenario, and may refuse to change", async () =>
  withPage({ fragment: await small() }, async (page) => {
    const texts = [5, 6, 7, 8].map((rate) => SMALL.replace("4Mbit", `${rate}Mbit`));
    for (const text of texts) {
      await type(page, text);
      await page.waitForTimeout(200);
    }
    await page.waitForTimeout(1000);
    assert.equal((await decode(await page.evaluate(() => location.hash))).text, texts.at(-1));
    await page.evaluate(() => {
      history.replaceState = () => {
        window.refused = true;
        throw new DOMException("too many", "SecurityError");
      };
    });
    await result(page, () => type(page, SMALL));
    await page.waitForFunction(() => window.refused);
  }));

test("an error is at its line, and goes away", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await type(page, SMALL.replace("pairs = 2", "pears = 2"));
    await page.getByRole("button", { name: "Line 7" }).waitFor();
    await page.locator("#toml .cm-lintRange-error").first().waitFor();
    await picture(page, "error");
    await result(page, () => type(page, SMALL.replace("4Mbit", "5Mbit")));
    assert.equal(await page.locator("#message").isHidden(), true);
    assert.equal(await page.locator("#toml .cm-lintRange-error").count(), 0);
  }));

test("a long run asks first and can be cancelled", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await type(page, SMALL.replace('"6s"', '"20000s"').replace("4Mbit", "40Mbit"));
    await page.getByRole("button", { name: "Run it" }).waitFor();
    await picture(page, "long");
    await page.getByRole("button", { name: "Run it" }).click();
    await page.waitForFunction(() => document.querySelector("#progress").value > 0);
    await page.getByRole("button", { name: "Cancel" }).click();
    assert.equal(await page.locator("#status").textContent(), "Cancelled.");
    await type(page, SMALL.replace('"6s"', '"20001s"').replace("4Mbit", "40Mbit"));
    await agree(page);
    await page.waitForFunction(() => document.querySelector("#progress").value > 0);
    await type(page, SMALL.replace("pairs", "pears"));
    await page.getByRole("button", { name: "Line 7" }).waitFor();
    assert.equal(await page.locator("#status").textContent(), "The scenario has an error.");
    await result(page, () => type(page, SMALL.replace("4Mbit", "5Mbit")));
  }));

test("a file is refused", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await type(page, SMALL.replace('"4Mbit"', '{ trace = "link.txt" }'));
    await page.getByText("a page reads no files").waitFor();
  }));

test("text over 200 kB is refused", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await type(page, `${SMALL}# ${"x".repeat(200_000)}\n`);
    await page.getByText("longer than 200 kB").waitFor();
  }));

test("a damaged link is said", () =>
  withPage({ fragment: "#s=AAAA" }, async (page) => {
    await page.getByText("The link is damaged").waitFor();
  }));

for (const fragment of ["#seeds=5", "#js=AAAA"]) {
  test(`a link with ${fragment} alone opens the first example`, () =>
    withPage({ fragment }, async (page) => {
      assert.ok(Object.keys(await shares(page)).length >= 8);
      assert.equal(await page.locator("#message").isHidden(), true);
    }));
}

test("the result is hidden until shares are predicted", async () => {
  const answer = JSON.stringify({ "": { bulk: 25, udp: 75 } });
  await withPage({ fragment: await small({ predict: 1, answer }), wait: false }, async (page) => {
    const reveal = page.getByRole("button", { name: "Reveal the result" });
    await reveal.waitFor();
    assert.equal((await page.locator("#strip").isHidden()) && (await page.locator("#report").isHidden()), true);
    assert.equal(await reveal.isDisabled(), true);
    await settled(page);
    await picture(page, "predict");
    await page.getByRole("slider", { name: "bulk, predicted" }).fill("40");
    await page.getByRole("slider", { name: "udp, predicted" }).focus();
    await page.keyboard.press("End");
    await reveal.click();
    await page.getByText("Predicted: mean error").waitFor();
    await page.getByText("Expected: mean error").waitFor();
    await picture(page, "revealed");
    assert.match(await page.locator("#strip tbody tr").first().textContent(), /40 %25 %/);
  });
});

test("a link's answer without sense is said and not shown", async () => {
  const answer = '{"":{"bulk":1e999,"udp":-50000,"constructor":1}}';
  await withPage({ fragment: await small({ predict: 1, answer }), wait: false }, async (page) => {
    await page.getByText("The link's answer holds more than").waitFor();
    for (const slider of await page.locator("#prediction input").all()) await slider.press("Enter");
    await page.getByRole("button", { name: "Reveal the result" }).click();
    await page.getByText("Predicted: mean error").waitFor();
    assert.doesNotMatch(await page.locator("#strip").textContent(), /NaN|Infinity|50000|Expected:/);
    await result(page, () => type(page, SMALL.replace("4Mbit", "5Mbit")));
    assert.equal(await page.locator("#message").isHidden(), true);
  });
});

test("the field of seeds shows what runs", async () =>
  withPage({ fragment: await small({ seeds: "100000", a: "drr", b: "red" }), wait: false }, async (page) => {
    const shown = () => page.locator("#seeds").inputValue();
    await page.getByText("The link asks for 100000 seeds").waitFor();
    await page.waitForFunction(() => document.querySelectorAll("#strip .point").length === 2);
    await settled(page);
    assert.equal(await page.getByText("The link asks for 100000 seeds").isVisible(), true);
    assert.equal(await shown(), "100");
    for (const [wish, runs] of [
      ["-5", "1"],
      ["2.5", "3"],
      ["", "1"],
    ]) {
      await result(page, async () => {
        await page.locator("#seeds").fill(wish);
        await page.locator("#seeds").press("Enter");
      });
      assert.equal(await shown(), runs);
    }
    assert.equal(await page.locator("#message").isHidden(), true);
  }));

test("the strip shows the first groups of many", async () => {
  const flows = Array.from({ length: 45 }, (_, at) => `[flow.f${at}]\nfrom = "l1"\nto = "r1"\n`).join("");
  await withPage({ fragment: await encode({ text: SMALL.split("[flow.bulk]")[0] + flows }) }, async (page) => {
    assert.equal(await page.locator("#strip tbody tr").count(), 40);
    await page.getByText("5 more groups of flows are in the tables.").waitFor();
  });
});

test("the keyboard alone reaches everything", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await page.locator("#toml .cm-content").focus();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    const inside = () => page.evaluate(() => document.querySelector("#toml").contains(document.activeElement));
    for (let step = 0; step < 3 && (await inside()); step += 1) await page.keyboard.press("Tab");
    assert.equal(await inside(), false);
    await page.locator("#pick").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type("bufferbloat");
    await result(page, () => page.keyboard.press("Enter"));
    assert.match(await page.title(), /Bufferbloat/);
  }));

test("keys and values are completed", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await page.locator("#toml .cm-line", { hasText: "queue" }).click();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.keyboard.type("lo");
    await page.locator(".cm-tooltip-autocomplete li", { hasText: "loss" }).waitFor();
    await page.locator(".doc").first().waitFor();
    await picture(page, "completion");
  }));

test("a policy in JavaScript decides, and its errors are said", async () =>
  withPage({ fragment: await small() }, async (page) => {
    const code = (text) => writePolicy(page, text);
    await page.getByRole("tab", { name: "Own policy" }).click();
    await result(page, () => page.getByRole("button", { name: "Compare with it" }).click());
    await picture(page, "policy");
    await result(page, () => code('function admit({ flow }) { return flow === 1 ? "drop" : "accept"; }'));
    const both = await shares(page);
    assert.equal(both["queue=own udp"], 0);
    assert.ok(both["queue=fifo udp"] > 1);
    await code('function admit() { return "perhaps"; }');
    await page.getByText('`admit` returned "perhaps"').waitFor();
    await code("function admit( {");
    await page.getByText("The policy is not right").waitFor();
    await code("function admit() { throw null; }");
    await page.locator("#message", { hasText: "null" }).waitFor();
    for (const thrown of ["Object.create(null)", "new Proxy({}, { getPrototypeOf() { throw 1; } })"]) {
      await code(`function admit() { throw ${thrown}; }`);
      await page.locator("#message", { hasText: thrown.startsWith("new") ? "[object Object]" : "has no text" }).waitFor();
      assert.equal(await page.locator("#status").textContent(), "The run failed.");
    }
    await code("function admit() { for (;;) ; }");
    await page.waitForFunction(() => !document.querySelector("#cancel").disabled);
    await result(page, () => code('function admit() { return "accept"; }'));
  }));

test("no script runs in a report that a policy has written", async () => {
  const html = '<p id="forged"></p><script>parent.forged = true</scr' + 'ipt><img src="data:," onerror="parent.forged = true">';
  const javascript = `const { parse } = JSON;
    JSON.parse = (text) => ({ ...parse(text), html: ${JSON.stringify(html)} });
    self.postMessage?.({ answer: { ok: true, html: "posted", shares: [], tables: {} } });
    ${accept()}`;
  await withPage({ fragment: await encode({ text: OWN, javascript }), wait: false }, async (page) => {
    await page.getByText(DOUBT).waitFor();
    await result(page, () => agree(page));
    const forged = () =>
      page.evaluate(() => [
        window.forged,
        document.querySelector("#report iframe:not(.behind)")?.contentDocument.querySelector("#forged") !== null,
      ]);
    await page.waitForFunction(() => document.querySelector("#report iframe:not(.behind)"));
    assert.deepEqual(await forged(), [undefined, true]);
    await result(page, () => type(page, SMALL));
    await page.waitForFunction(() => document.querySelectorAll("#report iframe").length === 1);
    assert.deepEqual(await forged(), [undefined, false]);
    await page.frameLocator("#report iframe").getByRole("button", { name: "Save as SVG" }).first().waitFor();
  });
});

test("a policy with names at its top runs again after a change", async () =>
  withPage({ fragment: await encode({ text: OWN }), wait: false }, async (page) => {
    await page.getByRole("tab", { name: "Own policy" }).click();
    for (const verdict of ["accept", "drop", "accept"]) {
      await result(page, () => writePolicy(page, `const verdict = "${verdict}";\nclass A {}\nlet admit = () => verdict;`));
      assert.equal((await shares(page))["Result udp"] > 1, verdict === "accept");
    }
    await writePolicy(page, "const nothing = 1;");
    await page.getByText("admit is not defined").waitFor();
  }));

test("a policy of a link runs only when the reader agrees", async () => {
  await withPage({ fragment: await encode({ text: OWN, javascript: accept() }), wait: false }, async (page) => {
    await page.getByText(DOUBT).waitFor();
    assert.equal(await results(page), 0);
    await result(page, () => agree(page));
  });
});

for (const [name, end] of [
  ["CR", "\r"],
  ["CRLF", "\r\n"],
]) {
  test(`a policy of a link with ${name} asks as well`, async () => {
    const fragment = await encode({ text: OWN, javascript: accept().replaceAll("\n", end) });
    await withPage({ fragment, wait: false }, async (page) => {
      await page.getByText(DOUBT).waitFor();
      assert.equal(await results(page), 0);
    });
  });
}

test("a policy of a link asks after another scenario was opened and it was edited", async () => {
  const fragment = await encode({ text: SMALL, javascript: accept() });
  await withPage({ fragment }, async (page) => {
    await page.evaluate(() => performance.clearMarks("result"));
    await follow(page, await encode({ text: OWN }));
    await page.getByText(DOUBT).waitFor();
    await page.getByRole("tab", { name: "Own policy" }).click();
    await page.locator("#code .cm-content").focus();
    await page.keyboard.press("ControlOrMeta+End");
    await page.keyboard.type(" ");
    await page.waitForTimeout(500);
    assert.equal(await page.getByText(DOUBT).isVisible(), true);
    assert.equal(await results(page), 0);
    await result(page, () => agree(page));
    await page.evaluate(() => performance.clearMarks("result"));
    await follow(page, await encode({ text: OWN, javascript: accept("// another") }));
    await page.getByText(DOUBT).waitFor();
    assert.equal(await results(page), 0);
  });
});

test("a long run and a policy of a link are two questions", async () => {
  const long = (text) => text.replace('"6s"', '"20000s"').replace("4Mbit", "40Mbit");
  const fragment = await encode({ text: long(SMALL), javascript: accept() });
  await withPage({ fragment, wait: false }, async (page) => {
    await page.getByText("This run takes about").waitFor();
    await agree(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await type(page, long(OWN));
    await page.getByText(DOUBT).waitFor();
    await agree(page);
    await page.getByText("This run takes about").waitFor();
    await type(page, OWN.replace("pairs", "pears"));
    await page.getByRole("button", { name: "Line 7" }).waitFor();
    assert.equal(await page.locator("#status").textContent(), "The scenario has an error.");
  });
});

test("files can be downloaded", async () =>
  withPage({ fragment: await small() }, async (page) => {
    await page.frameLocator("#report iframe").locator("svg").first().waitFor();
    const get = async (name) => {
      await page.locator("#save").click();
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).first().click()]);
      return readFile(await download.path(), "utf8");
    };
    assert.equal(await get("Scenario (TOML)"), SMALL);
    assert.match(await get("Table flows"), /^point,seed,flow/);
    assert.match(await get("Report"), /^<!DOCTYPE html>/);
    await type(page, SMALL.replace("pairs", "pears"));
    await page.getByRole("button", { name: "Line 7" }).waitFor();
    assert.equal(await get("Scenario of the result"), SMALL);
    assert.match(await get("Scenario in the editor"), /pears/);
    const figure = page.frameLocator("#report iframe").getByRole("button", { name: "Save as SVG" }).first();
    const [download] = await Promise.all([page.waitForEvent("download"), figure.click()]);
    assert.match(await readFile(await download.path(), "utf8"), /^<svg/);
  }));

test("the report keeps its place and open sections", async () =>
  withPage({ fragment: await small() }, async (page) => {
    const frame = () => page.frames().find((each) => each !== page.mainFrame());
    const open = () => frame().evaluate(() => [...document.querySelectorAll("details")].map((each) => each.open));
    const at = await open();
    await frame().evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = !each.open)));
    await frame().evaluate(() => window.scrollTo(0, 300));
    await result(page, () => type(page, SMALL.replace("4Mbit", "5Mbit")));
    await page.waitForFunction(() => document.querySelectorAll("#report iframe").length === 1);
    assert.equal(await frame().evaluate(() => window.scrollY), 300);
    assert.deepEqual(
      await open(),
      at.map((each) => !each),
    );
  }));

for (const [width, height] of [
  [360, 740],
  [800, 900],
  [1600, 900],
]) {
  for (const dark of [false, true]) {
    test(`at ${width} pixels, ${dark ? "dark" : "light"}, nothing overflows`, () =>
      withPage({ width, height, dark }, async (page) => {
        const overflows = () => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
        assert.equal(await overflows(), false);
        await page.waitForFunction(() => document.querySelector("#report iframe:not(.behind)"));
        await picture(page, `${width}-${dark ? "dark" : "light"}-result`);
        if (width > 600) return;
        for (const part of ["Scenario", "Sliders"]) {
          await page.getByRole("tab", { name: part }).first().click();
          assert.equal(await page.locator(`#${part.toLowerCase()}`).isVisible(), true);
          assert.equal(await overflows(), false);
          await picture(page, `${width}-${dark ? "dark" : "light"}-${part.toLowerCase()}`);
        }
      }));
  }
}
