"""The same bits from threads, forked and spawned processes and joblib, in any nesting; and after an interruption.

Workers return digests of everything a result says but its times.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed

from ruzhash_cv import filter_points
from ruzhash_cv.structures.search import Search

START_METHODS = [name for name in ("fork", "spawn", "forkserver") if name in multiprocessing.get_all_start_methods()]


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Correspondences of a plane and of a motion in depth, a third of them mismatches."""
    rng = np.random.default_rng(n)
    first = rng.uniform(0, 800, (n, 2))
    second = first @ [[0.9, 0.1], [-0.1, 1.1]] + 20
    second[: n // 3] = rng.uniform(0, 800, (n // 3, 2))
    second[n // 3 : n // 2, 0] += rng.uniform(0, 80, n // 2 - n // 3)
    return first, second


def digest(seed: int, n_jobs: int | None = 2) -> str:
    """Return a digest of the results for a problem, for every family."""
    state = hashlib.sha256()
    for model in ("auto", "homography", "fundamental"):
        result = filter_points(*problem(90 + seed), model=model, rng=seed, n_jobs=n_jobs)
        for array in (result.inlier_mask, result.anomaly_scores, result.p_values, result.labels):
            state.update(array.tobytes())
        for found in result.models:
            state.update(found.matrix.tobytes() + repr((found.kind, found.tolerance, found.noise_scale)).encode())
    return state.hexdigest()


def digests_in_threads(n_threads: int) -> list[str]:
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(digest, range(n_threads)))


@pytest.fixture(scope="module")
def expected() -> list[str]:
    """Digests from this process, one call after the other."""
    return [digest(seed, 1) for seed in range(8)]


def test_eight_threads_at_once_give_the_same_bits(expected: list[str]) -> None:
    assert digests_in_threads(8) == expected
    assert len(set(expected)) == 8


@pytest.mark.parametrize("method", START_METHODS)
def test_worker_processes_give_the_same_bits(expected: list[str], method: str) -> None:
    # The parent has used the package, its threads included, before it forks.
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, about forking a process that has threads
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(digest, range(4))) == expected[:4]


@pytest.mark.skipif("fork" not in START_METHODS, reason="no fork here")
def test_a_process_forked_in_the_midst_of_a_call_gives_the_same_bits(expected: list[str]) -> None:
    busy = threading.Thread(target=digests_in_threads, args=(3,))
    busy.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            forked = list(pool.map(digests_in_threads, [2, 3]))
    busy.join()
    assert forked == [expected[:2], expected[:3]]


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_workers_that_start_threads_give_the_same_bits(expected: list[str], backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        nested = Parallel(n_jobs=2, backend=backend)(delayed(digests_in_threads)(count) for count in (3, 2))
    assert nested == [expected[:3], expected[:2]]


@pytest.fixture
def interruptible() -> Iterator[Any]:
    """Handle SIGINT as by default: a shell's background jobs ignore it, and what they start does too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_interruption_within_a_call_waits_for_its_end(monkeypatch: pytest.MonkeyPatch, interruptible: Any) -> None:
    """Between kernels and OpenCV's solvers it may come too, and must not cut the call off."""
    sampled, sample = [], Search._sample

    def interrupted_midway(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        sampled.append(sample(*arguments))
        return sampled[-1]

    monkeypatch.setattr(Search, "_sample", interrupted_midway)
    monkeypatch.setattr(Search, "_is_over", lambda *_: False)
    with pytest.raises(KeyboardInterrupt):
        filter_points(*problem(100), model="homography")
    assert len(sampled) > 5
    assert signal.getsignal(signal.SIGINT) is interruptible


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(os.name == "nt", reason="Windows sends SIGINT to the whole console")
def test_30_random_interruptions_raise_keyboard_interrupt_and_leave_the_process_usable() -> None:
    script = Path(__file__).parent / "fuzzing" / "interrupts.py"
    done = subprocess.run([sys.executable, str(script), "--n", "30"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "30 interrupted\n", "")
