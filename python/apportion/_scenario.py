"""Scenarios: what to simulate."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex

from . import _native
from ._events import Callbacks, Dropped, Marked, Sampled
from ._results import Point, Results, run
from ._table import suggestion


class Scenario:
    """A checked scenario: one point, or a point for each combination of swept values.

    Parameters
    ----------
    tables : mapping, optional
        The whole document, structured like a TOML file.
    origin : str or path, optional
        A path; files of the scenario are relative to its folder. Default: the current folder.
    **keywords
        Keys of the scenario: ``seed``, ``stop``, and the tables ``topology``, ``link``, ``flow`` and others, written as in a file.
        A list in place of a value is a sweep. `docs/scenario.md` lists all keys.

    Raises
    ------
    ScenarioError
        All problems, a line each, with key paths.

    Examples
    --------
    >>> s = Scenario(
    ...     seed=1,
    ...     stop="2s",
    ...     link={"x": {"from": "a", "to": "b", "rate": "2Mbit", "delay": "5ms", "queue": ["fifo", "drr"]}},
    ...     flow={"tcp": {"from": "a", "to": "b"}},
    ... )
    >>> [point.label for point in s.points]
    ['queue=fifo', 'queue=drr']
    """

    def __init__(
        self,
        tables: Mapping[str, Any] | None = None,
        /,
        *,
        origin: str | PathLike[str] | None = None,
        **keywords: Any,
    ) -> None:
        self._native = _native.Scenario.from_values({**(tables or {}), **keywords}, origin)

    @classmethod
    def _of(cls, native: _native.Scenario) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._native = native
        return scenario

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Scenario:
        """Read and check a scenario file.

        Parameters
        ----------
        path : str or path
            A TOML file. Files in it are relative to its folder.

        Raises
        ------
        ScenarioError
            If the file cannot be read, or all problems in it.
        """
        return cls._of(_native.Scenario.from_file(path))

    @classmethod
    def from_text(cls, text: str, origin: str | PathLike[str] | None = None) -> Scenario:
        """Check the text of a scenario.

        Parameters
        ----------
        text : str
            A TOML document.
        origin : str or path, optional
            The path in messages; files of the scenario are relative to its folder. Default: the current folder.

        Raises
        ------
        ScenarioError
            All problems in the text.
        """
        return cls._of(_native.Scenario.from_text(text, origin))

    def set(self, settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> Scenario:
        """Return a scenario with values replaced.

        Parameters
        ----------
        settings : mapping of str to value
            Values by key path, for example ``{"link.x.rate": "5Mbit"}``; a list is a sweep. All are set before the scenario is checked.
            ``rate``, ``delay``, ``queue`` and ``loss`` without a path are those of the only bottleneck.
        **keywords
            Values of keys without dots: ``stop="20s"``.

        Returns
        -------
        Scenario
            A new scenario; this one does not change.

        Raises
        ------
        ScenarioError
            All problems in the new scenario.

        Examples
        --------
        >>> import apportion as ap
        >>> len(ap.example("quickstart").set({"rate": ["5Mbit", "10Mbit"]}, stop="20s").points)
        8
        """
        return self._of(self._native.set({**(settings or {}), **keywords}))

    def run(
        self,
        seeds: int = 1,
        *,
        jobs: int = 0,
        phase_check: bool | None = None,
        progress: bool | Callable[[int, int], object] | None = None,
        folder: str | PathLike[str] | None = None,
        force: bool = False,
        cache: bool = False,
        on_drop: Callable[[Dropped], object] | None = None,
        on_mark: Callable[[Marked], object] | None = None,
        on_sample: Callable[[Sampled], object] | None = None,
    ) -> Results:
        """Simulate every point with every seed.

        Python stays responsive: the run does not hold the interpreter's lock.

        Parameters
        ----------
        seeds : int
            Replications of each point: the scenario's own seed first, then seeds derived from it. Default 1.
        jobs : int
            Replications at the same time. Default 0: one per core. Results do not depend on it.
        phase_check : bool, optional
            Whether to repeat each replication with all delays moved by 1 µs. This shows where results depend on phases
            (:attr:`Results.phase_sensitivity`) and doubles the time. Default: with more than one seed.
        progress : bool or callable, optional
            True or None: a bar in a terminal or notebook. False: nothing. A callable is called with the number of ended simulations
            and their total, at most twenty times a second; an exception in it ends the run.
        folder : str or path, optional
            Folder for the results, as for :meth:`Results.write`, with packet captures of links with ``pcap = true``.
        force : bool
            Run even if an estimate exceeds a day of CPU time or 2 GB of memory. Default False.
        cache : bool
            Take earlier simulations from the cache of the command ``apportion``, and add each replication when it ends, so that a
            killed run resumes. With own disciplines, congestion controls, transport stacks or ``on_...`` a warning says that it is not used.
            Default False.
        on_drop, on_mark, on_sample : callable, optional
            Called during the run: with a :class:`Dropped` for each packet that a discipline drops or a wire loses, with a
            :class:`Marked` for each marked packet, with a :class:`Sampled` at the end of each sample interval. An exception in them
            ends the run, with its traceback. Calls come one at a time, one replication after the other, in the order of points,
            seeds and time; perturbed copies are not reported.

        Returns
        -------
        Results
            The results. After an interrupt (Ctrl-C, or the stop button of a notebook) they are partial: ``complete`` is False and
            an :class:`IncompleteWarning` says so. A second interrupt while the run stops, or one before a replication has ended,
            raises KeyboardInterrupt.

        Raises
        ------
        RunError
            If the run is too large, or results cannot be written.
        ValueError
            If an argument is invalid.
        """
        return run(
            self._native, seeds, jobs, phase_check, progress, folder, force, cache, Callbacks(on_drop, on_mark, on_sample)
        )

    @property
    def title(self) -> str:
        """The title, also of reports."""
        return self._native.title

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of the sweep, the first axis slowest. Without a sweep: a single point, without a label."""
        return tuple(Point(label, dict(settings)) for label, settings in self._native.points)

    @property
    def canonical(self) -> str:
        """The scenario as TOML with all defaults. It loads back to the same scenario."""
        return self._native.canonical

    @property
    def hash(self) -> str:
        """A hash of the canonical text without the title: equal for scenarios that give equal results."""
        return self._native.hash

    def __eq__(self, other: object) -> bool:
        """Compare canonical texts."""
        return isinstance(other, Scenario) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __reduce__(self) -> tuple[Callable[..., Scenario], tuple[str, Path]]:
        """Pickle the canonical text, for other processes."""
        return Scenario.from_text, (self.canonical, self._native.origin)

    def __repr__(self) -> str:
        """Show the title and the number of points."""
        count = len(self._native.points)
        return f"<apportion.Scenario {self.title!r}: {count} point{'s' if count > 1 else ''}>"

    def _repr_html_(self) -> str:
        labels = "".join(f"<li>{html.escape(point.label)}</li>" for point in self.points if point.label)
        points = f"<ol>{labels}</ol>" if labels else ""
        return (
            f"<p><b>{html.escape(self.title)}</b></p>{points}"
            f"<details><summary>as TOML</summary><pre>{html.escape(self.canonical)}</pre></details>"
        )


