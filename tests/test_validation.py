"""The door: what gets in, and what is said to what does not."""

from fractions import Fraction
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from stand_ins import CudaArray, Tensor

import ruzhash_cv
from ruzhash_cv import as_correspondences, filter_matches, filter_points
from ruzhash_cv.foundation.validation import as_generator, as_points, check_int, check_n_jobs


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_of_any_kind_pass(value: Any) -> None:
    assert check_int(value, "n") == 3
    assert type(check_int(value, "n")) is int
    assert check_n_jobs(value) == 3
    assert as_generator(value).random() == np.random.default_rng(3).random()


def test_generators_pass_through_and_none_is_fresh() -> None:
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    assert as_generator(None).random() != as_generator(None).random()


def test_all_processors_are_at_least_one() -> None:
    assert check_n_jobs(None) == check_n_jobs(-1) >= 1
    with pytest.raises(ValueError, match="`n_jobs` must be at least 1, got -2"):
        check_n_jobs(-2)


# Arrays of other libraries give the bits that NumPy's give; libraries that may not be there are played by stand-ins.

#: Multiples of a quarter below 128, which bfloat16 holds too.
POINTS = np.random.default_rng(0).integers(0, 32, (40, 2)) / 4
MATCHES = np.stack([np.arange(40), np.random.default_rng(1).permutation(40)], axis=1)


def pandas_table(array: np.ndarray, dtype: str | None = None) -> Any:
    table = pd.DataFrame(array, columns=["x", "y"], index=np.arange(len(array)) + 100)
    return table.astype(dtype) if dtype else table


def bare(array: np.ndarray) -> Any:
    """Return an object that has `__array__` and nothing else."""
    return type("Bare", (), {"__array__": lambda self, dtype=None, copy=None: array})()


FLOATS = {
    "in Fortran's order": np.asfortranarray,
    "every second row": lambda array: np.repeat(array, 2, axis=0)[::2],
    "`__array__` alone": bare,
    "stand-in tensor": Tensor,
    "stand-in tensor of bfloat16": lambda array: Tensor(array, "torch.bfloat16"),
    "stand-in tensor of float8": lambda array: Tensor(array, "torch.float8_e4m3fn"),
    "list of stand-in tensors": lambda array: [Tensor(row) for row in array],
    "array of CUDA": CudaArray,
    "masked, nothing masked": np.ma.MaskedArray,
    "tuple of tuples": lambda array: tuple(map(tuple, array.tolist())),
    "tuple of cv2.KeyPoint": lambda array: tuple(cv2.KeyPoint(*row, 3.0) for row in array.tolist()),
    "pandas": pandas_table,
    "pandas Float64": lambda array: pandas_table(array, "Float64"),
}
WHOLE = {
    "`__array__` alone": bare,
    "two columns, `__array__` alone": lambda array: tuple(map(bare, array.T)),
    "stand-in tensor": lambda array: Tensor(array, "torch.int64", gradient=False),
    "array of CUDA": CudaArray,
    "masked, nothing masked": np.ma.MaskedArray,
    "pandas": pandas_table,
    "pandas Int64": lambda array: pandas_table(array, "Int64"),
}


@pytest.mark.parametrize("kind", FLOATS)
def test_points_of_any_kind_are_the_same_points(kind: str) -> None:
    points = as_points(FLOATS[kind](POINTS), "points1")
    assert points.tolist() == POINTS.tolist()
    assert (points.dtype, points.flags.c_contiguous) == (np.float64, True)
    pairs = as_correspondences(FLOATS[kind](POINTS), FLOATS[kind](POINTS), MATCHES)
    assert pairs.points2.tolist() == POINTS[MATCHES[:, 1]].tolist()


