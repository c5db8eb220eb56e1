"""Nearest neighbours of descriptors, (1, d, n) as hloc has them."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from ..utils.base_model import BaseModel


class NearestNeighbor(BaseModel):
    """Mutual nearest neighbours by the angles between descriptors."""

    default_conf: ClassVar[dict[str, Any]] = {"do_mutual_check": True}
    required_inputs: ClassVar[list[str]] = ["descriptors0", "descriptors1"]

    def _init(self, conf: dict[str, Any]) -> None:
        pass

    def _forward(self, data: dict[str, Any]) -> dict[str, Any]:
        likeness = torch.einsum("bdn,bdm->bnm", data["descriptors0"], data["descriptors1"])
        best, partners = likeness.max(dim=2)
        mutual = likeness.argmax(dim=1).gather(1, partners) == torch.arange(partners.shape[1])
        if self.conf["do_mutual_check"]:
            partners = partners.masked_fill(~mutual, -1)
        return {"matches0": partners, "matching_scores0": (best + 1) / 2}
