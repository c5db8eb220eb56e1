"""Filter hloc's HDF5 matches into a file of the same layout."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._validation import check_real
from ruzhash_cv.cameras import Camera
from ruzhash_cv.filtering import Model
from ruzhash_cv.pipelines import selection
from ruzhash_cv.pipelines.files import UnusableFile, as_spoilt, check_space, check_writable, listed_pairs, new_hdf5
from ruzhash_cv.pipelines.hosts import host, with_bar
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.pairs import Task, failed_task, run_pairs
from ruzhash_cv.pipelines.report import RESULT_COLUMNS, Report, row_of
from ruzhash_cv.result import FilterResult

#: Images whose keypoints are held in memory.
CACHED_IMAGES = 1000
#: COLMAP's pixels are OpenCV's, which hloc's features have, and so much more.
PIXEL_CENTRE = 0.5
MOST_INT16 = 32767
COLUMNS: dict[str, type] = {**dict.fromkeys(("name1", "name2"), str), "inliers": int, **RESULT_COLUMNS}

Names: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Summary:
    """What `filter_matches` did.

    Attributes
    ----------
    pairs : int
        Pairs filtered; one that was listed in both orders counts once.
    matches, inliers : int
        Matches read, and those that are left.
    seconds : float
        Wall time.
    left_out : dict
        The pairs that could not be filtered, by the names of their images, and why; they are written without a match.
    """

    pairs: int
    matches: int
    inliers: int
    seconds: float
    left_out: dict[Names, str] = field(default_factory=dict)


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
        Replace `output` where there is one.
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
        A file cannot be read, a pair is in none, or `output` is there already or being written. Nothing is written then.
    ImportError
        h5py is not installed.

    Examples
    --------
    >>> filter_matches("features.h5", "matches.h5", "pairs.txt", "filtered.h5")  # doctest: +SKIP
    """
    since, target = time.perf_counter(), Path(output)
    least_evidence = check_real(least_evidence, "least_evidence", inclusive=True)
    with _read(Path(features_h5)) as features, _read(Path(matches_h5)) as matches:
        source = _Source(features, matches, {} if reconstruction is None else _cameras_of(Path(reconstruction)))
        groups = source.find(pairs)
        n_matches = n_inliers = 0
        left_out: dict[Names, str] = {}
        inputs = [Path(path) for path in (features_h5, matches_h5, pairs) if isinstance(path, (str, PathLike))]
        if target.is_file() and not overwrite:
            raise UnusableFile(f"{target} is there already, so nothing is done; overwrite it to filter again")
        check_writable(target, *inputs)
        table = Report(None if report is None else Path(report), COLUMNS, target, *inputs)
        table.start(lambda _: False)
        folder, photographs = (None if given is None else Path(given) for given in (html, images))
        with (
            open_pages(folder, photographs) as pages,
            new_hdf5(target, replace=overwrite, libver="latest") as file,
        ):
            prepare = selection.prepare if pages is None else selection.prepare_pages
            results = run_pairs(
                source.tasks(groups), prepare, model=model, threshold=threshold, keep_stationary=keep_stationary,
                rng=rng, n_jobs=n_jobs, batch_size=batch_size,
            )  # fmt: skip
            for names, result, failed in with_bar(results, progress, total=len(groups), unit="pair"):
                check_space(target)
                if failed:
                    left_out[names] = str(result.reason)
                if failed or result.evidence < least_evidence:
                    entries = source.rejected(groups[names])
                else:
                    entries = source.filtered(groups[names], names, result, strongest_motion)
                if pages is not None:
                    pages.add(names, None if failed else source.points(groups[names], names), result)
                for name, values in entries.items():
                    file.create_dataset(f"{groups[names]}/{name}", data=values)
                n_matches += len(result.inlier_mask)
                n_inliers += (inliers := int((entries["matches0"] >= 0).sum()))
                table.add([{**dict(zip(COLUMNS, (*names, inliers), strict=False)), **row_of(result)}])
    return Summary(len(groups), n_matches, n_inliers, time.perf_counter() - since, left_out)


def _cameras_of(model: Path) -> dict[str, Camera]:
    """Return the cameras of a COLMAP model's images, by the images' names."""
    pycolmap = host("pycolmap", "colmap")
    try:
        found = pycolmap.Reconstruction(model)
        return {image.name: Camera.from_colmap(found.cameras[image.camera_id]) for image in found.images.values()}
    except (RuntimeError, ValueError) as error:
        last = (str(error).strip().splitlines() or ["it is damaged"])[-1].rpartition("] ")[2]
        raise UnusableFile(f"cannot read the cameras of {model}: {last}") from None


