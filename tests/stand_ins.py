"""Arrays of libraries that may not be there."""

from __future__ import annotations

from typing import Any

import numpy as np


class Tensor:
    """What torch asks of those who want its numbers."""

    def __init__(self, array: Any, dtype: str = "torch.float32", device: str = "cuda", gradient: bool = True) -> None:
        self.array, self.dtype, self.device, self.gradient = np.asarray(array), dtype, device, gradient

    ndim = property(lambda self: self.array.ndim)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, item: Any) -> Tensor:
        return self._with(self.array[item.array if isinstance(item, Tensor) else item])

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._with(self.array == other)

    __hash__ = None  # type: ignore[assignment]

    def _with(self, array: Any) -> Tensor:
        return Tensor(array, self.dtype, self.device, self.gradient)

    def detach(self) -> Tensor:
        return Tensor(self.array, self.dtype, self.device, False)

    def cpu(self) -> Tensor:
        return Tensor(self.array, self.dtype, "cpu", self.gradient)

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32), "torch.float32", self.device, self.gradient)

    def numpy(self) -> np.ndarray:
        if self.gradient or self.device != "cpu":
            raise RuntimeError("Can't call numpy() on this tensor")
        if self.dtype in ("torch.bfloat16", "torch.float8_e4m3fn"):
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.numpy()


class CudaArray:
    """What CuPy asks: `np.asarray` raises, so that nobody copies from the device unawares."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.ndim, self.__cuda_array_interface__ = self.array.ndim, {"version": 3}

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self) -> np.ndarray:
        return self.array
