"""Call a function on many items in joblib's workers: results come as they are ready, and few items are read ahead."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import pickle
import secrets
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import current_process
from pathlib import Path
from typing import Any, Generic, TypeVar

from ruzhash_cv._interrupts import interrupts_held_from_children
from ruzhash_cv.pipelines.hosts import host
from ruzhash_cv.warmup import warmup

Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: Batches under way for each worker: one in work, one that joblib has sent, and two that wait here.
BATCHES_AHEAD = 4
#: A batch that was lost this often with its worker is run item by item, which finds the item that kills workers.
CHANCES = 2
#: Losses in a row without any result after which no item can be the cause.
MOST_LOSSES = 50
#: Names of the errors, or of their bases, that loky and Ray raise when a worker was killed. Dask retries by itself, with four workers.
KILLED = {"BrokenProcessPool", "RayActorError"}


class WorkersKilled(RuntimeError):  # noqa: N818
    """Workers are killed whatever item they get."""


def stream(
    function: Callable[[Item], Answer],
    items: Iterable[Item],
    lost: Callable[[Item], Answer],
    *,
    n_jobs: int | None,
    batch_size: int,
) -> Generator[Answer, None, None]:
    """Yield ``function(item)`` for all items, in the order they are done; ``lost(item)`` for one that kills its worker each time.

    Items are read in the caller's thread, and only as fast as results are taken. What a killed worker had is given out again, until
    `WorkersKilled` tells that this is of no use.
    """
    with tempfile.TemporaryDirectory(prefix="ruzhash_cv_", ignore_cleanup_errors=True) as folder:
        yield from _streamed(_Pool(function, n_jobs, folder), items, lost, batch_size)


def _streamed(
    pool: _Pool[Item, Answer], items: Iterable[Item], lost: Callable[[Item], Answer], batch_size: int
) -> Generator[Answer, None, None]:
    warmup()  # or every worker would compile the same kernels
    batches = map(_Batch, _growing_batches(items, batch_size, pool.n_workers))
    waiting = deque(itertools.islice(batches, BATCHES_AHEAD * pool.n_workers))
    while waiting:
        out: dict[int, _Batch[Item]] = {}
        with contextlib.closing(pool.run(waiting, out)) as finished:
            for answers in finished:
                waiting.extend(itertools.islice(batches, 1))
                yield from answers
        for batch in out.values():
            batch.losses += 1
            if batch.losses < CHANCES:
                waiting.appendleft(batch)
                continue
            waiting.extend(itertools.islice(batches, 1))
            for item in batch.items:
                yield from pool.run_alone(item) or [lost(item)]


def _growing_batches(items: Iterable[Item], size: int, n_workers: int) -> Iterator[list[Item]]:
    """Yield lists of one item for each worker, then of twice as many, and so on up to `size`: the first results come early."""
    iterator = iter(items)
    small = (2**doublings for doublings in range(size.bit_length()) for _ in range(n_workers))
    sizes = itertools.chain(small, itertools.repeat(size))
    while batch := list(itertools.islice(iterator, next(sizes))):
        yield batch


@dataclass(eq=False)
class _Batch(Generic[Item]):
    items: list[Item]
    losses: int = 0


class _Pool(Generic[Item, Answer]):
    """joblib's workers; killed ones are replaced."""

    def __init__(self, function: Callable[[Item], Answer], n_jobs: int | None, folder: str) -> None:
        self._joblib = host("joblib", "parallel")
        self._function, self._n_jobs, self._folder, self._losses = function, n_jobs, folder, 0
        self.n_workers = max(1, self._joblib.effective_n_jobs(n_jobs))

    def run(self, waiting: deque[_Batch[Item]], out: dict[int, _Batch[Item]]) -> Generator[list[Answer], None, None]:
        """Yield the answers to one batch after another, until `waiting` is empty or a worker is killed.

        joblib asks for new work where a worker has ended, in a thread of its own. It is given batches from a queue that the caller
        fills when an answer is taken. A queue that ran empty ends joblib's call, and the next one goes on. What was given out and not
        answered is in `out`, and nothing else tells of a loss: joblib's call may end in an error, or without.
        """
        reason: Exception | None = None
        try:
            with self._workers() as parallel:
                while waiting and not out:
                    with _closed_in_silence(_started(parallel, self._calls(waiting, out))) as finished:
                        for number, answers in finished:
                            del out[number]
                            self._losses = 0
                            yield _taken(answers) if isinstance(answers, Path) else answers
        except Exception as error:
            if KILLED.isdisjoint(kind.__name__ for kind in type(error).__mro__):
                raise
            reason = error
        self._losses += bool(out)
        if self._losses == MOST_LOSSES:
            raise WorkersKilled(
                f"workers were killed {MOST_LOSSES} times in a row, with nothing done between"
            ) from reason

    def run_alone(self, item: Item) -> list[Answer]:
        """Return the answer to one item, none where its worker was killed."""
        return [answer for answers in self.run(deque([_Batch([item])]), {}) for answer in answers]

    def _workers(self) -> Any:
        # Arrays are sent and not mapped from files, which would stay until the last call of joblib ends.
        options = {"n_jobs": self._n_jobs, "batch_size": 1, "max_nbytes": None}
        try:
            return self._joblib.Parallel(return_as="generator_unordered", **options)
        except ValueError:  # multiprocessing and Ray: results come at a call's end, and workers wait for the slowest
            return self._joblib.Parallel(**options)

    def _calls(self, waiting: deque[_Batch[Item]], out: dict[int, _Batch[Item]]) -> Iterator[Any]:
        while waiting:
            batch = waiting.popleft()
            out[id(batch)] = batch
            yield self._joblib.delayed(_call_each)(self._function, batch.items, id(batch), (os.getpid(), self._folder))


def _started(parallel: Any, calls: Iterator[Any]) -> Any:
    """Start the calls, and the workers if there are none yet. Ctrl-C does not reach the workers: this process ends them."""
    # Without a generator this returns when all calls are done, and Ctrl-C must not wait for that.
    with interrupts_held_from_children() if parallel.return_generator else contextlib.nullcontext():
        return parallel(calls)


def _call_each(
    function: Callable[[Item], Answer], items: list[Item], number: int, home: tuple[int, str]
) -> tuple[int, list[Answer] | Path]:
    """Return the answers, of a worker that this process started the file with them.

    Such workers share a pipe. One that is killed while it writes there would leave it locked, and half an answer in it, which joblib
    would wait for ever to be completed. The name of a file is short enough to be written at once.
    """
    parent, folder = home
    # Workers of Dask and Ray have other parents. A worker of loky may have lost its parent before its first call.
    local = parent != os.getpid() and (parent == os.getppid() or current_process().name.startswith("Loky"))
    if local:
        _end_with(parent)
    answers = [function(item) for item in items]
    if local:
        path = Path(folder) / f"{os.getpid()}_{secrets.token_hex(8)}"
        with contextlib.suppress(Exception):  # a full disk, or a class of the caller's script, which joblib sends
            path.write_bytes(pickle.dumps(answers, pickle.HIGHEST_PROTOCOL))
            return number, path
    return number, answers


def _taken(path: Path) -> list[Any]:
    """Return the answers in a file, and remove it."""
    answers: list[Any] = pickle.loads(path.read_bytes())
    path.unlink()
    return answers


@functools.cache
def _end_with(parent: int) -> None:
    """End this worker when its parent has ended: joblib's workers wait for ever after their parent was killed. No effect on Windows."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _closed_in_silence(results: Any) -> Iterator[Any]:
    """Close joblib's generator at the end, without its warning about cancelled work."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(results, "close", lambda: None)()
