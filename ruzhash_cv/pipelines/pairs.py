"""Run `filter_points` on many image pairs, in parallel on one machine or on a cluster."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import itertools
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from multiprocessing import current_process, resource_tracker
from numbers import Integral
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from ruzhash_cv.filtering import filter_points
from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.foundation.validation import as_pairs, as_plain, check_int
from ruzhash_cv.results.reasons import held_warnings, warn
from ruzhash_cv.results.result import FilterResult

#: What names a pair: int, str, bytes, a path, or a tuple of these.
Key: TypeAlias = Any
#: A pair's key, its result, whether it failed, so that its result is `flagged`, and what `filter_points` warned of, "" for nothing.
Answer: TypeAlias = tuple[Key, FilterResult, bool, str]

_OWN = ("points1", "points2", "matches", "ratio", "rng")
LOST = "a worker was killed, as it is if memory runs out"
#: Batches under way for each worker: one in work, one that joblib has sent, and two that wait here.
BATCHES_AHEAD = 4
#: Fewer pairs are done without workers, of which each takes seconds to start.
FEW_PAIRS = 64
#: Names of the errors, or of their bases, that loky and Ray raise if a worker was killed. Dask restarts its workers.
KILLED = {"BrokenProcessPool", "RayActorError"}
OPTIONS = tuple(name for name in inspect.signature(filter_points).parameters if name not in _OWN)


def filter_pairs(
    pairs: Iterable[tuple[Any, ...]], *, n_jobs: int | None = None, batch_size: int = 32, rng: int = 0, **options: Any
) -> Iterator[tuple[Key, FilterResult]]:
    """Run `filter_points` on many pairs of images, and yield each result as it is done.

    It runs on joblib (the extra ``parallel``) and names no backend: under ``joblib.parallel_config(backend="dask")`` the same call
    runs on a cluster. Pairs are read as results are taken, so memory holds at most ``4 * workers * batch_size`` of them, however many
    there are. To resume after an interruption, leave out the pairs that have a result: the results of the others are the same.

    Parameters
    ----------
    pairs : iterable of tuple
        ``(key, points1, points2)`` or ``(key, points1, points2, own)``, where `own` is a mapping of options of `filter_points` for
        this pair alone. A key is an int, str, bytes, path or a tuple of these. It comes back with the result, and
        the pair's seed is made from it. Read in the thread that takes the results.
    n_jobs : int or None
        Workers, each with one thread; -1 for all processors. None: the setting of `joblib.parallel_config`, otherwise one.
    batch_size : int
        Number of pairs sent to a worker together. A run begins with single pairs, so that the first results come early. A pair
        takes some 10 ms, and a batch should take a second.
    rng : int
        Seed. The same seed gives a pair the same result for any order, batches, workers and other pairs; see `pair_seed`.
    **options
        As for `filter_points`: `model`, `threshold` and so on, for all pairs.

    Yields
    ------
    key : int, str, bytes, path or tuple
    result : FilterResult
        Pairs come in no order. If a pair raises an error, all its matches are flagged and its `reason` has the error. Warnings of
        `filter_points` name the pair.

    Raises
    ------
    ImportError
        joblib is not installed.
    TypeError, ValueError
        At the call: `filter_points` has no such option, or its value is invalid. When a pair is read: it is not such a tuple, or
        its key is invalid.
    RuntimeError
        A worker was killed, for example because memory ran out. Dask instead restarts workers and repeats their pairs.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> pairs = [(("a.jpg", "b.jpg"), points, points + 5.0), (("a.jpg", "c.jpg"), points, points[:9])]
    >>> for key, result in filter_pairs(pairs):
    ...     print(*key, result.inlier_mask.sum(), result.reason)
    a.jpg b.jpg 60 None
    a.jpg c.jpg 0 ValueError: `points1` and `points2` must have the same length, got 60 and 9
    """
    return _with_warnings(run_pairs(pairs, n_jobs=n_jobs, batch_size=batch_size, rng=rng, **options))


def _with_warnings(done: Iterator[Answer]) -> Iterator[tuple[Key, FilterResult]]:
    for key, result, _, warned_of in done:
        warn(f"the pair {key!r}: {warned_of}" if warned_of else None)
        yield key, result


class WorkerKilled(RuntimeError):  # noqa: N818
    """A worker was killed, and the pairs that it had are lost."""


def run_pairs(
    pairs: Iterable[tuple[Any, ...] | Task], *, n_jobs: int | None, batch_size: int, rng: int, **options: Any
) -> Iterator[Answer]:
    """Do as `filter_pairs` does, and mark pairs that failed."""
    host("joblib", "parallel")
    if not any(hasattr(pairs, name) for name in ("__iter__", "__getitem__")):
        raise TypeError(f"`pairs` must be an iterable of (key, points1, points2), got {type(pairs).__name__}")
    _check_names(options, "filter_pairs")
    filter_points(np.empty((0, 2)), np.empty((0, 2)), **options)
    rng = check_int(rng, "rng", at_least=0)
    batch_size = check_int(batch_size, "batch_size")
    if n_jobs is not None and check_int(n_jobs, "n_jobs", at_least=-sys.maxsize) != -1:
        n_jobs = check_int(n_jobs, "n_jobs")
    tasks = (pair if isinstance(pair, Task) else _as_task(pair, rng) for pair in pairs)
    return _answers(functools.partial(_run_batch, os.getpid(), options), tasks, n_jobs, batch_size)


def _answers(
    run: Callable[[list[Task]], list[Answer]], tasks: Iterator[Task], n_jobs: int | None, batch_size: int
) -> Iterator[Answer]:
    """Yield the answers to all tasks, in the order they are done. Tasks are read here, as fast as answers are taken.

    joblib asks for work in a thread of its own. It gets batches from a queue that is filled here when an answer is taken.
    If the queue runs empty, joblib's call ends, and the next one continues.
    """
    joblib = host("joblib", "parallel")
    n_workers = max(1, joblib.effective_n_jobs(n_jobs))
    if n_workers > 1:
        few = min(FEW_PAIRS, BATCHES_AHEAD * n_workers * batch_size)
        first = list(itertools.islice(tasks, few))
        is_few, tasks = len(first) < few, itertools.chain(first, tasks)
        del first  # or they would stay in memory
        if is_few:  # they are done before workers have started
            n_jobs = n_workers = 1
    batches = _growing_batches(tasks, batch_size, n_workers)
    waiting = deque(itertools.islice(batches, BATCHES_AHEAD * n_workers))
    n_sent = n_done = 0

    def calls() -> Iterator[Any]:
        nonlocal n_sent
        while waiting:
            n_sent += 1
            yield joblib.delayed(run)(waiting.popleft())

    try:
        with _workers(joblib, n_jobs) as parallel:
            while waiting:
                with _interrupts_blocked() if n_workers > 1 and parallel.return_generator else contextlib.nullcontext():
                    results = parallel(calls())
                with _closed_in_silence(results) as finished:
                    for answers in finished:
                        n_done += 1
                        waiting.extend(itertools.islice(batches, 1))
                        yield from answers
                if n_done < n_sent:  # joblib's generator may end before the error of a killed worker is there
                    raise WorkerKilled(LOST)
    except Exception as error:
        if KILLED.isdisjoint(kind.__name__ for kind in type(error).__mro__):
            raise
        raise WorkerKilled(LOST) from None


def _workers(joblib: Any, n_jobs: int | None) -> Any:
    # Arrays are sent and not mapped from files, which would stay until the last call of joblib ends.
    options = {"n_jobs": n_jobs, "batch_size": 1, "max_nbytes": None}
    try:
        return joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:  # multiprocessing and Ray: results come at a call's end
        return joblib.Parallel(**options)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start workers that never get Ctrl-C: while they import, each would print where it stood. It waits here. Not on Windows."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # multiprocessing's, whose start would end the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _growing_batches(tasks: Iterator[Task], size: int, n_workers: int) -> Iterator[list[Task]]:
    """Yield lists of one task for each worker, then of twice as many, and so on up to `size`: the first results come early."""
    small = (2**doublings for doublings in range(size.bit_length()) for _ in range(n_workers))
    sizes = itertools.chain(small, itertools.repeat(size))
    while batch := list(itertools.islice(tasks, next(sizes))):
        yield batch


@contextlib.contextmanager
def _closed_in_silence(results: Any) -> Iterator[Any]:
    """Close joblib's generator at the end, without its warning about cancelled work."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(results, "close", lambda: None)()


