"""A COLMAP database: its pairs, their points, and two-view geometries in place, all through pycolmap."""

from __future__ import annotations

import ctypes
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.foundation.validation import as_reals, check_same_length
from ruzhash_cv.input.cameras import Camera
from ruzhash_cv.input.correspondences import Matches, as_indices
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, check_space, check_writable, locked, reason_of, silent
from ruzhash_cv.pipelines.report import RESULT_COLUMNS, Row
from ruzhash_cv.pipelines.runs import chosen_matches, strongest_motion
from ruzhash_cv.results.result import FilterResult

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
#: Configurations of two views that COLMAP's mappers load: 0 and 1 are skipped since 4.2.1, 8 by the global mapper.
DEGENERATE, CALIBRATED, UNCALIBRATED, PLANAR_OR_PANORAMIC = 1, 2, 3, 6
#: Of the report.
COLUMNS = ("image_id1", "image_id2", "name1", "name2", "inliers", "config", *RESULT_COLUMNS)
#: What pycolmap raises.
RAISED = RuntimeError, TypeError, ValueError
#: Seconds to wait for another process's transaction.
PATIENCE = 1.0

Pair: TypeAlias = tuple[int, int]
Indices: TypeAlias = NDArray[np.uint32]
#: What SQLite says of a database: the numbers of verified pairs, and of pairs and images whose rows have a false size, and why.
Checked: TypeAlias = tuple[set[int], dict[int, str], dict[int, str]]


