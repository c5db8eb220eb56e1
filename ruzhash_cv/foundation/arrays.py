"""Arrays by what they hold, and equality of dataclasses that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
T = TypeVar("T")

#: Columns of correspondences: coordinates of both points; where cameras are known, rays of both too, see `models.linear`.
COORDINATES, RAYS1, RAYS2 = slice(0, 4), slice(4, 7), slice(7, 10)


class cached(Generic[T]):  # noqa: N801
    """A property that is computed once. `functools.cached_property` has a lock before Python 3.12, which a fork may copy locked."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:  # of the class
            return self  # type: ignore[return-value]
        value = self.function(instance)
        instance.__dict__[self.name] = value
        return value


class Record:
    """Base of dataclasses made with ``eq=False``: equal are two of one class whose fields are, arrays entry by entry.

    Fields declared with ``compare=False`` do not count. There is no hash, as of the arrays.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f" == other.dtype.kind))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return bool(one == other or (one != one and other != other))  # NaN, as in arrays
