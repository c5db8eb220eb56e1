"""The runner: methods answer in one form, measures know known answers, problems have their truth."""

from argparse import Namespace
from dataclasses import replace

import cv2
import evaluate
import methods
import numpy as np
import pandas as pd
import photos
import pytest
import rendered
import report
import video
from evaluate import (
    KEY,
    MEASURE,
    Measure,
    collect,
    compare,
    leads,
    mask_row,
    near_row,
    pose_row,
    run_once,
    table,
)
from geometry import apply_homography, residuals, skew
from matching import nearest
from measures import direction_angle, model_errors, pose_error, pose_score, rotation_angle
from pair_sets import look_alike, overlaid, related, still, unrelated
from patches import agreements, is_shifted
from pose_scenes import camera_matrix, draw, given, project
from pose_worlds import MOTIONS, RIGID, WORLDS, facade, move, turn
from problems import Problem, four_planes
from suites import GROUPS, SUITES, members

EXACT = {(scene, motion): draw(scene, motion, 0) for scene in WORLDS for motion in MOTIONS}
MASKS = methods.mask_methods()


def bare(n: int) -> Problem:
    return Problem("four planes", "planes", "homography", *four_planes(n), np.ones(n, int), np.ones(n, bool))


def noise_free(problem: Problem) -> Problem:
    """The problem's exact matches as its matches."""
    n = len(problem.exact1)
    known = {"points1": problem.exact1, "points2": problem.exact2}
    return replace(problem, **known, labels=np.ones(n, int), judged=np.ones(n, bool))


@pytest.mark.parametrize("method", MASKS.values(), ids=list(MASKS))
@pytest.mark.parametrize("n", [0, 3, 9, 60])
def test_every_method_returns_a_mask_of_any_number_of_matches(method: methods.Method, n: int) -> None:
    answer = method(bare(n), 0)
    assert answer.mask.shape == (n,)
    assert answer.mask.dtype == bool
    assert answer.labels is None or np.array_equal(answer.labels >= 0, answer.mask)


@pytest.mark.parametrize("name", MEASURE)
def test_every_column_of_a_measure_is_in_its_rows(name: str) -> None:
    measure = MEASURE[name]
    problem = draw("room", "wide", 1).with_near_misses()
    problem = replace(problem, labels=np.where(np.arange(len(problem.labels)) % 10, problem.labels, 2))
    row = run_once(measure, problem, "ruzhash_cv", MASKS["ruzhash_cv"], 0)
    rows = pd.DataFrame([dict(zip(KEY, ("a suite", "tune", "1", "ruzhash_cv", 0), strict=True)) | row])
    text = table(rows, measure.columns)
    assert text.splitlines()[0].count("|") == len(measure.columns) + 3


def test_groups_name_suites() -> None:
    assert {suite for group in GROUPS.values() for suite in group} <= SUITES.keys()
    assert {suite for measure in MEASURE.values() for suite in members(list(measure.suites))} <= SUITES.keys()
    assert members(["fresh", "adelaidermf-sift"]) == ["adelaidermf-sift", "adelaidermf-orb"]


def test_suites_of_mostly_wrong_matches_are_named_by_their_number_and_share_of_true_ones(monkeypatch) -> None:
    monkeypatch.setattr(rendered, "CELL_SCENES", 1)
    found = {of.suite: of for of in SUITES["mostly-wrong"]("tune", 1)}
    assert len(found) == 10
    problem = found["one plane, 5% of 1,000 true"]
    assert (len(problem.labels), (problem.labels > 0).sum(), problem.kind) == (1000, 50, "homography")
    assert found["one rigid, 20% of 300 true"].kind == "fundamental"


def test_every_peer_is_measured_with_every_threshold() -> None:
    for family in ("{} USAC_MAGSAC {:g} px 100k", *(["{} PoseLib {:g} px"] if methods.poselib else [])):
        models = "H", "F", "sequential H", "sequential F"
        names = {family.format(model, each) for model in models for each in methods.THRESHOLDS}
        assert names <= MASKS.keys()


def test_differences_are_paired_by_problem() -> None:
    rows = [("s", "tune", str(problem), method, 0, f1) for method, gain in (("ruzhash_cv", 0.1), ("other", 0.0)) for problem, f1 in
            ((1, 0.5 + gain), (2, 0.7 + gain))]  # fmt: skip
    assert leads(pd.DataFrame(rows, columns=[*KEY, "score"]))["other"].tolist() == pytest.approx([0.1, 0.0])


