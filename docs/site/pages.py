"""Writes the sources of the site to the current folder: pages of the repository, pages made from the program and the crates, settings.

Usage: pages.py REPOSITORY TARGET

TARGET is the directory of Cargo's output: it has the program, and after `cargo doc` the pages of the crates.

`pages/` has the layout of the repository, so that relative links stay as they are. A link to a file that is no page leads to a
page that shows the file; a link to a folder leads to its README, or to a list of its files; a link to the stored league leads to its page.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

from figures import WITHOUT, Figures, shown

PAGES = Path("pages")
LINK = re.compile(r"(?<=\]\()([^)#\s]+)((?:#[^)\s]*)?)(?=\))")
ROLE = re.compile(r":(?:class|func|meth|mod|exc):`~?([^`]+)`")
LANGUAGES = {".toml": "toml", ".py": "python", ".rs": "rust", ".c": "c", ".h": "c", ".md": "markdown", ".service": "ini", ".sh": "bash", ".json": "json", ".yml": "yaml", ".cff": "yaml"}
ROOT_PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
FOLDERS_OF_PAGES = ["docs", "papers", "validation", "benches", "contrib"]
# Reading takes a minute for this many words; a page of more than so many minutes says how long it takes.
WORDS_PER_MINUTE = 220
SHORT_MINUTES = 5
CATALOGUE = Path("catalogue")
PICTURE = re.compile(r"!\[[^]]*\]\(docs/quickstart\.png\)")
# What `apportion league` measured, and the page of it.
LEAGUE = Path("docs/league.jsonl")
LEAGUE_PAGE = LEAGUE.with_name("league-table.html")
# What `playground/build` makes of its template.
PLAYGROUND = Path("playground/template.html")
PLAYGROUND_PAGE = Path("playground.html")
BLOCK = re.compile(r"^( *)```toml( predict)?\n(.*?)^\1```\n", re.MULTILINE | re.DOTALL)


class Playground:
    """The playground, if it was built, and links that open scenarios in it."""

    def __init__(self, root: Path, built: Path) -> None:
        page = built / "playground/index.html"
        self.is_built = page.is_file()
        self.scenarios = set()
        if self.is_built:
            shutil.copyfile(page, PAGES / PLAYGROUND_PAGE)
            # Those that its engine accepts, and the examples.
            listed = json.loads((built / "playground/scenarios.json").read_text())
            self.scenarios = {entry["text"] for entry in listed} | {file.read_text() for file in (root / "scenarios").glob("*.toml")}

    def button(self, page: Path, text: str, predict: bool = False) -> str:
        """A link that opens a scenario; nothing for a text that is none."""
        if text not in self.scenarios:
            return ""
        deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = base64.urlsafe_b64encode(deflate.compress(text.encode()) + deflate.flush()).decode().rstrip("=")
        link = os.path.relpath(PLAYGROUND_PAGE, page.parent) + "#s=" + packed + ("&predict=1" if predict else "")
        return f"[Open in the playground]({link}){{: .playground }}\n"

    def with_buttons(self, page: Path, text: str) -> str:
        """The page with a link below each complete scenario; `predict` after the language hides the result at first."""

        def linked(block: re.Match[str]) -> str:
            indent, predict, scenario = block.groups()
            plain = f"{indent}```toml\n{scenario}{indent}```\n"
            button = self.button(page, scenario, bool(predict)) if not indent else ""
            return plain + (f"\n{button}" if button else "")

        return BLOCK.sub(linked, text)


class Repository:
    """The files of the repository, and the pages that show them."""

    def __init__(self, root: Path, built: Path) -> None:
        self.root = root
        self.program = built / "debug" / "apportion"
        self.playground = Playground(root, built)
        listed = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True)
        self.files = {Path(line) for line in listed.stdout.splitlines()}
        self.folders = {folder for file in self.files for folder in file.parents}
        self.dead: list[str] = []

    def write_page(self, path: Path, text: str) -> None:
        """Writes a page; what it links to becomes part of the site."""

        def target(link: re.Match[str]) -> str:
            place, anchor = link.groups()
            if "://" in place:
                return link[0]
            return self.page_of(Path(os.path.normpath(path.parent / place)), place, path) + anchor

        write(path, self.playground.with_buttons(path, LINK.sub(target, with_reading_time(indented(text)))))

    def page_of(self, file: Path, link: str, page: Path) -> str:
        """The link from `page` to the page that shows a file or folder, which is written if it is not there."""
        if file in self.folders:
            index = file / ("README.md" if file / "README.md" in self.files else "index.md")
            if index.name == "index.md":
                self.write_folder(index)
        elif file not in self.files:
            self.dead.append(f"{page}: {link}")
            return link
        elif file.suffix == ".md":
            if file.parts[0] not in ROOT_PAGES + FOLDERS_OF_PAGES and not (PAGES / file).exists():
                self.write_page(file, (self.root / file).read_text())
            return link
        elif file == LEAGUE:
            self.write_league()
            return os.path.relpath(LEAGUE_PAGE, page.parent)
        elif file == PLAYGROUND and self.playground.is_built:
            return os.path.relpath(PLAYGROUND_PAGE, page.parent)
        elif file.suffix in (".png", ".svg"):
            copy = PAGES / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / file, copy)
            return link
        elif file.suffix == ".ipynb":
            index = file.with_suffix(".md")
        else:
            index = file.with_name(file.name + ".md")
            self.write_source(index, file)
        return os.path.relpath(index, page.parent)

    def write_league(self) -> None:
        """The page of the stored league, as `apportion league` writes it."""
        if (PAGES / LEAGUE_PAGE).exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            command = [self.program, "league", "--from", self.root / LEAGUE, "--out", folder, "--quiet"]
            subprocess.run(command, check=True)
            page = (Path(folder) / "1" / "league.html").read_text()
            back = f'<p class="sub"><a href="{LEAGUE.with_suffix(".html").name}">About this league</a></p>\n'
            page = page.replace("<h1>", f"{back}<h1>", 1)
            if self.playground.is_built:
                address = os.path.relpath(PLAYGROUND_PAGE, LEAGUE_PAGE.parent)
                head, main, rest = page.partition("<main>")
                if not main:
                    raise SystemExit(f"{LEAGUE_PAGE}: there is no <main>; build the program without APPORTION_PLAYGROUND")
                page = f'{head}<main data-playground="{address}">{rest}'
            write(LEAGUE_PAGE, page)

    def write_folder(self, index: Path) -> None:
        """A list of the files of a folder, with the first comment of each."""
        if (PAGES / index).exists():
            return
        folder = index.parent
        lines = [f"# {folder}", ""]
        for file in sorted(file for file in self.files if folder in file.parents):
            first = (self.root / file).read_text().partition("\n")[0]
            comment = re.fullmatch(r"(?:#|//!|//|/\*) (.*)", first)
            name = file.relative_to(folder)
            lines.append(f"- [{name}]({name})" + (f": {comment[1]}" if comment else ""))
        self.write_page(index, "\n".join(lines) + "\n")

    def write_source(self, page: Path, file: Path) -> None:
        """A page that shows a file."""
        text = (self.root / file).read_text()
        language = LANGUAGES.get(file.suffix, "bash" if text.startswith("#!") else "text")
        button = self.playground.button(page, text) if language == "toml" else ""
        write(page, f"# {file}\n\n{button}\n~~~~~~ {{.{language}}}\n{text}\n~~~~~~\n")


def write(page: Path, text: str) -> None:
    """Writes a page."""
    (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
    (PAGES / page).write_text(text)


def with_reading_time(text: str) -> str:
    """The page with the time that its prose takes below its title, unless that is short. Code and tables are not prose."""
    prose = re.sub(r"^ *```.*?^ *```|^ *\|.*?$|\]\([^)]*\)", "", text, flags=re.MULTILINE | re.DOTALL)
    minutes = round(len(re.findall(r"\w[^\s]*", prose)) / WORDS_PER_MINUTE)
    if minutes <= SHORT_MINUTES:
        return text
    title, _, rest = text.partition("\n")
    return f"{title}\n\n*{minutes} minutes to read, without code and tables*\n{{: .reading }}\n{rest}"


def indented(text: str) -> str:
    """The page with four spaces for each level of a list, as Python's Markdown wants it; the repository has two or three.

    A word after the language of a block is for tests, and left out.
    """
    lines = []
    added = 0
    is_code = False
    for line in text.splitlines():
        words = line.lstrip(" ")
        depth = len(line) - len(words)
        if not is_code:
            added = depth // 2 * 4 - depth
        if words.startswith("```"):
            is_code = not is_code
            words = words.removesuffix(" no-run")
        lines.append(" " * (depth + added) + words if words else "")
    return "\n".join(lines) + "\n"


def table(rows: list[list[str]]) -> list[str]:
    """A table in Markdown; its first row is the header."""
    width = max(len(row) for row in rows)
    rows = [row + [""] * (width - len(row)) for row in rows]
    rows.insert(1, ["---"] * width)
    escaped = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in escaped] + [""]


def columns(block: str) -> list[list[str]]:
    """The cells of a table that the program prints: at least two spaces are between columns."""
    return [re.split(r" {2,}", line.strip()) for line in block.splitlines()]


def explained(text: str, section: Callable[[str, str, str], list[str]]) -> str:
    """The page of what `apportion explain` prints: a head, what is shown of it, a table of parameters, and their meanings."""
    head, *blocks = text.strip().split("\n\n")
    title, summary, *facts = head.splitlines()
    name, _, role = title.partition(": ")
    lines = [f"# {name}", "", f"*{role}.* {summary}", ""]
    use = ""
    for fact in facts:
        key, _, value = fact.partition(": ")
        use = value if key == "Use" else use
        if key == "Use":
            code, *others = re.split("(?=, or |, in place of )", value, maxsplit=1)
            value = f"`{code}`" + "".join(others)
        lines += [f"**{key}:** {value}", ""]
    for part in section(name, role, use):
        lines += [part, ""]
    if blocks:
        lines += ["## Parameters", ""]
    for block in blocks:
        rows = columns(block)
        if len(rows[0]) == 2 and rows[0][0] not in ("key", "parameter"):
            rows.insert(0, ["parameter", "meaning"])
        # The meaning of a key stands in a column without a title.
        elif rows[0][0] == "key":
            rows[0].append("meaning")
        lines += table([rows[0]] + [[f"`{row[0]}`", *row[1:]] for row in rows[1:]])
    return "\n".join(lines)


def write_catalogue(repository: Repository, figures: Figures) -> None:
    """One page for each discipline, marker, TCP profile, source and topology, and the list of them."""
    folder = CATALOGUE

    def output(*arguments: str) -> str:
        return subprocess.run([repository.program, *arguments], check=True, capture_output=True, text=True).stdout

    def section(name: str, role: str, use: str) -> list[str]:
        what = shown(name, role, use)
        if not what:
            return [f"*No figure:* {WITHOUT[name]}"] if name in WITHOUT else []
        return figures.section(name, what, repository.page_of(Path(what.scenario), what.scenario, folder / f"{name}.md"))

    index = ["# Catalogue", "", "What scenarios can name: `apportion list` prints this list, `apportion explain NAME` each page.", ""]
    menu = ["- [Catalogue](README.md)"]
    for group in output("list").strip().split("\n\n"):
        title, _, entries = group.partition("\n")
        if title in ["Example scenarios", "Experiments"]:
            continue
        rows = columns(entries)
        menu.append(f"- {title}")
        for name, *_ in rows:
            write(folder / f"{name}.md", explained(output("explain", name), section))
            menu.append(f"    - [{name}]({name}.md)")
        header = ["name", "role", "what it does"] if len(rows[0]) == 3 else ["name", "what it is"]
        index += [f"## {title}", "", *table([header] + [[f"[{row[0]}]({row[0]}.md)", *row[1:]] for row in rows])]
    write(folder / "README.md", "\n".join(index))
    write(folder / "SUMMARY.md", "\n".join(menu) + "\n")


def write_rust(repository: Repository, documented: Path) -> None:
    """The list of crates, with links to what `cargo doc` wrote."""
    manifest = repository.root / "Cargo.toml"
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--manifest-path", str(manifest)]
    metadata = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [["crate", "what it is"]]
    for package in json.loads(metadata.stdout)["packages"]:
        for library in (target["name"] for target in package["targets"] if target["kind"] == ["lib"]):
            page = f"{library}/index.html"
            name = f"`{package['name']}`"
            link = f"[{name}](../rust/{page})" if (documented / page).exists() else name
            rows.append([link, package["description"]])
    text = ["# Rust", "", "`cargo doc --workspace --no-deps --open` shows the pages of the crates.", "", *table(rows)]
    write(Path("reference/rust.md"), "\n".join(text))


def write_python(repository: Repository) -> None:
    """The reference of the Python package; roles of reStructuredText become code."""
    shutil.copytree(repository.root / "python" / "apportion", "python/apportion")
    for module in Path("python/apportion").glob("*.py"):
        module.write_text(ROLE.sub(r"`\1`", module.read_text()))
    modules = ["apportion", "apportion.fairness", "apportion.laws"]
    write(Path("reference/python.md"), "# Python\n\n" + "\n\n".join(f"::: {module}" for module in modules) + "\n")


def write_versions(repository: Repository) -> None:
    """The settings of the site, which name the version that it documents, and the page of versions."""

    def git(*arguments: str) -> list[str]:
        command = ["git", "-C", repository.root, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    [commit] = git("log", "-1", "--date=short", "--format=commit %h of %cd")
    here = [tag.removeprefix("v") for tag in git("tag", "--points-at", "HEAD", "v*")]
    version = f"{here[0]}, {commit}" if here else f"development, {commit}"
    settings = (repository.root / "docs/site/zensical.toml").read_text()
    Path("zensical.toml").write_text(settings.replace("@VERSION@", version))
    tags = git("tag", "--list", "v*", "--sort=-creatordate", "--format=%(refname:short)|%(creatordate:short)")
    released = [tag.split("|") for tag in tags]
    rows = [[tag.removeprefix("v"), day, f"`git worktree add ../{tag} {tag} && ../{tag}/.ci/site`"] for tag, day in released]
    text = ["# Versions", "", f"These pages document **{version}**.", "", "## Released", ""]
    text += table([["version", "date", "its pages, in `target/site/html`"], *rows]) if rows else ["No version has been released.", ""]
    text.append("[Changes](CHANGELOG.md) lists what each version changes.")
    write(Path("versions.md"), "\n".join(text) + "\n")


def main() -> None:
    root, built = Path(sys.argv[1]), Path(sys.argv[2])
    (PAGES / CATALOGUE).mkdir(parents=True)
    repository = Repository(root, built)
    program = repository.program
    with tempfile.TemporaryDirectory() as runs:
        figures = Figures(root, program, Path(runs), PAGES / CATALOGUE)
        write_catalogue(repository, figures)
        picture = figures.home()
    write_versions(repository)
    write_python(repository)
    write_rust(repository, built / "doc")
    pages = [file for file in repository.files if file.suffix == ".md" and file.parts[0] in ROOT_PAGES + FOLDERS_OF_PAGES]
    for page in sorted(pages):
        repository.write_page(page, (root / page).read_text())
    home = PAGES / "README.md"
    home.write_text(PICTURE.sub(picture, home.read_text()))
    if repository.dead:
        sys.exit("these links lead nowhere:\n" + "\n".join(repository.dead))


if __name__ == "__main__":
    main()
