"""Every number of the method has a meaning, is read, and changes results; no stage has a tuned number of its own."""

import functools
import importlib
import itertools
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from many_pairs import digest
from posed_views import FLOOR, WALL, on_plane, views
from result_rows import structures
from stage_cases import mismatches
from two_views import beside, copies_of_one, motion, one_window_off, plane, shifted_along_lines, strips, two_planes

from ruzhash_cv import FilterResult
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import PARAMETERS, Parameters
from ruzhash_cv.filtering import Options, families_of, run
from ruzhash_cv.opencv import find_matrix

FIELDS = {field.name: field for field in fields(Parameters) if field.metadata}
STAGES = (
    *(f"core.method.{name}" for name in (
        "matches", "sampling", "preferences", "fits", "evidence", "scores", "competition", "search", "law", "motions", "surfaces",
        "estimate",
    )),
    "results.pose", "filtering", "opencv",
)  # fmt: skip
#: What is no tuned number: guards against overflow and rounding, sizes that follow from algebra, codes, and what costs only time.
NOT_TUNED = {
    "LARGEST_COORDINATE", "MAX_STRUCTURES", "MIN_MATCHES", "EXACT", "PARALLAX_SIZE", "N_FIVES", "_N_REFINED", "_N_STEPS", "_SEED",
    "_SOME", "_BLOCK", "_FEW_ROWS", "_WIDTH", "_NO_GROUP", "_REPEATED", "_COLLINEAR", "_FLIPPED", "_GOOD",
    "_MOST_SEARCHED", "_MOST_DEGENERATE", "_PRIOR", "_NEGLIGIBLE", "_REACH", "_LEAST_REACH", "_WIDEST", "MORE_THAN_HALF",
    "MAX_MOTIONS", "MAX_PLANES", "_N_FITS", "_N_PERIODS", "_N_NARROWER", "_N_PLANES", "_N_POSED", "_LEAST_PROBABILITY", "_UNLIKE",
    "_NOISY_SIZE", "_LEAST_SIZE", "_LARGEST_SIZE", "_THIN", "DO_NOT_RECONSTRUCT", "_ROUNDING", "_WHOLE",
    "_FEW", "GIVEN", "MOST_SAMPLES", "_NOTHING", "_ZERO", "ZERO", "ROBUST_METHODS", "THRESHOLD", "ESSENTIAL_THRESHOLD",
}  # fmt: skip
#: What is tuned, and stands in a module all the same: it should be among the parameters.
NOT_YET_PARAMETERS = {
    "core.method.surfaces": {"_N_NEAR"},
    "core.method.opacity": {"_N_NEAR"},
    "core.method.matches": {"_ROUNDED_SHARE"},
    "core.method.bending": {"_MOST"},
    "results.pose": {"_FAR"},
}


def on_grid(data: np.ndarray, spacing: float) -> np.ndarray:
    """Matches of keypoints on a grid, as of a board or of windows."""
    return np.asarray(np.round(data / spacing) * spacing + np.random.default_rng(0).normal(0, 0.3, data.shape))


def hardly_off_a_plane(seed: int) -> np.ndarray:
    """Matches of a wall and eight before it, whose motion has little more evidence than its own numbers cost."""
    rng = np.random.default_rng(seed)
    points = np.vstack([on_plane(WALL, 100, rng), on_plane(WALL, 8, rng, 0.5, 0.9)])
    return np.vstack([np.hstack(views(points, seed=seed)), mismatches(40, seed)])


def found_in_parts(seed: int) -> np.ndarray:
    """Matches of two noisy planes and things before one of them, of which a round explains one or two more than the last."""
    rng = np.random.default_rng(seed)
    points = np.vstack([on_plane(WALL, 60, rng), on_plane(FLOOR, 40, rng), on_plane(WALL, 40, rng, 0.5, 0.95)])
    return np.vstack([np.hstack(views(points, seed=seed, noise=2.0)), mismatches(200, seed)])


