"""Transport stacks in Python: real bytes over simulated links, and what breaks the contract."""

from __future__ import annotations

from typing import Any

import pytest

import apportion as ap
from apportion import testing


class Go:
    """Go-back-N with a fixed window: repeats from the first missing byte after a timeout."""

    packet, payload, ack, ecn = 1228, 1200, 36, True

    def __init__(self, end: Any, window: Any = "64kB", timeout: Any = "200ms") -> None:
        self.is_source, self.size = end.is_source, window
        self.wait: float = timeout
        self.supplied: float = 0
        self.acked = self.next = self.delivered = self.lost = self.answers = 0
        self.closed = False
        self.due: float | None = None
        self.marks: list[str] = []

    def supply(self, now: float, size: int | None) -> None:
        self.supplied += float("inf") if size is None else size

    def close(self, now: float) -> None:
        self.closed = True
        if self.supplied == float("inf"):
            self.supplied = self.next

    def receive(self, now: float, data: bytes, ecn: str) -> None:
        number = int.from_bytes(data[:8], "big")
        self.marks.append(ecn)
        if self.is_source:
            if number > self.acked:
                self.acked, self.due = number, now + self.wait
        else:
            assert data[8:] == bytes(len(data) - 8)
            if number == self.delivered:
                self.delivered += len(data)
            self.answers += 1

    def transmit(self, now: float) -> Any:
        if self.answers:
            self.answers -= 1
            return self.delivered.to_bytes(8, "big")
        if self.next < min(self.supplied, self.acked + self.size):
            length = int(min(1200, self.supplied - self.next))
            number = self.next
            self.next += max(length, 8)
            self.due = self.due or now + self.wait
            return number.to_bytes(8, "big") + bytes(max(length - 8, 0)), "ect0"
        return None

    def timer(self) -> float | None:
        return self.due if self.next > self.acked else None

    def on_timer(self, now: float) -> None:
        self.lost += 1
        self.next, self.due = self.acked, now + self.wait

    @property
    def done(self) -> bool:
        return self.closed and self.acked >= self.supplied


@pytest.fixture(autouse=True)
def registered() -> None:
    ap.register(Go)


def test_its_window_and_the_round_trip_limit_it() -> None:
    for window, most in (("12kB", 12_000), ("60kB", 60_000)):
        r = testing.over_link({"transport": {"kind": "go", "window": window}}, rate="100Mbit", delay="20ms", seconds=4)
        # A window in each round trip: 40 ms, and less than 0.5 ms for a packet, its acknowledgement and jitter.
        assert most * 8 / 0.0405 / 1e6 < r.goodput_mbps <= most * 8 / 0.04 / 1e6


def test_it_keeps_a_link_with_losses_busy() -> None:
    r = testing.over_link({"transport": "go"}, rate="2Mbit", delay="20ms", loss="1%", queue="fq_codel")
    assert r.utilisation > 0.5 and r.retransmits > 3


def test_a_seed_gives_the_same_results() -> None:
    go = {"transport": "go"}

    def run() -> list[dict[str, Any]]:
        return list(testing.over_link(go, rate="2Mbit", delay="20ms", loss="1%", beside={"tcp": {"tcp": "cubic"}}).results.flows)

    assert run() == run()


def test_files_arrive_and_marks_reach_it() -> None:
    file = {"transport": "go", "source": {"kind": "file", "size": "120kB"}}
    r = testing.over_link(file, rate="2Mbit", delay="5ms", queue={"kind": "codel", "ecn": True}, warmup=0)
    [flow] = r.results.flows
    assert flow["goodput_bytes"] == 120_000 and flow["completions"] == 1 and flow["marked_packets"] > 0


def test_a_failure_is_a_warning() -> None:
    class Aborts(Go):
        failure: str | None = None

        def on_timer(self, now: float) -> None:
            self.failure = "no answer"

    ap.register(Aborts)
    with pytest.warns(ap.ScenarioWarning, match="a connection of flow `flow` failed at 1.* s: no answer"):
        r = testing.over_link({"transport": "aborts", "start": "1s"}, rate="2Mbit", delay="5ms", loss="30%", seconds=3)
    [flow] = r.results.flows
    assert flow["failed_connections"] == 1 and 1 < flow["failure_s"] < 2 and flow["failure"] == "no answer"
    healthy = testing.over_link({"transport": {"kind": "aborts", "window": "12kB"}}, rate="2Mbit", delay="5ms", seconds=3)
    assert not any("failed" in warning for warning in healthy.results.warnings)


def test_a_cache_that_cannot_be_used_is_a_warning() -> None:
    s = ap.dumbbell({"mine": {"transport": "go"}}, stop="1s", measure_from="0s")
    with pytest.warns(UserWarning, match="transport stack are not cached") as caught:
        s.run(cache=True, progress=False)
    assert {warning.filename for warning in caught} == {__file__}
    assert s.run(progress=False)._native.uncached is None
    tcp = ap.dumbbell(1, stop="1s", measure_from="0s")
    with pytest.warns(UserWarning, match="report events are not cached"):
        tcp.run(cache=True, progress=False, on_drop=print)


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("transmit", lambda self, now: 5, "transmit returned 5"),
        ("transmit", lambda self, now: (b"x", "ect2"), "ect2"),
        ("transmit", lambda self, now: bytes(70_000), "65507"),
        ("timer", lambda self: -1.0, "timer\\(\\) is -1"),
        ("timer", lambda self: "soon", "str"),
        ("receive", lambda self, now, data, ecn: 1 // 0, "division"),
    ],
)
def test_a_fault_ends_the_run(method: str, value: Any, message: str) -> None:
    ap.register(type("Bad", (Go,), {method: value}))
    with pytest.raises(Exception, match=message):
        testing.over_link({"transport": "bad"}, rate="2Mbit", delay="5ms", seconds=3)


def test_what_is_missing_or_wrong_is_refused() -> None:
    class Half:
        def receive(self, now: float, data: bytes, ecn: str) -> None: ...
        def transmit(self, now: float) -> None: ...

    with pytest.raises(ValueError, match="Half has no supply and no timer and no on_timer"):
        ap.register(Half)
    with pytest.raises(ValueError, match="Go.packet is 'big'"):
        ap.register(type("Go", (Go,), {"packet": "big"}))
    with pytest.raises(ap.ScenarioError, match="not a transport stack here"):
        testing.over_link({"transport": "nowhere"}, rate="2Mbit", delay="5ms")


def test_a_timer_that_is_always_due_ends() -> None:
    ap.register(type("Spins", (Go,), {"timer": lambda self: 0.0, "on_timer": lambda self, now: None}))
    r = testing.over_link({"transport": "spins", "start": "0.99s"}, rate="2Mbit", delay="1ms", seconds=1, warmup=0)
    assert r.goodput_mbps >= 0
