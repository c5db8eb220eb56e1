"""The result of the filter: mask, scores and probabilities of all matches, and the motions of the kept matches."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ruzhash_cv.core.method.estimate import Estimate, Ranking
from ruzhash_cv.foundation.arrays import Array, Mask, Record, Rows
from ruzhash_cv.foundation.interrupts import uninterrupted
from ruzhash_cv.foundation.validation import check_int
from ruzhash_cv.input.cameras import Cameras, as_both_cameras
from ruzhash_cv.results import printing, reasons
from ruzhash_cv.results.focal import camera_of_motion
from ruzhash_cv.results.pose import CameraPose, pose_of_motion

#: Evidence below which the images may share nothing: chance gives it to one of 1,000 unrelated pairs, -ln .001.
NOTHING_SHARED = 7.0
#: Evidence below which nothing should be reconstructed from a pair. Facades that look alike may exceed it.
DO_NOT_RECONSTRUCT = 50.0


@dataclass(frozen=True, eq=False)
class Plane(Record):
    """One plane of a rigid motion.

    Attributes
    ----------
    matrix : ndarray of float64, shape (3, 3)
        Homography of pixels, x2 ~ H x1, refitted to its matches, with H[2, 2] = 1 as OpenCV's (unit norm if H[2, 2] is 0).
    mask : ndarray of bool, shape (n,)
        Its kept matches.
    noise_scale, tolerance : float
        As in `Motion`.
    """

    matrix: Array
    mask: Mask
    noise_scale: float
    tolerance: float


@dataclass(frozen=True, eq=False)
class Motion(Record):
    """One rigid motion of the kept matches, or one lone plane: a plane of no rigid motion, whose kind is ``"homography"``.

    Attributes
    ----------
    matrix : ndarray of float64, shape (3, 3)
        Fundamental matrix (x2^T F x1 = 0) or homography (x2 ~ H x1) of pixels, or essential matrix of rays (x2^T E x1 = 0), refitted to
        its matches. A homography has H[2, 2] = 1 (unit norm if H[2, 2] is 0), the others have unit norm. If cameras were given, a
        homography maps undistorted pixels, as returned by `cv2.undistortPoints` with ``P=K``; with a 360 degree camera it maps rays.
    kind : str
        ``"homography"``, ``"fundamental"`` or ``"essential"``.
    mask : ndarray of bool, shape (n,)
        Its kept matches, on its planes and off them.
    noise_scale : float
        Standard deviation of the noise of each coordinate, from the median residual, in the unit of the second points.
    tolerance : float
        The `threshold`, else six noise scales, at least 1.8 pixels. A description, which decides nothing without a `threshold`: the
        mask follows from the probabilities.
    evidence : float
        -ln NFA of the motion or of its strongest plane, the larger one. NFA is the number of equally strong structures expected by
        chance.
    planes : tuple of Plane
        The planes of a rigid motion, the one with the most matches first. Empty if its kind is ``"homography"``.
    stationary : bool
        True for an overlay, such as a watermark: static matches, while another structure moved, or fewer than half of all matches.
    fundamental : ndarray of float64, shape (3, 3), or None
        Fundamental matrix of a rigid motion for (undistorted) pixels, with cameras or without; None for a homography.
    """

    matrix: Array
    kind: str
    mask: Mask
    noise_scale: float
    tolerance: float
    evidence: float
    planes: tuple[Plane, ...] = ()
    stationary: bool = False
    fundamental: Array | None = None


class NoMotions(tuple[Motion, ...]):
    """The empty tuple of motions; a number as its index raises the `reason`."""

    reason: str | None

    @classmethod
    def because(cls, reason: str | None) -> NoMotions:
        """Return no motions, for a reason."""
        motions = cls()
        motions.reason = reason
        return motions

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return super().__getitem__(index)
        raise IndexError(f"there are no motions: {self.reason or 'none was found'}")


@dataclass(frozen=True)
class Search:
    """What the search for motions and planes did; prints in one line.

    Attributes
    ----------
    rounds, models : int
        Rounds of sampling, and models of minimal samples.
    ended : str
        Why it ended.
    """

    rounds: int = 0
    models: int = 0
    ended: str = "too few matches"

    def __str__(self) -> str:
        return f"{self.rounds} {'round' if self.rounds == 1 else 'rounds'}, {self.models} models: {self.ended}"


@dataclass(frozen=True, eq=False, repr=False)
class FilterResult(Record):
    """The result of `filter_points`; every array has one entry per match, or per query row of knnMatch output.

    `print` shows counts and a row for each motion and each plane. `select_matches` and `draw_matches` accept a result in place of the
    mask. A result is true if any match is kept. Two results are equal if everything but `seconds` is equal.

    Attributes
    ----------
    inlier_mask : ndarray of bool, shape (n,)
        True = keep.
    anomaly_scores : ndarray of float64, shape (n,)
        In (0, 1], high = mismatch. Computed when it is first read: the mask does not need it.
    inlier_probabilities : ndarray of float64, shape (n,)
        In [0, 1]: probability that a match is true. Matches above 1/2 are kept, unless `false_discovery_rate` was given. Overlays keep
        their probabilities with ``keep_stationary=False``.
    has_match : ndarray of bool, shape (n,)
        False in rows without a valid match: the row fails the ratio test, its knnMatch row is empty, an index is masked, or a
        coordinate is not finite or beyond 1e9 pixels. Such a row is not kept, not counted and not drawn. Its score is 1, its
        probability 0.
    motions : tuple of Motion
        Rigid motions and lone planes, the one with the most matches first. If there are none, ``motions[0]`` raises an
        IndexError with the `reason`.
    reason : str or None
        Why there are no motions, or why no match is kept; otherwise None.
    search : Search
        What the search tried and why it ended: `rounds`, `models`, `ended`; prints in one line.
    seconds : dict of str to float
        Time of the call, ``"total"``.

    Examples
    --------
    >>> from ruzhash_cv import filter_points
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> result = filter_points(points, 0.5 * points + 3.0)
    >>> result
    <FilterResult: 60 of 60 matches kept, 1 motion>
    >>> np.allclose(result.motions[0].matrix, [[0.5, 0, 3], [0, 0.5, 3], [0, 0, 1]])
    True
    """

    inlier_mask: Mask
    anomaly_scores: Array
    inlier_probabilities: Array
    has_match: Mask
    motions: tuple[Motion, ...] = ()
    reason: str | None = None
    search: Search = field(default_factory=Search)
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    #: What `camera_pose` reads of the estimate, None without motions.
    _estimate: Estimate | None = field(default=None, compare=False)
    #: Cameras that were given and do not fit the matches, which were filtered without them.
    _cameras: Cameras | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.motions:
            object.__setattr__(self, "motions", NoMotions.because(self.reason))

    def __bool__(self) -> bool:
        return bool(self.inlier_mask.any())

    @property
    def motion_labels(self) -> Rows:
        """Index into `motions` of each kept match, shape (n,); -1 = none (also if the probability is below 1/2)."""
        labels = np.full(len(self.inlier_mask), -1)
        for number, motion in enumerate(self.motions):
            labels[motion.mask] = number
        return labels

    @property
    def evidence(self) -> float:
        """Evidence that the images overlap: the evidence of the strongest motion that is not an overlay, 0 without one.

        It is -ln NFA, see `Motion`. Below `ruzhash_cv.NOTHING_SHARED`, 7, the images may share nothing. Below
        `ruzhash_cv.DO_NOT_RECONSTRUCT`, 50, do not reconstruct from them.
        """
        return max((motion.evidence for motion in self.motions if not motion.stationary), default=0.0)

    @uninterrupted
    def camera_pose(
        self, camera1: Any = None, camera2: Any = None, motion: int | None = None, *, image_size: Any = None
    ) -> CameraPose:
        """Return the pose of the second camera, estimated from one motion: X2 = R X1 + t for points in the cameras' frames.

        Parameters
        ----------
        camera1, camera2 : Camera, array_like of shape (3, 3), or anything else that `Camera.of` takes; optional
            The two cameras, in the unit of the points. Without `camera2`, `camera1` took both images. Without either, the cameras
            given to `filter_points` are used.
        motion : int, optional
            Index into `motions`, by default of the first that is not an overlay. If its kind is ``"homography"``, two poses fit the
            plane, and the one with the higher likelihood is returned.
        image_size : sequence of two ints, optional
            Width and height in pixels of both images, of one camera whose focal length is not known. It is estimated with the pose,
            from .4 to 4 image diagonals, without distortion and with the principal point in the middle. Not with cameras.

        Returns
        -------
        CameraPose
            Unpacks as rotation, translation. `CameraPose.camera` is the camera estimated from `image_size`. A warning says if the
            matches hardly show its focal length, and if they do not lie in images of that size.

        Raises
        ------
        IndexError
            There is no such motion, or all are overlays.
        TypeError, ValueError
            An argument is not of a form above; the message names it and what arrived.

        Examples
        --------
        >>> from ruzhash_cv import filter_points
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform([-2, -1, 4], [2, 1, 8], (100, 3))
        >>> K = np.array([[700.0, 0.0, 320.0], [0.0, 700.0, 240.0], [0.0, 0.0, 1.0]])
        >>> x1, x2 = ((Y @ K.T)[:, :2] / Y[:, 2:] for Y in (X, X + [0.5, 0.0, 0.0]))
        >>> R, t = filter_points(x1, x2, cameras=(K, K)).camera_pose()
        >>> t.round(3) + 0.0
        array([1., 0., 0.])
        """
        estimate, motions = self._estimate, self.motions
        if self._cameras is not None and all(each is None for each in (camera1, camera2, image_size)):
            camera1, camera2 = self._cameras
        cameras = None if camera1 is None and camera2 is None else as_both_cameras(camera1, camera2)
        is_known = cameras is not None or (estimate is not None and estimate.matches.calibrated)
        if image_size is not None and is_known:
            raise TypeError("`image_size` is for a camera whose focal length is not known, got cameras as well")
        if estimate is None or not motions:
            raise IndexError(f"there is no motion whose pose could be estimated: {printing.headline(self)}")
        if motion is None:  # static matches have no pose
            motion = next((number for number, each in enumerate(motions) if not each.stationary), None)
        if motion is None:
            raise IndexError(
                "there is no motion whose pose could be estimated: all motions are overlays, give `motion`"
            )
        if not -len(motions) <= check_int(motion, "motion", at_least=-sys.maxsize) < len(motions):
            raise IndexError(f"`motion` must be an index into {len(motions)} motions, got {motion}")
        if image_size is None and not is_known:
            raise TypeError(
                "`camera1` and `camera2` must be given, or `image_size`: the matches were filtered without two known cameras"
            )
        # The scene lists the motions in this order, each before its planes.
        item = int(estimate.scene.motions()[motion])
        distinct = np.full(len(self.inlier_mask), -1)
        distinct[self.has_match] = estimate.matches.where
        distinct[~self.inlier_mask] = -1
        camera, spread = (None, 0.0) if image_size is None else camera_of_motion(estimate, item, image_size)
        if camera is not None:
            kept = estimate.matches.coordinates[np.unique(distinct[distinct >= 0])]
            reasons.warn(reasons.sign_of_image_size(camera, *estimate.matches.frame.leave(kept)))
            reasons.warn(reasons.sign_of_no_focal_length(spread))
        cameras = cameras if camera is None else (camera, camera)
        pose = pose_of_motion(estimate, item, motions[motion].mask, distinct, cameras)
        return replace(pose, camera=camera, focal_spread=spread)

    def __repr__(self) -> str:
        return f"<FilterResult: {printing.headline(self)}>"

    def __str__(self) -> str:
        return printing.as_text(self)

    def _repr_html_(self) -> str:
        return printing.as_html(self)


class RankedWhenRead:
    """Anomaly scores of a result, given as an array or as a `Ranking`, of which they are computed when they are read."""

    def __set__(self, result: FilterResult, scores: Array | Ranking) -> None:
        result.__dict__["_scores"] = scores

    def __get__(self, result: FilterResult, owner: type | None = None) -> Array:
        scores: Array | Ranking = result.__dict__["_scores"]
        return scores.of_given if isinstance(scores, Ranking) else scores


FilterResult.anomaly_scores = RankedWhenRead()  # type: ignore[assignment]
