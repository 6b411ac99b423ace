from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from ._events import Callbacks

VERSION: Final[str]

class ScenarioError(ValueError):
    """A scenario that makes no sense."""

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
    def faults(self) -> list[str]: ...
    def text(self) -> str: ...
    def page(self) -> str: ...

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
    """A packet in a discipline. It leaves by being returned from ``dequeue``, or by ``drop``."""

    @property
    def flow(self) -> int:
        """The flow that it belongs to: a small number."""
    @property
    def size(self) -> int:
        """Its size on the wire in bytes."""
    @property
    def arrived(self) -> float:
        """When it came, s."""
    @property
    def protocol(self) -> str:
        """What its header says: ``tcp``, ``udp`` or ``control``."""
    @property
    def ecn(self) -> bool:
        """Whether congestion can be signalled by marking it."""
    def label(self, kind: Literal["rate", "tickets", "ack_tickets"]) -> float | None:
        """Its label: the rate of its flow in bit/s for a weight of 1, or tickets; None without one."""
    def set_label(self, kind: Literal["rate", "tickets", "ack_tickets"], value: float | None) -> None:
        """Write a label, rounded to the 17 bits that a header has, in place of any other; None takes it off."""
    def mark(self) -> bool:
        """Mark it "congestion experienced"; returns False, without effect, if it is not ECN-capable."""
    def drop(self, reason: str = "overflow") -> None:
        """Drop it, counted under ``early``, ``forced``, ``overflow``, ``policy`` or ``push_out``."""

class Buffer:
    """The packets that wait behind a policy."""

    @property
    def packets(self) -> int:
        """Packets that wait."""
    @property
    def bytes(self) -> int:
        """Bytes that wait."""
    @property
    def next_flow(self) -> int | None:
        """The flow that is served next; None if nothing waits."""
    @property
    def longest(self) -> int | None:
        """The flow with the most bytes; None if nothing waits."""
    def packets_of(self, flow: int) -> int:
        """Packets of a flow that wait."""
    def bytes_of(self, flow: int) -> int:
        """Bytes of a flow that wait."""
    def pop(self) -> Packet | None:
        """Take out the next packet, in ``dequeue``; None if nothing waits."""
    def __len__(self) -> int: ...

class Link:
    """The link that a discipline is built for."""

    @property
    def rate(self) -> float:
        """Its rate in bit/s."""
    @property
    def name(self) -> str:
        """A name that no other queue of the run has."""
    @property
    def seed(self) -> int:
        """The seed of the run."""
    def weight(self, flow: int) -> float:
        """The weight of a flow at the start."""
    def random(self) -> Random:
        """The same generator at each call; its numbers depend on the seed of the run and the name of the link alone."""

class Window:
    """What a connection sends by, in segments."""

    cwnd: float
    """The congestion window."""
    ssthresh: float
    """Slow start below, congestion avoidance from there on; infinite at first."""
    @property
    def is_slow_start(self) -> bool:
        """Whether it is in slow start."""
    def grow_as_reno(self, counted: float, abc_limit: int | None = None) -> None:
        """Grow as Reno's does (RFC 5681 section 3.1) with an ACK that counts as so many segments: by these in slow start, at most by
        RFC 3465's limit L if there is one, and by one for each window in avoidance."""

class Connection:
    """A connection that begins."""

    @property
    def initial_window(self) -> float:
        """The window that it begins with, in segments."""
    @property
    def segment(self) -> int:
        """Payload of a full segment, bytes."""
    @property
    def wire(self) -> int:
        """The same on the wire, bytes."""

class Sent:
    """A segment that leaves."""

    @property
    def now(self) -> float:
        """When it leaves, s."""
    @property
    def number(self) -> int:
        """Which it is. One that is sent again has the number of the first time in TCP and a new one in QUIC."""
    @property
    def in_flight(self) -> int:
        """Segments in the network before it."""

class Feedback:
    """What an ACK reports, before it means anything for losses, marks and the window."""

    @property
    def now(self) -> float:
        """When it came, s."""
    @property
    def number(self) -> int:
        """All segments up to this number have arrived; in QUIC the highest of those acknowledged."""
    @property
    def last_sent(self) -> int:
        """The number of the last segment sent."""
    @property
    def bytes(self) -> int:
        """Bytes that are acknowledged in order for the first time; in QUIC all for the first time."""
    @property
    def segments(self) -> int:
        """Segments that are known to have arrived for the first time."""
    @property
    def marked(self) -> int:
        """How many were marked. Where the receiver only echoes marks, all or none of those of this ACK."""
    @property
    def counts_marks(self) -> bool:
        """Whether the receiver counts marks and does not only echo them."""
    @property
    def one_way_delay(self) -> float | None:
        """The receiver's clock at the arrival less the sender's at the transmission, s, where the receiver says it."""

class Ack:
    """What an ACK means for the window."""

    @property
    def now(self) -> float:
        """When it came, s."""
    @property
    def phase(self) -> Literal["open", "cwr", "recovery", "loss"]:
        """Where the transport stands."""
    @property
    def acked(self) -> float:
        """Segments that it acknowledges; in QUIC those sent outside recovery."""
    @property
    def counted(self) -> float:
        """What Reno counts it as, by the profile: those segments, or one."""
    @property
    def abc_limit(self) -> int | None:
        """RFC 3465's L: by so many segments one ACK may open the window in slow start."""
    @property
    def delivered(self) -> int:
        """Segments that are known to have arrived for the first time."""
    @property
    def lost(self) -> int:
        """Segments found lost with it."""
    @property
    def prior_in_flight(self) -> int:
        """Segments in the network before it."""
    @property
    def in_flight(self) -> int:
        """And after it."""
    @property
    def number(self) -> int:
        """All segments up to this number have arrived; in QUIC the first that is outstanding."""
    @property
    def last_sent(self) -> int:
        """The number of the last segment sent."""
    @property
    def latest(self) -> int | None:
        """The segment sent last of those that are known to have arrived, if this ACK shows that."""
    @property
    def rtt(self) -> float | None:
        """The round-trip time of the last segment that it acknowledges, s, if that was sent once."""
    @property
    def srtt(self) -> float:
        """The smoothed round-trip time, s; 0 before one is known."""
    @property
    def min_rtt(self) -> float:
        """The shortest round-trip time of the connection, s; the smoothed one where the transport does not keep it."""
    @property
    def slow_start(self) -> bool:
        """The window was below the threshold when it came, which HyStart may have changed since."""
    @property
    def is_limited(self) -> bool:
        """The window, rather than the application or the receiver, limited what was sent."""
    @property
    def may_grow(self) -> bool:
        """The window was used enough for Reno's to grow (RFC 7661; RFC 9002 section 7.8), by the rule of the transport."""

class CongestionEvent:
    """A sign of congestion."""

    @property
    def now(self) -> float:
        """When it was seen, s."""
    @property
    def cwnd(self) -> float:
        """The window that it met, in segments. RACK counts whole segments."""
    @property
    def basis(self) -> float:
        """What Reno takes half of, in segments: that window within what the receiver allows, or what is outstanding (RFC 5681 equation (4))."""
    @property
    def receive_window(self) -> float:
        """The window that the receiver allows, in segments; infinite in QUIC."""
    @property
    def in_flight(self) -> int:
        """Segments in the network."""
    @property
    def again(self) -> bool:
        """A timeout for data for which the threshold was lowered already (RFC 5681 section 3.1): it stays."""

def register_control(cls: type, name: str, summary: str, attributes: dict[str, str | bool]) -> None: ...
def check_control_laws(cls: type) -> str | None: ...
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
