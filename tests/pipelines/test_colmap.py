"""COLMAP databases: the same rows for any jobs, batches and interruptions, and one line for what cannot be used."""

import csv
import gc
import hashlib
import itertools
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from many_pairs import ended
from naive import apply
from numpy.typing import NDArray
from refusals import Captured, Patch, refusal
from two_views import H

from ruzhash_cv import DO_NOT_RECONSTRUCT, cli, filter_points
from ruzhash_cv.models.distances import sampson_distance, transfer_error
from ruzhash_cv.pipelines import Summary, colmap, colmap_database
from ruzhash_cv.pipelines.colmap import COLUMNS, verify
from ruzhash_cv.pipelines.files import UnusableFile

pycolmap = pytest.importorskip("pycolmap")

Array = NDArray[np.float64]
N_VIEWS, N_POINTS, N_TRUE = 5, 100, 75
#: Pairs of views of the rigid scene, of a plane, and of images that share nothing.
N_RIGID = N_VIEWS * (N_VIEWS - 1) // 2
PLANE, NOTHING = (N_VIEWS + 1, N_VIEWS + 2), (N_VIEWS + 2, N_VIEWS + 3)


def views() -> list[Array]:
    """Return the keypoints of every image: views of points in space, two of a plane, one of nothing."""
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(-1, 1, (N_POINTS, 2)), rng.uniform(3, 6, N_POINTS)])
    images = []
    for angle in np.linspace(-0.3, 0.3, N_VIEWS):
        turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
        seen = points @ turn.T + [-3 * angle, 0.2 * angle, 0.3]
        images.append(900 * seen[:, :2] / seen[:, 2:] + [400, 300] + 0.3 * rng.normal(size=(N_POINTS, 2)))
    flat = rng.uniform(0, 600, (N_POINTS, 2))
    return [*images, flat, apply(H, flat) + 0.3 * rng.normal(size=flat.shape), rng.uniform(0, 600, flat.shape)]


def matches(rng: np.random.Generator, n_true: int = N_TRUE) -> NDArray[np.uint32]:
    """Return matches of which the first `n_true` lead from each keypoint to itself."""
    found = np.stack([np.arange(N_POINTS)] * 2, axis=1)
    found[n_true:, 1] = rng.permutation(N_POINTS)[: N_POINTS - n_true]
    return found.astype(np.uint32)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with raw matches alone."""
    path, rng = tmp_path_factory.mktemp("colmap") / "original.db", np.random.default_rng(1)
    with pycolmap.Database.open(path) as db:
        camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=800, height=600, params=[900, 400, 300])
        camera_id = db.write_camera(camera)
        for number, keypoints in enumerate(views(), start=1):
            image = db.write_image(pycolmap.Image(name=f"view{number}.jpg", camera_id=camera_id))
            db.write_keypoints(image, keypoints.astype(np.float32))
        for pair in itertools.combinations(range(1, N_VIEWS + 1), 2):
            db.write_matches(*pair, matches(rng))
        db.write_matches(*PLANE, matches(rng))
        db.write_matches(*NOTHING, matches(rng, n_true=0))
    return path


@pytest.fixture
def database(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "database.db"))


def execute(path: Path, *statement: Any) -> list[Any]:
    """Return what SQLite answers to a statement, which it commits."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(*statement).fetchall()


def with_pairs(path: Path, *pairs: tuple[int, int]) -> Path:
    """Leave a database with the matches of some pairs alone: there is less to wait for."""
    numbers = ", ".join(str(pycolmap.image_pair_to_pair_id(*pair)) for pair in pairs)
    execute(path, f"DELETE FROM matches WHERE pair_id NOT IN ({numbers})")
    return path


def geometries(path: Path) -> dict[tuple[int, int], Any]:
    with pycolmap.Database.open(path) as db:
        ids, found = db.read_two_view_geometries()
    return {tuple(pycolmap.pair_id_to_image_pair(pair)): item for pair, item in zip(ids, found, strict=True)}


