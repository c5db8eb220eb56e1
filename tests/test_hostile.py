"""Whatever arrives: a well-formed answer, or an error that names the argument; of files, one line, and the file as it was.

`HOSTILE_EXAMPLES=5000 pytest tests/test_hostile.py` tries more examples of each test; the default is a few.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hostile import (
    HUGE,
    SIZES,
    Draw,
    both_points,
    camera_of,
    cast,
    correspondences,
    draws,
    matched,
    matches_of,
    picture_of,
    points_of,
    preference_rows,
    spoilt,
)
from hypothesis import HealthCheck, given, settings
from two_views import plane

import ruzhash_cv as rc
from ruzhash_cv import cli, models, paper
from ruzhash_cv.models import Circles, Lines
from ruzhash_cv.pipelines.features import read_image
from ruzhash_cv.pipelines.files import UnusableFile
from ruzhash_cv.printing import table

EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", 8))
hostile = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 100, suppress_health_check=list(HealthCheck)
)
MODELS = "auto", "homography", "fundamental"
pytestmark = pytest.mark.timeout(0 if EXAMPLES > 100 else 300)


def length(points: Any) -> int:
    """Return how many points there are, also in a batch of one pair, (1, n, 2)."""
    shape = np.shape(points)
    return shape[1] if len(shape) == 3 and shape[0] == 1 else shape[0]


def filter_options(draw: Draw) -> dict[str, Any]:
    return draw.some(
        model=draw.option(MODELS, ("affine", "", None, b"auto", np.array(["auto"]))),
        threshold=draw.threshold(),
        pixel=draw.option((1, 0.001, np.float32(2), 1e-300, 1e300, 1000.0), (0, -1.0, np.nan, np.inf, True, None)),
        false_discovery_rate=draw.option((None, 1e-300, 0.01, np.float32(0.5)), (0, 1, -0.1, np.nan, np.inf, True)),
        rng=draw.seed(),
    )


def check_result(result: rc.FilterResult, n: int) -> None:
    """Assert that a result is what its documentation says."""
    mask, scores, p, labels = (
        result.inlier_mask,
        result.anomaly_scores,
        result.inlier_probabilities,
        result.motion_labels,
    )
    for array, dtype in ((mask, bool), (scores, float), (p, float), (labels, np.int64)):
        assert type(array) is np.ndarray
        assert (array.shape, array.dtype) == ((n,), dtype)
    assert ((scores > 0) & (scores <= 1)).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert ((labels >= -1) & (labels < len(result.motions))).all()
    assert mask[labels >= 0].all()
    assert (result.reason is None) == bool(mask.any())
    for row in table(result):
        model = row.structure
        scale = model.matrix[2, 2] if row.kind == "homography" else np.linalg.norm(model.matrix)
        assert abs(scale - 1) < 1e-6 or abs(np.linalg.norm(model.matrix) - 1) < 1e-6
        assert (model.mask.shape, model.mask.dtype) == ((n,), bool)
        assert np.isfinite([model.tolerance, model.noise_scale]).all()
        assert model.tolerance > 0
        assert model.noise_scale >= 0
    for item, motion in enumerate(result.motions):
        assert (motion.mask == (labels == item)).all()
        assert all((plane.mask <= motion.mask).all() for plane in motion.planes)
        assert np.isfinite(motion.evidence)


# The functions


def filter_points(draw: Draw) -> None:
    points1, points2 = both_points(draw)
    options = filter_options(draw)
    before = [np.array(points, copy=True) for points in (points1, points2)] if draw.legal else []
    result = rc.filter_points(points1, points2, **options)
    check_result(result, length(points1))
    for was, points in zip(before, (points1, points2) if before else (), strict=True):
        assert np.array_equal(was, np.asarray(points), equal_nan=was.dtype.kind == "f"), "the input was changed"
        assert not result.inlier_mask[~np.isfinite(was).reshape(-1, 2).all(axis=1)].any()


def filter_points_with_cameras(draw: Draw) -> None:
    """What folds may be refused."""
    points1, points2 = both_points(draw)
    given = [None if draw.chance(5) else camera_of(draw) for _ in range(2)]
    draw.legal = False
    result = rc.filter_points(points1, points2, **filter_options(draw) | {"cameras": tuple(given)})
    check_result(result, length(points1))
    for motion in range(len(result.motions) if all(one is not None for one in given) else 0):
        check_pose(result.camera_pose(motion=motion))


def camera_pose(draw: Draw) -> None:
    pairs = correspondences(draw)
    result = rc.filter_points(pairs[:, :2], pairs[:, 2:])
    cameras = [camera_of(draw) for _ in range(2)]
    draw.legal = False  # a camera with much distortion may have no ray for a pixel
    for motion in range(len(result.motions)):
        check_pose(result.camera_pose(*cameras, motion))


def check_pose(pose: Any) -> None:
    assert (np.abs(pose.rotation @ pose.rotation.T - np.eye(3)) < 1e-6).all()
    assert abs(np.linalg.norm(pose.translation) - 1.0) < 1e-6


def camera(draw: Draw) -> None:
    made = rc.Camera.of(camera_of(draw))
    rays = made.rays(points_of(draw, correspondences(draw)[:, :2]))
    usable = np.isfinite(rays).all(axis=1)
    assert rays.shape[1:] == (3,)
    assert (np.abs(np.linalg.norm(rays[usable], axis=1) - 1.0) < 1e-9).all()
    assert np.isfinite(made.pixels(rays)[usable]).all(), "a ray that came of a pixel leads to none"


def filter_matches(draw: Draw) -> None:
    kp1, kp2, matches, ratio = matched(draw)
    options = filter_options(draw)
    options.pop("pixel", None)
    mask = rc.filter_matches(kp1, kp2, matches, ratio=ratio, **options)
    assert (mask.dtype, mask.shape) == (bool, (len(matches),))
    if not isinstance(options.get("rng", 0), np.random.Generator | None):
        result = rc.filter_points(kp1, kp2, matches, ratio=ratio, **options)
        assert result.inlier_mask.tobytes() == mask.tobytes()
        assert result.has_match[mask].all(), "a row without a match was kept"
    if len(matches) and isinstance(matches[0], (cv2.DMatch, tuple)):
        assert len(rc.select_matches(matches, mask)) == mask.sum()


def find_matrix(function: Callable[..., Any], draw: Draw) -> None:
    points1, points2 = both_points(draw)
    options = draw.some(threshold=draw.threshold(), rng=draw.seed())
    options |= draw.some(method=draw.option((None, cv2.RANSAC, 38), (0, cv2.FM_8POINT, HUGE, -1, 3.0, True)))
    check_matrix(*function(points1, points2, **options), length(points1))


def find_essential_matrix(draw: Draw) -> None:
    points1, points2 = both_points(draw)
    one, other, draw.legal = camera_of(draw), camera_of(draw), False
    forms = (one,), (one, cv2.RANSAC, 0.9), (one, None, other, None), (one, None, other, None, 38, 0.9, 3.0), ()
    matrix, mask = rc.find_essential_matrix(points1, points2, *draw.pick(forms), rng=draw.seed())
    check_matrix(matrix, mask, length(points1))


def check_matrix(matrix: Any, mask: np.ndarray, n: int) -> None:
    assert (mask.shape, mask.dtype) == ((n, 1), np.uint8)
    assert (mask <= (matrix is not None)).all()
    assert matrix is None or (matrix.shape == (3, 3) and np.isfinite(matrix).all())


def find_structures(draw: Draw) -> None:
    points = points_of(draw, correspondences(draw, SIZES[:-2])[:, :2])
    family = draw.option((Lines(), Circles()), (None, "lines", Lines, rc.filter_points))
    scales = draw.option((None, 1e-300, 0.5, np.float32(3), 1e300), (0, -1.0, np.nan, np.inf, True))
    options = draw.some(threshold=draw.threshold(), noise_scale=scales, rng=draw.seed())
    draw.legal = False  # points of other shapes than (n, 2) too are refused
    result = rc.find_structures(points, family, **options)
    k, n = len(result), len(points)
    assert [result.masks.shape, result.labels.shape, result.anomaly_scores.shape] == [(k, n), (n,), (n,)]
    assert ((result.labels >= 0) == result.masks.any(axis=0)).all()
    assert np.isfinite(result.models).all()
    assert (result.reason is None) == (k > 0)


def as_correspondences(draw: Draw) -> None:
    kp1, kp2, matches, ratio = matched(draw)
    pairs = rc.as_correspondences(kp1, kp2, matches, ratio=ratio)
    assert pairs.points1.shape == pairs.points2.shape == (len(matches), 2)
    assert pairs.points1.dtype == pairs.points2.dtype == np.float64


def select_matches(draw: Draw) -> None:
    matches, _ = matches_of(draw, draw.pick([0, 1, 5, 40]))
    mask = draw.rng.random(len(matches) if hasattr(matches, "__len__") else 3) < 0.5
    draw.legal = False  # a row that is kept must hold a DMatch
    mask = draw.option((mask, mask.tolist(), mask[:, None], mask.astype("u1")), (mask[:-1], mask * 0.5, None, 3))
    assert all(isinstance(match, cv2.DMatch) for match in rc.select_matches(matches, mask))


def residuals(function: Callable[..., Any], draw: Draw) -> None:
    points1, points2 = both_points(draw)
    m = draw.pick([0, 1, 5])
    matrices = draw.rng.normal(0, 1, (m, 3, 3)) * draw.pick([1, 1e-300, 1e-160, 1e160, 1e300])
    matrices[draw.rng.random(m) < 0.3] = draw.pick([np.eye(3), np.zeros((3, 3)), np.full((3, 3), np.nan)])
    one = matrices[0] if m else np.eye(3)
    legal = matrices, one, cast(one, "f4"), np.asfortranarray(one), one.tolist(), one[None], cast(one, "g")
    bad = one[:2], one.ravel(), matrices[None], None, one.astype("U3"), one.astype(object), one + 1j, [[1], [1, 2]], 3
    stack = draw.option(legal, bad)
    answer = function(points1, points2, stack)
    n = length(points1)
    assert answer.shape == ((n,) if np.ndim(stack) == 2 else (n, len(stack)))
    assert (answer >= 0).all()


def ruzhash(draw: Draw) -> None:
    n, m, n_hashes = draw.pick([0, 1, 40, 300]), draw.pick([1, 2, 7, 60]), draw.integer(1, 2, 20)
    hashes = paper.ruzhash(preference_rows(draw, n, m), n_hashes=n_hashes, **draw.some(rng=draw.seed()))
    assert (hashes.shape, hashes.dtype) == ((n, n_hashes), np.int64)
    assert ((hashes >= -1) & (hashes < m)).all()


def forest(cls: Any, draw: Draw) -> None:
    grown = cls(
        **draw.some(
            n_trees=draw.integer(1, 2, 40),
            subsample_size=draw.integer(1, 2, 17, 256, 2**31 - 1),
            branching_factor=draw.integer(2, 3, 16, 1000, 2**31 - 1, least=2),
            rng=draw.seed(),
            n_jobs=draw.option((1, 2, -1, None, np.int64(2), 1000), (HUGE, 0, -2, 1.0, True, np.inf)),
        )
    )
    n, m = draw.pick([0, 1, 2, 5, 40, 200]), draw.pick([1, 2, 7, 60])
    rows, others = preference_rows(draw, n, m), preference_rows(draw, draw.pick([0, 1, 50]), m)
    scores = [*grown.fit_anomaly_scores(rows, others), grown.anomaly_scores(others)]
    assert [len(each) for each in scores] == [n, np.shape(others)[0], np.shape(others)[0]]
    assert all(((each > 0) & (each <= 1)).all() for each in scores)
    assert scores[1].tobytes() == scores[2].tobytes()
    assert np.isfinite(grown.path_lengths(rows)).all()


def draw_picture(function: Callable[..., Any], draw: Draw) -> None:
    kp1, kp2, matches, ratio = matched(draw)
    n = len(matches) if hasattr(matches, "__len__") else 3
    scores = draw.rng.random(n) * draw.pick([1, 0, 1e300, 1e-320])
    scores[draw.rng.random(n) < 0.2] = draw.pick([np.nan, np.inf, -np.inf, 0.5])
    mask, scored = draw.rng.random(n) < 0.5, function is rc.draw_scores
    marks = (scores, scores.tolist()) if scored else (mask, mask[:, None], mask.astype("u1"))
    marks = draw.option(marks, (scores[:-1], mask[:-1], None, scores[:, None] > 2 if scored else scores + 0.5))
    width = draw.option((None, 240, 600, 2400), (0, 239, -1, 1.5, True))
    drawn = function(picture_of(draw), kp1, picture_of(draw), kp2, matches, marks, ratio=ratio, max_width=width)
    assert (drawn.dtype, drawn.ndim, drawn.shape[2]) == (np.uint8, 3, 3)
    assert width is None or drawn.shape[1] <= width + 1


def drawn_result(draw: Draw) -> tuple[Any, ...]:
    points1, points2 = both_points(draw, SIZES[:-3])
    result = rc.filter_points(points1, points2)
    result = draw.option((result,), (None, result.inlier_mask, result.motion_labels))
    return picture_of(draw), points1, picture_of(draw), points2, None, result


def draw_structures(draw: Draw) -> None:
    width, most = draw.option((2400, 240, None), (0, -1, True)), draw.option((None, 0, 3, 100), (-1, 0.5, True))
    drawn = rc.draw_structures(*drawn_result(draw), max_width=width, max_lines=most)
    assert (drawn.dtype, drawn.ndim, drawn.shape[2]) == (np.uint8, 3, 3)


def write_html(draw: Draw) -> None:
    options = {"names": ("<script>", "é\udce9"), **draw.some(max_size=draw.option((32, 1600, 10**6), (0, -1, True)))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        rc.write_html(path, *drawn_result(draw), **options)
        page = path.read_text(encoding="utf-8")
    assert "</html>" in page
    assert '<script>"' not in page


FUNCTIONS: dict[str, Callable[[Draw], None]] = {
    "filter_points": filter_points,
    "filter_points, cameras": filter_points_with_cameras,
    "filter_matches": filter_matches,
    "find_structures": find_structures,
    "find_homography": functools.partial(find_matrix, rc.find_homography),
    "find_fundamental_matrix": functools.partial(find_matrix, rc.find_fundamental_matrix),
    "find_essential_matrix": find_essential_matrix,
    "Camera": camera,
    "camera_pose": camera_pose,
    "as_correspondences": as_correspondences,
    "select_matches": select_matches,
    "transfer_error": functools.partial(residuals, models.transfer_error),
    "sampson_distance": functools.partial(residuals, models.sampson_distance),
    "ruzhash": ruzhash,
    "RuzHashForest": functools.partial(forest, paper.RuzHashForest),
    "VoronoiForest": functools.partial(forest, paper.VoronoiForest),
    "draw_matches": functools.partial(draw_picture, rc.draw_matches),
    "draw_scores": functools.partial(draw_picture, rc.draw_scores),
    "draw_structures": draw_structures,
    "write_html": write_html,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@hostile
@given(draw=draws())
def test_hostile_arguments_get_an_answer_or_an_error_that_names_one(name: str, draw: Draw) -> None:
    try:
        FUNCTIONS[name](draw)
    except (TypeError, ValueError, IndexError) as error:
        if draw.legal or type(error) not in (TypeError, ValueError, IndexError) or not re.search(r"`\w+", str(error)):
            raise


def test_every_public_function_gets_hostile_arguments() -> None:
    things = {name: getattr(rc, name) for name in dir(rc) if not name.startswith("_")}
    public = {name for name, thing in things.items() if inspect.isfunction(thing) or name.endswith("Forest")}
    assert public <= set(FUNCTIONS)


# Files, names and the command line


def in_one_line(path: Path, call: Callable[[], Any]) -> Any:
    """Return what a call returns, None where it refuses a file; that is said in one line and leaves the file as it was."""
    before = path.read_bytes()
    try:
        return call()
    except UnusableFile as error:
        message = str(error)
    assert len(message.splitlines()) == 1
    # Of a database the counter of its transactions may change.
    assert [path.read_bytes()[part] for part in (slice(24), slice(28, 92))] == [before[:24], before[28:92]]
    return None


@hostile
@given(draw=draws())
def test_a_spoilt_picture_is_read_or_refused_in_one_line(draw: Draw) -> None:
    image = draw.rng.integers(256, size=(draw.pick([1, 30]), 40, 3)).astype(np.uint8)
    content = cv2.imencode(draw.pick([".png", ".jpg", ".bmp", ".tiff", ".ppm", ".webp"]), image)[1].tobytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture"
        path.write_bytes(spoilt(draw, content))
        image = in_one_line(path, lambda: read_image(path))
    assert image is None or (image.ndim == 3 and image.dtype == np.uint8)


@hostile
@given(draw=draws())
def test_spoilt_hloc_files_are_refused_in_one_line_or_their_pair_is_left_out(draw: Draw) -> None:
    h5py = pytest.importorskip("h5py")
    from ruzhash_cv.pipelines import hloc

    pairs, rows = plane(20), np.arange(20)
    of_rows: list[Any] = [rows, rows - 1, rows + 1, rows * 1000, rows * 0.5, rows[None], b"text", rows.astype("i1"), rows * 0 - 1,
                          rows.astype(">u8"), np.zeros(0, int), np.zeros(3, [("a", "i4")]), rows - 2**40, None]  # fmt: skip
    of_points: list[Any] = [pairs[:, 2:], pairs[:, 2:].astype("f2"), pairs[:, :1], pairs[:5, 2:], pairs[:, 2:] * np.nan, pairs[None],
                            b"text", None, np.zeros((0, 2)), pairs[:, 2:] + 1j]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        features, matches, out = (Path(folder) / f"{name}.h5" for name in ("features", "matches", "out"))
        with h5py.File(features, "w") as file, h5py.File(matches, "w") as matches_file:
            file["a/keypoints"], file["c/keypoints"], matches_file["a/c/matches0"] = pairs[:, :2], pairs[:, 2:], rows
            for holder, name, data in (
                (file, "b/keypoints", draw.pick(of_points)),
                (matches_file, "a/b/matches0", draw.pick(of_rows)),
            ):
                if data is not None:
                    holder[name] = data
        victim = draw.pick([features, matches])
        if broken := draw.chance(3):
            victim.write_bytes(spoilt(draw, victim.read_bytes()))
        done = in_one_line(
            victim, lambda: hloc.filter_matches(features, matches, [("a", "b"), ("a", "c")], out, n_jobs=1)
        )
        assert done is None or broken or ("a", "c") not in done.left_out
        assert (done is not None) == out.exists()


@functools.cache
def database() -> bytes:
    """Return a database of three images, made once."""
    import pycolmap

    pairs = plane(40)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.db"
        with pycolmap.Database.open(path) as db:
            camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=800, height=600, params=[900, 400, 300])
            camera_id = db.write_camera(camera)
            for number, points in enumerate((pairs[:, :2], pairs[:, 2:], pairs[:, 2:] + 9.0), start=1):
                image = db.write_image(pycolmap.Image(name=f"{number}.jpg", camera_id=camera_id))
                db.write_keypoints(image, points.astype(np.float32))
            for pair in ((1, 2), (1, 3), (2, 3)):
                db.write_matches(*pair, np.stack([np.arange(40)] * 2, axis=1).astype(np.uint32))
        return path.read_bytes()


@hostile
@given(draw=draws())
def test_a_spoilt_colmap_database_is_refused_in_one_line_or_filtered(draw: Draw) -> None:
    pytest.importorskip("pycolmap")
    from ruzhash_cv.pipelines import colmap

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database.db"
        path.write_bytes(content := spoilt(draw, database()))
        done = in_one_line(path, lambda: colmap.verify(path, n_jobs=1, progress=False))
    assert done is not None or content != database(), "a whole database was refused"
    assert done is None or done.pairs + done.skipped <= 3


WORDS = ["--threshold", "--model", "auto", "-o", "x.png", "--n-jobs", "0", "1e400", "-1", "--rng", "nan", "--report", "r.csv",
         "--", "--ratio", "", "--save", "\udce9", "no/such.png", "a" * 300, "--no-such-option", "-", "10" * 40, "a\nb"]  # fmt: skip


@hostile
@given(draw=draws())
def test_missing_files_end_in_one_line(draw: Draw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [
        draw.pick(["filter", "colmap", "hloc", *WORDS]),
        *(draw.pick(WORDS) for _ in range(draw.pick([0, 2, 7]))),
    ]
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = cli.main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
    assert (status, len(stderr.getvalue().splitlines())) == (2, 1), stderr.getvalue()
    assert "error: " in stderr.getvalue()
