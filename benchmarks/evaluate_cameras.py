"""Camera poses where the cameras are known: this package with cameras and without, beside calibrated estimators, in one run.

python benchmarks/evaluate_cameras.py --half judge --per-cell 12
python benchmarks/evaluate_cameras.py --half judge --per-cell 6 --guesses
python benchmarks/evaluate_cameras.py --half judge --times
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import camera_scenes
import cv2
import numpy as np
import pandas as pd
import pose_scenes
from estimators import Mask, optional, poselib, pysuperansac
from evaluate_pose import shuffled, timed
from matching import RATIO
from measures import mask_quality, paired_difference
from pictured import posed
from pose_measures import FAR, THRESHOLDS, Pose, pose_error, pose_score
from pose_scenes import SIZE, Pair, given
from problems import JUDGE_SEED
from report import about_this_run, markdown, shown

from ruzhash_cv import Camera, FilterResult, filter_points

pycolmap = optional("pycolmap", "pycolmap")
Found = tuple[Pose, Mask, bool | None]
"""A pose, its inliers, and whether it says that the camera moved, None where it says nothing."""
Method = Callable[[Pair, int], Found]
SETS: dict[str, Callable[[str, int], Iterator[Pair]]] = {
    "given": given,
    "distorted": camera_scenes.distorted,
    "fisheye": camera_scenes.fisheyes,
    "sift": lambda half, per_cell: posed(half, max(1, per_cell // 3), RATIO),
    "sift-without-ratio": lambda half, per_cell: posed(half, max(1, per_cell // 3), None),
}
OURS, PLAIN = "ruzhash_cv, cameras", "ruzhash_cv, camera_pose(K1, K2)"
GUESSES = (0.7, 0.9, 1.0, 1.1, 1.4)
N_TIMED, RATES_TIMED = (300, 1000, 2000), (0.3, 0.6, 0.85)
ROUNDS = 5
PANORAMIC = 5  # by COLMAP
Row = dict[str, Any]


def cameras_of(pair: Pair, focal: float = 1.0) -> tuple[Camera, Camera]:
    """The cameras of a pair, their focal lengths multiplied by a factor."""
    scaled = (
        K * [[focal], [focal], [1.0]] + [[0, 0, (1 - focal) * K[0, 2]], [0, 0, (1 - focal) * K[1, 2]], [0, 0, 0]]
        for K in (pair.K1, pair.K2)
    )
    first, second = (Camera(K, pair.distortion, fisheye=pair.fisheye) for K in scaled)
    return first, second


def pose_of(result: FilterResult, *cameras: Camera) -> Found:
    """The pose of the strongest motion."""
    if not result.motions:
        return None, result.inlier_mask, None
    pose = result.camera_pose(*cameras)
    return (pose.rotation, pose.translation), result.inlier_mask, pose.has_baseline


def ours(pair: Pair, seed: int, focal: float = 1.0) -> Found:
    """`filter_points` with cameras, and the pose."""
    return pose_of(filter_points(pair.points1, pair.points2, cameras=cameras_of(pair, focal), rng=seed))


def plain(pair: Pair, seed: int) -> Found:
    """`filter_points` without cameras; they are told for the pose."""
    return pose_of(filter_points(pair.points1, pair.points2, rng=seed), *cameras_of(pair))


def one_known(pair: Pair, seed: int) -> Found:
    """`filter_points` that knows the first camera; the second is told for the pose."""
    cameras = cameras_of(pair)
    return pose_of(filter_points(pair.points1, pair.points2, cameras=(cameras[0], None), rng=seed), *cameras)


def colmap_camera(pair: Pair, K: np.ndarray, kind: str) -> Any:
    """A camera's model and its parameters in the order of COLMAP, whose models are PoseLib's too."""
    model = "OPENCV_FISHEYE" if pair.fisheye else "OPENCV" if pair.distortion else "PINHOLE"
    told = {"model": model, "width": int(SIZE[0]), "height": int(SIZE[1])}
    told["params"] = [K[0, 0], K[1, 1], K[0, 2], K[1, 2], *pair.distortion]
    return told if kind == "poselib" else pycolmap.Camera(told)


def of_poselib(pair: Pair, seed: int, kept: Mask | None = None) -> Found:
    """PoseLib's relative pose at 1 px, with its own camera models; from the matches kept where some are."""
    rows = np.arange(len(pair.labels)) if kept is None else np.flatnonzero(kept)
    mask = np.zeros(len(pair.labels), bool)
    if len(rows) < 5:
        return None, mask, None
    cameras = (colmap_camera(pair, K, "poselib") for K in (pair.K1, pair.K2))
    options = {"max_epipolar_error": 1.0, "seed": seed}
    pose, told = poselib.estimate_relative_pose(pair.points1[rows], pair.points2[rows], *cameras, options)
    mask[rows] = told["inliers"]
    return (pose.R, pose.t), mask, None


