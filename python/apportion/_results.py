"""Runs of scenarios, and their results."""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable
from functools import cached_property
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import _native
from ._events import Callbacks
from ._progress import shown
from ._shares import Shares
from ._table import Table, needing

if TYPE_CHECKING:
    from ._plot import Plots


class Point(NamedTuple):
    """A point of the sweep of a scenario.

    Attributes
    ----------
    label : str
        Its name in tables, for example ``queue=drr, rate=10Mbit``; empty without a sweep.
    settings : dict of str to str
        Its values by key path.
    """

    label: str
    settings: dict[str, str]


class IncompleteWarning(UserWarning):
    """A run was interrupted; its results are partial."""


class ScenarioWarning(UserWarning):
    """A run probably does not mean what its author expects; see :attr:`apportion.Results.warnings`."""


def run(
    scenario: _native.Scenario,
    seeds: int,
    jobs: int,
    phase_check: bool | None,
    progress: bool | Callable[[int, int], object] | None,
    folder: str | PathLike[str] | None,
    force: bool,
    cache: bool,
    callbacks: Callbacks,
) -> Results:
    """Run a scenario; see :meth:`apportion.Scenario.run`."""
    check(seeds, jobs)
    kept = _native.Cache() if cache else None
    with shown(progress) as show:
        results, interrupted = scenario.run(
            seeds=seeds, jobs=jobs, phase_check=phase_check, force=force, progress=show, folder=folder, callbacks=callbacks, cache=kept
        )
    if results.cache_failure:
        warnings.warn(f"{results.cache_failure}; results are not cached", stacklevel=3)
    if results.uncached:
        warnings.warn(results.uncached, stacklevel=3)
    return of_run(results, interrupted, seeds, 4)


def check(seeds: int, jobs: int) -> None:
    """Refuse invalid numbers."""
    for name, count in (("seeds", seeds), ("jobs", jobs)):
        try:
            index(count)
        except TypeError:
            raise TypeError(f"{name} is {count!r}; write a whole number") from None
    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; at least one replication is needed")
    if jobs < 0:
        raise ValueError(f"jobs is {jobs}; write 0 for one replication on each core")


def of_run(results: _native.Results, interrupted: bool, seeds: int, caller: int) -> Results:
    """Return the results of a run. Warn the caller at this stack level about doubtful results and an early end."""
    if interrupted:
        done = sum(count for _, _, count in results.points)
        planned = seeds * len(results.points)
        message = f"interrupted: {done} of {planned} replications have ended, and the results have these"
        if results.cut:
            message = f"interrupted at {results.cut}: the results are partial, of what the replication measured until then"
        warnings.warn(message, IncompleteWarning, stacklevel=caller)
    for warning in results.warnings:
        warnings.warn(warning, ScenarioWarning, stacklevel=caller)
    return Results(results)


def load(folder: str | PathLike[str]) -> Results:
    """Read results from a folder.

    Parameters
    ----------
    folder : str or path
        The folder of the results, for example ``results/x/1`` or ``results/x/latest``; ``results/x`` means the last results.

    Returns
    -------
    Results
        All tables as written, and everything derived from them. The distribution of packet delays is not stored, so
        ``plot.cdf("delay")`` and :meth:`Results.write` are refused. :meth:`Results.report` is the page of the folder.

    Raises
    ------
    RunError
        If the folder has no results, or its results were changed or are of another version.
    """
    return Results(_native.Results.read(folder))


