"""Render the pairs and sequences that ship with the package: ``python benchmarks/bundle_pairs.py --write data``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from rendering.layouts import desk_scene, facade_scene, plane_scene, rigid_scene
from rendering.pictures import render_pair, render_shots
from rendering.scenes import Camera, Scene, look_at

from ruzhash_cv.datasets import ImagePair

BUILDERS: dict[str, Callable[[], Scene]] = {
    "facade": lambda: facade_scene(5, rng=3),
    "desk": lambda: desk_scene(4, rng=4),
    "rigid": lambda: rigid_scene(rng=0),
    "plane": lambda: plane_scene(rng=0),
}
#: JPEG's, of pairs and of sequences: corners are followed through the clip.
PAIR_QUALITY, SEQUENCE_QUALITY = 90, 95
Pictures = list[NDArray[np.uint8]]


def panorama() -> Pictures:
    """Render a terrace from one place, the camera turned between pictures."""
    cameras = [look_at([0, -13, 4], [x, 0, 4], focal=560, size=(640, 480)) for x in (-9, -3, 3, 9)]
    return seen_by(cameras, facade_scene(5, rng=3))


def walk() -> Pictures:
    """Render a store room from places beside each other."""
    cameras = [look_at([x, -2.8, 2.3], [0, 0, 0.5], focal=400, size=(480, 360)) for x in np.linspace(-1.2, 1.2, 5)]
    return seen_by(cameras, rigid_scene(rng=0))


def seen_by(cameras: list[Camera], scene: Scene) -> Pictures:
    """Render what stands still from several places."""
    return render_shots([(replace(scene, cameras=(camera, camera)), 0) for camera in cameras])


def clip() -> Pictures:
    """Render a desk past which the camera slides, and two things that are pushed and turned on it."""
    scene, shots = desk_scene(2, rng=5, size=(640, 480)), []
    for part in 0.6 * np.arange(4):
        camera = look_at([0.03 * part - 0.03, -0.62, 0.7], [0, 0.05, 0], focal=650, size=(640, 480))
        turned, moved = [np.eye(3)], [np.zeros(3)]
        for turn, move in zip(scene.rotations[1:], scene.translations[1:], strict=True):
            pole = np.append(
                np.linalg.solve(np.eye(2) - turn[:2, :2], move[:2]), 0.0
            )  # what the whole motion turns about
            turned.append(cv2.Rodrigues(part * cv2.Rodrigues(turn)[0])[0])
            moved.append(pole - turned[-1] @ pole)
        parts = {"rotations": np.array(turned), "translations": np.array(moved)}
        shots.append((replace(scene, cameras=(camera, camera), **parts), 1))
    return render_shots(shots)


SEQUENCES: dict[str, Callable[[], Pictures]] = {"panorama": panorama, "clip": clip, "walk": walk}


def save_pair(pair: ImagePair, folder: Path) -> None:
    """Write a pair as two JPEG pictures and one compressed npz with its truth."""
    folder.mkdir(parents=True, exist_ok=True)
    save_pictures(pair.name, [pair.img1, pair.img2], folder, PAIR_QUALITY)
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


def save_pictures(name: str, pictures: Pictures, folder: Path, quality: int) -> None:
    """Write pictures as JPEG, numbered from 1."""
    for number, picture in enumerate(pictures, start=1):
        path = folder / f"{name}{number}.jpg"
        if not cv2.imwrite(str(path), picture, [cv2.IMWRITE_JPEG_QUALITY, quality]):
            raise OSError(f"could not write {path}")


def main() -> None:
    """Render the bundled pairs and sequences from their seeds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", metavar="DIR", type=Path, required=True, help="folder to write to")
    folder = parser.parse_args().write
    for name, build in BUILDERS.items():
        save_pair(render_pair(build(), name=name), folder)
    for name, render in SEQUENCES.items():
        save_pictures(name, render(), folder, SEQUENCE_QUALITY)


if __name__ == "__main__":
    main()