def after_mask(pair: Pair, seed: int) -> Found:
    """PoseLib's relative pose from the matches that `filter_points` keeps with cameras."""
    result = filter_points(pair.points1, pair.points2, cameras=cameras_of(pair), rng=seed)
    return of_poselib(pair, seed, result.inlier_mask)[0], result.inlier_mask, None


def undistorted(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Points in units of the focal length, by OpenCV."""
    numbers = np.array(pair.distortion) if pair.distortion else np.zeros(4)
    undistort = cv2.fisheye.undistortPoints if pair.fisheye else cv2.undistortPoints
    first, second = (
        undistort(np.ascontiguousarray(points)[:, None], K, numbers)[:, 0]
        for points, K in ((pair.points1, pair.K1), (pair.points2, pair.K2))
    )
    return first, second


def recovered(E: Any, mask: Any, points: tuple[np.ndarray, np.ndarray]) -> Found:
    """The pose of an essential matrix by `cv2.recoverPose`."""
    kept = np.zeros(len(points[0]), bool) if mask is None else np.ravel(mask) > 0
    if E is None or np.shape(E) != (3, 3) or not np.isfinite(E).all() or not kept.any():
        return None, np.zeros(len(points[0]), bool), None
    _, R, t, _, _ = cv2.recoverPose(E, points[0][kept], points[1][kept], np.eye(3), distanceThresh=FAR)
    return (R, t.ravel()), kept, None


def of_opencv(pair: Pair, seed: int) -> Found:
    """`cv2.findEssentialMat` with USAC_MAGSAC at 1 px of the mean focal length, from undistorted points."""
    points = undistorted(pair)
    threshold = 1.0 / np.mean([pair.K1[0, 0], pair.K2[0, 0]])
    try:
        E, mask = cv2.findEssentialMat(*points, np.eye(3), cv2.USAC_MAGSAC, 0.999, threshold)
    except cv2.error:
        E, mask = None, None
    return recovered(E, mask, points)


def of_superansac(pair: Pair, seed: int) -> Found:
    """SupeRANSAC's essential matrix, from undistorted points in pixels of a camera without distortion."""
    points = [
        normalised @ K[:2, :2].T + K[:2, 2] for normalised, K in zip(undistorted(pair), (pair.K1, pair.K2), strict=True)
    ]
    settings = pysuperansac.RANSACSettings()
    settings.inlier_threshold, settings.sampler = 1.0, pysuperansac.SamplerType.Uniform
    sizes = [float(side) for side in (*SIZE, *SIZE)]
    E, rows, _, _ = pysuperansac.estimateEssentialMatrix(
        np.column_stack(points), pair.K1, pair.K2, sizes, config=settings
    )
    mask = np.zeros(len(pair.labels), bool)
    mask[np.asarray(rows, int)] = True
    return recovered(E if mask.any() else None, mask, undistorted(pair))


def of_pycolmap(pair: Pair, seed: int) -> Found:
    """COLMAP's calibrated two-view geometry with its own settings; its points have pixel centres at .5."""
    cameras = [colmap_camera(pair, K + [[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]], "pycolmap") for K in (pair.K1, pair.K2)]
    options = pycolmap.TwoViewGeometryOptions()
    options.compute_relative_pose, options.ransac.random_seed = True, seed
    rows = np.stack([np.arange(len(pair.labels))] * 2, axis=1).astype(np.uint32)
    found = pycolmap.estimate_calibrated_two_view_geometry(
        cameras[0], pair.points1 + 0.5, cameras[1], pair.points2 + 0.5, rows, options
    )
    mask = np.zeros(len(pair.labels), bool)
    mask[np.asarray(found.inlier_matches, int).reshape(-1, 2)[:, 0]] = True
    if found.cam2_from_cam1 is None:
        return None, mask, None
    matrix = found.cam2_from_cam1.matrix()
    return (matrix[:, :3], matrix[:, 3]), mask, int(found.config) != PANORAMIC


def methods() -> dict[str, Method]:
    """All that can run here."""
    found: dict[str, Method] = {OURS: ours, PLAIN: plain, "ruzhash_cv, one camera": one_known}
    if poselib is not None:
        found |= {"mask with cameras, PoseLib": after_mask, "PoseLib": of_poselib}
    found["findEssentialMat USAC_MAGSAC"] = of_opencv
    if pycolmap is not None:
        found["pycolmap, calibrated"] = of_pycolmap
    if pysuperansac is not None:
        found["SupeRANSAC"] = of_superansac
    return found


def measure(pairs: list[Pair], seeds: range, asked: dict[str, Method]) -> pd.DataFrame:
    """Rows of all methods on all pairs."""
    rows: list[Row] = []
    for number, pair in enumerate(pairs):
        for seed in seeds:
            again = shuffled(pair, seed)
            for name, method in asked.items():
                (pose, kept, moved), seconds = timed(partial(method, again, seed))
                f1 = mask_quality(kept[again.judged], again.labels[again.judged] > 0)["f1"]
                told = {"pair": number, "name": name, "motion": pair.motion, "still": not pair.t.any(), "moved": moved}
                rows.append(told | {"error": pose_error(pose, pair), "f1": f1, "seconds": seconds})
        print(f"\r{number + 1} of {len(pairs)} pairs", end="", file=sys.stderr)
    return pd.DataFrame(rows)


def table(rows: pd.DataFrame) -> str:
    """AUC of poses of all methods, and this package with cameras minus each of the others."""
    header = ["pose from", *(f"AUC@{threshold:.0f}" for threshold in THRESHOLDS), "median error (°)", "F1 of mask"]
    header += ["called a rotation", "median ms", f"AUC@5, {OURS} minus this"]
    scores = rows.assign(score=pose_score(rows.error, 5.0)).groupby(["pair", "name"]).score.mean().unstack()
    lines = []
    for name, own in rows.groupby("name", sort=False):
        told = own.moved.dropna()
        line = [str(name), *(f"{pose_score(own.error, threshold).mean():.3f}" for threshold in THRESHOLDS)]
        line += [
            f"{own.error.median():.2f}",
            f"{own.f1.mean():.3f}",
            f"{1.0 - told.astype(float).mean():.1%}" if len(told) else "",
        ]
        mean, error = paired_difference(scores[OURS].to_numpy(), scores[name].to_numpy())
        lines.append([*line, f"{1e3 * own.seconds.median():.1f}", "" if name == OURS else shown(mean, 3, error, "+")])
    return markdown(header, lines)


def guesses(half: str, per_cell: int, seeds: range) -> str:
    """What comes back for focal lengths that are wrong by a factor, on drawn pairs with a baseline."""
    lines = []
    pairs = [pair for pair in given(half, per_cell) if pair.t.any()]
    for factor in (*GUESSES, None):
        rows = []
        for pair in pairs:
            for seed in seeds:
                options = {} if factor is None else {"cameras": cameras_of(pair, factor)}
                result = filter_points(pair.points1, pair.points2, rng=seed, **options)
                pose, kept, _ = pose_of(result, *(cameras_of(pair) if factor is None else ()))
                f1 = mask_quality(kept[pair.judged], pair.labels[pair.judged] > 0)["f1"]
                kind = result.motions[0].kind if result.motions else "none"
                rows.append(
                    (f1, pose_error(pose, pair), kind, result.motions[0].noise_scale if result.motions else np.nan)
                )
        f1, error, kind, noise = zip(*rows, strict=True)
        shares = [f"{np.mean(np.array(kind) == each):.1%}" for each in ("essential", "fundamental", "homography")]
        name = "no cameras" if factor is None else f"{factor:g}"
        errors = np.array(error)
        lines.append(
            [
                name,
                f"{np.mean(f1):.4f}",
                *shares,
                f"{np.nanmedian(noise):.2f}",
                f"{np.median(errors):.2f}",
                f"{pose_score(errors, 5.0).mean():.3f}",
            ]
        )
    header = ["focal length, of the truth", "F1 of mask", "motion is essential", "fundamental", "homography"]
    return markdown([*header, "median noise (px)", "median pose error (°)", "AUC@5"], lines)


def times(seed: int) -> str:
    """Processor milliseconds of each method beside PoseLib's relative pose on the same matches, medians of `ROUNDS` in turn."""
    lines = []
    known = (pose_scenes.N_MATCHES, pose_scenes.RATES)
    for n in N_TIMED:
        for rate in RATES_TIMED:
            pose_scenes.N_MATCHES, pose_scenes.RATES = (n, n + 1), (rate,)
            cells: dict[str, list[float]] = {
                "PoseLib": [],
                OURS: [],
                "filter alone": [],
                PLAIN: [],
                "camera_pose alone": [],
            }
            for scene, motion in (("room", "wide"), ("facade", "forward"), ("clutter", "narrow"), ("objects", "wide")):
                pair = pose_scenes.draw(scene, motion, seed)
                for name, took in in_turn(pair, seed).items():
                    cells[name].append(took)
            pose_scenes.N_MATCHES, pose_scenes.RATES = known
            medians = {name: float(np.median(took)) for name, took in cells.items()}
            lines.append([str(n), f"{rate:.0%}", *(f"{1e3 * took:.1f}" for took in medians.values())])
            lines[-1] += [f"{medians[name] / medians['PoseLib']:.2f}" for name in (OURS, "camera_pose alone")]
    header = ["matches", "wrong", "PoseLib", OURS, "its filter alone", PLAIN, "camera_pose alone, no cameras"]
    return markdown([*header, "cameras / PoseLib", "camera_pose alone / PoseLib"], lines)


def worked(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its seconds of the processor, which other programs do not change."""
    start = time.process_time()
    return call(), time.process_time() - start


def in_turn(pair: Pair, seed: int) -> dict[str, float]:
    """Median processor seconds of each part, one after the other in each round."""
    took: dict[str, list[float]] = {"PoseLib": [], OURS: [], "filter alone": [], PLAIN: [], "camera_pose alone": []}
    for _ in range(ROUNDS + 1):
        took["PoseLib"].append(worked(lambda: of_poselib(pair, seed))[1])
        took[OURS].append(worked(lambda: ours(pair, seed))[1])
        took["filter alone"].append(
            worked(lambda: filter_points(pair.points1, pair.points2, cameras=cameras_of(pair), rng=seed))[1]
        )
        result, alone = worked(lambda: filter_points(pair.points1, pair.points2, rng=seed))
        _, more = worked(lambda result=result: pose_of(result, *cameras_of(pair)))
        took["camera_pose alone"].append(more)
        took[PLAIN].append(alone + more)
    return {name: float(np.median(each[1:])) for name, each in took.items()}


def main() -> None:
    """Run all methods on all pairs of one half and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each pair")
    parser.add_argument(
        "--per-cell", type=int, default=6, help="pairs of each scene and motion; a third of it of pictures"
    )
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    parser.add_argument("--guesses", action="store_true", help="wrong focal lengths instead")
    parser.add_argument("--times", action="store_true", help="times instead")
    options = parser.parse_args()
    first = JUDGE_SEED if options.half == "judge" else 0
    seeds = range(first, first + options.seeds)
    print(about_this_run())
    if options.guesses:
        print(f"\n### Wrong focal lengths\n\n{guesses(options.half, options.per_cell, seeds)}")
    if options.times:
        print(f"\n### Times, ms of the processor\n\n{times(first)}")
    if options.guesses or options.times:
        return
    asked = {
        name: method for name, method in methods().items() if not options.no_peers or name.startswith("ruzhash_cv")
    }
    for name in options.set:
        rows = measure(list(SETS[name](options.half, options.per_cell)), seeds, asked)
        moved, still = rows[~rows.still], rows[rows.still]
        print(f"\n### {name}: {moved.pair.nunique()} pairs with a baseline\n\n{table(moved)}")
        if len(still):
            print(
                f"\n### {name}: {still.pair.nunique()} pure rotations, error of the rotation\n\n{table(still)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