def fingerprint(path: Path) -> str:
    """Return a hash of all two-view geometries, whatever the order they were written in."""
    digest = hashlib.sha256()
    for pair, item in sorted(geometries(path).items()):
        matrices = [np.zeros(0) if matrix is None else matrix for matrix in (item.F, item.H)]
        digest.update(f"{pair} {int(item.config)}".encode() + item.inlier_matches.tobytes())
        digest.update(b"".join(matrix.tobytes() for matrix in matrices))
    return digest.hexdigest()


@pytest.fixture(scope="module")
def expected(original: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The fingerprint of one undisturbed run."""
    path = Path(shutil.copy(original, tmp_path_factory.mktemp("expected") / "database.db"))
    verify(path, n_jobs=1)
    return fingerprint(path)


# What is written


def test_related_pairs_get_their_true_matches_a_configuration_and_a_matrix(database: Path) -> None:
    done = verify(database, n_jobs=1)
    found = geometries(database)
    assert done == Summary(N_RIGID + 2, 0, N_RIGID + 1, 100 * (N_RIGID + 2), done.inliers, done.seconds)
    assert done.inliers == sum(len(item.inlier_matches) for item in found.values())
    assert NOTHING not in found
    images, kept = views(), []
    for pair, item in found.items():
        true = item.inlier_matches[:, 0] == item.inlier_matches[:, 1]
        assert true.mean() > 0.9
        kept.append(true.sum() / N_TRUE)
        points = [images[image - 1][rows] for image, rows in zip(pair, item.inlier_matches.T, strict=True)]
        assert int(item.config) == (6 if pair == PLANE else 3)
        assert np.median(transfer_error(*points, item.H) if pair == PLANE else sampson_distance(*points, item.F)) < 1
    # Of a hundred matches a plane is taken for the whole scene now and then.
    assert np.mean(np.array(kept) > 0.85) > 0.9


def test_nothing_kept_is_degenerate_and_matches_come_in_any_form() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (40, 2))
    nothing = colmap.two_view_geometry(filter_points(points[:5], points[:5]), np.zeros((5, 2), int))
    assert (int(nothing.config), nothing.inlier_matches.shape) == (1, (0, 2))
    matches, matches0 = [cv2.DMatch(row, row, 0.0) for row in range(40)], np.arange(40)
    matches0[:10] = -1
    result = filter_points(points, points + 7.0, matches0)
    for form in (matches0, matches):
        found = colmap.two_view_geometry(result, form)
        assert (int(found.config), found.inlier_matches.tolist()) == (6, [[row, row] for row in range(10, 40)])
    with pytest.raises(ValueError, match="`result` and `matches` must have the same length, got 40 and 3"):
        colmap.two_view_geometry(result, matches[:3])
    with pytest.raises(TypeError, match="`result` must be a FilterResult, got ndarray"):
        colmap.two_view_geometry(result.inlier_mask, matches)
    for shift in (-30, 2**33):
        with pytest.raises(IndexError, match=f"`matches` must hold indices of keypoints, got {shift}"):
            colmap.two_view_geometry(filter_points(points, points + 7.0), np.stack([np.arange(40) + shift] * 2, axis=1))


def test_pairs_of_few_inliers_or_little_evidence_are_left_out(database: Path, tmp_path: Path) -> None:
    assert verify(database, n_jobs=1, min_inliers=N_POINTS + 1, report=tmp_path / "report.csv").kept == 0
    assert geometries(database) == {}
    report = rows_of(tmp_path / "report.csv")
    assert {row["kept"] for row in report} == {"0"}
    few = [row for row in report if float(row["evidence"]) >= DO_NOT_RECONSTRUCT]
    assert few
    assert all(row["reason"] == f"{row['inliers']} inliers, too few: left out" for row in few)
    rows = [(float(row["evidence"]), int(row["image_id1"]), int(row["image_id2"])) for row in report]
    least = np.mean([row[0] for row in sorted(rows)[len(rows) // 2 :][:2]])  # the report rounds
    verify(database, n_jobs=1, least_evidence=least, overwrite=True)
    assert set(geometries(database)) == {(one, two) for evidence, one, two in rows if evidence >= least}
    done = verify(database, n_jobs=1, least_evidence=least, overwrite=True, report=tmp_path / "again.csv")
    again = rows_of(tmp_path / "again.csv")
    assert sum(int(row["kept"]) > 0 for row in again) == done.kept < len(rows)
    weak = [row["reason"] for row in again if 0 < float(row["evidence"]) < least]
    assert weak
    assert all(re.fullmatch(rf"evidence [\d.]+, below {least:g}: left out", reason) for reason in weak)


def with_keypoints(database: Path, images: list[Array]) -> None:
    with pycolmap.Database.open(database) as db:
        db.clear_keypoints()
        for number, keypoints in enumerate(images, start=1):
            db.write_keypoints(number, keypoints.astype(np.float32))


def n_kept_of(database: Path, rows: slice, **options: bool) -> int:
    """Return how many of the first view's keypoints in `rows` keep their match with the second view."""
    verify(database, n_jobs=1, overwrite=True, **options)
    return int(np.isin(np.arange(N_POINTS)[rows], geometries(database)[1, 2].inlier_matches[:, 0]).sum())


def test_strongest_motion_leaves_out_what_moves_on_its_own(database: Path) -> None:
    images, rng = views(), np.random.default_rng(2)
    # In a place of their own, and shifted between the first two views, beside all epipolar lines.
    images[0][:25] = rng.uniform([120, 120], [260, 240], (25, 2))
    images[1][:25] = images[0][:25] + [-80.0, -80.0] + rng.normal(size=(25, 2))
    with_keypoints(with_pairs(database, (1, 2)), images)
    assert n_kept_of(database, slice(25)) <= 5
    assert n_kept_of(database, slice(25), strongest_motion=False) >= 20


def test_static_matches_are_left_out(database: Path) -> None:
    """A watermark of 20 keypoints in a corner, alone in its structure whichever structures are kept."""
    images, mark = views(), np.random.default_rng(3).uniform([20, 20], [140, 60], (20, 2))
    images[0][:20] = images[1][:20] = mark
    with_keypoints(with_pairs(database, (1, 2)), images)
    assert n_kept_of(database, slice(20), strongest_motion=False) >= 18
    assert n_kept_of(database, slice(20), strongest_motion=False, keep_stationary=False) == 0
    assert n_kept_of(database, slice(20, N_TRUE), strongest_motion=False, keep_stationary=False) > 45


def test_report_has_a_row_for_every_pair(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    done = verify(with_pairs(database, (1, 2), PLANE, NOTHING), n_jobs=1, report=path)
    rows = rows_of(path)
    assert len(rows) == done.pairs
    assert sum(int(row["inliers"]) for row in rows if row["config"]) == done.inliers
    by_pair = {(int(row["image_id1"]), int(row["image_id2"])): row for row in rows}
    assert (by_pair[1, 2]["name1"], by_pair[PLANE]["name1"]) == ("view1.jpg", f"view{PLANE[0]}.jpg")
    assert (by_pair[PLANE]["config"], by_pair[NOTHING]["config"]) == ("6", "")
    assert by_pair[NOTHING]["reason"]
    for name, digits in (("evidence", 1), ("seconds", 4)):  # numbers are rounded
        assert max(len(row[name].partition(".")[2]) for row in rows) == digits


def rows_of(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


WRITING = """
import os, signal, sys
from ruzhash_cv import cli
from ruzhash_cv.pipelines import colmap, pairs
from ruzhash_cv.pipelines.colmap_database import Database

pairs.FEW_PAIRS, whole, batches = 0, Database.write, []
"""
KILLED = """
class Deadly(tuple):
    def __iter__(self):
        os.kill(os.getpid(), signal.SIGKILL)

def write(self, entries):
    batches.append(0)
    if len(batches) == 3:
        entries[1] = Deadly(), *entries[1][1:]
    whole(self, entries)

Database.write = write
colmap.verify(sys.argv[1], n_jobs=1, batch_size=4, report=sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_killed_run_loses_a_batch_and_resumes(database: Path, tmp_path: Path, expected: str, n_jobs: int) -> None:
    """The third batch dies within its transaction, after its first row, and after its rows of the report."""
    report = tmp_path / "report.csv"
    done = subprocess.run([sys.executable, "-c", WRITING + KILLED, database, report], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (len(geometries(database)), len(rows_of(report))) == (8, 12)
    resumed = verify(database, n_jobs=n_jobs, batch_size=5, report=report)
    assert (resumed.skipped, resumed.pairs) == (8, N_RIGID + 2 - 8)
    assert fingerprint(database) == expected
    assert len({(row["image_id1"], row["image_id2"]) for row in rows_of(report)}) == len(rows_of(report)) == N_RIGID + 2


TERMINATED = """
def write(self, entries):
    whole(self, entries)
    os.kill(os.getpid(), int(sys.argv[2]))

Database.write = write
sys.exit(cli.main(["colmap", sys.argv[1], "--n-jobs", "2", "--batch-size", "4"]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM cannot be caught there")
@pytest.mark.parametrize(("number", "status"), [(15, 143), (9, -9)])
def test_signals_end_a_run_and_its_workers(database: Path, expected: str, number: int, status: int) -> None:
    """Without a word: pycolmap's handler prints where the process stood, joblib warns of semaphores that are left."""
    command = [sys.executable, "-c", WRITING + TERMINATED, str(database), str(number)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=60)
        assert (process.returncode, said) == (status, b"")
        assert ended(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert len(geometries(database)) == 4
    verify(database, n_jobs=1)
    assert fingerprint(database) == expected


# The command line, and input of no use


def test_a_finished_run_that_is_run_again_says_so(database: Path, capfd: Captured) -> None:
    arguments = ["colmap", str(with_pairs(database, (1, 2), PLANE)), "--n-jobs", "1"]
    assert cli.main(arguments) == 0
    capfd.readouterr()
    assert cli.main(arguments) == 0
    assert "nothing to do: all 2 pairs" in capfd.readouterr().err


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Compare a file but for SQLite's header, which counts how often COLMAP opened it."""
    before = path.read_bytes()[100:] if path.exists() else None
    yield
    assert (path.read_bytes()[100:] if path.exists() else None) == before


def with_pair_number(number: int) -> Callable[[Path], Any]:
    change = "UPDATE matches SET cols = 3, pair_id = ? WHERE pair_id = (SELECT max(pair_id) FROM matches)"
    return lambda path: execute(path, change, (number,))


def with_a_zeroed_index(path: Path) -> None:
    """COLMAP may end the process, with traces, when it writes to such a database."""
    ((size,),) = execute(path, "PRAGMA page_size")
    (page,), *_ = execute(path, "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'images'")
    contents = bytearray(path.read_bytes())
    contents[size * (page - 1) : size * page] = bytes(size)
    path.write_bytes(contents)


def with_tables(*tables: str, columns: str = "image_id, name, camera_id") -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.unlink()
        for table in tables:
            execute(path, f"CREATE TABLE {table} ({columns})")

    return make


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (Path.unlink, "cannot read {}: No such file"),
        (lambda path: path.write_bytes(b""), "{} is empty"),
        (lambda path: path.write_bytes(b"no database" * 9), "{} is no SQLite file"),
        (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "{}"),
        (with_tables("images"), "is no COLMAP database: it has no table 'keypoints'"),
        (with_tables(*colmap_database.TABLES, columns="pair_id"), "its table 'images' has no column 'image_id'"),
        (with_a_zeroed_index, "{} is damaged"),
        (lambda path: execute(path, "DELETE FROM matches"), "{} holds no matches"),
        (with_pair_number(2**62), "cannot read {}: image_id="),
        (with_pair_number(-(2**63)), "cannot read {}: "),
    ],
)
def test_a_database_of_no_use_is_refused_in_one_line(database: Path, capfd: Captured, change: Any, says: str) -> None:
    """pycolmap would create its tables in any file."""
    change(database)
    report = database.with_name("report.csv")
    report.write_text(",".join(COLUMNS))
    with unchanged(database):
        assert says.format(database) in refusal(["colmap", database, "--report", report], capfd)
    assert report.read_text() == ",".join(COLUMNS)


def test_refused_read_only_database_has_nothing_beside_it(database: Path, capfd: Captured, monkeypatch: Patch) -> None:
    execute(database, "PRAGMA journal_mode = WAL")
    beside = sorted(database.parent.iterdir())
    monkeypatch.setattr(os, "access", lambda place, mode: place != database)  # root may write to all files
    assert f"cannot write {database}: permission denied" in refusal(["colmap", database], capfd)
    assert sorted(database.parent.iterdir()) == beside


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("matches SET cols = 0", "its matches are 100 x 0 numbers of 4 bytes in 800 bytes"),
        ("matches SET cols = 1", "its matches are 100 x 1"),
        ("matches SET cols = -2", "its matches are 100 x -2"),
        ("matches SET rows = 1099511627776", "its matches are 1099511627776 x 2"),
        ("matches SET rows = -1", "its matches are -1 x 2"),
        ("matches SET rows = 99", "its matches are 99 x 2"),
        ("matches SET data = NULL", "in 0 bytes"),
        ("matches SET pair_id = -5", "left out view3.jpg and 2147483646: the database has no image 2147483646"),
        ("keypoints SET rows = -1", "the keypoints of image view1.jpg are -1 x"),
        ("keypoints SET cols = 3", "the keypoints of image view1.jpg are 100 x 3"),
        ("two_view_geometries SET rows = -1", None),
        ("two_view_geometries SET cols = 0", None),
    ],
)
def test_rows_of_a_false_size_leave_their_pairs_out(database: Path, capfd: Captured, change: str, says: Any) -> None:
    """pycolmap ends the process, hangs, or runs out of memory; two-view geometries are replaced unread."""
    table = change.partition(" ")[0]
    with pycolmap.Database.open(with_pairs(database, (1, 2), (1, 3), (2, 3))) as db:
        db.write_two_view_geometry(1, 2, pycolmap.TwoViewGeometry(config=3, inlier_matches=np.zeros((1, 2), np.uint32)))
    key = "image_id = 1" if table == "keypoints" else f"pair_id = {pycolmap.image_pair_to_pair_id(1, 2)}"
    execute(database, f"UPDATE {change} WHERE {key}")
    status = cli.main(["colmap", str(database), "--n-jobs", "1", "--overwrite"])
    said = capfd.readouterr().err
    if says is None:
        assert (status, said, len(geometries(database))) == (0, "", 3)
        assert len(geometries(database)[1, 2].inlier_matches) > 1
        return
    n_lost = 2 if table == "keypoints" else 1
    assert status == 2
    assert says in said
    assert said.count("left out view") == n_lost
    # The row of (1, 2) stays.
    written = execute(database, "SELECT rows FROM two_view_geometries ORDER BY pair_id")
    assert (len(written), written[0]) == (4 - n_lost, (1,))


def test_verified_pairs_are_skipped_and_overwrite_filters_them(database: Path, expected: str, capfd: Captured) -> None:
    foreign = pycolmap.TwoViewGeometry(config=3, inlier_matches=np.zeros((1, 2), np.uint32))
    with pycolmap.Database.open(database) as db:
        db.write_two_view_geometry(1, 2, foreign)
        db.write_two_view_geometry(*NOTHING, foreign)
        # As COLMAP 4.0 writes them that skips verification.
        db.write_two_view_geometry(2, 3, pycolmap.TwoViewGeometry())
    assert verify(database, n_jobs=1).skipped == 2
    assert len(geometries(database)[1, 2].inlier_matches) == 1
    assert cli.main(["colmap", str(database), "--n-jobs", "1", "--overwrite"]) == 0
    told = dict(line.split(maxsplit=1) for line in capfd.readouterr().out.splitlines())
    assert (told["pairs"], told["skipped"], told["kept"]) == (str(N_RIGID + 2), "0", str(N_RIGID + 1))
    assert fingerprint(database) == expected


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("report.txt", "end 'report.txt' in .csv"), ("no/r.csv", "no directory"), ("folder.csv", "it is a directory"),
        ("link.csv", "it is an input"), ("other.csv", "its columns must be image_id1,image_id2,name1"),
        ("marked.csv", "its columns must be image_id1"), ("short.csv", "its row 1 does not have 13 cells"),
        ("bytes.csv", "'utf-8' codec can't decode"),
    ],
)  # fmt: skip
def test_an_unusable_report_stops_before_the_work(
    database: Path, monkeypatch: Patch, capfd: Captured, name: str, says: str
) -> None:
    """A table that a spreadsheet saved begins with a mark."""
    monkeypatch.chdir(database.parent)
    Path("folder.csv").mkdir()
    Path("link.csv").symlink_to(database)
    Path("other.csv").write_text("names,of,something\n1,2,3\n")
    Path("marked.csv").write_text("\ufeff" + ",".join(COLUMNS), encoding="utf-8")
    Path("short.csv").write_text(",".join(COLUMNS) + "\n1,2\n" + "1," * 12 + "1\n")
    Path("bytes.csv").write_bytes(b"\xff\xfe\x00")
    with unchanged(database):
        assert says in refusal(["colmap", str(database), "--report", name], capfd)


