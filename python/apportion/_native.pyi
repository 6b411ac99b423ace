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
