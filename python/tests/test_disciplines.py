"""Disciplines in Python: in the simulator, beside others, and under the laws."""

import os
import signal
import threading
import time
import traceback
from collections import deque
from typing import Any

import pytest

import apportion as ap
from apportion import laws


class PlainFifo:
    """First in, first out."""

    name = "plain_fifo"

    def __init__(self, link: Any, limit: Any = "50p") -> None:
        self.limit = limit
        self.waiting: deque[Any] = deque()

    def enqueue(self, now: float, packet: Any) -> None:
        if len(self.waiting) >= self.limit:
            packet.drop()
        else:
            self.waiting.append(packet)

    def dequeue(self, now: float) -> Any:
        return self.waiting.popleft() if self.waiting else None


class LongestDrop:
    """Longest queue drop."""

    scheduler = "drr"

    def __init__(self, link: Any, limit: Any = "50p") -> None:
        self.limit = limit

    def admit(self, now: float, packet: Any, buffer: Any) -> bool:
        return True

    def victim(self, now: float, buffer: Any) -> Any:
        return buffer.longest if buffer.packets > self.limit else None


class TailDrop:
    name = "tail_drop"

    def __init__(self, link: Any, limit: Any = "50p") -> None:
        self.limit = limit

    def admit(self, now: float, packet: Any, buffer: Any) -> bool:
        return bool(buffer.packets < self.limit)


class Shaper(PlainFifo):
    name = "slow"

    def __init__(self, link: Any, pace: Any = "1Mbit", limit: Any = "50p") -> None:
        super().__init__(link, limit)
        self.pace, self.free = pace, 0.0

    def dequeue(self, now: float) -> Any:
        if now < self.free or not self.waiting:
            return None
        packet = self.waiting.popleft()
        self.free = now + packet.size * 8 / self.pace
        return packet

    def wakeup(self) -> float:
        return self.free


@pytest.fixture(autouse=True)
def registered() -> None:
    for cls in (PlainFifo, LongestDrop, TailDrop, Shaper):
        ap.register(cls)


def against(own: Any, *others: Any, rate: str = "3Mbit", **keywords: Any) -> ap.Scenario:
    flows = {"tcp": {"count": 2}, "udp": {"source": {"kind": "cbr", "rate": "2Mbit"}}}
    return ap.dumbbell(flows, rate=rate, queue=[own, *others], stop="4s", measure_from="1s", **keywords)


def rows(results: ap.Results, point: str) -> list[dict[str, Any]]:
    return [{**row, "point": ""} for row in results.flows if row["point"] == point]


def test_a_fifo_in_python_is_the_fifo_of_the_library() -> None:
    own = [{"kind": kind, "limit": "30p"} for kind in ("plain_fifo", "tail_drop", "fifo")]
    r = against(*own).run(seeds=2, progress=False)
    points = [point.label for point in r.points]
    # The discipline of the library may pass a lone packet on at once; goodputs are the same.
    assert rows(r, points[0]) == rows(r, points[1]) == rows(r, points[2])
    assert r.flows["valid"] == [True] * len(r.flows)


def test_a_scenario_has_it_if_a_queue_is_of_its_kind() -> None:
    # A flow, and so its hosts, may have the same name.
    s = ap.dumbbell({"plain_fifo": {}}, queue="fifo", title="plain_fifo")
    assert '"plain_fifo"' in s.canonical and not s._native.has_own_code
    assert s.set({"queue": ["fifo", "plain_fifo"]})._native.has_own_code


def test_a_policy_has_the_scheduler_that_it_names() -> None:
    r = against("longest_drop", "plain_fifo").run(progress=False)
    share = {(row.point, row.flow): row.share or 0 for row in r.shares}
    assert share["queue=longest_drop", "udp"] < 1.2 < 1.5 < share["queue=plain_fifo", "udp"]
    pushed = [row["drops_push_out"] for row in r.links if row["link"] == "bottleneck"]
    assert pushed[0] > 0 == pushed[1]


def test_one_that_holds_packets_back_is_asked_again() -> None:
    r = against("slow").run(progress=False)
    bottleneck = next(row for row in r.links if row["link"] == "bottleneck")
    assert bottleneck["throughput_mbps"] == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("time, said", [(0.5, "0.5 s, but it is [12]"), (-1.0, "-1 s, but"), (float("nan"), "NaN s, but")])
