const filter = document.querySelector("form.filter");
const tables = [...document.querySelectorAll("table.sortable")];
const wordsOf = (input) => input.value.toLowerCase().split(/[\s,]+/).filter((word) => word !== "");
const applyFilter = () => {
  const { discipline, family, situation, metric } = filter.elements;
  const words = wordsOf(discipline);
  const isShown = (row) =>
    (family.value === "" || row.dataset.family === family.value) &&
    (words.length === 0 || words.some((word) => row.cells[0].textContent.includes(word)));
  for (const table of tables) {
    for (const row of table.tBodies[0].rows) row.hidden = !isShown(row);
  }
  const isHidden = (select, name) => select.value !== "" && select.value !== name;
  for (const section of document.querySelectorAll("section.situation")) {
    section.hidden = isHidden(situation, section.querySelector("h3").id);
  }
  for (const matrix of document.querySelectorAll("details.matrix")) {
    const name = matrix.querySelector("summary").textContent;
    matrix.hidden = isHidden(metric, name);
    if (metric.value === name) matrix.open = true;
    // The first option is all of them, the first column the name of the discipline.
    for (const row of matrix.querySelectorAll("tr")) {
      [...row.cells].forEach((cell, at) => {
        cell.hidden = at > 0 && situation.selectedIndex > 0 && at !== situation.selectedIndex;
      });
    }
  }
  const rows = [...tables[0].tBodies[0].rows];
  filter.querySelector("output").textContent =
    `${rows.filter((row) => !row.hidden).length} of ${rows.length} disciplines`;
};
filter.hidden = false;
filter.addEventListener("input", applyFilter);
filter.addEventListener("submit", (event) => event.preventDefault());
// The fields are empty after this event.
filter.addEventListener("reset", () => setTimeout(applyFilter));
// A browser keeps the fields of a page that is loaded again.
applyFilter();
