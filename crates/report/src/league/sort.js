// The number of a cell; that of a cell of words, or of one without a number, is undefined.
const numberOf = (cell) => {
  const found = cell.className === "" && cell.textContent.match(/^~?(-?\d*\.?\d+(?:e[-+]?\d+)?)/);
  return found ? Number(found[1]) : undefined;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const inOrder = [...body.rows];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    const name = head.textContent;
    button.setAttribute("aria-label", "Sort by " + name);
    button.textContent = "↕";
    head.append(button);
    button.addEventListener("click", () => {
      // Up, down, then the order of the catalogue.
      const now = head.getAttribute("aria-sort");
      const next = now === null ? "ascending" : now === "ascending" ? "descending" : null;
      heads.forEach((other) => {
        other.removeAttribute("aria-sort");
        other.querySelector("button").textContent = "↕";
      });
      const rows = [...inOrder];
      if (next !== null) {
        head.setAttribute("aria-sort", next);
        button.textContent = next === "ascending" ? "↑" : "↓";
        const sign = next === "ascending" ? 1 : -1;
        const key = (row) => numberOf(row.cells[at]);
        rows.sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === undefined || y === undefined) {
            // Empty cells are last; columns of words go by their text.
            if (x !== y) return x === undefined ? 1 : -1;
            return sign * a.cells[at].textContent.localeCompare(b.cells[at].textContent);
          }
          return sign * (x - y);
        });
      }
      body.append(...rows);
    });
  });
}
// Not every browser opens what it goes to, and a filter may hide it.
const openTarget = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.closest("[hidden]")) filter.reset();
  if (target?.matches("details")) target.open = true;
};
addEventListener("hashchange", openTarget);
openTarget();