def example(name: str) -> Scenario:
    """Return a built-in scenario.

    Parameters
    ----------
    name : str
        One of :func:`apportion.examples`, for example ``"quickstart"``.

    Raises
    ------
    KeyError
        If the name is unknown.
    """
    names = _native.example_names()
    if name not in names:
        raise KeyError(f"there is no example scenario {name!r}{suggestion(name, names)}; the names are {', '.join(names)}")
    return Scenario._of(_native.Scenario.from_example(name))


def dumbbell(
    flows: SupportsIndex | Mapping[str, Any] = 2,
    *,
    rate: str | Sequence[str] = "10Mbit",
    delay: str | Sequence[str] = "10ms",
    queue: Any = "fifo",
    access: Mapping[str, Any] | None = None,
    stop: str = "30s",
    measure_from: str = "5s",
    seed: int = 1,
    **keywords: Any,
) -> Scenario:
    """Build a dumbbell: hosts on the left, hosts on the right, and one bottleneck between two routers.

    Parameters
    ----------
    flows : int or mapping
        The number of greedy TCP flows, named ``tcp.1``, ``tcp.2`` and so on; or tables of flows by name, without ``from`` and ``to``.
        Each flow has its own pair of hosts, also each flow of a group with ``count``.
    rate, delay : str or sequence of str
        Rate and one-way delay of the bottleneck; lists are sweeps. Default 10 Mb/s and 10 ms.
    queue : str, mapping or sequence
        The discipline of the bottleneck. Default ``"fifo"``.
    access : mapping, optional
        Rate and delay of the links of hosts, with ``i`` for the number of the host. Default 10 Gb/s and 1 ms.
    stop, measure_from : str
        End of the run, and end of the warm-up. Default 30 s and 5 s.
    seed : int
        Seed of all random numbers. Default 1.
    **keywords
        Other keys of the scenario, for example ``title``.

    Returns
    -------
    Scenario
        The dumbbell. Its bottleneck is the link ``bottleneck``; to change it, set ``topology.bottleneck.rate`` or just ``rate``.

    Examples
    --------
    >>> import apportion as ap
    >>> s = ap.dumbbell({"bulk": {"count": 3}, "udp": {"source": {"kind": "cbr", "rate": "8Mbit"}}}, queue=["fifo", "drr"])
    >>> len(s.points)
    2
    """
    if not isinstance(flows, Mapping):
        flows = {"tcp": {"count": index(flows)}}
    tables: dict[str, dict[str, Any]] = {}
    pairs = 0
    for name, table in flows.items():
        count = table.get("count", 1)
        host = f"{{i + {pairs}}}" if pairs else "{i}"
        start = {"between": ["0s", "1s"]}
        tables[name] = {"start": start, **table, "from": f"l{host}", "to": f"r{host}"}
        # The scenario reports a swept or wrong count.
        with suppress(TypeError):
            pairs += index(count)
    topology = {
        "kind": "dumbbell",
        "pairs": pairs,
        "bottleneck": {"rate": rate, "delay": delay, "queue": queue},
        "access": {"rate": "10Gbit", "delay": "1ms", **(access or {})},
    }
    return Scenario(
        seed=seed, stop=stop, measure_from=measure_from, topology=topology, flow=tables, **{"title": "Dumbbell", **keywords}
    )
