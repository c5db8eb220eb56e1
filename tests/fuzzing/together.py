"""Signals in the midst of a call, and calls at the same time: in threads, in forked processes, of one result."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from files import there
from inputs import Draw
from laws import scene
from targets import Target, claim

import ruzhash_cv
from ruzhash_cv.pipelines import filter_pairs

#: Problems whose answers are made once in a process.
N_PROBLEMS = 12
PICTURE = np.zeros((40, 40, 3), np.uint8)


@functools.cache
def points(number: int) -> tuple[Any, Any]:
    pairs = scene(Draw(number), 40 + 5 * number)
    return pairs[:, :2], pairs[:, 2:]


@functools.cache
def answer(number: int) -> ruzhash_cv.FilterResult:
    return ruzhash_cv.filter_points(*points(number))


def call(draw: Draw) -> Callable[[], Any]:
    """Return a call whose result can be compared."""
    number = draw.pick(range(N_PROBLEMS))
    calls: list[Callable[[], Any]] = [
        lambda: ruzhash_cv.filter_points(*points(number)),
        lambda: ruzhash_cv.filter_points(*points(number), model="fundamental").motions,
        lambda: ruzhash_cv.find_homography(*points(number))[1].tobytes(),
        lambda: ruzhash_cv.draw_matches(
            PICTURE, points(number)[0], PICTURE, points(number)[1], None, answer(number)
        ).tobytes(),
        lambda: ruzhash_cv.RuzHashForest(n_trees=8).fit_anomaly_scores(np.eye(40), np.eye(40))[0].tobytes(),
    ]
    return draw.pick(calls)


class OwnError(Exception):
    """Raised by a handler of the caller's."""


def signals(draw: Draw) -> None:
    """An interruption at any moment: the handler's error and no other, the handler is the old one, and results are as before."""
    made = call(draw)
    expected, since = made(), time.perf_counter()
    made()
    spent = time.perf_counter() - since

    def own(*_: Any) -> None:
        raise OwnError

    handler = draw.pick([signal.default_int_handler, own])
    before = (
        signal.signal(signal.SIGINT, handler),
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT)),
    )
    came = None
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-6, draw.rng.uniform(0, 1.2 * spent)))
        made()
        time.sleep(60.0)
    except BaseException as error:
        came = type(error)
    finally:
        still = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGALRM, before[1])
    claim(came is (OwnError if handler is own else KeyboardInterrupt), f"ended with {came}")
    claim(still is handler, "another handler stays")
    claim(made() == expected, "other results after an interruption")


def threads(draw: Draw) -> None:
    numbers = draw.rng.integers(N_PROBLEMS, size=draw.pick([2, 4, 8])).tolist()
    with ThreadPoolExecutor(draw.pick([2, 3, 8])) as pool:
        found = list(pool.map(lambda number: ruzhash_cv.filter_points(*points(number)), numbers))
    claim(found == [answer(number) for number in numbers], "other results in threads")


def one_result(draw: Draw) -> None:
    """Two threads ask one result for its motions at the same time."""
    number = draw.pick(range(N_PROBLEMS))
    result, expected = ruzhash_cv.filter_points(*points(number)), answer(number).motions
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: result.motions, range(3)))
    claim(all(motions == expected for motions in found), "other motions in threads")


def forked(draw: Draw) -> None:
    """A forked process has the same results."""
    number = draw.pick(range(N_PROBLEMS))
    expected, (out, into) = answer(number), os.pipe()
    child = os.fork()
    if child == 0:
        same = ruzhash_cv.filter_points(*points(number)) == expected
        os.write(into, b"1" if same else b"0")
        os._exit(0)
    os.close(into)
    said = os.read(out, 1)
    os.close(out)
    claim(os.waitpid(child, 0)[1] == 0 and said == b"1", f"a forked process said {said!r}")


def many_pairs(draw: Draw) -> None:
    """Pairs in this process: each once, whatever the batches, and also where the caller stops in the midst."""
    numbers = draw.rng.permutation(N_PROBLEMS)[: draw.pick([1, 3, 6])].tolist()
    n_taken = draw.pick([1, 2, len(numbers)])
    done = filter_pairs(((number, *points(number)) for number in numbers), n_jobs=1, batch_size=draw.pick([1, 2, 32]))
    found = dict(next(done) for _ in range(min(n_taken, len(numbers))))
    done.close()  # type: ignore[attr-defined]
    claim(len(found) == min(n_taken, len(numbers)) and set(found) <= set(numbers), f"{sorted(found)} of {numbers}")
    claim(all(not result.reason or not answer(number).models for number, result in found.items()), "a pair failed")


SIGNALS: dict[str, Target] = {"interrupted": signals} if hasattr(signal, "setitimer") else {}
CONCURRENCY: dict[str, Target] = {"threads": threads, "one_result": one_result}
if hasattr(os, "fork"):
    CONCURRENCY["forked"] = forked
if there("joblib"):
    CONCURRENCY["many_pairs"] = many_pairs