def test_a_wakeup_in_the_past_ends_the_run(time: float, said: str) -> None:
    class Late(PlainFifo):
        name = "late"

        def dequeue(self, now: float) -> Any:
            return None if now > 1.0 else super().dequeue(now)

        def wakeup(self) -> float:
            return time

    ap.register(Late)
    with pytest.raises(ValueError, match=f"wakeup returned {said}"):
        against("late").run(progress=False)


def test_parameters_are_numbers_in_base_units_and_checked() -> None:
    seen: dict[str, Any] = {}

    class Takes(PlainFifo):
        name = "takes"

        def __init__(
            self, link: Any, a: Any = "5ms", b: Any = "2Mbit", c: Any = "3kB", d: Any = "2%", e: Any = 7, f: Any = 0.5, g: Any = True
        ) -> None:
            seen.update(a=a, b=b, c=c, d=d, e=e, f=f, g=g, rate=link.rate, weight=link.weight(0))
            super().__init__(link, 50)

    ap.register(Takes)
    against({"kind": "takes", "b": "4Mbit", "g": False}).run(progress=False)
    assert seen == dict(a=0.005, b=4e6, c=3000, d=0.02, e=7, f=0.5, g=False, rate=3e6, weight=1.0)
    with pytest.raises(ap.ScenarioError, match=r"queue\.(a|z)"):
        against({"kind": "takes", "a": "5Mbit"})
    with pytest.raises(ap.ScenarioError, match="plain_fifo"):
        against("plain_fofi")
    assert "takes: system" in ap.explain("takes")
    assert "takes" in {entry.name for entry in ap.disciplines()}


def test_random_numbers_depend_on_seed_and_link_alone() -> None:
    seen: dict[str, set[float]] = {}

    class Chance(PlainFifo):
        name = "chance"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)
            self.link = link
            seen.setdefault(link.name, set())

        def enqueue(self, now: float, packet: Any) -> None:
            # Each call returns the same generator.
            drawn = self.link.random().random()
            seen[self.link.name].add(drawn)
            if drawn < 0.02:
                packet.drop("early")
            else:
                super().enqueue(now, packet)

    ap.register(Chance)
    s = against("chance")
    first = s.run(2, progress=False)
    assert first.flows.to_dict() == s.run(2, progress=False, jobs=4).flows.to_dict()
    assert sum(first.flows["drops_early"]) > 0
    assert all(len(drawn) > 100 for drawn in seen.values())


def test_marks_are_counted_and_only_where_they_are_allowed() -> None:
    class Marks(PlainFifo):
        name = "marks"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)

        def enqueue(self, now: float, packet: Any) -> None:
            if len(self.waiting) > 5:
                assert packet.mark() == packet.ecn
            super().enqueue(now, packet)

    ap.register(Marks)
    flows = {"ecn": {"tcp": {"profile": "linux", "ecn": True}}, "udp": {"source": {"kind": "cbr", "rate": "2Mbit"}}}
    r = ap.dumbbell(flows, rate="3Mbit", queue="marks", stop="4s", measure_from="1s").run(progress=False)
    marked = dict(zip(r.flows["flow"], r.flows["marked_packets"]))
    assert marked["ecn"] > 0 == marked["udp"]


def test_an_exception_ends_the_run_with_its_traceback() -> None:
    class Fails(PlainFifo):
        name = "fails"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)
            self.count = 0

        def dequeue(self, now: float) -> Any:
            self.count += 1
            if self.count == 500:
                raise LookupError("the five hundredth")
            return super().dequeue(now)

    ap.register(Fails)
    with pytest.raises(LookupError, match="the five hundredth") as found:
        against("fails").run(seeds=3, progress=False)
    lines = "".join(traceback.format_tb(found.value.__traceback__))
    assert "in dequeue" in lines and 'raise LookupError("the five hundredth")' in lines
    # Another run is not affected.
    assert against("plain_fifo").run(progress=False).complete


