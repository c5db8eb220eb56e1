"""Dataclasses that hold arrays compare entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv import as_correspondences

POINTS = np.random.default_rng(0).uniform(0, 500, (20, 2))


def correspondences() -> Any:
    keypoints = [cv2.KeyPoint(float(x), float(y), 1.0 + x, y) for x, y in POINTS]
    return as_correspondences(keypoints, keypoints, [(), *((cv2.DMatch(i, i, 0.5),) for i in range(20))])


@pytest.mark.parametrize(
    ("make", "changed"),
    [
        (correspondences, {"distances": np.zeros(21)}),
        (correspondences, {"distances": None}),
        (correspondences, {"points1": POINTS}),
    ],
)
def test_equal_are_two_with_the_same_entries(make: Callable[[], Any], changed: dict[str, Any]) -> None:
    assert make() == make()
    assert make() != replace(make(), **changed)
    assert make() != None  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(make())
