"""Filter the raw matches of a COLMAP database into its two-view geometries."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ruzhash_cv._extras import host
from ruzhash_cv._validation import check_int, check_real, check_same_length
from ruzhash_cv.correspondences import Matches, as_indices
from ruzhash_cv.filtering import Model
from ruzhash_cv.pipelines import selection
from ruzhash_cv.pipelines.colmap_database import Database, Pair, opened
from ruzhash_cv.pipelines.files import UnusableFile
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.report import RESULT_COLUMNS, Report, Row
from ruzhash_cv.pipelines.runs import Summary, run
from ruzhash_cv.result import FilterResult

#: Configurations of two views that COLMAP's mappers load: 0 and 1 are skipped since 4.2.1, 8 by the global mapper.
DEGENERATE, CALIBRATED, UNCALIBRATED, PLANAR_OR_PANORAMIC = 1, 2, 3, 6
COLUMNS = ("image_id1", "image_id2", "name1", "name2", "inliers", "config", *RESULT_COLUMNS)


def verify(
    database: str | PathLike[str],
    *,
    model: Model = "auto",
    threshold: float | None = None,
    min_inliers: int = 15,
    least_evidence: float = selection.LEAST_EVIDENCE,
    strongest_motion: bool = True,
    keep_stationary: bool = True,
    calibrated: bool | None = None,
    overwrite: bool = False,
    rng: int = 0,
    n_jobs: int | None = None,
    batch_size: int = 100,
    report: str | PathLike[str] | None = None,
    html: str | PathLike[str] | None = None,
    images: str | PathLike[str] | None = None,
    progress: bool | None = None,
) -> Summary:
    """Filter the raw matches of every image pair of a COLMAP database, and write its two-view geometries in place.

    Takes the place of COLMAP's geometric verification: match with ``skip_geometric_verification``, call this, then map. The mappers
    need the mask and a valid configuration; they estimate the rest themselves.

    Parameters
    ----------
    database : path
        A COLMAP database with keypoints and raw matches.
    model, threshold
        See `filter_points`.
    min_inliers : int
        Pairs with fewer are not written, and COLMAP takes them for not overlapping.
    least_evidence : float
        Nor are pairs whose `FilterResult.evidence` is below this. The default leaves out nearly all pairs of images that share
        nothing, and few others. Fronts that only look alike have more evidence: 100 leaves out a third of such pairs.
    strongest_motion : bool
        Keep the matches of the strongest rigid motion, as mapping needs; False: those of all structures.
    keep_stationary : bool
        As for `filter_points`. With `strongest_motion` it makes no difference: static matches, such as a watermark's, belong to no
        motion.
    calibrated : bool, optional
        Whether the database's cameras are known: True: all are, as after a calibration or a first reconstruction. False: none is read.
        None: those whose focal length is a prior, as from EXIF or given. Points are undistorted by known cameras.
    overwrite : bool
        Filter also the pairs that have a two-view geometry, whoever wrote it, and replace it. False: skip them, so that a run
        that was stopped resumes.
    rng : int
        Seed. Each pair gets a separate one, so that neither jobs nor resuming change a row.
    n_jobs : int or None
        Processes, each with one thread; -1 for all processors. None: as `joblib.parallel_config` says, else one.
    batch_size : int
        Pairs a task and a transaction; a run that is killed loses at most one.
    report : path, optional
        Write a row for each pair to this .csv file, batch by batch. Pairs that are skipped keep the rows that it has.
    html : path, optional
        Write pages to this folder: ``index.html`` with a row for each pair, which leads to a page of its matches. Pairs that are
        skipped keep the rows and pages that it has. Needs the extra ``html``.
    images : path, optional
        The folder of the photographs, for the pages. Without it they show the matches alone. Names that lead out of it are not read.
    progress : bool, optional
        Show a progress bar on stderr; None: if that is a terminal.

    Returns
    -------
    Summary

    Raises
    ------
    UnusableFile
        The database cannot be used: missing, of another kind, locked, read-only, or without matches; or another file is in the
        place of the report or of the pages. Nothing is written then.
    ImportError
        pycolmap is not installed.

    Notes
    -----
    A pair's row holds the kept matches and the model of the strongest motion: configuration 6 (planar or panoramic) with H if it is a
    plane or rotation, because no match shows parallax; else 2 (calibrated) with E, F, pose and angle of rays if both cameras are known;
    else 3 (uncalibrated) with F.

    Examples
    --------
    >>> import pycolmap  # doctest: +SKIP
    >>> verify("database.db")  # doctest: +SKIP
    >>> pycolmap.incremental_mapping("database.db", "images", "sparse")  # doctest: +SKIP
    """
    path = Path(database)
    check_int(min_inliers, "min_inliers")
    least_evidence = check_real(least_evidence, "least_evidence", inclusive=True)
    table = Report(None if report is None else Path(report), COLUMNS, path)
    # COLMAP's first pixel has its corner at 0.
    with opened(path) as db, open_pages(html, images, corner=0.0) as pages:
        matched = db.pairs()
        if not matched:
            raise UnusableFile(f"{path} holds no matches: match its images first")
        todo = [pair for pair in matched if overwrite or not db.is_verified(pair)]
        skipped = {tuple(map(str, pair)) for pair in set(matched) - set(todo)}
        table.start(lambda row: (str(row["image_id1"]), str(row["image_id2"])) in skipped)
        return run(
            _Database(db, calibrated, min_inliers, strongest_motion), todo, table, pages, skipped=len(skipped),
            least_evidence=least_evidence, batch_size=batch_size, progress=progress, n_jobs=n_jobs, rng=rng,
            model=model, threshold=threshold, keep_stationary=keep_stationary,
        )  # fmt: skip


def two_view_geometry(result: FilterResult, matches: Matches, *, only_strongest: bool = True) -> Any:
    """Return what was kept of a pair as a `pycolmap.TwoViewGeometry`, which COLMAP's mappers take as verified.

    Parameters
    ----------
    result : FilterResult
        Of points in COLMAP's pixels, in which (0.5, 0.5) is the middle of the first one; OpenCV's are those less 0.5. Where
        cameras with distortion were given, its matrices are of undistorted pixels: do not keep F and H then.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2) or (n,)
        The matches of the result, as indices of keypoints; see `as_correspondences`.
    only_strongest : bool
        Leave out matches that do not belong to the strongest rigid motion; False: all that were kept.

    Returns
    -------
    pycolmap.TwoViewGeometry
        ``config`` is that of the strongest motion: PLANAR_OR_PANORAMIC, with H, if no match shows parallax; CALIBRATED, with E, F, pose
        and angle, if it has an essential matrix; else UNCALIBRATED, with F if it has one. It is DEGENERATE if nothing was kept. Each
        match is in it once. F and H are of pixels without distortion.

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> from ruzhash_cv import filter_points
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> int(two_view_geometry(filter_points(points, 0.5 * points), np.stack([np.arange(60)] * 2, axis=1)).config)
    6
    """
    if not isinstance(result, FilterResult):
        raise TypeError(f"`result` must be a FilterResult, got {type(result).__name__}")
    indices, _, _ = as_indices(matches)
    check_same_length(result.inlier_mask, indices, "`result` and `matches`")
    chosen = selection.matches_of_strongest(result) if only_strongest else result.inlier_mask
    index = selection.strongest_motion(result)
    motion = None if index is None else result.motions[index]
    config, models = UNCALIBRATED if chosen.any() else DEGENERATE, dict[str, Any]()
    if index is not None and motion is not None and chosen.any():
        if motion.kind == "homography":
            config, models = PLANAR_OR_PANORAMIC, {"H": motion.matrix}
        elif motion.kind == "essential":
            config, models = CALIBRATED, {"F": motion.fundamental, **_calibrated(result, index)}
        else:
            models = {"F": motion.fundamental}
    # COLMAP wants every match once.
    inliers = np.unique(indices[chosen], axis=0).astype(np.uint32)
    return host("pycolmap", "colmap").TwoViewGeometry(config=config, inlier_matches=inliers, **models)


def _calibrated(result: FilterResult, motion: int) -> dict[str, Any]:
    """Return what COLMAP keeps of a calibrated motion beside F: E, the pose, and the median angle of rays, in radians."""
    pose = result.camera_pose(motion=motion)
    pycolmap, essential = host("pycolmap", "colmap"), np.cross(pose.translation, pose.rotation.T).T
    moved = pycolmap.Rigid3d(pycolmap.Rotation3d(pose.rotation), pose.translation)
    angle = float(np.radians(np.nan_to_num(pose.median_angle)))
    return {"E": essential, "cam2_from_cam1": moved, "tri_angle": angle}


@dataclass(frozen=True)
class _Database:
    """The `runs.Source` of a database."""

    files: Database
    calibrated: bool | None
    min_inliers: int
    strongest_motion: bool

    def task(self, pair: Pair) -> tuple[Any, ...]:
        """Return the points of a pair and its known cameras."""
        cameras = self.files.cameras(pair, self.calibrated)
        return (pair, *self.files.points(pair), {} if cameras is None else {"cameras": cameras})

    def entry(self, pair: Pair, result: FilterResult, related: bool) -> tuple[Any, int, Row]:
        """Return the geometry of a pair, None if it is to be left without one, its inliers, and its cells of the report."""
        # The matches of a pair that failed may be unreadable.
        matches = (
            self.files.matches(pair) if result.inlier_mask.any() else np.zeros((len(result.inlier_mask), 2), np.uint32)
        )
        geometry = two_view_geometry(result, matches, only_strongest=self.strongest_motion)
        n_inliers = len(geometry.inlier_matches)
        if n_inliers < self.min_inliers or not related:
            geometry = None
        cells = *pair, *self.files.names_of(pair), n_inliers, None if geometry is None else int(geometry.config)
        return geometry, 0 if geometry is None else n_inliers, dict(zip(COLUMNS, cells, strict=False))

    def write(self, entries: list[tuple[Pair, Any, bool]]) -> None:
        """Write geometries; the rows of pairs that could not be filtered stay."""
        self.files.replace((pair, geometry) for pair, geometry, failed in entries if not failed)
