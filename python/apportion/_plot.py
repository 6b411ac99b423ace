"""Figures, by matplotlib."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure as _Figure

from ._table import suggestion

if TYPE_CHECKING:
    from ._results import Results
    from ._shares import Share
    from ._table import Table

# Okabe and Ito: distinguishable with all common forms of colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# Chosen: more lines or panels than these cannot be told apart.
_MOST_LINES = 8
_MOST_PANELS = 12


class Figure(_Figure):
    """A figure that a notebook shows without global state of pyplot."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=120)
        return out.getvalue()


def shares(rows: Sequence[Share]) -> Figure:
    """Draw :class:`apportion._shares.Shares`: shares, or throughputs if no flow has an entitlement."""
    rated = any(row.share is not None for row in rows)
    # An axis has one quantity: flows without an entitlement have no share.
    left_out = list(dict.fromkeys(row.group for row in rows if rated and row.share is None))
    rows = [row for row in rows if not rated or row.share is not None]
    points = list(dict.fromkeys(row.point for row in rows))
    groups = list(dict.fromkeys(row.group for row in rows))
    figure = Figure(figsize=(max(5.0, 1.2 + 1.1 * len(points)), 3.6), layout="constrained")
    axes = figure.subplots()
    for number, group in enumerate(groups):
        xs, ys, errors = [], [], []
        for place, point in enumerate(points):
            members = [row for row in rows if row.point == point and row.group == group]
            for nth, row in enumerate(members):
                # Groups stand side by side, with their members spread over the group's part.
                within = (nth + 0.5) / len(members) - 0.5
                xs.append(place + 0.8 * ((number + 0.5 + 0.7 * within) / len(groups) - 0.5))
                ys.append(row.throughput if row.share is None else row.share)
                errors.append(row.interval or 0.0)
        style: dict[str, Any] = {"fmt": "o", "markersize": 4, "elinewidth": 1, "color": _COLOURS[number % len(_COLOURS)]}
        axes.errorbar(xs, ys, yerr=errors, label=group, **style)
    if rated:
        axes.axhline(1.0, color="0.5", linewidth=0.8, zorder=0)
    axes.set_ylabel("throughput / entitlement" if rated else "throughput, Mb/s")
    axes.set_ylim(bottom=0)
    if left_out:
        axes.set_title(f"without an entitlement: {', '.join(left_out)}", fontsize="small", loc="left")
    axes.set_xticks(range(len(points)), [_wrapped(point, 14) for point in points])
    axes.set_xlim(-0.5, len(points) - 0.5)
    _finish(figure)
    return figure


