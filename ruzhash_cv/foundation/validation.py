"""The door: every public function checks its arguments here, everything behind it trusts them.

Errors name the argument, the requirement and what arrived.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from datetime import date, timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv.foundation.arrays import Array, Mask

if TYPE_CHECKING:  # an import of .1 s
    from scipy import sparse

P = ParamSpec("P")
T = TypeVar("T")
RNG: TypeAlias = int | np.integer[Any] | np.random.Generator | None
#: Rows of preferences (n, m), dense or sparse.
Preferences: TypeAlias = "ArrayLike | sparse.sparray | sparse.spmatrix"
_LARGEST_INT = 2**31 - 1
#: Pixels; anything larger is no coordinate, and beyond it a fundamental matrix of doubles is not exact to a pixel.
LARGEST_COORDINATE = 1e9
#: In any unit; squares of squares of what is smaller do not overflow.
LARGEST_LENGTH = 1e60


def as_plain(value: Any) -> Any:
    """Return tensors and tables of other libraries as NumPy arrays, and anything else as it is.

    They are known by their methods, so that no library has to be there. Masked entries and missing values become NaN, and an array of
    such things keeps its other values if doubles can hold them.
    """
    if isinstance(value, np.generic):
        return value
    if isinstance(value, cv2.UMat):
        return value.get()
    if isinstance(value, np.ma.MaskedArray):
        return _filled(value)
    if isinstance(value, np.ndarray):  # jax's short floats have no kind in NumPy
        return value.astype(np.float64) if value.dtype.kind == "V" and "float" in value.dtype.name else value
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # torch, of any device, with or without a gradient
        value = value.detach().cpu()
        short = any(kind in str(value.dtype) for kind in ("bfloat16", "float8"))
        return (value.float() if short else value).numpy()
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):  # CuPy
        return value.get()
    if hasattr(value, "iloc"):  # pandas
        return _table(value)
    items = value if isinstance(value, (list, tuple)) else ()
    if any(isinstance(item, np.ma.MaskedArray) or hasattr(item, "detach") for item in items):
        return np.array([as_plain(item) for item in value])
    return as_plain(np.asarray(value)) if hasattr(value, "__array__") else value


def _filled(array: Any) -> NDArray[Any]:
    """Return a masked array with NaN where it is masked."""
    if not np.ma.is_masked(array) or array.dtype.kind not in "iufb":
        return np.asarray(array.data)
    return np.asarray(array.astype(np.float64).filled(np.nan))


def _table(table: Any) -> NDArray[Any]:
    """Return the values of a pandas table or column, NaN where they are missing."""
    array = np.asarray(table.to_numpy())
    # Dates among numbers would become nanoseconds.
    if array.dtype == object and not any(isinstance(item, date | timedelta) for item in array.flat):
        with contextlib.suppress(TypeError, ValueError):  # they are no numbers
            numbers = np.array(array.tolist())
            array = numbers if numbers.dtype.kind in "iufb" else np.asarray(table.to_numpy(np.float64, na_value=np.nan))
    return array


def as_array(value: Any, name: str, shape: str) -> NDArray[Any]:
    """Return `value` as an array; `shape` is what the message asks for where its rows differ in length."""
    try:
        return np.asarray(as_plain(value))
    except (ValueError, OverflowError):
        kinds = {type(item).__name__: None for item in value} if isinstance(value, (tuple, list)) else {}
        is_mixed = len(kinds) > 1 and not kinds.keys() <= {"tuple", "list", "ndarray"}
        got = f"a mixture of {' and '.join(kinds)}" if is_mixed else "a ragged sequence"
        raise ValueError(f"`{name}` must have shape {shape}, got {got}") from None
    except (TypeError, RuntimeError) as error:  # a sparse tensor, one without contents, values that are no numbers
        raise TypeError(f"`{name}` must be an array of real numbers, got {type(value).__name__}: {error}") from None


def arrived(value: Any, array: NDArray[Any]) -> str:
    """Return words for a value that is no array of numbers: the dtype of what it became, or the types of objects."""
    if array.ndim == 0:
        return type(value).__name__
    if np.ma.is_masked(value):
        return f"dtype {value.dtype} with masked entries"
    if array.dtype != object:
        return f"dtype {array.dtype}"
    items = sorted(array.flat, key=lambda item: isinstance(item, Real))  # first what is no number
    return f"{type(value).__name__} of {type(items[0]).__name__ if items else 'object'}"


def as_reals(value: Any, name: str, shape: str) -> Array:
    """Return `value` as float64 array of real numbers; NaN and infinity may stay, too large a number becomes infinite."""
    array = as_array(value, name, shape)
    is_real = array.dtype.kind in "iufb" or (
        array.dtype == object and all(isinstance(item, Real) for item in array.flat)
    )
    if not is_real:
        raise TypeError(f"`{name}` must be an array of real numbers, got {arrived(value, array)}")
    with np.errstate(over="ignore", invalid="ignore"):  # NaN may be a signalling one
        if array.dtype == object:
            array = np.array([_as_float(item) for item in array.flat]).reshape(array.shape)
        return np.asarray(array, dtype=np.float64)


def _as_float(number: Any) -> float:
    """Return a real number as float, infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def as_points(value: Any, name: str) -> Array:
    """Return `value` as a C-contiguous float64 array of shape (n, 2); NaN and infinity may stay.

    It may be a sequence of cv2.KeyPoint.
    """
    points = as_array(_positions(value, name), name, "(n, 2)")
    if points.ndim in (1, 2) and len(points) == 0:
        return np.zeros((0, 2))
    # What holds no numbers goes on as it came, so that the message can name its type.
    points = as_reals(points if points.dtype.kind in "iufb" else value, name, "(n, 2)")
    if points.ndim == 3 and points.shape[1:] == (1, 2):  # OpenCV's own (n, 1, 2)
        points = points[:, 0]
    elif points.ndim == 3 and points.shape[::2] == (1, 2):  # a network's batch of one image, (1, n, 2)
        points = points[0]
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"`{name}` must have shape (n, 2), got {points.shape}")
    return np.ascontiguousarray(points)


