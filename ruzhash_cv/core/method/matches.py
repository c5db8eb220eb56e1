"""The distinct matches of a pair near the unit square, their duplicate groups, and their weights.

If the cameras are known, rays of the two points follow in each row, see `models.linear`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.linear import has_rays, homogeneous
from ruzhash_cv.core.kernels.weigh import follow_leaders
from ruzhash_cv.foundation.arrays import COORDINATES, RAYS1, Array, Mask, Rows, cached
from ruzhash_cv.foundation.validation import largest_coordinate

T = TypeVar("T", bound=np.generic)

#: Matches by which coordinates are compared.
_SOME = 500
#: The noise of keypoints of this size, in least sizes of their image, is sqrt 2 of what it would be without their size.
_NOISY_SIZE = 3.3
#: The least size of an image is this percentile of its keypoints', as single ones may have any; and a guard against overflow.
_LEAST_SIZE, _LARGEST_SIZE = 5.0, 1e6
#: A line is as thin as this, in units.
_THIN = 0.1
#: Images are of unlike scale if the points of one are spread over more than so many times as many pixels.
_UNLIKE = 2.2
#: Standard deviation of a whole number about what was rounded to it; the share of matches on whole pixels from which keypoints were
#: rounded; and how near to a whole number a coordinate is that has been divided by the size of a pixel.
_ROUNDING, _ROUNDED_SHARE, _WHOLE = 12.0**-0.5, 0.1, 1e-6


@dataclass(frozen=True)
class Sight:
    """What known cameras add to points of two images: rays (n, 3) of each, as long as a radian is in pixels.

    The matrices `into1`, `into2` (3, 3) bring homogeneous pixels without distortion to rays. Those of 360 degree cameras are
    identities.
    """

    rays1: Array
    rays2: Array
    into1: Array
    into2: Array
    calibrated: bool


@dataclass(frozen=True)
class Frame:
    """A shift of each image and a scale that bring points near the unit square.

    A residual in the frame is `scale` times its length in the unit of the second points. The scales of the two images are `scale` times
    `factors`. Both factors are 1, which keeps residuals comparable, unless the units of the points or the sizes of the images are
    unlike. Then a residual is in pixels of the coarser image: the finer one is more exact.
    """

    centre1: Array
    centre2: Array
    scale: float
    factors: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def around(
        cls, points1: Array, points2: Array, pixels: tuple[float, float] = (1.0, 1.0), counts: tuple[int, int] = (1, 1)
    ) -> Frame:
        """Return the frame in which the points of both images have a median distance of about 1 from their centres.

        Medians, so that a few coordinates far from any image change nothing. `pixels` are the sizes of a pixel in the points' units,
        `counts` the numbers of keypoints: several copies of one object have more of them on a larger area, at the same scale.
        """
        if len(points1) == 0:
            return cls(np.zeros(2), np.zeros(2), 1.0)
        centre1, centre2 = _medians(points1), _medians(points2)
        away = np.abs(points1 - centre1), np.abs(points2 - centre2)
        spreads = [float(_medians(each).mean()) / pixel for each, pixel in zip(away, pixels, strict=True)]
        spread, coarser = max(spreads), min(spreads)
        if spread == 0.0:  # most points are one
            spread = max(float(each.mean()) / pixel for each, pixel in zip(away, pixels, strict=True))
        shares = [1.0, 1.0]
        wider = int(spreads[1] > spreads[0])
        if spread > _UNLIKE * np.sqrt(max(counts[wider] / counts[1 - wider], 1.0)) * coarser > 0.0:
            spread, shares = coarser, [coarser / each for each in spreads]
        # Beyond these, squares of the frame would overflow.
        scale = 1.0 / spread if 1e-100 < spread < 1e100 else 1.0
        first, second = (share * (pixels[1] / pixel) for share, pixel in zip(shares, pixels, strict=True))
        frame = cls(centre1, centre2, scale / pixels[1], (first, second))
        usable = all(0.0 < each < np.inf for each in (frame.scale, *frame.scales))
        return frame if usable else cls(centre1, centre2, 1.0)

    @property
    def scales(self) -> tuple[float, float]:
        """The scale of each image."""
        return self.scale * self.factors[0], self.scale * self.factors[1]

    def enter(self, points1: Array, points2: Array) -> Array:
        """Return correspondences in the frame, shape (n, 4)."""
        first, second = self.scales
        return np.hstack([(points1 - self.centre1) * first, (points2 - self.centre2) * second])

    def leave(self, coordinates: Array) -> tuple[Array, Array]:
        """Return the points (n, 2) of both images of coordinates (n, 4) in the frame."""
        first, second = self.scales
        return coordinates[:, :2] / first + self.centre1, coordinates[:, 2:] / second + self.centre2

    def transforms(self) -> tuple[Array, Array]:
        """Return the matrices (3, 3) that bring homogeneous pixels of the first and of the second image into the frame."""
        centres = self.centre1, self.centre2
        first, second = (
            np.array([[s, 0.0, -s * x], [0.0, s, -s * y], [0.0, 0.0, 1.0]])
            for s, (x, y) in zip(self.scales, centres, strict=True)
        )
        return first, second


def match_weights(groups: Rows, keypoints: Rows) -> Array:
    """Return the weights of correspondences: one for each group, shared by its members, and at most one for each keypoint.

    At most one match of a keypoint is right.
    """
    weights: Array = 1.0 / np.bincount(groups)[groups]
    totals = np.ones(len(groups))
    for numbers in keypoints:
        np.maximum(totals, np.bincount(numbers, weights)[numbers], out=totals)
    return weights / totals


@dataclass(frozen=True)
class MatchSet:
    """Distinct correspondences (x1, y1, x2, y2) in the frame, sorted; with rays where cameras are known.

    `unit` is the method's unit of length in the frame. Matches within it of each other, in both images, are duplicates.
    """

    data: Array
    groups: Rows  # the duplicate group of each
    keypoints: Rows  # (2, n): of each image, the number of the keypoint that each ends at
    weights: Array  # see `match_weights`
    noise_factors: Array  # see `noise_factors`
    frame: Frame
    unit: float
    finite: Mask  # (N,): which of the matches given are finite
    where: Rows  # the row of each of these
    #: The matrices that bring homogeneous pixels, without distortion, into what models are of.
    into: tuple[Array, Array] = (np.eye(3), np.eye(3))
    calibrated: bool = False  # whether both cameras are known
    rounding: float = 0.0  # noise of rounded coordinates, see `rounding_of`

    @classmethod
    def of(
        cls,
        points1: Array,
        points2: Array,
        unit: float,
        sight: Sight | None = None,
        pixels: tuple[float, float] = (1.0, 1.0),
        sizes: tuple[Array, Array] | None = None,
    ) -> MatchSet:
        """Return the distinct matches of points; `unit` is the method's unit of length in the unit of the second points.

        `pixels` are the sizes of a pixel in the points' units. Coordinates of at least `largest_coordinate` are none. `sizes` are those
        of the keypoints, if known.
        """
        rows = np.hstack([points1, points2] if sight is None else [points1, points2, sight.rays1, sight.rays2])
        # Coordinates beyond any image would overflow in squares; they are flagged as infinite ones are.
        largest = np.array([largest_coordinate(pixel) for pixel in pixels])
        limits = np.repeat(largest, 2) if sight is None else np.append(np.repeat(largest, 2), np.repeat(largest, 3))
        finite = np.logical_and.reduce((np.abs(rows) < limits).T)
        # Distinct and sorted before anything is computed: neither repetitions nor the order given change a bit.
        rows, where = _distinct(rows.take(np.flatnonzero(finite), axis=0))
        # The rows are sorted by the first points.
        x, y = rows.T[:2]
        new = np.append(False, (x[1:] != x[:-1]) | (y[1:] != y[:-1]))[: len(rows)]
        keypoints = np.array([np.cumsum(new), _distinct(rows[:, 2:4])[1]])
        n_first, n_second = (keypoints.max(axis=1, initial=0) + 1).tolist()
        frame = Frame.around(rows[:, :2], rows[:, 2:4], pixels, (n_first, n_second))
        data = frame.enter(rows[:, :2], rows[:, 2:4])
        # A shorter or longer one is nothing or everything, and squares and quotients must not overflow.
        unit = min(max(frame.scale * unit, 1e-12), 1e12)
        groups = duplicate_groups(data, unit)
        factors = np.ones(len(data))
        if sizes is not None:
            least = np.full((2, len(data)), np.inf)
            for side, of in enumerate(sizes):
                np.minimum.at(least[side], where, of[finite])
            factors = noise_factors(least)
        into, calibrated = frame.transforms(), False
        if sight is not None:
            data = np.hstack([data, rows[:, RAYS1.start :] * np.repeat(frame.scales, 3)])
            into, calibrated = (sight.into1, sight.into2), sight.calibrated
        weights = match_weights(groups, keypoints)
        rounding = frame.scale * pixels[1] * rounding_of(rows[:, COORDINATES] / np.repeat(pixels, 2))
        return cls(data, groups, keypoints, weights, factors, frame, unit, finite, where, into, calibrated, rounding)

    def __len__(self) -> int:
        return len(self.data)

    @cached
    def shares(self) -> Array:
        """The share (n,) that each has in its duplicate group."""
        return np.asarray(1.0 / np.bincount(self.groups)[self.groups])

    @cached
    def points(self) -> Array:
        """Both points, or rays, in homogeneous coordinates (6, n)."""
        return homogeneous(self.data)

    @cached
    def image(self) -> Array:
        """Least and largest coordinates (2, 2) of the second points. A camera of rays may see in every direction."""
        if has_rays(self.data):
            return np.array([[-np.inf, -np.inf], [np.inf, np.inf]])
        return np.array([self.points[3:5].min(axis=1), self.points[3:5].max(axis=1)])

    @cached
    def along_x(self) -> Rows:
        """Rows (2, n) sorted by x in the first and in the second image."""
        return np.argsort(self.data.T[[0, 2]], kind="stable")

    @cached
    def is_on_a_line(self) -> bool:
        """Whether the points of one of the images lie on a line: then many a homography fits them."""
        if len(self) < 2:
            return True
        both = self.data[:, :2], self.data[:, 2:4]
        across = [np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[-1] for points in both]
        return bool(min(across) <= _THIN * self.unit * np.sqrt(len(self)))

    @property
    def n_groups(self) -> int:
        """Number of duplicate groups."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def coordinates(self) -> Array:
        """Coordinates (n, 4) in the frame, without rays."""
        return self.data[:, COORDINATES]

    def of_given(self, values: NDArray[T], nothing: float) -> NDArray[T]:
        """Return values (n,) of distinct matches for all rows given, `nothing` for those without a match."""
        given = np.full(len(self.finite), nothing, values.dtype)
        given[self.finite] = values[self.where]
        return given

    def unmoved(self) -> Array:
        """Return the correspondences that there were if the first points had not moved in pixels, seen by one and the same camera."""
        first, second = self.frame.scales
        shift = (self.frame.centre1 - self.frame.centre2) * second
        rays = self.data[:, RAYS1]
        return np.hstack([self.data[:, :2], self.data[:, :2] * (second / first) + shift, rays, rays * (second / first)])

    def sample(self, most: int, rng: np.random.Generator) -> tuple[MatchSet, Rows]:
        """Return at most so many matches, drawn at random, and their rows."""
        if len(self) <= most:
            return self, np.arange(len(self))
        rows = np.sort(rng.choice(len(self), most, replace=False))
        return self.take(rows), rows

    def take(self, rows: Rows) -> MatchSet:
        """Return some of the matches, with the weights that they have among themselves."""
        groups, keypoints = self.groups[rows], self.keypoints.take(rows, axis=1)
        given = replace(self, data=self.data[rows], weights=match_weights(groups, keypoints))
        return replace(given, groups=groups, keypoints=keypoints, noise_factors=self.noise_factors[rows])


