// The figures, legends and tables of a page.

for (const script of document.querySelectorAll('figure script[type="application/json"]')) {
  const figure = figureOf(script.previousElementSibling, JSON.parse(script.textContent));
  adopt(figure);
  saveable(figure);
}
linkLegends(all);
linkRows(all);
contents();
if (playground && deflates()) linkPlayground();