def test_options_are_checked(database: Path) -> None:
    for option, value, says in (
        ("min_inliers", 0, "at least 1, got 0"),
        ("least_evidence", -1.0, "a finite number of at least 0"),
    ):
        with pytest.raises(ValueError, match=f"`{option}` must be {says}"):
            verify(database, **{option: value})


def test_a_database_that_another_run_filters_is_refused(database: Path, capfd: Captured) -> None:
    with colmap_database.opened(database):
        assert f"{database} is in use by another run" in refusal(["colmap", str(database)], capfd)


def test_a_database_locked_by_another_process(database: Path, capfd: Captured) -> None:
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE')"
    code += "; print('locked', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, str(database)], text=True, **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline() == "locked\n"
        assert f"cannot write to {database}: database is locked" in refusal(["colmap", str(database)], capfd)
        other.communicate()
    assert geometries(database) == {}


def test_an_unreadable_pair_is_named_and_the_others_are_done(database: Path, expected: str, capfd: Captured) -> None:
    with pycolmap.Database.open(database) as db:
        db.write_matches(1, N_VIEWS + 1, np.array([[0, 0], [3, 500]], np.uint32))
        bare = db.write_image(pycolmap.Image(name="bare.jpg", camera_id=1))
        db.write_matches(1, bare, np.array([[0, 0], [1, 1]], np.uint32))
    report = database.with_name("report.csv")
    for overwrite in ([], ["--overwrite"]):
        assert cli.main(["colmap", str(database), "--n-jobs", "1", "--report", str(report), *overwrite]) == 2
        assert capfd.readouterr().err.splitlines() == [
            f"left out view1.jpg and view{N_VIEWS + 1}.jpg: a match names keypoint 500 of image view{N_VIEWS + 1}.jpg, which has 100",
            "left out view1.jpg and bare.jpg: a match names keypoint 1 of image bare.jpg, which has 0",
            f"ruzhash-cv: error: 2 of {N_RIGID + 4} pairs are left out",
        ]
        assert fingerprint(database) == expected
    reasons = {row["name2"]: row["reason"] for row in rows_of(report)}
    assert reasons["bare.jpg"] == "a match names keypoint 1 of image bare.jpg, which has 0"


