"""Camera pose of a rigid motion: from its matrix, its matches and the rays of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv._arrays import RAYS1, RAYS2, Array, Mask, Record, Rows
from ruzhash_cv.cameras import Camera, Sight
from ruzhash_cv.estimate import Estimate
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.epipolar import EssentialMatrices, as_essential
from ruzhash_cv.models.linear import directions
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.sampling import draw_samples, drawn_alike

#: Samples of five matches, where the motion's own matrix is not all that may be.
N_FIVES = 48
#: Essential matrices that are refined, and steps of each.
_N_REFINED, _N_STEPS = 4, 6
_SEED = 0
#: A guard on the time: of more matches a random part is searched.
_MOST_SEARCHED = 16_384
_FAMILY = EssentialMatrices()


@dataclass(frozen=True, eq=False)
class CameraPose(Record):
    """The pose of the second camera, x2 ~ R X + t for rays and points in the first camera's frame; unpacks as rotation, translation.

    Attributes
    ----------
    rotation : ndarray of float64, shape (3, 3)
    translation : ndarray of float64, shape (3,)
        Of unit norm: two views do not tell their distance. Where the baseline is not told it means nothing.
    has_baseline : bool
        Whether the matches tell that the camera moved: False for one that only turned.
    inliers : ndarray of bool, shape (n,)
        Which of the matches given agree with the pose, in front of both cameras; where the baseline is not told, with the rotation.
    points3d : ndarray of float64, shape (n, 3)
        Points of the inliers, in the first camera's frame and in baselines; NaN for all else, and where the baseline is not told.
    median_angle : float
        Degrees between the two rays of an inlier, the median: small ones tell depths badly. NaN without inliers.
    """

    rotation: Array
    translation: Array
    has_baseline: bool
    inliers: Mask
    points3d: Array
    median_angle: float

    def __iter__(self) -> Iterator[Array]:
        return iter((self.rotation, self.translation))


@dataclass(frozen=True)
class Views:
    """Rows with rays (n, 10) of all matches, their weights (n,), and the rows of the motion's `own` matches; lengths of the frame."""

    data: Array
    weights: Array
    own: Rows
    noise: float
    limit: float

    def part(self) -> Views:
        """Return at most about as many rows as motions are searched in, drawn at random, of the motion's own and of others alike."""
        labels = np.full(len(self.data), -1)
        labels[self.own] = 0
        rows = drawn_alike(labels, _MOST_SEARCHED, np.random.default_rng(_SEED))
        if len(rows) == len(self.data):
            return self
        own = np.flatnonzero(labels[rows] == 0)
        return replace(self, data=self.data[rows], weights=self.weights[rows], own=own)


@dataclass(frozen=True)
class Placed:
    """A pose, which of the rows (n,) agree with it, their depths (n, 2) along both rays, and what it costs."""

    rotation: Array
    translation: Array
    agree: Mask
    depths: Array
    cost: float


def pose_of_motion(
    estimate: Estimate, motion: int, own: Mask, distinct: Rows, cameras: tuple[Camera, Camera] | None
) -> CameraPose:
    """Return the pose of a motion of the scene, from its matrix, its surfaces and its matches, each by its probability.

    `own` (N,) tells which of the matches given are the motion's, `distinct` (N,) which distinct match each is.
    """
    matches, parameters, scene, n = estimate.matches, estimate.parameters, estimate.scene, len(distinct)
    data, into = (matches.data, matches.into) if cameras is None else _with_rays(matches, cameras)
    noise = max(float(scene.noise[motion]), 1e-3 * matches.frame.scale)
    members = scene.owners == motion
    weights = matches.weights * np.minimum(estimate.probabilities[:, members].sum(axis=1), 1.0)
    every = Views(data, weights, np.unique(distinct[own]), noise, parameters.preference_cut * noise)
    views = every.part()
    planes = np.flatnonzero(members & (np.arange(len(scene)) != motion))[:1]
    essentials = np.vstack([_essentials_of(estimate, item, into) for item in (motion, *planes.tolist())])
    # An essential matrix was chosen among such samples.
    is_essential = estimate.families[scene.family_ids[motion]].name == "essential"
    sampled = np.zeros((0, 9)) if is_essential else from_samples_of_five(views, parameters)
    placed = best_pose(essentials, sampled, views)
    if views is not every:
        placed = best_pose(_essential(placed), np.zeros((0, 9)), every)
    rotation = best_rotation(placed.rotation, every)
    has_baseline = tells_baseline(placed, rotation, every)
    if not has_baseline:  # in front of or behind such cameras is chance
        placed = replace(placed, rotation=rotation, agree=squared_turns(data, rotation) <= every.limit**2)
    inliers = own & placed.agree[distinct]
    points3d, rays = np.full((n, 3), np.nan), (directions(data[:, RAYS1]), directions(data[:, RAYS2]))
    agreeing = distinct[inliers]
    if has_baseline:
        points3d[inliers] = midpoints(placed, *rays)[agreeing]
    angle = float(np.median(_angles(placed, *rays)[agreeing])) if len(agreeing) > 0 else float("nan")
    return CameraPose(placed.rotation, placed.translation, has_baseline, inliers, points3d, angle)


