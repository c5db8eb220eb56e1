"""One function per public name: draw its arguments, call it, look at the answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from inputs import (
    HUGE,
    SIZES,
    Array,
    Draw,
    cast,
    correspondences,
    dressed,
    matched,
    matches_of,
    points_of,
    preference_rows,
)
from scipy import sparse

import ruzhash_cv
from ruzhash_cv import paper
from ruzhash_cv.families import Circles, Lines

Target = Callable[[Draw], float | None]
MODELS = ("auto", "homography", "fundamental")


class AnswerError(AssertionError):
    """An answer that is not well-formed, or no answer."""


def claim(true: Any, message: str) -> None:
    """Raise unless `true`."""
    if not np.all(true):
        raise AnswerError(message)


def length(points: Any) -> int:
    """Return how many points there are, also in a batch of one pair, (1, n, 2)."""
    shape = np.shape(points)
    return shape[1] if len(shape) == 3 and shape[0] == 1 else shape[0]


def filter_options(draw: Draw) -> dict[str, Any]:
    thresholds = (None, 1e-300, 1e-3, 0.5, 3, np.float32(3), 50.0, 1e6, 1e300)
    return draw.some(
        model=draw.option(MODELS, ("affine", "", None, b"auto", np.array(["auto"]))),
        threshold=draw.option(thresholds, (0, -1.0, np.nan, np.inf, True, 10**600)),
        pixel=draw.option((1, 0.001, np.float32(2), 1e-300, 1e300, 1000.0), (0, -1.0, np.nan, np.inf, True, None)),
        false_discovery_rate=draw.option((None, 1e-300, 0.01, np.float32(0.5)), (0, 1, -0.1, np.nan, np.inf, True)),
        rng=draw.seed(),
    )


def check_result(result: Any, n: int) -> None:
    """Raise unless a FilterResult is what its documentation says."""
    mask, scores, p, labels = result.inlier_mask, result.anomaly_scores, result.inlier_probabilities, result.labels
    for array, dtype in ((mask, bool), (scores, float), (p, float), (labels, np.int64)):
        claim(type(array) is np.ndarray and array.shape == (n,) and array.dtype == dtype, f"{n} matches: {array!r}")
    claim((scores > 0) & (scores <= 1), f"scores from {scores.min(initial=1)} to {scores.max(initial=0)}")
    claim((p >= 0) & (p <= 1), "probabilities out of [0, 1]")
    claim((labels >= -1) & (labels < len(result.models)), "labels point nowhere")
    claim(mask[labels >= 0], "a flagged match has a label")
    claim((result.reason is None) == bool(result.models), f"reason {result.reason!r} with {len(result.models)} models")
    for item, model in enumerate(result.models):
        claim(np.isfinite(model.matrix), f"model {item} is {model.matrix}")
        claim(abs(np.linalg.norm(model.matrix) - 1) < 1e-6, f"model {item} is not of unit norm: {model.matrix}")
        claim(model.support == (labels == item).sum(), f"support of model {item}")
        claim(np.isfinite([model.tolerance, model.noise_scale, model.evidence]), f"{model}")
        claim(model.tolerance > 0 and model.noise_scale >= 0, f"{model}")


def filter_points(draw: Draw) -> None:
    pairs = correspondences(draw, draw.pick(SIZES))
    points1, points2 = points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:])
    options = filter_options(draw)
    before = [np.array(points, copy=True) for points in (points1, points2)] if draw.legal else []
    result = ruzhash_cv.filter_points(points1, points2, **options)
    check_result(result, length(points1))
    if not draw.legal:
        return
    for was, points in zip(before, (points1, points2), strict=True):
        claim(np.array_equal(was, np.asarray(points), equal_nan=was.dtype.kind == "f"), "the input was changed")
    usable = np.isfinite(before[0]).reshape(-1, 2).all(1) & np.isfinite(before[1]).reshape(-1, 2).all(1)
    claim(not result.inlier_mask[~usable].any(), "a match without a position was kept")
    if not isinstance(options.get("rng", 0), np.random.Generator | None):
        again = ruzhash_cv.filter_points(points1, points2, **options)
        claim(again.anomaly_scores.tobytes() == result.anomaly_scores.tobytes(), "twice is not the same")


def camera_pose(draw: Draw) -> None:
    pairs = correspondences(draw, draw.pick(SIZES))
    result = ruzhash_cv.filter_points(pairs[:, :2], pairs[:, 2:])
    absurd = (np.zeros((3, 3)), np.full((3, 3), np.nan), np.eye(2), None, [1.0, 2.0, 3.0])
    lengths = draw.pick(((700.0, 700.0), (1.0, 1e4), (1e-3, 1e6)))
    cameras = [
        draw.option((np.array([[f, 0.0, 320.0], [0.0, f, 240.0], [0.0, 0.0, 1.0]]), np.eye(3)), absurd) for f in lengths
    ]
    if draw.legal and not result.motions:
        return
    for motion in range(max(len(result.motions), 1)):
        rotation, translation = result.camera_pose(*cameras, motion)
        claim(np.isfinite(rotation) & (np.abs(rotation @ rotation.T - np.eye(3)) < 1e-6), f"rotation {rotation}")
        claim(abs(np.linalg.norm(translation) - 1.0) < 1e-6, f"translation {translation}")


def camera_of(draw: Draw) -> Any:
    """Something that stands for a camera, with a little distortion, much of it, or a fisheye's."""
    f = draw.pick((1e-3, 300.0, 700.0, 1e6))
    matrix = np.array([[f, 0.0, 320.0], [0.0, f, 240.0], [0.0, 0.0, 1.0]])
    bad = (
        np.zeros((3, 3)),
        -matrix,
        np.full((3, 3), np.nan),
        np.eye(2),
        None,
        matrix.T,
        (matrix, [0.1]),
        (matrix, [np.nan] * 4),
    )
    little, much = draw.rng.normal(0, 0.05, 5), draw.rng.normal(0, 5.0, draw.pick([4, 8, 12, 14]))
    made = ruzhash_cv.Camera(matrix, [0.05, 0.0, 0.0, 0.0], fisheye=True), ruzhash_cv.Camera.equirectangular(640)
    return draw.option((matrix, matrix.tolist(), (matrix, None), (matrix, little), (matrix, much), *made), bad)


