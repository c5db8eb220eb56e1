"""hloc's HDF5 files: lists of pairs, features and matches to read, and new files that appear when they are complete."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.foundation.arrays import Array, Rows
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.foundation.validation import as_reals
from ruzhash_cv.input.cameras import Camera
from ruzhash_cv.pipelines.files import (
    UnusableFile,
    as_unusable,
    check_space,
    locked,
    parts_of,
    reason_of,
    silent,
    written_beside,
)
from ruzhash_cv.pipelines.report import RESULT_COLUMNS, Row
from ruzhash_cv.pipelines.runs import Names, chosen_matches
from ruzhash_cv.results.result import FilterResult

#: COLMAP's pixels are OpenCV's, which hloc's features have, and so much more.
PIXEL_CENTRE = 0.5
MOST_INT16 = 32767
#: Of the report.
COLUMNS = ("name1", "name2", "inliers", *RESULT_COLUMNS)

#: Images whose keypoints are held in memory.
CACHED_IMAGES = 1000
#: Bytes that a stored byte may stand for: deflate, HDF5's compression, packs no tighter.
PACKED = 1032
#: What h5py raises for spoilt files.
SPOILT = (OSError, LookupError, RuntimeError, TypeError, ValueError, MemoryError)


@contextmanager
def read_hdf5(path: Path) -> Iterator[Any]:
    """Open a file for reading."""
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


@contextmanager
def new_hdf5(path: Path) -> Iterator[Any]:
    """Give an empty file, which is renamed to `path` at the end of the block; `UnusableFile` if another run writes it.

    The unfinished file of a run that was killed is removed.
    """
    check_space(path)
    for part in parts_of(path):
        with suppress(OSError), locked(part, path) as is_held:
            if is_held:
                part.unlink()
    with (
        as_unusable(f"cannot write {path}"),
        written_beside(path) as part,
        locked(part, path),
        # HDF5's lock would be a second one.
        host("h5py", "hloc").File(part, "w", locking=False, libver="latest") as file,
    ):
        yield file


def listed_pairs(pairs: str | PathLike[str] | Iterable[Names]) -> Iterator[tuple[Names, str]]:
    """Yield the pairs of hloc's list, two names a line, or given ones, and the line of each, for messages.

    Names may hold bytes that are not UTF-8.
    """
    if not isinstance(pairs, (str, PathLike)):
        yield from ((pair, "") for pair in pairs)
        return
    path = Path(pairs)
    with as_unusable(f"cannot read {path}"):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    for number, line in enumerate(text.splitlines(), start=1):
        names, where = line.split(), f"{path}, line {number}: "
        if len(names) == 2:
            yield (names[0], names[1]), where
        elif names:
            raise UnusableFile(f"{where}two names of pictures are needed, got {len(names)}: {line!r}")


class Files:
    """The `runs.Source` of hloc's features and matches, with the stored group of each pair. `output` is to be opened as a `target`."""

    output: Any

    def __init__(
        self, features: Any, matches: Any, pairs: str | PathLike[str] | Iterable[Names], cameras: dict[str, Camera], target: Path,
        only_strongest: bool
    ) -> None:  # fmt: skip
        self._features, self._matches = features, matches
        self._cameras, self._target, self._only_strongest = cameras, target, only_strongest
        self.keypoints = lru_cache(CACHED_IMAGES)(self._read_keypoints)
        self.sizes = lru_cache(CACHED_IMAGES)(self._read_sizes)
        self.groups = self._find(pairs)

    def names_of(self, pair: Names) -> Names:
        """Return the names of a pair's images."""
        return pair

    def points(self, pair: Names) -> tuple[Array, Array]:
        """Return the matched keypoints of a pair, (m, 2) each."""
        rows, partners = self._matched(pair)
        return self.keypoints(pair[0])[rows], self.keypoints(pair[1])[partners]

    def task(self, pair: Names) -> tuple[Any, ...]:
        """Return the matched keypoints of a pair, (m, 2) each, their sizes if known, and its known cameras."""
        first, second = self.points(pair)
        cameras = tuple(map(self._cameras.get, pair))
        own: dict[str, Any] = {}
        sizes1, sizes2 = map(self.sizes, pair)
        if sizes1 is not None and sizes2 is not None:
            rows, partners = self._matched(pair)
            own["sizes"] = sizes1[rows], sizes2[partners]
        if cameras == (None, None):
            return pair, first, second, own
        return pair, first + PIXEL_CENTRE, second + PIXEL_CENTRE, own | {"cameras": cameras}

    def entry(self, pair: Names, result: FilterResult, related: bool) -> tuple[Any, int, Row]:
        """Return the datasets of a group, its matches with -1 for the rejected and their scores, its inliers, and its cells."""
        size = 0
        with suppress(UnusableFile):
            size = len(self._entries(pair))
        matches, scores = np.full(size, -1, np.int16), np.zeros(size, np.float16)
        if related:
            rows, partners = self._matched(pair)
            kept = chosen_matches(result, self._only_strongest)
            if len(self.keypoints(pair[1])) > MOST_INT16:
                matches = matches.astype(np.int32)
            matches[rows[kept]] = partners[kept]
            scores[rows] = 1.0 - result.anomaly_scores
        inliers = int((matches >= 0).sum())
        datasets = {"matches0": matches, "matching_scores0": scores}
        return datasets, inliers, dict(zip(COLUMNS, (*pair, inliers), strict=False))

    def write(self, entries: list[tuple[Names, Any, bool]]) -> None:
        """Write groups; one of a pair that could not be filtered has no match."""
        for pair, datasets, _ in entries:
            check_space(self._target)
            for name, values in datasets.items():
                self.output.create_dataset(f"{self.groups[pair]}/{name}", data=values)

    def _find(self, pairs: str | PathLike[str] | Iterable[Names]) -> dict[Names, str]:
        """Return the stored group of every pair, by its names in the order of the group.

        `UnusableFile` for a pair that is not there, and for two pairs with one group.
        """
        groups: dict[Names, str] = {}
        firsts: dict[str, tuple[Names, str]] = {}
        for names, where in listed_pairs(pairs):
            for name in names:
                if not _is_there(self._features, name):
                    raise UnusableFile(f"{where}image {name!r} is not in {self._features.filename}")
            group, ordered = self._group(names, where)
            other, there = firsts.setdefault(group, (ordered, where))
            if other != ordered:
                raise UnusableFile(f"{where}{ordered} and {there}{other} have one group of matches, {group!r}")
            groups[ordered] = group
        if not groups:
            raise UnusableFile("the list of pairs is empty")
        return groups

    def _group(self, names: Names, where: str) -> tuple[str, Names]:
        """Return where a pair is: hloc's groups are a-b/c, formerly a-b_c, for the names a/b and c; others keep a/b/c."""
        one, two = names
        plain = {name: name.replace("/", "-") for name in names}
        for separator, spelt in (("/", plain), ("_", plain), ("/", {name: name for name in names})):
            for first, second in ((one, two), (two, one)):
                group = "/".join(_levels(f"{spelt[first]}{separator}{spelt[second]}"))
                if _is_there(self._matches, f"{group}/matches0"):
                    return group, (first, second)
        raise UnusableFile(f"{where}no matches of {one!r} and {two!r} in {self._matches.filename}")

    def _entries(self, pair: Names) -> NDArray[Any]:
        """Return the stored matches of a pair: for each keypoint of the first image its partner, or -1."""
        return _dataset(self._matches, f"{self.groups[pair]}/matches0", "iu", 1)

    def _matched(self, pair: Names) -> tuple[Rows, Rows]:
        """Return the keypoints of both images that are matched."""
        entries = self._entries(pair)
        rows = np.flatnonzero(entries != -1)
        partners = entries[rows].astype(np.int64)
        if entries.dtype == np.int16 and len(self.keypoints(pair[1])) > MOST_INT16:
            partners %= 2**16  # hloc's int16 wraps above 32,767
        for name, used in zip(pair, (rows, partners), strict=True):
            count = len(self.keypoints(name))
            if len(used) and not (used.min() >= 0 and used.max() < count):
                wrong = used.max() if used.min() >= 0 else used.min()
                place = f"{self._matches.filename}: {self.groups[pair]}"
                raise UnusableFile(f"{place} names keypoint {wrong} of {name!r}, which has {count}")
        return rows, partners

    def size_of(self, pair: Names, side: int) -> tuple[int, int] | None:
        """Return width and height of an image, None if the file does not hold them."""
        with suppress(UnusableFile, ValueError, OverflowError):
            width, height = map(int, _dataset(self._features, f"{pair[side]}/image_size", "iuf", 1).tolist())
            return width, height
        return None

    def _read_keypoints(self, name: str) -> Array:
        keypoints = _dataset(self._features, f"{name}/keypoints", "iuf", 2)
        if keypoints.shape[1] < 2:
            place = f"{self._features.filename}: keypoints of {name!r}"
            raise UnusableFile(f"{place} must have shape (n, 2), got {keypoints.shape}")
        return as_reals(keypoints[:, :2], "keypoints", "(n, 2)")

    def _read_sizes(self, name: str) -> Array | None:
        """Return the scales of keypoints, None unless there is one above 0 for each."""
        if not _is_there(self._features, f"{name}/scales"):
            return None
        sizes = as_reals(_dataset(self._features, f"{name}/scales", "iuf", 1), "scales", "(n,)")
        is_usable = len(sizes) == len(self.keypoints(name)) and ((sizes > 0.0) & np.isfinite(sizes)).all()
        return sizes if is_usable else None