def test_a_full_disk_is_told_before_a_batch_is_written(database: Path, capfd: Captured, monkeypatch: Patch) -> None:
    free = iter([2**30, 2**30, 2**10])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    report = database.with_name("report.csv")
    said = refusal(["colmap", str(database), "--n-jobs", "1", "--batch-size", "4", "--report", str(report)], capfd)
    assert "less than 64 MB are left on its disk" in said
    assert len(geometries(database)) == len(rows_of(report)) == 8


def test_failed_close_is_reported_and_not_repeated() -> None:
    """COLMAP closes a database again when it is collected, and ends the process if that fails."""
    closed = []

    class Full:
        def close(self) -> None:
            closed.append(0)
            raise RuntimeError("[database_sqlite.cc:603] SQLite error: database or disk is full")

        def __del__(self) -> None:
            closed.append(1)

    with pytest.raises(UnusableFile, match=r"cannot close a\.db: SQLite error: database or disk is full"):
        colmap_database._close(Path("a.db"), Full())
    gc.collect()
    assert closed == [0]


def test_every_pair_has_one_page_also_after_a_resumed_run(database: Path, expected: str, capsys: Captured) -> None:
    pytest.importorskip("bokeh")
    pages, images = database.with_name("pages"), str(database.parent)
    assert cli.main(["colmap", str(database), "--html", str(pages), "--images", images, "--n-jobs", "1"]) == 0
    assert fingerprint(database) == expected
    rows = (pages / "pairs.js").read_text(encoding="utf-8")
    assert rows.count("hold(") == N_RIGID + 2 == len(list((pages / "pairs").iterdir()))
    assert '"image1":"view1.jpg","image2":"view2.jpg"' in rows
    # COLMAP's first pixel has its corner at 0.
    assert all('"corner":0.0' in path.read_text(encoding="utf-8") for path in (pages / "pairs").iterdir())
    verify(database, n_jobs=1, html=pages)  # the pair that shares nothing is done again
    assert sorted((pages / "pairs.js").read_text(encoding="utf-8").splitlines()) == sorted(rows.splitlines())


