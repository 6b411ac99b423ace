"""Measurements of a transport over one link, for test suites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._results import Results
from ._scenario import Scenario

__all__ = ["Measured", "over_link"]


@dataclass(frozen=True)
class Measured:
    """What a flow got, as means over the seeds."""

    goodput_mbps: float
    """Payload delivered in order, in Mb/s."""
    utilisation: float
    """Bits transmitted over bits possible, 0 to 1, lost ones included."""
    delay_p95_ms: float
    """95th percentile of the one-way delay, in ms."""
    queue_delay_p95_ms: float
    """95th percentile of the sojourn time in the queue, in ms."""
    retransmits: float
    """Retransmissions."""
    results: Results
    """All tables."""


def over_link(
    flow: Mapping[str, Any],
    *,
    rate: str,
    delay: str,
    queue: Any = "fifo",
    loss: Any = 0,
    seconds: float = 20,
    warmup: float = 2,
    seeds: int = 1,
    beside: Mapping[str, Mapping[str, Any]] | None = None,
) -> Measured:
    """Measure a flow over one link.

    Parameters
    ----------
    flow : mapping
        Keys of the flow, such as ``{"transport": "my_stack"}``, ``{"tcp": "cubic"}`` or ``{"quic": "bbr"}``.
    rate, delay : str
        Rate and one-way delay of the link, such as ``"20Mbit"`` and ``"20ms"``. The way back has both too.
    queue, loss
        The queue and the loss of the link, as in scenarios. Default: ``"fifo"``, no loss.
    seconds, warmup : float
        Length of the run, and of its part that is not measured. Default 20 and 2.
    seeds : int
        Number of replications. Default 1.
    beside : mapping, optional
        Other flows over the link, by name.

    Returns
    -------
    Measured
        Means over the replications.

    Raises
    ------
    ScenarioError
        If a value is wrong.

    Examples
    --------
    >>> from apportion import testing
    >>> r = testing.over_link({"tcp": "cubic"}, rate="20Mbit", delay="10ms", queue="fq_codel", seconds=6)
    >>> r.utilisation > 0.9 and r.delay_p95_ms < 40
    True
    """
    ends = {"from": "a", "to": "b"}
    scenario = Scenario(
        seed=1,
        stop=f"{seconds}s",
        measure_from=f"{warmup}s",
        link={"link": {**ends, "rate": rate, "delay": delay, "queue": queue, "loss": loss, "watch": True}},
        flow={"flow": {**ends, **flow}, **{name: {**ends, **keys} for name, keys in (beside or {}).items()}},
    )
    results = scenario.run(seeds=seeds)
    rows = [row for row in results.flows if row["flow"] == "flow"]
    links = [row for row in results.links if row["link"] == "link"]

    def mean(of: list[dict[str, Any]], column: str) -> float:
        return sum(float(row[column] or 0) for row in of) / len(of)

    return Measured(
        goodput_mbps=mean(rows, "goodput_mbps"),
        utilisation=mean(links, "utilisation"),
        delay_p95_ms=mean(rows, "delay_p95_ms"),
        queue_delay_p95_ms=mean(links, "queue_delay_p95_ms"),
        retransmits=mean(rows, "retransmits"),
        results=results,
    )