def _run_batch(parent: int, options: Mapping[str, Any], tasks: list[Task]) -> list[Answer]:
    # Workers of Dask and Ray have other parents. A worker of loky may have lost its parent before its first call.
    if parent != os.getpid() and (parent == os.getppid() or current_process().name.startswith("Loky")):
        _follow(parent)
    return [_answer(task, options) for task in tasks]


@functools.cache
def _follow(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end this worker when the parent has ended: joblib's would wait for ever. Not on Windows."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


def pair_seed(key: Key, rng: int = 0) -> int:
    """Return the seed that `filter_pairs` gives a pair, to repeat it alone: ``filter_points(..., rng=pair_seed(key))``.

    Parameters
    ----------
    key : int, str, bytes, path or tuple of these
        Equal keys have the same seed, on every platform and in every version of Python.
    rng : int
        The seed of `filter_pairs`.

    Returns
    -------
    int
        48 bits.

    Raises
    ------
    TypeError, ValueError
        The key has another type, contains another type, or is nested too deeply.

    Examples
    --------
    >>> pair_seed(("a.jpg", "b.jpg")), pair_seed(7)
    (122751970186159, 248311848859996)
    """
    try:
        serialised = _serialised((rng, key))
    except RecursionError:
        raise ValueError("a key is nested too deep") from None
    return int.from_bytes(hashlib.blake2b(serialised, digest_size=6).digest(), "big")


def _serialised(key: Key) -> bytes:
    """Return a key as bytes that no other key has."""
    if isinstance(key, Integral):
        kind, content = b"i", str(int(key)).encode()
    elif isinstance(key, str):
        kind, content = b"s", key.encode("utf-8", "surrogatepass")  # names of files may hold bytes that are no text
    elif isinstance(key, bytes):
        kind, content = b"b", key
    elif isinstance(key, PurePath):
        kind, content = b"p", key.as_posix().encode("utf-8", "surrogatepass")
    elif isinstance(key, tuple):
        kind, content = b"t", b"".join(_serialised(part) for part in key)
    else:
        raise TypeError(f"a key must be an int, str, bytes, path or a tuple of these, got {key!r}")
    return b"%s%d:%s" % (kind, len(content), content)


@dataclass(frozen=True)
class Task:
    """A pair as it is sent to a worker."""

    key: Key
    seed: int
    points1: Array
    points2: Array
    own: dict[str, Any]
    #: Why it cannot be run; its points are then NaN.
    failure: str | None = None


def _as_task(pair: Any, rng: int) -> Task:
    """Return a pair as NumPy arrays, which every worker can read; tensors of a GPU it may not."""
    if not isinstance(pair, (tuple, list)) or len(pair) not in (3, 4):
        shown = f"{len(pair)} entries" if isinstance(pair, (tuple, list)) else type(pair).__name__
        raise TypeError(f"`pairs` must hold (key, points1, points2) or (key, points1, points2, own), got {shown}")
    key, points1, points2, own = pair if len(pair) == 4 else (*pair, {})
    seed = pair_seed(key, rng)
    if not isinstance(own, Mapping):
        raise TypeError(f"options of the pair {key!r}, its fourth entry, must be a mapping, got {type(own).__name__}")
    _check_names(own, f"the pair {key!r}")
    try:
        first, second = as_pairs(points1, points2)
        return Task(key, seed, first, second, {name: as_plain(value) for name, value in own.items()})
    except Exception as error:
        nothing = np.full((len(points1) if hasattr(points1, "__len__") else 0, 2), np.nan)
        return Task(key, seed, nothing, nothing, {}, _described(error))


def _check_names(options: Mapping[str, Any], where: str) -> None:
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise TypeError(f"{where} got an unexpected option {unknown[0]!r}; there are {', '.join(OPTIONS)}")


def _answer(task: Task, options: Mapping[str, Any]) -> Answer:
    """Return the answer to a pair, whatever happens."""
    failure = task.failure
    if failure is None:
        try:
            with held_warnings() as messages:
                result = filter_points(task.points1, task.points2, rng=task.seed, **{**options, **task.own})
            return task.key, result, False, "; ".join(messages)
        except Exception as error:
            failure = _described(error)
    return task.key, flagged(len(task.points1), failure), True, ""


def flagged(n_matches: int, reason: str) -> FilterResult:
    """Return the result of a pair that cannot be done."""
    nothing = np.full((n_matches, 2), np.nan)
    return replace(filter_points(nothing, nothing), has_match=np.ones(n_matches, bool), reason=reason)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
