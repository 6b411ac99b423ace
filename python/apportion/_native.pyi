from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from ._events import Callbacks

VERSION: Final[str]

class ScenarioError(ValueError):
    """An invalid scenario."""

    problems: tuple[tuple[str, str], ...]

class RunError(Exception):
    """A run that was refused or failed, or results that cannot be written."""

class Scenario:
    @staticmethod
    def from_file(path: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def from_text(text: str, origin: str | PathLike[str] | None) -> Scenario: ...
    @staticmethod
    def from_values(values: dict[str, Any], origin: str | PathLike[str] | None) -> Scenario: ...
    @staticmethod
    def from_example(name: str) -> Scenario: ...
    def pack(self) -> tuple[str, Path, list[tuple[str, str]], list[tuple[Path, bytes]]]: ...
    @staticmethod
    def unpack(packed: tuple[Any, ...]) -> Scenario: ...
    @property
    def has_own_code(self) -> bool: ...
    def holds_outcomes(self, seeds: int) -> bool: ...
    def set(self, settings: dict[str, Any]) -> Scenario: ...
    def run(
        self,
        *,
        seeds: int,
        jobs: int,
        phase_check: bool | None,
        force: bool,
        progress: Callable[[int, int], object] | None,
        folder: str | PathLike[str] | None,
        callbacks: Callbacks | None = None,
        cache: Cache | None = None,
        only_cached: bool = False,
    ) -> tuple[Results, bool]: ...
    @property
    def title(self) -> str: ...
    @property
    def origin(self) -> Path: ...
    @property
    def canonical(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def points(self) -> list[tuple[str, list[tuple[str, str]]]]: ...

class Cache:
    def prune(self) -> None: ...
    @property
    def folder(self) -> Path: ...

class Parts:
    def __init__(self, scenarios: Sequence[Scenario], seeds: int, phase_check: bool, hold: bool) -> None: ...
    @property
    def total(self) -> int: ...
    @property
    def seconds(self) -> list[float]: ...
    def missing(self, cache: Cache, force: bool) -> list[int]: ...
    def simulate(self, numbers: Sequence[int], stop: Callable[[], bool]) -> list[tuple[int, str, bytes]]: ...
    def keep(self, cache: Cache, point: int, key: str, frame: bytes) -> None: ...
    def compact(self, cache: Cache) -> None: ...

class Results:
    @staticmethod
    def read(folder: str | PathLike[str]) -> Results: ...
    @property
    def folder(self) -> Path | None: ...
    def table(self, name: str) -> Table: ...
    @property
    def cache_failure(self) -> str | None: ...
    @property
    def uncached(self) -> str | None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def cut(self) -> str | None: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def faults(self) -> list[str]: ...
    @property
    def points(self) -> list[tuple[str, list[tuple[str, str]], int]]: ...
    def delays(self) -> list[tuple[str, str, list[tuple[float, float]]]]: ...
    def summary(self) -> str: ...
    def json_lines(self) -> str: ...
    def report(self) -> str: ...
    def write(self, folder: str | PathLike[str]) -> Path: ...

class League:
    def __init__(
        self,
        disciplines: list[str],
        situations: list[str],
        own: list[tuple[str, Scenario]],
        seeds: int,
        phase_check: bool | None,
    ) -> None: ...
    def scenarios(self) -> list[Scenario]: ...
    def play(
        self,
        jobs: int,
        force: bool,
        progress: Callable[[int, int], object] | None,
        folder: str | PathLike[str] | None,
        cache: Cache | None,
    ) -> LeagueResults: ...

class Pairs:
    def __init__(
        self,
        services: list[str],
        disciplines: list[str],
        rates: list[str],
        length: str | None,
        seeds: int,
    ) -> None: ...
    def play(
        self,
        jobs: int,
        force: bool,
        progress: Callable[[int, int], object] | None,
        folder: str | PathLike[str] | None,
        cache: Cache | None,
    ) -> LeagueResults: ...

class LeagueResults:
    @property
    def cells(self) -> Table: ...
    @property
    def folder(self) -> Path | None: ...
    @property
    def reused(self) -> int: ...
    @property
    def cache_failure(self) -> str | None: ...
    @property
    def uncached(self) -> str | None: ...
    @property
    def faults(self) -> list[str]: ...
    def text(self) -> str: ...
    def page(self) -> str: ...

def services() -> list[str]: ...
def situations() -> list[str]: ...

class Table:
    @property
    def name(self) -> str: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[tuple[str, str, str]]: ...
    def column(self, column: int, start: int, stop: int) -> list[Any]: ...
    def floats(self, column: int) -> bytes | None: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Packet:
    """A packet in a discipline. It leaves when ``dequeue`` returns it, or by ``drop``."""

    @property
    def flow(self) -> int:
        """Flow of the packet: a small number."""
    @property
    def size(self) -> int:
        """Size on the wire in bytes."""
    @property
    def arrived(self) -> float:
        """Arrival time, s."""
    @property
    def protocol(self) -> str:
        """Protocol in the header: ``tcp``, ``udp`` or ``control``."""
    @property
    def ecn(self) -> bool:
        """Whether the packet is ECN-capable."""
    def label(self, kind: Literal["rate", "tickets", "ack_tickets", "value"]) -> float | None:
        """Label of the packet: the rate of its flow in bit/s for a weight of 1, or tickets; None without one."""
    def set_label(self, kind: Literal["rate", "tickets", "ack_tickets", "value"], value: float | None) -> None:
        """Write a label, rounded to the header's 17 bits, in place of any other; None removes it."""
    def mark(self) -> bool:
        """Mark the packet "congestion experienced"; returns False, without effect, if it is not ECN-capable."""
    def drop(self, reason: str = "overflow") -> None:
        """Drop the packet, counted under ``early``, ``forced``, ``overflow``, ``policy`` or ``push_out``."""

class Buffer:
    """Packets behind a policy."""

    @property
    def packets(self) -> int:
        """Backlog in packets."""
    @property
    def bytes(self) -> int:
        """Backlog in bytes."""
    @property
    def next_flow(self) -> int | None:
        """The flow that is served next; None if the buffer is empty."""
    @property
    def longest(self) -> int | None:
        """The flow with the most bytes, the lowest number among equals; None if the buffer is empty."""
    def packets_of(self, flow: int) -> int:
        """Backlog of a flow in packets."""
    def bytes_of(self, flow: int) -> int:
        """Backlog of a flow in bytes."""
    def pop(self) -> Packet | None:
        """Remove the next packet in the order of service, in ``dequeue``; None if the buffer is empty."""
    def __len__(self) -> int: ...

class Link:
    """The link of a discipline."""

    @property
    def rate(self) -> float:
        """Rate in bit/s."""
    @property
    def name(self) -> str:
        """A name that is unique among the queues of the run."""
    @property
    def seed(self) -> int:
        """The seed of the run."""
    def weight(self, flow: int) -> float:
        """Initial weight of a flow."""
    def random(self) -> Random:
        """The random generator, the same at each call. Its numbers depend only on the seed of the run and the name of the link."""

class Window:
    """Window and threshold of a connection, in segments."""

    cwnd: float
    """The congestion window."""
    ssthresh: float
    """Slow-start threshold: congestion avoidance from this window on; infinite at first."""
    @property
    def is_slow_start(self) -> bool:
        """Whether the connection is in slow start."""
    def grow_as_reno(self, counted: float, abc_limit: int | None = None) -> None:
        """Grow like Reno (RFC 5681 section 3.1) for an ACK that counts as ``counted`` segments: by these in slow start, up to RFC 3465's
        limit L if there is one, and by one segment per window in congestion avoidance."""

class Connection:
    """A new connection."""

    @property
    def initial_window(self) -> float:
        """Initial window in segments."""
    @property
    def segment(self) -> int:
        """Payload of a full segment, bytes."""
    @property
    def wire(self) -> int:
        """Size of a full segment on the wire, bytes."""

class Sent:
    """A segment that is sent."""

    @property
    def now(self) -> float:
        """Transmission time, s."""
    @property
    def number(self) -> int:
        """Number of the segment. A retransmission keeps it in TCP and has a new one in QUIC."""
    @property
    def in_flight(self) -> int:
        """Segments in flight before this one."""

class Feedback:
    """Feedback of an ACK, before losses, marks and the window are derived from it."""

    @property
    def now(self) -> float:
        """Arrival time of the ACK, s."""
    @property
    def number(self) -> int:
        """Number up to which all segments have arrived; in QUIC the highest acknowledged number."""
    @property
    def last_sent(self) -> int:
        """Number of the last segment sent."""
    @property
    def bytes(self) -> int:
        """Bytes newly acknowledged in order; in QUIC all newly acknowledged bytes."""
    @property
    def segments(self) -> int:
        """Segments newly known to have arrived."""
    @property
    def marked(self) -> int:
        """Number of marked segments. If the receiver only echoes marks: all segments of this ACK, or none."""
    @property
    def counts_marks(self) -> bool:
        """Whether the receiver counts marks rather than only echoing them."""
    @property
    def one_way_delay(self) -> float | None:
        """The receiver's clock at the arrival minus the sender's at the transmission, s; None if the receiver does not report it."""

class Ack:
    """Effect of an ACK on the window."""

    @property
    def now(self) -> float:
        """Arrival time of the ACK, s."""
    @property
    def phase(self) -> Literal["open", "cwr", "recovery", "loss"]:
        """Phase of the transport."""
    @property
    def acked(self) -> float:
        """Segments that the ACK acknowledges; in QUIC those sent outside recovery."""
    @property
    def counted(self) -> float:
        """Segments for which Reno counts the ACK, by the profile: ``acked``, or one."""
    @property
    def abc_limit(self) -> int | None:
        """RFC 3465's L: the maximum number of segments by which an ACK opens the window in slow start."""
    @property
    def delivered(self) -> int:
        """Segments newly known to have arrived."""
    @property
    def lost(self) -> int:
        """Segments that the ACK shows to be lost."""
    @property
    def prior_in_flight(self) -> int:
        """Segments in flight before the ACK."""
    @property
    def in_flight(self) -> int:
        """Segments in flight after the ACK."""
    @property
    def number(self) -> int:
        """Number up to which all segments have arrived; in QUIC the first outstanding number."""
    @property
    def last_sent(self) -> int:
        """Number of the last segment sent."""
    @property
    def latest(self) -> int | None:
        """The last sent of the segments known to have arrived, if this ACK shows its arrival."""
    @property
    def rtt(self) -> float | None:
        """Round-trip time of the last acknowledged segment, s, if it was sent only once."""
    @property
    def srtt(self) -> float:
        """Smoothed round-trip time, s; 0 before the first sample."""
    @property
    def min_rtt(self) -> float:
        """Minimum round-trip time of the connection, s; the smoothed one if the transport does not keep it."""
    @property
    def slow_start(self) -> bool:
        """Whether the window was below the threshold when the ACK arrived; HyStart may have changed that since."""
    @property
    def is_limited(self) -> bool:
        """Whether the window, rather than the application or the receiver, limited sending."""
    @property
    def may_grow(self) -> bool:
        """Whether the window was used enough for Reno to grow it (RFC 7661; RFC 9002 section 7.8), by the rule of the transport."""

class CongestionEvent:
    """A congestion event."""

    @property
    def now(self) -> float:
        """Time of detection, s."""
    @property
    def cwnd(self) -> float:
        """Window at the event, in segments; whole segments with RACK."""
    @property
    def basis(self) -> float:
        """Segments that Reno halves: the window up to the receiver's, or the segments in flight (RFC 5681 equation (4))."""
    @property
    def receive_window(self) -> float:
        """Receive window in segments; infinite in QUIC."""
    @property
    def in_flight(self) -> int:
        """Segments in flight."""
    @property
    def again(self) -> bool:
        """Whether a timeout repeats for the same data: the threshold, lowered already, stays (RFC 5681 section 3.1)."""

class StackEnd:
    """One end of a connection of a transport stack."""

    @property
    def is_source(self) -> bool:
        """Whether the application at this end sends."""
    @property
    def number(self) -> int:
        """The number of the connection in the run."""
    @property
    def seed(self) -> int:
        """A seed for random numbers of this end, of the run's seed."""

def register_control(cls: type, name: str, summary: str, attributes: dict[str, str | bool]) -> None: ...
def check_control_laws(cls: type) -> str | None: ...
def register_stack(
    cls: type, name: str, summary: str, attributes: dict[str, int | bool], parameters: Sequence[tuple[str, str]]
) -> None: ...
def register(
    cls: type, name: str, summary: str, scheduler: str | None, parameters: Sequence[tuple[str, str]]
) -> None: ...
def check_laws(
    cls: type,
    name: str,
    scheduler: str | None,
    parameters: Sequence[tuple[str, str]],
    limit: int | None,
    holds_back: bool,
    cases: int,
) -> str | None: ...
def interval(samples: Sequence[float]) -> tuple[float, float | None]: ...
def build() -> str: ...
def main(words: Sequence[str], cluster: Callable[[str, list[Scenario], int, bool, bool, bool, bool], bool]) -> int: ...
def explain(name: str) -> str: ...
def names() -> list[tuple[str, list[tuple[str, str, str]]]]: ...
def example_names() -> list[str]: ...
def experiments() -> list[tuple[str, str, str]]: ...
def jain(shares: Sequence[float]) -> float: ...
def max_min(
    capacities: Sequence[float], flows: Sequence[tuple[Sequence[int], float, float, float | None]]
) -> list[float]: ...
