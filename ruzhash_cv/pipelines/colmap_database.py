"""A COLMAP database: its pairs, their points, and two-view geometries in place, all through pycolmap."""

from __future__ import annotations

import ctypes
import signal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array
from ruzhash_cv.cameras import Camera, Cameras
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, check_space, locked
from ruzhash_cv.pipelines.hosts import host

#: Images whose keypoints are held in memory.
CACHED_IMAGES = 1000
#: Tables and columns of every version of COLMAP's schema.
TABLES = {
    "images": ("image_id", "name", "camera_id"),
    "keypoints": ("image_id", "rows", "cols", "data"),
    "matches": ("pair_id", "rows", "cols", "data"),
    "two_view_geometries": ("pair_id", "rows", "cols", "data", "config"),
}
#: COLMAP's configuration of two views that were not verified.
UNDEFINED = 0
#: Seconds to wait for another process's transaction.
PATIENCE = 1.0

Pair: TypeAlias = tuple[int, int]
Matches = NDArray[np.uint32]


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open an existing COLMAP database that can be written to.

    `UnusableFile` where it is missing, of another kind, damaged, locked or read-only; it is as it was then. Or where it cannot be
    closed, for a full disk.
    """
    pycolmap = host("pycolmap", "colmap")
    if callable(on_term := signal.getsignal(signal.SIGTERM)):
        with suppress(ValueError):  # not in the main thread
            signal.signal(
                signal.SIGTERM, on_term
            )  # pycolmap's import puts its own in its place, which ends the process
    _check(path)
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
            yield Database(path, database)
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
    except (RuntimeError, ValueError) as error:
        if isinstance(error, UnusableFile):
            raise
        raise UnusableFile(f"{failure}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return the last line of COLMAP's message, without the source location in brackets before it."""
    return (str(error).strip().splitlines() or ["it is damaged"])[-1].rpartition("] ")[2]


def _check(path: Path) -> None:
    """Check a file with SQLite first: pycolmap creates its tables in any file, and raises the same error for all faults."""
    with as_unusable(f"cannot read {path}"), path.open("rb") as file:
        head = file.read(16)
    if head != b"SQLite format 3\0":
        raise UnusableFile(f"{path} is {'no SQLite file' if head else 'empty'}, so it is no COLMAP database")
    address = f"{path.resolve().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, timeout=PATIENCE, isolation_level=None, uri=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            columns = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in TABLES}
            # COLMAP ends the process where a transaction fails on a damaged page. Without descriptors this takes little time.
            there = [table for table in TABLES if columns[table]]
            checks = (connection.execute(f"PRAGMA quick_check({table})").fetchone()[0] for table in there)
            damage = next((said for said in checks if said != "ok"), None)
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise UnusableFile(f"cannot write to {path}: {error}") from None
    except UnicodeDecodeError:  # SQLite's own message holds what it read
        raise UnusableFile(f"{path} is damaged") from None
    if damage is not None:
        raise UnusableFile(f"{path} is damaged: {' '.join(damage.split())}")
    for table, needed in TABLES.items():
        if not columns[table]:
            raise UnusableFile(f"{path} is no COLMAP database: it has no table {table!r}")
        if missing := [name for name in needed if name not in columns[table]]:
            raise UnusableFile(f"{path} is no COLMAP database: its table {table!r} has no column {missing[0]!r}")


class Database:
    """An open `pycolmap.Database` and its path for messages; only the thread that opened it may call its methods."""

    def __init__(self, path: Path, database: Any) -> None:
        self._path, self._database, self._unread = path, database, f"cannot read {path}"
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

    def pairs(self) -> list[Pair]:
        """Return the image ids of the pairs that have raw matches."""
        to_images = host("pycolmap", "colmap").pair_id_to_image_pair
        with _in_one_line(self._unread):
            return [to_images(pair) for pair in self._database.read_num_matches()[0]]

    def has_geometry(self, pair: Pair) -> bool:
        """Whether a pair has a two-view geometry, be it one without matches.

        An undefined one is none: COLMAP before 4.2 writes it where it is told to skip verification.
        """
        with _in_one_line(self._unread):
            geometry = self._database.read_two_view_geometry(*pair) if self._is_written(pair) else None
        return geometry is not None and geometry.config != UNDEFINED

    def matches(self, pair: Pair) -> Matches:
        """Return the raw matches of a pair, shape (m, 2)."""
        with _in_one_line(self._unread):
            found: Matches = self._database.read_matches(*pair)
        return found

    def points(self, pair: Pair) -> tuple[Array, Array]:
        """Return the matched keypoints of a pair in COLMAP's pixels, (m, 2) each."""
        first, second = (self._points_of(*side) for side in zip(pair, self.matches(pair).T, strict=True))
        return first, second

    def cameras(self, pair: Pair, calibrated: bool | None) -> Cameras | None:
        """Return a pair's cameras that are known, None where neither is: all if `calibrated`; None: those of a prior focal length."""
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
                if self._is_written(pair):
                    self._database.delete_two_view_geometry(*pair)
                if geometry is not None:
                    self._database.write_two_view_geometry(*pair, geometry)

    def _is_written(self, pair: Pair) -> bool:
        return bool(self._database.exists_two_view_geometry(*pair))

    def _points_of(self, image: int, rows: Matches) -> Array:
        keypoints = self._keypoints(image)
        if len(rows) and rows.max() >= len(keypoints):
            name = self._names.get(image, image)
            raise UnusableFile(f"a match names keypoint {rows.max()} of image {name}, which has {len(keypoints)}")
        return keypoints[rows].astype(np.float64)

    def _read_keypoints(self, image: int) -> NDArray[np.float32]:
        with _in_one_line(self._unread):
            found: NDArray[np.float32] = self._database.read_keypoints(image)[:, :2].copy()
        return found
