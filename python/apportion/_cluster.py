"""Simulations on a cluster, by Dask.

The client divides the simulations that its cache lacks into batches, workers simulate these and return entries of a cache, and the
client keeps them. A run then finds them all in its cache. Workers need no shared folder, and received results are never lost.
"""

from __future__ import annotations

import logging
import pickle
import queue
import signal
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import distributed
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend

from . import _native
from ._native import RunError
from ._progress import shown

# Target time of a batch, s. Dask takes about 10 ms per task, over all processes.
_BATCH = 0.5
# Target time of a batch per thread of the cluster, s: the scheduler, which handles a few hundred tasks/s, then has time left.
_BATCH_PER_THREAD = 0.01
# The last batches are shorter, so that threads end together: a batch takes one of these parts of the rest for a thread, but at
# least this fraction of a full batch. Chosen: for a few more tasks, a thread waits for the others for at most 0.1 s.
_PARTS_OF_REST = 3
_LEAST_PART = 0.2
# Maximum number of batches under way. Chosen: few results wait for the client, and enough tasks wait for clusters that grow with
# their number.
_UNDER_WAY = 1000
# Interval of lookups of the number of threads, s.
_LOOK = 5.0

_Part = tuple[int, str, bytes]
# Packed scenarios, seeds, and whether there are perturbed copies and outcomes are held.
_Job = tuple[list[tuple[Any, ...]], int, bool, bool]


# Simulations that a worker has loaded, by the name of the sweep.
_loaded: dict[str, _native.Parts] = {}
_loading = threading.Lock()
# Maximum number of loaded sweeps. Chosen: several clients may share a cluster.
_KEPT = 4


def _parts(job: _Job) -> _native.Parts:
    packed, seeds, phase_check, hold = job
    return _native.Parts([_native.Scenario.unpack(one) for one in packed], seeds, phase_check, hold)


def _load(name: str, packed: bytes) -> _native.Parts:
    with _loading:
        if name not in _loaded:
            build, job = pickle.loads(packed)
            if build != _native.build():
                place = distributed.get_worker().address
                raise RunError(
                    f"the worker {place} has another build of apportion than the client: {_native.build()}, where the client has {build}; "
                    "install the same wheel on both"
                )
            while len(_loaded) >= _KEPT:
                del _loaded[next(iter(_loaded))]
            _loaded[name] = _parts(job)
        return _loaded[name]


def simulate(name: str, packed: bytes, numbers: list[int]) -> tuple[float, list[_Part]]:
    """Simulate a batch on a worker; return the time it took, s, and the results to keep."""
    parts = _load(name, packed)
    worker = distributed.get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        # Dask does not stop the thread of a task whose client has cancelled it or has gone.
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    started = time.perf_counter()
    kept = parts.simulate(numbers, is_cancelled)
    return time.perf_counter() - started, kept


def _sent() -> Callable[..., Any]:
    """Return the function for workers. Dask sends it by value: a worker without the package could not look up its name."""

    def call(name: str, packed: bytes, numbers: list[int]) -> Any:
        from apportion import _cluster

        return _cluster.simulate(name, packed, numbers)

    return call


class _Batch(NamedTuple):
    """Simulations of one task."""

    numbers: list[int]
    # Uncorrected estimate of their time, s.
    estimate: float
    # Dask assumes that tasks of a kind take equally long when it moves them to idle workers.
    kind: str