def rounding_of(pixels: Array) -> float:
    """Return the noise of rounding, 1 / sqrt 12 pixels, if a tenth of rows (x1, y1, x2, y2) lie on whole pixels, else 0.

    Detectors without a subpixel step (FAST, ORB in its first octave) return whole pixels. The middle of a pixel is a whole number, in
    COLMAP's convention a half.
    """
    whole = [(np.abs(each - np.round(each)) < _WHOLE).all(axis=1) for each in (pixels, pixels + 0.5)]
    return _ROUNDING if (whole[0] | whole[1]).sum() > _ROUNDED_SHARE * len(pixels) else 0.0


def floored(squared: Array, matches: MatchSet) -> Array:
    """Return squared residuals of which none is below the square of the noise of rounding.

    Where hundreds of keypoints on whole pixels moved by exactly nothing along an axis, some wrong model explains them exactly.
    """
    return np.maximum(squared, matches.rounding**2) if matches.rounding > 0.0 else squared


def noise_factors(sizes: Array) -> Array:
    """Return the noise of matches as multiples of that of the smallest keypoints, from sizes (2, n) of keypoints in both images.

    The variance of a keypoint grows as 1 + (size / 3.3)^2, with its size in least sizes of its image. Those of both images add.
    """
    if sizes.shape[1] == 0:
        return np.ones(0)
    with np.errstate(over="ignore"):
        relative = np.clip(sizes / np.percentile(sizes, _LEAST_SIZE, axis=1, keepdims=True), 1.0, _LARGEST_SIZE)
    return np.asarray(np.sqrt((_NOISY_SIZE**2 + np.square(relative).mean(axis=0)) / (_NOISY_SIZE**2 + 1.0)))


