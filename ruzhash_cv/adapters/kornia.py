"""`kornia.geometry.RANSAC`'s place: one model and its inliers as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ruzhash_cv._validation import RNG, check_choice, check_real
from ruzhash_cv.opencv import find_fundamental_matrix, find_homography

FINDERS: dict[str, Callable[..., Any]] = {
    "homography": find_homography,
    "fundamental": find_fundamental_matrix,
    "fundamental_7pt": find_fundamental_matrix,
    "fundamental_8pt": find_fundamental_matrix,
}


class RANSAC(torch.nn.Module):  # type: ignore[misc]
    """A module that is called as kornia's is: ``model, mask = RANSAC("homography", inl_th=2.0)(kp1, kp2)``.

    Parameters
    ----------
    model_type : {"homography", "fundamental", "fundamental_7pt", "fundamental_8pt"}
    inl_th : float
        Pixels, see `find_homography`.
    batch_size, max_iter, confidence, max_lo_iters
        Taken and ignored: how much is sampled follows from the matches.
    seed : int, optional
        None is 0, so that results repeat.
    """

    def __init__(
        self,
        model_type: str = "homography",
        inl_th: float = 2.0,
        batch_size: Any = None,
        max_iter: Any = None,
        confidence: Any = None,
        max_lo_iters: Any = None,
        *,
        seed: RNG = None,
    ) -> None:
        super().__init__()
        self.model_type = check_choice(model_type, "model_type", tuple(FINDERS))
        self.inl_th = check_real(inl_th, "inl_th")
        self.seed = 0 if seed is None else seed

    def forward(self, kp1: torch.Tensor, kp2: torch.Tensor, weights: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a model (3, 3) and the mask (N,) of its inliers, on the device of `kp1` (N, 2); `weights` are ignored.

        The model has the dtype of `kp1`, and is zero where nothing is found.
        """
        model, mask = FINDERS[self.model_type](kp1, kp2, threshold=self.inl_th, rng=self.seed)
        found = torch.zeros(3, 3) if model is None else torch.from_numpy(model)
        return found.to(kp1), torch.from_numpy(mask[:, 0] > 0).to(kp1.device)
