"""What structures go through once they are found: refits, the loss of repetitions, the division of wide planes.

Refits: a structure is found with wide radii, and ends with a robust fit at the noise scale of its own matches.

Repetitions: a repeated texture yields a second plane interleaved with the true one. Its matches lie among the matches of the surface
they are on, where of two true surfaces the nearer one hides the other. And they compete with them: some lead to keypoints that
already have a partner. We drop a structure that does both. Parallax, window panes and fences are interleaved as well, but their
keypoints are their own. A plane and a second one that is shifted have a fundamental matrix in common, whose lines run in the direction
of the shift. So a texture repeated in one direction looks like a motion. It is none if what it holds beside a plane is a repetition.
Of planes that lie among each other and do not compete the motions decide, see `filtering`.

Division: planes a few pixels from each other may lie within one structure, wider than the widest noise scale, that has more evidence
than each of them. Patches of its matches, each a match and its nearest, are fitted, and refitted narrowly. Parts are found among these
as structures are, those of most -ln NFA first, with radii that are smaller than the structure's by sqrt 2 or 2 at least. It gives way
to parts that have more -ln NFA together. As alpha is the density around a radius too, a curved surface and much noise are seldom
divided: next to a part of it there is more of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import chdtri, fdtri, gammaln

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.preferences import WIDEST_SCALE
from ruzhash_cv.structures.evidence import RADII, Candidates, Structures, count_votes, evidence, extract, radius_steps

Families = tuple[TwoViewFamily, ...]

#: Models are refitted with these radii in turn, in lengths; and as often once they are structures.
CLOSING_RADII = (9.0, 3.0, 1.0)
N_FITS = len(CLOSING_RADII)
#: Degrees of freedom that the law of residuals may have: heavy tails, lighter ones, and hardly any, as Gaussian noise.
DEGREES = 2.0, 8.0, 1000.0
#: Noise that is less, in lengths or tolerances, is the rounding of exact matches. They may be of one place, and no fit by themselves.
EXACT = 1e-6
#: Neighbours looked at. Matches lie among others if these are so often among their neighbours as this share of what chance would give.
N_NEIGHBOURS, MIXED = 3, 0.55
#: A structure smaller than this share of the stronger ones need not compete with them for keypoints.
SMALL = 0.25
#: Patches: how many, and the matches in each.
N_PATCHES, PATCH_SIZE = 32, 20


def refit(family: TwoViewFamily, data: Array, votes: Array, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to what lies within `radii` (m,) of models, by Tukey's biweight; a failed one stays."""
    squared = np.ascontiguousarray(family.squared_residuals(data, models))
    weights = np.empty_like(squared)
    _biweight_kernel(squared, votes, radii, weights)
    return _usable(family, family.fit(data, weights, models), weights.sum(axis=1), models)


def _usable(family: TwoViewFamily, fitted: Array, support: Array, models: Array) -> Array:
    """Return what was `fitted` (m, 9), and models where this failed or had too little `support` (m,)."""
    usable = np.isfinite(fitted).all(axis=1) & (support > family.sample_size + 1.0)
    return np.where(usable[:, None], fitted, models)


@jit
def _biweight_kernel(squared: Any, votes: Any, radii: Any, weights: Any) -> None:
    """Write votes times (1 - (r / radius)^2)^2; what has no residual has no weight, nor has anything by a radius of 0."""
    for item in range(len(squared)):
        limit = radii[item] * radii[item]
        for row in range(squared.shape[1]):
            ratio = squared[item, row] / limit
            share = 1.0 - ratio if ratio < 1.0 else 0.0
            weights[item, row] = votes[row] * (share * share)


def refine(
    families: Families,
    codes: NDArray[np.uint8],
    models: Array,
    data: Array,
    votes: Array,
    tolerances: Array,
    own: Mask | None = None,
) -> tuple[Array, Array]:
    """Return models (m, 9) fitted to what lies within `tolerances` (m,), by the likeliest law of residuals, and noise scales (m,).

    `own` (m, n) tells which correspondences each model is fitted to; by default to all. A structure fitted to what others hold as well
    could become one of these. The fits of a family that has `step` are its steps: near the end they are more precise, far from it they
    are not.
    """
    models, noise = models.copy(), np.zeros(len(models))
    for code in np.unique(codes):
        family, rows = families[code], np.flatnonzero(codes == code)
        fit, laws = getattr(family, "step", family.fit), _student_laws(family.codimension)
        for fits in range(N_FITS + 1):
            squared = np.ascontiguousarray(family.squared_residuals(data, models[rows]))
            squared[~(squared <= (tolerances[rows] ** 2)[:, None])] = np.inf  # NaN too
            if own is not None:
                squared[~own[rows]] = np.inf
            noise[rows] = noise_scales(squared, family.codimension)
            if fits < N_FITS:
                weights = np.empty_like(squared)
                _student_kernel(squared, votes, np.maximum(noise[rows], EXACT * tolerances[rows]), laws, weights)
                support = (squared < np.inf) @ votes
                models[rows] = _usable(family, fit(data, weights, models[rows]), support, models[rows])
    return models, noise


