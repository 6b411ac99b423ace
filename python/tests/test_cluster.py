"""Sweeps and experiments on a cluster: a scheduler and workers as processes on this machine."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import apportion as ap

distributed = pytest.importorskip("distributed")

APPORTION = str(Path(sys.executable).with_name("apportion"))


class Cluster:
    """A scheduler with workers of one thread each, as processes in their own folders."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        deadline = time.monotonic() + 60
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < deadline and self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        # The workers start while the first sweep waits for them.
        self.workers = [self.start("worker", self.address, "--nthreads", "1", "--no-nanny") for _ in range(workers)]

    def start(self, what: str, *words: str) -> "subprocess.Popen[bytes]":
        # The workers share no cache or folder with the client.
        environment = {**os.environ, "APPORTION_CACHE_DIR": "/dev/null"}
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words, "--no-dashboard"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.processes.append(process)
        return process

    def client(self) -> Any:
        return distributed.Client(self.address, set_as_default=False)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster to destroy."""
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    yield cluster
    cluster.close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("APPORTION_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder: Path) -> dict[str, bytes]:
    """Return all files but run.json, which tells when and how results were made."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.json"}


def written(results: ap.Results, folder: Path) -> dict[str, bytes]:
    return files(results.write(folder))


class Progress:
    """Collects the reported progress."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))


RATES = {"rate": ["3Mbit", "5Mbit"]}


def test_a_cluster_gives_the_same_bytes(cluster: Cluster, small: ap.Scenario, tmp_path: Path) -> None:
    alone = written(ap.sweep(small, RATES, seeds=3, progress=False).results, tmp_path / "alone")
    with cluster.client() as client:
        swept = ap.sweep(small, RATES, seeds=3, client=client, progress=False)
        assert written(swept.results, tmp_path / "swept") == alone
        assert len(swept.results.phase_sensitivity) > 0 and swept.axes == {"queue": ["fifo", "drr"], **RATES}
        # A larger sweep simulates only the rest. Perturbed copies count.
        progress = Progress()
        ap.sweep(small, {"rate": ["3Mbit", "5Mbit", "8Mbit"]}, seeds=4, client=client, progress=progress)
        assert progress.seen[0][0] > 24 and progress.seen[-1] == (48, 48)
        # The same sweep simulates nothing.
        progress = Progress()
        ap.sweep(small, RATES, seeds=3, client=client, progress=progress)
        assert progress.seen == []


def test_batches_follow_what_was_measured_and_the_last_are_short() -> None:
    from apportion._cluster import _Batches

    batches = _Batches(list(range(1000)), 1000, [0.01])
    first = batches.next(2)
    assert first is not None and len(first.numbers) == 50
    # Twice the estimate.
    batches.learn(first, 1.0)
    sizes = []
    while batch := batches.next(2):
        sizes.append(len(batch.numbers))
    assert sizes[0] in (25, 26) and sizes[-2] in (5, 6) and sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == 950


def test_files_travel_with_the_scenario(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "frames.txt").write_text("1000\n2000\n")
    link = {"from": "a", "to": "b", "rate": "2Mbit", "delay": "5ms"}
    source = {"kind": "video", "file": "frames.txt", "fps": 25}
    scenario = ap.Scenario(
        seed=1,
        stop="2s",
        link={"x": link},
        flow={"video": {"from": "a", "to": "b", "source": source}},
        origin=tmp_path / "here" / "x.toml",
    )
    alone = written(ap.sweep(scenario, RATES, progress=False).results, tmp_path / "alone")
    with cluster.client() as client:
        swept = ap.sweep(scenario, RATES, client=client, progress=False)
    assert written(swept.results, tmp_path / "swept") == alone


# A simulation takes a fraction of a second, and is a batch.
SLOW = ap.dumbbell(4, rate="40Mbit", stop="200s", measure_from="1s")


def test_what_a_killed_worker_had_is_simulated_again(own_cluster: Cluster, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed:
            own_cluster.workers[0].send_signal(signal.SIGKILL)
            killed.append(done)

    with own_cluster.client() as client:
        client.wait_for_workers(2, 60)
        swept = ap.sweep(SLOW, RATES, seeds=5, phase_check=False, client=client, progress=kill)
    assert 0 < killed[0] < 10
    alone = ap.sweep(SLOW, RATES, seeds=5, phase_check=False, progress=False)
    assert written(swept.results, tmp_path / "swept") == written(alone.results, tmp_path / "alone")


def test_a_sweep_goes_on_after_its_scheduler_was_killed(own_cluster: Cluster, cluster: Cluster) -> None:
    def kill(done: int, total: int) -> None:
        own_cluster.scheduler.send_signal(signal.SIGKILL)

    with own_cluster.client() as client:
        with pytest.raises(ap.RunError, match="is lost: .* of 24 simulations are kept") as raised:
            ap.sweep(SLOW, RATES, seeds=12, phase_check=False, client=client, progress=kill)
    kept = int(str(raised.value).split("is lost: ")[1].split(" ")[0])
    assert 0 < kept < 24
    progress = Progress()
    with cluster.client() as client:
        assert ap.sweep(SLOW, RATES, seeds=12, phase_check=False, client=client, progress=progress).results.complete
    assert progress.seen[0][0] > kept and len(progress.seen) <= 24 - kept


def test_a_command_whose_scheduler_is_lost_says_so_in_one_line(own_cluster: Cluster, tmp_path: Path, cache: Path) -> None:
    # A sweep that has to wait for workers says so.
    with own_cluster.client() as client:
        client.wait_for_workers(2, 60)
    words = ["sweep", "quickstart", "--set", 'stop=["2s", "1000000s"]', "--set", "measure_from=1s", "--force", "--quiet"]
    process = subprocess.Popen(
        [APPORTION, *words, "--cluster", own_cluster.address], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(cache.rglob("*.cborz")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    own_cluster.scheduler.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2 and re.fullmatch(r"error: the scheduler \S+ is lost: .* resumes them\n", said), said


def test_what_progress_raises_ends_the_tasks(cluster: Cluster) -> None:
    def fail(done: int, total: int) -> None:
        raise LookupError(f"{done} of {total}")

    with cluster.client() as client:
        with pytest.raises(LookupError, match="of 2"):
            # The second would take hours.
            ap.sweep(SLOW, {"stop": ["2s", "1000000s"]}, client=client, progress=fail, force=True)
        is_idle(client)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_is_noted_where_its_exception_is_ignored(cluster: Cluster) -> None:
    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    seen: list[int] = []

    def interrupt(done: int, total: int) -> None:
        if not seen:
            Finalized()
        seen.append(done)

    with cluster.client() as client:
        with pytest.warns(ap.IncompleteWarning):
            # The second would take hours.
            settings = {"stop": ["2s", "1000000s"]}
            swept = ap.sweep(SLOW, settings, client=client, progress=interrupt, force=True)
        assert not swept.results.complete and len(seen) == 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        is_idle(client)


def is_idle(client: Any) -> None:
    """Wait until no thread of a worker simulates."""
    deadline = time.monotonic() + 20
    while any(client.run(lambda dask_worker: dask_worker.state.executing_count).values()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_another_build_is_refused(cluster: Cluster, small: ap.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    from apportion import _native

    own = _native.build()
    monkeypatch.setattr(_native, "build", lambda: "0.0.1-other for cray")
    with cluster.client() as client:
        with pytest.raises(ap.RunError) as raised:
            ap.sweep(small, RATES, client=client, progress=False)
    assert own in str(raised.value) and "0.0.1-other for cray" in str(raised.value) and "tcp://" in str(raised.value)


def test_a_worker_without_the_package_is_refused(small: ap.Scenario, tmp_path: Path) -> None:
    hide = "import runpy, sys; sys.modules['apportion'] = None; runpy.run_module('distributed.cli.dask_worker', run_name='__main__')"
    cluster = Cluster(tmp_path, workers=0)
    try:
        words = [sys.executable, "-c", hide, cluster.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        cluster.processes.append(subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL))
        with cluster.client() as client:
            with pytest.raises(ap.RunError, match="a worker cannot load apportion .*install the same wheel"):
                ap.sweep(small, RATES, client=client, progress=False)
    finally:
        cluster.close()


def test_own_disciplines_are_refused(cluster: Cluster, small: ap.Scenario) -> None:
    @ap.register
    class OfCluster:
        """First in, first out."""

        def __init__(self, link: ap.Scenario) -> None:
            self.waiting: list[Any] = []

        def enqueue(self, now: float, packet: Any) -> None:
            self.waiting.append(packet)

        def dequeue(self, now: float) -> Any:
            return self.waiting.pop(0) if self.waiting else None

    with cluster.client() as client:
        with pytest.raises(ap.RunError, match="congestion controls of the library only"):
            ap.sweep(small, {"queue": ["fifo", "of_cluster"]}, client=client)
        # A registered but unused class does not matter.
        assert ap.sweep(small.set({"stop": "2s"}), {"queue": ["fifo"]}, client=client, progress=False).results.complete


def test_what_is_no_client_is_refused(small: ap.Scenario) -> None:
    with pytest.raises(TypeError, match="distributed.Client"):
        ap.sweep(small, RATES, client="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="seeds"):
        ap.sweep(small, RATES, seeds=0, client="tcp://127.0.0.1:1")


def command(folder: Path, *words: str, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([APPORTION, *words], cwd=folder, capture_output=True, text=True, timeout=timeout)


def test_the_command_writes_what_run_writes(cluster: Cluster, tmp_path: Path) -> None:
    words = ["quickstart", "--set", "stop=2s", "--set", "measure_from=1s", "--seeds", "2", "--out"]
    swept = command(tmp_path, "sweep", *words, "swept", "--cluster", cluster.address)
    assert swept.returncode == 0, swept.stderr
    assert re.fullmatch("warning: only 1 s are measured, .*\n", swept.stderr), swept.stderr
    assert "report: swept/1/report.html" in swept.stdout
    assert command(tmp_path, "run", *words, "alone", "--no-cache").returncode == 0
    assert files(tmp_path / "swept" / "1") == files(tmp_path / "alone" / "1")
    reused = command(tmp_path, "run", *words, "again")
    assert "16 of 16 runs are from the cache" in reused.stderr


def test_experiments_of_papers_run_on_it(cluster: Cluster, tmp_path: Path) -> None:
    words = ["reproduce", "sffc/fig2", "pps/table1-sender", "--seeds", "2", "--out"]
    there = command(tmp_path, *words, "there", "--cluster", cluster.address)
    alone = command(tmp_path, *words, "alone", "--no-cache")
    assert there.returncode == alone.returncode == 0, there.stderr
    assert there.stdout.replace("there/", "alone/") == alone.stdout
    assert files(tmp_path / "there") == files(tmp_path / "alone")
    # The cluster simulated them.
    again = command(tmp_path, *words, "again")
    assert re.search(r"^(\d+) of \1 runs are from the cache$", again.stderr, re.MULTILINE), again.stderr


def test_an_interrupted_reproduction_keeps_what_has_ended(cluster: Cluster, tmp_path: Path, cache: Path) -> None:
    words = ["reproduce", "csfq", "--seeds", "20"]
    process = subprocess.Popen(
        [APPORTION, *words, "--cluster", cluster.address],
        cwd=tmp_path,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(cache.rglob("*.cborz")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1 and said.endswith("; the same command resumes it\n"), said
    with cluster.client() as client:
        is_idle(client)


def test_the_commands_of_the_page_run(cluster: Cluster, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("apportion ")]
    assert len(commands) >= 4
    for line in commands:
        words = shlex.split(line.replace("tcp://node1:8786", cluster.address).replace("--seeds 20", "--seeds 2"))
        done = command(tmp_path, *words[1:])
        assert done.returncode == 0 and re.search("^(report|page): ", done.stdout, re.MULTILINE), done.stderr


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    port = "write its host and port, such as tcp://node1:8786\n"
    for words, message in [
        ([], "error: name a cluster, such as --cluster tcp://node1:8786"),
        (["--cluster", "tcp://127.0.0.1:1"], "error: there is no Dask scheduler at tcp://127.0.0.1:1: "),
        *((["--cluster", at], f"error: there is no Dask scheduler at {at}: {port}") for at in ("node1", "tcp://[::1]")),
        (["--cluster", "nonsense://x"], "error: there is no Dask scheduler at nonsense://x: "),
    ]:
        done = command(tmp_path, "sweep", "quickstart", *words)
        assert done.returncode == 2 and done.stderr.startswith(message), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_an_interrupt_ends_the_tasks_and_keeps_what_has_ended(cluster: Cluster, tmp_path: Path, cache: Path) -> None:
    # Simulations of a few milliseconds, and of hours.
    words = ["sweep", "quickstart", "--set", 'stop=["2s", "1000000s"]', "--set", "measure_from=1s", "--force", "--quiet"]
    process = subprocess.Popen([APPORTION, *words, "--cluster", cluster.address], cwd=tmp_path, start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(cache.rglob("*.cborz")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 1
    assert json.loads((tmp_path / "results" / "quickstart" / "1" / "run.json").read_text())["complete"] is False
    with cluster.client() as client:
        is_idle(client)


def test_a_league_on_a_cluster_is_the_same(cluster: Cluster, small: ap.Scenario) -> None:
    def play(client: Any = None) -> ap.League:
        return ap.league(["fifo", "drr"], [small], seeds=2, progress=False, client=client)

    with cluster.client() as client:
        played = play(client)
    assert played._native.reused == 8, "two disciplines with two seeds and perturbed copies came from the cluster"
    assert played.cells["mean"] == play().cells["mean"]
