"""A COLMAP database: its pairs, their points, and two-view geometries in place, all through pycolmap."""

from __future__ import annotations

import ctypes
import signal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array
from ruzhash_cv._extras import host
from ruzhash_cv.cameras import Camera, Cameras
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, check_space, locked

#: Images whose keypoints are held in memory.
CACHED_IMAGES = 1000
#: Tables and columns of every version of COLMAP's schema.
TABLES = {
    "images": ("image_id", "name", "camera_id"),
    "keypoints": ("image_id", "rows", "cols", "data"),
    "matches": ("pair_id", "rows", "cols", "data"),
    "two_view_geometries": ("pair_id", "rows", "cols", "data", "config"),
}
#: Rows whose size is not that of their data, 4 bytes a number. pycolmap trusts it: it ends the process, hangs, or runs out of memory.
FALSE_SIZES = (
    "SELECT {key}, rows, cols, length(data) FROM {table} WHERE (typeof(rows) = 'integer' AND rows >= 0 AND cols IN ({cols}) "
    "AND typeof(data) IN ('blob', 'null') AND ifnull(length(data), 0) = 4 * rows * cols) IS NOT 1"
)
#: Two-view geometries that were verified; COLMAP before 4.2 writes others if it skips verification.
VERIFIED = "SELECT pair_id FROM two_view_geometries WHERE config != 0"
#: Seconds to wait for another process's transaction.
PATIENCE = 1.0

Pair: TypeAlias = tuple[int, int]
Matches = NDArray[np.uint32]


