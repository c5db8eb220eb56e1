"""COLMAP databases: the same rows for any jobs, batches and interruptions, and one line for what cannot be used."""

from __future__ import annotations

import csv
import gc
import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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
from two_views import H

from ruzhash_cv import cli, filter_points
from ruzhash_cv.models.distances import sampson_distance, transfer_error
from ruzhash_cv.pipelines import colmap, colmap_database, pair_seed
from ruzhash_cv.pipelines.colmap import COLUMNS, Summary, verify
from ruzhash_cv.pipelines.colmap_database import Database
from ruzhash_cv.pipelines.files import UnusableFile

pycolmap = pytest.importorskip("pycolmap")

Array = NDArray[np.float64]
N_VIEWS, N_POINTS, N_TRUE = 7, 100, 75
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
        for one in range(1, N_VIEWS + 1):
            for two in range(one + 1, N_VIEWS + 1):
                db.write_matches(one, two, matches(rng))
        db.write_matches(*PLANE, matches(rng))
        db.write_matches(*NOTHING, matches(rng, n_true=0))
    return path


@pytest.fixture
def database(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "database.db"))


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


def test_every_pair_that_shares_something_gets_its_true_matches(database: Path) -> None:
    done = verify(database, n_jobs=1)
    found = geometries(database)
    assert done == Summary(N_RIGID + 2, 0, N_RIGID + 1, 100 * (N_RIGID + 2), done.inliers, done.seconds)
    assert done.inliers == sum(len(item.inlier_matches) for item in found.values())
    assert NOTHING not in found
    kept = []
    for item in found.values():
        true = item.inlier_matches[:, 0] == item.inlier_matches[:, 1]
        assert true.mean() > 0.9
        kept.append(true.sum() / N_TRUE)
    # Of a hundred matches a plane is taken for the whole scene now and then.
    assert np.mean(np.array(kept) > 0.85) > 0.9


def test_configuration_and_matrix_say_what_is_seen(database: Path) -> None:
    verify(database, n_jobs=1)
    images, found = views(), geometries(database)
    plane = found.pop(PLANE)
    rows = plane.inlier_matches.T
    assert int(plane.config) == 6
    assert np.median(transfer_error(images[PLANE[0] - 1][rows[0]], images[PLANE[1] - 1][rows[1]], plane.H)) < 1
    for (one, two), item in found.items():
        rows = item.inlier_matches.T
        assert int(item.config) == 3
        assert np.median(sampson_distance(images[one - 1][rows[0]], images[two - 1][rows[1]], item.F)) < 1


def test_a_result_becomes_the_geometry_that_verify_writes(database: Path) -> None:
    verify(database, n_jobs=1)
    with pycolmap.Database.open(database) as db:
        for pair, written in geometries(database).items():
            first, second = (db.read_keypoints(image)[:, :2] for image in pair)
            indices = db.read_matches(*pair)
            result = filter_points(first, second, indices, keep_stationary=False, rng=pair_seed(pair))
            found = colmap.two_view_geometry(result, indices)
            assert found.config == written.config
            np.testing.assert_array_equal(found.inlier_matches, written.inlier_matches)
            for name in ("F", "H"):
                ours, theirs = getattr(found, name), getattr(written, name)
                assert (ours is None) == (theirs is None)
                if ours is not None:
                    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_nothing_kept_is_degenerate_and_matches_come_in_any_form() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (40, 2))
    nothing = colmap.two_view_geometry(filter_points(points[:5], points[:5]), np.zeros((5, 2), int))
    assert (int(nothing.config), nothing.inlier_matches.shape) == (1, (0, 2))
    matches0 = np.where(np.arange(40) < 10, -1, np.arange(40))
    result = filter_points(points, points + 7.0, matches0)
    found = [colmap.two_view_geometry(result, form) for form in (matches0, np.stack([np.arange(40), matches0], axis=1))]
    matches = [cv2.DMatch(row, row, 0.0) for row in range(40)]
    found.append(colmap.two_view_geometry(result, matches))
    for each in found:
        assert (int(each.config), each.inlier_matches.tolist()) == (6, [[row, row] for row in range(10, 40)])
    with pytest.raises(ValueError, match="`result` and `matches` must have the same length, got 40 and 3"):
        colmap.two_view_geometry(result, matches[:3])
    with pytest.raises(TypeError, match="`result` must be a FilterResult, got ndarray"):
        colmap.two_view_geometry(result.inlier_mask, matches)