def as_sizes(sizes: Any, points1: Any, points2: Any, n: tuple[int, int]) -> tuple[Array, Array] | None:
    """Return the sizes of the keypoints of two images, (n[0],) and (n[1],), from a pair of arrays or else from cv2.KeyPoint.

    None if neither image has any. If one has none, or some that are not above 0, all its sizes are 1.
    """
    if sizes is None:
        found = tuple(_keypoint_sizes(value) for value in (points1, points2))
        if all(of is None for of in found):
            return None
        first, second = (np.ones(number) if of is None else of for of, number in zip(found, n, strict=True))
        return first, second
    has_length = hasattr(sizes, "__len__") and not isinstance(sizes, str) and getattr(sizes, "shape", None) != ()
    if not has_length or len(sizes) != 2:
        got = f"{len(sizes)} entries" if has_length else type(sizes).__name__
        raise ValueError(f"`sizes` must be a pair with an array for each image, got {got}")
    first, second = (as_reals(of, f"sizes[{side}]", f"({n[side]},)") for side, of in enumerate(sizes))
    for side, of in enumerate((first, second)):
        if of.shape != (n[side],):
            raise ValueError(
                f"`sizes[{side}]` must have one entry per row of points, shape ({n[side]},), got {of.shape}"
            )
        bad = np.flatnonzero(~(of > 0.0) | ~np.isfinite(of))
        if len(bad) > 0:
            raise ValueError(f"`sizes[{side}]` must be finite and above 0, got {of[bad[0]]} in row {bad[0]}")
    return first, second


def _keypoint_sizes(value: Any) -> Array | None:
    """Return the sizes of a sequence or an array of cv2.KeyPoint, None for anything else and unless all are above 0."""
    value = _as_listed(value)
    if not _are_keypoints(value):
        return None
    sizes = np.array([keypoint.size for keypoint in value])
    return sizes if ((sizes > 0.0) & np.isfinite(sizes)).all() else None


def _as_listed(value: Any) -> Any:
    """Return an array of objects as a list, and anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1 else value


def _are_keypoints(value: Any) -> bool:
    """Return whether a value is a sequence that begins with a cv2.KeyPoint."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, memoryview)
    return is_sequence and len(value) > 0 and isinstance(value[0], cv2.KeyPoint)


def _positions(value: Any, name: str) -> Any:
    """Return the positions of a sequence or an array of cv2.KeyPoint, and anything else as it is."""
    value = _as_listed(value)
    if not _are_keypoints(value):
        return value
    # OpenCV itself takes None among them for a keypoint at (0, 0).
    foreign = [type(keypoint).__name__ for keypoint in value if not isinstance(keypoint, cv2.KeyPoint)]
    if foreign:
        raise TypeError(f"`{name}` must hold only cv2.KeyPoint, got {foreign[0]}")
    return cv2.KeyPoint.convert(list(value))


def as_pairs(points1: Any, points2: Any) -> tuple[Array, Array]:
    """Return the points of two images, equally many; as `as_points`."""
    first, second = as_points(points1, "points1"), as_points(points2, "points2")
    check_same_length(first, second, "`points1` and `points2`")
    return first, second


def as_matrix(value: Any, name: str) -> Array:
    """Return `value` as a finite float64 array of shape (3, 3) that has an inverse, neither of an absurd size."""
    matrix = as_reals(value, name, "(3, 3)")
    if matrix.shape != (3, 3):
        raise ValueError(f"`{name}` must have shape (3, 3), got {matrix.shape}")
    scale = np.abs(matrix).max()
    # Beyond these bounds products with the inverse over- or underflow.
    if not 1e-100 < scale < 1e100 or np.linalg.matrix_rank(matrix / scale) < 3:
        raise ValueError(
            f"`{name}` must be finite and have an inverse, of a size from 1e-100 to 1e100, got {matrix.tolist()}"
        )
    return matrix


