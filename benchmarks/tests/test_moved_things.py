"""Things moved by hand, solids, learned matches and facades: the truth of the suites is what they say."""

from dataclasses import replace

import cv2
import facades
import numpy as np
import pytest
from geometry import apply_homography, residuals
from moved_things import BY_HAND, SOLIDS, Kind, bent, draw, seen_in_both
from posed_photos import line_distances, posed
from problems import Cameras, Problem
from rendering.pictures import with_truth
from suites import SUITES

PRECISE = {"noise": (1e-3, 2e-3)}


@pytest.mark.parametrize("kind", [replace(BY_HAND, **PRECISE), replace(SOLIDS, **PRECISE)], ids=["by hand", "solids"])
def test_each_label_is_one_rigid_motion_and_no_other(kind: Kind) -> None:
    problem = draw(kind, "a suite", 1)
    masks = [problem.labels == label for label in range(1, problem.labels.max() + 1)]
    assert len(masks) == kind.things[1] + 1
    assert problem.settings["rate"] == pytest.approx(problem.mismatch_rate, abs=0.01)
    for number, own in enumerate(masks):
        F = cv2.findFundamentalMat(problem.points1[own], problem.points2[own], cv2.FM_LMEDS)[0]
        distances = residuals("fundamental", F, problem.points1, problem.points2)
        assert np.median(distances[own]) < 0.02
        assert all(np.median(distances[other]) > 0.5 for other in (*masks[:number], *masks[number + 1 :]))


def test_a_bent_lens_moves_the_matches_of_a_scene_and_nothing_else() -> None:
    straight, curved = draw(BY_HAND, "a suite", 3), draw(BY_HAND, "a suite", 3, is_bent=True)
    assert (straight.labels == curved.labels).all()
    assert 0.5 < np.linalg.norm(straight.points1 - curved.points1, axis=1).max() < 10
    edge = bent(np.column_stack([np.linspace(0, 800, 9), np.zeros(9)]), 2.0)
    assert edge[4, 1] - edge[0, 1] == pytest.approx(2.0)


def test_things_hide_the_background_and_farther_things_in_either_image() -> None:
    near, far = np.array([[0, 0], [4, 0], [0, 4], [4, 4.0]]), np.array([[2, 2], [6, 6], [7, 6], [7, 7.0]])
    points = np.vstack([[[1, 1], [9, 9], [9, 8]], near, far])
    moved = points + [[0, 0], [0, 0], [-6, -6], *[[0, 0]] * 8]
    seen = seen_in_both((points, moved), np.repeat([0, 1, 2], [3, 4, 4]), np.arange(11) < 10)  # the last one faces away
    assert seen.tolist() == [False, True, False, *[True] * 4, False, True, True, False]


def test_distances_to_true_lines_are_the_larger_of_both_images() -> None:
    K1, K2 = np.diag([400.0, 400, 1]), np.diag([800.0, 800, 1])
    cameras = Cameras(K1, K2, np.eye(3), np.array([1.0, 0, 0]))
    points = (
        np.array([[10.0, 20]]),
        np.array([[50.0, 43]]),
    )  # the lines are rows: 40 in the second, 21.5 in the first image
    problem = Problem("", "", "fundamental", *points, np.ones(1, int), np.ones(1, bool), cameras=cameras)
    assert line_distances(problem) == pytest.approx([3.0])


def test_learned_matches_are_those_of_the_surveyed_pairs_and_true_near_their_lines() -> None:
    if not (names := [problem.name for problem in posed("tune")]):
        pytest.skip("no surveyed pairs here")
    learned = list(SUITES["learned-xfeat"]("tune", 1))
    assert [problem.name for problem in learned] == names
    for problem in learned:
        distance = line_distances(problem)
        assert (distance[problem.labels > 0] <= 3).all()
        assert (distance[problem.judged & (problem.labels == 0)] > 10).all()


@pytest.mark.parametrize("kind", ["terrace", "courtyard"])
def test_windows_of_a_facade_repeat_and_its_planes_are_known(kind: str) -> None:
    scene = facades.SCENES[kind](0)
    textures = [face.texture.kind for face in scene.faces]
    assert textures == ["offices"] * 3 + ["paving"]
    unpainted = np.zeros((1, 1, 3), np.uint8)
    pair = with_truth(scene, unpainted, unpainted)
    for face, H in enumerate(scene.homographies()):
        rows, columns = np.nonzero(scene.face_map(0)[0] == face)
        points = np.column_stack([columns, rows])[::500].astype(float)
        labels = pair.labels(points, apply_homography(H, points))
        assert set(labels) <= {scene.faces[face].plane - 1, -1}
        assert (labels >= 0).any()