def test_one_that_cannot_be_made_says_why() -> None:
    class Unmade(PlainFifo):
        name = "unmade"

        def __init__(self, link: Any, limit: Any = "50p") -> None:
            raise OSError("no such thing")

    ap.register(Unmade)
    with pytest.raises(OSError, match="no such thing"):
        against("unmade").run(progress=False)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(5, "return a packet or None"), ("again", "has left already"), ("foreign", "another queue")],
)
def test_what_is_no_packet_of_the_queue_is_refused(answer: Any, error: str) -> None:
    kept: list[Any] = []

    class Wrong(PlainFifo):
        name = "wrong"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)

        def dequeue(self, now: float) -> Any:
            packet = super().dequeue(now)
            if packet is not None:
                kept.append(packet)
            if len(kept) < 20:
                return packet
            return kept[0] if isinstance(answer, str) else answer

    ap.register(Wrong)
    if answer == "foreign":
        with pytest.raises(ValueError):
            against("wrong").run(progress=False)
        kept[1:] = kept[:1] * 30
    with pytest.raises((TypeError, ValueError), match=error):
        against("wrong").run(progress=False)


def test_an_interrupt_keeps_what_has_ended() -> None:
    s = against("plain_fifo", "fifo")
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ap.IncompleteWarning):
        r = s.run(2000, progress=False)
    timer.join()
    assert not r.complete and len(r.flows)


def test_a_class_without_what_it_needs_is_refused() -> None:
    with pytest.raises(ValueError, match="no dequeue"):
        ap.register(type("Half", (), {"enqueue": lambda self, now, packet: None, "__init__": lambda self, link: None}))
    with pytest.raises(ValueError, match="no default"):
        ap.register(type("Needs", (PlainFifo,), {"__init__": lambda self, link, limit: None, "name": "needs"}))
    with pytest.raises(ValueError, match="another entry has this name"):
        ap.register(PlainFifo, name="drr")
    with pytest.raises(ValueError, match="no scheduler"):
        ap.register(type("Odd", (TailDrop,), {"scheduler": "lifo", "name": "odd"}))
    with pytest.raises(ValueError, match="quantity"):
        ap.register(type("Bad", (PlainFifo,), {"__init__": lambda self, link, limit="many": None, "name": "bad"}))


def test_the_laws_hold_or_not() -> None:
    laws.check(PlainFifo, limit=50)
    laws.check(LongestDrop, limit=50)
    laws.check(TailDrop, limit=50)
    laws.check(Shaper, holds_back=True)
    with pytest.raises(laws.LawError, match="limit"):
        laws.check(PlainFifo, limit=10)
    with pytest.raises(laws.LawError, match="work conservation"):
        laws.check(Shaper)

    class Reorders(PlainFifo):
        def dequeue(self, now: float) -> Any:
            return self.waiting.pop() if self.waiting else None

    with pytest.raises(laws.LawError, match="order") as found:
        laws.check(Reorders)
    assert "<-- here" in str(found.value)

    class Raises(PlainFifo):
        def dequeue(self, now: float) -> Any:
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        laws.check(Raises)


def test_it_is_fast_enough_to_be_used() -> None:
    s = ap.dumbbell({"udp": {"source": {"kind": "cbr", "rate": "900Mbit", "packet": "1000B"}}}, rate="1Gbit", stop="2s", measure_from="0s")
    s = s.set({"queue": "plain_fifo"})
    best = 0.0
    for _ in range(3):
        started = time.process_time()
        r = s.run(progress=False)
        best = max(best, r.flows["sent_packets"][0] / (time.process_time() - started))
    print(f"{best:.0f} packets/s")
    # 700 to 900 thousand on two shared cores.
    assert best > 200_000


def path_of(first: Any, second: Any) -> ap.Scenario:
    """Two links in a row with these queues, and a fast return path."""
    common = {"rate": "3Mbit", "delay": "5ms"}
    return ap.Scenario(
        seed=1,
        stop="4s",
        link={"x": {"from": "a", "to": "b", "queue": first, **common}, "y": {"from": "b", "to": "c", "queue": second, **common}},
        flow={
            "one": {"from": "a", "to": "c", "source": {"kind": "cbr", "rate": "1Mbit"}},
            "two": {"from": "a", "to": "c", "source": {"kind": "cbr", "rate": "4Mbit"}},
        },
    )