def test_a_second_run_measures_what_is_missing_and_rows_of_older_code(tmp_path, monkeypatch) -> None:
    calls = []

    def method(problem: Problem, seed: int) -> methods.Answer:
        calls.append(seed)
        return methods.Answer(np.ones(60, bool))

    measure = Measure(("planes",), lambda: {"ruzhash_cv": method, "peer": method}, mask_row, evaluate.MASKS)
    monkeypatch.setattr(evaluate, "problems", lambda *_: iter([bare(60)]))
    monkeypatch.setattr(evaluate, "WARM", set())
    options = Namespace(rows=tmp_path, half="tune", suite=None, per_cell=1, seeds=2, methods=None)
    # The first call of a process is not timed.
    for digest, n_calls in (("12345678", 5), ("12345678", 5), ("abcdefgh", 7)):
        monkeypatch.setattr(report, "package_digest", lambda digest=digest: digest)
        rows = collect("accuracy", measure, options)
        assert (len(rows), len(calls)) == (3, n_calls)  # the peer has one seed
        assert set(rows[rows.method == "ruzhash_cv"].package) == {digest}


def test_comments_and_docstrings_make_no_row_stale(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report.ruzhash_cv, "__file__", str(tmp_path / "__init__.py"))
    digests = []
    for source in ('"""One."""\nx = 1', '"""Two."""\nx = 1  # why', '"""One."""\nx = 2'):
        (tmp_path / "module.py").write_text(source)
        digests.append(report.package_digest.__wrapped__())
    assert digests[0] == digests[1] != digests[2]


def test_two_files_of_rows_are_compared_by_problem(tmp_path) -> None:
    rows = pd.DataFrame([("s", "tune", str(problem), "m", 0, problem / 10) for problem in (1, 2)], columns=[*KEY, "f1"])
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.assign(f1=rows.f1 + [0.1, 0.3]).to_csv(tmp_path / "b.csv", index=False)
    assert "| s: m | f1 | 2 | 0.1500 | 0.3500 | +0.2000 ± 0.1000 |" in compare(tmp_path / "a.csv", tmp_path / "b.csv")


def test_near_misses_are_moved_true_matches_and_count_as_false() -> None:
    problem = draw("room", "wide", 0)
    near = problem.with_near_misses()
    apart = np.linalg.norm(near.points2 - problem.points2, axis=1)
    assert near.moved.sum() == int(0.2 * (problem.labels > 0).sum())
    assert (problem.labels[near.moved] > 0).all()
    assert (near.labels[near.moved] == 0).all()
    assert (apart[near.moved].min(), apart[near.moved].max()) == pytest.approx((6, 20), abs=3)
    assert (apart[~near.moved] == 0).all()
    row = near_row(near, methods.Answer(near.moved | (near.labels > 0)))
    assert (row["kept"], row["others"]) == (1.0, 1.0)


def wall_of_a_facade() -> tuple[Problem, np.ndarray]:
    """A problem whose truth is the wall of a facade alone, with noise of .3 px and 40 mismatches; and the matches off the wall."""
    rng = np.random.default_rng(0)
    world, K = facade(rng), camera_matrix(rng)
    R, t = move("wide", 10.0, rng)
    views = project(world.points, K), project(world.points @ R.T + t, K)
    seen = np.flatnonzero(np.isfinite(views[0][:, 0]) & np.isfinite(views[1][:, 0]))
    on, off = seen[world.plane[seen] == 1], seen[world.plane[seen] != 1]
    rows = np.concatenate([rng.choice(on, 120), rng.choice(off, 60)])
    one, two = (view[rows] + rng.normal(0, 0.3, (180, 2)) for view in views)
    one, two = (np.vstack([points, rng.uniform(0, 600, (40, 2))]) for points in (one, two))
    labels, off_plane = np.repeat([1, 0], [120, 100]), np.repeat([False, True, False], [120, 60, 40])
    return Problem("wall", "wall", "homography", one, two, labels, np.ones(220, bool)), off_plane


def test_likely_true_matches_off_the_labelled_planes_are_not_judged() -> None:
    plain, off_plane = wall_of_a_facade()
    problem = plain.with_off_plane_unjudged()
    assert problem.moved[off_plane].mean() > 0.95
    assert not problem.moved[plain.labels > 0].any()
    assert problem.moved[-40:].mean() < 0.1  # what chance puts within 3 px of a line
    np.testing.assert_array_equal(problem.judged, ~problem.moved)
    np.testing.assert_array_equal(problem.moved, plain.with_off_plane_unjudged().moved)
    order = np.random.default_rng(5).permutation(220)
    np.testing.assert_array_equal(problem.shuffled(5).moved, problem.moved[order])


