"""The order of the gallery: what most people look for first, then what is not named here."""

from __future__ import annotations

FIRST = (
    "moved_objects.py",
    "planes.py",
    "replace_ransac.py",
    "no_ratio_test.py",
    "lightglue_arrays.py",
    "photos_to_colmap.py",
    "folder_of_photos.py",
    "stitching.py",
    "video.py",
    "probabilities.py",
    "step_by_step.py",
    "lines_and_circles.py",
    "scikit_learn_detector.py",
)
LAST = ("plane_in_space.py", "paper_figures.py")


class ByInterest:
    """A sort key of file names, as sphinx-gallery calls it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, int, str]:
        if name in FIRST:
            return 0, FIRST.index(name), name
        return (2, LAST.index(name), name) if name in LAST else (1, 0, name)
