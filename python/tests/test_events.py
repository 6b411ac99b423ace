"""Callbacks during a run."""

import os
import signal
import threading
import traceback
from collections import Counter
from typing import Any

import pytest

import apportion as ap

REASONS = ("early", "forced", "overflow", "policy", "push_out")


@pytest.fixture(scope="module")
def crowded() -> ap.Scenario:
    """Drops for several reasons, losses and marks, at two points."""
    flows = {"ecn": {"tcp": {"profile": "linux", "ecn": True}}, "tcp": {"count": 2}, "udp": {"source": {"kind": "cbr", "rate": "2Mbit"}}}
    queue = [{"kind": "fifo", "limit": "20p"}, {"kind": "red", "limit": "20p", "ecn": True}, {"kind": "drr", "limit": "20p"}]
    return ap.dumbbell(flows, rate="3Mbit", queue=queue, stop="4s", measure_from="1s").set({"loss": "1%"})


def test_drops_are_those_of_the_tables(crowded: ap.Scenario) -> None:
    drops: Counter[tuple[str, int, str | None, str]] = Counter()
    links: Counter[tuple[str, int, str, str]] = Counter()

    def count(drop: ap.Dropped) -> None:
        assert 0 <= drop.time <= 4 and 40 <= drop.size <= 1500
        if drop.time >= 1.0:
            drops[drop.point, drop.seed, drop.flow, drop.reason] += 1
            links[drop.point, drop.seed, drop.link, drop.reason] += 1

    r = crowded.run(seeds=2, on_drop=count, progress=False)
    for row in r.flows:
        of_flow = {reason: drops[row["point"], row["seed"], row["flow"], reason] for reason in (*REASONS, "lost")}
        assert of_flow == {**{reason: row[f"drops_{reason}"] for reason in REASONS}, "lost": row["lost_packets"]}
    for row in r.links:
        of_link = {reason: links[row["point"], row["seed"], row["link"], reason] for reason in (*REASONS, "lost")}
        assert of_link == {**{reason: row[f"drops_{reason}"] for reason in REASONS}, "lost": row["lost_packets"]}
    assert {reason for *_, reason in drops} >= {"overflow", "early", "lost"}
    # Results do not depend on callbacks.
    assert r.flows.to_dict() == crowded.run(seeds=2, progress=False).flows.to_dict()


def test_marks_are_those_of_the_tables(crowded: ap.Scenario) -> None:
    marks: Counter[tuple[str, int, str | None]] = Counter()
    r = crowded.run(on_mark=lambda mark: marks.update([(mark.point, mark.seed, mark.flow)] * (mark.time >= 1.0)), progress=False)
    for row in r.flows:
        assert marks[row["point"], row["seed"], row["flow"]] == row["marked_packets"]
    assert marks


def test_samples_are_the_series_in_order(crowded: ap.Scenario) -> None:
    samples: list[ap.Sampled] = []
    r = crowded.run(seeds=2, jobs=2, on_sample=samples.append, progress=False)
    labels = [point.label for point in r.points]
    order = [(labels.index(sample.point), r.seeds.index(sample.seed), sample.time) for sample in samples]
    assert order == sorted(set(order)) and len(order) == 3 * 2 * 400
    series = {(row["point"], row["seed"], row["name"], row["t_s"]): row for row in r.series}
    seen = 0
    for sample in samples:
        all_of: dict[str, ap.FlowSample | ap.LinkSample] = {**sample.flows, **sample.links}
        for name, of in all_of.items():
            row = series[sample.point, sample.seed, name, round(sample.time, 6)]
            for column, value in of._asdict().items():
                assert row[column] == pytest.approx(value, abs=1e-6), column
            seen += 1
    assert seen == len(series)


def test_what_a_function_raises_ends_the_run(crowded: ap.Scenario) -> None:
    calls: list[float] = []

    def fail(event: ap.Dropped | ap.Marked) -> None:
        calls.append(event.time)
        if len(calls) == 50:
            raise LookupError("the fiftieth")

    with pytest.raises(LookupError, match="the fiftieth") as found:
        crowded.run(seeds=5, on_drop=fail, on_mark=fail, progress=False)
    assert len(calls) == 50
    assert "in fail" in "".join(traceback.format_tb(found.value.__traceback__))
    with pytest.raises(TypeError):
        crowded.run(on_sample=lambda: None, progress=False)  # type: ignore[arg-type,misc]


def test_an_interrupt_keeps_what_has_ended(crowded: ap.Scenario) -> None:
    drops: Counter[int] = Counter()
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ap.IncompleteWarning):
        r = crowded.run(4000, on_drop=lambda drop: drops.update([drop.seed]), progress=False)
    timer.join()
    assert not r.complete and len(r.flows)
    # The last replication had begun.
    assert len(drops) - len(set(r.flows["seed"])) in (0, 1)


def test_functions_see_the_own_discipline_too() -> None:
    @ap.register
    class DropsAll:
        name = "drops_all"

        def __init__(self, link: Any) -> None:
            pass

        def admit(self, now: float, packet: Any, buffer: Any) -> bool:
            return False

    seen: list[ap.Dropped] = []
    s = ap.dumbbell({"udp": {"source": {"kind": "cbr", "rate": "2Mbit"}}}, rate="3Mbit", queue="drops_all", stop="1s", measure_from="0s")
    r = s.run(on_drop=seen.append, progress=False)
    assert len(seen) == r.flows["drops_overflow"][0] > 100


def test_a_function_may_touch_packets_of_the_discipline() -> None:
    kept: list[Any] = []

    @ap.register
    class Keeps:
        name = "keeps"

        def __init__(self, link: Any) -> None:
            pass

        def enqueue(self, now: float, packet: Any) -> None:
            kept.append(packet)
            if len(kept) == 5:
                kept.pop().drop("early")

        def dequeue(self, now: float) -> Any:
            return kept.pop(0) if kept else None

    def drop_another(drop: ap.Dropped) -> None:
        if drop.reason == "early":
            kept.pop().drop("push_out")

    s = ap.dumbbell({"udp": {"source": {"kind": "cbr", "rate": "4Mbit"}}}, rate="3Mbit", queue="keeps", stop="1s", measure_from="0s")
    r = s.run(on_drop=drop_another, progress=False)
    assert r.flows["drops_early"][0] > 10 and abs(r.flows["drops_early"][0] - r.flows["drops_push_out"][0]) <= 1


def test_a_sweep_has_them_and_a_cluster_has_not(crowded: ap.Scenario) -> None:
    points: set[str] = set()
    w = ap.sweep(crowded, {"rate": ["2Mbit", "3Mbit"]}, on_drop=lambda drop: points.add(drop.point), progress=False)
    assert points == {point.label for point in w.scenario.points}
    with pytest.raises(ValueError, match="cannot call on_drop and on_sample: leave that out, or `client`"):
        ap.sweep(crowded, {"rate": ["2Mbit"]}, client=object(), on_drop=print, on_sample=print)
