"""Runs: seeds, progress, interrupts."""

import json
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import apportion as ap


def long(seconds: int = 20) -> ap.Scenario:
    return ap.dumbbell(2, rate="20Mbit", stop=f"{seconds}s", measure_from="1s")


def test_the_same_seed_gives_the_same_tables_whatever_the_threads(small: ap.Scenario, results: ap.Results) -> None:
    again = small.run(2, jobs=1, phase_check=False, progress=False)
    for table in ("flows", "links", "series", "statistics"):
        assert getattr(again, table).to_dict() == getattr(results, table).to_dict()
    assert len(again.phase_sensitivity) == 0 < len(results.phase_sensitivity)
    assert again.seeds == results.seeds and len(set(again.seeds)) == 2


def test_a_run_warns_at_the_line_that_calls_it(small: ap.Scenario) -> None:
    for is_sweep in (False, True):
        with pytest.warns(ap.ScenarioWarning) as caught:
            if is_sweep:
                results = ap.sweep(small, {"delay": ["1ms"]}, progress=False).results
            else:
                results = small.run(progress=False)
        assert results.warnings == tuple(str(warning.message) for warning in caught)
        assert [warning.filename for warning in caught] == [__file__]
        assert results.warnings[0].startswith("only 2 s are measured, ")


def test_a_run_without_doubts_warns_of_nothing() -> None:
    s = ap.dumbbell(2, rate="1Mbit", stop="12s", measure_from="2s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert s.run(progress=False).warnings == ()


def test_progress_is_reported_in_order(small: ap.Scenario) -> None:
    seen: list[tuple[int, int]] = []
    small.run(3, phase_check=False, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen) and seen[-1] == (6, 6)


def test_what_progress_raises_ends_the_run(small: ap.Scenario) -> None:
    def fail(done: int, total: int) -> None:
        raise LookupError(f"{done} of {total}")

    with pytest.raises(LookupError, match="of 4000"):
        small.run(1000, progress=fail)


@pytest.mark.parametrize("callback", ["progress", "on_sample"])
@pytest.mark.parametrize("seeds", [1, 5])
def test_a_run_that_raises_leaves_no_folder(small: ap.Scenario, tmp_path: Path, callback: str, seeds: int) -> None:
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        # The last sample of the first replication is the thirtieth.
        if callback == "progress" or calls == 40:
            raise LookupError

    arguments: dict[str, Any] = {"progress": False, callback: fail}
    with pytest.raises(LookupError):
        small.run(seeds, folder=tmp_path / "out", **arguments)
    assert list((tmp_path / "out").iterdir()) == []


def interrupted_after(
    seconds: float, scenario: ap.Scenario, seeds: int, folder: Path | None = None
) -> tuple[ap.Results, float]:
    sent = [0.0]

    def interrupt() -> None:
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    timer.start()
    try:
        results = scenario.run(seeds, progress=False, folder=folder)
        return results, time.monotonic() - sent[0]
    finally:
        timer.join()


def test_an_interrupt_keeps_what_has_ended(small: ap.Scenario) -> None:
    with pytest.warns(ap.IncompleteWarning, match="of 8000 replications"):
        results, took = interrupted_after(1.0, small, 4000)
    assert not results.complete and 0 < len(results.flows) < 16000
    assert "incomplete" in repr(results)
    # 0.1 s on an idle machine.
    assert took < 1.0


def test_an_interrupt_before_anything_has_ended_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted_after(0.3, long(3600).set(measure_from="3599s"), 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_replication_keeps_what_it_measured() -> None:
    with pytest.warns(ap.IncompleteWarning, match=r"interrupted at .* of 100000 s .*: the results are partial"):
        results, _ = interrupted_after(1.0, long(100_000).set(measure_from="10ms"), 1)
    assert not results.complete and results.cut and results.cut.endswith("of 100000 s of simulated time")
    assert len(results.flows) == 2 and min(results.flows["throughput_mbps"]) > 1


def test_other_threads_run_meanwhile() -> None:
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.01):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    long(60).run(progress=False)
    took = time.monotonic() - started
    stop.set()
    thread.join()
    assert ticks > 20 * took


def test_runs_of_several_threads_are_independent(small: ap.Scenario, results: ap.Results) -> None:
    found: list[ap.Results] = []
    threads = [threading.Thread(target=lambda: found.append(small.run(2, progress=False))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.flows.to_dict() for one in found] == [results.flows.to_dict()] * 3


def test_what_is_too_large_is_refused() -> None:
    huge = ap.dumbbell(2, rate="100Gbit", stop="100000s")
    with pytest.raises(ap.RunError, match="more than a day"):
        huge.run()


@pytest.mark.parametrize("arguments", [{"seeds": 0}, {"seeds": -1}, {"jobs": -1}])
def test_arguments_without_sense_are_refused(small: ap.Scenario, arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        small.run(**arguments)  # type: ignore[arg-type]


def test_results_are_written_as_the_command_does(results: ap.Results, tmp_path: Path) -> None:
    folder = results.write(tmp_path / "out")
    assert folder == tmp_path / "out" / "1"
    assert {"flows.csv", "flows.parquet", "report.html", "run.json"} <= {file.name for file in folder.iterdir()}
    assert results.write(tmp_path / "out") == tmp_path / "out" / "2"
    assert "<html" in results.report() and "queue=drr" in results.summary()
    assert results.summary() == str(results)
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ap.RunError, match="it is a file, not a folder"):
        results.write(tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "x"


def test_a_folder_of_a_run_has_captures(tmp_path: Path) -> None:
    s = ap.dumbbell(1, stop="1s", measure_from="0s").set({"link.bottleneck.pcap": True})
    s.run(folder=tmp_path / "out")
    assert (tmp_path / "out" / "1" / "bottleneck.pcap").stat().st_size > 1000


def test_a_long_run_holds_rows_and_no_series(tmp_path: Path) -> None:
    s = ap.dumbbell(1, rate="1Mbit", stop="300ms", measure_from="100ms")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ap.ScenarioWarning)
        long_one, short = s.run(1001, phase_check=False, progress=False), s.run(1000, phase_check=False, progress=False)
    assert len(long_one.series) == 0 < len(short.series)
    assert list(long_one.flows)[:-1] == list(short.flows) and len(long_one.flows) == 1001
    assert list(long_one.links)[: len(short.links)] == list(short.links)
    folder = long_one.write(tmp_path)
    assert ap.load(folder).flows.to_dict() == long_one.flows.to_dict()
    assert (folder / "report.html").read_text() == long_one.report()
    with pytest.raises(ValueError, match="of more than 1000 replications, do not have the distribution of delays"):
        long_one.plot.cdf("delay")
    with pytest.raises(ValueError, match="at most 2000 flows and 1000 replications"):
        long_one.plot.throughput()


def test_what_is_no_number_of_replications_is_named(small: ap.Scenario) -> None:
    with pytest.raises(TypeError, match="seeds is '3'; write a whole number"):
        small.run("3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="jobs is 1.5"):
        ap.sweep(small, {"rate": ["3Mbit"]}, jobs=1.5)  # type: ignore[arg-type]


def test_a_run_goes_on_from_what_was_kept(small: ap.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPORTION_CACHE_DIR", str(tmp_path / "cache"))

    def reused(results: ap.Results) -> int:
        assert results.folder
        return int(json.loads((results.folder / "run.json").read_text())["made"]["reused"])

    fresh = small.run(3, progress=False, folder=tmp_path)
    assert reused(fresh) == 0 and not (tmp_path / "cache").exists()
    assert reused(small.run(2, cache=True, progress=False, folder=tmp_path)) == 0
    again = small.run(3, cache=True, progress=False, folder=tmp_path)
    # Two points, each replication with its perturbed copy.
    assert reused(again) == 8 and again.flows.to_dict() == fresh.flows.to_dict()
    assert ap.sweep(small, {"rate": ["4Mbit"]}, cache=True, progress=False).results.complete
    assert len(list((tmp_path / "cache" / "2").glob("*/*"))) == 4
    monkeypatch.setenv("APPORTION_CACHE_DIR", "/dev/null/cache")
    with pytest.warns(UserWarning, match="/dev/null/cache.*results are not cached") as caught:
        small.run(cache=True, progress=False)
    assert {warning.filename for warning in caught} == {__file__}


def test_tuples_of_keys_vary_together(small: ap.Scenario) -> None:
    pairs = [("2Mbit", "4ms"), ("4Mbit", "2ms")]
    w = ap.sweep(small, {("rate", "delay"): pairs, "queue": ["fifo", "drr"]}, progress=False)
    assert (len(w.scenario.points), w.axes) == (4, {"rate": ["2Mbit", "4Mbit"], "queue": ["fifo", "drr"]})
    found = {(p.settings["topology.bottleneck.rate"], p.settings["topology.bottleneck.delay"]) for p in w.scenario.points}
    assert found == set(pairs)
    data = w.to_xarray()
    assert data["delay"].dims == ("rate",) and data["delay"].values.tolist() == [4e-3, 2e-3]
    for values in ([("2Mbit",)], ["2Mbit"]):
        with pytest.raises(ValueError, match="is no tuple of 2 values, one for each of rate, delay"):
            ap.sweep(small, {("rate", "delay"): values})
    with pytest.raises(ValueError, match=r"under \[sweep\]"):
        zipped = {"rate": ["2Mbit", "3Mbit"], "delay": ["4ms", "5ms"], "sweep.zip": [["rate", "delay"]]}
        ap.sweep(small.set(zipped), {("rate", "delay"): pairs})
