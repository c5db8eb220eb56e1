"""Rendered pictures of one scene, several each, for the examples: a panorama, a clip and a walk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._validation import check_choice
from ruzhash_cv.datasets.pairs import load_bundled

#: Names, and how many pictures each has.
SEQUENCES = {"panorama": 4, "clip": 4, "walk": 5}
SEQUENCE_NAMES: tuple[str, ...] = tuple(SEQUENCES)


def load_sequence(name: str) -> list[NDArray[np.uint8]]:
    """Load the pictures of a sequence that ships with the package.

    Parameters
    ----------
    name : {"panorama", "clip", "walk"}
        A terrace from one place, the camera turned between pictures; a desk with two objects that move while the camera does; a
        static scene from places beside each other.

    Returns
    -------
    list of ndarray of uint8, shape (height, width, 3)
        BGR, in order.

    Raises
    ------
    ValueError
        If `name` is none of these.
    FileNotFoundError
        If the files are missing from the installation.

    Examples
    --------
    >>> from ruzhash_cv.datasets import load_sequence
    >>> [picture.shape for picture in load_sequence("walk")]
    [(360, 480, 3), (360, 480, 3), (360, 480, 3), (360, 480, 3), (360, 480, 3)]
    """
    name = check_choice(name, "name", SEQUENCE_NAMES)
    return [load_bundled(f"{name}{number + 1}.jpg") for number in range(SEQUENCES[name])]
