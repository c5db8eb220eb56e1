"""The same bits from clusters of Dask and Ray, with a worker of Dask killed on the way. Skipped where they are not installed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import joblib
import pytest
from many_pairs import digest, digests, pairs

from ruzhash_cv import filter_points
from ruzhash_cv.pipelines import filter_pairs, pair_seed

# Warnings of these libraries about each other are not this package's.
pytestmark = pytest.mark.filterwarnings("ignore")

NUMBERS = range(30)


@pytest.fixture(scope="module")
def expected() -> dict[Any, str]:
    return {key: digest(filter_points(*points, rng=pair_seed(key))) for key, *points in pairs(NUMBERS)}


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    """A scheduler and two workers, each a process of its own."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("batch_size", [1, 7])
def test_dask_gives_the_same_bits(dask_client: Any, expected: dict[Any, str], batch_size: int) -> None:
    with joblib.parallel_config(backend="dask"):
        assert digests(filter_pairs(pairs(NUMBERS), batch_size=batch_size)) == expected


def test_a_dask_worker_killed_on_the_way_loses_and_doubles_nothing(dask_client: Any, expected: dict[Any, str]) -> None:
    before = dask_client.run(os.getpid)
    taken = []
    with joblib.parallel_config(backend="dask"):
        for key, result in filter_pairs(pairs(NUMBERS), batch_size=2):
            taken.append((key, result))
            if len(taken) == 4:
                os.kill(next(iter(before.values())), signal.SIGKILL)
    assert digests(taken) == expected
    assert dask_client.run(os.getpid) != before


def test_ray_gives_the_same_bits(expected: dict[Any, str]) -> None:
    ray = pytest.importorskip("ray")
    register_ray = pytest.importorskip("ray.util.joblib").register_ray
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        register_ray()
        with joblib.parallel_config(backend="ray", n_jobs=2):
            assert digests(filter_pairs(pairs(NUMBERS), batch_size=3)) == expected
    finally:
        ray.shutdown()
