"""A pose and a camera as flat tensors: R and t; width, height, fx, fy, cx, cy, and distortion."""

from __future__ import annotations

from typing import Any

import torch


class Pose:
    """Twelve numbers: a rotation by rows, then a translation."""

    def __init__(self, data: torch.Tensor) -> None:
        assert data.shape[-1] == 12
        self._data = data

    @classmethod
    def from_Rt(cls, R: torch.Tensor, t: torch.Tensor) -> Pose:
        """Return the pose of a rotation (3, 3) and a translation (3,)."""
        assert R.shape[-2:] == (3, 3)
        assert t.shape[-1] == 3
        return cls(torch.cat([R.flatten(), t]))

    def to(self, *args: Any) -> Pose:
        """Return the pose with a tensor's dtype and device."""
        return Pose(self._data.to(*args))

    R = property(lambda self: self._data[:9].reshape(3, 3))
    t = property(lambda self: self._data[9:])


class Camera:
    """Six, eight or ten numbers."""

    def __init__(self, data: torch.Tensor) -> None:
        assert data.shape[-1] in (6, 8, 10)
        self._data = data

    f = property(lambda self: self._data[2:4])
    c = property(lambda self: self._data[4:6])
    dist = property(lambda self: self._data[6:])
