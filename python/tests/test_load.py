"""Results read from folders."""

from pathlib import Path

import pytest

import apportion as ap

TABLES = ["flows", "links", "series", "allocations", "completions", "media", "statistics", "responses", "phase_sensitivity"]


@pytest.fixture(scope="module")
def folder(results: ap.Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results.write(tmp_path_factory.mktemp("results") / "small")


def test_they_are_what_was_written(results: ap.Results, folder: Path) -> None:
    read = ap.load(folder)
    for name in TABLES:
        one, other = getattr(read, name), getattr(results, name)
        assert one.columns == other.columns and one.to_dict() == other.to_dict(), name
    assert len(read.phase_sensitivity) > 0 < len(read.series)
    assert list(read.shares) == list(results.shares)
    for name in ("points", "seeds", "complete", "warnings"):
        assert getattr(read, name) == getattr(results, name), name
    assert read.warnings and repr(read) == repr(results)
    assert read.summary() == results.summary() and read.json_lines() == results.json_lines()
    assert read.report() == (folder / "report.html").read_text() == results.report()


def test_a_folder_of_several_has_the_last(small: ap.Scenario, folder: Path) -> None:
    second = small.run(progress=False, folder=folder.parent)
    assert second.folder == folder.parent / "2"
    assert ap.load(folder.parent).seeds == ap.load(folder.parent / "latest").seeds == second.seeds
    assert ap.load(folder).folder == folder and len(ap.load(str(folder)).seeds) == 2


def test_figures_but_that_of_delays(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    read = ap.load(folder)
    assert len(read.shares.plot().axes) == 1 and read.plot.throughput().axes
    assert read.plot.cdf("delay_p95_ms").axes
    with pytest.raises(ValueError, match="do not have the distribution of delays; draw a column"):
        read.plot.cdf("delay")


def test_they_are_not_written_again(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ap.RunError, match="copy the folder"):
        ap.load(folder).write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_an_interrupt_left_out_is_missing(small: ap.Scenario, tmp_path: Path) -> None:
    run = small._native.run(seeds=2, jobs=1, phase_check=False, force=False, progress=None, folder=tmp_path, only_cached=True)
    assert not run[0].complete and run[0].folder is None
    run[0].write(tmp_path)
    read = ap.load(tmp_path)
    assert not read.complete and len(read.flows) == 0 and "0 replications, incomplete" in repr(read)


@pytest.mark.parametrize(("name", "cause"), [("none", "no such folder"), ("empty", "holds no run"), ("file", "it is a file")])
def test_a_wrong_folder_is_named(tmp_path: Path, name: str, cause: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ap.RunError, match=f"`{tmp_path / name}`: .*{cause}.*; name a folder that `apportion run"):
        ap.load(tmp_path / name)


def test_a_changed_table_is_named(small: ap.Scenario, tmp_path: Path) -> None:
    small.run(progress=False, folder=tmp_path)
    with (tmp_path / "1" / "responses.parquet").open("ab") as table:
        table.write(b"x")
    with pytest.raises(ap.RunError, match=r"responses\.parquet`: it is not the table that was written"):
        ap.load(tmp_path)