def duplicate_groups(data: Array, radius: float) -> Rows:
    """Return the duplicate group of each correspondence: those within `radius` of the same leader, in both images, share one.

    The first row in no group leads a new one. Rows near a member that is not the leader do not join, so that groups are no chains.
    """
    groups, leaders = np.empty(len(data), np.int64), np.full(2 << len(data).bit_length(), -1)
    follow_leaders(data, radius, *_least_crowded(data, radius), leaders, np.empty_like(groups), groups)
    return groups


def _least_crowded(data: Array, radius: float) -> tuple[int, int]:
    """Return the two of four coordinates in which the fewest of some correspondences are within `radius` of each other."""
    some = np.sort(data[:: max(1, len(data) // _SOME), :4], axis=0)
    crowds = [int(np.searchsorted(column, column + radius, side="right").sum()) for column in some.T]
    one, two, *_ = np.argsort(crowds, kind="stable").tolist()
    return one, two


def _distinct(rows: Array) -> tuple[Array, Rows]:
    """Return distinct rows, sorted, and for each row the distinct one it equals."""
    order = np.argsort(rows[:, 0])
    first = rows[:, 0].take(order)
    again = np.flatnonzero(first[1:] == first[:-1])
    tied, new = np.zeros(len(rows), bool), np.ones(len(rows), bool)
    tied[again] = tied[again + 1] = True
    # Only these are sorted by the other columns: few keypoints share a coordinate.
    order[tied] = order[tied][np.lexsort(rows[order[tied]].T[::-1])]
    ranked = rows.take(order, axis=0)
    new[again + 1] = (ranked[again + 1] != ranked[again]).any(axis=1)
    where = np.empty(len(rows), np.int64)
    where[order] = np.cumsum(new) - 1
    return ranked.take(np.flatnonzero(new), axis=0), where


def _medians(points: Array) -> Array:
    """Return the median of each column; `np.median` takes several times as long."""
    low, high = (len(points) - 1) // 2, len(points) // 2
    ranked = np.partition(np.ascontiguousarray(points.T), high, axis=1)
    lower = ranked[:, :high].max(axis=1) if low < high else ranked[:, high]
    medians: Array = 0.5 * lower + 0.5 * ranked[:, high]
    return medians
