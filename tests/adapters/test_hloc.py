"""Found and called as hloc finds and calls its matchers, with batches of one pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from two_views import plane

pytest.importorskip("torch")

import torch
from hloc import matchers
from hloc.utils.base_model import BaseModel, dynamic_load

from ruzhash_cv.adapters import hloc


def data(n_true: int = 60, n_wrong: int = 30) -> dict[str, Any]:
    """Return what hloc's loader gives: keypoints (1, n, 2), descriptors (1, d, n); row i belongs to row i."""
    rng = np.random.default_rng(0)
    pairs = np.vstack([plane(n_true, 0.3), rng.uniform(0, 600, (n_wrong, 4))])
    descriptors = rng.normal(size=(64, len(pairs)))
    descriptors /= np.linalg.norm(descriptors, axis=0)
    held = {
        "keypoints0": pairs[:, :2],
        "keypoints1": pairs[:, 2:],
        "descriptors0": descriptors,
        "descriptors1": descriptors,
    }
    return {name: torch.from_numpy(values).float()[None] for name, values in held.items()}


def test_hloc_loads_it_by_name_and_it_filters_another_matcher() -> None:
    hloc.register()
    model = dynamic_load(matchers, "ruzhash")({"name": "ruzhash"}).eval()
    assert isinstance(model, BaseModel)
    given = data()
    found, unfiltered = model(given), dynamic_load(matchers, "nearest_neighbor")({})(given)
    assert (unfiltered["matches0"] == torch.arange(90)).all()
    assert found["matches0"].shape == (1, 90)
    assert found["matches0"].dtype == unfiltered["matches0"].dtype
    kept = found["matches0"][0] >= 0
    assert (found["matches0"][0][kept] == torch.arange(90)[kept]).all()
    assert kept[:60].sum() > 55
    assert kept[60:].sum() < 5
    scores = found["matching_scores0"][0]
    assert (scores[~kept] == 0).all()
    assert torch.equal(scores[kept], unfiltered["matching_scores0"][0][kept])
    found["matches0"][0].cpu().short().numpy()  # as hloc's writer does


def test_its_configuration_has_the_other_matcher_s_and_options_of_the_filter() -> None:
    hloc.register("ours")
    options = {
        "matcher": {"name": "nearest_neighbor", "do_mutual_check": False},
        "model": "homography",
        "threshold": 1.0,
    }
    model = dynamic_load(matchers, "ours")({"name": "ours", **options})
    assert model.matcher.conf["do_mutual_check"] is False
    assert (model(data())["matches0"] >= 0).sum() > 50


def test_a_pair_without_matches_stays_without() -> None:
    empty = {name: values[..., :0, :] if name.startswith("key") else values[..., :0] for name, values in data().items()}

    class Nobody(BaseModel):
        def _init(self, conf: Any) -> None:
            pass

        def _forward(self, data: Any) -> Any:
            return {"matches0": torch.full((1, data["keypoints0"].shape[1]), -1)}

    model = hloc.FilteredMatcher({})
    model.matcher = Nobody({})
    assert model(empty)["matches0"].shape == (1, 0)
    assert (model(data())["matches0"] == -1).all()


def test_the_recipe_s_configuration_loads_the_other_matcher(recipe: Any) -> None:
    held: dict[str, Any] = {}
    exec(recipe("adapters import hloc"), held)
    conf = held["conf"]["model"]
    conf["matcher"] = {"name": "nearest_neighbor"}  # LightGlue's weights are not here
    assert (dynamic_load(matchers, conf["name"])(conf)(data())["matches0"] >= 0).sum() > 50
