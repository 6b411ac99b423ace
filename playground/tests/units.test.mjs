// Parts without a browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Engine } from "../src/client.js";
import { decode, encode } from "../src/fragment.js";
import { explained } from "../src/policy.js";
import { expectation } from "../src/predict.js";
import { format, parse, steps } from "../src/quantity.js";
import { scan } from "../src/scan.js";
import { byPoint } from "../src/shares.js";
import { absentTcp, itemName, items, positions } from "../src/text.js";

test("a fragment gives its parts back", async () => {
  const state = { text: 'title = "ü"\n'.repeat(100), seeds: "5", a: "fifo", answer: '{"queue=fifo":{"udp":50}}' };
  assert.deepEqual(await decode(await encode(state)), state);
});

test("a fragment that unpacks to more is refused", async () => {
  const fragment = await encode({ text: "x".repeat(300_000) });
  await assert.rejects(decode(fragment), /longer than 200 kB/);
});

test("the script and the page write the same fragment", async () => {
  const script = fileURLToPath(new URL("../fragment.mjs", import.meta.url));
  const file = fileURLToPath(new URL("../package.json", import.meta.url));
  const printed = execFileSync(process.execPath, [script, file, "seeds=3"], { encoding: "utf8" }).trim();
  assert.equal((await decode(printed)).seeds, "3");
  assert.match((await decode(printed)).text, /apportion-playground/);
});

test("quantities are read and written", () => {
  assert.deepEqual(parse("rate", '"2.5Mbit"'), { family: "rate", value: 2.5e6 });
  assert.deepEqual(parse("size", '"100p"'), { family: "packets", value: 100 });
  assert.equal(parse("time", '"2ms * i"'), undefined);
  assert.equal(format("rate", 12e6), "12Mbit");
  assert.equal(format("time", 0.0005), "500us");
  assert.equal(format("size", 64_000), "64kB");
});

test("steps ascend and hold the value itself", () => {
  for (const [family, value] of [
    ["rate", 13.7e6],
    ["time", 0.01],
    ["time", 0],
    ["packets", 1],
    ["count", 11],
    ["size", 96_000],
  ]) {
    const found = steps(family, value);
    assert.ok(found.includes(value), `${family} ${value}`);
    assert.ok(found.length > 10 && found.every((each, index) => index === 0 || each > found[index - 1]), `${family} ${found}`);
  }
});

test("a worker that cannot start fails its request, and is not started again before the next", async (context) => {
  let started = 0;
  globalThis.Worker = class {
    constructor() {
      started += 1;
      setTimeout(() => this.onerror({ message: "no worker" }));
    }
    postMessage() {}
    terminate() {}
  };
  context.after(() => delete globalThis.Worker);
  const engine = new Engine();
  await assert.rejects(engine.request({}), /no worker/);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(started, 1);
  await assert.rejects(engine.request({}), /no worker/);
  assert.equal(started, 2);
});

test("a run without a policy has a worker that loaded none", async (context) => {
  let started = 0;
  globalThis.Worker = class {
    constructor() {
      started += 1;
    }
    postMessage({ op }) {
      if (op) setTimeout(() => this.onmessage({ data: { answer: started } }));
    }
    terminate() {}
  };
  context.after(() => delete globalThis.Worker);
  const engine = new Engine();
  const policies = [undefined, "a", "b", undefined, undefined, "a"];
  const workers = [];
  for (const javascript of policies) workers.push(await engine.request({ op: "run", javascript }));
  assert.deepEqual(workers, [1, 1, 1, 2, 2, 2]);
});

test("byte offsets become positions", () => {
  const at = positions("é = 1");
  assert.deepEqual([at(0), at(2), at(6)], [0, 1, 5]);
});

test("items of a list are told apart", () => {
  const list = '[\n  { kind = "red", a = [1, 2] }, # a, comment\n  "fifo",\n]';
  assert.deepEqual(items(list), ['{ kind = "red", a = [1, 2] }', '"fifo"']);
  assert.deepEqual(items(list).map(itemName), ["red", "fifo"]);
  assert.deepEqual(items('"fifo"'), ['"fifo"']);
});

