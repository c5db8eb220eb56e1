"""Many pairs: the same bits however they are run, none lost for another's sake, and no more in memory than there should be."""

import functools
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import joblib
import numpy as np
import pytest
from many_pairs import N_PAIRS, digest, digests, ended, pairs, problem

from ruzhash_cv import filter_points
from ruzhash_cv.pipelines import filter_pairs, pair_seed
from ruzhash_cv.pipelines import pairs as module

# Python's own, about forking a process that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def expected() -> dict[Any, str]:
    """Digests of calls one after the other, without joblib."""
    return {key: digest(filter_points(*points, rng=pair_seed(key))) for key, *points in pairs()}


@pytest.mark.parametrize(
    ("backend", "n_jobs", "batch_size"),
    [
        ("loky", 2, 2), ("multiprocessing", 2, 2), ("sequential", 2, 2),
        ("threading", 1, 5), ("threading", 3, 1), ("threading", -1, 100), ("threading", None, 4),
    ],
)  # fmt: skip
def test_neither_workers_nor_batches_nor_order_change_a_bit(
    expected: dict[Any, str], backend: str, n_jobs: int | None, batch_size: int
) -> None:
    numbers = np.random.default_rng(batch_size).permutation(N_PAIRS).tolist()
    with joblib.parallel_config(backend=backend):
        assert digests(filter_pairs(pairs(numbers), n_jobs=n_jobs, batch_size=batch_size)) == expected


def test_resumed_pairs_have_bit_identical_results(expected: dict[Any, str]) -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        running = filter_pairs(pairs(), batch_size=1)
        done = digests(next(running) for _ in range(3))
        # Work that is cancelled is no reason for a warning here.
        running.close()  # type: ignore[attr-defined]
    rest = digests(filter_pairs(pair for pair in pairs() if pair[0] not in done))
    assert not rest.keys() & done.keys()
    assert rest | done == expected


def test_the_seed_is_the_keys_and_the_one_given(expected: dict[Any, str]) -> None:
    assert len(set(expected.values())) == N_PAIRS
    points = problem(0)
    results = dict(filter_pairs([("a", *points), ("b", *points)], rng=3))
    assert results["a"].anomaly_scores.tolist() != results["b"].anomaly_scores.tolist()
    assert digest(results["a"]) == digest(filter_points(*points, rng=pair_seed("a", 3)))


def test_options_reach_every_pair_and_a_pairs_own_come_last() -> None:
    points = problem(0)
    options: dict[str, Any] = {"model": "homography", "threshold": 2.0}
    results = dict(filter_pairs([(1, *points), (2, *points, {"threshold": 0.5})], **options))
    assert digest(results[1]) == digest(filter_points(*points, rng=pair_seed(1), **options))
    assert digest(results[2]) == digest(filter_points(*points, rng=pair_seed(2), model="homography", threshold=0.5))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_bad_pair_is_told_and_the_others_go_on(expected: dict[Any, str], backend: str) -> None:
    first, second = problem(0)
    bad = [
        ("length", first, second[:5]),
        ("shape", np.zeros((4, 3)), second),
        ("none", None, None),
        ("unpicklable", (number for number in range(3)), second),
        ("threshold", first, second, {"threshold": -1.0}),
    ]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        results = dict(filter_pairs([*bad[:3], *pairs(), *bad[3:]], batch_size=3))
    assert not any(results[key].inlier_mask.any() for key, *_ in bad)
    assert results["threshold"].motion_labels.tolist() == [-1] * 90
    reasons = {key: results.pop(key).reason for key, *_ in bad}
    assert digests(results.items()) == expected
    assert reasons["length"] == "ValueError: `points1` and `points2` must have the same length, got 90 and 5"
    assert reasons["shape"] == "ValueError: `points1` must have shape (n, 2), got (4, 3)"
    assert reasons["threshold"] == "ValueError: `threshold` must be a finite number above 0, got -1.0"
    assert all(str(reason).startswith(("TypeError: `points1`", "ValueError: `")) for reason in reasons.values())


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_warnings_name_their_pairs(backend: str) -> None:
    first, _ = problem(0)
    mirrored = [(key, first, first[:, ::-1]) for key in "ab"]
    with joblib.parallel_config(backend=backend, n_jobs=2), pytest.warns(UserWarning, match="mirrors") as warned:
        assert len(dict(filter_pairs([*mirrored, ("c", first, first)]))) == 3
    assert sorted(str(one.message)[:12] for one in warned) == [f"the pair '{key}'" for key in "ab"]
    assert {one.filename for one in warned} == {__file__}


def test_the_error_of_the_input_is_the_callers() -> None:
    def broken() -> Iterator[Any]:
        yield from pairs(range(3))
        raise OSError("the disk is gone")

    with joblib.parallel_config(backend="threading", n_jobs=2), pytest.raises(OSError, match="the disk is gone"):
        list(filter_pairs(broken(), batch_size=1))


# Keys


def test_seeds_are_those_of_every_version() -> None:
    seeds = [248311848859996, 59278334546170, 81081838363795, 105082989892049]
    assert [pair_seed(7), pair_seed("7"), pair_seed(b"7"), pair_seed(("7",))] == seeds
    assert pair_seed(7, rng=1) not in seeds


def test_different_keys_have_different_seeds() -> None:
    keys = [0, 1, -1, 10**30, "", "0", b"", b"0", (), ((),), (0,), (0, 0), ("ab", "c"), ("a", "bc"), (("a",), "bc")]
    keys += [PurePosixPath("a/b"), "a/b", "a\udc80"]
    assert len({pair_seed(key) for key in keys}) == len(keys)
    assert all(0 <= pair_seed(key) < 2**48 for key in keys)
    assert pair_seed((np.int64(3), np.str_("a"))) == pair_seed((3, "a"))
    deep: Any = functools.reduce(lambda key, _: (key,), range(3000), "a")
    with pytest.raises(ValueError, match="a key is nested too deep"):
        pair_seed(deep)