@pytest.mark.parametrize("kind", WHOLE)
def test_index_pairs_of_any_kind_are_the_same_pairs(kind: str) -> None:
    pairs = as_correspondences(POINTS, POINTS, WHOLE[kind](MATCHES))
    assert pairs.points1.tolist() == POINTS[MATCHES[:, 0]].tolist()
    assert pairs.points2.tolist() == POINTS[MATCHES[:, 1]].tolist()


def test_tensors_that_need_a_gradient_go_through_all_doors() -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 500, (60, 2))
    second = first + [40.0, 5.0]
    second[:20] = rng.uniform(0, 500, (20, 2))
    expected = filter_points(first, second)
    assert filter_points(Tensor(first), Tensor(second)).anomaly_scores.tolist() == expected.anomaly_scores.tolist()
    pairs = Tensor(np.stack([np.arange(60)] * 2, axis=1), "torch.int64", gradient=False)
    assert filter_matches(Tensor(first), Tensor(second), pairs).tolist() == expected.inlier_mask.tolist()
    matrix, mask = ruzhash_cv.find_homography(Tensor(first), Tensor(second))
    assert matrix.tolist() == ruzhash_cv.find_homography(first, second)[0].tolist()
    assert mask.sum() == 40


# What is masked, missing, or cannot be


def masked(array: np.ndarray, rows: list[int], column: int) -> Any:
    held: Any = np.ma.masked_array(array, np.zeros(array.shape, bool))
    held[rows, column] = np.ma.masked
    return held


def missing(array: np.ndarray, rows: list[int], column: int) -> Any:
    table = pandas_table(array, "Float64")
    table.iloc[rows, column] = pd.NA
    return table


@pytest.mark.parametrize("hide", [masked, missing])
def test_masked_points_are_flagged_as_those_that_are_not_finite(hide: Any) -> None:
    first = np.random.default_rng(0).uniform(0, 500, (60, 2))
    second = first + [40.0, 5.0]
    result = filter_points(first, hide(second, [3, 9], 1))
    second[[3, 9], 1] = np.nan
    expected = filter_points(first, second)
    assert np.flatnonzero(~result.inlier_mask).tolist() == [3, 9]
    assert result.anomaly_scores.tolist() == expected.anomaly_scores.tolist()


DAYS = pd.date_range("2020", periods=2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Tensor(np.stack([POINTS, POINTS])), r"have shape \(n, 2\), got \(2, 40, 2\)"),
        (Tensor(POINTS.astype(complex)), "be an array of real numbers, got dtype complex128"),
        (masked(POINTS.astype(complex), [0], 0), "be an array of real numbers, got dtype complex"),
        ([Tensor([1.0, 2.0]), Tensor([1.0])], r"have shape \(n, 2\), got a ragged sequence"),
        (pd.DataFrame({"x": DAYS, "y": ["a", "b"]}), "be an array of real numbers, got DataFrame of"),
        (pd.DataFrame({"x": DAYS, "y": [1.0, 2.0]}), "be an array of real numbers, got DataFrame of Timestamp"),
        (pd.DataFrame({"x": DAYS, "y": DAYS}), "be an array of real numbers, got dtype datetime64"),
    ],
)
def test_arrays_of_other_libraries_that_are_no_points_are_named(value: Any, message: str) -> None:
    with pytest.raises(TypeError if "real" in message else ValueError, match=f"`p` must {message}"):
        as_points(value, "p")


def test_object_arrays_of_numbers_are_numbers() -> None:
    assert np.array_equal(as_points(np.array(POINTS, object), "points"), POINTS)
    mixed = [[Fraction(1, 2), 10**400], [-(10**400), 10**30], [np.longdouble("1e4000"), True]]
    assert as_points(mixed, "points").tolist() == [[0.5, np.inf], [-np.inf, 1e30], [np.inf, 1.0]]
    for other in ("1", None, 1j):
        of_objects = np.array([[0.0, other]], object)
        with pytest.raises(TypeError, match=r"`points` must be an array of real numbers, got ndarray of"):
            as_points(of_objects, "points")
