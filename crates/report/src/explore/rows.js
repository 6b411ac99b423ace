// Links between the marks of figures and the rows of tables about them.

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const scrollTo = (node) => node.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "center" });

// The part of the page whose tables are about a figure.
const scopeOf = ({ svg }) => {
  const figure = svg.closest("figure");
  const named = figure?.dataset.rows ? document.getElementById(figure.dataset.rows) : null;
  return named ?? svg.closest("details.point, section.situation") ?? svg.closest("main") ?? document.body;
};
const headOfRow = (row) => row.querySelector("th[scope=row]")?.textContent ?? "";

// The rows about a mark: by its own name, else by that of its series or of the group of flows.
const rowsOf = (figure, { of, i }) => {
  const { y, along } = figure.data;
  const names = [of.names?.[i], along === "y" ? y.names[of.y[i]] : undefined, of.row, of.name].filter(Boolean);
  const rows = [...scopeOf(figure).querySelectorAll("tbody tr")];
  for (const name of names) {
    const own = rows.filter((row) => headOfRow(row) === name), found = own.length > 0 ? own : rows.filter((row) => row.dataset.of === name);
    if (found.length > 0) return found;
  }
  return [];
};

const highlightRows = (figure, mark) => {
  document.querySelectorAll("tr.linked").forEach((row) => row.classList.remove("linked"));
  const rows = mark === null ? [] : rowsOf(figure, mark);
  rows.forEach((row) => row.classList.add("linked"));
  figure.svg.classList.toggle("leads", rows.length > 0);
};

const reveal = (node) => {
  for (let at = node.closest("details"); at !== null; at = at.parentElement.closest("details")) at.open = true;
};
const goToRow = (figure, mark) => {
  const [row] = rowsOf(figure, mark);
  if (row === undefined) return;
  reveal(row);
  scrollTo(row);
  const head = row.querySelector("th[scope=row]");
  if (head?.tabIndex === 0) head.focus({ preventScroll: true });
};

// The marks about a row: those of its name, else all of its series.
const marksAbout = (figure, row) => {
  const { y, along } = figure.data, name = headOfRow(row);
  const isNamed = ({ of, i }) => of.names?.[i] === name || (along === "y" && y.names[of.y[i]] === name);
  const marks = marksOf(figure), own = marks.filter(isNamed);
  return own.length > 0 ? own : marks.filter(({ of }) => of.name === name || of.row === name || (of.name !== "" && of.name === row.dataset.of));
};

const emphasize = (figures, row) => {
  for (const figure of figures) {
    const marks = row === null ? [] : marksAbout(figure, row);
    const series = new Set(marks.map(({ of }) => String(of.at)));
    const isPart = series.size > 0 && series.size < figure.series.length;
    figure.svg.querySelectorAll("g[data-s]").forEach((group) => group.classList.toggle("pale", isPart && !series.has(group.dataset.s)));
    const isOne = marks.length > 0 && marks.every(({ of, i }) => of === marks[0].of && i === marks[0].i);
    point(figure, isOne ? marks[0] : null);
  }
};

// The names by which rows are about a figure.
const namesIn = ({ data, series }) => new Set([
  ...series.flatMap((of) => [of.name, of.row, ...of.names ?? []]), ...data.along === "y" ? data.y.names : [],
].filter(Boolean));

// Rows that a figure shows light up with it, and lead to it.
const linkRows = (figures) => {
  const scopes = new Map(), names = new Map();
  for (const figure of figures) {
    names.set(figure, namesIn(figure));
    figure.onMark = (mark) => highlightRows(figure, mark);
    figure.onGo = (mark) => goToRow(figure, mark);
    const scope = scopeOf(figure);
    scopes.set(scope, [...scopes.get(scope) ?? [], figure]);
  }
  for (const row of document.querySelectorAll("main tbody tr")) {
    const own = [...scopes].filter(([scope]) => scope.contains(row)).sort(([a], [b]) => a.contains(b) ? 1 : -1)
      .flatMap(([, figures]) => figures).filter((figure) => names.get(figure).has(headOfRow(row)) || names.get(figure).has(row.dataset.of));
    const head = row.querySelector("th[scope=row]");
    if (own.length === 0 || head === null) continue;
    for (const name of ["pointerenter", "focusin"]) row.addEventListener(name, () => emphasize(own, row));
    for (const name of ["pointerleave", "focusout"]) row.addEventListener(name, () => emphasize(own, null));
    // A head that is a link leads elsewhere.
    if (head.querySelector("a") !== null) continue;
    head.tabIndex = 0;
    head.classList.add("leads");
    head.title = "Enter or a click shows it in its figure";
    const go = () => {
      const [figure] = own;
      reveal(figure.svg);
      scrollTo(figure.svg);
      figure.svg.focus({ preventScroll: true });
      show(figure, marksAbout(figure, row)[0] ?? null, true);
    };
    head.addEventListener("click", go);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
  }
};
