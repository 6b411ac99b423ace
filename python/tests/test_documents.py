"""The examples of documents and docstrings run."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import apportion

ROOT = Path(__file__).parents[2]
MODULES = [name for _, name, _ in pkgutil.iter_modules(apportion.__path__) if name not in ("__main__", "_native")]


# Kinds of blocks, by the words after the fence: "python" and "sh" run, "text" has beginnings of lines that the block before prints, a title
# names a file.
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')


def pages() -> list[Path]:
    """Return the pages with Python. Pages to be followed step by step also run their blocks of "sh"."""
    found = [ROOT / "docs" / page for page in ("python.md", "cluster.md", "lecturer.md")]
    found += sorted(page for folder in ("tutorials", "howto") for page in (ROOT / "docs" / folder).glob("*.md"))
    return [page for page in found if "\n```python\n" in page.read_text()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("polars", "pandas", "pyarrow", "xarray", "matplotlib", "distributed"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.setenv("APPORTION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    text = page.read_text()
    names: dict[str, object] = {}
    for block in BLOCK.finditer(text):
        words, content = block.groups()
        if title := TITLE.search(words):
            (tmp_path / title[1]).write_text(content)
        elif words == "python":
            capsys.readouterr()
            line = text.count("\n", 0, block.start(2))
            exec(compile("\n" * line + content, page.name, "exec"), names)
        elif words == "text":
            printed = iter(capsys.readouterr().out.splitlines())
            for shown in content.splitlines():
                assert any(line.startswith(shown) for line in printed), shown
        elif words == "sh" and page.parent.name != "docs":
            subprocess.run(["/bin/sh", "-euc", content], check=True)


def test_pages_with_python_are_found() -> None:
    assert {"python", "cluster", "lecturer", "from-python"} <= {page.stem for page in pages()}


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_docstrings_run(name: str) -> None:
    if name == "_cluster":
        pytest.importorskip("distributed")
    module = apportion if name == "__init__" else importlib.import_module(f"apportion.{name}")
    assert doctest.testmod(module).failed == 0


def test_everything_public_is_documented() -> None:
    for name in apportion.__all__:
        assert name.startswith("__") or getattr(apportion, name).__doc__, name
