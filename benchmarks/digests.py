"""Digests of what the filter says of 300 scenes of all suites: whether two versions of the package give the same bits.

    PYTHONPATH=../before python benchmarks/digests.py -o before.txt
    python benchmarks/digests.py --compare before.txt

Prints a line a scene: its name, 16 letters each of mask, labels, scores, probabilities, the matrices of models and of motions, F1, and
milliseconds. Then a line for each case of cameras, `find_*`, `find_structures`, COLMAP's and hloc's files, in the same columns. The
scenes are made once and kept in the cache.
`--compare` names those that differ, and says by how much F1 does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pair_sets
import pose_scenes
import rendered
from adelaide import fresh, labelled
from cache import Arrays, stored
from geometry import Points
from measures import mask_quality, paired_difference
from numpy.typing import NDArray
from photos import home, photos

FIELDS = ("mask", "labels", "scores", "probabilities", "models", "motions")
Scene = tuple[str, Points, Points, NDArray[np.bool_], NDArray[np.bool_]]
"""Name, points of both images, which matches are true, and which count."""
Options = dict[str, Any]
Case = tuple[str, Callable[[], list[str]]]
"""A title, and what computes the cells of its line."""
K1 = np.array([[800.0, 0.0, 320.0], [0.0, 800.0, 240.0], [0.0, 0.0, 1.0]])
K2 = np.array([[500.0, 0.0, 300.0], [0.0, 510.0, 250.0], [0.0, 0.0, 1.0]])
BARREL, FISHEYE = np.array([-0.2, 0.05, 0.001, -0.001]), np.array([0.02, -0.005, 0.001, 0.0])
LENSES = ("pinhole", "distorted", "fisheye", "one known")


def pairs(half: str) -> Iterator[Scene]:
    """Overlays, and pairs that share nothing."""
    for number, of in enumerate([*pair_sets.overlaid(half, 2), *pair_sets.still(half, 2)]):
        yield f"{of.suite} {half} {number}", of.points1, of.points2, of.labels > 0, of.judged
    for title, make in (("unrelated", pair_sets.unrelated), ("alike", pair_sets.look_alike)):
        for number, of in enumerate(make(half, 4)):
            yield f"{title}, {half} {number}", of.points1, of.points2, of.labels > 0, of.judged


def problems(half: str) -> Iterator[tuple[str, Iterable[Any]]]:
    """Some problems of every suite, under a title."""
    yield "adelaidermf", labelled(half)
    yield "poses", islice(pose_scenes.given(half, 1), 0, None, 2)
    for features in ("sift", "orb"):
        yield f"{features} on adelaidermf", islice(fresh(half, features), 0, None, 2)
        for family in rendered.STRUCTURES:
            yield f"{features} on rendered {family}", islice(rendered.pictures(features, half, 1, [family]), 2)
    for family in rendered.STRUCTURES:
        yield family, rendered.drawn(family, half, 1)
    yield "repeated", islice(rendered.repeated(half, 1), 0, None, 2)


def photographed(half: str) -> Iterator[tuple[str, Iterable[Any]]]:
    """Photographed pairs, where they are there."""
    for scenes in ("planes", "rigid"):
        yield f"photographed {scenes}", photos(scenes, "given", half)
        yield f"photographed {scenes}, mutual", islice(photos(scenes, "mutual", half), 4)


def make_all() -> Arrays:
    """Every scene as one array (n, 6): points, whether it is true, whether it counts."""
    found: Arrays = {}
    for name, *rows in chain.from_iterable(map(pairs, ("tune", "judge"))):
        found[f"{len(found):03} {name}"] = np.column_stack(rows)
    for make, half in product((problems, photographed), ("tune", "judge")):
        for title, problem in ((title, problem) for title, suite in make(half) for problem in suite):
            rows = problem.points1, problem.points2, problem.labels > 0, problem.judged
            found[f"{len(found):03} {title}, {problem.name}"] = np.column_stack(rows)
    return found


def scenes() -> Iterator[Scene]:
    """All scenes, from the cache where they are there."""
    photographs = "" if home().is_dir() else "_without_photographs"
    for name, rows in stored(f"digests_1{photographs}", make_all).items():
        yield name, rows[:, :2], rows[:, 2:4], rows[:, 4] > 0, rows[:, 5] > 0


def options_of(number: int, name: str) -> Iterator[tuple[str, Options]]:
    """The defaults for every scene, and for some of them one other setting beside."""
    yield "", {}
    if name.split(" ", 1)[1].startswith("overlay"):
        yield "keep_stationary=False", {"keep_stationary": False}
    others: tuple[Options, ...] = ({"model": "homography"}, {"model": "fundamental"}, {"threshold": 3.0})
    others += ({"false_discovery_rate": 0.05}, {"rng": 7}, {"model": "fundamental", "threshold": 1.5})
    if number % 4 == 0:
        told = others[number // 4 % len(others)]
        yield ", ".join(f"{key}={value}" for key, value in told.items()), told


def digest(*arrays: Any) -> str:
    """16 letters of the bits of arrays."""
    state = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        if values.dtype.kind == "i":
            values = values.astype(np.int64)
        state.update(repr(values.shape).encode() + values.tobytes())
    return state.hexdigest()[:16]


def cells(f1: float, **fields: Iterable[Any]) -> list[str]:
    """A digest for each of `FIELDS`, of nothing for what is missing or None, and F1."""
    given = ([() if array is None else array for array in fields.get(field, ())] for field in FIELDS)
    return [*(digest(*arrays) for arrays in given), f"{f1:.6f}"]


def fields_of(result: Any, pose: Iterable[Any] = ()) -> dict[str, list[Any]]:
    """The arrays of a result by `FIELDS`."""
    from ruzhash_cv.printing import row_labels, table

    rows = table(result)
    models, motions = [row.structure.matrix for row in rows], [motion.matrix for motion in result.motions]
    arrays = (
        result.inlier_mask,
        row_labels(rows, len(result.inlier_mask)),
        result.anomaly_scores,
        result.inlier_probabilities,
    )
    return dict(zip(FIELDS, [*([array] for array in arrays), models, [*motions, *pose]], strict=True))


def f1_of(kept: NDArray[np.bool_], points: NDArray[Any]) -> float:
    """F1 of a mask; the fifth column of the points says which matches are true."""
    return mask_quality(kept, points[:, 4] > 0)["f1"]


def of_scene(scene: Scene, options: Options) -> list[str]:
    """What `filter_points` says of a scene."""
    from ruzhash_cv import filter_points

    _, points1, points2, true, judged = scene
    result = filter_points(points1, points2, **{"rng": 0, **options})
    return cells(mask_quality(result.inlier_mask[judged], true[judged])["f1"], **fields_of(result))


def filter_cases() -> Iterator[list[Case]]:
    """The settings of `filter_points` for each scene."""
    for number, scene in enumerate(scenes()):
        name = scene[0]
        yield [
            (f"{name} [{setting}]" if setting else name, partial(of_scene, scene, options))
            for setting, options in options_of(number, name)
        ]


# --- Cameras, the other functions and files.


def views(lens: str, seed: int) -> np.ndarray:
    """Points of both images and whether they match, (n, 5): planes, relief or a rotation alone, by the seed."""
    rng = np.random.default_rng(seed)
    n, n_wrong = 160 + 40 * (seed % 3), 60 + 30 * (seed % 4)
    points = np.column_stack([rng.uniform(-1.2, 1.2, (n, 2)), rng.uniform(3, 6, n)])
    points[: n // 2, 2] = 5 + 0.4 * points[: n // 2, 0]  # a wall
    turn = rng.normal(0, 0.08, 3)
    step = np.zeros(3) if seed % 5 == 4 else rng.normal(0, [0.5, 0.2, 0.3])
    images = []
    for matrix, at in ((K1, (np.zeros(3), np.zeros(3))), (K2, (turn, step))):
        if lens == "fisheye":
            seen = cv2.fisheye.projectPoints(points[:, None], *at, matrix, FISHEYE)[0]
        else:
            seen = cv2.projectPoints(points, *at, matrix, BARREL if lens == "distorted" else None)[0]
        seen = seen.reshape(-1, 2) + rng.normal(0, 0.5, (n, 2))
        images.append(np.vstack([seen, rng.uniform(0, [640, 480], (n_wrong, 2))]))
    return np.column_stack([*images, np.arange(n + n_wrong) < n])


def curves(kind: str, seed: int) -> np.ndarray:
    """Points (n, 2) of two to four lines or circles among others."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(0, 100, (80, 2))]
    for _ in range(2 + seed):
        along, centre = rng.uniform(0, 1, 60), rng.uniform(20, 80, 2)
        if kind == "lines":
            parts.append(centre + 90 * (along[:, None] - 0.5) * rng.normal(size=2))
        else:
            parts.append(centre + rng.uniform(8, 25) * np.column_stack([np.cos(6.3 * along), np.sin(6.3 * along)]))
    points = np.vstack(parts)
    return points + rng.normal(0, 0.3, points.shape)


