"""Congestion controls in Python: in the simulator, beside others, and under the laws."""

import random
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import apportion as ap
from apportion import laws


class Aimd:
    """One segment more for each round trip, and half of the window for a loss."""

    reference = "Chiu and Jain 1989"

    def __init__(self, connection: Any) -> None:
        assert connection.initial_window >= 2 and connection.wire > connection.segment

    def on_ack(self, window: Any, ack: Any) -> None:
        if ack.may_grow:
            window.cwnd += ack.acked if window.is_slow_start else ack.acked / window.cwnd

    def on_loss(self, window: Any, event: Any) -> Any:
        return event.basis / 2


class Halves(Aimd):
    """What the Reno of the library does."""

    def on_ack(self, window: Any, ack: Any) -> None:
        if ack.may_grow:
            window.grow_as_reno(ack.counted, ack.abc_limit)


@pytest.fixture(autouse=True)
def registered() -> None:
    for cls in (Aimd, Halves):
        ap.register(cls)


def one(link: dict[str, Any] | None = None, **flow: Any) -> ap.Scenario:
    """One flow over one link."""
    between = {"from": "a", "to": "b"}
    path = {**between, "rate": "10Mbit", "delay": "20ms", "queue": {"kind": "fifo", "limit": "50p"}, "watch": True, **(link or {})}
    return ap.Scenario(seed=1, stop="20s", measure_from="5s", link={"x": path}, flow={"one": {**between, **flow}})


def rows(results: ap.Results) -> list[dict[str, Any]]:
    return [{**row, "point": ""} for row in results.flows]


@pytest.mark.parametrize(
    ("transport", "known"),
    [
        ({"tcp": {"ecn": True}}, "sack"),
        ({"tcp": {"pacing": True}}, "sack"),
        ({"tcp": {"profile": "rfc", "ecn": True}}, "sack"),
        ({"quic": {"ecn": True}}, "newreno"),
    ],
)
def test_what_does_the_same_as_a_control_of_the_library_gives_the_same(transport: dict[str, Any], known: str) -> None:
    ((carrier, keys),) = transport.items()
    link = {"loss": "0.3%", "queue": {"kind": "codel", "ecn": True}}
    own, library = (one(link, **{carrier: {**keys, "algorithm": name}}).run(progress=False) for name in ("halves", known))
    assert rows(own) == rows(library)
    assert own.flows["throughput_mbps"][0] > 1


def test_it_is_in_a_sweep_with_others_and_a_run_repeats() -> None:
    s = one({"loss": "0.3%"}, tcp=["reno", "cubic", "aimd"])
    first = s.run(2, progress=False, jobs=1)
    assert [point.label for point in first.points] == ["tcp=reno", "tcp=cubic", "tcp=aimd"]
    assert first.flows.to_dict() == s.run(2, progress=False, jobs=4).flows.to_dict()
    rates = dict(zip(first.flows["point"], first.flows["throughput_mbps"]))
    assert rates["tcp=aimd"] != rates["tcp=cubic"] and min(rates.values()) > 3
    # The cache would have results of other classes with this name.
    assert one(tcp="aimd")._native.has_own_code and not one(tcp="cubic")._native.has_own_code


def test_it_is_in_a_league() -> None:
    cells = ap.league(["fifo", "drr"], [ap.dumbbell({"own": {"tcp": "aimd"}}, stop="8s")], phase_check=False, progress=False).cells
    shares = [row["mean"] for row in cells if row["metric"] == "worst_share"]
    assert len(shares) == 2 and min(shares) > 0.9


def test_it_is_listed_and_explained() -> None:
    assert "Chiu and Jain 1989" in ap.explain("aimd") and 'quic = "aimd"' in ap.explain("aimd")
    assert "aimd" in {entry.name for entries in ap.names().values() for entry in entries}
    with pytest.raises(ap.ScenarioError, match="did you mean `halves`"):
        one(tcp="halvs")


