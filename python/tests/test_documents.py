"""The examples of documents and docstrings run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import apportion

ROOT = Path(__file__).parents[2]
MODULES = [name for _, name, _ in pkgutil.iter_modules(apportion.__path__) if name not in ("__main__", "_native")]


@pytest.mark.parametrize(("page", "least"), [("python.md", 5), ("cluster.md", 1)])
def test_a_page_runs(page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("polars", "pandas", "pyarrow", "distributed"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APPORTION_CACHE_DIR", str(tmp_path / "cache"))
    text = (ROOT / "docs" / page).read_text()
    names: dict[str, object] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= least
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], f"docs/{page}", "exec"), names)


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_docstrings_run(name: str) -> None:
    if name == "_cluster":
        pytest.importorskip("distributed")
    module = apportion if name == "__init__" else importlib.import_module(f"apportion.{name}")
    assert doctest.testmod(module).failed == 0


def test_everything_public_is_documented() -> None:
    for name in apportion.__all__:
        assert name.startswith("__") or getattr(apportion, name).__doc__, name