# Cameras


def with_cameras(path: Path, prior: bool, distortion: float = -0.25) -> Path:
    """Give the images of a copy a radial distortion, known or not."""
    with pycolmap.Database.open(path) as db:
        camera = db.read_all_cameras()[0]
        lens = {"model": "SIMPLE_RADIAL", "params": [900, 400, 300, distortion]}
        seen = pycolmap.Camera(camera_id=camera.camera_id, width=800, height=600, **lens)
        seen.has_prior_focal_length = prior
        db.update_camera(seen)
        for image in db.read_all_images():
            plane = (db.read_keypoints(image.image_id)[:, :2].astype(np.float64) - [400, 300]) / 900
            bent = plane * (1 + distortion * np.square(plane).sum(axis=1, keepdims=True))
            db.update_keypoints(image.image_id, (900 * bent + [400, 300]).astype(np.float32))
    return path


def test_pairs_of_known_cameras_are_calibrated(database: Path) -> None:
    verify(with_cameras(database, prior=True), n_jobs=1)
    found = geometries(database)
    assert int(found.pop(PLANE).config) == 6
    assert [int(item.config) for item in found.values()] == [2] * N_RIGID
    for (one, two), item in found.items():
        angle = np.linspace(-0.3, 0.3, N_VIEWS)[[one - 1, two - 1]]
        moved, matrix = item.cam2_from_cam1, item.cam2_from_cam1.matrix()
        assert np.degrees(moved.rotation.angle()) == pytest.approx(np.degrees(angle[1] - angle[0]), abs=0.5)
        essential = np.cross(matrix[:, 3], matrix[:, :3].T).T
        np.testing.assert_allclose(np.abs(np.sum(essential * item.E)) / np.linalg.norm(item.E), np.sqrt(2.0), rtol=1e-6)
        assert np.linalg.norm(moved.translation) == pytest.approx(1.0)
        assert item.F is not None
        assert len(item.inlier_matches) >= 0.5 * N_TRUE


