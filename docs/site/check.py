"""Checks the site in `html/`: every link leads to a page and a place that exist, and no page loads anything from elsewhere.

What stands after `#` in a link to the playground is a scenario, not a place.

Prints the number of pages. The pages of crates, in `html/rust`, are targets only: rustdoc checks its own links.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path("html")
PLAYGROUND = (SITE / "playground.html").resolve()


class Page(HTMLParser):
    """The places of a page, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        elif tag != "meta":
            self.loads.extend(values[name] for name in ("src", "href", "data") if name in values)


def problems(path: Path, pages: dict[Path, Page]) -> list[str]:
    """What is wrong with the links of a page."""
    found = []
    page = pages[path]
    found += [f"loads {link}" for link in page.loads if urlsplit(link).netloc]
    for link in page.links + page.loads:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        # The page for errors is served at any place: its links start at the root of the site.
        base = SITE if parts.path.startswith("/") else path.parent
        target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            found.append(f"{link}: there is no such file")
        elif parts.fragment and target in pages and target != PLAYGROUND and unquote(parts.fragment) not in pages[target].anchors:
            found.append(f"{link}: the page has no such place")
    return [f"{path.relative_to(SITE.resolve())}: {problem}" for problem in found]


def main() -> None:
    rust = (SITE / "rust").resolve()
    paths = [path for path in SITE.resolve().rglob("*.html") if rust not in path.parents]
    pages = {path: Page(path) for path in sorted(paths)}
    found = [problem for path in pages for problem in problems(path, pages)]
    if found:
        sys.exit("\n".join(found))
    print(f"site: {len(pages)} pages")


if __name__ == "__main__":
    main()