@functools.cache
def scenes() -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Matches of planes and motions, of textures, of nothing, and more than are searched: on some of them each number matters.

    Most numbers matter on one of the first.
    """
    rng = np.random.default_rng(0)
    wall = np.vstack([on_plane(WALL, 100, rng), on_plane(FLOOR, 80, rng), on_plane(WALL, 40, rng, 0.6, 0.95)])
    crowded = np.round(mismatches(120, 1) / 40) * 40
    return tuple((data[:, :2], data[:, 2:]) for data in (
        hardly_off_a_plane(3),
        np.vstack([plane(120, 0.2), plane(150, 3.0, 1)]),
        found_in_parts(7),
        np.hstack(copies_of_one(4, 0)[:2]),
        np.vstack([np.hstack(views(wall, noise=1.0)), mismatches(150)]),
        np.vstack([plane(300, 12.0, 2)[:30], mismatches(300, 5)]),
        on_grid(mismatches(500, 1) / 2, 60.0),
        np.vstack([plane(900, 0.5), motion(300, 0.5, 1), mismatches(200, 2)]),
        np.hstack(beside(0.0, 0.1, seed=1)[:2]),
        np.vstack([plane(250, 5.0), motion(60, 0.4), crowded]),
        np.hstack(shifted_along_lines(0, contested=True)),
        two_planes(apart=False, n_contested=10)[0],
        np.hstack(one_window_off(seed=0)[:2]),
        strips(60, [60, 4], n_contested=10)[0],  # neighbours are now of one and now of the other
        mismatches(300),
        two_planes(apart=False)[0],
    ))  # fmt: skip


def result_of(number: int, parameters: Parameters) -> FilterResult:
    return run(*scenes()[number], families_of("auto"), parameters, Options(), np.random.default_rng(0))


@functools.cache
def digest_of(number: int, parameters: Parameters = PARAMETERS) -> tuple[str, str]:
    result = result_of(number, parameters)
    return digest(result), repr(result.motions)


@functools.cache
def matrix_of(number: int, parameters: Parameters = PARAMETERS) -> str:
    """Return what `find_fundamental_matrix` makes of a scene."""
    matches = MatchSet.of(*scenes()[number], parameters.unit)
    return repr(find_matrix("fundamental", matches, 3.0, parameters, np.random.default_rng(0)))


def others(name: str) -> list[Any]:
    """Return other values for a number: about half and about twice as large."""
    value = getattr(PARAMETERS, name)
    if FIELDS[name].metadata["kind"] == "exponent":
        return [value - 2, value + 2]
    if isinstance(value, tuple):
        return [tuple(type(each)(of * each) for each in value) for of in (0.5, 2)]
    if isinstance(value, int):
        return [max(value // 2, 1), 2 * value]
    return [0.5 * value, min(2 * value, 1.0) if FIELDS[name].metadata["kind"] == "share" else 2 * value]


@pytest.mark.parametrize("name", FIELDS)
def test_another_value_changes_results(name: str) -> None:
    variants = [replace(PARAMETERS, **{name: value}) for value in others(name)]
    calls = itertools.product((digest_of, matrix_of), range(len(scenes())), variants)
    assert any(of(at, each) != of(at) for of, at, each in calls)


def test_every_number_has_a_meaning_and_a_kind() -> None:
    for field in FIELDS.values():
        assert len(field.metadata["meaning"].split()) > 2
        assert field.metadata["kind"] in ("plain", "share", "exponent")
        if field.metadata["kind"] == "share":
            assert 0.0 < getattr(PARAMETERS, field.name) <= 1.0


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_has_a_tuned_number_of_its_own(stage: str) -> None:
    """What stands in a module is a parameter, or is named above as none."""
    found = vars(importlib.import_module(f"ruzhash_cv.{stage}")).items()
    numbers = {name for name, value in found if isinstance(value, int | float | np.number | np.ndarray)}
    numbers -= {name for name, value in found if isinstance(value, bool)}
    tuples = {name: value for name, value in found if type(value) is tuple}
    numbers |= {name for name, value in tuples.items() if all(isinstance(each, int | float) for each in value)}
    tuned = {name for name in numbers if not name.startswith("__")} - NOT_TUNED
    assert tuned == NOT_YET_PARAMETERS.get(stage, set())


def test_scales_and_radii_follow_from_the_numbers() -> None:
    radii = {"plane_widest_radius": 4, "motion_widest_radius": 6, "annulus_steps": 3}
    parameters = Parameters(n_scales=2, widest_scale=6.0, **radii)
    np.testing.assert_allclose(parameters.scales, [6.0, 2.0])
    assert parameters.preference_limit == 18.0
    np.testing.assert_allclose(parameters.radii**2, 2.0 ** np.arange(-6, 7))
    assert (parameters.finest_radius, parameters.n_radii, parameters.n_radius_indices) == (-6, 13, 17)
    assert parameters.tolerance_ratio == pytest.approx(2**0.5)


@pytest.mark.parametrize("unit", [1.5, 3.0, 6.0])
def test_tolerances_are_noise_scales_and_these_at_least_a_share_of_the_unit(unit: float) -> None:
    parameters = replace(PARAMETERS, unit=unit)
    models = [model for at in range(3) for model in structures(result_of(at, parameters))]
    noise = np.maximum([model.noise_scale for model in models], parameters.least_noise * unit)
    np.testing.assert_allclose([model.tolerance for model in models], parameters.tolerance_scales * noise)