def camera(draw: Draw) -> None:
    made = ruzhash_cv.Camera.of(camera_of(draw))
    rays = made.rays(points_of(draw, correspondences(draw, draw.pick(SIZES))[:, :2]))
    there = np.isfinite(rays).all(axis=1)
    claim(rays.ndim == 2 and rays.shape[1] == 3, f"rays {rays.shape}")
    claim(np.abs(np.linalg.norm(rays[there], axis=1) - 1.0) < 1e-9, "a ray is not of length 1")
    back = made.pixels(rays)
    claim(np.isfinite(back[there]), "a ray that came of a pixel leads to none")
    claim(made.pixels_per_radian(rays)[there] > 0.0, "a small angle is no pixels")


def rays_of(draw: Draw, points: Array) -> Array:
    """Rays of any length through points, all round; sometimes one of length 0, of none, or of two numbers."""
    rays = np.column_stack([points - 300.0, draw.rng.normal(0, 400.0, len(points))])
    with np.errstate(over="ignore"):
        rays *= draw.pick((1e-300, 1.0, 1e300))
    if draw.chance(0.2) and len(rays):
        rays[draw.rng.integers(len(rays))] = draw.pick((0.0, np.nan, np.inf))
    return rays[:, : draw.pick((3, 3, 3, 3, 2))]


