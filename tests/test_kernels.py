"""Kernels against their NumPy twins on random, degenerate and tiny arguments, and the random numbers they draw.

To add a kernel: write its twin in `naive.py`, what it has to return in a few lines, and a `Row` in `TABLE`. `draw(rng, n)` makes the
arguments of both, for any n from 1 up; let it make zeros, duplicates, NaN and infinity where the kernel may meet them. `call` is the
shortest way to the kernel, itself or the function around it, and returns an array or a tuple of arrays, as the twin does. `kernels`
names all kernels that it runs, module and function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv import warmup  # imports every module with kernels
from ruzhash_cv._kernels import KERNELS, below, draw_key, mix, uniform
from ruzhash_cv.forests.isolation import draw_rows

Rng = np.random.Generator


class Row(NamedTuple):
    """A kernel and its twin; results are the same to a relative and an absolute error."""

    kernels: str
    draw: Callable[[Rng, int], tuple[Any, ...]]
    call: Callable[..., Any]
    twin: Callable[..., Any]
    rtol: float = 0.0
    atol: float = 0.0


def words(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of 64-bit numbers, some of them the smallest and the largest."""
    drawn = rng.integers(0, naive.WORD, (2, n), dtype=np.uint64)
    drawn[rng.random((2, n)) < 0.2] = rng.choice(np.array([0, naive.WORD - 1], np.uint64))
    return drawn[0], drawn[1]


def each(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a kernel of numbers for each number of arrays."""
    return lambda *arrays: np.array([kernel(*numbers) for numbers in zip(*arrays, strict=True)])


TABLE = (
    Row("_kernels.mix", words, each(mix), each(lambda key, at: np.uint64(naive.mix(key, at)))),
    Row("_kernels.uniform", words, each(uniform), each(lambda key, at: (naive.mix(key, at) >> 11) / 2**53)),
    Row(
        "_kernels.below",
        lambda rng, n: (*words(rng, n), rng.integers(1, 2**40, n)),
        each(lambda key, at, n: below(key, at, int(n))),
        each(lambda key, at, n: int((naive.mix(key, at) >> 11) / 2**53 * int(n))),
    ),
    Row(
        "forests.isolation.draw_rows",
        lambda rng, n: (*words(rng, 1)[0], np.empty(n, np.int64), int(rng.integers(0, n + 1))),
        draw_rows,
        lambda key, rows, psi: naive.draw_rows(key, len(rows), psi),
    ),
)
#: How many kernels no row names yet: lower it with each row.
WITHOUT_A_TWIN = 70


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kernels.partition(" ")[0])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40))
def test_kernel_equals_its_twin(row: Row, seed: int, n: int) -> None:
    arguments = row.draw(np.random.default_rng(seed), n)
    actual, expected = row.call(*arguments), row.twin(*arguments)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=row.rtol, atol=row.atol, err_msg=row.kernels)


def test_every_kernel_has_a_twin() -> None:
    assert warmup
    kernels = {f"{kernel.__module__}.{kernel.__name__}".removeprefix("ruzhash_cv.") for kernel in KERNELS}
    named = {name for row in TABLE for name in row.kernels.split()}
    assert named <= kernels
    assert len(kernels - named) <= WITHOUT_A_TWIN, sorted(kernels - named)


# Random numbers


def test_numbers_of_a_stream_are_even() -> None:
    """Chi-squared of 32 cells has mean 31 and standard deviation sqrt(62): five of these."""
    n = 40000
    drawn = np.array([below(np.uint64(9), np.uint64(counter), 32) for counter in range(n)])
    squares = ((np.bincount(drawn, minlength=32) - n / 32) ** 2 / (n / 32)).sum()
    assert abs(squares - 31) < 5 * np.sqrt(62)


def test_one_seed_draws_one_key_after_the_other() -> None:
    first, again = np.random.default_rng(3), np.random.default_rng(3)
    keys = [draw_key(first) for _ in range(20)]
    assert keys == [draw_key(again) for _ in range(20)]
    assert len(set(keys)) == 20
    assert all(isinstance(key, np.uint64) for key in keys)
