"""Render the pairs that ship with the package: ``python benchmarks/bundle_pairs.py --write data``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from rendering.layouts import desk_scene, facade_scene, plane_scene, rigid_scene
from rendering.pictures import render_pair
from rendering.scenes import Scene

from ruzhash_cv.datasets import ImagePair

BUILDERS: dict[str, Callable[[], Scene]] = {
    "facade": lambda: facade_scene(5, rng=3),
    "desk": lambda: desk_scene(4, rng=4),
    "rigid": lambda: rigid_scene(rng=0),
    "plane": lambda: plane_scene(rng=0),
}
JPEG_QUALITY = 90


def save_pair(pair: ImagePair, folder: Path) -> None:
    """Write a pair as two JPEG pictures and one compressed npz with its truth."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in ((1, pair.img1), (2, pair.img2)):
        path = folder / f"{pair.name}{number}.jpg"
        if not cv2.imwrite(str(path), image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]):
            raise OSError(f"could not write {path}")
    truth = {
        "face_map1": pair.face_map1,
        "face_map2": pair.face_map2,
        "homographies": pair.homographies,
        "fundamental_matrices": pair.fundamental_matrices,
        "plane_of_face": pair.plane_of_face,
        "body_of_face": pair.body_of_face,
        "structure": np.array(pair.structure),
    }
    np.savez_compressed(folder / f"{pair.name}_truth.npz", **truth)  # type: ignore[arg-type]


def main() -> None:
    """Render the bundled pairs from their seeds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", metavar="DIR", type=Path, required=True, help="folder to write to")
    folder = parser.parse_args().write
    for name, build in BUILDERS.items():
        save_pair(render_pair(build(), name=name), folder)


if __name__ == "__main__":
    main()
