// The page: its parts, and what passes between them.
import { Engine } from "./client.js";
import { byId, h } from "./dom.js";
import { files } from "./download.js";
import { policyEditor, ScenarioEditor } from "./editor.js";
import { decode, encode } from "./fragment.js";
import { Knobs } from "./knobs.js";
import { picker } from "./picker.js";
import { EXAMPLE } from "./policy.js";
import { expectation, Prediction } from "./predict.js";
import { Report } from "./report.js";
import { Session } from "./session.js";
import { byPoint } from "./shares.js";
import { strip } from "./strip.js";
import { tabs } from "./tabs.js";
import { absentTcp, positions } from "./text.js";

/** The scenario of a page that is opened without one. */
const FIRST = "quickstart";
/** Pause before the address changes, milliseconds. */
const REMEMBER = 400;

let result; // the newest result, `{ text, own, html, shares, tables, ... }`; `own` if it was made with a policy
let asked; // the text for which a prediction was asked
let expected; // the values of the link
let remembering; // the timer of the next change of the address
let notes = []; // what of a link is ignored, until the reader changes something
let pair; // disciplines A and B of the link, until they are set

const say = (text) => (byId("status").textContent = text);
const predicting = () => byId("predict").checked;
const MOST_SEEDS = 100;

/** The number of seeds that run for a wish, by default that in the field, which shows it from then on. */
function seeds(wish = byId("seeds").valueAsNumber) {
  byId("seeds").value = Math.min(MOST_SEEDS, Math.max(1, Math.round(wish) || 1));
  return byId("seeds").valueAsNumber;
}

/** The compiled engine out of the page, where each character has a byte in its lower half. */
function compile() {
  const text = byId("engine").textContent;
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return WebAssembly.compile(bytes);
}

const editor = new ScenarioEditor(byId("toml"), (changes) => {
  knobs.move(changes);
  if (!pair) notes = []; // Disciplines of the link are no change by the reader.
  byId("result").classList.add("stale");
  session?.changed();
});
const policy = policyEditor(byId("code"), EXAMPLE, () => {
  byId("result").classList.add("stale");
  session?.changed();
});
const report = new Report(byId("report"));
const prediction = new Prediction(byId("prediction"), () => draw());
let knobs = new Knobs(byId("sliders"), {}, (changes) => editor.replace(changes));
let session;
let foreign = false; // whether the policy came with a link, until the reader agrees to run it

