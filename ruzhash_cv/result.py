"""The result of the filter: mask, scores and probabilities of all matches, and the motions of the kept matches."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ruzhash_cv import printing
from ruzhash_cv._arrays import Array, Mask, Record, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import check_int
from ruzhash_cv.cameras import as_both_cameras
from ruzhash_cv.method.estimate import Estimate
from ruzhash_cv.pose import CameraPose, pose_of_motion


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
        As of `Motion`.
    """

    matrix: Array
    mask: Mask
    noise_scale: float
    tolerance: float


@dataclass(frozen=True, eq=False)
class Motion(Record):
    """One rigid motion behind the kept matches, or one plane without parallax.

    Attributes
    ----------
    matrix : ndarray of float64, shape (3, 3)
        Fundamental matrix (x2^T F x1 = 0) or homography (x2 ~ H x1) of pixels, or essential matrix of rays (x2^T E x1 = 0), refitted to
        its matches. A homography has H[2, 2] = 1 as OpenCV's (unit norm if H[2, 2] is 0), others have unit norm. If cameras were
        given, pixels are without distortion, as `cv2.undistortPoints` makes them with ``P=K``, and rays are used if a camera is of a
        360 degree image.
    kind : str
        ``"homography"``, ``"fundamental"`` or ``"essential"``.
    mask : ndarray of bool, shape (n,)
        Its kept matches, on its planes and off them.
    noise_scale : float
        In the points' unit: standard deviation of the noise of each coordinate, from the median residual.
    tolerance : float
        In the points' unit: six noise scales, or the `threshold`. Matches with larger residuals rarely belong to it.
    evidence : float
        -ln NFA of the motion, or of its strongest plane if this is larger: minus the logarithm of the number of equally strong
        structures expected by chance.
    planes : tuple of Plane
        The planes that move with it, that of most matches first. Empty if its kind is ``"homography"``.
    stationary : bool
        An overlay, such as a watermark: its matches do not move, and another structure moves or they are fewer than half of all.
    fundamental : ndarray of float64, shape (3, 3), or None
        Fundamental matrix of pixels of a rigid motion, known cameras or not; None for a homography.
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


@dataclass(frozen=True, eq=False, repr=False)
class FilterResult(Record):
    """The result of `filter_points`; every array has one entry per match, or per query row of knnMatch output.

    `print` shows counts and a row for each motion and each plane. `select_matches` and `draw_matches` accept it in place of the mask.
    Two results are equal if everything but `seconds` is equal.

    Attributes
    ----------
    inlier_mask : ndarray of bool, shape (n,)
        True = keep.
    anomaly_scores : ndarray of float64, shape (n,)
        In (0, 1], high = mismatch.
    inlier_probabilities : ndarray of float64, shape (n,)
        In [0, 1]: probability that a match is true. Matches above 1/2 are kept, unless `false_discovery_rate` was given. Stationary
        matches keep their probability with ``keep_stationary=False``.
    has_match : ndarray of bool, shape (n,)
        False in rows without a valid match: the ratio test dropped it, its knnMatch row is empty, an index is masked, or a
        coordinate is not finite or beyond any image (1e9 pixels). Such a row is not kept, not counted and not drawn; its score is
        1, its probability 0.
    motions : tuple of Motion
        The one with the most matches first. A plane without parallax is a motion of kind ``"homography"``.
    reason : str or None
        Why there are no motions, or why no match is kept; otherwise None.
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
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    #: What `camera_pose` reads of the estimate, None without motions.
    _estimate: Estimate | None = field(default=None, compare=False)

    @property
    def motion_labels(self) -> Rows:
        """Index into `motions` of the motion each kept match belongs to, shape (n,); -1 = none.

        With `false_discovery_rate`, kept matches of a probability below 1/2 have none.
        """
        labels = np.full(len(self.inlier_mask), -1)
        for number, motion in enumerate(self.motions):
            labels[motion.mask] = number
        return labels

    @property
    def evidence(self) -> float:
        """How sure it is that the images share anything: the evidence of the strongest motion that is not stationary, 0 without one.

        That is minus the logarithm of how many structures as strong are expected by chance. Unrelated pairs rarely reach
        50, the cut of the commands; docs/benchmarks_geometry.md has the figures. A sum over motions would be worse: windows that two
        different buildings share make many small ones.
        """
        return max((motion.evidence for motion in self.motions if not motion.stationary), default=0.0)

    @uninterrupted
    def camera_pose(self, camera1: Any = None, camera2: Any = None, motion: int = 0) -> CameraPose:
        """Return the pose of the second camera estimated from one motion: x2 ~ R X + t for rays, where x1 ~ X.

        Parameters
        ----------
        camera1, camera2 : Camera, array_like of shape (3, 3), or what else `Camera.of` takes; optional
            The two cameras, in the points' unit. None: those that `filter_points` was given.
        motion : int
            Index into `motions`. If its kind is ``"homography"``, two poses fit the plane, and the likelier one is returned.

        Returns
        -------
        CameraPose
            Unpacks as rotation, translation.

        Raises
        ------
        IndexError
            There is no such motion.
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
        cameras = None if camera1 is None and camera2 is None else as_both_cameras(camera1, camera2)
        if estimate is None or not motions:
            raise IndexError(f"there is no motion whose pose could be estimated: {printing.headline(self)}")
        if not -len(motions) <= check_int(motion, "motion", at_least=-sys.maxsize) < len(motions):
            raise IndexError(f"`motion` must be an index into {len(motions)} motions, got {motion}")
        if cameras is None and not estimate.matches.calibrated:
            raise TypeError(
                "`camera1` and `camera2` must be given: the matches were filtered without two known cameras"
            )
        # The scene lists the motions in this order, each before its planes.
        items = np.flatnonzero(estimate.scene.owners == np.arange(len(estimate.scene)))
        distinct = np.full(len(self.inlier_mask), -1)
        distinct[self.has_match] = estimate.matches.where
        distinct[~self.inlier_mask] = -1
        return pose_of_motion(estimate, int(items[motion]), motions[motion].mask, distinct, cameras)

    def __repr__(self) -> str:
        return f"<FilterResult: {printing.headline(self)}>"

    def __str__(self) -> str:
        return printing.as_text(self)

    def _repr_html_(self) -> str:
        return printing.as_html(self)
