"""A function called on many items by joblib's workers: results as they come, and never many items read ahead."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from ruzhash_cv._core.warmup import warmup
from ruzhash_cv.pipelines.hosts import host

Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: Batches read and not yet handed out, for each worker: one it works on, one joblib has sent it, and two that wait here.
BATCHES_AHEAD = 4


def stream(
    function: Callable[[Item], Answer], items: Iterable[Item], *, n_jobs: int | None, batch_size: int
) -> Generator[Answer, None, None]:
    """Yield ``function(item)`` for all items, in the order they are done.

    joblib asks for new work where a worker has ended, in a thread of its own. It is given batches from a queue that this
    generator fills when a result is taken: items are read in the caller's thread, and only as fast as results are taken. A
    queue that ran empty ends joblib's call, and the next one goes on.
    """
    joblib = host("joblib", "parallel")
    warmup()  # or every worker would compile the same kernels
    rest = iter(items)
    batches: Iterator[list[Item]] = iter(lambda: list(itertools.islice(rest, batch_size)), [])
    with _workers(joblib, n_jobs) as parallel:
        n_ahead = BATCHES_AHEAD * max(1, joblib.effective_n_jobs(parallel.n_jobs))
        waiting = deque(itertools.islice(batches, n_ahead))
        while waiting:
            with _closed_in_silence(parallel(_calls(joblib, function, waiting))) as finished:
                for answers in finished:
                    waiting.extend(itertools.islice(batches, 1))
                    yield from answers


def _workers(joblib: Any, n_jobs: int | None) -> Any:
    # Arrays are sent, not mapped from files: those would stay until the last call of joblib ends.
    options = {"n_jobs": n_jobs, "batch_size": 1, "max_nbytes": None}
    try:
        return joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:  # multiprocessing and Ray: results come at the end of a call, so workers wait for the slowest
        return joblib.Parallel(**options)


def _calls(joblib: Any, function: Callable[[Item], Answer], waiting: deque[list[Item]]) -> Iterator[Any]:
    while waiting:
        yield joblib.delayed(_call_each)(function, waiting.popleft())


def _call_each(function: Callable[[Item], Answer], batch: list[Item]) -> list[Answer]:
    return [function(item) for item in batch]


@contextlib.contextmanager
def _closed_in_silence(results: Any) -> Iterator[Any]:
    """Close joblib's generator at the end: it warns of work that is cancelled, and here that is what was asked for."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(results, "close", lambda: None)()
