// Sliders and selects of the values that `check` names, which rewrite the text of the scenario.
import { h } from "./dom.js";
import { format, parse, steps } from "./quantity.js";
import { itemName, items } from "./text.js";

/** Knobs that are shown at once; the others are under "more". */
const SHOWN = 8;
/** What is shown last: a change of it seldom says anything about shares. */
const LATER = /(^|\.)(stop|measure_from|pairs)$/;
/** Where the slider of a buffer begins whose size is the default. */
const BUFFER = '"100p"';

/** The panel of all knobs; `replace([{ from, to, insert }])` changes the scenario. */
export class Knobs {
  #panel;
  #replace;
  #choices;
  #knobs = [];

  constructor(panel, choices, replace) {
    this.#panel = panel;
    this.#choices = choices;
    this.#replace = replace;
  }

  /**
   * Shows what `check` found, `[{ path, kind, value, from, to, template }]`, with positions of the editor.
   *
   * The buffers of a list of disciplines are one knob. Controls of knobs that stay are kept, with their focus.
   */
  show(found) {
    const knobs = merged(found)
      .map((each) => ({ ...each, quantity: parse(each.kind, each.value ?? BUFFER) }))
      .filter((each) => each.quantity || this.#choices[each.kind]);
    knobs.sort((one, other) => LATER.test(one.path) - LATER.test(other.path));
    const names = (all) => all.map(({ path, kind }) => `${kind} ${path}`).join();
    if (names(knobs) === names(this.#knobs)) knobs.forEach((each, index) => Object.assign(this.#knobs[index], each));
    else this.#build(knobs);
    this.#knobs.forEach((each) => each.update());
  }

  #build(knobs) {
    this.#knobs = knobs;
    const controls = knobs.map((each) => (each.quantity ? this.#slider(each) : this.#select(each)));
    const more = controls.splice(SHOWN);
    this.#panel.replaceChildren(...controls);
    if (more.length) this.#panel.append(h("details", {}, h("summary", {}, `${more.length} more`), h("div", {}, ...more)));
    if (!knobs.length)
      this.#panel.append(h("p", { class: "note" }, "All values of this scenario are lists or expressions: edit its text."));
  }

  /** Moves positions with a change of the text. */
  move(changes) {
    for (const place of this.#knobs.flatMap(({ places }) => places)) {
      place.from = changes.mapPos(place.from, -1);
      place.to = changes.mapPos(place.to, 1);
    }
  }

  /**
   * Chooses disciplines A and, unless empty, B of the queue that is a list, or of the first; without `a` its first discipline stays.
   *
   * Returns whether there is a queue.
   */
  choose(a, b) {
    const queues = this.#knobs.filter(({ kind }) => kind === "queue");
    const queue = queues.find(({ value }) => value.startsWith("[")) ?? queues[0];
    if (queue) this.#set(queue, list(queue, a ?? itemName(chosen(queue)[0]), b));
    return queue !== undefined;
  }

  /** Writes a knob's value. More flows than a dumbbell has pairs of hosts raise its pairs as well. */
  #set(knob, value) {
    const change = ({ places }) => places.map(({ from, to, template }) => ({ from, to, insert: template.replace("%", () => value) }));
    const changes = change(knob);
    knob.value = value;
    const pairs = this.#knobs.find(({ path }) => path.endsWith(".pairs"));
    if (pairs && knob.path.endsWith(".count") && Number(value) > Number(pairs.value)) {
      pairs.value = value;
      changes.push(...change(pairs));
    }
    this.#replace(changes);
  }

  #slider(knob) {
    const input = h("input", { type: "range", min: 0, step: 1, "aria-label": label(knob.path) });
    const output = h("output");
    let values = [];
    const say = () => {
      const { family, value } = knob.quantity;
      const text = format(family, value).replace(/(\d)([a-zA-Z])/, "$1 $2");
      const packets = value === 1 ? " packet" : " packets";
      output.textContent = knob.value === null ? "default" : text.replace(/ p$/, packets);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      knob.quantity.value = values[input.value];
      const text = format(knob.quantity.family, knob.quantity.value);
      this.#set(knob, knob.kind === "count" ? text : `"${text}"`);
      say();
    });
    knob.update = () => {
      const { family, value } = knob.quantity;
      const near = (each) => Math.abs(each - value) <= 1e-9 * value;
      if (!values.some(near)) values = steps(family, value);
      input.max = values.length - 1;
      input.value = values.findIndex(near);
      say();
    };
    return h("label", { class: "knob", title: knob.path }, h("span", {}, label(knob.path)), output, input);
  }

  #select(knob) {
    const groups = this.#choices[knob.kind];
    const select = (name) =>
      h(
        "select",
        { "aria-label": `${label(knob.path)} ${name}`, change: () => this.#set(knob, list(knob, first.value, second.value)) },
        h("option", { value: "" }, ""),
        ...groups.map(({ group, names }) => h("optgroup", { label: group }, ...names.map((each) => h("option", { value: each }, each)))),
      );
    const [first, second] = [select("A"), select("B")];
    knob.update = () => {
      const names = chosen(knob).map(itemName);
      const several = names.length > 2;
      first.options[0].textContent = several ? `${names.length} in the text` : knob.value === null ? "default" : "";
      first.options[0].disabled = !several && knob.value !== null;
      first.value = several ? "" : (names[0] ?? "");
      second.options[0].textContent = "none";
      second.value = several ? "" : (names[1] ?? "");
      second.disabled = several;
    };
    return h(
      "div",
      { class: "knob pair", title: knob.path, role: "group", "aria-label": label(knob.path) },
      h("span", {}, label(knob.path)),
      first,
      h("span", { class: "against" }, "against"),
      second,
    );
  }
}

/** The items of a knob's value. */
const chosen = ({ value }) => (value === null ? [] : items(value));

/** TOML of one or two choices. An item of the present value with that name is kept; a new one gets its buffer. */
function list(knob, a, b) {
  const present = chosen(knob);
  const limit = knob.kind === "queue" ? present.map((each) => /\blimit\s*=\s*("[^"]*"|'[^']*')/.exec(each)?.[1]).find(Boolean) : undefined;
  const item = (name) =>
    present.find((each) => itemName(each) === name) ?? (limit ? `{ kind = "${name}", limit = ${limit} }` : `"${name}"`);
  const texts = [...new Set([a, b].filter(Boolean))].map(item);
  return texts.length > 1 ? `[${texts.join(", ")}]` : texts[0];
}

/** Knobs with their `places`; the sizes of the buffers of one queue, in a list or not, become one knob. */
function merged(found) {
  const knobs = new Map();
  for (const { from, to, template, ...knob } of found) {
    const path = knob.path.replace(/\[\d+\]\.limit$/, ".limit");
    const known = knobs.get(path);
    if (known) {
      known.places.push({ from, to, template });
      known.value ??= knob.value;
    } else knobs.set(path, { ...knob, path, places: [{ from, to, template }] });
  }
  return [...knobs.values()];
}

/** A knob's path for people: `topology.bottleneck.rate` is "bottleneck rate". */
function label(path) {
  const words = path.replace(/^(topology|link|flow)\./, "").replace(/queue\.limit$/, "buffer");
  return words
    .replace(/\.source\./, ".")
    .replace(/\btcp$/, "TCP")
    .replaceAll(/[._]/g, " ");
}
