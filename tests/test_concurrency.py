"""The same bits from threads and from a process that is forked meanwhile; `pipelines/test_pairs.py` has joblib's workers."""

import ast
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from many_pairs import digest, problem

import ruzhash_cv
from ruzhash_cv import filter_points

PACKAGE = Path(ruzhash_cv.__path__[0])

# Python warns of forking a process that has threads.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def digests(seed: int) -> list[str]:
    """Return digests of the results for a problem, for every family."""
    models = ("auto", "homography", "fundamental")
    return [digest(filter_points(*problem(seed), model=model, rng=seed)) for model in models]


def digests_in_threads(n_threads: int) -> list[list[str]]:
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(digests, range(n_threads)))


@pytest.fixture(scope="module")
def expected() -> list[list[str]]:
    """Digests from this process, one call after the other."""
    return [digests(seed) for seed in range(8)]


def test_eight_threads_at_once_give_the_same_bits(expected: list[list[str]]) -> None:
    assert digests_in_threads(8) == expected
    assert len({tuple(each) for each in expected}) == 8


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_process_forked_in_the_midst_of_a_call_gives_the_same_bits(expected: list[list[str]]) -> None:
    busy = threading.Thread(target=digests_in_threads, args=(3,))
    busy.start()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        forked = list(pool.map(digests_in_threads, [2, 3]))
    busy.join()
    assert forked == [expected[:2], expected[:3]]


def test_kernels_that_the_package_calls_release_the_lock() -> None:
    kept, called = set(), set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ruzhash_cv.core.kernels"):
                called |= {alias.name for alias in node.names}
            elif path.parent.name == "kernels" and isinstance(node, ast.FunctionDef):
                kept |= {node.name} if "cython.nogil" not in ast.unparse(node) else set()
    assert len(called) > 20
    assert called & kept == set()