@contextmanager
def opened(path: Path) -> Iterator[tuple[Any, Checked]]:
    """Open an existing COLMAP database that can be written to, and yield pycolmap's and what SQLite says of it.

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
        try:
            with silent(pycolmap):
                database = pycolmap.Database.open(path)
        except RuntimeError:
            what = f"damaged, or of a schema that pycolmap {pycolmap.__version__} cannot read"
            raise UnusableFile(f"{path} is {what}") from None
        try:
            yield database, checked
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
        raise UnusableFile(f"cannot close {path}: {reason_of(error)}") from None


def _check(path: Path) -> Checked:
    """Check a file with SQLite first: pycolmap creates its tables in any file, and raises the same error for all faults."""
    with as_unusable(f"cannot read {path}"), path.open("rb") as file:
        head = file.read(16)
    if head != b"SQLite format 3\0":
        raise UnusableFile(f"{path} is {'no SQLite file' if head else 'empty'}, so it is no COLMAP database")
    check_writable(path)  # SQLite begins a transaction in a log beside a read-only file
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
            checked = (
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
    """The `runs.Source` of an open `pycolmap.Database`; only the thread that opened it may call its methods."""

    def __init__(
        self, path: Path, opened: tuple[Any, Checked], calibrated: bool | None, min_inliers: int, only_strongest: bool
    ) -> None:
        self._path, self._unread = path, f"cannot read {path}"
        self._database, (self._verified, self._false_matches, self._false_keypoints) = opened
        self._calibrated, self._min_inliers, self._only_strongest = calibrated, min_inliers, only_strongest
        with as_unusable(self._unread, *RAISED):
            images = self._database.read_all_images()
            self._names = {image.image_id: image.name for image in images}
            self._camera_ids = {image.image_id: image.camera_id for image in images}
            self._cameras = {camera.camera_id: camera for camera in self._database.read_all_cameras()}
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
        with as_unusable(self._unread, *RAISED):
            numbers = [*self._database.read_num_matches()[0], *self._false_matches]
            return [to_images(number) for number in dict.fromkeys(numbers)]

    def is_verified(self, pair: Pair) -> bool:
        """Return whether a pair has a two-view geometry, be it one without matches."""
        return _number(pair) in self._verified

    def matches(self, pair: Pair) -> Indices:
        """Return the raw matches of a pair, shape (m, 2)."""
        if wrong := self._false_matches.get(_number(pair)):
            raise UnusableFile(f"its matches are {wrong}")
        with as_unusable(self._unread, *RAISED):
            matches: Indices = self._database.read_matches(*pair)
        return matches

    def points(self, pair: Pair) -> tuple[Array, Array]:
        """Return the matched keypoints of a pair in COLMAP's pixels, (m, 2) each."""
        first, second = (rows[:, :2] for rows in self._matched(pair))
        return first, second

    def task(self, pair: Pair) -> tuple[Any, ...]:
        """Return the points of a pair, the sizes of their keypoints, and its known cameras."""
        cameras, (first, second) = tuple(map(self._known_camera, pair)), self._matched(pair)
        own: dict[str, Any] = {"sizes": (first[:, 2], second[:, 2])}
        if cameras != (None, None):
            own["cameras"] = cameras
        return pair, first[:, :2], second[:, :2], own

    def _known_camera(self, image: int) -> Camera | None:
        camera, known = self._cameras.get(self._camera_ids.get(image)), self._calibrated
        if camera is None or not (camera.has_prior_focal_length if known is None else known):
            return None
        try:
            return Camera.from_colmap(camera)
        except ValueError as error:
            raise UnusableFile(f"the camera of image {self._names.get(image, image)} is unusable: {error}") from None

    def entry(self, pair: Pair, result: FilterResult, related: bool) -> tuple[Any, int, Row]:
        """Return the geometry of a pair, None if it is to be left without one, its inliers, and its cells of the report."""
        # The matches of a pair that failed may be unreadable.
        kept = result.inlier_mask.any()
        matches = self.matches(pair) if kept else np.zeros((len(result.inlier_mask), 2), np.uint32)
        geometry = two_view_geometry(result, matches, only_strongest=self._only_strongest)
        n_inliers = len(geometry.inlier_matches)
        if n_inliers < self._min_inliers or not related:
            geometry = None
        cells = *pair, *self.names_of(pair), n_inliers, None if geometry is None else int(geometry.config)
        return geometry, 0 if geometry is None else n_inliers, dict(zip(COLUMNS, cells, strict=False))

    def write(self, entries: list[tuple[Pair, Any, bool]]) -> None:
        """Write geometries in one transaction, in place of those there are; the rows of pairs that could not be filtered stay."""
        geometries = [(pair, geometry) for pair, geometry, failed in entries if not failed]
        size = sum(geometry.inlier_matches.nbytes for _, geometry in geometries if geometry is not None)
        check_space(self._path, 2 * size)  # in the write-ahead log, and in the file
        with (
            as_unusable(f"cannot write to {self._path}", *RAISED),
            host("pycolmap", "colmap").DatabaseTransaction(self._database),
        ):
            for pair, geometry in geometries:
                if self._database.exists_two_view_geometry(*pair):
                    self._database.delete_two_view_geometry(*pair)
                if geometry is not None:
                    self._database.write_two_view_geometry(*pair, geometry)

    def _matched(self, pair: Pair) -> tuple[Array, Array]:
        """Return places and sizes of the matched keypoints of a pair, (m, 3) each."""
        first, second = (self._rows_of(*side) for side in zip(pair, self.matches(pair).T, strict=True))
        return first, second

    def _rows_of(self, image: int, rows: Indices) -> Array:
        name = self._names.get(image, image)
        if wrong := self._false_keypoints.get(image):
            raise UnusableFile(f"the keypoints of image {name} are {wrong}")
        if image not in self._names:
            raise UnusableFile(f"the database has no image {image}")
        keypoints = self._keypoints(image)
        if len(rows) and rows.max() >= len(keypoints):
            raise UnusableFile(f"a match names keypoint {rows.max()} of image {name}, which has {len(keypoints)}")
        return keypoints[rows].astype(np.float64)

    def _read_keypoints(self, image: int) -> NDArray[np.float32]:
        with as_unusable(self._unread, *RAISED):
            keypoints = self._database.read_keypoints(image)
        if len(keypoints) == 0:  # of other columns if the image has no row
            return np.zeros((0, 3), np.float32)
        exact = as_reals(keypoints, "keypoints", "(n, m)")
        return np.column_stack([exact[:, :2], sizes_of(exact)]).astype(np.float32)


