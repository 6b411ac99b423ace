"""Events of a run, with which callbacks are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Dropped(NamedTuple):
    """A packet was dropped by a discipline, or lost on a wire.

    Attributes
    ----------
    point : str
        The label of the point; empty without a sweep.
    seed : int
        The seed of the replication.
    time : float
        Time of the event, s from the start of the run. Tables count from ``measure_from`` on.
    link : str
        The link.
    flow : str or None
        The flow; None for a message between routers.
    size : int
        Its size on the wire in bytes.
    reason : str
        ``early``, ``forced``, ``overflow``, ``policy`` or ``push_out``; ``lost`` on a wire.
    """

    point: str
    seed: int
    time: float
    link: str
    flow: str | None
    size: int
    reason: str


class Marked(NamedTuple):
    """A packet was marked "congestion experienced" by a discipline. The attributes are those of :class:`Dropped`."""

    point: str
    seed: int
    time: float
    link: str
    flow: str | None
    size: int


class FlowSample(NamedTuple):
    """A sample interval of a flow.

    Attributes
    ----------
    throughput_mbps : float
        Throughput at the sink over the interval, Mb/s.
    window_segments, srtt_ms : float or None
        Congestion window and smoothed round-trip time at the end of the interval; None for UDP and for flows of several connections.
    """

    throughput_mbps: float
    window_segments: float | None
    srtt_ms: float | None


class LinkSample(NamedTuple):
    """A sample interval of a watched link.

    Attributes
    ----------
    throughput_mbps : float
        Throughput over the interval, Mb/s.
    backlog_packets : int
        Backlog at the end of the interval, packets.
    """

    throughput_mbps: float
    backlog_packets: int


class Sampled(NamedTuple):
    """A sample interval has ended. Its length is the key ``sample`` of the scenario; values are those of :attr:`apportion.Results.series`.

    Attributes
    ----------
    point : str
        The label of the point; empty without a sweep.
    seed : int
        The seed of the replication.
    time : float
        Time of the event, s from the start of the run.
    flows : dict of str to FlowSample
        Flows by name; empty for more than 2000 flows.
    links : dict of str to LinkSample
        Watched links by name.
    """

    point: str
    seed: int
    time: float
    flows: dict[str, FlowSample]
    links: dict[str, LinkSample]


class Callbacks:
    """Functions called during a run with the values of an event."""

    def __init__(
        self,
        on_drop: Callable[[Dropped], object] | None,
        on_mark: Callable[[Marked], object] | None,
        on_sample: Callable[[Sampled], object] | None,
    ) -> None:
        self.on_drop = on_drop and (lambda *values: on_drop(Dropped(*values)))
        self.on_mark = on_mark and (lambda *values: on_mark(Marked(*values)))
        self.on_sample = on_sample and (lambda *values: on_sample(_sampled(*values)))

    def names(self) -> list[str]:
        """Return the names of the functions given."""
        return [name for name, function in vars(self).items() if function]


def _sampled(
    point: str,
    seed: int,
    time: float,
    flows: list[tuple[str, float, float | None, float | None]],
    links: list[tuple[str, float, int]],
) -> Sampled:
    return Sampled(
        point,
        seed,
        time,
        {name: FlowSample(throughput, window, srtt) for name, throughput, window, srtt in flows},
        {name: LinkSample(throughput, backlog) for name, throughput, backlog in links},
    )