def test_a_calibrated_geometry_has_the_angle_of_its_rays() -> None:
    one, two = views()[:2]
    camera = np.array([[900.0, 0.0, 400.0], [0.0, 900.0, 300.0], [0.0, 0.0, 1.0]])
    result = filter_points(one, two, cameras=(camera, camera))
    geometry = colmap.two_view_geometry(result, np.stack([np.arange(N_POINTS)] * 2, axis=1))
    assert geometry.tri_angle == pytest.approx(np.radians(result.camera_pose().median_angle))
    assert 0.02 < geometry.tri_angle < 0.2


@pytest.mark.parametrize(
    ("prior", "flag", "known"),
    [(False, [], False), (True, ["--no-calibrated"], False), (False, ["--calibrated"], True)],
)
def test_cameras_are_known_by_a_prior_or_by_the_caller(database: Path, prior: bool, flag: Any, known: bool) -> None:
    with_cameras(with_pairs(database, (1, 4), (2, 5)), prior)
    assert cli.main(["colmap", str(database), *flag, "--n-jobs", "1"]) == 0
    assert [int(item.config) for item in geometries(database).values()] == [2 if known else 3] * 2


def test_pairs_with_doubtful_cameras_are_named(database: Path, capfd: Captured) -> None:
    with pycolmap.Database.open(with_pairs(database, (1, 2), (1, 3))) as db:
        camera = db.read_all_cameras()[0]
        camera.params = [60.0, 400.0, 300.0]
        db.update_camera(camera)
    report = database.with_name("report.csv")
    assert cli.main(["colmap", str(database), "--calibrated", "--n-jobs", "1", "--report", str(report)]) == 0
    doubt = "the first camera sees more than 147 degrees: is its focal length, 60, in pixels?"
    for number, line in zip((2, 3), capfd.readouterr().err.splitlines(), strict=True):
        assert line.startswith(f"view1.jpg and view{number}.jpg: {doubt}; a fundamental matrix")
    assert all(doubt in row["reason"] for row in rows_of(report))


