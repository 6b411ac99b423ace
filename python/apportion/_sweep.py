"""Sweeps whose results have the axes of the sweep."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._events import Callbacks, Dropped, Marked, Sampled
from ._results import Results, check, of_run, run
from ._table import needing
from ._scenario import Scenario

if TYPE_CHECKING:
    import xarray

# Units of quantities with their factors to base units, for coordinates.
_UNITS = {
    "bit": (1.0, "bit/s"),
    "kbit": (1e3, "bit/s"),
    "Mbit": (1e6, "bit/s"),
    "Gbit": (1e9, "bit/s"),
    "ns": (1e-9, "s"),
    "us": (1e-6, "s"),
    "µs": (1e-6, "s"),
    "ms": (1e-3, "s"),
    "s": (1.0, "s"),
    "B": (1.0, "bytes"),
    "kB": (1e3, "bytes"),
    "MB": (1e6, "bytes"),
    "p": (1.0, "packets"),
    "%": (1e-2, ""),
    "": (1.0, ""),
}


def sweep(
    scenario: Scenario,
    settings: Mapping[Any, Any],
    /,
    *,
    seeds: int = 1,
    jobs: int = 0,
    phase_check: bool | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    force: bool = False,
    cache: bool = False,
    client: object | None = None,
    on_drop: Callable[[Dropped], object] | None = None,
    on_mark: Callable[[Marked], object] | None = None,
    on_sample: Callable[[Sampled], object] | None = None,
) -> Sweep:
    """Run a scenario for every combination of values.

    Parameters
    ----------
    scenario : Scenario
        The scenario to run.
    settings : mapping of str to sequence
        Lists of values by key path, as for :meth:`apportion.Scenario.set`. A tuple of key paths has tuples of values, which vary
        together as one axis.
    seeds, jobs, phase_check, progress, force, cache, on_drop, on_mark, on_sample
        Like those of :meth:`apportion.Scenario.run`.
    client : distributed.Client, optional
        A Dask cluster that simulates in place of this machine, always as with ``cache``: a failed or interrupted sweep resumes.
        Needs Dask: ``pip install 'apportion[cluster]'``.

    Returns
    -------
    Sweep
        The results with the axes of the sweep. They are the same with a cluster and without.

    Raises
    ------
    ValueError
        If an argument is invalid, or a cluster is to call functions of this process.
    RunError
        Like :meth:`apportion.Scenario.run`. With a cluster also if its scheduler is lost, a worker has another build of apportion or
        too little memory, or the scenario has disciplines or congestion controls registered in Python.

    Examples
    --------
    >>> import apportion as ap
    >>> s = ap.dumbbell(2, stop="12s", measure_from="2s")
    >>> w = ap.sweep(s, {"rate": ["2Mbit", "4Mbit"], "queue": ["fifo", "drr"]}, seeds=2)
    >>> w.axes
    {'rate': ['2Mbit', '4Mbit'], 'queue': ['fifo', 'drr']}
    """
    lists = _lists(scenario, settings)
    swept = scenario.set(lists)
    callbacks = Callbacks(on_drop, on_mark, on_sample)
    if client is not None:
        if called := callbacks.names():
            raise ValueError(f"the workers of a cluster cannot call {' and '.join(called)}: leave that out, or `client`")
        check(seeds, jobs)
        from . import _cluster

        native, interrupted = _cluster.run(client, swept._native, seeds, phase_check, force, progress)
        return Sweep(swept, of_run(native, interrupted, seeds, 3), list(lists))
    results = run(swept._native, seeds, jobs, phase_check, progress, None, force, cache, callbacks)
    return Sweep(swept, results, list(lists))


def _lists(scenario: Scenario, settings: Mapping[Any, Any]) -> dict[str, Any]:
    """Return lists of values by key path, with those that vary together."""
    lists: dict[str, Any] = {}
    together = []
    for key, values in settings.items():
        if isinstance(key, str):
            lists[key] = values
            continue
        rows = [(row,) if isinstance(row, str) else tuple(row) for row in values]
        if wrong := [row for row in rows if len(row) != len(key)]:
            raise ValueError(f"{wrong[0]!r} is no tuple of {len(key)} values, one for each of {', '.join(key)}")
        lists.update(zip(key, map(list, zip(*rows))))
        together.append(list(key))
    if together and "\n[sweep]\n" in scenario.canonical:
        raise ValueError("the scenario says itself which lists vary together, under [sweep]; set them there")
    return {**lists, "sweep.zip": together} if together else lists


class Sweep:
    """The results of a sweep. See :func:`apportion.sweep`.

    Attributes
    ----------
    scenario : Scenario
        The scenario with the sweep.
    results : Results
        All tables.
    """

    def __init__(self, scenario: Scenario, results: Results, order: list[str]) -> None:
        self.scenario = scenario
        self.results = results
        keys = list(scenario.points[0].settings)
        last = [key.rsplit(".", 1)[-1] for key in keys]
        names = {name if last.count(name) == 1 else key: key for key, name in zip(keys, last)}
        places = {key.rsplit(".", 1)[-1]: place for place, key in enumerate(order)}
        # The keys of `settings` come last, in the order given.
        all_keys = dict(sorted(names.items(), key=lambda pair: places.get(pair[1].rsplit(".", 1)[-1], -1)))
        # Keys that vary together are one axis, named by the first; the others refer to it.
        self._keys: dict[str, str] = {}
        self._others: dict[str, str] = {}
        for name, key in all_keys.items():
            axis = next((axis for axis, first in self._keys.items() if self._vary_together(first, key)), None)
            if axis is None:
                self._keys[name] = key
            else:
                self._others[name] = axis
        self._paths = names

    def _vary_together(self, first: str, second: str) -> bool:
        points = [point.settings for point in self.scenario.points]
        pairs = {(point[first], point[second]) for point in points}
        values = [len({point[key] for point in points}) for key in (first, second)]
        return values == [len(pairs)] * 2 and len(pairs) > 1

    @property
    def axes(self) -> dict[str, list[str]]:
        """The values of each axis, named by the last part of its key path if that is unique, else by the path.

        Lists that vary together are one axis, named by the first.
        """
        points = self.scenario.points
        return {name: list(dict.fromkeys(point.settings[key] for point in points)) for name, key in self._keys.items()}

    def to_xarray(self, table: str = "flows") -> xarray.Dataset:
        """Return a table as a data set with a dimension per axis.

        Parameters
        ----------
        table : str
            ``"flows"`` (the default) or ``"links"``.

        Returns
        -------
        xarray.Dataset
            Its dimensions are the axes, ``replication``, and ``flow`` or ``link``; its variables are the numeric columns, with units as
            attributes. Axes of quantities have numeric coordinates, in bit/s, s, bytes or packets. A list that varies together with an
            axis is a second coordinate of its dimension. Replications that an interrupt left out are NaN. Needs xarray:
            ``pip install 'apportion[xarray]'``.

        Raises
        ------
        ValueError
            If the table is another one.
        """
        with needing("arrays with axes", "'apportion[xarray]'"):
            import numpy
            import xarray

        if table not in ("flows", "links"):
            raise ValueError(f"{table!r} has no form with axes; `flows` and `links` have, and `results` has all tables")
        source = getattr(self.results, table)
        item = table[:-1]
        axes = self.axes
        points = {
            point.label: tuple(point.settings[key] for key in self._keys.values()) for point in self.scenario.points
        }
        places = [{value: place for place, value in enumerate(values)} for values in axes.values()]
        items = {name: place for place, name in enumerate(dict.fromkeys(source[item]))}
        shape = (*map(len, places), len(self.results.seeds), len(items))

        # Points can set another seed, so the order identifies a replication.
        cells = []
        replications: dict[str, dict[int, int]] = {}
        for point, seed, name in zip(source["point"], source["seed"], source[item]):
            of_point = replications.setdefault(point, {})
            values = tuple(axis[value] for axis, value in zip(places, points[point]))
            cells.append((*values, of_point.setdefault(seed, len(of_point)), items[name]))
        index = tuple(numpy.array(cells, dtype=numpy.intp).reshape(len(cells), len(shape)).T)

        dimensions = (*axes, "replication", item)
        data = xarray.Dataset(coords={name: _coordinate(name, values) for name, values in axes.items()})
        for name, axis in self._others.items():
            pairs = dict.fromkeys(
                (point.settings[self._keys[axis]], point.settings[self._paths[name]]) for point in self.scenario.points
            )
            _, numbers, attributes = _coordinate(name, [value for _, value in pairs])
            data = data.assign_coords({name: (axis, numbers, attributes)})
        data = data.assign_coords({"replication": range(len(self.results.seeds)), item: list(items)})
        if table == "flows":
            group_of = dict(zip(source["flow"], source["group"]))
            data = data.assign_coords(group=(item, [group_of[name] for name in items]))
        for column in source.columns:
            if column.kind in ("number", "integer") and column.name != "seed":
                array = numpy.full(shape, numpy.nan)
                array[index] = [numpy.nan if cell is None else cell for cell in source[column.name]]
                attributes = {"units": column.unit} if column.unit else {}
                data[column.name] = (dimensions, array, attributes)
        return data

    def __repr__(self) -> str:
        """Show the axes."""
        axes = ", ".join(f"{name} × {len(values)}" for name, values in self.axes.items())
        return f"<apportion.Sweep of {axes}: {self.results!r}>"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


def _coordinate(name: str, values: list[str]) -> tuple[str, list[Any], dict[str, str]]:
    """Return a coordinate: numbers, if all values are numbers with units of one kind."""
    found = [re.fullmatch(r"(-?[0-9.]+(?:e-?[0-9]+)?)\s*(\D*)", value) for value in values]
    units = [_UNITS.get(match[2]) if match else None for match in found]
    kinds = {unit[1] if unit else None for unit in units}
    if len(kinds) != 1 or None in kinds:
        return (name, list(values), {})
    numbers = [float(match[1]) * unit[0] for match, unit in zip(found, units) if match and unit]
    kind = next(iter(kinds))
    return (name, numbers, {"units": kind} if kind else {})
