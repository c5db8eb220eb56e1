"""Rendered image pairs with exact truth for every pixel, and a loader of the four that ship with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.foundation.validation import as_pairs, check_choice, check_real

PAIR_NAMES: tuple[str, ...] = ("facade", "desk", "rigid", "plane")
#: Fields of `ImagePair` in the file of its truth.
TRUTH = ("face_map1", "face_map2", "homographies", "fundamental_matrices", "plane_of_face", "body_of_face")
NO_FACE = 65535  # in a face map
BORDER = 2  # pixels; a keypoint this close to a border may belong to either face


@dataclass(frozen=True, eq=False)
class ImagePair:
    """Two pictures of a scene and the exact truth about where its points went.

    Attributes
    ----------
    name : str
        What it is called.
    img1, img2 : ndarray of uint8, shape (height, width, 3)
        BGR.
    face_map1, face_map2 : ndarray of uint16, shape (height, width)
        Index of the face seen at each pixel, 65535 = none.
    homographies : ndarray of float64, shape (n_faces, 3, 3)
        Exact homography of each face, image 1 -> image 2 in pixels, H[2, 2] = 1.
    fundamental_matrices : ndarray of float64, shape (n_bodies, 3, 3)
        Exact fundamental matrix of each rigid body, x2^T F x1 = 0 in pixels, unit norm.
    plane_of_face : ndarray of int64, shape (n_faces,)
        Number of the plane of each face, from 1.
    body_of_face : ndarray of int64, shape (n_faces,)
        Number of the rigid body of each face, from 0 (the static world).
    structure : {"plane", "body"}
        What :meth:`labels` counts as one structure.
    """

    name: str
    img1: NDArray[np.uint8]
    img2: NDArray[np.uint8]
    face_map1: NDArray[np.uint16]
    face_map2: NDArray[np.uint16]
    homographies: Array
    fundamental_matrices: Array
    plane_of_face: NDArray[np.int64]
    body_of_face: NDArray[np.int64]
    structure: Literal["plane", "body"]

    @property
    def structure_of_face(self) -> NDArray[np.int64]:
        """Label of the structure of each face, from 0: its plane or its body, shape (n_faces,)."""
        return self.plane_of_face - 1 if self.structure == "plane" else self.body_of_face

    def transfer_errors(self, points1: ArrayLike, points2: ArrayLike) -> Array:
        """Return the distances of points2 from the true positions of points1 in image 2.

        Parameters
        ----------
        points1, points2 : array_like of shape (n, 2)
            Pixels (x, y) in image 1 and image 2.

        Returns
        -------
        errors : ndarray of float64, shape (n,)
            In pixels. The smallest over the faces within 2 pixels of points1; infinite if there is no face.
        """
        return self._nearest_face(points1, points2)[0]

    def labels(self, points1: ArrayLike, points2: ArrayLike, *, tolerance: float = 3.0) -> NDArray[np.int64]:
        """Return which structure each correspondence belongs to.

        Parameters
        ----------
        points1, points2 : array_like of shape (n, 2)
            Pixels (x, y) in image 1 and image 2.
        tolerance : float
            Largest transfer error of a true correspondence in pixels, above 0.

        Returns
        -------
        labels : ndarray of int64, shape (n,)
            -1 is a mismatch; others number the planes, or the bodies if ``structure == "body"``, from 0.
        """
        tolerance = check_real(tolerance, "tolerance")
        errors, faces = self._nearest_face(points1, points2)
        return np.where(errors <= tolerance, np.append(self.structure_of_face, -1)[faces], -1)

    def _nearest_face(self, points1: ArrayLike, points2: ArrayLike) -> tuple[Array, NDArray[np.int64]]:
        """Return the smallest transfer error over the faces around points1, and that face (-1: none)."""
        first, second = as_pairs(points1, points2)
        height, width = self.face_map1.shape
        errors, faces = np.full(len(first), np.inf), np.full(len(first), -1, np.int64)
        # Far outside and NaN are no pixel; clip before rounding, so that no cast overflows.
        centre = np.rint(np.clip(np.nan_to_num(first, nan=-9.0), -9.0, max(width, height) + 9.0)).astype(np.int64)
        for dy in range(-BORDER, BORDER + 1):
            for dx in range(-BORDER, BORDER + 1):
                x, y = centre[:, 0] + dx, centre[:, 1] + dy
                rows = np.flatnonzero((x >= 0) & (x < width) & (y >= 0) & (y < height))
                seen = self.face_map1[y[rows], x[rows]].astype(np.int64)
                rows, seen = rows[seen != NO_FACE], seen[seen != NO_FACE]
                error = np.linalg.norm(transform(self.homographies[seen], first[rows]) - second[rows], axis=1)
                better = error < errors[rows]
                errors[rows[better]], faces[rows[better]] = error[better], seen[better]
        return errors, faces


def transform(H: Array, points: Array) -> Array:
    """Apply homographies (..., 3, 3) to points (..., 2)."""
    x = np.einsum("...ij,...j->...i", H[..., :2], points) + H[..., 2]
    return np.asarray(x[..., :2] / x[..., 2:])


def data_folder() -> Path:
    """Return the folder of the bundled pictures: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).parent / "data"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "data"


def load_pair(name: str) -> ImagePair:
    """Load one of the pairs that ship with the package.

    Parameters
    ----------
    name : {"facade", "desk", "rigid", "plane"}
        A terrace of several planes; a desk with independently moving objects; a rigid scene with no dominant plane;
        one plane of repeated windows under strong perspective.

    Returns
    -------
    pair : ImagePair

    Raises
    ------
    ValueError
        If `name` is none of these.
    FileNotFoundError
        If the files are missing from the installation.

    Examples
    --------
    >>> from ruzhash_cv.datasets import load_pair
    >>> pair = load_pair("desk")
    >>> pair.img1.shape, len(pair.fundamental_matrices)
    ((600, 800, 3), 5)
    """
    name = check_choice(name, "name", PAIR_NAMES)
    folder = data_folder()
    images = []
    for path in (folder / f"{name}{number}.jpg" for number in (1, 2)):
        image = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if image is None:
            raise FileNotFoundError(f"bundled picture {path} is missing or unreadable; reinstall the package")
        images.append(np.asarray(image, dtype=np.uint8))
    with np.load(folder / f"{name}_truth.npz") as truth:
        structure: Literal["plane", "body"] = "plane" if str(truth["structure"]) == "plane" else "body"
        return ImagePair(name, images[0], images[1], **{field: truth[field] for field in TRUTH}, structure=structure)
