"""Beside kornia's own module, called alike, on the same tensors."""

from __future__ import annotations

import numpy as np
import pytest
from two_views import motion, plane

pytest.importorskip("torch")

import torch

from ruzhash_cv.adapters.kornia import RANSAC


def halves(pairs: np.ndarray, n_wrong: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points of matches, and of mismatches after them, in single precision."""
    wrong = np.random.default_rng(1).uniform(0, 600, (n_wrong, 4))
    both = torch.from_numpy(np.vstack([pairs, wrong])).float()
    return both[:, :2].contiguous(), both[:, 2:].contiguous()


@pytest.mark.parametrize(("kind", "pairs"), [("homography", plane(80, 0.3)), ("fundamental", motion(80, 0.3))])
def test_returns_what_kornia_s_module_returns(kind: str, pairs: np.ndarray) -> None:
    theirs = pytest.importorskip("kornia.geometry").RANSAC
    kp1, kp2 = halves(pairs)
    torch.manual_seed(0)
    model, mask = RANSAC(kind, inl_th=2.0)(kp1, kp2)
    expected, their_mask = theirs(kind, inl_th=2.0)(kp1, kp2)
    assert (model.dtype, model.shape, model.device) == (expected.dtype, expected.shape, expected.device)
    assert (mask.dtype, mask.shape, mask.device) == (their_mask.dtype, their_mask.shape, their_mask.device)
    assert mask[:80].float().mean() > 0.95
    assert mask[80:].float().mean() < 0.2
    assert (mask == their_mask)[:80].float().mean() > 0.9
    if kind == "homography":
        assert torch.allclose(model, expected / expected[2, 2], rtol=0.05, atol=0.05 * float(model.abs().max()))


def test_nothing_found_is_zero_and_arguments_of_kornia_are_taken() -> None:
    module = RANSAC("fundamental_7pt", 1.0, 2048, 10, 0.99, 5, seed=3)
    kp1, kp2 = halves(plane(5), n_wrong=0)
    model, mask = module(kp1, kp2, torch.ones(5))
    assert model.tolist() == [[0.0] * 3] * 3
    assert mask.tolist() == [False] * 5
    gradient = kp1.clone().requires_grad_()
    assert module(gradient, kp2)[0].shape == (3, 3)


def test_kinds_of_models_that_are_not_here_are_named() -> None:
    with pytest.raises(ValueError, match=r"`model_type` must be one of 'homography', .*, got 'essential'"):
        RANSAC("essential")
