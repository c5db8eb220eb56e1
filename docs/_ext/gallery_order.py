"""The order of examples within a section of the gallery."""

from __future__ import annotations

ORDER = (
    "moved_objects.py",
    "replace_ransac.py",
    "no_ratio_test.py",
    "probabilities.py",
    "step_by_step.py",
    "planes.py",
    "stitching.py",
    "video.py",
    "known_cameras.py",
    "fisheye_and_360.py",
    "lightglue_arrays.py",
    "photos_to_colmap.py",
    "folder_of_photos.py",
    "lines_and_circles.py",
    "scikit_learn_detector.py",
    "plane_in_space.py",
    "paper_figures.py",
)


class ByInterest:
    """A sort key of file names, as sphinx-gallery calls it; names that are not listed come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        return ORDER.index(name) if name in ORDER else len(ORDER), name
