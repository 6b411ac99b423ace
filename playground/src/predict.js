// Predict first: the result stays hidden until the reader has set what each group of flows gets.
import { h } from "./dom.js";
import { groups } from "./shares.js";

/** Points, and groups of flows of each, for which a prediction is asked. */
const MOST_POINTS = 6;
const MOST_GROUPS = 20;

/**
 * The answer of a link, JSON with percentages by point and group, as `{ values, ignored }`.
 *
 * `values` has the numbers from 0 to 100; `ignored` says whether there was anything else.
 */
export function expectation(answer) {
  let ignored = false;
  const object = (given) => {
    if (typeof given === "object" && given !== null && !Array.isArray(given)) return Object.entries(given);
    ignored = true;
    return [];
  };
  const percent = ([, value]) => {
    const right = typeof value === "number" && value >= 0 && value <= 100;
    ignored ||= !right;
    return right;
  };
  const values = { __proto__: null }; // A group may be named `constructor`.
  try {
    for (const [point, of] of object(JSON.parse(answer))) {
      values[point] = Object.assign({ __proto__: null }, Object.fromEntries(object(of).filter(percent)));
    }
  } catch {
    ignored = true;
  }
  return { values, ignored };
}

/** Predictions, percentages by point and group, and their form in `panel`. */
export class Prediction {
  #panel;
  #values = { __proto__: null };
  #revealed = false;

  constructor(panel, reveal) {
    this.#panel = panel;
    this.reveal = () => {
      this.#revealed = true;
      reveal();
    };
  }

  get revealed() {
    return this.#revealed;
  }

  /** Predicted percentages by point and group. */
  get values() {
    return this.#values;
  }

  /** The prediction for a group at a point, or undefined. */
  of = (point, group) => this.#values[point]?.[group];

  /** Asks for a prediction; what was set for the same names stays. */
  ask(points, flows) {
    this.#revealed = false;
    const all = groups(flows);
    const names = all.slice(0, MOST_GROUPS);
    const before = this.#values;
    this.#values = { __proto__: null };
    const missing = new Set();
    const button = h("button", { class: "primary", click: this.reveal }, "Reveal the result");
    const hint = h("p", { class: "note", id: "predict-hint" });
    const check = () => {
      button.disabled = missing.size > 0;
      hint.textContent = missing.size ? `Set ${missing.size} more to reveal the result.` : "All are set.";
    };
    const fields = points.slice(0, MOST_POINTS).map((point) => {
      const values = (this.#values[point] = { __proto__: null });
      const sum = h("output");
      const add = () => (sum.textContent = `Sum ${Object.values(values).reduce((all, each) => all + each, 0)} %`);
      const rows = names.map(({ name, flows: count }) => {
        const old = before[point]?.[name];
        const output = h("output", {}, old === undefined ? "?" : `${old} %`);
        const id = `${point}\n${name}`;
        const set = () => {
          values[name] = Number(input.value);
          output.textContent = `${input.value} %`;
          input.style.setProperty("--part", `${input.value}%`);
          missing.delete(id);
          add();
          check();
        };
        const input = h("input", {
          type: "range",
          min: 0,
          max: 100,
          value: old ?? 0,
          class: "guess",
          "aria-label": `${point} ${name}, predicted share in percent`,
          input: set,
          change: set,
          keydown: ({ key }) => key === "Enter" && set(),
        });
        input.style.setProperty("--part", `${input.value}%`);
        if (old === undefined) missing.add(id);
        else values[name] = old;
        return h("label", { class: "guess" }, h("span", {}, count > 1 ? `${name} × ${count}, together` : name), input, output);
      });
      add();
      return h("fieldset", {}, h("legend", {}, point || "Result"), ...rows, sum);
    });
    check();
    this.#panel.replaceChildren(
      h("h2", {}, "What does each flow get?"),
      h(
        "p",
        {},
        "Predict each share of the throughput, in percent of what all flows get. Drag the bars, or use the arrow keys; Enter sets a bar as it stands.",
      ),
      all.length > MOST_GROUPS ? h("p", { class: "note" }, `The first ${MOST_GROUPS} of ${all.length} groups of flows are asked for.`) : "",
      h("div", { class: "fields" }, ...fields),
      hint,
      button,
    );
  }
}
