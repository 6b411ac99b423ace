"""Leagues: disciplines in situations, and services next to each other."""

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
    _check_lists(disciplines=disciplines, situations=situations)
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
    _warn(results)
    return League(results)


def services() -> list[str]:
    """Return the names of the built-in services."""
    return _native.services()


def pairs(
    services: Sequence[str | PathLike[str]] | None = None,
    *,
    disciplines: Sequence[str] | None = None,
    rates: Sequence[str] | None = None,
    length: str | None = None,
    seeds: int = 10,
    jobs: int = 0,
    folder: str | PathLike[str] | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    force: bool = False,
    cache: bool = False,
) -> Pairs:
    """Run each service next to each other on one link, after the protocol of Prudentia (SIGCOMM 2024).

    Parameters
    ----------
    services : sequence, optional
        Names of :func:`apportion.services`, and paths of files of flows without ends. Default: all built-in services.
    disciplines : sequence of str, optional
        Disciplines of the link, as in :func:`apportion.league`. Default: a FIFO of four bandwidth-delay products.
    rates : sequence of str, optional
        Rates of the link. Default: ``["8Mbit", "50Mbit"]``.
    length : str, optional
        Length of a trial, of which the middle six tenths count. Default: ``"120s"``.
    seeds, jobs, progress, force, cache
        Like those of :meth:`apportion.Scenario.run`.
    folder : str or path, optional
        Parent of a new folder for the page and the table.

    Returns
    -------
    Pairs
        The results.

    Raises
    ------
    ValueError
        If a list is empty or an argument is invalid.
    RunError
        If a name is unknown, the simulations are too large, or a file cannot be written.

    Examples
    --------
    >>> import apportion as ap
    >>> met = ap.pairs(["cubic", "flood"], rates=["8Mbit"], length="20s", seeds=1)
    >>> [row["score"] < 0.1 for row in met.cells if (row["incumbent"], row["contender"]) == ("cubic", "flood")]
    [True]
    """
    check(seeds, jobs)
    _check_lists(services=services, disciplines=disciplines, rates=rates)
    named = [fspath(one) for one in services or []]
    native = _native.Pairs(named, list(disciplines or []), list(rates or []), length, seeds)
    with shown(progress) as show:
        results = native.play(jobs, force, show, folder, _native.Cache() if cache else None)
    _warn(results)
    return Pairs(results)


def _check_lists(**lists: Sequence[object] | None) -> None:
    """Refuse a text in place of a list, and a list without elements."""
    for name, given in lists.items():
        if isinstance(given, str):
            raise ValueError(f"{name} is {given!r}; write a list, such as [{given!r}]")
        if given is not None and not len(given):
            raise ValueError(f"{name} is empty; leave it out for all")


def _warn(results: _native.LeagueResults) -> None:
    """Warn the caller's caller about what does not count."""
    if results.cache_failure:
        warnings.warn(f"{results.cache_failure}; results are not cached", stacklevel=3)
    if results.uncached:
        warnings.warn(results.uncached, stacklevel=3)
    for fault in results.faults:
        warnings.warn(f"not valid: {fault}", stacklevel=3)


def _name(scenario: Scenario) -> str:
    """Return the name of a scenario in a league, also used for its folder."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", scenario.title).strip("-").lower() or "scenario"


class _Played:
    """Results of a league or of pairs. A notebook shows them as text."""

    def __init__(self, native: _native.LeagueResults) -> None:
        self._native = native

    @cached_property
    def cells(self) -> Table:
        """The table of all cells."""
        return Table(self._native.cells)

    @property
    def folder(self) -> Path | None:
        """The folder of the results."""
        return self._native.folder

    def page(self) -> str:
        """Return the results as one page of HTML."""
        return self._native.page()


class League(_Played):
    """Results of a league. See :func:`apportion.league`.

    Its cells have every metric of every cell, one per row, with mean, half the interval, and why a discipline cannot run.
    """

    def __str__(self) -> str:
        """Show the worst share of each discipline in each situation, or all of a single situation."""
        return self._native.text()

    def __repr__(self) -> str:
        """Show the size of the league."""
        count = {name: len(set(self.cells[name])) for name in ("discipline", "situation")}
        return f"<apportion.League: {count['discipline']} disciplines in {count['situation']} situations>"


class Pairs(_Played):
    """Results of pairs. See :func:`apportion.pairs`.

    A cell is what an incumbent gets next to a contender: throughput over fair share, with quartiles, and the median time of its pages
    and files.
    """

    def __str__(self) -> str:
        """Show a grid for each rate and discipline."""
        return self._native.text()

    def __repr__(self) -> str:
        """Show the number of services and of grids."""
        grids = len({(row["rate_mbps"], row["discipline"]) for row in self.cells})
        return f"<apportion.Pairs: {len(set(self.cells['incumbent']))} services, {grids} grids>"
