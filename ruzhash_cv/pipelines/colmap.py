"""Filter the raw matches of a COLMAP database into its two-view geometries."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from ruzhash_cv.filtering import Model
from ruzhash_cv.foundation.validation import check_int, check_real
from ruzhash_cv.pipelines.colmap_database import COLUMNS as COLUMNS
from ruzhash_cv.pipelines.colmap_database import Database, opened
from ruzhash_cv.pipelines.colmap_database import two_view_geometry as two_view_geometry
from ruzhash_cv.pipelines.files import UnusableFile
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.report import Report
from ruzhash_cv.pipelines.runs import Summary, run
from ruzhash_cv.results.result import DO_NOT_RECONSTRUCT


def verify(
    database: str | PathLike[str],
    *,
    model: Model = "auto",
    threshold: float | None = None,
    min_inliers: int = 15,
    least_evidence: float = DO_NOT_RECONSTRUCT,
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

    It replaces COLMAP's geometric verification: match with ``skip_geometric_verification``, call this, then map. The mappers
    need the mask and a valid configuration; they estimate the rest themselves.

    Parameters
    ----------
    database : path
        A COLMAP database with keypoints and raw matches.
    model, threshold
        See `filter_points`.
    min_inliers : int
        Pairs with fewer inliers are not written, and COLMAP treats them as pairs without overlap.
    least_evidence : float
        Pairs with a lower `FilterResult.evidence` are not written. The default, `ruzhash_cv.DO_NOT_RECONSTRUCT`, leaves out nearly all
        pairs of images that share nothing, and few others. Different facades that look similar have more evidence: 100 leaves out a
        third of such pairs.
    strongest_motion : bool
        Keep the matches of the strongest rigid motion, as mapping needs; False: the matches of all motions.
    keep_stationary : bool
        As for `filter_points`. With `strongest_motion` it makes no difference, because overlays such as watermarks are never
        written.
    calibrated : bool, optional
        Which of the database's cameras are known. True: all, for example after a calibration or a first reconstruction. False: none.
        None: cameras with a prior focal length, given or from EXIF. Points of known cameras are undistorted.
    overwrite : bool
        Filter also the pairs that have a two-view geometry, whoever wrote it, and replace it. False: skip them, so that a run
        that was stopped resumes.
    rng : int
        Seed. Each pair gets a separate one, so that neither jobs nor resuming change a row.
    n_jobs : int or None
        Processes, each with one thread; -1 for all processors. None: the setting of `joblib.parallel_config`, otherwise one.
    batch_size : int
        Pairs per task and per transaction; a killed run loses at most one transaction.
    report : path, optional
        Write a row for each pair to this .csv file, batch by batch. Pairs that are skipped keep the rows that it has.
    html : path, optional
        Write pages to this folder: ``index.html`` with a row for each pair, which leads to a page of its matches. Pairs that are
        skipped keep the rows and pages that it has. Needs the extra ``html``.
    images : path, optional
        The folder of the photographs, for the pages. Without it they show the matches alone. Files outside it are not read.
    progress : bool, optional
        Show a progress bar on stderr; None: if that is a terminal.

    Returns
    -------
    Summary

    Raises
    ------
    UnusableFile
        The database is missing, no COLMAP database, locked, read-only, or without matches; or the path of the report or of the
        pages is another file. Nothing is written then.
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
    with opened(path) as source, open_pages(html, images, corner=0.0) as pages:
        db = Database(path, source, calibrated, min_inliers, strongest_motion)
        matched = db.pairs()
        if not matched:
            raise UnusableFile(f"{path} holds no matches: match its images first")
        todo = [pair for pair in matched if overwrite or not db.is_verified(pair)]
        skipped = {tuple(map(str, pair)) for pair in set(matched) - set(todo)}
        table.start(lambda row: (str(row["image_id1"]), str(row["image_id2"])) in skipped)
        return run(
            db, todo, table, pages, skipped=len(skipped),
            least_evidence=least_evidence, batch_size=batch_size, progress=progress, n_jobs=n_jobs, rng=rng,
            model=model, threshold=threshold, keep_stationary=keep_stationary,
        )  # fmt: skip
