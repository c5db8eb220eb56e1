"""Random numbers inside kernels: keyed 64-bit hashes, the same on every platform and for any number of threads.

The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, "Fast splittable pseudorandom number
generators"). A stream is a counter added to a key, so that any draw can be made without those before it.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv._core.jit import jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER2 = np.uint64(0x94D049BB133111EB)
_SHIFT30, _SHIFT27, _SHIFT31, _SHIFT11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / (1 << 53)


@jit
def mix(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return 64 pseudorandom bits for the pair (key, counter)."""
    z = key + (counter + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _SHIFT30)) * _MULTIPLIER1
    z = (z ^ (z >> _SHIFT27)) * _MULTIPLIER2
    return z ^ (z >> _SHIFT31)


@jit
def uniform(key: np.uint64, counter: np.uint64) -> float:
    """Return a number in [0, 1) for the pair (key, counter)."""
    return float(mix(key, counter) >> _SHIFT11) * _UNIT


@jit
def below(key: np.uint64, counter: np.uint64, n: int) -> int:
    """Return an integer in [0, n) for the pair (key, counter)."""
    return min(int(uniform(key, counter) * n), n - 1)


def draw_key(rng: np.random.Generator) -> np.uint64:
    """Draw the key of a stream."""
    return np.uint64(rng.integers(0, 1 << 64, dtype=np.uint64))
