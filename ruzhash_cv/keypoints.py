"""What keypoints tell besides their places: a true match turns and scales as its neighbours do, and its descriptors are alike.

    agreement of a match   mean of exp(-(turn / 20 deg)^2 / 2 - (octaves / 0.5)^2 / 2) over its 20 nearest matches in both images,
                           of the differences in how keypoints turn and scale from the first image to the second
    trust                  1 - share of mismatches among matches that agree as much

Decoys, the first keypoint of one match with the second of another, tell how mismatches agree. The share is the local false discovery
rate (Efron, "Large-scale inference", 2010), of ratios that rise with agreement: isotonic regression. How it falls with the quality of
matches is learnt from it the same way. Trust weighs matches in samples of seven, where one mismatch spoils a sample; in votes and in
scores it brought nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.spatial import cKDTree

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._validation import as_vector

#: Neighbours whose turning and scaling a match is compared with, and how much these differ on one surface: radians and octaves.
N_NEIGHBOURS, TURN, OCTAVES = 20, np.radians(20.0), 0.5
#: No match is trusted less.
LEAST_TRUST = 0.05
#: Decoys that agreement is compared with.
N_DECOYS = 1000
#: Shares are never quite 0 or 1.
_SURE = 0.02


@dataclass(frozen=True)
class Appearance:
    """Keypoints of matches: angles (n, 2) in radians, logarithms (n, 2) of sizes, octaves, and quality (n,), low = good; or None."""

    angles: Array | None
    octaves: Array | None
    quality: Array | None

    def take(self, rows: Rows) -> Appearance:
        """Return those of some matches."""
        return Appearance(*(None if of is None else of[rows] for of in (self.angles, self.octaves, self.quality)))


def trust(data: Array, keypoints: Appearance, rng: np.random.Generator) -> Array:
    """Return the trust (n,) in correspondences (n, 4), from `LEAST_TRUST` to 1."""
    n, k = len(data), min(N_NEIGHBOURS, len(data) - 1)
    tree, (i, j) = cKDTree(data), rng.integers(n, size=(2, N_DECOYS))
    decoys = np.hstack([data[i, :2], data[j, 2:]])
    near, near_decoys = ([np.asarray(of) for of in tree.query(of, most)] for of, most in ((data, k + 1), (decoys, k)))
    seen = keypoints.angles is not None or keypoints.octaves is not None
    if seen:
        own = _agreement(keypoints, near[1][:, 1:], np.arange(n), np.arange(n))
        null = _agreement(keypoints, near_decoys[1].reshape(len(i), k), i, j)
    else:
        # Of places alone the density tells. They have their say elsewhere, and here only teach what quality means.
        own, null = -near[0][:, -1], -near_decoys[0].reshape(len(i), k)[:, -1]
    shares = true_shares(own, null[i != j])
    if keypoints.quality is not None:
        order, mean = np.argsort(keypoints.quality, kind="stable"), float(shares.mean())
        fitted = np.empty(n)
        fitted[order] = scipy.optimize.isotonic_regression(shares[order], increasing=False).x
        odds = fitted / (1.0 - fitted) * (shares / (1.0 - shares) / (mean / (1.0 - mean)) if seen else 1.0)
        shares = odds / (1.0 + odds)
    return np.maximum(LEAST_TRUST, shares)


def _agreement(keypoints: Appearance, neighbours: Rows, first: Rows, second: Rows) -> Array:
    """Return the mean agreement (m,) of matches, of a `first` and a `second` keypoint each, with neighbours (m, k)."""
    exponent = np.zeros(neighbours.shape)
    for of, scale in ((keypoints.angles, TURN), (keypoints.octaves, OCTAVES)):
        if of is not None:
            apart = (of[:, 1] - of[:, 0])[neighbours] - (of[second, 1] - of[first, 0])[:, None]
            if of is keypoints.angles:
                apart = np.angle(np.exp(1j * apart))
            exponent += (apart / scale) ** 2
    return np.asarray(np.exp(-0.5 * exponent).mean(axis=1))


def true_shares(own: Array, null: Array) -> Array:
    """Return the share of true ones among matches of each statistic (n,), larger ones being better, by that of decoys (N,)."""
    both = np.concatenate([own, null])
    order = np.argsort(both, kind="stable")
    rising = np.empty(len(both))
    rising[order] = scipy.optimize.isotonic_regression(np.repeat([1.0, 0.0], [len(own), len(null)])[order]).x
    # Half of the decoys, and of the mismatches, are below the median; true matches hardly are.
    mismatches = min(1.0, 2.0 * float(np.mean(own <= np.median(null))))
    ratio = (1.0 - rising[: len(own)]) / np.maximum(rising[: len(own)], 1e-9) * len(own) / max(len(null), 1)
    return np.clip(1.0 - mismatches * ratio, _SURE, 1.0 - _SURE)


def as_appearance(sizes: Any, angles: Any, quality: Any, n: int) -> Appearance:
    """Return what was given of the keypoints of n matches, checked; None for what was not."""
    octaves = None if sizes is None else np.log2(_as_columns(sizes, "sizes", n, least=np.nextafter(0.0, 1.0)))
    turns = None if angles is None else np.radians(_as_columns(angles, "angles", n))
    if quality is not None:
        quality = as_vector(quality, "match_quality")
        if len(quality) != n:
            raise ValueError(f"`match_quality` must have one entry per match, {n}, got {len(quality)}")
    return Appearance(turns, octaves, quality)


def _as_columns(value: Any, name: str, n: int, least: float = -np.inf) -> Array:
    if not hasattr(value, "__len__") or len(value) != 2:
        raise ValueError(
            f"`{name}` must be two arrays, of the first and of the second image, got {type(value).__name__}"
        )
    columns = [as_vector(column, f"{name}[{image}]", least=least) for image, column in enumerate(value)]
    for image, column in enumerate(columns):
        if len(column) != n:
            raise ValueError(f"`{name}[{image}]` must have one entry per match, {n}, got {len(column)}")
    return np.stack(columns, axis=1)