def cameras(draw: Draw) -> None:
    """The filter with cameras, and poses; whatever folds may be refused."""
    pairs = correspondences(draw, draw.pick(SIZES))
    given = [camera_of(draw) if draw.chance(0.9) else None for _ in range(2)]
    options, taken = filter_options(draw) | {"cameras": draw.pick((tuple(given), given))}, True
    draw.legal = False
    points1, points2 = points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:])
    if draw.chance(0.2):
        options["cameras"] = (ruzhash_cv.Camera.equirectangular(640), ruzhash_cv.Camera.from_rays(0.002))
        points1, points2 = rays_of(draw, pairs[:, :2]), rays_of(draw, pairs[:, 2:])
        taken = all(points.shape[1] == 2 or points.any(axis=1).all() for points in (points1, points2))
    result = ruzhash_cv.filter_points(points1, points2, **options)
    claim(taken, "a ray of length 0 was taken")
    check_result(result, length(points1))
    for motion in range(0 if any(each is None for each in given) else len(result.motions)):
        pose = result.camera_pose(motion=motion)
        claim(np.isfinite(pose.rotation) & (np.abs(pose.rotation @ pose.rotation.T - np.eye(3)) < 1e-6), f"{pose}")
        claim(abs(np.linalg.norm(pose.translation) - 1.0) < 1e-6, f"{pose}")
        claim(np.isfinite(pose.points3d).all(axis=1) <= pose.inliers, f"{pose}")
        claim(pose.inliers <= (result.motion_labels == motion), f"{pose}")


def find_structures(draw: Draw) -> None:
    n = draw.pick(SIZES[:-5])
    points = points_of(draw, correspondences(draw, n)[:, :2])
    families = (Lines(), Circles()), (None, "lines", Lines, object(), ruzhash_cv.filter_points)
    options = draw.some(
        threshold=draw.option((None, 1e-300, 0.5, 50.0, 1e300), (0, -1.0, np.nan, np.inf, True)),
        noise_scale=draw.option((None, 1e-300, 0.5, np.float32(3), 1e300), (0, -1.0, np.nan, np.inf, True)),
        rng=draw.seed(),
    )
    draw.legal = False  # points of other shapes than (n, 2) too are refused, by name
    found = ruzhash_cv.find_structures(points, draw.option(*families), **options)
    k, n = len(found), len(points)
    claim(
        found.masks.shape == (k, n) and found.labels.shape == (n,) and found.anomaly_scores.shape == (n,), f"{found!r}"
    )
    claim(
        (found.labels >= -1) & (found.labels < max(k, 1)) & ((found.labels >= 0) == found.masks.any(axis=0)), "labels"
    )
    claim((found.anomaly_scores > 0) & (found.anomaly_scores <= 1), "scores are out of (0, 1]")
    claim(
        np.isfinite(found.models).all() and (found.reason is None) == (k > 0), f"{found.reason!r} with {k} structures"
    )


def filter_matches(draw: Draw) -> None:
    kp1, kp2, matches, ratio = matched(draw)
    options = filter_options(draw)
    options.pop("pixel", None)
    mask = ruzhash_cv.filter_matches(kp1, kp2, matches, ratio=ratio, **options)
    claim(type(mask) is np.ndarray and mask.dtype == bool and mask.shape == (len(matches),), f"mask {mask!r}")
    if not isinstance(options.get("rng", 0), np.random.Generator | None):
        result = ruzhash_cv.filter_points(kp1, kp2, matches, ratio=ratio, **options)
        claim(result.inlier_mask.tobytes() == mask.tobytes(), "the mask is not the result's")
        claim(result.has_match[mask], "a row without a match was kept")
    if len(matches) and isinstance(matches[0], (cv2.DMatch, tuple)):
        kept = ruzhash_cv.select_matches(matches, draw.pick([mask, mask[:, None], mask.tolist(), mask.astype("u1")]))
        claim(len(kept) == mask.sum() and all(isinstance(match, cv2.DMatch) for match in kept), f"{kept!r} selected")


def estimate(function: Callable[..., Any]) -> Target:
    def target(draw: Draw) -> None:
        pairs = correspondences(draw, draw.pick(SIZES))
        points1, points2 = points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:])
        options = filter_options(draw)
        for absent in ("model", "false_discovery_rate", "pixel"):
            options.pop(absent, None)
        options |= draw.some(method=draw.option((None, cv2.RANSAC, 38), (0, cv2.FM_8POINT, HUGE, -1, 3.0, True)))
        model, mask = function(points1, points2, **options)
        claim(mask.shape == (length(points1), 1) and mask.dtype == np.uint8, f"mask {mask.shape} {mask.dtype}")
        claim(mask <= 1, "a mask of something else than 0 and 1")
        if model is None:
            claim(mask == 0, "matches without a model")
        else:
            claim(model.shape == (3, 3) and model.dtype == np.float64 and np.isfinite(model).all(), f"{model!r}")

    return target


