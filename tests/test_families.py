"""Families of models: solvers through their samples, residuals against their definitions, preferences of any family."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from ruzhash_cv import embed_preferences
from ruzhash_cv.families import (
    Circles,
    FundamentalMatrices,
    Homographies,
    Lines,
    ModelFamily,
    family_preferences,
    fit_noise,
    normalise_pairs,
    sample_models,
)

FAMILIES: dict[str, tuple[ModelFamily, int]] = {
    "lines": (Lines(), 2),
    "circles": (Circles(), 2),
    "homographies": (Homographies(), 4),
    "fundamental": (FundamentalMatrices(), 4),
}
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plane_in_space.py"


def residual_twin(name: str, point: np.ndarray, model: np.ndarray) -> float:
    """Return one residual as it is written in the literature."""
    if name == "lines":
        a, b, c = model
        return abs(a * point[0] + b * point[1] + c) / np.hypot(a, b)
    if name == "circles":
        centre, radius2 = -model[:2] / 2, np.sum(model[:2] ** 2) / 4 - model[2]
        return abs(np.sum((point - centre) ** 2) - radius2)
    first, second = np.append(point[:2], 1.0), np.append(point[2:], 1.0)
    matrix = model.reshape(3, 3) / np.linalg.norm(model)
    if name == "fundamental":
        return abs(second @ matrix @ first)
    return float(np.linalg.norm(np.cross(second, matrix @ first)[:2]))


def exact_data(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return points that one model of the family explains exactly."""
    if name == "lines":
        return np.array([0.3, -0.2]) + rng.uniform(-1, 1, (n, 1)) * np.array([0.8, 0.6])
    if name == "circles":
        angles = rng.uniform(0, 2 * np.pi, n)
        return np.array([0.2, 0.1]) + 0.7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    space = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 5, n)])
    if name == "homographies":
        space[:, 2] = 4 + 0.3 * space[:, 0] - 0.2 * space[:, 1]
    moved = space @ np.array([[0.98, 0.05, -0.19], [-0.04, 0.999, 0.05], [0.19, -0.04, 0.98]]).T + [0.5, 0.1, 0.2]
    return np.hstack([space[:, :2] / space[:, 2:], moved[:, :2] / moved[:, 2:]])


@pytest.mark.parametrize("name", FAMILIES)
def test_residuals_equal_a_plain_twin(name: str) -> None:
    family, d = FAMILIES[name]
    rng = np.random.default_rng(0)
    data = rng.normal(size=(7, d))
    models = family.solve(rng.normal(size=(5, family.sample_size, d)))
    found = family.residuals(data, models)
    expected = [[residual_twin(name, point, model) for model in models] for point in data]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("extra", [0, 20])
def test_a_model_goes_through_points_that_lie_on_one(name: str, extra: int) -> None:
    """Minimal samples, and least squares where there are more points. OpenCV's solvers work in single precision."""
    family, _ = FAMILIES[name]
    data = exact_data(name, np.random.default_rng(1), family.sample_size + extra)
    residuals = family.residuals(data, family.solve(data[None]))
    assert residuals.min(axis=1).max() < 1e-5
    if extra:
        assert residuals.shape[1] == 1
        assert residuals.max() < 1e-8


@pytest.mark.parametrize("name", FAMILIES)
def test_least_squares_lies_between_noisy_points(name: str) -> None:
    family, d = FAMILIES[name]
    rng = np.random.default_rng(2)
    clean = exact_data(name, rng, 200)
    noisy = clean + 0.002 * rng.normal(size=clean.shape)
    sigma = fit_noise(noisy, np.ones(200), family)
    fitted = family.solve(noisy[None])
    assert family.residuals(clean, fitted).mean() < 0.75 * sigma
    assert sigma < 0.01 * np.sqrt(d)


@pytest.mark.parametrize("name", FAMILIES)
def test_degenerate_samples_are_dropped_and_counted(name: str) -> None:
    family, d = FAMILIES[name]
    models, n_degenerate = sample_models(np.ones((20, d)), family, n_models=10)
    assert np.isfinite(models).all()
    if name in ("lines", "circles"):
        assert len(models) == 0
    assert n_degenerate + len(models) >= 10 or name == "fundamental"
    few, _ = sample_models(np.ones((family.sample_size - 1, d)), family, n_models=10)
    assert len(few) == 0
    assert family_preferences(np.ones((3, d)), family, few, sigma=1.0).shape == (3, 0)


def test_three_points_on_a_line_make_no_circle() -> None:
    samples = np.array([[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    assert np.isnan(Circles().solve(samples)).all(axis=1).tolist() == [True, False]


def test_samples_are_uniform_without_repetition() -> None:
    data = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2])
    drawn: list[np.ndarray] = []

    class Recorder:
        sample_size = 3

        def solve(self, samples: np.ndarray) -> np.ndarray:
            drawn.append(samples[..., 0])
            return samples[:, 0]

        def residuals(self, data: np.ndarray, models: np.ndarray) -> np.ndarray:
            return np.zeros((len(data), len(models)))

    models, n_degenerate = sample_models(data, Recorder(), n_models=6000)
    rows = np.sort(np.vstack(drawn), axis=1)
    assert (np.diff(rows, axis=1) > 0).all()
    assert (len(models), n_degenerate) == (6000, 0)
    # Binomial(6000, 1/20) for each of the 20 triples, five standard deviations.
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(counts) == 20
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300 * 0.95)


def test_preferences_in_blocks_equal_preferences_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(0).random((30, 2))
    models, _ = sample_models(data, Lines(), n_models=47)
    whole = embed_preferences(Lines().residuals(data, models), sigma=0.05, k=2.0)
    monkeypatch.setattr("ruzhash_cv.families._RESIDUALS_AT_ONCE", 100)
    parts = family_preferences(data, Lines(), models, sigma=0.05, k=2.0)
    np.testing.assert_array_equal(parts.toarray(), whole.toarray())


def test_normalised_pairs_are_centred_and_of_unit_size() -> None:
    rng = np.random.default_rng(0)
    pairs = normalise_pairs(rng.uniform(0, 640, (500, 2)), rng.uniform(100, 400, (500, 2)))
    assert np.abs(np.median(pairs, axis=0)).max() < 1e-9
    assert np.abs(pairs[:, :2]).mean() == pytest.approx(1, abs=1e-9)


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


def test_a_family_of_one_s_own_needs_three_members(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    words = capsys.readouterr().out.splitlines()[-1].split()
    strays, highest = int(words[0]), int(words[3])
    # A quarter of the points are strays.
    assert strays > 0.6 * highest


@pytest.mark.parametrize(
    ("points1", "points2", "message"),
    [
        (np.zeros((1, 2)), np.zeros((2, 2)), "`points1` and `points2` must have the same length"),
        (np.zeros(4), np.zeros(4), r"`points1` must have shape \(n, 2\), got \(4,\)"),
        (np.zeros((3, 2)), np.full((3, 2), np.nan), "`points2` must be finite, got nan"),
    ],
)
def test_pairs_to_normalise_are_checked(points1: np.ndarray, points2: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normalise_pairs(points1, points2)