class _Source:
    """The features and matches of hloc's files, open for reading."""

    def __init__(self, features: Any, matches: Any, cameras: dict[str, Camera]) -> None:
        self._features, self._matches, self._cameras = features, matches, cameras
        self._keypoints = lru_cache(CACHED_IMAGES)(self._read_keypoints)

    def find(self, pairs: str | PathLike[str] | Iterable[Names]) -> dict[Names, str]:
        """Return the stored group of every pair, by its names in the order of the group."""
        listed = (
            listed_pairs(Path(pairs), self._has)
            if isinstance(pairs, (str, PathLike))
            else ((pair, "") for pair in pairs)
        )
        found = {}
        for names, where in listed:
            for name in names:
                if not self._has(name):
                    raise UnusableFile(f"{where}image {name!r} is not in {self._features.filename}")
            group = self._group(names)
            if group is None:
                raise UnusableFile(f"{where}no matches of {names[0]!r} and {names[1]!r} in {self._matches.filename}")
            found[group[1]] = group[0]
        if not found:
            raise UnusableFile("the list of pairs is empty")
        return found

    def _has(self, name: str) -> bool:
        with suppress(UnicodeEncodeError), as_spoilt(self._features.filename):  # HDF5 has no names that are not UTF-8
            return name in self._features
        return False

    def _group(self, names: Names) -> tuple[str, Names] | None:
        """Return where a pair is: hloc's groups are a-b/c, formerly a-b_c, for the names a/b and c; others keep a/b/c."""
        one, two = names
        plain = {name: name.replace("/", "-") for name in names}
        for separator, spelt in (("/", plain), ("_", plain), ("/", {name: name for name in names})):
            for first, second in ((one, two), (two, one)):
                group = f"{spelt[first]}{separator}{spelt[second]}"
                with as_spoilt(self._matches.filename):
                    if f"{group}/matches0" in self._matches:
                        return group, (first, second)
        return None

    def tasks(self, groups: dict[Names, str]) -> Iterator[tuple[Any, ...] | Task]:
        """Yield the matched keypoints of pairs, (m, 2) each, and their known cameras, or what is wrong with them."""
        for names, group in groups.items():
            try:
                first, second = self.points(group, names)
                cameras = tuple(map(self._cameras.get, names))
                if cameras == (None, None):
                    yield names, first, second
                else:
                    yield names, first + PIXEL_CENTRE, second + PIXEL_CENTRE, {"cameras": cameras}
            except UnusableFile as error:
                yield failed_task(names, str(error))

    def points(self, group: str, names: Names) -> tuple[Array, Array]:
        """Return the matched keypoints of a pair, (m, 2) each."""
        _, rows, partners = self._matched(group, names)
        return self._keypoints(names[0])[rows], self._keypoints(names[1])[partners]

    def rejected(self, group: str) -> dict[str, NDArray[Any]]:
        """Return the datasets of a group that keeps no match."""
        size = 0
        with suppress(UnusableFile):
            size = len(self._dataset(self._matches, f"{group}/matches0", "iu", 1))
        return {"matches0": np.full(size, -1, np.int16), "matching_scores0": np.zeros(size, np.float16)}

    def filtered(self, group: str, names: Names, result: FilterResult, only_strongest: bool) -> dict[str, NDArray[Any]]:
        """Return the datasets of a group: its matches with -1 for the rejected, and their scores."""
        size, rows, partners = self._matched(group, names)
        kept = selection.strongest_motion(result)[0] if only_strongest else result.inlier_mask
        matches = np.full(size, -1, np.int32 if len(self._keypoints(names[1])) > MOST_INT16 else np.int16)
        matches[rows[kept]] = partners[kept]
        scores = np.zeros(size, np.float16)
        scores[rows] = 1.0 - result.anomaly_scores
        return {"matches0": matches, "matching_scores0": scores}

    def _matched(self, group: str, names: Names) -> tuple[int, Rows, Rows]:
        """Return how many entries a group has, and the keypoints of both images that are matched."""
        entries = self._dataset(self._matches, f"{group}/matches0", "iu", 1)
        rows = np.flatnonzero(entries != -1)
        partners = entries[rows].astype(np.int64)
        if entries.dtype == np.int16:
            partners %= 2**16  # hloc's int16 wraps above 32,767
        for name, used in zip(names, (rows, partners), strict=True):
            count = len(self._keypoints(name))
            if len(used) and not (used.min() >= 0 and used.max() < count):
                wrong = used.max() if used.min() >= 0 else used.min()
                raise UnusableFile(
                    f"{self._matches.filename}: {group} names keypoint {wrong} of {name!r}, which has {count}"
                )
        return len(entries), rows, partners

    def _read_keypoints(self, name: str) -> Array:
        keypoints = self._dataset(self._features, f"{name}/keypoints", "iuf", 2)
        if keypoints.shape[1] < 2:
            raise UnusableFile(
                f"{self._features.filename}: keypoints of {name!r} must have shape (n, 2), got {keypoints.shape}"
            )
        return keypoints[:, :2].astype(np.float64)

    def _dataset(self, file: Any, name: str, kinds: str, n_dimensions: int) -> NDArray[Any]:
        """Return an array whose type is one of some `kinds` of NumPy's."""
        try:
            found = np.asarray(file[name][()])
        except (OSError, KeyError, RuntimeError, TypeError, ValueError, MemoryError):
            raise UnusableFile(f"cannot read {name} in {file.filename}") from None
        if found.dtype.kind not in kinds or found.ndim != n_dimensions:
            words = "numbers" if "f" in kinds else "whole numbers"
            raise UnusableFile(
                f"{file.filename}: {name} must hold {words} in {n_dimensions} dimensions, got {found.dtype} in {found.ndim}"
            )
        return found


@contextmanager
def _read(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb"):
            pass
        file = host("h5py", "hloc").File(path, "r", libver="latest")
    except OSError as error:
        # HDF5 puts the reason in brackets, before a colon and the details.
        reason = error.strerror if error.strerror and error.errno else re.sub(r"^.*?\(([^:)]*).*$", r"\1", str(error))
        raise UnusableFile(f"cannot read {path}: {reason}") from None
    with file:
        yield file