@jit
def _student_kernel(squared: Any, votes: Any, noise: Any, laws: Any, weights: Any) -> None:
    """Write votes times the weights of the likeliest law; what has no residual has no weight.

    By a law of n degrees of freedom and scale s a residual r in c dimensions has a density in proportion to
    (1 + r^2 / (n s^2))^-((n + c) / 2), and in a fit the weight 1 / (1 + r^2 / (n s^2)).
    """
    for item in range(len(squared)):
        largest, scale = -np.inf, noise[item] * noise[item]
        weights[item] = 0.0
        for law in range(len(laws)):
            exponent, width, height = laws[law]
            likelihood = 0.0
            for row in range(squared.shape[1]):
                if squared[item, row] < np.inf:
                    ratio = squared[item, row] / (width * scale)
                    likelihood += votes[row] * (height - exponent * np.log1p(ratio))
            if likelihood > largest:
                largest = likelihood
                for row in range(squared.shape[1]):
                    weights[item, row] = votes[row] / (1.0 + squared[item, row] / (width * scale))


@cache
def _student_laws(codimension: int) -> Array:
    """Return Student's laws, a row each: (n + c) / 2, n s^2, and the logarithm of the density at 0, but for a constant.

    The scale s is such that the median residual is that of Gaussian noise of scale 1.
    """
    n = np.array(DEGREES)
    exponents = (n + codimension) / 2.0
    widths = n * chdtri(codimension, 0.5) / (codimension * fdtri(codimension, n, 0.5))
    heights = gammaln(exponents) - gammaln(n / 2.0) - codimension / 2.0 * np.log(widths)
    return np.column_stack([exponents, widths, heights])


