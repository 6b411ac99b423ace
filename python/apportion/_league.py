"""Leagues: disciplines in situations."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path

from . import _native
from ._progress import shown
from ._results import check
from ._scenario import Scenario
from ._table import Table


def situations() -> list[str]:
    """Return the names of the built-in situations."""
    return _native.situations()


def league(
    disciplines: Sequence[str] | None = None,
    situations: Sequence[str | PathLike[str] | Scenario] | None = None,
    *,
    seeds: int = 5,
    jobs: int = 0,
    phase_check: bool | None = None,
    folder: str | PathLike[str] | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    force: bool = False,
    cache: bool = False,
    client: object | None = None,
) -> League:
    """Run disciplines in situations, all with the same TCP, buffer and seeds.

    Parameters
    ----------
    disciplines : sequence of str, optional
        Names, for example ``"fifo"``, ``"stfq+pfd"`` and ``"fq_codel+isolate"``, or tables as text, for example
        ``'{ kind = "pie", target = "5ms" }'``. A :func:`registered <apportion.register>` discipline takes part by its name. Default: all.
    situations : sequence, optional
        Names of :func:`apportion.situations`, paths of scenario files, and scenarios, named by their title. The disciplines replace
        the list of queues, or the only queue. Default: all built-in situations.
    seeds, jobs, phase_check, progress, force, cache
        Like those of :meth:`apportion.Scenario.run`.
    folder : str or path, optional
        Parent of a new folder for the league, with the page, a report of each cell and the table.
    client : distributed.Client, optional
        A Dask cluster that simulates, as for :func:`apportion.sweep`.

    Returns
    -------
    League
        The results.

    Raises
    ------
    ValueError
        If a list is empty or an argument is invalid.
    RunError
        If a name is unknown, the league is too large, or a file cannot be written; with a cluster also as for :func:`apportion.sweep`.

    Examples
    --------
    >>> import apportion as ap
    >>> won = ap.league(["fifo", "drr"], ["floods"], seeds=1)
    >>> {row["discipline"]: row["mean"] > 0.9 for row in won.cells if row["metric"] == "worst_share"}
    {'fifo': False, 'drr': True}
    """
    check(seeds, jobs)
    for name, given in (("disciplines", disciplines), ("situations", situations)):
        if isinstance(given, str):
            raise ValueError(f"{name} is {given!r}; write a list, such as [{given!r}]")
        if given is not None and not len(given):
            raise ValueError(f"{name} is empty; leave it out for all")
    wanted = list(situations or [])
    own = [(_name(one), one._native) for one in wanted if isinstance(one, Scenario)]
    named = [fspath(one) for one in wanted if not isinstance(one, Scenario)]
    native = _native.League(list(disciplines or []), named, own, seeds, phase_check)
    kept = _native.Cache() if cache or client is not None else None
    if client is not None and kept is not None:
        from . import _cluster

        _cluster.fill(client, native.scenarios(), seeds, phase_check, force, progress, kept)
        progress = False
    with shown(progress) as show:
        results = native.play(jobs, force, show, folder, kept)
    if results.cache_failure:
        warnings.warn(f"{results.cache_failure}; results are not cached", stacklevel=2)
    for fault in results.faults:
        warnings.warn(f"not valid: {fault}", stacklevel=2)
    return League(results)


def _name(scenario: Scenario) -> str:
    """Return the name of a scenario in a league, also used for its folder."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", scenario.title).strip("-").lower() or "scenario"


class League:
    """Results of a league. See :func:`apportion.league`.

    A notebook shows them as text.
    """

    def __init__(self, native: _native.LeagueResults) -> None:
        self._native = native

    @cached_property
    def cells(self) -> Table:
        """Every metric of every cell, one per row, with mean, half the interval, and why a discipline cannot run."""
        return Table(self._native.cells)

    @property
    def folder(self) -> Path | None:
        """The folder of the league."""
        return self._native.folder

    def page(self) -> str:
        """Return the league as one page of HTML."""
        return self._native.page()

    def __str__(self) -> str:
        """Show the worst share of each discipline in each situation, or all of a single situation."""
        return self._native.text()

    def __repr__(self) -> str:
        """Show the size of the league."""
        count = {name: len(set(self.cells[name])) for name in ("discipline", "situation")}
        return f"<apportion.League: {count['discipline']} disciplines in {count['situation']} situations>"