def test_every_hook_is_called() -> None:
    called: set[str] = set()

    def noting(name: str) -> Callable[..., Any]:
        def hook(self: Any, *arguments: Any) -> Any:
            called.add(name)
            return getattr(super(Spy, self), name)(*arguments)

        return hook

    class Silent(Aimd):
        on_repaired_loss = on_mark = Aimd.on_loss

        def on_timeout(self, window: Any, event: Any) -> Any:
            assert window.cwnd > 0 and event.in_flight >= 0 and event.again in (False, True)
            return event.basis / 2

        def on_sent(self, window: Any, sent: Any) -> None:
            assert sent.now >= 0 and sent.number > 0 and sent.in_flight >= 0

        def on_feedback(self, feedback: Any) -> None:
            assert feedback.one_way_delay is None and feedback.bytes >= 0 and feedback.marked <= feedback.segments

        def on_segment_lost(self, window: Any, now: float, number: int) -> None:
            assert window.cwnd > 0 and 0 < now < 20 and number > 0

        def on_recovered(self, window: Any) -> None: ...
        def on_undone(self) -> None: ...
        def on_restart(self) -> None: ...

        def on_app_limited(self, in_flight: int) -> None:
            assert in_flight >= 0

        def pacing_rate(self, srtt: float | None) -> float | None:
            return None if srtt is None else 20e6

        def moves_window(self, phase: str) -> bool:
            assert phase in ("open", "cwr", "recovery", "loss")
            return False

        def has_slow_start(self) -> bool:
            return True

        def mark_share(self) -> float:
            return 1.0

    hooks = [name for name in dir(Silent) if not name.startswith("_") and callable(getattr(Silent, name))]
    assert len(hooks) == 16

    class Spy(Silent):
        pass

    for name in hooks:
        setattr(Spy, name, noting(name))
    ap.register(Spy)
    ap.register(type("Counted", (Spy,), {"marks": "counted", "paces": True}), name="counted")
    for scenario in [
        one({"loss": "5%"}, tcp="spy", source={"kind": "dash"}),
        one({"loss": "5%"}, tcp="spy", source={"kind": "short_flows", "per_second": 5, "mean_size": "30kB"}),
        one({"jitter": {"max": "60ms", "reorder": True}}, tcp="spy"),
        one({"queue": {"kind": "codel", "ecn": True}}, tcp="counted"),
        one(tcp={"profile": "rfc", "algorithm": "spy"}, source={"kind": "dash"}),
    ]:
        scenario.run(progress=False)
    assert called == set(hooks)


def test_a_control_moves_the_window_and_names_a_rate_by_itself() -> None:
    class Fixed(Aimd):
        """Eight segments in the network, at 2 Mb/s."""

        paces = True

        def on_sent(self, window: Any, sent: Any) -> None:
            window.cwnd = 8

        def on_ack(self, window: Any, ack: Any) -> None:
            window.cwnd = 8

        def on_loss(self, window: Any, event: Any) -> Any:
            window.cwnd = 8
            return window

        def moves_window(self, phase: str) -> bool:
            return True

        def pacing_rate(self, srtt: float | None) -> float:
            return 2e6

    ap.register(Fixed)
    for carrier in ("tcp", "quic"):
        (rate,) = one({"loss": "1%"}, **{carrier: "fixed"}).run(progress=False).flows["throughput_mbps"]
        assert 1.7 < rate <= 2.01, carrier


def raises(self: Any, *_: Any) -> Any:
    raise LookupError("mine")


def sets(**values: Any) -> Callable[..., Any]:
    def hook(self: Any, window: Any, *_: Any) -> None:
        for name, value in values.items():
            setattr(window, name, value)

    return hook


def returns(value: Any) -> Callable[..., Any]:
    return lambda self, *_: value


NAN = float("nan")
SEGMENTS = "return the segments that are left, a finite number from 0; or the window, if it is moved; or None"
THRESHOLD = "return the threshold in segments, a finite number from 0"
RATE = "return a rate in bit/s, a finite number from 1; or None"


@pytest.mark.parametrize(
    ("name", "hook", "error", "message"),
    [
        ("on_ack", sets(cwnd=0), ValueError, "left window.cwnd = 0 and window.ssthresh = inf; keep both above 0, and cwnd finite"),
        ("on_ack", sets(cwnd=-3.5), ValueError, "left window.cwnd = -3.5 and"),
        ("on_ack", sets(cwnd=NAN), ValueError, "left window.cwnd = NaN and"),
        ("on_ack", sets(cwnd=float("inf")), ValueError, "left window.cwnd = inf and"),
        ("on_sent", sets(ssthresh=NAN), ValueError, "left window.cwnd = 10 and window.ssthresh = NaN"),
        ("on_ack", sets(cwnd="half"), TypeError, "must be real number, not str"),
        ("on_loss", returns("half"), TypeError, f"returned 'half'; {SEGMENTS}"),
        ("on_loss", returns(-1), ValueError, f"returned -1; {SEGMENTS}"),
        ("on_loss", returns(NAN), ValueError, f"returned nan; {SEGMENTS}"),
        ("on_loss", sets(cwnd=5), ValueError, "moved the window; return it where it is moved"),
        ("on_timeout", returns(None), TypeError, f"returned None; {THRESHOLD}"),
        ("on_timeout", returns(NAN), ValueError, f"returned nan; {THRESHOLD}"),
        ("on_segment_lost", sets(cwnd=5), ValueError, "moved the window; it is for reading here"),
        ("pacing_rate", returns(0), ValueError, f"returned 0; {RATE}"),
        ("pacing_rate", returns("fast"), TypeError, f"returned 'fast'; {RATE}"),
        ("moves_window", returns(1), TypeError, "returned 1; return True or False"),
        ("has_slow_start", returns(None), TypeError, "returned None; return True or False"),
        ("mark_share", returns(2), ValueError, "returned 2; return a share from 0 to 1"),
        ("on_ack", raises, LookupError, "mine"),
        ("on_timeout", raises, LookupError, "mine"),
        ("__init__", raises, LookupError, "mine"),
        ("on_recovered", lambda self: None, TypeError, "takes 1 positional argument but 2 were given"),
    ],
)
def test_what_makes_no_sense_ends_the_run_and_names_class_and_hook(
    name: str, hook: Callable[..., Any], error: type[Exception], message: str
) -> None:
    ap.register(type("Wrong", (Aimd,), {name: hook, "name": "wrong", "paces": True, "marks": "counted"}))
    s = one({"loss": "5%"}, tcp="wrong", source={"kind": "short_flows", "per_second": 5, "mean_size": "30kB"})
    with pytest.raises(error) as found:
        s.run(2, progress=False)
    assert message in str(found.value)
    # Exceptions have a note, except in Python 3.10, which lacks notes.
    if not str(found.value).startswith(f"Wrong.{name} ") and sys.version_info >= (3, 11):
        assert found.value.__notes__[-1] == f"in Wrong.{name}"
    # Another run is not affected.
    assert one(tcp="aimd").run(progress=False).complete


