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
    """Return the names of the situations that are built in."""
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
    """Run disciplines in situations, each the others' equal in TCP, buffer and seeds.

    Parameters
    ----------
    disciplines : sequence of str, optional
        Names such as ``"fifo"``, ``"stfq+pfd"`` and ``"fq_codel+isolate"``, or tables as text, such as
        ``'{ kind = "pie", target = "5ms" }'``. One that is :func:`registered <apportion.register>` here joins by its name. Default: all.
    situations : sequence, optional
        Names of :func:`apportion.situations`, paths of scenario files, and scenarios, which are called by their title. The disciplines
        take the place of the list of queues, or of the only queue. Default: all that are built in.
    seeds, jobs, phase_check, progress, force, cache
        As of :meth:`apportion.Scenario.run`.
    folder : str or path, optional
        Where the league gets a folder of its own, with the page, a report of each cell and the table.
    client : distributed.Client, optional
        A Dask cluster that simulates, as of :func:`apportion.sweep`.

    Returns
    -------
    League
        What was measured.

    Raises
    ------
    ValueError
        If a list is empty or an argument makes no sense.
    RunError
        If a name is unknown, the league is too large, or a file cannot be written; with a cluster also as :func:`apportion.sweep`.

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
        warnings.warn(f"{results.cache_failure}; what was simulated is not kept for other runs", stacklevel=2)
    for fault in results.faults:
        warnings.warn(f"not valid: {fault}", stacklevel=2)
    return League(results)


def _name(scenario: Scenario) -> str:
    """What a league calls a scenario, which is the name of a folder too."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", scenario.title).strip("-").lower() or "scenario"


class League:
    """A league that was run. See :func:`apportion.league`.

    In a notebook it shows itself as its text.
    """

    def __init__(self, native: _native.LeagueResults) -> None:
        self._native = native

    @cached_property
    def cells(self) -> Table:
        """Every metric of every cell: one a row, with mean, half of the interval, and why a discipline cannot run."""
        return Table(self._native.cells)

    @property
    def folder(self) -> Path | None:
        """The folder that it was written to."""
        return self._native.folder

    def page(self) -> str:
        """Return the league as one page of HTML."""
        return self._native.page()

    def __str__(self) -> str:
        """Show the worst share of each discipline in each situation, or all of a single situation."""
        return self._native.text()

    def __repr__(self) -> str:
        """Say how much there is."""
        count = {name: len(set(self.cells[name])) for name in ("discipline", "situation")}
        return f"<apportion.League: {count['discipline']} disciplines in {count['situation']} situations>"