# Memory


@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 3), ("sequential", 1), ("loky", 2)])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_the_input_is_never_read_far_ahead_of_the_results_taken(
    backend: str, n_jobs: int, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW_PAIRS", 64)
    n_read = n_taken = most = 0

    def counted() -> Iterator[Any]:
        nonlocal n_read
        for number in range(150):
            n_read += 1
            yield number, [[0, 0]], [[1, 1]]

    with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
        for _ in filter_pairs(counted(), batch_size=batch_size):
            if n_taken in (20, 90):  # the reader is slow: what is done must not pile up
                time.sleep(0.1)
            most = max(most, n_read - n_taken)
            n_taken += 1
    assert n_taken == n_read == 150
    # One batch more: the one whose results are being taken.
    assert most <= (module.BATCHES_AHEAD * n_jobs + 1) * batch_size


def test_the_first_pairs_do_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW_PAIRS", 64)
    read = []

    def reading() -> Iterator[Any]:
        for number in range(150):
            points = np.ones((1, 2))
            read.append(weakref.ref(points))
            yield number, points, points

    with joblib.parallel_config(backend="threading", n_jobs=2):
        running = filter_pairs(reading(), batch_size=1)
        for _ in range(100):
            next(running)
        assert sum(points() is not None for points in read) < 20
        running.close()  # type: ignore[attr-defined]


def test_batches_grow_so_that_the_first_result_comes_early() -> None:
    sizes = [len(batch) for batch in module._growing_batches(iter(range(500)), 100, 2)]  # type: ignore[arg-type]
    assert sizes == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 100, 100, 46]


def test_the_input_is_read_in_the_thread_that_takes_results() -> None:
    readers = set()

    def reading() -> Iterator[Any]:
        for pair in pairs(range(40)):
            readers.add(threading.current_thread())
            yield pair[0], pair[1][:5], pair[2][:5]

    with joblib.parallel_config(backend="threading", n_jobs=2):
        list(filter_pairs(reading(), batch_size=1))
    assert readers == {threading.current_thread()}


# Processes


def test_a_few_pairs_are_done_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker takes seconds to start, a pair some hundredths."""
    monkeypatch.setattr(module, "FEW_PAIRS", 1 + len([*pairs()]))
    threads, answer = set(), module._answer
    monkeypatch.setattr(module, "_answer", lambda *given: threads.add(threading.current_thread()) or answer(*given))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        list(filter_pairs(pairs()))
    assert threads == {threading.current_thread()}


class Deadly:
    """Ends the process it is sent to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("__import__('os').kill(__import__('os').getpid(), 9)",)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_a_killed_worker_ends_the_call_and_what_is_left_can_be_done_again(expected: dict[Any, str]) -> None:
    taken, everything = [], [*pairs()]
    everything.insert(4, ("deadly", *problem(0), {"threshold": Deadly()}))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        with pytest.raises(RuntimeError, match="a worker was killed, as it is if memory runs out"):
            taken.extend(filter_pairs(everything, batch_size=1))
        done = digests(taken)
        rest = digests(filter_pairs(pair for pair in pairs() if pair[0] not in done))
    assert rest | done == expected


def test_pairs_that_joblib_drops_without_an_error_end_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its generator may end early: it looks for the error of a killed worker before that is there."""

    class Forgetful(joblib.Parallel):  # type: ignore[misc]
        def __call__(self, calls: Any) -> Any:
            finished = super().__call__(calls)
            yield next(finished)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                finished.close()

    monkeypatch.setattr(joblib, "Parallel", Forgetful)
    killed = pytest.raises(RuntimeError, match="a worker was killed")
    with joblib.parallel_config(backend="threading", n_jobs=2), killed:
        list(filter_pairs(pairs(), batch_size=2))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks of signals")
def test_workers_start_without_ctrl_c() -> None:
    """Each would print a traceback of its imports."""
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)  # those of other tests

    def masks(tasks: list[Any]) -> list[Any]:
        return [signal.pthread_sigmask(signal.SIG_BLOCK, []) for _ in tasks]

    before = masks([0])
    with joblib.parallel_config(backend="loky", n_jobs=2):
        of_workers = list(module._answers(masks, iter(range(4)), 2, 1))
    assert all(signal.SIGINT in mask for mask in of_workers)
    assert masks([0]) == before


INTERRUPTED = """
import sys
sys.path.insert(0, {folder!r})
from many_pairs import problem
from ruzhash_cv.pipelines import filter_pairs

points = problem(0, 400)
try:
    for key, result in filter_pairs(((number, *points) for number in range(10**9)), n_jobs=2, batch_size=1):
        print(key, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows sends SIGINT to the whole console")
def test_ctrl_c_ends_the_call_and_its_workers() -> None:
    pytest.importorskip("psutil")  # of the extras; joblib ends its workers by it
    code = INTERRUPTED.format(folder=str(Path(__file__).parents[1]))
    command = [sys.executable, "-c", f"import signal; signal.signal(2, signal.default_int_handler)\n{code}"]
    bare = {**os.environ, "PATH": ""}  # without pgrep, as in a slim container
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes, start_new_session=True, env=bare)  # type: ignore[call-overload]
    for _ in range(3):
        process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the workers too
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert (out.splitlines()[-1], process.returncode, err) == ("interrupted", 0, "")
    assert ended(process.pid)
