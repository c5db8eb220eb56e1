"""The door: what gets in, and what is said to what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ruzhash_cv._validation import as_generator, as_points, check_choice, check_int, check_n_jobs, check_real


@pytest.mark.parametrize(
    "value", [[[1, 2], [3, 4]], ((1, 2), (3, 4)), np.array([[1, 2], [3, 4]], np.uint8), np.array([[[1, 2]], [[3, 4]]])]
)
def test_points_in_any_form_become_float64_rows(value: Any) -> None:
    points = as_points(value, "points1")
    assert points.tolist() == [[1, 2], [3, 4]]
    assert points.dtype == np.float64
    assert points.flags.c_contiguous


@pytest.mark.parametrize("value", [[], (), np.zeros((0, 2)), np.zeros(0)])
def test_no_points_have_two_columns(value: Any) -> None:
    assert as_points(value, "points1").shape == (0, 2)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.zeros((2, 3)), ValueError, r"`p` must have shape \(n, 2\), got \(2, 3\)"),
        (np.zeros(4), ValueError, r"`p` must have shape \(n, 2\), got \(4,\)"),
        (3.0, ValueError, r"`p` must have shape \(n, 2\), got \(\)"),
        ([[1, 2], [3]], ValueError, "got a ragged sequence"),
        ([["a", "b"]], TypeError, "`p` must be an array of real numbers, got dtype"),
        ([[None, 1]], TypeError, "`p` must be an array of real numbers, got dtype object"),
        ([[1j, 1]], TypeError, "`p` must be an array of real numbers, got dtype complex128"),
    ],
)
def test_what_is_no_points_is_named(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_points(value, "p")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_of_any_kind_pass(value: Any) -> None:
    assert check_int(value, "n") == 3
    assert type(check_int(value, "n")) is int
    assert check_n_jobs(value) == 3
    assert as_generator(value).random() == np.random.default_rng(3).random()


@pytest.mark.parametrize("value", [True, 3.0, "3", None, np.bool_(True)])
def test_what_is_no_integer_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match="`n` must be an integer, got"):
        check_int(value, "n")


@pytest.mark.parametrize("value", [0.0, -1, np.nan, np.inf])
def test_numbers_out_of_range_are_named(value: Any) -> None:
    with pytest.raises(ValueError, match="`threshold` must be a finite number above 0, got"):
        check_real(value, "threshold")
    with pytest.raises(ValueError, match="`rate` must lie between 0 and 1, got"):
        check_real(value if value else 1.0, "rate", below=1.0)
    assert check_real(1, "rate", below=1.0, inclusive=True) == 1.0


@pytest.mark.parametrize("value", ["affine", None, 3, ["homography"], np.array(["homography", "auto"])])
def test_what_is_no_choice_is_named(value: Any) -> None:
    with pytest.raises(ValueError, match="`model` must be one of 'auto', 'homography', got"):
        check_choice(value, "model", ("auto", "homography"))


def test_generators_pass_through_and_none_is_fresh() -> None:
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    assert as_generator(None).random() != as_generator(None).random()


@pytest.mark.parametrize("value", [-1, 1.0, "0", True])
def test_what_is_no_seed_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match=r"`rng` must be a non-negative int, a numpy\.random\.Generator or None, got"):
        as_generator(value)


def test_all_processors_are_at_least_one() -> None:
    assert check_n_jobs(None) == check_n_jobs(-1) >= 1
    with pytest.raises(ValueError, match="`n_jobs` must be at least 1, got -2"):
        check_n_jobs(-2)