def make_doors() -> Arrays:
    """Scenes of cameras, and of lines and circles, by their names."""
    made = {f"{lens} {seed}": views(lens, seed) for lens, seed in product(LENSES, range(6))}
    return made | {f"{kind} {seed}": curves(kind, seed) for kind, seed in product(("lines", "circles"), range(3))}


def of_filter(points: NDArray[Any], cameras: Any) -> list[str]:
    """What `filter_points` says, and the pose."""
    from ruzhash_cv import filter_points

    result = filter_points(points[:, :2], points[:, 2:4], cameras=cameras)
    pose = result.camera_pose(cameras[0], cameras[1] or K2) if result.motions else ()
    return cells(f1_of(result.inlier_mask, points), **fields_of(result, pose))


def of_found(name: str, points: NDArray[Any], *arguments: Any) -> list[str]:
    """What one of `find_*` returns."""
    import ruzhash_cv

    matrix, mask = getattr(ruzhash_cv, name)(points[:, :2], points[:, 2:4], *arguments)
    return cells(f1_of(mask.ravel() > 0, points), mask=[mask], models=[matrix])


def of_structures(kind: str, points: NDArray[Any]) -> list[str]:
    """What `find_structures` finds."""
    from ruzhash_cv import find_structures, models

    result = find_structures(points, models.Lines() if kind == "lines" else models.Circles())
    of_points = {"mask": [result.masks], "labels": [result.labels], "scores": [result.anomaly_scores]}
    numbers = [result.tolerances, result.noise_scales, result.evidences]
    return cells(0.0, models=[result.models], motions=numbers, **of_points)