def find_essential_matrix(draw: Draw) -> None:
    pairs = correspondences(draw, draw.pick(SIZES))
    one, other, draw.legal = camera_of(draw), camera_of(draw), False
    forms = ((one,), (one, cv2.RANSAC, 0.9), (one, None, other, None), (one, None, other, None, 38, 0.9, 3.0), ())
    model, mask = ruzhash_cv.find_essential_matrix(
        points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:]), *draw.pick(forms), rng=draw.seed()
    )
    claim(mask.shape == (len(pairs), 1) and mask.dtype == np.uint8 and (mask <= 1).all(), f"mask {mask!r}")
    claim(model is None or (model.shape == (3, 3) and np.isfinite(model).all()), f"{model!r}")


def as_correspondences(draw: Draw) -> None:
    kp1, kp2, matches, ratio = matched(draw)
    pairs = ruzhash_cv.as_correspondences(kp1, kp2, matches, ratio=ratio)
    claim(pairs.points1.shape == pairs.points2.shape == (len(matches), 2), f"{pairs!r}")
    claim(pairs.distances is None or pairs.distances.shape == (len(matches),), f"{pairs.distances!r}")
    claim(pairs.points1.dtype == pairs.points2.dtype == np.float64, "dtype")


def select_matches(draw: Draw) -> None:
    matches, _ = matches_of(draw, draw.pick([0, 1, 5, 40]))
    n = len(matches) if hasattr(matches, "__len__") else 3
    mask = draw.rng.random(n) < 0.5
    draw.legal = False  # whatever has no DMatch where the mask is True is refused
    mask = draw.option((mask, mask.tolist(), mask[:, None], mask.astype("u1")), (mask[:-1], mask * 0.5, None, 3))
    kept = ruzhash_cv.select_matches(matches, mask)
    claim(all(isinstance(match, cv2.DMatch) for match in kept), f"{kept!r} selected")


def residuals(function: Callable[..., Array]) -> Target:
    def target(draw: Draw) -> None:
        pairs = correspondences(draw, draw.pick(SIZES))
        m = draw.pick([0, 1, 5])
        matrices = draw.rng.normal(0, 1, (m, 3, 3)) * draw.pick([1, 1e-300, 1e-160, 1e160, 1e300])
        matrices[draw.rng.random(m) < 0.3] = draw.pick(
            [np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.full((3, 3), np.nan)]
        )
        one = matrices[0] if m else np.eye(3)
        stack = draw.option(
            (matrices, one, cast(one, "f4"), np.asfortranarray(one), one.tolist(), one[None], cast(one, "g")),
            (
                one[:2],
                one.ravel(),
                matrices[None],
                None,
                one.astype("U3"),
                one.astype(object),
                one + 1j,
                [[1], [1, 2]],
                3,
            ),
        )
        points1 = points_of(draw, pairs[:, :2])
        answer = function(points1, points_of(draw, pairs[:, 2:]), stack)
        n = length(points1)
        claim(answer.shape == ((n,) if np.ndim(stack) == 2 else (n, len(stack))), f"shape {answer.shape}")
        claim(answer.dtype == np.float64 and (answer >= 0).all(), f"{answer!r}")

    return target


