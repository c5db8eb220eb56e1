"""Camera pose of a rigid motion: from its matrix, its matches and the rays of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv.core.families.epipolar import PARALLAX_SIZE, EssentialMatrices, as_essential, essentials_of_planes
from ruzhash_cv.core.families.linear import cross_matrix, crossed, homogeneous
from ruzhash_cv.core.families.poses import placed
from ruzhash_cv.core.method.estimate import Estimate
from ruzhash_cv.core.method.fits import log_likelihoods, refine, refined_samples
from ruzhash_cv.core.method.matches import MatchSet, floored
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import drawn_alike
from ruzhash_cv.core.method.scene import memberships
from ruzhash_cv.foundation.arrays import Array, Mask, Record, Rows
from ruzhash_cv.input.cameras import Camera, sight_of
from ruzhash_cv.results.reasons import sign_of_other_camera_matrices, warn
from ruzhash_cv.results.uncertainty import deviation_of_turn, deviations

#: Steps of the fit of a rotation.
_N_STEPS = 6
#: Reach of a likelihood, in noise scales of the motion, and the least one, in units. Precise matches decide between poses.
#: For as few matches as the third it is twice as wide: a motion fits few matches too well to show their noise.
_REACH, _LEAST_REACH, _FEW = 2.0, 0.1, 30.0
#: Distance, in reaches as narrow as this, to where a match would be infinitely far, within which noise may put it behind a camera.
_FAR = 2.0
_SEED = 0
#: A match is as probable as this at least if it scores as few decoys do: of a plane's two poses the few matches off it decide.
_LEAST_PROBABILITY = 0.5
#: A guard on the time: of more matches a random part is searched.
_MOST_SEARCHED = 4_096
_FAMILY = EssentialMatrices()


@dataclass(frozen=True, eq=False)
class CameraPose(Record):
    """The pose of the second camera: X2 = R X1 + t for points in the two cameras' frames; unpacks as rotation, translation.

    Attributes
    ----------
    rotation : ndarray of float64, shape (3, 3)
    translation : ndarray of float64, shape (3,)
        Of unit norm: two views do not show the scale. Meaningless without a baseline.
    has_baseline : bool
        Whether the matches show that the camera moved. False if it only rotated.
    inliers : ndarray of bool, shape (n,)
        Matches that agree with the pose and lie in front of both cameras. Without a baseline, matches that agree with the rotation.
    points3d : ndarray of float64, shape (n, 3)
        Points of the inliers, in the first camera's frame and in units of the baseline. NaN for other matches, or without a baseline.
    median_angle : float
        Median angle in degrees between the two rays of an inlier. If it is small, depths are inaccurate. NaN without inliers.
    camera : Camera or None
        The camera whose focal length was estimated with the pose; None if cameras were given.
    rotation_deviation, direction_deviation : float
        Standard deviations of the rotation and of the direction of the translation, degrees. Infinite if the inliers do not show them;
        `direction_deviation` is infinite without a baseline.
    focal_spread : float
        Standard deviation of the logarithm of the estimated focal length: at .1 it is uncertain by a tenth. 0 if cameras were given.
    """

    rotation: Array
    translation: Array
    has_baseline: bool
    inliers: Mask
    points3d: Array
    median_angle: float
    rotation_deviation: float = float("inf")
    direction_deviation: float = float("inf")
    camera: Camera | None = None
    focal_spread: float = 0.0

    def __repr__(self) -> str:
        angle = np.degrees(np.arccos(np.clip(0.5 * (np.trace(self.rotation) - 1.0), -1.0, 1.0)))
        moved = "without a baseline"
        if self.has_baseline:
            towards = ", ".join(f"{part:.3f}" for part in self.translation)
            moved = f"moved along ({towards}) +- {self.direction_deviation:.2g} degrees"
        turned = f"turned by {angle:.3g} +- {self.rotation_deviation:.2g} degrees"
        return f"<CameraPose: {np.count_nonzero(self.inliers)} inliers, {turned}, {moved}>"

    def __iter__(self) -> Iterator[Array]:
        return iter((self.rotation, self.translation))

    def __getitem__(self, index: int) -> Array:
        return (self.rotation, self.translation)[index]


@dataclass(frozen=True)
class Placed:
    """A pose, depths (2, n) of rows along both rays, and its log-likelihood."""

    rotation: Array
    translation: Array
    depths: Array
    likelihood: float

    @property
    def in_front(self) -> Mask:
        """Which of the rows (n,) lie in front of both cameras."""
        return np.asarray((self.depths > 0.0).all(axis=0))

    @property
    def essential(self) -> Array:
        """The essential matrix (1, 9)."""
        return np.asarray((cross_matrix(self.translation) @ self.rotation).reshape(1, 9))


def pose_of_motion(
    estimate: Estimate, motion: int, own: Mask, distinct: Rows, cameras: tuple[Camera, Camera] | None
) -> CameraPose:
    """Return the pose of a motion of the scene: the likeliest of its matrices, of both poses of its planes, and of samples of five.

    A match counts by its probability of belonging to the motion, kept or not. `own` (N,) are the motion's among the matches kept,
    `distinct` (N,) the distinct match of each.
    """
    matches, n = estimate.matches, len(distinct)
    data, into = (matches.data, matches.into) if cameras is None else with_rays(matches, cameras)
    rows = np.flatnonzero(np.append(estimate.scene.owners, -1)[memberships(estimate.probabilities)] == motion)
    pose, squared, limit = likeliest_pose(estimate, motion, rows, data, into)
    if cameras is not None:
        warn(sign_of_other_camera_matrices(estimate, motion, squared))
    noise, weights = limit / estimate.parameters.preference_cut, matches.weights[rows]
    rotation = best_rotation(pose.rotation, data[rows], noise)
    has_baseline = shows_baseline(pose, rotation, data[rows], weights, noise, estimate.parameters)
    agree = (squared <= limit**2) & pose.in_front
    if not has_baseline:  # in front of or behind such cameras is chance
        pose, agree = replace(pose, rotation=rotation), squared_turns(data, rotation) <= limit**2
    inliers = own & agree[distinct]
    points3d, rays = np.full((n, 3), np.nan), unit_rays(data)
    agreeing = distinct[inliers]
    if has_baseline:
        points3d[inliers] = midpoints(pose, *rays).T[agreeing]
    angle = float(np.median(_angles(pose, *rays)[agreeing])) if len(agreeing) > 0 else float("nan")
    used = np.unique(agreeing)
    shown = (
        data[used],
        weights_of(estimate, np.flatnonzero(estimate.scene.owners == motion))[used],
        noise,
        matches.unit / estimate.parameters.unit,
    )
    if has_baseline:
        sure = deviations(pose.rotation, pose.translation, *shown)
    else:
        sure = deviation_of_turn(pose.rotation, *shown), float("inf")
    return CameraPose(pose.rotation, pose.translation, has_baseline, inliers, points3d, angle, *sure)


def likeliest_pose(
    estimate: Estimate, motion: int, rows: Rows, data: Array, into: tuple[Array, Array]
) -> tuple[Placed, Array, float]:
    """Return the likeliest pose of a motion of the scene from its matches, `rows`, squared residuals (n,) to it, and their limit."""
    matches, scene, parameters = estimate.matches, estimate.scene, estimate.parameters
    members = np.flatnonzero(scene.owners == motion)
    given = essentials_of(estimate, members, into)
    if matches.calibrated:
        given = np.vstack([given, estimate.pool])
    limit = parameters.preference_cut * max(float(scene.noise[motion]), 1e-3 * matches.frame.scale)
    for models in (none_stronger(estimate, motion), members):
        weighted = replace(matches, data=data, weights=weights_of(estimate, models))
        # Where a third of a motion's matches is false, few samples of five are of true ones alone.
        pose = best_pose(given, weighted, float(scene.noise[motion]), estimate, models, 2 * parameters.motion_samples)
        squared = _FAMILY.squared_residuals(data, pose.essential)[0]
        if 2 * np.count_nonzero(squared[rows] <= limit**2) > len(rows):
            break
    return pose, squared, limit


def none_stronger(estimate: Estimate, motion: int) -> Rows:
    """Return the models of a motion and those of weaker ones that moved.

    A weaker motion may be a part of this one, which a mover bent, and of stronger ones the matches agree with many poses.
    """
    scene, sums = estimate.scene, estimate.matches.weights @ estimate.probabilities
    strengths = np.bincount(scene.owners, sums, minlength=len(scene))[scene.owners]
    return np.flatnonzero((scene.owners == motion) | ((strengths <= strengths[motion]) & ~scene.stationary))


def weights_of(estimate: Estimate, models: Rows) -> Array:
    """Return the weights (n,) of matches: their probabilities of belonging to some models, not to the others of the scene."""
    others = np.setdiff1d(np.arange(len(estimate.scene)), models)
    of_models, of_others = (estimate.probabilities[:, rows].sum(axis=1) for rows in (models, others))
    least = np.where(estimate.ranking.significant & (of_others <= 0.5), _LEAST_PROBABILITY, 0.0)
    return np.asarray(estimate.matches.weights * np.clip(of_models, least, 1.0))


def with_rays(matches: MatchSet, cameras: tuple[Camera, Camera]) -> tuple[Array, tuple[Array, Array]]:
    """Return rows with rays of cameras that the search did not know, and what brings pixels without distortion to rays."""
    sight = sight_of(*matches.frame.leave(matches.coordinates), cameras)
    rays = np.hstack([sight.rays1, sight.rays2]) * np.repeat(matches.frame.scales, 3)
    return np.hstack([matches.coordinates, np.nan_to_num(rays, nan=1.0)]), (sight.into1, sight.into2)


def essentials_of(estimate: Estimate, members: Rows, into: tuple[Array, Array]) -> Array:
    """Return the essential matrices (m, 9) that the matrices of some models of the scene make."""
    scene, families = estimate.scene.take(members), estimate.families
    planes, of_rays = families.is_plane(scene), np.array([family.name == "essential" for family in families])
    matrices, (from_rays1, from_rays2) = families.to_pixels(scene, estimate.matches.into), map(np.linalg.inv, into)
    bent = ~(planes | of_rays[scene.family_ids])
    return np.vstack(
        [
            essentials_of_planes(into[1] @ matrices[planes] @ from_rays1),
            as_essential((from_rays2.T @ matrices[bent] @ from_rays1).reshape(-1, 9)),
            matrices[~(planes | bent)].reshape(-1, 9),
        ]
    )


def unit_rays(data: Array) -> tuple[Array, Array]:
    """Return the rays (3, n) of rows (n, 10) in both images, of length 1."""
    rays = homogeneous(data)
    first, second = (side / np.sqrt(np.square(side).sum(axis=0)) for side in (rays[:3], rays[3:]))
    return first, second


def _angles(placed: Placed, first: Array, second: Array) -> Array:
    """Return degrees between the two rays (3, n) of each match."""
    turned = placed.rotation @ first
    sines = np.sqrt(np.square(crossed(turned, second)).sum(axis=0))
    return np.asarray(np.degrees(np.arctan2(sines, (turned * second).sum(axis=0))))


def best_pose(
    given: Array, matches: MatchSet, noise: float, estimate: Estimate, models: Rows, n_samples: int
) -> Placed:
    """Return the likeliest pose, for matches behind a camera are mismatches, of essential matrices (m, 9) and of samples of five.

    `n_samples` are drawn from `models` of the scene, as often from a small one as from a large one. `noise` is the scale of the motion.
    """
    shares, rng = estimate.probabilities[:, models], np.random.default_rng(_SEED)
    labels = np.where(shares.any(axis=1), shares.argmax(axis=1), -1)
    searched = matches
    if len(matches) > _MOST_SEARCHED:
        rows = drawn_alike(np.where(shares.sum(axis=1) > 0.5, 0, -1), _MOST_SEARCHED, rng)
        labels, searched = labels[rows], replace(matches, data=matches.data[rows], weights=matches.weights[rows])
    parameters, noise = replace(estimate.parameters, last_samples=n_samples), max(noise, matches.rounding)
    wider = 1.0 + (_FEW / max(float(matches.weights.sum()), 1.0)) ** 2
    narrow = reach = min(matches.unit, max(_REACH * wider * noise, _LEAST_REACH * matches.unit))
    if matches.rounding > 0.0:  # no match is precise: all inliers decide
        reach = min(matches.unit, parameters.preference_cut / _REACH * narrow)
    usable = as_essential(given[np.isfinite(given).all(axis=1)])
    essentials, _, squared = refined_samples(usable, labels, searched, _FAMILY, parameters, rng, reach)
    if searched is not matches:
        limits = np.full(len(essentials), matches.unit)
        essentials, _ = refine(_FAMILY, essentials, matches, limits, parameters)
        squared = _FAMILY.squared_residuals(matches.data, essentials)
    rotations, _, seen = placed(essentials, matches.data, matches.weights, squared, reach)
    far = _FAR * narrow if is_far(squared, rotations, matches, reach) else 0.0
    if far > 0.0:
        seen = placed(essentials, matches.data, matches.weights, squared, reach, far)[2]
    likelihoods = log_likelihoods(floored(seen, matches), matches.weights, reach, 1)
    best = int(np.argmax(likelihoods))
    # The narrow reach that tells poses apart leaves out the tails of the noise, which the last fit needs.
    limit = np.full(1, max(reach, parameters.preference_cut * noise))
    essential, _ = refine(_FAMILY, essentials[[best]], matches, limit, parameters, np.isinf(seen[[best]]))
    squared = _FAMILY.squared_residuals(matches.data, essential)
    rotations, translations, _ = placed(essential, matches.data, matches.weights, squared, reach, far)
    return _with_depths(rotations[0], translations[0], float(likelihoods[best]), squared[0], matches, reach)


def is_far(squared: Array, rotations: Array, matches: MatchSet, reach: float) -> bool:
    """Return whether most matches are as good as infinitely far, so that noise decides whether they lie before or behind the cameras.

    The essential matrix that explains most within `reach`, by squared residuals (m, n), has a rotation (m, 3, 3) which explains more
    than half as many.
    """
    moving = (squared <= reach**2) @ matches.weights
    best = int(moving.argmax())
    turning = (squared_turns(matches.data, rotations[best]) <= reach**2) @ matches.weights
    return bool(2.0 * turning > moving[best])


def _with_depths(
    rotation: Array, translation: Array, likelihood: float, squared: Array, matches: MatchSet, reach: float
) -> Placed:
    """Return a pose with depths.

    Of a camera that did not move all points are infinitely far, on either side by rounding alone. Then it is the one of the two
    rotations, half a turn about the baseline apart, that leaves the cameras looking at the same points.
    """
    first, second = unit_rays(matches.data)
    depths, near = depths_along(rotation, translation, first, second), matches.weights * (squared <= matches.unit**2)
    seen = (depths > 0.0).all(axis=0) | (squared_turns(matches.data, rotation) <= reach**2)
    if 2.0 * (seen @ near) >= near.sum():
        return Placed(rotation, translation, depths, likelihood)
    other = (2.0 * np.outer(translation, translation) - np.eye(3)) @ rotation
    rotation = max(rotation, other, key=lambda turn: float(near @ (turn @ first * second).sum(axis=0)))
    depths = depths_along(rotation, translation, first, second)
    in_front = np.array([(sign * depths > 0.0).all(axis=0) for sign in (1.0, -1.0)])
    likelihoods = log_likelihoods(np.where(in_front, squared, np.inf), matches.weights, reach, 1)
    sign = -1.0 if likelihoods[1] > likelihoods[0] else 1.0
    return Placed(rotation, sign * translation, sign * depths, float(likelihoods.max()))


def depths_along(rotation: Array, translation: Array, first: Array, second: Array) -> Array:
    """Return how far along both unit rays (3, n) their closest points are, (2, n), in baselines."""
    turned = rotation @ first
    cosines, along1, along2 = (turned * second).sum(axis=0), translation @ turned, translation @ second
    # 1 - cos^2 of nearly parallel rays would be rounding.
    sines = np.square(crossed(turned, second)).sum(axis=0) + 1e-300
    return np.asarray(np.array([along2 * cosines - along1, along2 - along1 * cosines]) / sines)


def midpoints(placed: Placed, first: Array, second: Array) -> Array:
    """Return the points (3, n) midway between unit rays where these are closest, in the first camera's frame."""
    one = first * placed.depths[0]
    other = placed.rotation.T @ (second * placed.depths[1] - placed.translation[:, None])
    return np.asarray(0.5 * (one + other))