def of_colmap(scenes: Sequence[np.ndarray], prior: bool) -> Iterator[list[str]]:
    """What the file of a COLMAP database holds of each pair; `prior`: whether the cameras are known."""
    import pycolmap

    from ruzhash_cv.pipelines.colmap import verify

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database.db"
        with pycolmap.Database.open(path) as db:
            for number, points in enumerate(scenes):
                ids = []
                for side, matrix in enumerate((K1, K2)):
                    parameters = [*matrix[[0, 1], [0, 1]], *matrix[:2, 2]]
                    camera = pycolmap.Camera(model="PINHOLE", width=640, height=480, params=parameters)
                    camera.has_prior_focal_length = prior
                    image = pycolmap.Image(name=f"{number}_{side}.jpg", camera_id=db.write_camera(camera))
                    ids.append(db.write_image(image))
                    db.write_keypoints(ids[-1], points[:, 2 * side : 2 * side + 2].astype(np.float32))
                db.write_matches(*ids, np.repeat(np.arange(len(points), dtype=np.uint32)[:, None], 2, axis=1))
        verify(path, n_jobs=1, progress=False)
        with pycolmap.Database.open(path) as db:
            for number, points in enumerate(scenes):
                geometry = db.read_two_view_geometry(2 * number + 1, 2 * number + 2)
                rows = np.asarray(geometry.inlier_matches)
                kept = np.isin(np.arange(len(points)), rows[:, 0] if len(rows) else [])
                f1, models = f1_of(kept, points), [geometry.F, geometry.H, geometry.E]
                yield cells(f1, mask=[rows], labels=[int(geometry.config)], models=models)


def of_hloc(scenes: Sequence[np.ndarray]) -> Iterator[list[str]]:
    """What hloc's file holds of each pair."""
    import h5py

    from ruzhash_cv.pipelines.hloc import filter_matches

    with tempfile.TemporaryDirectory() as folder:
        features, matches, output = (Path(folder) / name for name in ("features.h5", "matches.h5", "filtered.h5"))
        with h5py.File(features, "w") as points_file, h5py.File(matches, "w") as matches_file:
            for number, points in enumerate(scenes):
                points_file[f"{number}a/keypoints"], points_file[f"{number}b/keypoints"] = points[:, :2], points[:, 2:4]
                matches_file[f"{number}a/{number}b/matches0"] = np.arange(len(points), dtype=np.int16)
        pairs = [(f"{number}a", f"{number}b") for number in range(len(scenes))]
        filter_matches(features, matches, pairs, output, n_jobs=1, progress=False)
        with h5py.File(output) as file:
            for number, points in enumerate(scenes):
                group = file[f"{number}a/{number}b"]
                partners = group["matches0"][()]
                f1 = f1_of(partners >= 0, points)
                yield cells(f1, mask=[partners], scores=[group["matching_scores0"][()]])


def known(lens: str) -> tuple[Any, Any]:
    """The cameras of `views`."""
    from ruzhash_cv import Camera

    distortion = {"distorted": BARREL, "fisheye": FISHEYE}.get(lens)
    first, second = (Camera(matrix, distortion, fisheye=lens == "fisheye") for matrix in (K1, K2))
    return first, None if lens == "one known" else second