def as_preferences(preferences: Any, name: str = "preferences") -> NDArray[np.float32]:
    """Return preferences as dense rows, after checking that they lie in [0, 1]."""
    table = as_array(preferences.toarray() if hasattr(preferences, "toarray") else preferences, name, "(n, m)")
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must be a numeric array of shape (n, m), got {table.dtype} {table.shape}")
    if table.size and not (table.min() >= 0 and table.max() <= 1):
        raise ValueError(f"`{name}` must lie in [0, 1], got values from {table.min()} to {table.max()}")
    with np.errstate(under="ignore"):
        # An array that cannot be written is another type to a kernel.
        return np.require(table, np.float32, ["C", "W"])


def as_mask(value: Any, name: str, n: int) -> Mask:
    """Return a mask of shape (n,) from bool or integers of shape (n,) or (n, 1), or from a result that has an `inlier_mask`."""
    mask = as_array(getattr(value, "inlier_mask", value), name, f"({n},)")
    if mask.dtype.kind not in "biu" and mask.size:
        raise TypeError(f"`{name}` must be a FilterResult or a mask of bool or uint8, got {arrived(value, mask)}")
    if mask.shape not in ((n,), (n, 1)):
        raise ValueError(f"`{name}` must have one entry per match, shape ({n},), got {mask.shape}")
    return mask.reshape(-1).astype(bool)


def largest_coordinate(pixel: float) -> float:
    """Return the length in the points' unit from which on a coordinate is none; `pixel` is a pixel's size in that unit."""
    return min(LARGEST_COORDINATE * pixel, LARGEST_LENGTH)


def as_pixels(pixel: Any) -> tuple[float, float]:
    """Return the size of a pixel of each image: two numbers, or one for both."""
    if isinstance(pixel, (tuple, list, np.ndarray)) and np.ndim(pixel) > 0:
        if len(pixel) != 2:
            raise ValueError(f"`pixel` must be a number, or a pair with one for each image, got {len(pixel)}")
        return check_real(pixel[0], "pixel[0]"), check_real(pixel[1], "pixel[1]")
    return (check_real(pixel, "pixel"),) * 2


def check_same_length(first: Sequence[Any] | NDArray[Any], second: Sequence[Any] | NDArray[Any], names: str) -> None:
    """Raise unless both have the same number of rows; `names` reads like "`points1` and `points2`"."""
    if len(first) != len(second):
        raise ValueError(f"{names} must have the same length, got {len(first)} and {len(second)}")


def check_bool(value: Any, name: str) -> bool:
    """Return `value` as bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")
    return bool(value)


def check_int(value: Any, name: str, *, at_least: int = 1) -> int:
    """Return `value` as int, at least `at_least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, got {value}")
    if int(value) > _LARGEST_INT:  # kernels count in 64 bits, and products of two such must fit
        raise ValueError(f"`{name}` must be at most {_LARGEST_INT}, got {value}")
    return int(value)


def check_real(value: Any, name: str, *, above: float = 0.0, below: float = np.inf, inclusive: bool = False) -> float:
    """Return `value` as float, finite and strictly between `above` and `below` (`inclusive`: the ends count)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number, got {value!r}")
    number = _as_float(value)
    value = number if np.isinf(number) else value
    inside = above <= number <= below if inclusive else above < number < below
    if not (inside and np.isfinite(number)):
        if np.isinf(below):
            relation = "of at least" if inclusive else "above"
            raise ValueError(f"`{name}` must be a finite number {relation} {above:g}, got {value}")
        raise ValueError(f"`{name}` must lie between {above:g} and {below:g}, got {value}")
    return number


def check_numbers_of(family: Any, name: str) -> None:
    """Check the numbers of a family of models, an argument called `name`."""
    check_int(family.sample_size, f"{name}.sample_size")
    if family.codimension not in (1, 2):
        raise ValueError(f"`{name}.codimension` must be one of [1, 2], got {family.codimension!r}")


def check_choice(value: Any, name: str, choices: Sequence[str], *others: str) -> str:
    """Return `value` if it is one of `choices`; `others` are what else it might have been, for the message."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join([*map(repr, choices), *others])
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}")
    return str(value)


def as_generator(rng: RNG) -> np.random.Generator:
    """Return a Generator from an int, a Generator or None (fresh entropy), as in SPEC 7."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise TypeError(f"`rng` must be a non-negative int, a numpy.random.Generator or None, got {rng!r}")
    return np.random.default_rng(int(rng))


def check_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads: None and -1 mean all processors this process may use."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs == -1):
        # macOS and Windows do not tell which.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return check_int(n_jobs, "n_jobs")
