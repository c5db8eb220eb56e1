"""Filter hloc's HDF5 matches into a file of the same layout."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from ruzhash_cv.filtering import Model
from ruzhash_cv.foundation.validation import check_real
from ruzhash_cv.pipelines.files import UnusableFile, check_writable
from ruzhash_cv.pipelines.hloc_files import COLUMNS, Files, cameras_of, new_hdf5, read_hdf5
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.report import Report
from ruzhash_cv.pipelines.runs import Names, Summary, run
from ruzhash_cv.results.result import DO_NOT_RECONSTRUCT


def filter_matches(
    features_h5: str | PathLike[str],
    matches_h5: str | PathLike[str],
    pairs: str | PathLike[str] | Iterable[Names],
    output: str | PathLike[str],
    *,
    model: Model = "auto",
    threshold: float | None = None,
    least_evidence: float = DO_NOT_RECONSTRUCT,
    strongest_motion: bool = True,
    keep_stationary: bool = True,
    reconstruction: str | PathLike[str] | None = None,
    overwrite: bool = False,
    rng: int = 0,
    n_jobs: int | None = None,
    batch_size: int = 100,
    report: str | PathLike[str] | None = None,
    html: str | PathLike[str] | None = None,
    images: str | PathLike[str] | None = None,
    progress: bool | None = None,
) -> Summary:
    """Filter the matches that hloc wrote, and write the kept ones in the same layout.

    Rejected entries of ``matches0`` are -1; ``matching_scores0`` is 1 - anomaly score. hloc reads the output as it reads its
    own matches.

    Parameters
    ----------
    features_h5, matches_h5 : path
        What hloc's `extract_features` and `match_features` wrote. A pair may be stored in either order.
    pairs : path, or iterable of (str, str)
        hloc's list, two names a line, or the pairs themselves.
    output : path
        A new file; it appears when all pairs are done.
    least_evidence : float
        A pair whose `FilterResult.evidence` is below this is written without a match; 0 keeps every pair.
    strongest_motion : bool
        Keep the matches of the strongest rigid motion, as mapping and localisation need; False: the matches of all motions.
    reconstruction : path, optional
        A folder with a COLMAP model, read by pycolmap: the cameras of its images are known, and their points are undistorted.
    overwrite : bool
        Replace an existing `output`.
    report : path, optional
        Write a row for each pair to this .csv file.
    model, threshold
        See `ruzhash_cv.filter_points`.
    keep_stationary, rng, n_jobs, batch_size, html, images, progress
        See `ruzhash_cv.pipelines.colmap.verify`.

    Returns
    -------
    Summary

    Raises
    ------
    UnusableFile
        A file cannot be read, a pair is in no file, two pairs share a group, or `output` exists or is being written. Nothing is
        written then.
    ImportError
        h5py is not installed.

    Examples
    --------
    >>> filter_matches("features.h5", "matches.h5", "pairs.txt", "filtered.h5")  # doctest: +SKIP
    """
    target, least_evidence = Path(output), check_real(least_evidence, "least_evidence", inclusive=True)
    with read_hdf5(Path(features_h5)) as features, read_hdf5(Path(matches_h5)) as matches:
        cameras = {} if reconstruction is None else cameras_of(Path(reconstruction))
        files = Files(features, matches, pairs, cameras, target, strongest_motion)
        inputs = [Path(path) for path in (features_h5, matches_h5, pairs) if isinstance(path, (str, PathLike))]
        if target.is_file() and not overwrite:
            raise UnusableFile(f"{target} is there already, so nothing is done; overwrite it to filter again")
        check_writable(target, *inputs)
        table = Report(None if report is None else Path(report), COLUMNS, target, *inputs)
        table.start(lambda _: False)
        with open_pages(html, images) as pages, new_hdf5(target) as files.output:
            return run(
                files, list(files.groups), table, pages,
                least_evidence=least_evidence, batch_size=batch_size, progress=progress, n_jobs=n_jobs, rng=rng,
                model=model, threshold=threshold, keep_stationary=keep_stationary,
            )  # fmt: skip
