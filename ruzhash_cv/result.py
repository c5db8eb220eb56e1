"""What the filter returns: a verdict on every match, and the structures behind those it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import printing
from ruzhash_cv._core.records import Record
from ruzhash_cv.sampling import REJECTIONS

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Structure(Record):
    """One plane, or one rigid motion, behind the kept matches.

    Attributes
    ----------
    matrix : ndarray of float64, shape (3, 3)
        Homography (x2 ~ H x1) or fundamental matrix (x2^T F x1 = 0) of pixels, refitted to its matches; unit norm.
    kind : str
        ``"homography"`` or ``"fundamental"``.
    support : int
        Matches labelled with it.
    tolerance : float
        In the points' unit: a match with at most this residual belongs to it, unless it lies in a plane as well and this is none, has a
        better rival for its keypoint, or looks no better than decoys (on an epipolar line). Without a `threshold`, up to three
        times as far if it looks better than nearly all decoys and nearly all matches further off.
    noise_scale : float
        Pixels: 1.4826 times the median residual of its distinct matches.
    evidence : float
        Log-likelihood ratio against chance, nats.
    """

    matrix: Array
    kind: str
    support: int
    tolerance: float
    noise_scale: float
    evidence: float


@dataclass(frozen=True, eq=False, repr=False)
class FilterResult(Record):
    """What `filter_points` found; every array has one entry per match.

    Prints as its counts and a row for each structure. Two results are equal where everything but `seconds` is.

    Attributes
    ----------
    inlier_mask : ndarray of bool, shape (n,)
        True = keep.
    anomaly_scores : ndarray of float64, shape (n,)
        In (0, 1], high = mismatch.
    p_values : ndarray of float64, shape (n,)
        In (0, 1]: probability that a mismatch looks at least as good, by comparison with decoys and with the other matches.
    labels : ndarray of int64, shape (n,)
        Index into `models` of the structure a kept match belongs to, -1 = none.
    models : tuple of Structure
        Strongest first.
    score_threshold : float
        Anomaly score of the last match whose score alone speaks for keeping it: a p-value of at most `false_acceptance_rate`, or else
        better than all but 2 in 1,000 decoys, and than as many of the matches beyond all structures. Structures keep others besides.
    mismatch_rate : float
        In [0, 1]: estimated share of mismatches among distinct matches.
    degenerate_samples : dict of str to int
        Minimal samples rejected, by reason: ``"repeated"``, ``"collinear"``, ``"flipped"``, ``"unsolved"``.
    n_models : int
        Models sampled.
    reason : str or None
        Why nothing could be decided; None where something was.
    seconds : dict of str to float
        Time of each stage: ``"search"``, ``"forest"``, ``"structures"``.
    """

    inlier_mask: NDArray[np.bool_]
    anomaly_scores: Array
    p_values: Array
    labels: NDArray[np.int64]
    models: tuple[Structure, ...] = ()
    score_threshold: float = 0.0
    mismatch_rate: float = 1.0
    degenerate_samples: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REJECTIONS, 0))
    n_models: int = 0
    reason: str | None = None
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"<FilterResult: {printing.headline(self)}>"

    def __str__(self) -> str:
        return printing.as_text(self)

    def _repr_html_(self) -> str:
        return printing.as_html(self)