def test_a_camera_that_cannot_be_one_is_told_for_its_pairs(database: Path) -> None:
    with pycolmap.Database.open(database) as db:
        camera = db.read_all_cameras()[0]
        camera.params, camera.has_prior_focal_length = [-900.0, 400.0, 300.0], True
        db.update_camera(camera)
    summary = verify(database, n_jobs=1)
    assert summary.kept == 0
    for reason in summary.left_out.values():
        assert re.search("the camera of image view.*positive focal length", reason)
    assert len(summary.left_out) == summary.pairs


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([[5.0, 6.0, 2.5, 0.3], [7.0, 8.0, 4.0, 1.0]], [2.5, 4.0]),
        ([[5.0, 6.0, 3.0, 0.0, 0.0, 3.0], [7.0, 8.0, 0.0, -8.0, 2.0, 0.0]], [3.0, 4.0]),
        ([[5.0, 6.0], [7.0, 8.0]], [1.0, 1.0]),
        ([[5.0, 6.0, 2.5, 0.3], [7.0, 8.0, 0.0, 1.0]], [1.0, 1.0]),
        ([[5.0, 6.0, 2.5, 0.3], [7.0, 8.0, np.nan, 1.0]], [1.0, 1.0]),
        ([[5.0, 6.0, np.inf, 0.0, 0.0, 0.0], [7.0, 8.0, 0.0, -8.0, 2.0, 0.0]], [1.0, 1.0]),
    ],
)
def test_sizes_are_the_scales_of_colmap_s_keypoints(columns: Any, expected: Any) -> None:
    np.testing.assert_allclose(colmap_database.sizes_of(np.array(columns)), expected)


def test_a_pair_of_a_database_has_the_sizes_of_its_matched_keypoints(database: Path) -> None:
    shapes = np.random.default_rng(0).uniform(1.0, 9.0, N_POINTS)
    rows = np.column_stack([views()[0], shapes, np.zeros((N_POINTS, 2)), shapes]).astype("<f4")
    rows.view("<u4")[0, 0] = 0x7F800001  # a NaN whose conversion NumPy warns of
    execute(database, "UPDATE keypoints SET cols = 6, data = ? WHERE image_id = 1", (rows.tobytes(),))
    execute(database, "DELETE FROM keypoints WHERE image_id = 3")
    with colmap_database.opened(database) as opened:
        source = colmap_database.Database(database, opened, None, 1, True)
        (_, first, _, own), matched = source.task((1, 2)), source.matches((1, 2))
        assert source._rows_of(3, np.zeros(0, np.uint32)).shape == (0, 3)  # an image without keypoints
    np.testing.assert_allclose(own["sizes"][0], shapes[matched[:, 0]], rtol=1e-5)
    np.testing.assert_array_equal(own["sizes"][1], np.ones(len(matched)))
    assert first.shape == (len(matched), 2)
