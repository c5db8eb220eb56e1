"""The lines of docs/recipes.md run on what the libraries return: tensors of torch where it is there, and stand-ins for them."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import joblib
import numpy as np
import pytest
from paper.problems import make_shape
from stand_ins import Tensor
from two_views import motion

from ruzhash_cv.datasets import data_folder

RECIPES = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
N, TRUE = 60, 40


def ran(words: str, **held: Any) -> dict[str, Any]:
    """Run the only code of the recipes that holds some words, on names and what they hold, and return all of them."""
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", RECIPES, re.DOTALL) if words in code]
    exec(code, held)
    return held


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return points of which the last 20 are mismatches."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 500, (N, 2)).astype(np.float32)
    second = first + np.array([40, 5], np.float32)
    second[TRUE:] = rng.uniform(0, 500, (N - TRUE, 2))
    return first, second


def torch_tensor(array: np.ndarray) -> Any:
    tensor = pytest.importorskip("torch").as_tensor(array)
    return tensor.requires_grad_() if tensor.is_floating_point() else tensor


@pytest.fixture(params=["stand-in", "torch"])
def tensor(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Any]:
    return Tensor if request.param == "stand-in" else torch_tensor


def numbers(values: Any) -> np.ndarray:
    return np.asarray(values.detach().cpu().numpy())


def test_opencv() -> None:
    image = np.zeros((600, 800), np.uint8)
    kp1, kp2 = ([cv2.KeyPoint(*point, 1) for point in view] for view in np.split(motion(N, 0.2), 2, axis=1))
    matches = [(cv2.DMatch(i, i, 1.0), cv2.DMatch(i, (i + 1) % N, 2.0)) for i in range(N)]
    held: dict[str, Any] = {"img1": image, "img2": image, "kp1": kp1, "kp2": kp2, "matches": matches}
    for words in ("as_correspondences", "panorama", "stereoRectifyUncalibrated"):
        held = ran(words, **held)
    assert held["panorama"].shape == (600, 1600)
    rows = [cv2.perspectiveTransform(held[f"points{n}"][:, None], held[f"H{n}"])[:, 0, 1] for n in (1, 2)]
    assert np.median(np.abs(rows[0] - rows[1])) < 0.5
    held["frames"], held["K"] = [(kp1, kp2, matches)] * 2, np.array([[900.0, 0, 400], [0, 900, 300], [0, 0, 1]])
    held = ran("has_baseline", **held)
    step = -held["R"].T @ held["t"]
    np.testing.assert_allclose(held["position"], step + held["R"].T @ step)


def test_video() -> None:
    frames = [cv2.imread(str(data_folder() / f"clip{number}.jpg"), cv2.IMREAD_GRAYSCALE) for number in (1, 2, 3)]
    held = ran("calcOpticalFlowPyrLK", frames=frames)
    assert len(held["followed"]) > 150
    assert len(held["result"].motions) >= 2
    assert held["result"].inlier_mask.mean() > 0.8


def test_copies_of_one_object() -> None:
    """Each is fitted with all the weight of its matches, of which twelve share a keypoint."""
    rng = np.random.default_rng(0)
    label, places = rng.uniform(0, 300, (60, 2)), [np.array([200.0 * number, 50.0]) for number in range(12)]
    chosen = [rng.choice(60, 42, replace=False) for _ in places]
    points1 = np.vstack([*(label[rows] for rows in chosen), label[rng.integers(60, size=250)]])
    seen = [0.5 * label[rows] + place for place, rows in zip(places, chosen, strict=True)]
    points2 = np.vstack([*seen, rng.uniform(0, [2500, 800], (250, 2))]) + rng.normal(0, 0.5, (754, 2))
    held = ran("copy.matrix", points1=points1, points2=points2, width=300, height=300)
    outlines = [cv2.perspectiveTransform(held["corners"], copy.matrix)[0] for copy in held["copies"]]
    assert len(outlines) == 12
    for place in places:
        assert min(np.abs(0.5 * held["corners"][0] + place - outline).max() for outline in outlines) < 3.0


def test_lightglue(tensor: Any) -> None:
    first, second = points()
    shuffled = np.random.default_rng(1).permutation(N)
    pairs = np.stack([np.arange(N), np.argsort(shuffled)], axis=1)
    feats0, feats1 = {"keypoints": tensor(first)}, {"keypoints": tensor(second[shuffled])}
    matches01 = {"matches": tensor(pairs), "scores": tensor(np.linspace(0, 1, N))}
    held = ran("rbd(x)", feats0=feats0, feats1=feats1, matches01=matches01)
    assert numbers(held["matches"]).tolist() == pairs[:TRUE].tolist()
    assert numbers(held["scores"]).tolist() == np.linspace(0, 1, N)[:TRUE].tolist()


def test_kornia(tensor: Any) -> None:
    frames = [np.zeros((1, N, 2, 3), np.float32) for _ in range(2)]
    for frame, positions in zip(frames, points(), strict=True):
        frame[0, :, :, :2], frame[0, :, :, 2] = 9 * np.eye(2), positions
    pairs, (lafs1, lafs2) = np.stack([np.arange(N)] * 2, axis=1), map(tensor, frames)
    held = ran("lafs1", lafs1=lafs1, lafs2=lafs2, dists=tensor(np.ones((N, 1))), idxs=tensor(pairs))
    assert numbers(held["idxs"]).tolist() == pairs[:TRUE].tolist()
    assert numbers(held["dists"]).shape == (TRUE, 1)


def test_kornia_s_ransac(tensor: Any) -> None:
    held = ran("inliers0, inliers1", **{f"points{number}": tensor(each) for number, each in enumerate(points())})
    assert numbers(held["inliers0"]).tolist() == points()[0][:TRUE].tolist()


def test_superglue(tensor: Any) -> None:
    first, second = points()
    matches0 = np.where(np.arange(N) % 10 == 0, -1, np.arange(N))
    whole = torch_tensor(matches0[None].copy()) if tensor is torch_tensor else matches0[None].copy()
    pred = {"keypoints0": [tensor(first)], "keypoints1": [tensor(second)], "matches0": whole}
    held = ran('pred["matches0"]', pred=pred)
    assert held["pred"]["matches0"].tolist() == [np.where(np.arange(N) < TRUE, matches0, -1).tolist()]


def test_a_pair_for_colmap(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    first, second = points()
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=640, height=480, params=[500, 320, 240], camera_id=1)
    with pycolmap.Database.open(tmp_path / "database.db") as database:
        database.write_camera(camera, use_camera_id=True)
        for image, each in ((1, first), (2, second)):
            database.write_image(pycolmap.Image(name=f"{image}", camera_id=1, image_id=image), use_image_id=True)
            database.write_keypoints(image, each)
        database.write_matches(1, 2, np.stack([np.arange(N)] * 2, axis=1).astype(np.uint32))
        ran("two_view_geometry", database=database, id1=1, id2=2)
        written = database.read_two_view_geometry(1, 2)
    assert written.inlier_matches[:, 0].tolist() == list(range(TRUE))
    assert int(written.config) == 6


def test_loftr(tensor: Any) -> None:
    first, second = points()
    both = {f"keypoints{number}": tensor(np.vstack([each[:9], each])) for number, each in enumerate((first, second))}
    held = ran("batch_indexes", n_pairs=2, correspondences=both | {"batch_indexes": tensor(np.repeat([0, 1], [9, N]))})
    assert held["result"].inlier_mask.tolist() == [True] * TRUE + [False] * (N - TRUE)


def test_roma(tensor: Any) -> None:
    first, second = points()
    matches, certainty = tensor(np.hstack([first, second])), tensor(np.linspace(0, 1, N))
    held = ran("certainty", points0=tensor(first), points1=tensor(second), matches=matches, certainty=certainty)
    assert numbers(held["matches"]).tolist() == np.hstack([first, second])[:TRUE].tolist()


def test_circles(capsys: pytest.CaptureFixture[str]) -> None:
    ran("Circles", points=make_shape("circle5").points)
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_a_family_of_ones_own() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 160)
    y = np.where(np.arange(160) < 80, x**2 - 1, 0.5 - 0.7 * x**2 + x)
    drawn = np.vstack([np.column_stack([x, y + rng.normal(0, 0.01, 160)]), rng.uniform(-3, 3, (80, 2))])
    held = ran("class Parabolas", points=drawn)
    found = held["curves"].models[np.argsort(held["curves"].models[:, 0])]
    np.testing.assert_allclose(found, [[-0.7, 1.0, 0.5], [1.0, 0.0, -1.0]], atol=0.02)


def test_scikit_learn() -> None:
    shape = make_shape("stair4")
    held = ran("ruzhash_cv.sklearn", points=shape.points)
    assert ((held["labels"] == 1) == (shape.labels >= 0)).mean() > 0.9


def test_vismatch() -> None:
    first, second = points()
    held = ran("compute_ransac", matcher=SimpleNamespace(ransac_reproj_thresh=3.0))
    model, one, two = held["matcher"].compute_ransac(first, second)
    np.testing.assert_allclose(model, [[1, 0, 40], [0, 1, 5], [0, 0, 1]], atol=1e-3)
    assert (one.tolist(), two.tolist()) == (first[:TRUE].tolist(), second[:TRUE].tolist())


@pytest.mark.parametrize("n_true", [TRUE, 0])
def test_glue_factory(n_true: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    base = SimpleNamespace(BaseEstimator=type("BaseEstimator", (), {"conf": SimpleNamespace(ransac_th=3.0)}))
    for name in ("gluefactory", "gluefactory.robust_estimators", "gluefactory.robust_estimators.base_estimator"):
        monkeypatch.setitem(sys.modules, name, base)
    held = ran("class RuzHash")
    data = {f"m_kpts{side}": torch_tensor(each[:n_true]) for side, each in enumerate(points())}
    estimate = held["RuzHash"]()._forward(data)
    assert estimate["success"] is (n_true > 0)
    assert numbers(estimate["inliers"]).sum() == n_true
    np.testing.assert_allclose(numbers(estimate["M_0to1"])[:2, 2], [40, 5] if n_true else [0, 0], atol=1e-3)


def test_rtabmap() -> None:
    held = ran("ruzhash_matcher.py")
    held["init"](64, 0.2, 20, 1, "indoor")
    descriptors, shuffled = np.eye(N, dtype=np.float32), np.random.default_rng(1).permutation(N)
    first, second = points()
    pairs = held["match"](first, second[shuffled], None, None, descriptors, descriptors[shuffled], 640, 480)
    assert pairs.dtype == np.int32
    assert {(one, int(shuffled[two])) for one, two in pairs.tolist()} == {(row, row) for row in range(TRUE)}
    assert held["match"](first, second[:0], None, None, descriptors, descriptors[:0], 640, 480).shape == (0, 2)


def test_missing_points() -> None:
    first, second = points()
    held = ran("occluded", points1=first, points2=second, occluded=np.arange(N) < 3)
    assert np.flatnonzero(held["result"].inlier_mask).tolist() == list(range(3, TRUE))


@pytest.fixture
def listed() -> Iterator[dict[str, Any]]:
    """What the recipes for many pairs have before them, in threads in place of processes."""
    names = [("a", "b"), ("a", "c")]
    with joblib.parallel_config(backend="threading"):
        yield {"listed": names, "load_points": lambda *_: points(), "kept": {}}


def test_many_pairs(listed: dict[str, Any]) -> None:
    held = ran("n_jobs=-1", **listed)
    assert {key: mask.sum() for key, mask in held["kept"].items()} == dict.fromkeys(listed["listed"], TRUE)


@pytest.mark.filterwarnings("ignore")
def test_many_pairs_on_dask(listed: dict[str, Any]) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        held = ran("scheduler", **listed, scheduler=cluster, pairs=lambda: ((at, *points()) for at in listed["listed"]))
    assert {key: mask.sum() for key, mask in held["kept"].items()} == dict.fromkeys(listed["listed"], TRUE)
