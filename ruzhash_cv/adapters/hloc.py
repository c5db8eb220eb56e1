"""A matcher of hloc that runs another one of hloc's, and removes the mismatches from its ``matches0``."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar

import torch
from hloc import matchers
from hloc.utils.base_model import BaseModel, dynamic_load

from ruzhash_cv.filtering import filter_points


class FilteredMatcher(BaseModel):  # type: ignore[misc]
    """Another matcher's matches without the mismatches.

    hloc finds matchers by the names of modules in its own folder. So either call `register`, or put a file there, as
    ``hloc/matchers/ruzhash.py``, that holds ``class RuzHash(FilteredMatcher): pass``.

    The configuration's ``"matcher"`` is for the wrapped matcher, with its ``"name"``. The other keys are options of `filter_points`.
    """

    default_conf: ClassVar[dict[str, Any]] = {
        "matcher": {"name": "nearest_neighbor", "do_mutual_check": True},
        "model": "auto",
        "threshold": None,
        "keep_stationary": True,
        "rng": 0,
    }
    required_inputs: ClassVar[list[str]] = ["keypoints0", "keypoints1"]

    def _init(self, conf: dict[str, Any]) -> None:
        self.matcher = dynamic_load(matchers, conf["matcher"]["name"])(conf["matcher"])

    def _forward(self, data: dict[str, Any]) -> dict[str, Any]:
        found = self.matcher(data)
        options = {name: self.conf[name] for name in ("model", "threshold", "keep_stationary", "rng")}
        result = filter_points(data["keypoints0"], data["keypoints1"], found["matches0"], **options)
        rejected = torch.from_numpy(~result.inlier_mask)[None].to(found["matches0"].device)
        rest = {name: found[name].masked_fill(rejected, 0) for name in ("matching_scores0",) if name in found}
        return {"matches0": found["matches0"].masked_fill(rejected, -1), **rest}


def register(name: str = "ruzhash") -> None:
    """Let hloc find the matcher under a name: ``{"model": {"name": "ruzhash", "matcher": {"name": "lightglue", ...}}}``."""
    path = f"{matchers.__name__}.{name}"
    module = ModuleType(path)
    module.RuzHash = type("RuzHash", (FilteredMatcher,), {"__module__": path})  # type: ignore[attr-defined]
    sys.modules[path] = module