def shows_baseline(
    placed: Placed, rotation: Array, data: Array, weights: Array, noise: float, parameters: Parameters
) -> bool:
    """Return whether a pose explains a motion's rows (n, 10) better than a rotation alone does.

    By Torr's criterion (GRIC, "Bayesian model estimation and selection for epipolar geometry and generic manifold fitting", IJCV 2002):
    squared residuals in noise scales, cut at 2 (4 - d), plus 2 d n + k ln(4 n), for models of dimension d with k numbers. However many
    points are too far to show a baseline, a few near ones prove it: `evidence_of_parallax` beyond what a motion costs.
    """
    moved, still = _FAMILY.squared_residuals(data, placed.essential)[0], squared_turns(data, rotation)
    n, variance = max(len(data), 1), noise**2  # a motion may have no matches
    turning = np.minimum(still / variance, 4.0).sum() + 4.0 * n + 3.0 * np.log(4.0 * n)
    moving = np.minimum(moved / variance, 2.0).sum() + 6.0 * n + 5.0 * np.log(4.0 * n)
    if moving < turning:
        return True
    return evidence_of_parallax(moved, still, weights, noise, parameters) > parameters.motion_cost


def evidence_of_parallax(moved: Array, still: Array, weights: Array, noise: float, parameters: Parameters) -> float:
    """Return -ln NFA of a baseline: whether more of the matches far off a rotation lie near the epipolar lines than by chance.

    Of weighted matches (n,) `moved` are squared residuals to the pose, `still` to the rotation. Of matches at a distance d a share
    2 / pi asin(r / d) comes within r of a line by chance, as in `proofs`; two of them fix the direction of the baseline.
    """
    reach = parameters.preference_cut * noise
    off = np.isfinite(still) & (still > (2.0 * reach) ** 2)
    n, near = float(weights[off].sum()), float(weights[off & (moved <= reach**2)].sum())
    if near <= PARALLAX_SIZE:
        return 0.0
    share = float(2.0 / np.pi * np.arcsin(reach / np.sqrt(still[off])) @ weights[off]) / n
    n, near = n - PARALLAX_SIZE, near - PARALLAX_SIZE
    hit = near / n
    if hit <= share:
        return 0.0
    missed = (1.0 - hit) * np.log((1.0 - hit) / (1.0 - share)) if hit < 1.0 else 0.0
    # The samples of a pose, and the refined ones.
    n_tried = 4 * parameters.motion_samples
    return float(n * (hit * np.log(hit / share) + missed) - np.log(n * n_tried))


def best_rotation(rotation: Array, data: Array, noise: float) -> Array:
    """Return the rotation (3, 3) that brings first rays nearest to second ones, from a given one, with Cauchy weights.

    Of weighted rays it is the polar factor of the sum of x2 x1' (Umeyama, PAMI 1991).
    """
    first, second = unit_rays(data)
    for _ in range(_N_STEPS):
        weights = 1.0 / (1.0 + squared_turns(data, rotation) / noise**2)
        left, _, right = np.linalg.svd(second * weights @ first.T)
        rotation = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
    return rotation


def squared_turns(data: Array, rotation: Array) -> Array:
    """Return squared Sampson distances (n,) of rows to a rotation; infinite where the rays point apart.

    Of the angle between a first ray turned and the second one, each ray has its share, which is less of a camera that zoomed in.
    """
    rays = homogeneous(data)
    turned, second = rotation @ rays[:3], rays[3:]
    squared = np.square(crossed(turned, second)).sum(axis=0) / np.square(rays).sum(axis=0)
    return np.where((turned * second).sum(axis=0) > 0.0, squared, np.inf)