def sizes_of(keypoints: Array) -> Array:
    """Return the scales (n,) of COLMAP's keypoints: x, y, scale, orientation or x, y and an affine shape. 1 unless all are above 0."""
    sizes, columns = np.ones(len(keypoints)), keypoints.T
    if len(columns) == 4:
        sizes = columns[2]
    elif len(columns) == 6:
        with np.errstate(invalid="ignore"):  # of infinite shapes
            sizes = np.sqrt(np.abs(columns[2] * columns[5] - columns[3] * columns[4]))
    return sizes if ((sizes > 1e-30) & (sizes < 1e30)).all() else np.ones(len(keypoints))


def _number(pair: Pair) -> int:
    """Return COLMAP's number of a pair."""
    return int(host("pycolmap", "colmap").image_pair_to_pair_id(*pair))


def two_view_geometry(result: FilterResult, matches: Matches, *, only_strongest: bool = True) -> Any:
    """Return the kept matches of a pair as a `pycolmap.TwoViewGeometry`, which COLMAP's mappers accept as verified.

    Parameters
    ----------
    result : FilterResult
        Its points are in COLMAP's pixels: the centre of the first pixel is (0.5, 0.5), and (0, 0) in OpenCV. If cameras with
        distortion were given, its matrices are for undistorted pixels: do not keep F and H then.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2) or (n,)
        The matches of the result, as indices of keypoints; see `as_correspondences`.
    only_strongest : bool
        Leave out matches that do not belong to the strongest rigid motion; False: all that were kept.

    Returns
    -------
    pycolmap.TwoViewGeometry
        ``config`` describes the strongest motion: PLANAR_OR_PANORAMIC, with H, if no match shows parallax; CALIBRATED, with E, F, pose
        and angle, if it has an essential matrix; else UNCALIBRATED, with F if it has one. It is DEGENERATE if nothing was kept. Each
        match is in it once. F and H are for undistorted pixels.

    Raises
    ------
    IndexError
        A kept match has an index below 0 or of more than 32 bits.
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
    indices, _, _ = as_indices(matches, filtered=True)
    check_same_length(result.inlier_mask, indices, "`result` and `matches`")
    pycolmap = host("pycolmap", "colmap")
    chosen, index = chosen_matches(result, only_strongest), strongest_motion(result)
    motion = None if index is None else result.motions[index]
    config, models = UNCALIBRATED if chosen.any() else DEGENERATE, dict[str, Any]()
    if index is not None and motion is not None and chosen.any():
        if motion.kind == "homography":
            config, models = PLANAR_OR_PANORAMIC, {"H": motion.matrix}
        elif motion.kind == "essential":
            pose = result.camera_pose(motion=index)
            moved = pycolmap.Rigid3d(pycolmap.Rotation3d(pose.rotation), pose.translation)
            essential = np.cross(pose.translation, pose.rotation.T).T
            angle = np.radians(np.nan_to_num(pose.median_angle))
            models = {"F": motion.fundamental, "E": essential, "cam2_from_cam1": moved, "tri_angle": float(angle)}
            config = CALIBRATED
        else:
            models = {"F": motion.fundamental}
    # COLMAP wants every match once.
    inliers = np.unique(indices[chosen], axis=0)
    outside = inliers[(inliers < 0) | (inliers > np.iinfo(np.uint32).max)]
    if len(outside):  # would become other keypoints
        raise IndexError(f"`matches` must hold indices of keypoints, got {outside[0]}")
    return pycolmap.TwoViewGeometry(config=config, inlier_matches=inliers.astype(np.uint32), **models)
