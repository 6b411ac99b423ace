"""Leagues in Python."""

from collections import deque
from pathlib import Path
from typing import Any

import pytest

import apportion as ap


def worst(league: ap.League) -> dict[tuple[str, str], float]:
    """Return the worst share by situation and discipline."""
    rows = [row for row in league.cells if row["metric"] == "worst_share"]
    return {(row["situation"], row["discipline"]): row["mean"] for row in rows}


class Waiting:
    """A FIFO in Python."""

    def __init__(self, link: Any, limit: str = "50p") -> None:
        self.limit: Any = limit
        self.waiting: deque[Any] = deque()

    def enqueue(self, now: float, packet: Any) -> None:
        self.waiting.append(packet)
        if len(self.waiting) > self.limit:
            self.waiting.pop().drop("overflow")

    def dequeue(self, now: float) -> Any:
        return self.waiting.popleft() if self.waiting else None


def test_a_discipline_and_a_scenario_of_ones_own_join_by_name(small: ap.Scenario, tmp_path: Path) -> None:
    ap.register(Waiting, name="league_fifo")
    play = ap.league(["fifo", "drr", "league_fifo"], ["floods", small], seeds=1, folder=tmp_path)
    shares = worst(play)
    name = next(situation for situation, _ in shares if situation != "floods")
    assert {discipline for situation, discipline in shares if situation == name} == {"fifo", "drr", "league_fifo"}
    assert shares["floods", "drr"] > 0.95
    assert shares["floods", "fifo"] < 0.1 and shares["floods", "league_fifo"] < 0.1
    assert play.folder is not None
    assert (play.folder / "league.html").read_text().count("<tr>") == play.page().count("<tr>")
    assert (play.folder / "cells" / name / "league_fifo.html").exists()
    assert repr(play) == "<apportion.League: 3 disciplines in 2 situations>"
    assert "drr" in str(play)


def test_what_a_discipline_raises_comes_out(small: ap.Scenario) -> None:
    class Failing(Waiting):
        def dequeue(self, now: float) -> Any:
            raise ZeroDivisionError("of the league")

    ap.register(Failing, name="league_failing")
    with pytest.raises(ZeroDivisionError, match="of the league"):
        ap.league(["league_failing"], [small], seeds=1)


def test_cells_are_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    cells = ap.league(["fifo", "drr"], ["guarantees", "floods"], seeds=2, phase_check=False).cells.to_pandas()
    assert isinstance(cells, pandas.DataFrame)
    jain = cells[(cells["metric"] == "jain") & (cells["situation"] == "floods")].set_index("discipline")
    fifo, drr = (float(mean) for mean in jain["mean"].loc[["fifo", "drr"]])
    assert drr > fifo
    assert set(jain["seeds"]) == {2}
    reasons = cells[cells["situation"] == "guarantees"]["reason"]
    assert set(reasons) == {"it knows no guarantees"}


def test_an_empty_list_and_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="disciplines is empty"):
        ap.league([])
    with pytest.raises(ValueError, match="write a list"):
        ap.league("fifo")
    with pytest.raises(ap.RunError, match="did you mean `floods`"):
        ap.league(["fifo"], ["flods"], seeds=1)
    assert "floods" in ap.situations()


def test_pairs_have_a_score_for_each_and_times_of_pages(tmp_path: Path) -> None:
    met = ap.pairs(["cubic", "web"], disciplines=["fifo", "drr+isolate"], rates=["8Mbit"], length="25s", seeds=2, folder=tmp_path)
    assert repr(met) == "<apportion.Pairs: 2 services, 2 grids>"
    cells = {(row["discipline"], row["contender"], row["incumbent"]): row for row in met.cells}
    assert len(cells) == 2 * 4
    assert cells["fifo", "web", "cubic"]["completion_p50_s"] is None
    # A FIFO that a file has filled delays pages.
    late, early = (cells[discipline, "cubic", "web"] for discipline in ("fifo", "drr+isolate"))
    assert late["completion_p50_s"] > 1.3 * early["completion_p50_s"]
    assert late["completion_p50_s"] > 1.3 * late["alone_completion_p50_s"] > 0
    assert met.folder is not None and (met.folder / "pairs.html").exists()
    assert "web" in str(met)


def test_pairs_refuse_unknown_names_and_units() -> None:
    with pytest.raises(ValueError, match="services is empty"):
        ap.pairs([])
    with pytest.raises(ValueError, match="rates: \"8\""):
        ap.pairs(["cubic"], rates=["8"])
    with pytest.raises(ap.RunError, match="did you mean `cubic`"):
        ap.pairs(["cubi"], seeds=1)
    assert "web" in ap.services()