def _levels(name: str) -> list[str]:
    return [level for level in name.split("/") if level not in ("", ".")]


def _is_there(file: Any, name: str) -> bool:
    """Return whether a name leads to something without links, which may lead into other files, and to pipes that block."""
    hard, here = host("h5py", "hloc").h5l.TYPE_HARD, file
    with suppress(UnicodeEncodeError):  # HDF5 has no names that are not UTF-8
        try:
            for level in _levels(name):
                links = getattr(here.id, "links", None)
                encoded = level.encode()
                if links is None or not links.exists(encoded) or links.get_info(encoded).type != hard:
                    return False
                here = here[level]
            return True
        except SPOILT as error:
            raise UnusableFile(f"{file.filename} is no HDF5 file, or a spoilt one: {reason_of(error)}") from None
    return False


def _dataset(file: Any, name: str, kinds: str, n_dimensions: int) -> NDArray[Any]:
    """Return an array whose type is one of some `kinds` of NumPy's. It is read if the file itself holds as much as it claims."""
    if not _is_there(file, name):
        raise UnusableFile(f"cannot read {name} in {file.filename}")
    try:
        dataset = file["/".join(_levels(name))]
        kind, shape = dataset.dtype.kind, dataset.shape
        stored = dataset.id.get_storage_size() * (PACKED if dataset.id.get_create_plist().get_nfilters() else 1)
        if dataset.external or dataset.is_virtual or dataset.nbytes > stored:
            raise UnusableFile(f"{name} in {file.filename} claims more than the file holds, {dataset.nbytes} bytes")
        if kind in kinds and len(shape) == n_dimensions:
            return np.asarray(dataset[()])
    except UnusableFile:
        raise
    except (*SPOILT, AttributeError):  # of a group in its place
        raise UnusableFile(f"cannot read {name} in {file.filename}") from None
    words = "numbers" if "f" in kinds else "whole numbers"
    raise UnusableFile(
        f"{file.filename}: {name} must hold {words} in {n_dimensions} dimensions, got {dataset.dtype} in {len(shape)}"
    )


def cameras_of(model: Path) -> dict[str, Camera]:
    """Return the cameras of a COLMAP model's images, by the images' names."""
    pycolmap = host("pycolmap", "colmap")
    with as_unusable(f"cannot read the cameras of {model}", RuntimeError, ValueError), silent(pycolmap):
        read = pycolmap.Reconstruction(model)
        return {image.name: Camera.from_colmap(read.cameras[image.camera_id]) for image in read.images.values()}
