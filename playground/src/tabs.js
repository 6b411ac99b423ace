// Tabs: arrow keys move among them, and a callback gets the panel of the selected one.

/** Makes the buttons in `list` tabs; `selected(id)` gets the id of the selected tab's panel. */
export function tabs(list, selected) {
  const buttons = [...list.querySelectorAll("[role=tab]")];
  const select = (button) => {
    for (const each of buttons) {
      each.setAttribute("aria-selected", String(each === button));
      each.tabIndex = each === button ? 0 : -1;
    }
    selected(button.getAttribute("aria-controls"));
  };
  list.addEventListener("click", ({ target }) => buttons.includes(target) && select(target));
  list.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = buttons.at((buttons.indexOf(document.activeElement) + step) % buttons.length);
    next.focus();
    select(next);
  });
  select(buttons.find((each) => each.getAttribute("aria-selected") === "true"));
}