def test_pairs_with_fewer_than_min_inliers_are_left_out(database: Path) -> None:
    assert verify(database, n_jobs=1, min_inliers=N_POINTS + 1).kept == 0
    assert geometries(database) == {}


def test_pairs_of_less_evidence_than_asked_for_are_left_out(database: Path, tmp_path: Path) -> None:
    verify(database, n_jobs=1, report=tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(newline="") as file:
        rows = [(float(row["evidence"]), int(row["image_id1"]), int(row["image_id2"])) for row in csv.DictReader(file)]
    least = sorted(rows)[len(rows) // 2][0]
    verify(database, n_jobs=1, least_evidence=least, overwrite=True)
    assert set(geometries(database)) == {(one, two) for evidence, one, two in rows if evidence >= least}


def with_keypoints(database: Path, images: list[Array]) -> None:
    with pycolmap.Database.open(database) as db:
        db.clear_keypoints()
        for number, keypoints in enumerate(images, start=1):
            db.write_keypoints(number, keypoints.astype(np.float32))


def n_kept_of(database: Path, rows: slice) -> int:
    """Return how many of the first view's keypoints in `rows` kept their match with the second view."""
    return int(np.isin(np.arange(N_POINTS)[rows], geometries(database)[1, 2].inlier_matches[:, 0]).sum())


def test_strongest_motion_leaves_out_what_moves_on_its_own(database: Path, tmp_path: Path) -> None:
    images, rng = views(), np.random.default_rng(2)
    # In a place of their own, and shifted between the first two views, beside all epipolar lines.
    images[0][:25] = rng.uniform([120, 120], [260, 240], (25, 2))
    images[1][:25] = images[0][:25] + [-80.0, -80.0] + rng.normal(size=(25, 2))
    with_keypoints(database, images)
    every = Path(shutil.copy(database, tmp_path / "every.db"))
    verify(database, n_jobs=1)
    verify(every, n_jobs=1, strongest_motion=False)
    assert n_kept_of(database, slice(25)) <= 5
    assert n_kept_of(every, slice(25)) >= 20


def test_what_stood_still_is_left_out(database: Path, tmp_path: Path) -> None:
    """A watermark of 20 keypoints in a corner, alone in its structure whichever structures are kept."""
    images, mark = views(), np.random.default_rng(3).uniform([20, 20], [140, 60], (20, 2))
    images[0][:20] = images[1][:20] = mark
    with_keypoints(database, images)
    kept = Path(shutil.copy(database, tmp_path / "kept.db"))
    verify(database, n_jobs=1, strongest_motion=False, keep_stationary=False)
    verify(kept, n_jobs=1, strongest_motion=False)
    assert n_kept_of(database, slice(20)) == 0
    assert n_kept_of(kept, slice(20)) >= 18
    assert n_kept_of(database, slice(20, N_TRUE)) > 45


def test_report_has_a_row_for_every_pair(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    done = verify(database, n_jobs=1, report=path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == done.pairs
    assert sum(int(row["inliers"]) for row in rows if row["config"]) == done.inliers
    by_pair = {(int(row["image_id1"]), int(row["image_id2"])): row for row in rows}
    assert by_pair[PLANE]["config"] == "6"
    assert by_pair[PLANE]["name1"] == f"view{PLANE[0]}.jpg"
    assert by_pair[NOTHING]["config"] == ""
    assert by_pair[NOTHING]["reason"]


def test_a_resumed_run_keeps_the_report_s_rows(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, replace, batches = tmp_path / "report.csv", Database.replace, []

    def twice_and_no_more(*arguments: Any) -> None:
        batches.append(0)
        if len(batches) > 2:
            raise KeyboardInterrupt
        replace(*arguments)

    monkeypatch.setattr(Database, "replace", twice_and_no_more)
    with pytest.raises(KeyboardInterrupt):
        verify(database, n_jobs=1, batch_size=4, report=path)
    monkeypatch.undo()
    first = rows_of(path)
    assert len(first) == 12  # 4 of them without their pairs
    with path.open("ab") as file:
        file.write(b"1,2,view")  # as of a killed run
    resumed = verify(database, n_jobs=1, report=path)
    whole = rows_of(path)
    assert whole[:8] == first[:8]
    assert len({(row["image_id1"], row["image_id2"]) for row in whole}) == len(whole) == 8 + resumed.pairs
    assert verify(database, n_jobs=1, report=path).pairs == resumed.pairs - resumed.kept
    assert len(rows_of(path)) == len(whole)


def rows_of(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_killed_run_leaves_the_rows_of_its_pairs(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    code = KILLED.replace("n_jobs=1", "n_jobs=1, report=sys.argv[2]")
    subprocess.run([sys.executable, "-c", code, str(database), str(path)], timeout=120, check=False)
    assert len(geometries(database)) == 8
    assert len(rows_of(path)) == 12
    verify(database, n_jobs=1, report=path)
    assert len({(row["image_id1"], row["image_id2"]) for row in rows_of(path)}) == len(rows_of(path)) == N_RIGID + 2


@pytest.mark.parametrize(
    ("name", "contents", "says"),
    [
        ("report.csv", b"names,of,something\n1,2,3\n", "its columns must be image_id1,image_id2,name1"),
        ("report.csv", ("\ufeff" + ",".join(COLUMNS)).encode(), "its columns must be image_id1"),
        ("report.csv", ";".join(COLUMNS).encode(), "its columns must be image_id1"),
        (
            "report.csv",
            (",".join(COLUMNS) + "\n1,2\n" + "1," * 12 + "1\n").encode(),
            "its row 1 does not have 14 cells",
        ),
        ("report.csv", b"\xff\xfe\x00", "'utf-8' codec can't decode"),
    ],
)
def test_something_else_in_the_report_s_place_is_told_before_the_work(
    database: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, contents: bytes, says: str
) -> None:
    """What a spreadsheet saves begins with a mark or has semicolons."""
    path = tmp_path / name
    path.write_bytes(contents)
    with unchanged(database):
        assert says in refusal(["colmap", str(database), "--report", str(path)], capfd)
    assert path.read_bytes() == contents


def test_two_jobs_write_the_same(database: Path, expected: str) -> None:
    verify(database, n_jobs=2, batch_size=5)
    assert fingerprint(database) == expected


KILLED = """
import os, signal, sys
from ruzhash_cv.pipelines import colmap
from ruzhash_cv.pipelines.colmap_database import Database

write, batches = Database.replace, []

def replace(self, geometries):
    batches.append(0)
    if len(batches) < 3:
        return write(self, geometries)
    def one_and_no_more():
        yield next(iter(geometries))
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, one_and_no_more())

Database.replace = replace
colmap.verify(sys.argv[1], n_jobs=1, batch_size=4)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_killed_run_loses_a_batch_and_goes_on(database: Path, expected: str, n_jobs: int) -> None:
    """The third batch dies within its transaction, after its first row."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(database)], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(geometries(database)) == 8
    resumed = verify(database, n_jobs=n_jobs)
    assert (resumed.skipped, resumed.pairs) == (8, N_RIGID + 2 - 8)
    assert fingerprint(database) == expected


TERMINATED = """
import os, signal, sys
from ruzhash_cv import cli
from ruzhash_cv.pipelines.colmap_database import Database

write = Database.replace

def replace(self, geometries):
    write(self, geometries)
    os.kill(os.getpid(), signal.SIGTERM)

Database.replace = replace
sys.exit(cli.main(["colmap", sys.argv[1], "--n-jobs", "2", "--batch-size", "4"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM cannot be caught there")
def test_sigterm_ends_a_run_without_a_word_and_its_workers(database: Path, expected: str) -> None:
    """pycolmap has a handler of its own for it, which prints where the process stood."""
    command = [sys.executable, "-c", TERMINATED, str(database)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=60)
        assert (process.returncode, said) == (143, b"")
        assert ended(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert len(geometries(database)) == 4
    verify(database, n_jobs=1)
    assert fingerprint(database) == expected


def test_pairs_that_have_a_row_are_skipped_and_overwrite_redoes_them(database: Path, expected: str) -> None:
    foreign = pycolmap.TwoViewGeometry(config=3, inlier_matches=np.zeros((1, 2), np.uint32))
    with pycolmap.Database.open(database) as db:
        db.write_two_view_geometry(1, 2, foreign)
        db.write_two_view_geometry(*NOTHING, foreign)
    assert verify(database, n_jobs=1).skipped == 2
    assert len(geometries(database)[1, 2].inlier_matches) == 1
    assert verify(database, n_jobs=1, overwrite=True).skipped == 0
    assert fingerprint(database) == expected


# The command line, and input of no use


def test_the_rows_of_a_skipped_verification_are_filtered(database: Path, expected: str) -> None:
    with pycolmap.Database.open(database) as db:  # as COLMAP 4.0 and 4.1 write them
        for pair in ((1, 2), NOTHING):
            db.write_two_view_geometry(*pair, pycolmap.TwoViewGeometry())
    assert verify(database, n_jobs=1).skipped == 0
    assert fingerprint(database) == expected


def test_command_prints_a_summary(database: Path, expected: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["colmap", str(database), "--n-jobs", "1"]) == 0
    told = dict(line.split(maxsplit=1) for line in capfd.readouterr().out.splitlines())
    assert (told["pairs"], told["skipped"], told["kept"]) == (str(N_RIGID + 2), "0", str(N_RIGID + 1))
    assert fingerprint(database) == expected


def test_a_finished_run_that_is_run_again_says_so(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["colmap", str(database), "--n-jobs", "1", "--least-evidence", "0", "--min-inliers", "1"]
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM matches WHERE pair_id = ?", (pycolmap.image_pair_to_pair_id(*NOTHING),))
    assert cli.main(arguments) == 0
    capfd.readouterr()
    assert cli.main(arguments) == 0
    assert "nothing to do: all 22 pairs" in capfd.readouterr().err


def refusal(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Return the one line that a command ends with; at the level of the process, where COLMAP's own log would show."""
    capfd.readouterr()
    assert cli.main(arguments) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    print(captured.err, end="")
    return captured.err


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Compare a file but for SQLite's header, which counts how often COLMAP opened it."""
    before = path.read_bytes()
    yield
    assert path.read_bytes()[100:] == before[100:]


def test_missing_database_is_named_and_not_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "absent.db"
    assert f"cannot read {path}: No such file" in refusal(["colmap", str(path)], capfd)
    assert not path.exists()


def test_a_database_without_matches(original: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unmatched.db"
    shutil.copy(original, path)
    with pycolmap.Database.open(path) as db:
        db.clear_matches()
    report = tmp_path / "report.csv"
    report.write_text(",".join(COLUMNS))
    with unchanged(path):
        assert "holds no matches" in refusal(["colmap", str(path), "--report", str(report)], capfd)
    assert report.read_text() == ",".join(COLUMNS)


def test_a_database_of_another_schema(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE images (image_id INTEGER, name TEXT, camera_id INTEGER)")
    connection.close()
    with unchanged(path):
        assert "is no COLMAP database: it has no table 'keypoints'" in refusal(["colmap", str(path)], capfd)


def test_tables_of_the_same_names_and_other_columns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "alike.db"
    with sqlite3.connect(path) as connection:
        for table in ("images", "keypoints", "matches", "two_view_geometries"):
            connection.execute(f"CREATE TABLE {table} (pair_id INTEGER)")
    connection.close()
    with unchanged(path):  # pycolmap would make its other tables in it
        assert "its table 'images' has no column 'image_id'" in refusal(["colmap", str(path)], capfd)


@pytest.mark.parametrize(("contents", "says"), [(b"", "is empty"), (b"no database" * 9, "is no SQLite file")])
def test_a_file_that_is_no_database(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], contents: bytes, says: str
) -> None:
    path = tmp_path / "text.db"
    path.write_bytes(contents)
    with unchanged(path):
        assert says in refusal(["colmap", str(path)], capfd)


def test_a_truncated_database(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    contents = database.read_bytes()
    database.write_bytes(contents[: len(contents) // 2])
    with unchanged(database):
        assert str(database) in refusal(["colmap", str(database)], capfd)


def test_a_database_locked_by_another_process(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, str(database)], text=True, **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline() == "locked\n"
        assert f"cannot write to {database}: database is locked" in refusal(["colmap", str(database)], capfd)
        other.communicate()
    assert geometries(database) == {}


def test_a_database_that_another_run_filters_is_refused(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with colmap_database.opened(database):
        assert f"{database} is in use by another run" in refusal(["colmap", str(database)], capfd)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs users")
def test_a_database_that_may_only_be_read(original: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:  # the folders of tests are for their user alone
        path = Path(shutil.copy(original, folder))
        path.chmod(0o444)
        Path(folder).chmod(0o755)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # root may write to everything
        try:
            message = refusal(["colmap", str(path)], capfd)
        finally:
            os.seteuid(user)
        assert f"cannot write to {path}: attempt to write a readonly database" in message
        assert geometries(path) == {}


def test_a_pair_that_cannot_be_read_is_told_and_the_others_are_done(
    database: Path, tmp_path: Path, expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pycolmap.Database.open(database) as db:
        db.write_matches(1, N_VIEWS + 1, np.array([[0, 0], [3, 500]], np.uint32))
        bare = db.write_image(pycolmap.Image(name="bare.jpg", camera_id=1))
        db.write_matches(1, bare, np.array([[0, 0], [1, 1]], np.uint32))
    report = tmp_path / "report.csv"
    for overwrite in ([], ["--overwrite"]):
        arguments = ["colmap", str(database), "--n-jobs", "1", "--report", str(report), *overwrite]
        assert cli.main(arguments) == 2
        assert capfd.readouterr().err.splitlines() == [
            f"left out view1.jpg and view{N_VIEWS + 1}.jpg: a match names keypoint 500 of image view{N_VIEWS + 1}.jpg, which has 100",
            "left out view1.jpg and bare.jpg: a match names keypoint 1 of image bare.jpg, which has 0",
            f"ruzhash-cv: error: 2 of {N_RIGID + 4} pairs are left out",
        ]
        assert fingerprint(database) == expected
    reasons = {row["name2"]: row["reason"] for row in rows_of(report)}
    assert reasons["bare.jpg"] == "a match names keypoint 1 of image bare.jpg, which has 0"


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_worker_ends_the_command_with_one_line_and_the_next_run_resumes(database: Path, expected: str) -> None:
    command = [sys.executable, "-c", WORKER_KILLED, str(database)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "ruzhash-cv: error: a worker was killed, as it is if memory runs out\n",
    )
    assert 4 <= len(geometries(database)) < N_RIGID
    verify(database, n_jobs=1)
    assert fingerprint(database) == expected


WORKER_KILLED = """
import os, signal, sys
from joblib.externals.loky import get_reusable_executor
from ruzhash_cv import cli
from ruzhash_cv.pipelines.colmap_database import Database

write = Database.replace

def replace(self, geometries):
    write(self, geometries)
    for worker in get_reusable_executor(reuse=True)._processes:
        os.kill(worker, signal.SIGKILL)

Database.replace = replace
sys.exit(cli.main(["colmap", sys.argv[1], "--n-jobs", "2", "--batch-size", "4"]))
"""


def test_damaged_pages_are_told_before_the_work(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """COLMAP may end the process, with traces of its own, when it writes to such a database."""
    with closing(sqlite3.connect(database)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        index = "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'images'"
        (page,) = connection.execute(index).fetchone()
    contents = bytearray(database.read_bytes())
    contents[size * (page - 1) : size * page] = bytes(size)
    database.write_bytes(contents)
    with unchanged(database):
        assert f"{database} is damaged" in refusal(["colmap", str(database)], capfd)


def test_a_full_disk_is_told_before_a_batch_is_written(
    database: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = iter([2**30, 2**30, 2**10])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    assert "less than 64 MB are left on its disk" in refusal(
        ["colmap", str(database), "--n-jobs", "1", "--batch-size", "4"], capfd
    )
    assert len(geometries(database)) == 8


def test_what_cannot_be_closed_is_told_and_never_closed_again() -> None:
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


def test_the_report_never_takes_the_place_of_the_database(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = database.rename(database.with_suffix(".csv"))
    with unchanged(path):
        assert "it is an input" in refusal(["colmap", str(path), "--report", str(path)], capfd)


def test_a_link_named_like_a_part_of_the_report_leads_to_nothing(database: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "report.csv.part").symlink_to(tmp_path / "victim")
    verify(database, n_jobs=1, report=tmp_path / "report.csv")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "report.csv").is_symlink()


@pytest.mark.parametrize(
    ("name", "says"),
    [("report.txt", "end 'report.txt' in .csv"), ("no/r.csv", "no directory"), ("folder.csv", "it is a directory")],
)
def test_a_report_that_cannot_be_written_stops_before_the_work(
    database: Path, capfd: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    (database.parent / "folder.csv").mkdir()
    with unchanged(database):
        assert says in refusal(["colmap", str(database), "--report", str(database.parent / name)], capfd)


def test_without_pycolmap_one_line_says_what_to_install(
    database: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycolmap", None)
    assert 'needs pycolmap: pip install "ruzhash-cv[colmap]"' in refusal(["colmap", str(database)], capfd)


@pytest.mark.parametrize("name", ["min_inliers", "batch_size"])
def test_counts_are_checked(database: Path, name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got 0"):
        verify(database, **options)


def test_what_is_neither_true_nor_false_is_named(database: Path) -> None:
    with pytest.raises(TypeError, match="`keep_stationary` must be True or False, got 'False'"):
        verify(database, keep_stationary="False")  # type: ignore[arg-type]


def test_least_evidence_is_checked(database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"`least_evidence` must be a finite number of at least 0, got -1.0"):
        verify(database, least_evidence=-1.0)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["colmap", str(database), "--least-evidence", "-1"])
    assert "--least-evidence: must be a number from 0 on, got -1" in capfd.readouterr().err


def test_a_database_locked_while_it_is_filtered_says_so(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows written before stay; the others come with the next run."""
    from ruzhash_cv.pipelines.colmap_database import Database

    write, written = Database.replace, []

    def replace(self: Database, geometries: Any) -> None:
        if written:
            monkeypatch.setattr(pycolmap, "DatabaseTransaction", locked)
        written.append(0)
        write(self, geometries)

    def locked(database: Any) -> None:
        raise RuntimeError("[database_sqlite.cc:80] SQLite error: database is locked")

    monkeypatch.setattr(Database, "replace", replace)
    with pytest.raises(UnusableFile, match=r"cannot write to .*: SQLite error: database is locked"):
        verify(database, n_jobs=1, batch_size=5)
    monkeypatch.undo()
    assert len(geometries(database)) == 5


# Pages


def test_every_pair_has_a_page_also_after_a_run_that_goes_on(
    database: Path, tmp_path: Path, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("bokeh")
    pages = tmp_path / "pages"
    assert cli.main(["colmap", str(database), "--html", str(pages), "--images", str(tmp_path), "--n-jobs", "1"]) == 0
    assert fingerprint(database) == expected
    rows = (pages / "pairs.js").read_text(encoding="utf-8")
    assert rows.count("hold(") == N_RIGID + 2 == len(list((pages / "pairs").iterdir()))
    assert '"image1":"view1.jpg","image2":"view2.jpg"' in rows
    # COLMAP's first pixel has its corner at 0.
    assert all('"corner":0.0' in path.read_text(encoding="utf-8") for path in (pages / "pairs").iterdir())
    verify(database, n_jobs=1, html=pages)  # the pair that shares nothing is done again
    assert (pages / "pairs.js").read_text(encoding="utf-8").startswith(rows)


def test_a_page_tells_of_a_pair_that_cannot_be_read(database: Path, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE keypoints SET rows = 3, data = substr(data, 1, 24) WHERE image_id = 1")
    left_out = verify(database, n_jobs=1, html=tmp_path / "pages").left_out
    rows = (tmp_path / "pages" / "pairs.js").read_text(encoding="utf-8")
    assert rows.count("a match names keypoint") == len(left_out) == N_VIEWS - 1


# Cameras


def with_cameras(path: Path, prior: bool, distortion: float = -0.25) -> Path:
    """Give the images of a copy a radial distortion, known or not."""
    with pycolmap.Database.open(path) as db:
        camera = db.read_all_cameras()[0]
        seen = pycolmap.Camera(
            camera_id=camera.camera_id, model="SIMPLE_RADIAL", width=800, height=600, params=[900, 400, 300, distortion]
        )
        seen.has_prior_focal_length = prior
        db.update_camera(seen)
        for image in db.read_all_images():
            plane = (db.read_keypoints(image.image_id)[:, :2].astype(np.float64) - [400, 300]) / 900
            radius = np.square(plane).sum(axis=1, keepdims=True)
            db.update_keypoints(
                image.image_id, (plane * (1 + distortion * radius) * 900 + [400, 300]).astype(np.float32)
            )
    return path


def test_pairs_of_known_cameras_are_calibrated(database: Path) -> None:
    verify(with_cameras(database, prior=True), n_jobs=1)
    found = geometries(database)
    rigid = [item for pair, item in found.items() if max(pair) <= N_VIEWS]
    assert len(rigid) == N_RIGID
    assert [int(item.config) for item in rigid] == [2] * N_RIGID
    for (one, two), item in found.items():
        if max(one, two) > N_VIEWS:
            continue
        angle = np.linspace(-0.3, 0.3, N_VIEWS)[[one - 1, two - 1]]
        turn = np.degrees(item.cam2_from_cam1.rotation.angle())
        assert turn == pytest.approx(np.degrees(angle[1] - angle[0]), abs=0.5)
        moved, matrix = item.cam2_from_cam1, item.cam2_from_cam1.matrix()
        essential = np.cross(matrix[:, 3], matrix[:, :3].T).T
        np.testing.assert_allclose(np.abs(np.sum(essential * item.E)) / np.linalg.norm(item.E), np.sqrt(2.0), rtol=1e-6)
        assert np.linalg.norm(moved.translation) == pytest.approx(1.0)
        assert item.F is not None
        assert len(item.inlier_matches) >= 0.5 * N_TRUE
    assert int(found[PLANE].config) == 6


def test_a_calibrated_geometry_has_the_angle_of_its_rays() -> None:
    one, two = views()[:2]
    camera = np.array([[900.0, 0.0, 400.0], [0.0, 900.0, 300.0], [0.0, 0.0, 1.0]])
    result = filter_points(one, two, cameras=(camera, camera))
    geometry = colmap.two_view_geometry(result, np.stack([np.arange(N_POINTS)] * 2, axis=1))
    assert int(geometry.config) == 2
    assert geometry.tri_angle == pytest.approx(np.radians(result.camera_pose().median_angle))
    assert 0.02 < geometry.tri_angle < 0.2


@pytest.mark.parametrize(
    ("prior", "calibrated", "known"), [(False, None, False), (True, False, False), (False, True, True)]
)
def test_cameras_are_known_where_their_focal_length_is_a_prior_or_the_caller_says_so(
    database: Path, prior: bool, calibrated: bool | None, known: bool
) -> None:
    verify(with_cameras(database, prior), calibrated=calibrated, n_jobs=1)
    rigid = [int(item.config) for pair, item in geometries(database).items() if max(pair) <= N_VIEWS]
    assert rigid.count(2) == (N_RIGID if known else 0)
    assert 3 in rigid or known


def test_the_command_takes_the_flag_of_cameras(database: Path) -> None:
    cli.main(["colmap", str(with_cameras(database, prior=False)), "--calibrated", "--n-jobs", "1"])
    assert {int(item.config) for pair, item in geometries(database).items() if max(pair) <= N_VIEWS} == {2}


def test_a_camera_that_cannot_be_one_is_told_for_its_pairs(database: Path) -> None:
    with pycolmap.Database.open(database) as db:
        camera = db.read_all_cameras()[0]
        camera.params, camera.has_prior_focal_length = [-900.0, 400.0, 300.0], True
        db.update_camera(camera)
    summary = verify(database, n_jobs=1)
    assert summary.kept == 0
    assert all(
        "the camera of image view" in reason and "positive focal length" in reason
        for reason in summary.left_out.values()
    )
    assert len(summary.left_out) == summary.pairs