def embed_preferences(draw: Draw) -> None:
    n, m = draw.pick([0, 1, 2, 5, 40, 300]), draw.pick([0, 1, 2, 7, 60, 300])
    table = draw.rng.normal(0, 5, (n, m)) * draw.pick([1, 1e-320, 1e300])
    table[draw.rng.random((n, m)) < 0.1] = draw.pick([np.nan, np.inf, -np.inf, 0.0])
    options = draw.some(
        k=draw.option((3, 0.25, 1e300, 1e-300, np.float32(5)), (0, -1, np.nan, np.inf, True)),
        binary=draw.pick((True, False, np.bool_(True))),
    )
    sigma = draw.option((3.0, 1e-300, 1e300, np.float32(1)), (0, -1, np.nan, np.inf, True))
    bad = (table[:1].ravel(), table[None], None, "residuals", [[1], [1, 2]], table.astype("U5"), table + 0j)
    rows = paper.embed_preferences(draw.option((dressed(draw, table),), bad), sigma=sigma, **options)
    claim(isinstance(rows, sparse.csr_array) and rows.dtype == np.float32 and rows.shape[1] == m, f"{rows!r}")
    claim((rows.data >= 0) & (rows.data <= 1), "a preference is out of [0, 1]")


def distance(function: Callable[..., Array]) -> Target:
    def target(draw: Draw) -> None:
        n, n2, m = draw.pick([0, 1, 40, 300]), draw.pick([0, 1, 30]), draw.pick([1, 2, 7, 60])
        rows = preference_rows(draw, n, m)
        others = draw.option((None, preference_rows(draw, n2, m)), (preference_rows(draw, n2, m + 1),))
        answer = function(rows, others)
        claim(answer.shape == (n, n if others is None else n2) and answer.dtype == np.float64, f"{answer!r}")
        claim((answer >= 0) & (answer <= 1), "a distance is out of [0, 1]")

    return target


def ruzhash(draw: Draw) -> None:
    n, m, n_hashes = draw.pick([0, 1, 40, 300]), draw.pick([1, 2, 7, 60]), draw.integer(1, 2, 20)
    hashes = ruzhash_cv.ruzhash(preference_rows(draw, n, m), n_hashes=n_hashes, **draw.some(rng=draw.seed()))
    claim(hashes.shape == (n, n_hashes) and hashes.dtype == np.int64, f"{hashes!r}")
    claim((hashes >= -1) & (hashes < m), "a hash points nowhere")


def forest(cls: Any) -> Target:
    def target(draw: Draw) -> None:
        own_options = (
            {"sink_credit": draw.pick([False, True])}
            if cls is ruzhash_cv.RuzHashForest
            else {"metric": draw.option(("tanimoto", "ruzicka", "jaccard"), ("precomputed", "cosine", None))}
        )
        grown = cls(
            **draw.some(
                **own_options,
                n_trees=draw.integer(1, 2, 40),
                subsample_size=draw.integer(1, 2, 17, 256, 2**31 - 1),
                branching_factor=draw.integer(2, 3, 16, 1000, 2**31 - 1, least=2),
                rng=draw.seed(),
                n_jobs=draw.n_jobs(),
            )
        )
        # As many centres as rows, each compared with each row: with 300 columns too that is asked to take long.
        n, m = (
            draw.pick([0, 1, 2, 5, 40, 300]),
            draw.pick([1, 2, 7, 60, 300 if cls is ruzhash_cv.RuzHashForest else 60]),
        )
        rows, decoys = preference_rows(draw, n, m), preference_rows(draw, draw.pick([0, 1, 50]), m)
        decoys = rows if decoys is None else decoys
        own, others = grown.fit_anomaly_scores(rows, decoys)
        later = grown.anomaly_scores(decoys)
        for scores, length in ((own, n), (others, np.shape(decoys)[0]), (later, np.shape(decoys)[0])):
            claim(scores.shape == (length,) and scores.dtype == np.float64, f"{scores!r}")
            claim((scores > 0) & (scores <= 1), f"scores {scores!r}")
        claim(others.tobytes() == later.tobytes(), "decoys do not score the same twice")
        claim(np.isfinite(grown.path_lengths(rows)), "a path is not finite")

    return target


def picture_of(draw: Draw) -> Any:
    shape = draw.pick([(40, 60), (1, 1), (50, 50, 1), (30, 400, 3), (200, 20, 4), (1, 3000), (700, 900)])
    image = draw.rng.integers(256, size=shape).astype(np.uint8)
    bad = (None, image * 1.0, image[:0], np.zeros((2, 2, 2, 2), np.uint8), image.astype(bool), image.tolist())
    return draw.option((image, image[::-1], np.asfortranarray(image)), bad)