/** What the session tells, shown. */
const view = {
  text: () => editor.text,
  seeds,
  javascript: () => (/["']own["']/.test(editor.text) ? policy.state.doc.toString() : undefined),
  doubt: () =>
    foreign && view.javascript() !== undefined ? "This link has a policy in JavaScript, which runs without a network." : undefined,
  agreed: () => (foreign = false),

  checked(answer, text) {
    editor.mark([]);
    message(notes);
    const at = positions(text);
    const found = answer.knobs.map((each) => ({ ...each, from: at(each.from), to: at(each.to) }));
    knobs.show([...found, ...absentTcp(text)].sort((one, other) => one.from - other.from));
    if (pair) knobs.choose(pair.a, pair.b);
    pair = undefined;
    document.title = `${answer.title || "Scenario"} – Apportion playground`;
    if (predicting() && asked !== text) {
      asked = text;
      prediction.ask(answer.points, answer.flows);
      draw();
    }
    remember();
  },

  invalid(problems) {
    editor.mark(problems);
    message([...problems, ...notes]);
    question();
    busy(false);
    say("The scenario has an error.");
  },

  ask(text, go) {
    question(text, go);
    busy(false);
    say("Not run yet.");
  },

  running() {
    question();
    busy(true);
    say("Running…");
  },

  progress: (part) => (byId("progress").value = part),

  result(found, { text, took, own, last }) {
    result = { ...found, text, own };
    busy(false);
    if (text === editor.text) byId("result").classList.remove("stale");
    say(`Simulated in ${took.toFixed(took < 10 ? 1 : 0)} s.`);
    draw(last);
    performance.mark("result");
  },

  failed(text) {
    busy(false);
    message([{ message: text }]);
    say("The run failed.");
  },

  cancelled() {
    busy(false);
    say("Cancelled.");
  },
};

function busy(on) {
  byId("cancel").disabled = !on;
  byId("progress").hidden = !on;
  byId("progress").value = 0;
}

/** Problems below the editor, each with its line. */
function message(problems) {
  byId("message").hidden = problems.length === 0;
  const place = ({ line }) => h("button", { click: () => editor.go(line) }, `Line ${line}`);
  byId("message").replaceChildren(
    ...problems.map((each) => h("p", {}, each.line ? place(each) : "", each.path ? h("code", {}, each.path) : "", ` ${each.message}`)),
  );
}

/** A question above the result with a button to go on; nothing without one. */
function question(text, go) {
  byId("question").hidden = !text;
  byId("question").replaceChildren(...(text ? [h("span", {}, text), h("button", { class: "primary", click: go }, "Run it")] : []));
}

/** Shows the result, or the prediction that comes before it. */
function draw(withReport = true) {
  const before = predicting() && !prediction.revealed;
  const hidden = before || (predicting() && result?.text !== editor.text); // A prediction is compared with its own result alone.
  byId("prediction").hidden = !before;
  byId("strip").hidden = byId("report").hidden = hidden;
  if (hidden || !result) return;
  const sets = predicting() ? [{ name: "predicted", of: prediction.of }] : [];
  if (predicting() && expected) sets.push({ name: "expected", of: (point, group) => expected[point]?.[group] });
  strip(byId("strip"), byPoint(result.shares), sets);
  if (withReport) report.show(result.html, result.own);
}

/** The state of the page as a link holds it. */
function state() {
  const answer = prediction.revealed ? prediction.values : expected;
  return {
    text: editor.text,
    javascript: view.javascript(),
    seeds: seeds() > 1 ? seeds() : undefined,
    predict: predicting() ? 1 : undefined,
    answer: predicting() && answer ? JSON.stringify(answer) : undefined,
  };
}

/** Keeps the scenario in the address, so that a page loaded anew has it: after a pause, since Safari allows 100 changes in 30 s. */
function remember() {
  const now = state();
  clearTimeout(remembering);
  const timer = setTimeout(async () => {
    const fragment = await encode(now);
    if (timer === remembering) setAddress(fragment);
  }, REMEMBER);
  remembering = timer;
}

function setAddress(link) {
  try {
    history.replaceState(null, "", link);
  } catch {
    // Too many changes, or an address that is too long: the page works without.
  }
}

async function share() {
  const link = location.href.split("#")[0] + (await encode(state()));
  try {
    await navigator.clipboard.writeText(link);
    say("The link is in the clipboard.");
  } catch {
    setAddress(link);
    say("The clipboard is not available: copy the address of this page.");
  }
}

/** Opens a scenario, with what a link says beside. */
async function open({ text, damage, ...settings }) {
  const said = [damage];
  const { seeds: wish = "1" } = settings;
  if (seeds(wish) !== Number(wish)) said.push(`The link asks for ${wish.slice(0, 20)} seeds, and this page runs 1 to ${MOST_SEEDS}.`);
  byId("predict").checked = settings.predict === "1";
  const { values, ignored } = settings.answer ? expectation(settings.answer) : {};
  expected = values;
  if (ignored) said.push("The link's answer holds more than numbers from 0 to 100 by point and flow. The rest is left out.");
  pair = settings.a || settings.b ? settings : undefined;
  asked = undefined;
  question(); // One that is open is not about this policy.
  if (settings.javascript) {
    foreign = true;
    policy.dispatch({ changes: { from: 0, to: policy.state.doc.length, insert: settings.javascript } });
  }
  editor.text = text;
  notes = said.filter(Boolean).map((each) => ({ message: each }));
  await session.update();
}

/** What the address asks for, or the first example. */
async function requested(examples) {
  const first = { text: examples.find(({ name }) => name === FIRST)?.text ?? "" };
  if (!/(^#|&)s=/.test(location.hash)) return first;
  try {
    return await decode(location.hash);
  } catch (error) {
    return { ...first, damage: `The link is damaged (${error.message}). This is the first example.` };
  }
}

/** Groups of names for the selects of disciplines and TCPs: what the schema allows for a queue, by role. */
function choices({ disciplines, tcp, schema }) {
  const allowed = (name) => new Set(schema.$defs[name].anyOf.find((each) => each.enum).enum);
  const groups = (list, names) =>
    [...new Set(list.map(({ role }) => role))]
      .map((role) => ({
        group: role || "TCP",
        names: list.filter((each) => each.role === role && names.has(each.name)).map(({ name }) => name),
      }))
      .filter(({ names: found }) => found.length);
  return { queue: groups(disciplines, allowed("queue")), tcp: groups(tcp, allowed("tcp")) };
}

function wire(catalog) {
  const listed = JSON.parse(byId("scenarios").textContent);
  const examples = catalog.examples.map((each) => ({ ...each, group: "Examples" }));
  picker(byId("picker"), [...examples, ...listed], ({ text }) => open({ text }));
  byId("pick").onclick = () => byId("picker").showModal();
  byId("share").onclick = share;
  byId("save").onclick = () => {
    const found = files(editor.text, predicting() && !prediction.revealed ? undefined : result);
    const close = () => byId("files").close();
    byId("files").replaceChildren(
      h("h2", {}, "Save"),
      ...found.map(({ label, save }) => h("button", { click: () => (save(), close()) }, label)),
      h("p", { class: "note" }, `Each figure of the ${result?.own ? "saved " : ""}report has buttons that save it as SVG or CSV.`),
      h("button", { click: close }, "Close"),
    );
    byId("files").showModal();
  };
  byId("own").onclick = () => knobs.choose(undefined, "own") || say("No link of this scenario names a queue.");
  byId("cancel").onclick = () => session.cancel();
  byId("seeds").onchange = () => {
    notes = [];
    session.update();
  };
  byId("predict").onchange = () => {
    asked = undefined;
    draw();
    session.update();
  };
  window.onhashchange = async () => {
    remembering = clearTimeout(remembering);
    open(await requested(catalog.examples));
  };
}

async function begin() {
  tabs(document.querySelector("body > nav"), (id) => (document.querySelector("main").dataset.tab = id));
  tabs(byId("texts"), (id) => ["toml", "policy"].forEach((each) => (byId(each).hidden = each !== id)));
  const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  const module = await compile();
  const checker = new Engine(module, address);
  session = new Session(checker, new Engine(module, address), view);
  const catalog = await checker.request({ op: "catalog" });
  knobs = new Knobs(byId("sliders"), choices(catalog), (changes) => editor.replace(changes));
  wire(catalog);
  editor.explain(catalog);
  await open(await requested(catalog.examples));
}

begin().catch((error) => say(`The playground did not start: ${error.message}`));