def test_keeping_unjudged_matches_costs_nothing_and_has_a_column() -> None:
    problem = wall_of_a_facade()[0].with_off_plane_unjudged()
    true = problem.labels > 0
    with_them, without = (mask_row(problem, methods.Answer(mask)) for mask in (problem.moved | true, true))
    assert (with_them["f1"], without["f1"]) == (1.0, 1.0)
    assert (with_them["off_plane"], without["off_plane"]) == (1.0, 0.0)
    assert np.isnan(with_them["shifted"])
    half = replace(problem, shifted=problem.moved & (np.cumsum(problem.moved) <= 20))
    row = mask_row(half, methods.Answer(half.shifted))
    assert (row["off_plane"], row["shifted"]) == (0.0, 1.0)
    few = replace(problem, moved=problem.moved & (np.cumsum(problem.moved) < 5))
    assert np.isnan(mask_row(few, methods.Answer(problem.moved))["off_plane"])


def test_a_shift_by_a_period_on_a_plane_is_known_from_the_pictures() -> None:
    rng = np.random.default_rng(0)
    wall = np.tile(cv2.GaussianBlur(rng.uniform(0, 255, (40, 40)), (0, 0), 2), (10, 12)) * 3 % 256
    wall += cv2.GaussianBlur(rng.normal(0, 1500, wall.shape), (0, 0), 8)  # no two periods are quite alike
    img1 = np.clip(wall, 0, 255).astype(np.uint8)
    img2, thing = img1.copy(), img1[100:220, 100:220].copy()
    img1[180:300, 200:320], img2[180:300, 230:350] = thing, thing  # before the wall, 30 px of parallax
    images, planes = (img1, img2), (np.eye(3),)
    on_wall, off_wall = np.array([[100.0, 60.0]]), np.array([[260.0, 240.0]])
    shifted = agreements(images, planes, on_wall, on_wall + [40, 0])
    assert is_shifted(shifted).all(), shifted
    assert not is_shifted(agreements(images, planes, off_wall, off_wall + [30, 0])).any()
    assert not is_shifted(agreements(images, (), on_wall, on_wall)).any()


def test_scenes_of_labelled_planes_have_the_corrected_truth() -> None:
    if not photos.home().is_dir():
        pytest.skip(f"no photographs in {photos.home()}: RUZHASH_CV_PHOTOGRAPHED names their directory")
    for problem in photos.photos("planes", "given", "judge"):
        np.testing.assert_array_equal(problem.judged, ~problem.moved)
        assert (problem.labels[problem.moved] == 0).all()
    for problem in [*photos.photos("rigid", "given", "judge"), *SUITES["one-plane"]("judge", 1)]:
        assert problem.judged.all(), problem.name
        assert problem.moved is None, problem.name


def test_rows_of_another_truth_are_stale_for_every_method() -> None:
    assert {path.stem for path in report.TRUTH} == {"adelaide", "measures", "patches", "photos", "problems"}
    assert all(path.exists() for path in report.TRUTH)


def test_a_row_with_a_new_column_joins_older_rows(tmp_path) -> None:
    for row in ({"a": 1, "b": 2}, {"a": 3, "c": 4}):
        report.append_row(tmp_path / "rows.csv", row)
    assert (tmp_path / "rows.csv").read_text().splitlines() == ["a,b,c", "1,2,", "3,,4"]


# --- Problems of known geometry.


@pytest.mark.parametrize("pair", EXACT.values(), ids=lambda pair: pair.name)
def test_exact_matches_agree_with_the_exact_model(pair: Problem) -> None:
    assert residuals(pair.kind, pair.models[0], pair.exact1, pair.exact2).max() < 1e-9
    if pair.kind == "homography":
        error = residuals("homography", pair.models[0], pair.points1, pair.points2)
        assert error[pair.labels > 0].max() < 8
        assert error[pair.labels == 0].min() > 2


def test_mismatches_lie_ten_pixels_from_the_true_place() -> None:
    for seed in range(0, 45, 3):  # those at random all over
        pair = draw("room", "rotation", seed)
        error = np.linalg.norm(apply_homography(pair.models[0], pair.points1) - pair.points2, axis=1)
        assert error[pair.labels == 0].min() > 5  # the noise takes some


