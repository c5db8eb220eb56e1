"""Filter hloc's HDF5 matches into a file of the same layout."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ruzhash_cv._extras import host
from ruzhash_cv._validation import check_real
from ruzhash_cv.cameras import Camera
from ruzhash_cv.filtering import Model
from ruzhash_cv.pipelines import selection
from ruzhash_cv.pipelines.files import UnusableFile, check_space, check_writable
from ruzhash_cv.pipelines.hloc_files import Files, new_hdf5, read_hdf5
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.report import RESULT_COLUMNS, Report, Row
from ruzhash_cv.pipelines.runs import Names, Summary, run
from ruzhash_cv.result import FilterResult

#: COLMAP's pixels are OpenCV's, which hloc's features have, and so much more.
PIXEL_CENTRE = 0.5
MOST_INT16 = 32767
COLUMNS = ("name1", "name2", "inliers", *RESULT_COLUMNS)


def filter_matches(
    features_h5: str | PathLike[str],
    matches_h5: str | PathLike[str],
    pairs: str | PathLike[str] | Iterable[Names],
    output: str | PathLike[str],
    *,
    model: Model = "auto",
    threshold: float | None = None,
    least_evidence: float = selection.LEAST_EVIDENCE,
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

    Rejected entries of ``matches0`` are -1; ``matching_scores0`` is 1 - anomaly score. Everything in hloc that reads matches reads the
    output.

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
        Keep the matches of the strongest rigid motion, as mapping and localisation need; False: those of all structures.
    reconstruction : path, optional
        A folder with a COLMAP model, read by pycolmap: the cameras of its images are known, and their points are undistorted.
    overwrite : bool
        Replace `output` if there is one.
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
        A file cannot be read, a pair is in none, two pairs share a group, or `output` is there already or being written. Nothing is
        written then.
    ImportError
        h5py is not installed.

    Examples
    --------
    >>> filter_matches("features.h5", "matches.h5", "pairs.txt", "filtered.h5")  # doctest: +SKIP
    """
    target, least_evidence = Path(output), check_real(least_evidence, "least_evidence", inclusive=True)
    with read_hdf5(Path(features_h5)) as features, read_hdf5(Path(matches_h5)) as matches:
        cameras = {} if reconstruction is None else _cameras_of(Path(reconstruction))
        files = Files(features, matches, pairs)
        inputs = [Path(path) for path in (features_h5, matches_h5, pairs) if isinstance(path, (str, PathLike))]
        if target.is_file() and not overwrite:
            raise UnusableFile(f"{target} is there already, so nothing is done; overwrite it to filter again")
        check_writable(target, *inputs)
        table = Report(None if report is None else Path(report), COLUMNS, target, *inputs)
        table.start(lambda _: False)
        with open_pages(html, images) as pages, new_hdf5(target, replace=overwrite) as file:
            return run(
                _Groups(files, cameras, strongest_motion, file, target), list(files.groups), table, pages,
                least_evidence=least_evidence, batch_size=batch_size, progress=progress, n_jobs=n_jobs, rng=rng,
                model=model, threshold=threshold, keep_stationary=keep_stationary,
            )  # fmt: skip


def _cameras_of(model: Path) -> dict[str, Camera]:
    """Return the cameras of a COLMAP model's images, by the images' names."""
    pycolmap = host("pycolmap", "colmap")
    try:
        read = pycolmap.Reconstruction(model)
        return {image.name: Camera.from_colmap(read.cameras[image.camera_id]) for image in read.images.values()}
    except (RuntimeError, ValueError) as error:
        last = (str(error).strip().splitlines() or ["it is damaged"])[-1].rpartition("] ")[2]
        raise UnusableFile(f"cannot read the cameras of {model}: {last}") from None


@dataclass(frozen=True)
class _Groups:
    """The `runs.Source` of hloc's files."""

    files: Files
    cameras: dict[str, Camera]
    strongest_motion: bool
    output: Any
    target: Path

    def task(self, pair: Names) -> tuple[Any, ...]:
        """Return the matched keypoints of a pair, (m, 2) each, and its known cameras."""
        first, second = self.files.points(pair)
        cameras = tuple(map(self.cameras.get, pair))
        if cameras == (None, None):
            return pair, first, second
        return pair, first + PIXEL_CENTRE, second + PIXEL_CENTRE, {"cameras": cameras}

    def entry(self, pair: Names, result: FilterResult, related: bool) -> tuple[Any, int, Row]:
        """Return the datasets of a group, its matches with -1 for the rejected and their scores, its inliers, and its cells."""
        size = 0
        with suppress(UnusableFile):
            size = len(self.files.entries(pair))
        matches, scores = np.full(size, -1, np.int16), np.zeros(size, np.float16)
        if related:
            rows, partners = self.files.matched(pair)
            kept = selection.matches_of_strongest(result) if self.strongest_motion else result.inlier_mask
            if len(self.files.keypoints(pair[1])) > MOST_INT16:
                matches = matches.astype(np.int32)
            matches[rows[kept]] = partners[kept]
            scores[rows] = 1.0 - result.anomaly_scores
        inliers = int((matches >= 0).sum())
        datasets = {"matches0": matches, "matching_scores0": scores}
        return datasets, inliers, dict(zip(COLUMNS, (*pair, inliers), strict=False))

    def write(self, entries: list[tuple[Names, Any, bool]]) -> None:
        """Write groups; one of a pair that could not be filtered has no match."""
        for pair, datasets, _ in entries:
            check_space(self.target)
            for name, values in datasets.items():
                self.output.create_dataset(f"{self.files.groups[pair]}/{name}", data=values)