def noise_scales(squared: Array, codimension: int) -> Array:
    """Return noise scales (m,) by the upper medians of those squared residuals (m, n) that are finite, 0 where none is."""
    n_finite = (squared < np.inf).sum(axis=1).tolist()
    middle = [row[n // 2] if n > 0 else 0.0 for row, n in zip(np.sort(squared, axis=1), n_finite, strict=True)]
    return np.sqrt(np.array(middle, np.float64) / chdtri(codimension, 0.5))


def tell_repetitions(data: Array, distances: Array, keypoints: Rows, same: float, planes: Mask) -> tuple[Mask, Mask]:
    """Tell which structures are interleaved with stronger ones and compete with them for keypoints, and which others are mixed.

    `distances` (n, k) are residuals of correspondences `data` (n, 4) to the structures, strongest first, in units of their tolerances.
    `keypoints` (2, n) number the keypoint of each image that each ends at. Neighbours as near as `same` are the same keypoint and do
    not count. `planes` (k,) are those that may be mixed.

    Returns which structures are repetitions (k,), and which are mixed (k, k): of the two the smaller lies among the larger.
    """
    within, stronger = (distances <= 1.0).T, np.tri(len(planes), k=-1)
    own, sizes, near = _places(data, within)
    asked = _are_enough((near * stronger).sum(axis=2), sizes, stronger @ sizes)
    repeated, held = np.zeros(len(planes), bool), np.zeros(len(data), bool)
    for structure in range(len(planes)) if asked.any() else ():
        left = within[structure] & ~held
        if asked[structure] or repeated.any():
            small = bool(left.sum() < SMALL * held.sum())
            repeated[structure] = repeated_beside(data, left, held, keypoints, same, small=small).any()
        held |= left & ~repeated[structure]
    if repeated.any():
        own, sizes, near = _places(data, within & ~repeated[:, None])
    pairs = _are_enough(near, sizes[:, None], sizes) & (sizes[:, None] <= sizes) & np.outer(planes, planes)
    mixed = np.zeros_like(pairs)
    for smaller, larger in np.argwhere(pairs & ~np.eye(len(planes), dtype=bool)).tolist():
        mixed[smaller, larger] = lie_among(data, own[smaller], own[larger], same)
    return repeated, np.asarray(mixed | mixed.T)


def _places(data: Array, within: Mask) -> tuple[Mask, Array, Array]:
    """Return matches (k, n) by the first structure that holds each, how many (k,), and how many (2, k, k) are within others' bounds."""
    own = within & (np.cumsum(within, axis=0) == 1)
    places = np.ascontiguousarray(data.T)[:, None]
    low = np.where(own, places, np.inf).min(axis=2, keepdims=True)
    high = np.where(own, places, -np.inf).max(axis=2, keepdims=True)
    inside = ((low <= places) & (places <= high)).reshape(2, 2, *own.shape).all(axis=1)
    return own, own.sum(axis=1), inside @ own.T.astype(np.float64)


def _are_enough(n_near: Array, n_own: Array, n_others: Array) -> Mask:
    """Tell whether in an image so many others are within the bounds of several matches that neighbours are to be asked."""
    least = MIXED**2 * n_others / np.maximum(n_own + n_others, 1)
    return np.asarray(((n_own > 1) & (n_near > least * (n_near + n_own))).any(axis=0))


def repeated_beside(data: Array, own: Mask, others: Mask, keypoints: Rows, same: float, *, small: bool = False) -> Mask:
    """Return matches `own` (n,) if they lie among `others` in an image and compete with them, or are `small`; else none."""
    shared = (np.bincount(numbers[others], minlength=numbers.max() + 1)[numbers[own]].any() for numbers in keypoints)
    competes = small or any(shared)
    return own & (competes and lie_among(data, own, others, same))


def lie_among(data: Array, own: Mask, others: Mask, same: float) -> bool:
    """Tell whether in one of the images `others` are among the neighbours of matches `own` (n,) nearly as often as by chance.

    Of one match, or none, nothing is told.
    """
    around = own | others
    least = MIXED * others.sum() / max(around.sum(), 1)
    images = (data[:, :2], data[:, 2:]) if own.sum() > 1 else ()
    return any(1.0 - own_share(points, own, around, same) > least for points in images)


def own_share(points: Array, own: Mask, around: Mask, same: float) -> float:
    """Return the share of a structure's `own` matches among the nearest neighbours of these, of the matches `around`."""
    among = np.flatnonzero(around)
    # More neighbours than are needed: some are the same keypoint.
    wanted = min(4 * N_NEIGHBOURS, len(among))
    apart, which = cKDTree(points[among]).query(points[own], wanted)
    apart, which = (np.asarray(part).reshape(-1, wanted) for part in (apart, which))
    others = apart > same
    others &= np.cumsum(others, axis=1) <= N_NEIGHBOURS
    return float(own[among[which[others]]].mean()) if others.any() else 1.0


def divided(structures: Structures, families: Families, matches: MatchSet, decoys: Array, n_tried: int) -> Structures:
    """Return structures with wide planes replaced by the narrower ones that explain their matches better; strongest first."""
    wide = (RADII[structures.steps] > WIDEST_SCALE) & ~structures.still
    if not wide.any():
        return structures
    data, votes, length = matches.data, matches.votes, matches.length
    squared = squared_residuals(families, structures.codes, structures.models, data)
    distances = np.sqrt(squared) / (structures.tolerances * length)[:, None]
    nearest = np.where(distances.min(axis=0) <= 1.0, distances.argmin(axis=0), -1)
    parts = []
    for item, code in enumerate(structures.codes):
        whole, family, rows = structures.take(np.array([item])), families[code], np.flatnonzero(nearest == item)
        if wide[item] and family.locally_affine and len(rows) >= 2 * PATCH_SIZE:
            chance = Candidates.of(family, int(code), whole.models, data[:0], decoys, length).chance
            models = np.vstack([whole.models, _patches(family, data[rows], votes[rows], length)])
            steps = radius_steps(family.squared_residuals(data[rows], models), length)
            found = Candidates(
                models, np.full(len(models), code, np.uint8), steps, np.repeat(chance, len(models), axis=0)
            )
            whole = _better(whole, found, families, votes[rows], float(votes.sum()), n_tried)
        parts.append(whole)
    structures = Structures.join(parts)
    return structures.take(np.argsort(-structures.evidences, kind="stable"))


def _patches(family: TwoViewFamily, data: Array, votes: Array, length: float) -> Array:
    """Return models (m, 9) of patches, fitted to them and then narrowly to all."""
    seeds = np.linspace(0, len(data) - 1, min(N_PATCHES, len(data))).astype(np.int64)
    near = np.asarray(cKDTree(data).query(data[seeds], PATCH_SIZE)[1])
    weights = np.zeros((len(seeds), len(data)))
    np.put_along_axis(weights, near, votes[near], axis=1)
    models = family.fit(data, weights)
    models = models[np.isfinite(models).all(axis=1)]
    return refit(family, data, votes, models, np.full(len(models), length))


def _better(
    whole: Structures, found: Candidates, families: Families, votes: Array, total: float, n_tried: int
) -> Structures:
    """Return a structure, the first candidate, or the narrower ones that have more evidence together."""
    step = int(whole.steps[0])
    gains = evidence(found, count_votes(found.steps, votes), total, families, n_tried)
    best, most = whole, float(gains[0, step])
    patches = found.take(np.flatnonzero(gains[:, :step].max(axis=1) > 0.0))
    for widest in (step - 1, step - 2):
        parts, _ = extract(patches, families, votes, n_tried, total, widest)
        if len(parts) > 1 and parts.evidences.sum() > most:
            best, most = parts, float(parts.evidences.sum())
    return best
