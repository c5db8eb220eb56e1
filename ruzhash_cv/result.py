"""The result of the filter: mask, scores and labels of all matches, and the structures of the kept matches."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ruzhash_cv import printing
from ruzhash_cv._arrays import Array, Mask, Record, Rows
from ruzhash_cv._gone import missing
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import check_int
from ruzhash_cv.cameras import as_both_cameras
from ruzhash_cv.estimate import Estimate, matrix_of_surface
from ruzhash_cv.pose import CameraPose, pose_of_motion
from ruzhash_cv.sampling import REJECTIONS


@dataclass(frozen=True, eq=False)
class Structure(Record):
    """One rigid motion, or one plane, behind the kept matches.

    Attributes
    ----------
    matrix : ndarray of float64, shape (3, 3)
        Homography (x2 ~ H x1) or fundamental matrix (x2^T F x1 = 0) of pixels, or essential matrix of rays (x2^T E x1 = 0), refitted to
        its matches. A homography has H[2, 2] = 1 as OpenCV's (unit norm if H[2, 2] is 0), others have unit norm. If cameras were
        given, pixels are without distortion, as `cv2.undistortPoints` makes them with ``P=K``, and rays are used if a camera is of a
        360 degree image.
    kind : str
        ``"homography"``, ``"fundamental"`` or ``"essential"``.
    support : int
        Matches labelled with it or with one of its `parts`.
    tolerance : float
        In the points' unit: six noise scales, or the `threshold`. Matches with larger residuals rarely belong to it.
    noise_scale : float
        In the points' unit: standard deviation of the noise of each coordinate, from the median residual.
    evidence : float
        -ln NFA: minus the logarithm of the number of equally strong structures expected by chance.
    stationary : bool
        Its matches are static while others moved: a watermark, a time stamp, a border, the bonnet of the car.
    fundamental : ndarray of float64, shape (3, 3), or None
        Fundamental matrix of a rigid motion, known cameras or not; None for a homography.
    parts : tuple of int
        Indices into `FilterResult.models` of the surfaces of a rigid motion; empty for a surface.
    """

    matrix: Array
    kind: str
    support: int
    tolerance: float
    noise_scale: float
    evidence: float
    stationary: bool = False
    fundamental: Array | None = None
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class FilterResult(Record):
    """The result of `filter_points`; every array has one entry per match, or per query row of knnMatch output.

    `print` shows counts and a row for each structure. `select_matches` and `draw_matches` accept it in place of the mask. Two results
    are equal if everything but `seconds` is equal.

    Attributes
    ----------
    inlier_mask : ndarray of bool, shape (n,)
        True = keep.
    anomaly_scores : ndarray of float64, shape (n,)
        In (0, 1], high = mismatch.
    inlier_probabilities : ndarray of float64, shape (n,)
        In [0, 1]: probability that a match is true. Matches above 1/2 are kept, unless `false_discovery_rate` was given. Stationary
        matches keep their probability with ``keep_stationary=False``.
    labels : ndarray of int64, shape (n,)
        Index into `models` of the structure a kept match belongs to, -1 = none. With
        `false_discovery_rate`, kept matches of a probability below 1/2 have none.
    has_match : ndarray of bool, shape (n,)
        False in rows without a valid match: the ratio test dropped it, its knnMatch row is empty, an index is masked, or a
        coordinate is not finite or beyond any image (1e9 pixels). Such a row is not kept, not counted and not drawn; its score is
        1, its probability 0.
    models : tuple of Structure
        The motion with the most matches first, then the others. The surfaces of a motion, its `parts`, follow it. A plane without
        parallax belongs to no motion and is a separate model.
    degenerate_samples : dict of str to int
        Minimal samples rejected, by reason: ``"repeated"``, ``"collinear"``, ``"flipped"``, ``"unsolved"``.
    n_models : int
        Models sampled.
    reason : str or None
        Why there are no structures, or why no match is kept; otherwise None.
    seconds : dict of str to float
        Time of the call, ``"total"``.

    Examples
    --------
    >>> from ruzhash_cv import filter_points
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> result = filter_points(points, 0.5 * points + 3.0)
    >>> result
    <FilterResult: 60 of 60 matches kept, 1 structure>
    >>> np.allclose(result.models[0].matrix, [[0.5, 0, 3], [0, 0.5, 3], [0, 0, 1]])
    True
    """

    inlier_mask: Mask
    anomaly_scores: Array
    inlier_probabilities: Array
    labels: Rows
    has_match: Mask
    models: tuple[Structure, ...] = ()
    degenerate_samples: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REJECTIONS, 0))
    n_models: int = 0
    reason: str | None = None
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    #: The estimate whose view this is, and the distinct match (n,) that each kept match is, -1 for others; None if nothing was found.
    _estimate: Estimate | None = field(default=None, compare=False)
    _distinct: Rows | None = field(default=None, compare=False)

    def __getattr__(self, name: str) -> Any:
        raise missing("FilterResult", name)

    @cached_property
    def motions(self) -> tuple[Structure, ...]:
        """Models that are not part of another one: rigid motions, and planes of no motion."""
        parts = {part for model in self.models for part in model.parts}
        return tuple(model for item, model in enumerate(self.models) if item not in parts)

    @cached_property
    def motion_labels(self) -> Rows:
        """Index into `motions` of the motion each kept match belongs to, -1 = none; shape (n,)."""
        numbers = np.full(len(self.models) + 1, -1)
        for number, motion in enumerate(self.motions):
            item = next(item for item, model in enumerate(self.models) if model is motion)
            numbers[[item, *motion.parts]] = number
        return np.asarray(numbers[self.labels])

    @property
    def evidence(self) -> float:
        """How sure it is that the images share anything: the evidence of the strongest structure that is not stationary, 0 without one.

        That is minus the logarithm of how many structures as strong are expected by chance. Hardly any pair of unrelated images reaches
        50, the cut of the commands; docs/benchmarks_geometry.md has the figures. A sum over structures would be worse: windows that two
        different buildings share make many small ones.
        """
        return max((structure.evidence for structure in self.models if not structure.stationary), default=0.0)

    @uninterrupted
    def plane_motion(self, structure: int) -> Array | None:
        """Return a fundamental matrix (3, 3) that fits one structure's matches, or None; of a plane, one of the many that do."""
        n = len(self.models)
        if not -n <= check_int(structure, "structure", at_least=-sys.maxsize) < n:
            raise IndexError(f"`structure` must be an index into {n} models, got {structure}")
        model = self.models[structure]
        if model.fundamental is not None or self._estimate is None:
            return model.fundamental
        return matrix_of_surface(self._estimate, structure % n)

    @uninterrupted
    def camera_pose(self, camera1: Any = None, camera2: Any = None, motion: int = 0) -> CameraPose:
        """Return the pose of the second camera as a motion sees it: x2 ~ R X + t for rays, where x1 ~ X.

        Parameters
        ----------
        camera1, camera2 : Camera, array_like of shape (3, 3), or what else `Camera.of` takes; optional
            The two cameras, in the points' unit. None: those that `filter_points` was given.
        motion : int
            Index into `motions`. Of one whose kind is ``"homography"`` the pose of a plane is one of two.

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
        estimate, distinct, motions = self._estimate, self._distinct, self.motions
        cameras = None if camera1 is None and camera2 is None else as_both_cameras(camera1, camera2)
        if estimate is None or distinct is None or not motions:
            raise IndexError(f"there is no motion whose pose could be estimated: {printing.headline(self)}")
        if not -len(motions) <= check_int(motion, "motion", at_least=-sys.maxsize) < len(motions):
            raise IndexError(f"`motion` must be an index into {len(motions)} motions, got {motion}")
        if cameras is None and not estimate.matches.calibrated:
            raise TypeError(
                "`camera1` and `camera2` must be given: the matches were filtered without two known cameras"
            )
        item = next(item for item, model in enumerate(self.models) if model is motions[motion])
        own = self.motion_labels == motion % len(motions)
        return pose_of_motion(estimate, item, own, distinct, cameras)

    def __repr__(self) -> str:
        return f"<FilterResult: {printing.headline(self)}>"

    def __str__(self) -> str:
        return printing.as_text(self)

    def _repr_html_(self) -> str:
        return printing.as_html(self)