class Results:
    """Results of a run as tables. See :meth:`apportion.Scenario.run` and :func:`apportion.load`."""

    def __init__(self, native: _native.Results) -> None:
        self._native = native

    @cached_property
    def flows(self) -> Table:
        """Throughput, delay and drops of each flow: by point, replication and flow."""
        return Table(self._native.table("flows"))

    @cached_property
    def links(self) -> Table:
        """Throughput, delay and drops of each link: by point, replication and link."""
        return Table(self._native.table("links"))

    @cached_property
    def series(self) -> Table:
        """Throughput, backlog, window and round-trip time in each sample interval: flows first, then watched links.

        Empty after more than a thousand replications, over all points.
        """
        return Table(self._native.table("series"))

    @cached_property
    def allocations(self) -> Table:
        """Rates that watched links allocated to flows in each sample interval, if their discipline does so; empty like :attr:`series`."""
        return Table(self._native.table("allocations"))

    @cached_property
    def completions(self) -> Table:
        """Finite transfers that finished."""
        return Table(self._native.table("completions"))

    @cached_property
    def media(self) -> Table:
        """Quality of video and calls: rate, stalls, mouth-to-ear delay and mean opinion score."""
        return Table(self._native.table("media"))

    @cached_property
    def statistics(self) -> Table:
        """Statistics reported by the disciplines of links."""
        return Table(self._native.table("statistics"))

    @cached_property
    def responses(self) -> Table:
        """Responses of flows to each event that changes their entitlements."""
        return Table(self._native.table("responses"))

    @cached_property
    def phase_sensitivity(self) -> Table:
        """Results that depend on phases, and by how much; empty without ``phase_check``."""
        return Table(self._native.table("phase_sensitivity"))

    @cached_property
    def shares(self) -> Shares:
        """Throughput of each flow over its entitlement, by point: means over replications. ``shares.plot()`` draws them."""
        return Shares(self.flows)

    @property
    def plot(self) -> Plots:
        """Figures: ``plot.throughput()`` over time, ``plot.cdf("delay")``. They need matplotlib."""
        with needing("figures", "'apportion[plot]'"):
            from ._plot import Plots

        return Plots(self)

    @property
    def points(self) -> tuple[Point, ...]:
        """The points, in the order of the scenario."""
        return tuple(Point(label, dict(settings)) for label, settings, _ in self._native.points)

    @property
    def folder(self) -> Path | None:
        """The folder that the results were read from or that the run wrote; None without one."""
        return self._native.folder

    @property
    def complete(self) -> bool:
        """Whether every replication of every point has ended; False after an interrupt."""
        return self._native.complete

    @property
    def cut(self) -> str | None:
        """Where an interrupt cut the replication, for example ``12.3 of 60.0 s of simulated time``; None if a replication had ended."""
        return self._native.cut

    @property
    def warnings(self) -> tuple[str, ...]:
        """Signs that the run probably does not mean what its author expects, a sentence each.

        An unwatched link limits the flows, the measured time is too short, a ``ramp`` has no flow to reserve for, or a guarantee has
        no effect. A run issues each as a :class:`apportion.ScenarioWarning`.
        """
        return tuple(self._native.warnings)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the replications, as planned."""
        return tuple(self._native.seeds)

    def summary(self) -> str:
        """Return a summary for a terminal: at most 25 lines."""
        return self._native.summary()

    def report(self) -> str:
        """Return the report as a self-contained HTML page."""
        return self._native.report()

    def json_lines(self) -> str:
        """Return run, metrics and phase sensitivity as JSON, one object a line, like ``apportion run --json``."""
        return self._native.json_lines()

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write tables and report to a new folder below ``folder``, like ``apportion run --out``: all or nothing.

        Parameters
        ----------
        folder : str or path
            Parent of the new folder: ``folder/1`` for the first results, ``folder/2`` for the next.

        Returns
        -------
        pathlib.Path
            The folder of these results. Its tables are Parquet files.

        Raises
        ------
        RunError
            If the folder cannot be written.
        """
        return self._native.write(folder)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def __repr__(self) -> str:
        """Show the number of points and replications."""
        points = self._native.points
        done = sum(count for _, _, count in points)
        state = "" if self.complete else ", incomplete"
        return f"<apportion.Results: {len(points)} points, {done} replications{state}>"

    def _repr_html_(self) -> str:
        text = html.escape(self.summary())
        return f"{self.shares._repr_html_()}<details><summary>summary</summary><pre>{text}</pre></details>"