test("flows whose TCP is absent are found", () => {
  const names = (text) => absentTcp(text).map(({ path }) => path);
  assert.deepEqual(names('[flow.a]\ncount = 2\n[flow.b]\nsource = "greedy" # tcp\n'), ["flow.a.tcp", "flow.b.tcp"]);
  for (const given of [
    'source = { kind = "cbr" }',
    '[flow.a.source]\nkind = "cbr"',
    'source.kind = "cbr"',
    'tcp = "rfc"',
    "[flow.a.quic]",
  ]) {
    assert.deepEqual(names(`[flow.a]\ncount = 2\n${given}\n`), [], given);
  }
  assert.deepEqual(names('[flow.tcp]\ncount = 2\n[flow.source]\ntcp = "rfc"\n'), ["flow.tcp.tcp"]);
});

test("places in a text are found", () => {
  const place = (marked) => {
    const { path, place, key } = scan(marked.replace("|", ""), marked.indexOf("|"));
    return [path.join("."), place, key];
  };
  assert.deepEqual(place("[a.b]\nc|"), ["a.b", "key", undefined]);
  assert.deepEqual(place('[a]\nq = [ { kind = "re|" } ]'), ["a.q.[]", "value", "kind"]);
  assert.deepEqual(place('[a]\nq = [ "x", # c\n "|" ]'), ["a", "value", "q"]);
  assert.deepEqual(place("[[c]]\na|"), ["c.[]", "key", undefined]);
  assert.deepEqual(place("[a.b|]"), ["a", "header", undefined]);
  assert.deepEqual(place("a = 1 # x|"), ["", "none", undefined]);
});

test("flows of a table are one row", () => {
  const share = (flow, throughput_mbps) => ({ point: "", flow, throughput_mbps, entitlement_mbps: 1, delay_p95_ms: null, drops: 1 });
  const [{ rows, total }] = byPoint([share("b.1", 1), share("b.2", 3), share("u", 4)]);
  assert.equal(total, 8);
  assert.deepEqual(
    rows.map((each) => [each.name, each.mean, each.most, each.percent, each.drops]),
    [
      ["b", 2, 3, 50, 2],
      ["u", 4, 4, 50, 1],
    ],
  );
});

test("shares of 300,000 flows are summed at once", () => {
  const shares = Array.from({ length: 300_000 }, (_, at) => ({
    point: "",
    flow: `b.${at}`,
    throughput_mbps: 1,
    entitlement_mbps: at ? 1 : null,
    delay_p95_ms: at,
    drops: 1,
  }));
  const began = performance.now();
  const [{ rows }] = byPoint(shares);
  assert.ok(performance.now() - began < 5000);
  const numbers = { flows: 300_000, mean: 1, least: 1, most: 1, delay: 299_999, drops: 300_000, percent: 100 };
  assert.deepEqual(rows, [{ name: "b", ...numbers, entitlement: undefined }]);
});

test("an answer holds percentages, and what else it holds is ignored", () => {
  const plain = (answer) => JSON.parse(JSON.stringify(expectation(answer)));
  assert.deepEqual(plain('{"":{"a":0,"b":100,"c":2.5}}'), { values: { "": { a: 0, b: 100, c: 2.5 } }, ignored: false });
  const hostile = '{"p":{"a":1e999,"b":-50000,"c":"x","d":null,"e":7},"q":[1],"r":null}';
  assert.deepEqual(plain(hostile), { values: { p: { e: 7 }, q: {}, r: {} }, ignored: true });
  for (const answer of ["", "[", "3", "null"]) assert.deepEqual(plain(answer), { values: {}, ignored: true });
  assert.equal(expectation('{"":{"a":1}}').values[""].constructor, undefined);
});

test("anything that is thrown has a text", () => {
  const getter = {
    get message() {
      throw 1;
    },
  };
  for (const thrown of [Object.create(null), getter]) assert.match(explained(thrown), /has no text/);
  for (const [thrown, text] of [
    [null, "null"],
    [Symbol("a"), "Symbol(a)"],
    [new Error("b"), "b"],
  ])
    assert.equal(explained(thrown), text);
});