class Plots:
    """Figures of results; see :attr:`apportion.Results.plot`. They need matplotlib: ``pip install 'apportion[plot]'``."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def throughput(self) -> Figure:
        """Draw throughput over time: a panel per point, a line per flow (per group, with more than eight flows).

        Lines are means over replications, and those of groups also over flows.

        Returns
        -------
        matplotlib.figure.Figure
            The first twelve points, if there are more.
        """
        flows = self._results.flows
        group_of = dict(zip(flows["flow"], flows["group"]))
        names = group_of if len(group_of) > _MOST_LINES else {flow: flow for flow in group_of}
        sums: dict[str, dict[str, dict[float, tuple[float, int]]]] = {}
        for point, kind, name, time, rate in _columns(
            self._results.series, "point", "kind", "name", "t_s", "throughput_mbps"
        ):
            if kind == "flow":
                cells = sums.setdefault(point, {}).setdefault(names[name], {})
                total, count = cells.get(time, (0.0, 0))
                cells[time] = (total + rate, count + 1)
        lines = {
            point: {name: [(time, total / count) for time, (total, count) in cells.items()] for name, cells in of.items()}
            for point, of in sums.items()
        }
        if not lines:
            raise ValueError("series of flows are kept of at most 2000 flows and 1000 replications; run fewer")
        return _panels(lines, "time, s", "throughput, Mb/s")

    def cdf(self, what: str = "delay") -> Figure:
        """Draw a distribution: a panel per point, a line per group of flows.

        Parameters
        ----------
        what : str
            ``"delay"``: one-way delay of packets, interpolated between 53 quantiles. ``"completion"``: completion time of finite
            transfers. A column of ``flows``, for example ``"throughput_mbps"``: its values over flows and replications.

        Returns
        -------
        matplotlib.figure.Figure
            The first twelve points, if there are more.
        """
        if what == "delay":
            return _panels(self._delays(), "one-way delay, ms", "share of packets", is_share=True)
        flows = self._results.flows
        if what == "completion":
            group_of = dict(zip(flows["flow"], flows["group"]))
            took = _columns(self._results.completions, "point", "flow", "took_s")
            samples = ((point, group_of[flow], seconds) for point, flow, seconds in took)
            return _panels(_steps(samples), "completion time, s", "share of transfers", is_share=True)
        numbers = [column.name for column in flows.columns if column.kind in ("number", "integer")]
        if what not in numbers:
            meant = suggestion(what, ["delay", "completion", *numbers])
            raise ValueError(f"{what!r} is neither 'delay' nor 'completion', nor a column of numbers of `flows`{meant}")
        unit = flows.units.get(what)
        label = f"{what.replace('_', ' ')}, {unit}" if unit else what.replace("_", " ")
        return _panels(_steps(_columns(flows, "point", "group", what)), label, "share of flows", is_share=True)

    def _delays(self) -> _Lines:
        lines: _Lines = {}
        for point, group, quantiles in self._results._native.delays():
            lines.setdefault(point, {})[group] = [(delay, share) for share, delay in quantiles]
        return lines


_Lines = dict[str, dict[str, list[tuple[float, float]]]]


def _columns(table: Table, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(table[name] for name in names))


def _steps(samples: Iterable[tuple[Any, ...]]) -> _Lines:
    """Return the empirical distributions of (point, group, value) by point and group."""
    values: dict[str, dict[str, list[float]]] = {}
    for point, group, value in samples:
        if value is not None:
            values.setdefault(point, {}).setdefault(group, []).append(value)
    lines: _Lines = {}
    for point, of in values.items():
        for group, found in of.items():
            ordered = sorted(found)
            steps = [(value, (nth + 1) / len(ordered)) for nth, value in enumerate(ordered)]
            lines.setdefault(point, {})[group] = [(ordered[0], 0.0), *steps]
    return lines


def _panels(lines: _Lines, x: str, y: str, is_share: bool = False) -> Figure:
    points = list(lines)[:_MOST_PANELS]
    if not points:
        raise ValueError("there is nothing to draw: the run measured none")
    columns = min(len(points), 2 if len(points) in (2, 4) else 3)
    rows = math.ceil(len(points) / columns)
    figure = Figure(figsize=(1.0 + 3.4 * columns, 0.6 + 2.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    names = list(dict.fromkeys(name for point in points for name in lines[point]))
    for axes, point in zip(grid, points):
        for name, line in lines[point].items():
            place = names.index(name)
            style: dict[str, Any] = {"color": _COLOURS[place % len(_COLOURS)]}
            style["linestyle"] = ("-", "--", ":")[place // len(_COLOURS) % 3]
            xs, ys = zip(*line) if line else ((), ())
            axes.plot(xs, ys, label=name, linewidth=1.2, **style)
        axes.set_title(_wrapped(point), fontsize="medium")
    # Panels share their axes: set the limits once all curves are drawn.
    figure.axes[0].set_ylim(0, 1 if is_share else None)
    for axes in grid[len(points) :]:
        axes.set_visible(False)
    figure.supxlabel(x, fontsize="medium")
    figure.supylabel(y, fontsize="medium")
    _finish(figure)
    return figure


def _finish(figure: Figure) -> None:
    """Remove the frame, and put one legend beside all panels."""
    known: dict[str, Any] = {}
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        known.update(zip(labels, handles))
    if len(known) > 1:
        figure.legend(list(known.values()), list(known), loc="outside right upper", frameon=False, fontsize="small")


def _wrapped(point: str, width: int = 28) -> str:
    """A line for each setting of a point; longer ones are broken at blanks."""
    lines = (textwrap.wrap(setting, width, break_long_words=False, break_on_hyphens=False) for setting in point.split(", "))
    return "\n".join(line for part in lines for line in part)