class _Batches:
    """Divides simulations into batches of about the same time. Finished batches correct the estimate."""

    def __init__(self, numbers: list[int], total: int, seconds: list[float]) -> None:
        self._numbers = deque(numbers)
        self._of_each_point = total // len(seconds)
        self._seconds = seconds
        self._left = sum(self._estimate_of(number) for number in numbers)
        self._estimated, self._measured = 1e-3, 1e-3

    def _estimate_of(self, number: int) -> float:
        return self._seconds[number // self._of_each_point]

    def next(self, threads: int) -> _Batch | None:
        """Return the next batch; None at the end."""
        most = max(_BATCH, _BATCH_PER_THREAD * threads) * self._estimated / self._measured
        enough = min(most, max(_LEAST_PART * most, self._left / (_PARTS_OF_REST * max(threads, 1))))
        numbers: list[int] = []
        estimate = 0.0
        while self._numbers and estimate < enough:
            of_one = self._estimate_of(self._numbers[0])
            # A long simulation does not delay the short ones before it.
            if numbers and estimate + of_one > 2 * enough:
                break
            numbers.append(self._numbers.popleft())
            estimate += of_one
        self._left -= estimate
        kind = "long" if estimate > 2 * most else "batch"
        return _Batch(numbers, estimate, kind) if numbers else None

    def learn(self, batch: _Batch, seconds: float) -> None:
        """Correct the estimate by a finished batch."""
        self._estimated += batch.estimate
        self._measured += seconds


class _Cluster:
    """The tasks of one sweep on a cluster."""

    def __init__(self, client: distributed.Client, job: tuple[Any, ...]) -> None:
        # Its methods return values or coroutines, depending on how the client was made.
        self._client: Any = client
        self._name = uuid.uuid4().hex
        self._count = 0
        # None stands for an interrupt.
        self._ended: queue.SimpleQueue[distributed.Future | None] = queue.SimpleQueue()
        self._under_way: dict[distributed.Future, _Batch] = {}
        self._threads, self._looked = 0, 0.0
        self._has_ended = False
        self._simulate = _sent()
        # As a task, it is recomputed if its worker is lost.
        self._packed = client.submit(bytes, pickle.dumps(job), key=f"apportion-scenario-{self._name}", pure=False)

    def threads(self) -> int:
        """Return the recent number of threads of the cluster."""
        if not self._looked or time.monotonic() - self._looked > _LOOK:
            if (threads := sum(self._client.nthreads().values())) == 0 and not self._looked:
                warnings.warn("the cluster has no workers yet; the sweep waits for some", stacklevel=2)
            self._threads, self._looked = threads, time.monotonic()
        return self._threads

    def has_room(self, batch: _Batch) -> bool:
        if not self._has_ended and self._threads and len(batch.numbers) > 1:
            # Their times are unknown yet. Later batches wait for the first one to end, while every thread has work.
            return len(self._under_way) < 2 * self._threads
        return len(self._under_way) < max(_UNDER_WAY, 3 * self._threads)

    def is_idle(self) -> bool:
        return not self._under_way

    def start(self, batch: _Batch) -> None:
        self._count += 1
        key = f"apportion-{batch.kind}-{self._name}-{self._count}"
        # Earlier batches first: otherwise batches submitted together have no order.
        priority = -self._count
        words = (self._name, self._packed, batch.numbers)
        future = self._client.submit(self._simulate, *words, key=key, pure=False, priority=priority)
        self._under_way[future] = batch
        future.add_done_callback(self._ended.put)

    def ended(self) -> Iterator[tuple[_Batch, float, list[_Part]]]:
        """Wait until a batch has ended; yield all ended batches with their times and the results to keep."""
        found = [self._ended.get()]
        while not self._ended.empty():
            found.append(self._ended.get())
        futures = [future for future in found if future is not None]
        if len(futures) < len(found):
            raise KeyboardInterrupt
        self._has_ended = True
        for future, (seconds, parts) in zip(futures, self._client.gather(futures)):
            yield self._under_way.pop(future), seconds, parts

    @contextmanager
    def noting_interrupts(self) -> Iterator[None]:
        """Note an interrupt, and raise it as usual; if that is ignored, for example in a finalizer, :meth:`ended` raises it."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            self._ended.put(None)
            signal.default_int_handler(number, frame)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def cancel(self) -> None:
        """Cancel the batches under way."""
        if self._client.status == "running":
            self._client.cancel([*self._under_way, self._packed])
        self._under_way.clear()


def run(
    client: object,
    scenario: _native.Scenario,
    seeds: int,
    phase_check: bool | None,
    force: bool,
    progress: bool | Callable[[int, int], object] | None,
) -> tuple[_native.Results, bool]:
    """Simulate on a cluster; return the results, and whether an interrupt ended it early."""
    cache = _native.Cache()
    packed = _packed(scenario)
    phase_check = seeds > 1 if phase_check is None else phase_check
    job = ([packed], seeds, phase_check, scenario.holds_outcomes(seeds))
    interrupted = _fill(client, job, force, progress, cache)
    # Not the scenario itself: its files may have changed meanwhile.
    results, _ = _native.Scenario.unpack(packed).run(
        seeds=seeds, jobs=0, phase_check=phase_check, force=force, progress=None, folder=None, cache=cache, only_cached=interrupted
    )
    cache.prune()
    if interrupted and not any(count for _, _, count in results.points):
        raise KeyboardInterrupt
    return results, interrupted


def fill(
    client: object,
    scenarios: list[_native.Scenario],
    seeds: int,
    phase_check: bool | None,
    force: bool,
    progress: bool | Callable[[int, int], object] | None,
    cache: _native.Cache,
) -> None:
    """Simulate scenarios on a cluster into a cache, for runs that hold outcomes."""
    phase_check = seeds > 1 if phase_check is None else phase_check
    if _fill(client, ([_packed(scenario) for scenario in scenarios], seeds, phase_check, True), force, progress, cache):
        raise KeyboardInterrupt


def command(
    address: str, scenarios: list[_native.Scenario], seeds: int, phase_check: bool, hold: bool, force: bool, quiet: bool
) -> bool:
    """Simulate into the cache for ``apportion sweep`` and ``apportion reproduce``. Return whether all of it has ended."""
    # Messages say what Dask would log, even with a traceback for a lost scheduler.
    logging.disable(logging.ERROR)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        try:
            _check_address(address)
            client = distributed.Client(address, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RunError(f"there is no Dask scheduler at {address}: {error}") from error
        with client:
            job = ([_packed(scenario) for scenario in scenarios], seeds, phase_check, hold)
            return not _fill(client, job, force, False if quiet else None, _native.Cache())
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _check_address(address: str) -> None:
    scheme, place = parse_address(address)
    # A client for an unknown kind of address hangs or logs errors when it ends.
    get_backend(scheme)
    try:
        # Without a port, a client tries to connect until its timeout.
        if scheme != "inproc":
            parse_host_port(place)
    except ValueError:
        raise ValueError("write its host and port, such as tcp://node1:8786") from None


def _packed(scenario: _native.Scenario) -> tuple[Any, ...]:
    if scenario.has_own_code:
        raise RunError(
            "a cluster simulates disciplines and congestion controls of the library only: workers do not have those that are registered in "
            "this process, and what they simulate could not be kept; leave `client` out"
        )
    return scenario.pack()


def _fill(
    client: object,
    job: _Job,
    force: bool,
    progress: bool | Callable[[int, int], object] | None,
    cache: _native.Cache,
) -> bool:
    """Run the simulations that the cache lacks. Return whether an interrupt ended it early."""
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError(f"client is {client!r}; give a distributed.Client that is not asynchronous")
    parts = _parts(job)
    numbers = parts.missing(cache, force)
    total = parts.total
    done = total - len(numbers)
    if not numbers:
        return False
    batches = _Batches(numbers, total, parts.seconds)
    cluster = _Cluster(client, (_native.build(), job))
    try:
        with cluster.noting_interrupts(), shown(progress) as show:
            batch = batches.next(cluster.threads())
            while batch or not cluster.is_idle():
                while batch and cluster.has_room(batch):
                    cluster.start(batch)
                    batch = batches.next(cluster.threads())
                for ended, seconds, results in cluster.ended():
                    for part in results:
                        parts.keep(cache, *part)
                    batches.learn(ended, seconds)
                    done += len(ended.numbers)
                show(done, total)
    except KeyboardInterrupt:
        return True
    except RunError:
        raise
    except (CancelledError, OSError) as error:
        raise RunError(f"the scheduler {_address(client)} is lost: {_kept(done, total)}") from error
    except distributed.KilledWorker as error:
        message = f"workers died while they simulated the same batch, the last of them {error.last_worker.address}: they may have too little memory; "
        raise RunError(message + _kept(done, total)) from error
    except ImportError as error:
        raise RunError(f"a worker cannot load apportion ({error}): install the same wheel there as here") from error
    finally:
        cluster.cancel()
        parts.compact(cache)
    return False


def _kept(done: int, total: int) -> str:
    return f"{done} of {total} simulations are kept; the same command resumes them"


def _address(client: distributed.Client) -> str:
    return getattr(client.scheduler, "address", None) or "of the cluster"