def _with_rays(matches: MatchSet, cameras: tuple[Camera, Camera]) -> tuple[Array, tuple[Array, Array]]:
    """Return rows with rays of cameras that the search did not know, and what brings pixels without distortion to rays."""
    frame, pixels = matches.frame, matches.coordinates / matches.frame.scale
    sight = Sight.of(pixels[:, :2] + frame.centre1, pixels[:, 2:] + frame.centre2, cameras)
    rays = np.hstack([sight.rays1, sight.rays2]) * frame.scale
    return np.hstack([matches.coordinates, np.nan_to_num(rays, nan=1.0)]), (sight.into1, sight.into2)


def _essentials_of(estimate: Estimate, item: int, into: tuple[Array, Array]) -> Array:
    """Return the essential matrices (m, 9) that the matrix of a model of the scene makes."""
    matrix = estimate.families.to_pixels(estimate.scene.take(np.array([item])), estimate.matches.into)[0]
    kind = estimate.families[estimate.scene.family_ids[item]].name
    to_rays1, to_rays2 = (np.linalg.inv(each) for each in into)
    if kind == "homography":
        plane = np.linalg.inv(to_rays2) @ matrix @ to_rays1
        return _FAMILY.from_plane(plane.ravel(), np.zeros((0, 10)), 0, np.random.default_rng(_SEED))
    if kind == "essential":
        return matrix.reshape(1, 9)
    return as_essential((to_rays2.T @ matrix @ to_rays1).reshape(1, 9))


def _angles(placed: Placed, first: Array, second: Array) -> Array:
    """Return degrees between the two rays (n, 3) of each match."""
    turned = first @ placed.rotation.T
    return np.asarray(
        np.degrees(np.arctan2(np.linalg.norm(np.cross(turned, second), axis=1), (turned * second).sum(axis=1)))
    )


def from_samples_of_five(views: Views, parameters: Parameters) -> Array:
    """Return essential matrices (m, 9) of samples of five of all matches: a plane may have hidden the others."""
    rng = np.random.default_rng(_SEED)
    samples, _ = draw_samples(views.data, views.weights, N_FIVES, _FAMILY, views.noise, parameters, rng, (0,))
    return _FAMILY.solve(views.data[samples])[0]


def best_pose(essentials: Array, sampled: Array, views: Views) -> Placed:
    """Return the pose of least truncated squares (MSAC) among all matches, by their weights, of essential matrices (m, 9).

    These, and those of least cost of `sampled` ones, are refined to the motion's own matches first, with Cauchy weights of the noise
    scale.
    """
    usable = sampled[np.isfinite(sampled).all(axis=1)]
    costs = np.minimum(_FAMILY.squared_residuals(views.data, usable), views.limit**2) @ views.weights
    given = np.vstack([essentials, usable[np.argsort(costs, kind="stable")[:_N_REFINED]]])
    found, own = as_essential(given[np.isfinite(given).all(axis=1)]), views.data[views.own]
    for _ in range(_N_STEPS):
        ratios = _FAMILY.squared_residuals(own, found) / views.noise**2
        found = _FAMILY.step(own, 1.0 / (1.0 + ratios), found)
    # What agrees behind a camera costs more still: once a pose is cheaper than all that is left could be, it is the best.
    least = np.minimum(_FAMILY.squared_residuals(views.data, found), views.limit**2) @ views.weights
    order = np.argsort(least, kind="stable").tolist()
    best = _placed(found[order[0]], views)
    for item in order[1:]:
        if least[item] >= best.cost:
            break
        other = _placed(found[item], views)
        best = other if other.cost < best.cost else best
    return best