def test_an_exception_has_its_traceback() -> None:
    ap.register(type("Raises", (Aimd,), {"on_ack": raises}), name="raises")
    with pytest.raises(LookupError) as found:
        one(tcp="raises").run(progress=False)
    assert 'raise LookupError("mine")' in "".join(traceback.format_tb(found.value.__traceback__))


def test_a_class_without_what_it_needs_is_refused() -> None:
    for name in ("on_ack", "on_loss"):
        with pytest.raises(ValueError, match="Half has no on_(ack|loss): a congestion control has on_ack and on_loss"):
            ap.register(type("Half", (), {name: returns(None)}))
    with pytest.raises(ValueError, match=r"Bare is made as Bare\(connection\): give __init__ this one argument"):
        ap.register(type("Bare", (), {"on_ack": returns(None), "on_loss": returns(None)}))
    with pytest.raises(ValueError, match="another congestion control has this name"):
        ap.register(Aimd, name="cubic")
    with pytest.raises(ValueError, match="Odd.paces is 1; write True or False"):
        ap.register(type("Odd", (Aimd,), {"paces": 1}))
    with pytest.raises(ValueError, match="Odd.reference is None; write text"):
        ap.register(type("Odd", (Aimd,), {"reference": None}))
    with pytest.raises(ValueError, match="marks is `some`; write one, echoed or counted"):
        ap.register(type("Odd", (Aimd,), {"marks": "some"}))


def test_attributes_say_what_it_asks_of_the_transport() -> None:
    delays: list[float | None] = []

    class Delay(Aimd):
        needs_rack, one_way_delay, quic = True, True, False

        def on_feedback(self, feedback: Any) -> None:
            delays.append(feedback.one_way_delay)

    ap.register(Delay)
    one(tcp="delay").run(progress=False)
    assert all(delay is not None and delay >= 0.02 for delay in delays[1:])
    with pytest.raises(ap.ScenarioError, match="delay"):
        one(quic="delay")
    with pytest.raises(ap.RunError, match='`delay` with `sack_recovery = "rack"` only'):
        one(tcp={"profile": "rfc", "algorithm": "delay"}).run(progress=False)


def grows(self: Any, window: Any, *_: Any) -> None:
    window.cwnd *= 2


def by_chance(self: Any, window: Any, ack: Any) -> None:
    window.cwnd += random.random()


@pytest.mark.parametrize(
    ("name", "hook", "law"),
    [
        ("on_ack", sets(cwnd=NAN), "finite windows"),
        ("on_loss", returns(NAN), "finite windows"),
        ("on_timeout", lambda self, window, event: 2 * event.cwnd, "timeouts"),
        ("on_ack", by_chance, "determinism"),
        ("on_sent", grows, "no growth without an ACK"),
        ("on_ack", returns(None), "recovery from an outage"),
    ],
)
def test_a_law_that_is_broken_is_found(name: str, hook: Callable[..., Any], law: str) -> None:
    with pytest.raises(laws.LawError, match=f"the law of {law} is broken"):
        laws.check(type("Wrong", (Aimd,), {name: hook}))


def test_the_laws_are_kept() -> None:
    laws.check(Aimd)
    laws.check(Halves)
    with pytest.raises(LookupError, match="mine"):
        laws.check(type("Raises", (Aimd,), {"on_mark": raises}))


def test_it_is_fast_enough_to_be_used() -> None:
    acks = 0

    class Counts(Aimd):
        def on_ack(self, window: Any, ack: Any) -> None:
            nonlocal acks
            acks += 1
            super().on_ack(window, ack)

    ap.register(Counts)
    s = ap.dumbbell({"one": {"tcp": "counts"}}, rate="1Gbit", stop="12s", measure_from="2s")

    def seconds(name: str) -> float:
        begin = time.process_time()
        s.set({"flow.one.tcp": name}).run(progress=False)
        return time.process_time() - begin

    seconds("counts")
    own, library = (min(seconds(name) for _ in range(3)) for name in ("aimd", "reno"))
    print(f"{acks} ACKs: {acks / own:.0f} a second, {(own - library) / acks * 1e6:.2f} us more for each than with reno")
    # A million on two shared cores.
    assert acks > 400_000 and acks / own > 200_000