def test_the_camera_goes_where_the_motion_says() -> None:
    for seed in range(5):
        cameras = {motion: draw("room", motion, seed).cameras for motion in MOTIONS}
        centres = {motion: -of.R.T @ of.t for motion, of in cameras.items()}
        assert centres["forward"][2] > 2 * np.linalg.norm(centres["forward"][:2])
        assert all(abs(centres[motion][0]) > abs(centres[motion][2]) for motion in ("wide", "narrow"))
        assert np.linalg.norm(centres["wide"]) > 2 * np.linalg.norm(centres["narrow"])
        assert not centres["rotation"].any()


def test_halves_share_no_problem_and_seeds_set_the_share_of_mismatches() -> None:
    names = [{pair.name for pair in given(half, 2, RIGID, ("wide",))} for half in ("tune", "judge")]
    assert len(names[0]) == len(names[1]) == 8
    assert not names[0] & names[1]
    for seed, rate in enumerate((0.1, 0.3, 0.5, 0.7, 0.8)):
        assert draw("room", "wide", seed).mismatch_rate == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize("scenes", list(photos.KINDS))
def test_photographs_have_true_matches_near_their_model(scenes: str) -> None:
    if not photos.home().is_dir():
        pytest.skip(f"no photographs in {photos.home()}: RUZHASH_CV_PHOTOGRAPHED names their directory")
    halves = [[problem.name for problem in photos.photos(scenes, "given", half)] for half in ("tune", "judge")]
    assert [len(names) for names in halves] == {"planes": [6, 8], "rigid": [9, 7]}[scenes]
    assert not set(halves[0]) & set(halves[1])
    for problem in photos.photos(scenes, "given", "judge"):
        assert np.median(residuals(problem.kind, problem.models[0], problem.exact1, problem.exact2)) < 3
        assert 0.2 < (problem.labels > 0).mean() <= 1


def test_overlays_hold_what_they_say() -> None:
    for problem in [*overlaid("tune", 1), *still("tune", 1)]:
        apart = np.linalg.norm(problem.points1 - problem.points2, axis=1)
        moving = 0 if problem.suite == "overlay, still camera" else 200
        assert np.bincount(problem.labels, minlength=3).tolist() == [85, moving, 260 - moving]
        assert apart[problem.labels == 2].max() < 2


def test_a_large_plane_is_in_related_pairs_only() -> None:
    shares = {
        make: [cv2.findHomography(of.points1, of.points2, cv2.RANSAC, 3.0)[1].mean() for of in make("tune", 5)]
        for make in (related, unrelated, look_alike)
    }
    assert max(shares[unrelated]) < 0.1
    assert max(shares[look_alike]) < 0.15
    assert max(shares[related]) > 0.3


def test_mutual_neighbours_choose_each_other_and_know_their_ratio() -> None:
    first = {"descriptors": np.array([[0, 0], [10, 0], [12, 0]], np.uint8)}
    second = {"descriptors": np.array([[1, 0], [100, 0], [11, 1]], np.uint8)}
    pairs, ratio, mutual = nearest(first, second, "sift")
    # 1 and 2 are equally near to 2, which chooses 1.
    assert pairs[mutual].tolist() == [[0, 0], [1, 2]]
    np.testing.assert_allclose(ratio[mutual], [1 / np.hypot(11, 1), np.sqrt(2) / 9])


