// The list of examples and scenarios to choose from, with a search.
import { h } from "./dom.js";

/** Fills `dialog` with `[{ group, title, name, text }]`; `chosen(scenario)` is called with one of them. */
export function picker(dialog, scenarios, chosen) {
  const buttons = [];
  const choose = (scenario) => {
    dialog.close();
    chosen(scenario);
  };
  const list = h("div", { class: "list" });
  for (const group of new Set(scenarios.map((each) => each.group))) {
    const entries = scenarios
      .filter((each) => each.group === group)
      .map((each) => {
        const button = h("button", { click: () => choose(each) }, h("b", {}, each.title), " ", h("small", {}, each.name));
        buttons.push({ button, words: `${each.title} ${each.name} ${each.text}`.toLowerCase() });
        return button;
      });
    list.append(h("section", { "aria-label": group }, h("h3", {}, group), ...entries));
  }
  const count = h("p", { class: "note", role: "status" });
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of buttons) each.button.hidden = !words.every((word) => each.words.includes(word));
    for (const section of list.children) section.hidden = !section.querySelector("button:not([hidden])");
    count.textContent = `${buttons.filter((each) => !each.button.hidden).length} of ${buttons.length} scenarios`;
  };
  const input = h("input", { type: "search", placeholder: "Search titles and texts", "aria-label": "Search scenarios", input: filter });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const seen = buttons.map((each) => each.button).filter((each) => !each.hidden);
    if (event.key === "Enter" && event.target === input) seen[0]?.click();
    else if (event.key === "Escape")
      dialog.close(); // A search field would only be emptied.
    else if (step) (seen[seen.indexOf(document.activeElement) + step] ?? input).focus();
    else return;
    event.preventDefault();
  });
  dialog.replaceChildren(h("form", { method: "dialog" }, input, h("button", {}, "Close")), count, list);
  filter();
}
