"""Models of uniform samples, and the noise of labelled structures, of any family."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from ruzhash_cv.families import FundamentalMatrices, Homographies, Lines, ModelFamily
from ruzhash_cv.paper import AlgebraicCircles, family_preferences, fit_noise, sample_models

FAMILIES: dict[str, tuple[ModelFamily, int]] = {
    "lines": (Lines(), 2),
    "circles": (AlgebraicCircles(), 2),
    "homographies": (Homographies(), 4),
    "fundamental": (FundamentalMatrices(), 4),
}
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plane_in_space.py"


@pytest.mark.parametrize("name", FAMILIES)
def test_degenerate_samples_are_dropped_and_counted(name: str) -> None:
    family, d = FAMILIES[name]
    models, n_degenerate = sample_models(np.ones((20, d)), family, n_models=10)
    assert np.isfinite(models).all()
    if name != "fundamental":
        assert len(models) == 0
    assert n_degenerate + len(models) >= 10
    few, _ = sample_models(np.ones((family.sample_size - 1, d)), family, n_models=10)
    assert len(few) == 0
    assert family_preferences(np.ones((3, d)), family, few, sigma=1.0).shape == (3, 0)


def test_samples_are_uniform_without_repetition() -> None:
    data = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2])
    drawn: list[np.ndarray] = []

    class Recorder(Lines):
        """Three points a sample; its models are the first of them."""

        def solve(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            drawn.append(samples[..., 0])
            return samples[:, 0], np.arange(len(samples))

    models, n_degenerate = sample_models(data, Recorder(sample_size=3), n_models=6000)
    rows = np.sort(np.vstack(drawn), axis=1)
    assert (np.diff(rows, axis=1) > 0).all()
    assert (len(models), n_degenerate) == (6000, 0)
    # Binomial(6000, 1/20) for each of the 20 triples, five standard deviations.
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(counts) == 20
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300 * 0.95)


def test_noise_is_pooled_over_structures_and_needs_one() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 2000)
    data = np.vstack(
        [np.column_stack([x, 0.01 * rng.normal(size=2000)]), np.column_stack([0.03 * rng.normal(size=2000), x])]
    )
    assert fit_noise(data, np.repeat([1, 2], 2000), Lines()) == pytest.approx(
        np.sqrt((0.01**2 + 0.03**2) / 2), rel=0.05
    )
    with pytest.raises(ValueError, match="`labels` must name a structure of more than 2 points, got none"):
        fit_noise(data[:3], [0, 1, 1], Lines())
    with pytest.raises(ValueError, match=r"`data` must have shape \(n, d\), got \(3,\)"):
        sample_models([1.0, 2.0, 3.0], Lines(), n_models=1)


def test_a_family_of_one_s_own_finds_planes_in_space(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    words = capsys.readouterr().out.splitlines()[-1].split()
    strays, highest = int(words[0]), int(words[3])
    # A quarter of the points are strays.
    assert strays > 0.6 * highest