def test_frames_of_video_have_their_cameras_and_matches_on_whole_pixels(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(video, "stored", lambda _, make: make())
    monkeypatch.setattr(video, "CLIPS", {"towards walls": video.CLIPS["towards walls"]})
    (problem,) = video.video("tune", n_frames=2)
    assert (problem.points1 % 1 == 0).all()
    assert (problem.points2 % 1 == 0).all()
    assert (problem.labels > 0).mean() > 0.7
    K1, K2, R, t = (getattr(problem.cameras, name) for name in ("K1", "K2", "R", "t"))
    F = np.linalg.inv(K2).T @ skew(t) @ R @ np.linalg.inv(K1)
    error = residuals("fundamental", F, problem.points1, problem.points2)[problem.labels > 0]
    assert np.median(error) < 1
    centre = -R.T @ t
    assert centre[2] > 0.9 * np.linalg.norm(centre)


def test_a_pose_that_points_backwards_is_a_flip() -> None:
    problem = EXACT["room", "wide"]
    known = problem.cameras
    poses = [(turn(2, 0, 0) @ known.R, t) for t in (known.t, -known.t)]
    rows = [pose_row(problem, methods.Answer(problem.labels > 0, pose=pose)) for pose in poses]
    assert [row["flip"] for row in rows] == [0, 1]
    assert [row["translation"] for row in rows] == pytest.approx([0, 180])
    assert rows[0]["rotation"] == pytest.approx(2)
    assert np.isnan(pose_row(problem, methods.Answer(problem.labels > 0))["flip"])


# --- Errors of models and poses.


def test_angles_of_rotations_and_directions() -> None:
    base = turn(10, -20, 30)
    for angle in (1e-6, 1.0, 90.0, 180.0):
        assert rotation_angle(turn(angle, 0, 0) @ base, base) == pytest.approx(angle, rel=1e-6)
    for direction, angle in (([3.0, 0, 0], 0), ([0, 2.0, 0], 90), ([-1.0, 0, 0], 180)):
        assert direction_angle(np.array(direction), np.array([1.0, 0, 0])) == pytest.approx(angle)


def test_pose_error_is_the_larger_angle_and_180_without_a_pose() -> None:
    true, turned = EXACT["room", "wide"].cameras, EXACT["room", "rotation"].cameras
    assert pose_error((turn(3, 0, 0) @ true.R, true.t), true) == pytest.approx(3)
    assert pose_error((turn(3, 0, 0) @ true.R, turn(0, 50, 0) @ -true.t), true) > 3
    assert pose_error(None, true) == pose_error((np.full((3, 3), np.nan), true.t), true) == 180
    assert pose_error((turn(0, 2, 0) @ turned.R, np.array([1.0, 0, 0])), turned) == pytest.approx(2)


def test_mean_score_is_the_area_under_the_recall() -> None:
    errors = np.random.default_rng(0).exponential(6, 500)
    area = np.mean([(errors <= at).mean() for at in np.linspace(0, 10, 20_001)])
    assert pose_score(errors, 10.0).mean() == pytest.approx(area, abs=1e-3)


@pytest.mark.parametrize("scene", RIGID)
@pytest.mark.parametrize("motion", ["wide", "narrow", "forward"])
def test_the_exact_matrix_gives_the_exact_pose(scene: str, motion: str) -> None:
    pair = noise_free(EXACT[scene, motion])
    assert pose_error(methods.pose_of_matrix(pair, -3 * pair.models[0], pair.labels > 0), pair.cameras) < 1e-4


@pytest.mark.parametrize(
    "method", [methods.calibrated_opencv, *([methods.calibrated_poselib] if methods.poselib else [])]
)
def test_calibrated_estimators_find_the_pose_of_exact_matches(method: methods.Method) -> None:
    pair = noise_free(EXACT["clutter", "wide"])
    assert pose_error(method(pair, 0).pose, pair.cameras) < 1e-2


def test_every_way_to_a_pose_works_on_an_easy_pair() -> None:
    pair = noise_free(EXACT["clutter", "wide"])
    for name, method in methods.pose_methods().items():
        assert pose_row(pair, method(pair, 0))["error"] < 0.5, name


def test_errors_of_a_missing_model_are_infinite() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (40, 2))
    shift = np.array([[1.0, 0, 2.0], [0, 1, 0], [0, 0, 1]])
    assert np.isinf(model_errors("homography", None, points, points)).all()
    np.testing.assert_allclose(model_errors("homography", shift, points, points), 2.0)


def test_a_model_is_judged_by_the_structure_it_fits_best() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (20, 2))
    shifts = np.array([[0.0, 50.0], [30.0, 0.0]])
    models = tuple(np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]]) for x, y in shifts)
    labels = np.repeat([1, 2], 20)
    given = np.vstack([points, points]), np.vstack([points + shift for shift in shifts])
    problem = Problem("two planes", "planes", "homography", *given, labels, labels > 0, models, *given)
    row = MEASURE["models"].row(problem, methods.Answer(labels == 2, model=models[1] + np.outer([1, 0, 0], [0, 0, 1])))
    assert (row["px"], row["px95"], row["f1"], row["within"]) == pytest.approx((1.0, 1.0, 1.0, 20))
    assert np.isinf(MEASURE["models"].row(problem, methods.Answer(np.zeros(40, bool)))["px"])
