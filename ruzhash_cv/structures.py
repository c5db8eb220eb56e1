"""All structures among points of any kind: lines, circles, planes, or models of a user's family.

The search is that of `filter_points`: samples of neighbours, models weighed against decoys, structures by -ln NFA, a RuzHash forest
whose scores lead the next round. Points differ from correspondences in three ways: decoys are uniform in a bounding box of the
points, samples are drawn among neighbours in space, and no point is stationary or a repetition.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import cv2
import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv.core.families.base import CheckedFamily, Families, ModelFamily, TwoViewFamily
from ruzhash_cv.core.method.evidence import select
from ruzhash_cv.core.method.fits import refine_structures
from ruzhash_cv.core.method.matches import Frame, MatchSet, match_weights
from ruzhash_cv.core.method.parameters import PARAMETERS, Parameters
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scene import Structures
from ruzhash_cv.core.method.scores import Scores, score
from ruzhash_cv.core.method.search import Tried, proposal_weights, samples_wanted
from ruzhash_cv.foundation.arrays import Array, Mask, Record, Rows
from ruzhash_cv.foundation.interrupts import uninterrupted
from ruzhash_cv.foundation.validation import LARGEST_LENGTH, RNG, as_generator, as_reals, check_numbers_of, check_real

#: A model of points is sampled as often as a plane of matches, and its noise is known as badly as that of planes.
POINT_PARAMETERS = replace(
    PARAMETERS, motion_samples=PARAMETERS.plane_samples, motion_widest_radius=PARAMETERS.plane_widest_radius
)
#: Noise scales in the median distance of points from their centre, if the caller gives none.
SCALES_IN_SPREAD = 125.0


@dataclass(frozen=True, eq=False, repr=False)
class FoundStructures(Record):
    """The structures among points, strongest first.

    Attributes
    ----------
    models : ndarray of float64, shape (k, p)
        Models in the family's form, each fitted to its points.
    masks : ndarray of bool, shape (k, n)
        The points within the tolerance of each model. A point where two structures cross is in both masks.
    labels : ndarray of int64, shape (n,)
        The nearest structure of each point, by distance over tolerance; -1 for a point in no mask.
    anomaly_scores : ndarray of float64, shape (n,)
        In (0, 1], high = outlier, from the RuzHash forest.
    tolerances : ndarray of float64, shape (k,)
        In the unit of the residuals.
    noise_scales : ndarray of float64, shape (k,)
        Standard deviation of the noise of each structure, in the unit of the residuals.
    evidences : ndarray of float64, shape (k,)
        -ln NFA; NFA is the number of equally strong structures expected by chance.
    reason : str or None
        Why there are no structures; None if there are some.
    """

    models: Array
    masks: Mask
    labels: Rows
    anomaly_scores: Array
    tolerances: Array
    noise_scales: Array
    evidences: Array
    reason: str | None = field(default=None)

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        structures, in_any = "structure" if len(self) == 1 else "structures", int((self.labels >= 0).sum())
        reason = "" if self.reason is None else f": {self.reason}"
        return f"<FoundStructures: {len(self)} {structures}, {in_any} of {len(self.labels)} points{reason}>"


@uninterrupted
def find_structures(
    data: ArrayLike,
    family: ModelFamily,
    *,
    threshold: float | None = None,
    noise_scale: float | None = None,
    rng: RNG = 0,
) -> FoundStructures:
    """Estimate all models of a family among points, whereas ``skimage.measure.ransac`` estimates one.

    It needs neither the number of models nor a threshold. For correspondences of two images, use `filter_points`.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Points. Rows that are not finite, or beyond 1e60, belong to no structure and do not affect the others.
    family : ModelFamily
        `ruzhash_cv.models.Lines()` or `Circles()` for points in the plane, or your family, with codimension 1 or 2.
    threshold : float, optional
        The tolerance of every structure, in the unit of the residuals. None: a tolerance per structure, from its residuals.
    noise_scale : float, optional
        Rough standard deviation of the noise, in the unit of the residuals. The true noise may be 1/5 to 6 times as large.
        None: 1/125 of the median distance of points from their centre, in the coordinate where it is largest.
    rng : int, numpy.random.Generator or None
        The same int gives the same result.

    Returns
    -------
    FoundStructures
        If there is no structure, `reason` says why.

    Raises
    ------
    TypeError, ValueError
        The message names the argument, the requirement and what arrived.

    Examples
    --------
    >>> from ruzhash_cv import find_structures
    >>> from ruzhash_cv.models import Lines
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 1, 120)
    >>> level, rising = np.stack([x[:60], 0 * x[:60] + 0.3], axis=1), np.stack([x[60:], x[60:]], axis=1)
    >>> points = np.vstack([level, rising, rng.uniform(0, 1, (80, 2))])
    >>> points[:120] += rng.normal(scale=0.003, size=(120, 2))
    >>> result = find_structures(points, Lines())
    >>> result
    <FoundStructures: 2 structures, 124 of 200 points>
    >>> result.models.shape, result.masks.shape
    ((2, 3), (2, 200))
    """
    points = as_reals(data, "data", "(n, d)")
    has_columns = points.shape != (0,)  # an empty list has none
    points = points if has_columns else points.reshape(0, 1)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"`data` must have shape (n, d), got {points.shape}")
    checked = _PointFamily(cast(TwoViewFamily, check_family(family)))
    if has_columns:
        check_takes(checked, points.shape[1], "data")
    threshold, noise_scale = (
        None if length is None else check_real(length, name)
        for length, name in ((threshold, "threshold"), (noise_scale, "noise_scale"))
    )
    generator = as_generator(rng)
    finite = (np.abs(points) < LARGEST_LENGTH).all(axis=1)
    with np.errstate(under="ignore"):  # whatever the caller's settings
        result = _find(np.ascontiguousarray(points[finite]), checked, noise_scale, threshold, generator)
    masks, labels, scores = np.zeros((len(result), len(points)), bool), np.full(len(points), -1), np.ones(len(points))
    masks[:, finite], labels[finite], scores[finite] = result.masks, result.labels, result.anomaly_scores
    return replace(result, masks=masks, labels=labels, anomaly_scores=scores)


@dataclass(frozen=True)
class _PointFamily(CheckedFamily):
    """A family of points, whose models predict no second image."""

    is_plane: bool = False


def check_family(family: Any) -> ModelFamily:
    """Return a family of points after checking that it is one."""
    members = ("name", "sample_size", "codimension", "solve", "squared_residuals", "fit")
    missing = [member for member in members if not hasattr(family, member)]
    if missing or isinstance(family, type):
        what = f"the class {family.__name__}" if isinstance(family, type) else repr(family)
        lacking = f" without `{missing[0]}`" if missing else ""
        raise TypeError(f"`family` must be a ModelFamily, such as ruzhash_cv.models.Lines(), got {what}{lacking}")
    check_numbers_of(family, "family")
    return cast(ModelFamily, family)


def check_takes(family: ModelFamily, n_coordinates: int, name: str) -> None:
    """Raise unless the family takes points of `n_coordinates`, those of the argument `name`."""
    try:
        sample = np.zeros((1, family.sample_size, n_coordinates))
        family.squared_residuals(sample[0], family.solve(sample)[0])
    except (TypeError, ValueError, IndexError, cv2.error) as error:
        what = f"{n_coordinates} coordinates, as `{name}` has: {getattr(error, 'err', error)}"
        raise ValueError(f"`family` ({family.name}) fails on points of {what}") from error


def _find(
    points: Array, family: _PointFamily, noise_scale: float | None, threshold: float | None, rng: np.random.Generator
) -> FoundStructures:
    """Return the structures of finite points."""
    spread = float(np.median(np.abs(points - np.median(points, axis=0)), axis=0).max()) if len(points) else 0.0
    distinct, groups = np.unique(points, axis=0, return_inverse=True)
    least = family.sample_size + 2
    if len(distinct) < least:
        reason = f"{len(distinct)} distinct points, at least {least} are needed"
        return _nothing(len(points), reason, np.ones(len(points)))
    scale = noise_scale or (spread or float(np.ptp(distinct, axis=0).max())) / SCALES_IN_SPREAD
    scale = min(max(scale, 1.0 / LARGEST_LENGTH), LARGEST_LENGTH)
    every = _as_set(points, groups.reshape(-1), POINT_PARAMETERS.unit * scale)
    searched, rows = every.sample(POINT_PARAMETERS.max_searched, rng)
    families = Families((cast(TwoViewFamily, family),), (True,))
    problem = Problem(searched, uniform_decoys(searched, POINT_PARAMETERS, rng), families, POINT_PARAMETERS)
    structures, scorer = _search(problem, rng)
    scores = scorer.of_all(every, rows, problem)
    scene = refine_structures(structures, every, families, POINT_PARAMETERS)
    tolerances = scene.tolerances
    if threshold is not None:
        tolerances = np.full_like(tolerances, max(threshold, 1.0 / LARGEST_LENGTH))
    distances = families.in_tolerances(scene, tolerances, points)
    kept = np.flatnonzero((distances <= 1.0).any(axis=1))
    if len(kept) == 0:
        return _nothing(len(points), "no model found that more points agree with than chance would give", scores)
    scene, tolerances, distances = scene.take(kept), tolerances[kept], distances[kept]
    labels = np.where(distances.min(axis=0) <= 1.0, distances.argmin(axis=0), -1)
    noise, evidences = scene.noise, scene.evidences
    return FoundStructures(scene.matrices, distances <= 1.0, labels, scores, tolerances, noise, evidences)


def _search(problem: Problem, rng: np.random.Generator) -> tuple[Structures, Scores]:
    """Return structures of searched points, and scores, as `method.search.search` does.

    All rounds are drawn: one more costs little, and small structures are found late.
    """
    points, _, families, parameters = problem
    tried, unexplained, leading = Tried(parameters), points.weights, None
    size, sizes = families[0].sample_size, parameters.neighbourhoods
    for round_number in range(parameters.max_rounds):
        proposals = proposal_weights(True, points.weights, unexplained, leading)
        n_samples = samples_wanted(problem, 0, round_number) // len(proposals)
        for proposal in proposals:
            rows = np.flatnonzero(proposal > 0.0)
            indices = draw_point_samples(points.data[rows], proposal[rows], n_samples, size, sizes, rng)
            tried.add([(0, rows[indices], np.zeros(3, np.int64), proposal)], problem)
        structures, unexplained, tried.candidates = select(tried.candidates, points.weights, problem, tried.n)
        scores = score(tried.columns, structures, uniform_decoys(points, parameters, rng), problem, rng)
        leading = scores.of_matches
    return structures, scores


def _nothing(n: int, reason: str, scores: Array) -> FoundStructures:
    none = np.zeros(0)
    return FoundStructures(np.zeros((0, 0)), np.zeros((0, n), bool), np.full(n, -1), scores, none, none, none, reason)


def _as_set(points: Array, groups: Rows, unit: float) -> MatchSet:
    """Return points as a set of matches without a second image, in no frame; equal points share a group and a weight."""
    n, d = points.shape
    rows, frame = np.arange(n), Frame(np.zeros(d), np.zeros(0), 1.0)
    keypoints = np.tile(rows, (2, 1))  # all different: points do not compete as matches of one keypoint do
    weights = match_weights(groups, keypoints)
    return MatchSet(points, groups, keypoints, weights, np.ones(n), frame, unit, np.ones(n, bool), rows)


def uniform_decoys(points: MatchSet, parameters: Parameters, rng: np.random.Generator) -> Array:
    """Return decoys (N, d) spread evenly over the bounding box of points, whose short sides are widened.

    Points along an axis have a thin box, and decoys in it would lie on their line as well. So a side is at least as long as the widest
    tolerances on both sides of a structure, unless no side is.
    """
    lowest, highest = points.data.min(axis=0), points.data.max(axis=0)
    sides = highest - lowest
    least = min(2.0 * parameters.widest_tolerance(1) * points.unit, sides.max())
    margins = 0.5 * np.maximum(least - sides, 0.0)
    return rng.uniform(lowest - margins, highest + margins, (parameters.n_decoys, len(sides)))


def draw_point_samples(
    data: Array, weights: Array, n_samples: int, size: int, neighbourhoods: tuple[int, ...], rng: np.random.Generator
) -> Rows:
    """Draw samples (m, size) of different points (n, d): a first one by `weights` (n,) above 0, and others among its nearest.

    `neighbourhoods` are numbers of neighbours, 0 for all points; numbers too small for a sample are left out.
    """
    n = len(data)
    if n < size or n_samples == 0:
        return np.zeros((0, size), np.int64)
    near = [k + 1 if size <= k + 1 < n else n for k in neighbourhoods if k == 0 or size <= k + 1]
    # Stratified: as many first points from each part as its weight asks for.
    at = (np.arange(n_samples) + rng.random(n_samples)) / n_samples
    cumulative = np.cumsum(weights)
    firsts = np.minimum(np.searchsorted(cumulative, at * cumulative[-1], side="right"), n - 1)
    sizes = rng.permutation(np.resize(near, n_samples))
    from scipy.spatial import cKDTree  # an import of .2 s

    tree, samples = cKDTree(data), np.empty((n_samples, size), np.int64)
    for k in np.unique(sizes):
        drawn = np.flatnonzero(sizes == k)
        everything = np.broadcast_to(np.arange(n), (len(drawn), n))
        rows = everything if k == n else np.asarray(tree.query(data[firsts[drawn]], k)[1])
        # The largest of logarithms plus Gumbel noise are a weighted draw without replacement (Vieira, 2014).
        keys = np.log(weights[rows]) + rng.gumbel(size=rows.shape)
        keys[rows == firsts[drawn, None]] = np.inf
        chosen = np.argpartition(-keys, size - 1, axis=1)[:, :size]
        samples[drawn] = np.take_along_axis(rows, chosen, axis=1)
    return samples
