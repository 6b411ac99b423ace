// Legends hide and show series, in all figures of the page.

const applyHidden = (figures) => {
  for (const figure of figures) {
    for (const of of figure.series) {
      figure.svg.querySelectorAll(`g[data-s="${of.at}"]`).forEach((group) => group.classList.toggle("off", !isShown(of)));
    }
    if (figure.isLive) redraw(figure); else if (isZoomed(figure)) paint(figure);
  }
};

const toggleOf = (name) => {
  hide();
  if (!hidden.delete(name)) hidden.add(name);
  for (const button of document.querySelectorAll(".legend button")) button.setAttribute("aria-pressed", !hidden.has(button.value));
  applyHidden(all);
};

const linkLegends = (figures) => {
  const names = new Set(figures.flatMap(({ series }) => series.map(({ name }) => name)));
  for (const item of document.querySelectorAll("ul.legend > li")) {
    const name = item.textContent; // As it is: a name may begin with a blank.
    if (!names.has(name) || item.querySelector("button") !== null) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value: name, title: `Hide or show ${name} in all figures` });
    button.setAttribute("aria-pressed", !hidden.has(name));
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => toggleOf(name));
  }
};
