"""A matcher of vismatch's own base class, run through its own `forward`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import apply
from two_views import plane

from ruzhash_cv.adapters.vismatch import replace_ransac

pytest.importorskip("vismatch", exc_type=ImportError)

import torch
import vismatch

TRUE = 60


class Drawn(vismatch.BaseMatcher):  # type: ignore[name-defined,misc]
    """Matches of two planes, and mismatches."""

    def _forward(self, img0: Any, img1: Any) -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        other = rng.uniform(0, 300, (TRUE // 2, 2))
        other = np.hstack([other, other + [5.0, 250.0]])
        points = np.vstack([plane(TRUE, 0.3), other, rng.uniform(0, 600, (30, 4))])
        first, second = torch.from_numpy(points[:, :2]), torch.from_numpy(points[:, 2:])
        return first, second, first, second, None, None, None


def run(**options: Any) -> dict[str, Any]:
    matcher = replace_ransac(Drawn(ransac_reproj_thresh=2.0), **options)
    picture = torch.zeros(3, 900, 900)
    return dict(matcher(picture, picture))


def test_its_result_has_one_homography_s_inliers() -> None:
    found, theirs = run(), dict(Drawn(ransac_reproj_thresh=2.0)(torch.zeros(3, 900, 900), torch.zeros(3, 900, 900)))
    assert found.keys() == theirs.keys()
    assert found["H"].shape == theirs["H"].shape == (3, 3)
    assert TRUE * 0.9 < found["num_inliers"] == len(found["inlier_kpts0"]) < TRUE + 15
    assert found["inlier_kpts0"].shape == found["inlier_kpts1"].shape
    assert abs(found["num_inliers"] - theirs["num_inliers"]) <= 5
    assert np.allclose(found["H"], theirs["H"] / theirs["H"][2, 2], rtol=0.1, atol=0.1 * np.abs(found["H"]).max())


def test_its_threshold_is_the_matcher_s() -> None:
    picture, narrow = torch.zeros(3, 900, 900), replace_ransac(Drawn(ransac_reproj_thresh=0.3))
    points1, points2 = (narrow(picture, picture)[f"inlier_kpts{side}"] for side in (0, 1))
    assert 5 < len(points1) < 0.7 * TRUE
    assert np.linalg.norm(apply(narrow(picture, picture)["H"], points1) - points2, axis=1).max() <= 0.3


def test_its_result_has_every_structure_s_inliers() -> None:
    found = run(all_structures=True)
    assert found["num_inliers"] > 1.4 * TRUE
    assert found["H"].shape == (3, 3)
    assert found["H"][2, 2] == 1.0


def test_it_skips_where_vismatch_skips() -> None:
    matcher = replace_ransac(Drawn())
    matcher.skip_ransac = True
    found = matcher(torch.zeros(3, 900, 900), torch.zeros(3, 900, 900))
    assert (found["H"], found["num_inliers"]) == (None, 0)


def test_what_is_no_matcher_is_named() -> None:
    with pytest.raises(TypeError, match=r"`matcher` must be one of vismatch's, .*, got int"):
        replace_ransac(5)


def test_the_recipe_finds_a_homography(recipe: Any) -> None:
    held: dict[str, Any] = {"matcher": Drawn(), "image0": torch.zeros(3, 900, 900), "image1": torch.zeros(3, 900, 900)}
    exec(recipe("adapters.vismatch"), held)
    assert held["found"]["num_inliers"] > 0.9 * TRUE