def picture(function: Callable[..., Array], scored: bool) -> Target:
    def target(draw: Draw) -> None:
        kp1, kp2, matches, ratio = matched(draw)
        n = len(matches) if hasattr(matches, "__len__") else 3
        scores = draw.rng.random(n) * draw.pick([1, 0, 1e300, 1e-320])
        scores[draw.rng.random(n) < 0.2] = draw.pick([np.nan, np.inf, -np.inf, 0.5])
        mask = draw.rng.random(n) < 0.5
        marks = (scores, scores.tolist()) if scored else (mask, mask[:, None], mask.astype("u1"))
        marks = draw.option(marks, (scores[:-1], mask[:-1], None, scores[:, None] > 2 if scored else scores + 0.5))
        width = draw.option((None, 240, 600, 2400), (0, 239, -1, 1.5, True))
        drawn = function(picture_of(draw), kp1, picture_of(draw), kp2, matches, marks, ratio=ratio, max_width=width)
        claim(drawn.dtype == np.uint8 and drawn.ndim == 3 and drawn.shape[2] == 3, f"{drawn.dtype} {drawn.shape}")
        claim(width is None or drawn.shape[1] <= width + 1, f"width {drawn.shape[1]} with max_width={width}")

    return target


def draw_structures(draw: Draw) -> None:
    pairs = correspondences(draw, draw.pick(SIZES[:-3]))
    points1, points2 = points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:])
    found = ruzhash_cv.filter_points(points1, points2)
    result = draw.option((found,), (None, found.inlier_mask, found.labels))
    width, most = draw.option((2400, 240, None), (0, -1, True)), draw.option((None, 0, 3, 100), (-1, 0.5, True))
    drawn = ruzhash_cv.draw_structures(
        picture_of(draw), points1, picture_of(draw), points2, None, result, max_width=width, max_lines=most
    )
    claim(drawn.dtype == np.uint8 and drawn.ndim == 3 and drawn.shape[2] == 3, f"picture {drawn.dtype} {drawn.shape}")


def write_html(draw: Draw) -> None:
    pairs = correspondences(draw, draw.pick(SIZES[:-5]))
    points1, points2 = points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:])
    found = ruzhash_cv.filter_points(points1, points2)
    result = draw.option((found,), (None, found.inlier_mask, found.labels))
    options = draw.some(max_size=draw.option((32, 1600, 10**6), (0, -1, True)), names=("<script>", "é\udce9"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        ruzhash_cv.write_html(path, picture_of(draw), points1, picture_of(draw), points2, None, result, **options)
        page = path.read_text(encoding="utf-8")
    claim("</html>" in page and '<script>"' not in page, "no page")


TARGETS: dict[str, Target] = {
    "filter_points": filter_points,
    "filter_matches": filter_matches,
    "find_structures": find_structures,
    "Camera": camera,
    "camera_pose": camera_pose,
    "cameras": cameras,
    "find_homography": estimate(ruzhash_cv.find_homography),
    "find_fundamental_matrix": estimate(ruzhash_cv.find_fundamental_matrix),
    "find_essential_matrix": find_essential_matrix,
    "as_correspondences": as_correspondences,
    "select_matches": select_matches,
    "transfer_error": residuals(ruzhash_cv.transfer_error),
    "sampson_distance": residuals(ruzhash_cv.sampson_distance),
    "embed_preferences": embed_preferences,
    "ruzicka_distance": distance(paper.ruzicka_distance),
    "jaccard_distance": distance(paper.jaccard_distance),
    "tanimoto_distance": distance(paper.tanimoto_distance),
    "ruzhash": ruzhash,
    "RuzHashForest": forest(ruzhash_cv.RuzHashForest),
    "VoronoiForest": forest(paper.VoronoiForest),
    "draw_matches": picture(ruzhash_cv.draw_matches, scored=False),
    "draw_structures": draw_structures,
    "draw_scores": picture(ruzhash_cv.draw_scores, scored=True),
    "write_html": write_html,
}
