// Sliders and selects of the values that `check` names, which rewrite the text of the scenario.
import { h } from "./dom.js";
import { format, parse, steps } from "./quantity.js";
import { itemName, items } from "./text.js";

/** Knobs that are shown at once; the others are under "More". */
const SHOWN = 8;

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

  /** Shows `found`, `[{ path, kind, value, from, to }]` with positions of the editor. Controls in use stay. */
  show(found) {
    const usable = found
      .map((each) => ({ ...each, quantity: parse(each.kind, each.value) }))
      .filter((each) => each.quantity || this.#choices[each.kind]);
    const same =
      usable.length === this.#knobs.length &&
      usable.every(({ path, kind }, index) => path === this.#knobs[index].path && kind === this.#knobs[index].kind);
    if (same) {
      usable.forEach((each, index) => Object.assign(this.#knobs[index], each));
    } else {
      this.#knobs = usable;
      const controls = usable.map((each) => this.#control(each));
      const more = controls.splice(SHOWN);
      this.#panel.replaceChildren(...controls);
      if (more.length) this.#panel.append(h("details", {}, h("summary", {}, `${more.length} more`), ...more));
      if (!usable.length)
        this.#panel.append(h("p", { class: "note" }, "This scenario has no single values to slide: all are formulas or lists."));
    }
    this.#knobs.forEach((each) => each.update());
  }

  /** Moves positions with a change of the text. */
  move(changes) {
    for (const knob of this.#knobs) {
      knob.from = changes.mapPos(knob.from, -1);
      knob.to = changes.mapPos(knob.to, 1);
    }
  }

  /** Disciplines A and B of the first queue, or undefined. */
  get pair() {
    const queue = this.#knobs.find(({ kind }) => kind === "queue");
    if (!queue) return undefined;
    const names = items(queue.value).map(itemName);
    return names.length <= 2 ? { a: names[0], b: names[1] } : undefined;
  }

  /** Chooses disciplines A and, unless empty, B of the first queue. */
  choose(a, b) {
    const queue = this.#knobs.find(({ kind }) => kind === "queue");
    if (queue) this.#set(queue, list(queue, a, b));
  }

  /** Writes a knob's value. More flows than a dumbbell has pairs of hosts raise its pairs as well. */
  #set(knob, value) {
    const changes = [{ from: knob.from, to: knob.to, insert: value }];
    knob.value = value;
    const pairs = this.#knobs.find(({ path }) => path.endsWith(".pairs"));
    if (pairs && knob.path.endsWith(".count") && Number(value) > Number(pairs.value)) {
      pairs.value = value;
      changes.push({ from: pairs.from, to: pairs.to, insert: value });
    }
    this.#replace(changes);
  }

  #control(knob) {
    return knob.quantity ? this.#slider(knob) : this.#select(knob);
  }

  #slider(knob) {
    const input = h("input", { type: "range", min: 0, step: 1, "aria-label": label(knob.path) });
    const output = h("output");
    let values = [];
    const say = (value) => {
      const text = format(knob.quantity.family, value);
      output.textContent = text.replace(/(\d)([a-zA-Z])/, "$1 $2").replace(/ p$/, values[input.value] === 1 ? " packet" : " packets");
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      const value = values[input.value];
      const text = format(knob.quantity.family, value);
      this.#set(knob, /["']/.test(knob.value) ? `"${text}"` : text);
      knob.quantity = { ...knob.quantity, value };
      say(value);
    });
    knob.update = () => {
      const { family, value } = knob.quantity;
      const near = (each) => Math.abs(each - value) <= 1e-9 * value;
      if (!values.some(near)) values = steps(family, value);
      input.max = values.length - 1;
      input.value = values.findIndex(near);
      say(value);
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
      const each = items(knob.value);
      const names = each.map(itemName);
      const several = names.length > 2;
      first.options[0].textContent = several ? `${names.length} in the scenario` : "";
      first.options[0].disabled = !several;
      first.value = several || !names[0] ? "" : names[0];
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

/** TOML of one or two choices. An item of the present value with that name is kept; a new one gets its buffer. */
function list(knob, a, b) {
  const present = items(knob.value);
  const limit = knob.kind === "queue" ? present.map((each) => /\blimit\s*=\s*("[^"]*"|'[^']*')/.exec(each)?.[1]).find(Boolean) : undefined;
  const item = (name) =>
    present.find((each) => itemName(each) === name) ?? (limit ? `{ kind = "${name}", limit = ${limit} }` : `"${name}"`);
  const chosen = [...new Set([a, b].filter(Boolean))].map(item);
  return chosen.length > 1 ? `[${chosen.join(", ")}]` : chosen[0];
}

/** A knob's path for people: `topology.bottleneck.rate` is "bottleneck rate". */
function label(path) {
  return path
    .replace(/^(topology|link|flow|defaults)\./, "")
    .replaceAll(".", " ")
    .replace(/\bsource /, "")
    .replaceAll("_", " ");
}
