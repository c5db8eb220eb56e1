"""Kernels against their NumPy twins, and the random numbers they draw."""

from __future__ import annotations

import naive
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv._kernels import below, draw_key, mix, uniform

# Random numbers

words = st.integers(0, naive.WORD - 1)


@settings(max_examples=200, deadline=None)
@given(key=words, counter=words)
def test_mix_equals_its_twin_in_python_integers(key: int, counter: int) -> None:
    assert int(mix(np.uint64(key), np.uint64(counter))) == naive.mix(key, counter)
    assert uniform(np.uint64(key), np.uint64(counter)) == (naive.mix(key, counter) >> 11) / 2**53


@settings(max_examples=100, deadline=None)
@given(key=words, counter=words, n=st.integers(1, 2**40))
def test_numbers_below_n_are_uniform_ones_cut_off(key: int, counter: int, n: int) -> None:
    number = below(np.uint64(key), np.uint64(counter), n)
    assert 0 <= number < n
    assert number == int(uniform(np.uint64(key), np.uint64(counter)) * n)


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