def _placed(essential: Array, views: Views) -> Placed:
    """Return the pose of an essential matrix that has most of the motion's matches in front of both cameras.

    Of a camera that did not move all points are infinitely far, on either side by rounding alone. Then it is the one of the two
    rotations, half a turn about the baseline apart, that leaves the cameras looking at the same points.
    """
    first, second = directions(views.data[:, RAYS1]), directions(views.data[:, RAYS2])
    left, _, right = np.linalg.svd(essential.reshape(3, 3))
    left, right = left * np.sign(np.linalg.det(left)), right * np.sign(np.linalg.det(right))
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    rotations, translation = (left @ quarter @ right, left @ quarter.T @ right), left[:, 2]
    depths = [
        depths_along(rotation, sign * translation, first, second) for rotation in rotations for sign in (1.0, -1.0)
    ]
    in_front = [np.asarray((each > 0.0).all(axis=1)) for each in depths]
    counts = [np.count_nonzero(each[views.own]) for each in in_front]
    best = int(np.argmax(counts))
    if 2 * counts[best] < len(views.own):
        cosines = [(first[views.own] @ rotation.T * second[views.own]).sum() for rotation in rotations]
        turn = 2 * int(np.argmax(cosines))
        best = turn + int(counts[turn + 1] > counts[turn])
    squared = _FAMILY.squared_residuals(views.data, essential[None])[0]
    agree = squared <= views.limit**2
    cost = float(np.where(agree & in_front[best], squared, views.limit**2) @ views.weights)
    sign = 1.0 if best % 2 == 0 else -1.0
    return Placed(rotations[best // 2], sign * translation, agree & in_front[best], depths[best], cost)


def _essential(placed: Placed) -> Array:
    """Return the essential matrix (1, 9) of a pose."""
    return np.asarray(np.cross(placed.translation, placed.rotation.T).T.reshape(1, 9))


def depths_along(rotation: Array, translation: Array, first: Array, second: Array) -> Array:
    """Return how far along both unit rays (n, 3) their closest points are, (n, 2), in baselines."""
    turned = first @ rotation.T
    cosines, along1, along2 = (turned * second).sum(axis=1), turned @ translation, second @ translation
    # 1 - cos^2 of nearly parallel rays would be rounding.
    sines = np.square(np.cross(turned, second)).sum(axis=1) + 1e-300
    return np.asarray(np.column_stack([along2 * cosines - along1, along2 - along1 * cosines]) / sines[:, None])


def midpoints(placed: Placed, first: Array, second: Array) -> Array:
    """Return the points (n, 3) midway between unit rays where these are closest, in the first camera's frame."""
    one = first * placed.depths[:, :1]
    other = (second * placed.depths[:, 1:] - placed.translation) @ placed.rotation
    return np.asarray(0.5 * (one + other))


def tells_baseline(placed: Placed, rotation: Array, views: Views) -> bool:
    """Tell whether a pose explains the motion's own matches better than a rotation alone does.

    By Torr's criterion (GRIC, "Bayesian model estimation and selection for epipolar geometry and generic manifold fitting", IJCV 2002):
    squared residuals in noise scales, cut at 2 (4 - d), plus 2 d n + k ln(4 n), for models of dimension d with k numbers.
    """
    own = views.data[views.own]
    moved, still = _FAMILY.squared_residuals(own, _essential(placed))[0], squared_turns(own, rotation)
    n, variance = len(own), views.noise**2
    turning = np.minimum(still / variance, 4.0).sum() + 4.0 * n + 3.0 * np.log(4.0 * n)
    moving = np.minimum(moved / variance, 2.0).sum() + 6.0 * n + 5.0 * np.log(4.0 * n)
    return bool(moving < turning)


def best_rotation(rotation: Array, views: Views) -> Array:
    """Return the rotation (3, 3) that brings first rays nearest to second ones, from a given one, with Cauchy weights.

    Of weighted rays it is the polar factor of the sum of x2 x1' (Umeyama, PAMI 1991).
    """
    own = views.data[views.own]
    first, second = directions(own[:, RAYS1]), directions(own[:, RAYS2])
    for _ in range(_N_STEPS):
        weights = 1.0 / (1.0 + squared_turns(own, rotation) / views.noise**2)
        left, _, right = np.linalg.svd((second * weights[:, None]).T @ first)
        rotation = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
    return rotation


def squared_turns(data: Array, rotation: Array) -> Array:
    """Return squared Sampson distances (n,) of rows to a rotation; infinite where the rays point apart.

    Of the angle between a first ray turned and the second one, each ray has its share, which is less of a camera that zoomed in.
    """
    turned, second = data[:, RAYS1] @ rotation.T, data[:, RAYS2]
    across = np.square(np.cross(turned, second)).sum(axis=1)
    squared = across / (np.square(turned).sum(axis=1) + np.square(second).sum(axis=1))
    return np.where((turned * second).sum(axis=1) > 0.0, squared, np.inf)