class Labels(PlainFifo):
    """Writes what its parameter says, and notes what it reads."""

    name = "labels"
    seen: set[tuple[str, float | None]] = set()

    def __init__(self, link: Any, value: Any = 0.0) -> None:
        super().__init__(link, 50)
        self.link, self.value = link.name, value

    def enqueue(self, now: float, packet: Any) -> None:
        self.seen.add((self.link, packet.label("rate")))
        if self.value:
            packet.set_label("tickets", 7)
            packet.set_label("rate", self.value)
            assert packet.label("tickets") is None
        super().enqueue(now, packet)

    def dequeue(self, now: float) -> Any:
        packet = super().dequeue(now)
        if packet and self.value == 2.0:
            packet.set_label("rate", None)
        return packet


def test_labels_reach_the_next_queue() -> None:
    ap.register(Labels)
    Labels.seen.clear()
    path_of({"kind": "labels", "value": 1234567.0}, "labels").run(progress=False)
    # A label keeps 13 significant bits of a rate.
    (first, none), (second, value) = sorted(Labels.seen, key=str)
    assert "x" in first and none is None and "y" in second
    assert value != 1234567.0 and value == pytest.approx(1234567.0, rel=1 / 8192)
    Labels.seen.clear()
    path_of({"kind": "labels", "value": 2.0}, "labels").run(progress=False)
    assert {value for _, value in Labels.seen} == {None}


def test_an_edge_in_python_serves_a_core_of_the_library() -> None:
    class Edge(PlainFifo):
        name = "edge"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)

        def enqueue(self, now: float, packet: Any) -> None:
            packet.set_label("rate", 1e6 if packet.flow == 0 else 4e6)
            super().enqueue(now, packet)

    ap.register(Edge)
    core = {"kind": "csfq", "role": "core"}
    r = path_of({"kind": "edge"}, core).set({"link.x.rate": "10Mbit"}).run(progress=False)
    rates = {row.group: row.throughput for row in r.shares}
    # Without labels the core would drop everything; in proportion to arrivals the first flow would get 0.6 Mb/s.
    assert rates["one"] == pytest.approx(1.0, rel=0.05) and rates["two"] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    ("call", "error"),
    [(("colour", 1.0), "kinds are tickets, ack_tickets, rate, value"), (("rate", -1.0), "finite number"), (("rate", float("nan")), "finite number")],
)
def test_a_label_without_sense_is_refused(call: Any, error: str) -> None:
    class Wrong(PlainFifo):
        name = "wrong_label"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)

        def enqueue(self, now: float, packet: Any) -> None:
            packet.set_label(*call)

    ap.register(Wrong)
    with pytest.raises(ValueError, match=error):
        against("wrong_label").run(progress=False)


def counting(returned: Any) -> type:
    class Counts(PlainFifo):
        name = "counts"

        def __init__(self, link: Any) -> None:
            super().__init__(link, 50)
            self.sent = 0

        def dequeue(self, now: float) -> Any:
            packet = super().dequeue(now)
            self.sent += packet is not None
            return packet

        def statistics(self) -> Any:
            return returned or {"sent": self.sent, "half": self.sent / 2}

    return ap.register(Counts)


def test_statistics_are_rows_of_their_table(tmp_path: Any) -> None:
    counting(None)
    r = against("counts", "red").run(seeds=2, progress=False)
    own = [row for row in r.statistics if row["point"] == "queue=counts"]
    assert [row["statistic"] for row in own] == ["sent", "half"] * 2
    assert own[0]["value"] == 2 * own[1]["value"] > 500 and own[0]["link"] == "bottleneck"
    assert any(row["point"] == "queue=red" for row in r.statistics)
    assert ap.load(r.write(tmp_path)).statistics.to_dict() == r.statistics.to_dict()


@pytest.mark.parametrize("returned", [{"x": float("nan")}, {"x": "y"}, {1: 2}, 5])
def test_statistics_without_sense_end_the_run(returned: Any) -> None:
    counting(returned)
    with pytest.raises(TypeError, match="return a dict of names and finite numbers"):
        against("counts").run(progress=False)