def door_cases() -> Iterator[Case]:
    """Cameras, the other functions and files."""
    made = stored("digests_doors_1", make_doors)
    for lens, seed in product(LENSES, range(6)):
        yield f"cameras, {lens} {seed}", partial(of_filter, made[f"{lens} {seed}"], known(lens))
    for seed in range(6):
        for name in ("find_homography", "find_fundamental_matrix", "find_essential_matrix"):
            arguments = (K1, None, K2, None) if name == "find_essential_matrix" else ()
            yield f"{name} {seed}", partial(of_found, name, made[f"pinhole {seed}"], *arguments)
    for kind, seed in product(("lines", "circles"), range(3)):
        yield f"find_structures, {kind} {seed}", partial(of_structures, kind, made[f"{kind} {seed}"])
    pairs = [made[f"one known {seed}"] for seed in range(6)]
    files = {"COLMAP": (of_colmap, False), "COLMAP with cameras": (of_colmap, True), "hloc": (of_hloc,)}
    for title, (make, *arguments) in files.items():
        answers = lru_cache(lambda make=make, arguments=arguments: list(make(pairs, *arguments)))
        for number in range(len(pairs)):
            yield f"{title} {number}", lambda answers=answers, number=number: answers()[number]


# --- Two versions.


def lines(cases: Iterable[Case]) -> Iterator[str]:
    """A line for each case."""
    for title, computed in cases:
        start = time.process_time()
        try:
            line = computed()
        except Exception as error:  # the other scenes are still worth their answers
            line = [f"{type(error).__name__}: {error}".splitlines()[0].replace("\t", " "), "nan"]
        yield "\t".join([title, *line, f"{1e3 * (time.process_time() - start):.0f}"])


def compare(before: dict[str, list[str]], after: dict[str, list[str]]) -> str:
    """Which scenes differ in what, and the paired difference of F1: of those that differ, and of all."""
    common = [name for name in after if name in before]
    told, changed = [], []
    for name in common:
        old, new = before[name], after[name]
        differ = [field for field, a, b in zip(FIELDS, old, new, strict=False) if a != b]
        if len(old) != len(new):
            differ = [min(old, new, key=len)[0]]
        if differ:
            changed.append(name)
            told.append(f"{name}: {', '.join(differ)}; F1 {old[-2]} -> {new[-2]}")
    for title, names in (("of those that differ,", changed), ("of all", common)):
        if not names:
            continue
        values = np.array([[float(found[name][-2]) for found in (after, before)] for name in names]).reshape(-1, 2).T
        mean, error = paired_difference(*values)
        told.append(f"F1 after minus before, {title} {len(names)}: {mean:+.6f} ± {error:.6f}")
    for at, field in enumerate(FIELDS):
        both = [(after[name], before[name]) for name in common if len(after[name]) == len(before[name]) > 2]
        told.append(f"{field}: {sum(new[at] != old[at] for new, old in both)} differ")
    seconds = [sum(float(found[name][-1]) for name in common) / 1e3 for found in (before, after)]
    told.append("processor seconds before {:.1f}, after {:.1f}".format(*seconds))
    if len(common) < max(len(before), len(after)):
        told.append(f"{len(before)} scenes before, {len(after)} after, {len(common)} in both")
    return "\n".join(told)


def read(text: Iterable[str]) -> dict[str, list[str]]:
    """Cells of each line by the scene's name."""
    return {line.split("\t")[0]: line.rstrip("\n").split("\t")[1:] for line in text if not line.startswith("#")}


def main() -> None:
    """Print the digests, or what differs from those of another version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="write the digests there; default print them")
    parser.add_argument("--compare", type=Path, metavar="OTHER.txt", help="digests of the version before")
    parser.add_argument("--every", type=int, default=1, help="only one scene of so many")
    parser.add_argument("--doors", action="store_true", help="none of the scenes without cameras")
    options = parser.parse_args()
    start = time.process_time()
    import ruzhash_cv

    print(f"package: {Path(ruzhash_cv.__file__).parent}", file=sys.stderr)
    of_filter_points = () if options.doors else chain.from_iterable(islice(filter_cases(), 0, None, options.every))
    found = list(lines(chain(of_filter_points, islice(door_cases(), 0, None, options.every))))
    print(f"{len(found)} scenes, {time.process_time() - start:.0f} processor seconds", file=sys.stderr)
    if options.output:
        options.output.write_text("\n".join(found) + "\n", encoding="utf-8")
    if options.compare:
        print(compare(read(options.compare.read_text(encoding="utf-8").splitlines()), read(found)))
    elif not options.output:
        print(*found, sep=os.linesep)


if __name__ == "__main__":
    main()