@dataclass(frozen=True)
class Checked:
    """What SQLite says of a database: the pairs that are verified, and the pairs and images whose rows have a false size, and why."""

    verified: set[int]
    matches: dict[int, str]
    keypoints: dict[int, str]


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open an existing COLMAP database that can be written to.

    `UnusableFile` if it is missing, of another kind, damaged, locked or read-only; it stays as it was then. Or if it cannot be
    closed, for a full disk.
    """
    pycolmap = host("pycolmap", "colmap")
    if callable(on_term := signal.getsignal(signal.SIGTERM)):
        with suppress(ValueError):  # not in the main thread
            # pycolmap's import puts its own in its place, which ends the process
            signal.signal(signal.SIGTERM, on_term)
    checked = _check(path)
    with locked(path):
        level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, 4  # it would also log what it raises
        try:
            database = pycolmap.Database.open(path)
        except RuntimeError:
            raise UnusableFile(
                f"{path} is damaged, or of a schema that pycolmap {pycolmap.__version__} cannot read"
            ) from None
        finally:
            pycolmap.logging.minloglevel = level
        try:
            yield Database(path, database, checked)
        except BaseException:
            with suppress(UnusableFile):
                _close(path, database)
            raise
        _close(path, database)


def _close(path: Path, database: Any) -> None:
    """Close a database, which rewrites its file where rows were deleted, and may fail on a full disk."""
    try:
        database.close()
    except RuntimeError as error:
        # The destructor would close it again, which ends the process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
        raise UnusableFile(f"cannot close {path}: {_reason(error)}") from None


@contextmanager
def _in_one_line(failure: str) -> Iterator[None]:
    """Turn pycolmap's errors into an `UnusableFile` of one line."""
    try:
        yield
    except UnusableFile:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        raise UnusableFile(f"{failure}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return the last line of COLMAP's message, without the source location in brackets before it."""
    return (str(error).strip().splitlines() or ["it is damaged"])[-1].rpartition("] ")[2]


def _check(path: Path) -> Checked:
    """Check a file with SQLite first: pycolmap creates its tables in any file, and raises the same error for all faults."""
    with as_unusable(f"cannot read {path}"), path.open("rb") as file:
        head = file.read(16)
    if head != b"SQLite format 3\0":
        raise UnusableFile(f"{path} is {'no SQLite file' if head else 'empty'}, so it is no COLMAP database")
    address = f"{path.resolve().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, timeout=PATIENCE, isolation_level=None, uri=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for table, needed in TABLES.items():
                columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                if not columns:
                    raise UnusableFile(f"{path} is no COLMAP database: it has no table {table!r}")
                if missing := [name for name in needed if name not in columns]:
                    raise UnusableFile(
                        f"{path} is no COLMAP database: its table {table!r} has no column {missing[0]!r}"
                    )
                # COLMAP ends the process if a transaction fails on a damaged page. Without descriptors this takes little time.
                said = connection.execute(f"PRAGMA quick_check({table})").fetchone()[0]
                if said != "ok":
                    raise UnusableFile(f"{path} is damaged: {' '.join(said.split())}")
            checked = Checked(
                {pair for (pair,) in connection.execute(VERIFIED)},
                _false_sizes(connection, "matches", "pair_id", "2"),
                _false_sizes(connection, "keypoints", "image_id", "2, 4, 6"),
            )
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise UnusableFile(f"cannot write to {path}: {error}") from None
    except UnicodeDecodeError:  # SQLite's own message holds what it read
        raise UnusableFile(f"{path} is damaged") from None
    return checked


def _false_sizes(connection: sqlite3.Connection, table: str, key: str, cols: str) -> dict[int, str]:
    """Return the rows of a table whose size is not that of their data, by their keys, and what is wrong with each."""
    rows = connection.execute(FALSE_SIZES.format(table=table, key=key, cols=cols))
    return {
        number: f"{height!r} x {width!r} numbers of 4 bytes in {size or 0} bytes"
        for number, height, width, size in rows
    }


class Database:
    """An open `pycolmap.Database` and its path for messages; only the thread that opened it may call its methods."""

    def __init__(self, path: Path, database: Any, checked: Checked) -> None:
        self._path, self._database, self._checked, self._unread = path, database, checked, f"cannot read {path}"
        with _in_one_line(self._unread):
            images = database.read_all_images()
            self._names = {image.image_id: image.name for image in images}
            self._camera_ids = {image.image_id: image.camera_id for image in images}
            self._cameras = {camera.camera_id: camera for camera in database.read_all_cameras()}
        self._keypoints = lru_cache(CACHED_IMAGES)(self._read_keypoints)

    def names_of(self, pair: Pair) -> tuple[str, str]:
        """Return the names of a pair's images, the number of one that is missing."""
        first, second = (str(self._names.get(image, image)) for image in pair)
        return first, second

    def size_of(self, pair: Pair, side: int) -> tuple[int, int] | None:
        """Return width and height of an image, None if it is missing."""
        camera = self._cameras.get(self._camera_ids.get(pair[side]))
        return None if camera is None else (camera.width, camera.height)

    def pairs(self) -> list[Pair]:
        """Return the image ids of the pairs that have raw matches."""
        to_images = host("pycolmap", "colmap").pair_id_to_image_pair
        with _in_one_line(self._unread):
            numbers = [*self._database.read_num_matches()[0], *self._checked.matches]
            return [to_images(number) for number in dict.fromkeys(numbers)]

    def is_verified(self, pair: Pair) -> bool:
        """Return whether a pair has a two-view geometry, be it one without matches."""
        return _number(pair) in self._checked.verified

    def matches(self, pair: Pair) -> Matches:
        """Return the raw matches of a pair, shape (m, 2)."""
        if wrong := self._checked.matches.get(_number(pair)):
            raise UnusableFile(f"its matches are {wrong}")
        with _in_one_line(self._unread):
            matches: Matches = self._database.read_matches(*pair)
        return matches

    def points(self, pair: Pair) -> tuple[Array, Array]:
        """Return the matched keypoints of a pair in COLMAP's pixels, (m, 2) each."""
        first, second = (self._points_of(*side) for side in zip(pair, self.matches(pair).T, strict=True))
        return first, second

    def cameras(self, pair: Pair, calibrated: bool | None) -> Cameras | None:
        """Return a pair's known cameras, None if there are none: all if `calibrated`; None: those of a prior focal length."""
        first, second = (self._camera_of(image, calibrated) for image in pair)
        return None if first is None and second is None else (first, second)

    def _camera_of(self, image: int, calibrated: bool | None) -> Camera | None:
        camera = self._cameras.get(self._camera_ids.get(image))
        trusted = camera is not None and (camera.has_prior_focal_length if calibrated is None else calibrated)
        if not trusted:
            return None
        try:
            return Camera.from_colmap(camera)
        except ValueError as error:
            raise UnusableFile(f"the camera of image {self._names.get(image, image)} is unusable: {error}") from None

    def replace(self, geometries: Iterable[tuple[Pair, Any]]) -> None:
        """Write two-view geometries in one transaction in place of those there are; None: leave a pair without."""
        geometries = list(geometries)
        size = sum(geometry.inlier_matches.nbytes for _, geometry in geometries if geometry is not None)
        check_space(self._path, 2 * size)  # in the write-ahead log, and in the file
        with (
            _in_one_line(f"cannot write to {self._path}"),
            host("pycolmap", "colmap").DatabaseTransaction(self._database),
        ):
            for pair, geometry in geometries:
                if self._database.exists_two_view_geometry(*pair):
                    self._database.delete_two_view_geometry(*pair)
                if geometry is not None:
                    self._database.write_two_view_geometry(*pair, geometry)

    def _points_of(self, image: int, rows: Matches) -> Array:
        name = self._names.get(image, image)
        if wrong := self._checked.keypoints.get(image):
            raise UnusableFile(f"the keypoints of image {name} are {wrong}")
        keypoints = self._keypoints(image)
        if len(rows) and rows.max() >= len(keypoints):
            raise UnusableFile(f"a match names keypoint {rows.max()} of image {name}, which has {len(keypoints)}")
        return keypoints[rows].astype(np.float64)

    def _read_keypoints(self, image: int) -> NDArray[np.float32]:
        with _in_one_line(self._unread):
            keypoints: NDArray[np.float32] = self._database.read_keypoints(image)[:, :2].copy()
        return keypoints


def _number(pair: Pair) -> int:
    """Return COLMAP's number of a pair."""
    return int(host("pycolmap", "colmap").image_pair_to_pair_id(*pair))
