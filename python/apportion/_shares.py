"""Throughputs of flows compared with their entitlements."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from . import _native
from ._table import needing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._table import Table

_SHOWN_ROWS = 24


class Share(NamedTuple):
    """Throughput and entitlement of a flow at a point: means over replications with a 95 % interval.

    Attributes
    ----------
    point, flow, group : str
        The point, the flow, and the table of the scenario that the flow comes from.
    throughput : float
        Throughput in Mb/s.
    entitlement : float or None
        Entitlement in Mb/s; None if the scenario defines none.
    share : float or None
        Throughput over entitlement.
    interval : float or None
        Half the width of the 95 % interval of ``share``, or of ``throughput`` without an entitlement; None with a single seed.
    """

    point: str
    flow: str
    group: str
    throughput: float
    entitlement: float | None
    share: float | None
    interval: float | None


class Shares:
    """The :class:`Share` of each flow at each point: a sequence that can be plotted."""

    def __init__(self, flows: Table) -> None:
        samples: dict[tuple[str, str, str], list[tuple[float, float | None]]] = {}
        columns = ("point", "flow", "group", "throughput_mbps", "entitlement_mbps")
        for point, flow, group, throughput, entitlement in zip(*(flows[column] for column in columns)):
            samples.setdefault((point, flow, group), []).append((throughput, entitlement))
        self._rows = [_share(*key, pairs) for key, pairs in samples.items()]

    def __len__(self) -> int:
        """Return the number of flows times the number of points."""
        return len(self._rows)

    def __getitem__(self, index: int) -> Share:
        """Return a share."""
        return self._rows[index]

    def __iter__(self) -> Iterator[Share]:
        """Yield the shares by point and flow."""
        return iter(self._rows)

    def plot(self) -> Figure:
        """Draw the share of each flow, by point: a dot per flow with its interval, a colour per group.

        Groups with a flow without an entitlement are left out and named. If no flow has an entitlement, throughputs are drawn.

        Returns
        -------
        matplotlib.figure.Figure
            ``savefig`` writes it as PDF, SVG or PNG. Needs matplotlib: ``pip install 'apportion[plot]'``.
        """
        with needing("figures", "'apportion[plot]'"):
            from ._plot import shares

        return shares(self._rows)

    def __repr__(self) -> str:
        """Show the number of shares and the smallest one."""
        rated = [row for row in self._rows if row.share is not None]
        if not rated:
            return f"<apportion.Shares: {len(self)}, without entitlements>"
        least = min(rated, key=lambda row: row.share or 0.0)
        where = f" at {least.point}" if least.point else ""
        return f"<apportion.Shares: {len(self)}; {least.flow} got least, {least.share:.3g} of its entitlement{where}>"

    def _repr_html_(self) -> str:
        """Show groups, since flows of a group are alike."""
        groups: dict[tuple[str, str], list[Share]] = {}
        for row in self._rows:
            groups.setdefault((row.point, row.group), []).append(row)
        body = "".join(_line(*key, rows) for key, rows in list(groups.items())[:_SHOWN_ROWS])
        more = f"<p>… and {len(groups) - _SHOWN_ROWS} more</p>" if len(groups) > _SHOWN_ROWS else ""
        head = "".join(
            f"<th>{name}</th>" for name in ("point", "flows", "", "mean Mb/s", "mean share", "least share", "most")
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _share(point: str, flow: str, group: str, pairs: list[tuple[float, float | None]]) -> Share:
    throughputs = [throughput for throughput, _ in pairs]
    dues = [due for _, due in pairs if due]
    mean = sum(throughputs) / len(throughputs)
    if len(dues) < len(pairs):
        return Share(point, flow, group, mean, None, None, _native.interval(throughputs)[1])
    share, interval = _native.interval([throughput / due for throughput, due in zip(throughputs, dues)])
    return Share(point, flow, group, mean, sum(dues) / len(dues), share, interval)


def _line(point: str, group: str, rows: list[Share]) -> str:
    shares = [row.share for row in rows if row.share is not None]
    mean = sum(row.throughput for row in rows) / len(rows)
    rated = [f"{value:.3g}" for value in (sum(shares) / len(shares), min(shares), max(shares))] if shares else ["–"] * 3
    cells = [point, group, f"× {len(rows)}" if len(rows) > 1 else "", f"{mean:.3g}", *rated]
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
