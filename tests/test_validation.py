"""The door: what gets in, and what is said to what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import ruzhash_cv
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
        ([[None, 1]], TypeError, "`p` must be an array of real numbers, got list of NoneType"),
        (None, TypeError, "`p` must be an array of real numbers, got NoneType"),
        ("points.txt", TypeError, "`p` must be an array of real numbers, got str"),
        ((point for point in ()), TypeError, "`p` must be an array of real numbers, got generator"),
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


# What fuzzing found: each of these once raised something else, or leaked a warning.

FOUR = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
SQUARE = [[0, 1, 2, 3]]
ROW = np.array([[0.5, 0.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ruzhash_cv.filter_points([[10**400, 1.0]], [[1, 1]]), TypeError, "`points1` must be an array of real"),
        (lambda: ruzhash_cv.filter_points(np.zeros((5, 0)), FOUR), ValueError, r"`points1` .*\(n, 2\), got \(5, 0\)"),
        (lambda: ruzhash_cv.filter_points(FOUR, FOUR, threshold=10**600), ValueError, "`threshold` must be .*got inf"),
        (lambda: ruzhash_cv.filter_points(FOUR, FOUR, n_jobs=np.zeros(2)), TypeError, "`n_jobs` must be an integer"),
        (lambda: ruzhash_cv.filter_points(FOUR, FOUR, n_jobs=10**30), ValueError, "`n_jobs` must be at most 2147483647"),
        (lambda: ruzhash_cv.RuzHashForest(n_trees=10**30), ValueError, "`n_trees` must be at most 2147483647"),
        (lambda: ruzhash_cv.filter_matches({"x": 1}, FOUR, SQUARE), TypeError, "`kp1` must be a sequence"),
        (lambda: ruzhash_cv.filter_matches(csr_array(FOUR), FOUR, SQUARE), TypeError, "`kp1` must be an array of real"),
        (lambda: ruzhash_cv.filter_matches(FOUR, FOUR, {}), TypeError, "`matches` must be a sequence, got dict"),
        (lambda: ruzhash_cv.filter_matches(FOUR, FOUR, np.array(3)), TypeError, "`matches` must be a sequence"),
        (lambda: ruzhash_cv.filter_matches(FOUR, FOUR, [[1, 2], [3]]), ValueError, "`matches` must have shape"),
        (lambda: ruzhash_cv.select_matches([()], [True]), TypeError, r"`matches\[0\]` is kept .* cv2.DMatch, got \(\)"),
        (lambda: ruzhash_cv.select_matches("ab", [True, True]), TypeError, "`matches` must be a sequence, got str"),
        (lambda: ruzhash_cv.select_matches([(), ()], [0.5, 1.0]), TypeError, "`inlier_mask` must be a FilterResult or a mask of bool"),
        (lambda: ruzhash_cv.transfer_error(FOUR, FOUR, np.eye(2)), ValueError, "`homographies` must have shape"),
        (lambda: ruzhash_cv.sampson_distance(FOUR, FOUR, [["a"]]), TypeError, "`fundamental_matrices` must be an array"),
        (lambda: ruzhash_cv.ruzhash([[1e300]]), ValueError, r"`preferences` must lie in \[0, 1\], got values from 1e\+300"),
        (lambda: ruzhash_cv.ruzhash(csr_array(ROW + 1j)), ValueError, "`preferences` must be a numeric array"),
        (lambda: ruzhash_cv.ruzhash([[1], [1, 0]]), ValueError, "`preferences` must have shape .* ragged"),
        (lambda: ruzhash_cv.p_values([0.5], [np.nan]), ValueError, "`decoy_scores` must be finite, got nan"),
        (lambda: ruzhash_cv.p_values(0.5, []), ValueError, r"`scores` must have shape \(n,\), got \(\)"),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_kind_are_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
def test_coordinates_of_any_size_leak_no_warning(scale: float) -> None:
    points = np.random.default_rng(0).uniform(0, 1, (30, 2)) * scale
    assert not ruzhash_cv.filter_points(points, points).inlier_mask.any()
    assert (ruzhash_cv.transfer_error(points, points, np.eye(3) * scale) >= 0).all()


@pytest.mark.parametrize("threshold", [5e-324, 1e-300, 1e-30, 1e300])
def test_thresholds_of_any_size_leak_no_warning(threshold: float) -> None:
    points = np.random.default_rng(0).uniform(0, 1e9, (60, 2))
    assert ruzhash_cv.filter_points(points, points + 3.0, threshold=threshold).inlier_mask.shape == (60,)


@pytest.mark.parametrize("dtype", [">f8", "f2", ">i2", "g", "?"])
def test_preferences_of_any_dtype_are_the_same_rows(dtype: str) -> None:
    assert ruzhash_cv.ruzhash(np.eye(3, dtype=dtype)).tolist() == ruzhash_cv.ruzhash(np.eye(3)).tolist()
