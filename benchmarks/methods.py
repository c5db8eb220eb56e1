"""Every method under comparison behind one call, (problem, seed) -> Answer; `report.ABSENT` names what is missing here."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import cv2
import numpy as np
from geometry import Matrix, Points, residuals
from lpm import locality_preserving_matching
from numpy.typing import NDArray
from problems import Cameras, Problem
from report import ABSENT

from ruzhash_cv import Camera, FilterResult, filter_points, find_fundamental_matrix, find_homography
from ruzhash_cv.results.printing import row_labels, table

OURS = "ruzhash_cv"
#: Peers with a threshold are measured with each of these, in pixels.
THRESHOLDS = (1.0, 2.0, 3.0, 5.0, 12.0)
#: Masks that are compared beside accuracy, at the best thresholds of the photographs' tuning halves: near misses, poses, times.
LINES = (
    OURS, "sequential H PoseLib 12 px", "sequential H USAC_MAGSAC 12 px 100k", "sequential H SupeRANSAC 12 px", "H PoseLib 12 px",
    "F PoseLib 5 px", *(f"F SupeRANSAC {each:g} px" for each in THRESHOLDS[2:]), "F USAC_MAGSAC 5 px", "F USAC_MAGSAC 5 px 100k",
    "H USAC_MAGSAC 12 px", "H USAC_MAGSAC 12 px 100k", "LPM",
)  # fmt: skip
#: The best ones of USAC_MAGSAC and PoseLib on the tuning halves of photographs.
PIXELS = {"homography": 12.0, "fundamental": 5.0}
MODELS = {"H": "homography", "F": "fundamental"}
FEWEST = {"homography": 4, "fundamental": 8}
#: Inliers that a model in turn needs. PoseLib's 20,000 iterations are as accurate as 100,000, most of which end a sequence in failure.
FEWEST_IN_TURN, ITERATIONS_IN_TURN = {"homography": 12, "fundamental": 16}, 20_000
#: OpenCV's rows stand twice: with its defaults, and with these, under a name that ends in " 100k".
MANY = {"maxIters": 100_000, "confidence": 0.9999}
FAR = 1e6  # baselines; OpenCV takes no point beyond 50 for one before the camera by default
Mask = NDArray[np.bool_]
Pose = tuple[Matrix, NDArray[np.float64]]
Found = tuple[Matrix | None, Mask]
"""A model, None if there is none, and its inliers."""
Estimator = Callable[[Points, Points, int], Found]
"""Points of both images and a seed."""


@dataclass(frozen=True)
class Answer:
    """What a method says of a problem: `mask` True = keep; `scores` high = mismatch; `labels` -1 = mismatch, else the structure."""

    mask: Mask
    scores: NDArray[np.float64] | None = None
    labels: NDArray[np.intp] | None = None
    model: Matrix | None = None
    pose: Pose | None = None
    result: FilterResult | None = None


Method = Callable[[Problem, int], Answer]


def optional(name: str, method: str) -> ModuleType | None:
    """A module, None if it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a wheel built for another numpy fails with more than ImportError
        ABSENT[method] = f"{type(error).__name__}: {error}".splitlines()[0]
        return None


poselib = optional("poselib", "PoseLib")
pysuperansac = optional("pysuperansac", "SupeRANSAC")


# --- Estimators of one model.


def opencv(
    kind: str, flag: str, threshold: float, points1: Points, points2: Points, seed: int, **options: float
) -> Found:
    """`cv2.findHomography` or `cv2.findFundamentalMat`. USAC's flags take no seed."""
    nothing = None, np.zeros(len(points1), bool)
    if len(points1) < FEWEST[kind]:
        return nothing
    cv2.setRNGSeed(seed)
    find = cv2.findHomography if kind == "homography" else cv2.findFundamentalMat
    try:
        model, mask = find(points1, points2, getattr(cv2, flag), threshold, **options)
    except cv2.error:
        return nothing
    # Without a model the mask is uninitialised.
    return nothing if model is None or model.shape != (3, 3) or mask is None else (model, mask.ravel() > 0)


def of_poselib(
    kind: str, points1: Points, points2: Points, seed: int, *, threshold: float | None = None, **options: float
) -> Found:
    """PoseLib's `estimate_homography` or `estimate_fundamental`, with its defaults unless given."""
    if len(points1) < FEWEST[kind]:
        return None, np.zeros(len(points1), bool)
    estimate = poselib.estimate_homography if kind == "homography" else poselib.estimate_fundamental
    if threshold is not None:
        options["max_reproj_error" if kind == "homography" else "max_epipolar_error"] = threshold
    model, info = estimate(points1, points2, {"seed": seed, **options})
    mask = np.asarray(info["inliers"], bool)
    return (model if mask.any() else None), mask


def of_superansac(kind: str, threshold: float, points1: Points, points2: Points, seed: int) -> Found:
    """SupeRANSAC with its defaults, but for the threshold and for even samples: the matches are in no order. It takes no seed."""
    mask = np.zeros(len(points1), bool)
    if len(points1) < FEWEST[kind]:
        return None, mask
    settings = pysuperansac.RANSACSettings()
    settings.sampler = pysuperansac.SamplerType.Uniform
    settings.inlier_threshold = threshold
    find = pysuperansac.estimateHomography if kind == "homography" else pysuperansac.estimateFundamentalMatrix
    pairs = np.column_stack([points1, points2])
    model, inliers, _, _ = find(pairs, (pairs.max(axis=0) + 1).tolist(), config=settings)
    mask[np.asarray(inliers, int)] = True
    return (model, mask) if mask.any() and np.isfinite(model).all() else (None, np.zeros(len(mask), bool))


def estimators(kind: str, threshold: float) -> dict[str, Estimator]:
    """Estimators of one kind of model with a threshold, by name; OpenCV's twice."""
    magsac, found, px = partial(opencv, kind, "USAC_MAGSAC", threshold), dict[str, Estimator](), f"{threshold:g} px"
    found |= {f"USAC_MAGSAC {px}": magsac, f"USAC_MAGSAC {px} 100k": partial(magsac, **MANY)}
    if poselib is not None:
        found[f"PoseLib {px}"] = partial(of_poselib, kind, threshold=threshold)
    if pysuperansac is not None:
        found[f"SupeRANSAC {px}"] = partial(of_superansac, kind, threshold)
    return found


def of_points(estimate: Estimator) -> Callable[[Problem, int], Found]:
    """An estimator as a function of a problem."""
    return lambda problem, seed: estimate(problem.points1, problem.points2, seed)


def single(kind: str, find: Callable[[Problem, int], Found], problem: Problem, seed: int) -> Answer:
    """One model with its inliers; scores are residuals to it, the pose is that of a fundamental matrix if cameras are known."""
    model, mask = find(problem, seed)
    if model is None:
        return Answer(mask)
    scores, pose = residuals(kind, model, problem.points1, problem.points2), None
    if problem.cameras is not None and kind == "fundamental":
        pose = pose_of_matrix(problem, model, mask)
    return Answer(mask, scores, np.where(mask, 0, -1), model, pose)


def in_turn(kind: str, estimate: Estimator, fewest: int, problem: Problem, seed: int, most: int = 30) -> Answer:
    """Find a model, set its inliers aside, repeat until fewer than `fewest` agree; scores are residuals to the nearest model."""
    points = problem.points1, problem.points2
    labels, scores = np.full(len(points[0]), -1), np.full(len(points[0]), np.inf)
    for index in range(most):
        left = np.flatnonzero(labels < 0)
        if len(left) < fewest:
            break
        model, inliers = estimate(points[0][left], points[1][left], seed)
        if model is None or inliers.sum() < fewest:
            break
        labels[left[inliers]] = index
        scores = np.minimum(scores, residuals(kind, model, *points))
    return Answer(labels >= 0, scores, labels)


# --- This package.


def ours(problem: Problem, seed: int, **options: Any) -> Answer:
    """`filter_points`; its pose if cameras are known."""
    result = filter_points(problem.points1, problem.points2, rng=seed, **options)
    pose = None
    if problem.cameras is not None and result.motions:
        found = result.camera_pose(*cameras_of(problem))
        pose = found.rotation, found.translation
    labels = result.motion_labels
    if problem.kind != "fundamental":
        labels = row_labels(table(result), len(labels))
    return Answer(result.inlier_mask, result.anomaly_scores, np.asarray(labels), None, pose, result)


def found_by_cv2_name(kind: str, problem: Problem, seed: int, **options: float) -> Found:
    """`find_homography` or `find_fundamental_matrix`."""
    find = find_homography if kind == "homography" else find_fundamental_matrix
    model, mask = find(problem.points1, problem.points2, rng=seed, **options)
    return model, np.ravel(mask) > 0


def first_motion(problem: Problem, seed: int) -> Found:
    """The matrix of the motion of most matches, and its matches; of a plane one of the matrices that fit it."""
    result = filter_points(problem.points1, problem.points2, rng=seed)
    if not result.motions:
        return None, np.zeros(len(problem.labels), bool)
    motion = result.motions[0]
    if motion.kind == "fundamental":
        return motion.matrix, motion.mask
    own = problem.points1[motion.mask], problem.points2[motion.mask]
    return find_fundamental_matrix(*own, rng=seed)[0], motion.mask


def cameras_of(problem: Problem) -> tuple[Camera, Camera]:
    """The cameras of a problem."""
    known = problem.cameras
    first, second = (Camera(K, known.distortion, fisheye=known.fisheye) for K in (known.K1, known.K2))
    return first, second


def with_cameras(problem: Problem, seed: int, known: tuple[bool, bool] = (True, True)) -> Answer:
    """`filter_points` with cameras, or one of them; the pose is of all that belongs to the first motion."""
    cameras = cameras_of(problem)
    given = tuple(camera if is_known else None for camera, is_known in zip(cameras, known, strict=True))
    return ours(problem, seed, cameras=given)


# --- Poses of known cameras.


def undistorted(problem: Problem) -> tuple[Points, Points]:
    """Points in units of the focal length, by OpenCV."""
    cameras = problem.cameras
    numbers = np.array(cameras.distortion) if cameras.distortion else np.zeros(4)
    undistort = cv2.fisheye.undistortPoints if cameras.fisheye else cv2.undistortPoints
    sides = (problem.points1, cameras.K1), (problem.points2, cameras.K2)
    first, second = (undistort(np.ascontiguousarray(of)[:, None], K, numbers)[:, 0] for of, K in sides)
    return first, second


def recovered(E: Any, mask: Mask, points: tuple[Points, Points]) -> Pose | None:
    """The pose of an essential matrix by `cv2.recoverPose`, the one of four that has the kept matches before both cameras."""
    if E is None or np.shape(E) != (3, 3) or not np.isfinite(E).all() or not mask.any():
        return None
    kept, E = [side[mask] for side in points], E / np.linalg.norm(E)
    _, R, t, _, _ = cv2.recoverPose(E, *kept, np.eye(3), distanceThresh=FAR)
    return R, t.ravel()


def pose_of_matrix(problem: Problem, F: Matrix, mask: Mask) -> Pose | None:
    """The pose of a fundamental matrix of pixels without distortion."""
    return recovered(problem.cameras.K2.T @ F @ problem.cameras.K1, mask, undistorted(problem))


def colmap_camera(cameras: Cameras, K: Matrix) -> dict[str, Any]:
    """A camera's model and its parameters in the order of COLMAP, whose models are PoseLib's too."""
    model = "OPENCV_FISHEYE" if cameras.fisheye else "OPENCV" if cameras.distortion else "PINHOLE"
    parameters = [K[0, 0], K[1, 1], K[0, 2], K[1, 2], *cameras.distortion]
    return {"model": model, "width": int(2 * K[0, 2]), "height": int(2 * K[1, 2]), "params": parameters}


def calibrated_poselib(problem: Problem, seed: int, kept: Mask | None = None, threshold: float = 1.0) -> Answer:
    """PoseLib's relative pose, with its own camera models; from the matches kept if they are given."""
    rows = np.arange(len(problem.labels)) if kept is None else np.flatnonzero(kept)
    mask, cameras = np.zeros(len(problem.labels), bool), problem.cameras
    if len(rows) < 5:
        return Answer(mask)
    models = [colmap_camera(cameras, K) for K in (cameras.K1, cameras.K2)]
    options = {"max_epipolar_error": threshold, "seed": seed}
    pose, info = poselib.estimate_relative_pose(problem.points1[rows], problem.points2[rows], *models, options)
    mask[rows] = info["inliers"]
    return Answer(mask, pose=(pose.R, pose.t))


def after(method: Method, problem: Problem, seed: int) -> Answer:
    """PoseLib's relative pose from the matches that another method keeps."""
    mask = method(problem, seed).mask
    return Answer(mask, pose=calibrated_poselib(problem, seed, mask).pose)


def calibrated_opencv(problem: Problem, seed: int, maxIters: int = 1000, confidence: float = 0.999) -> Answer:
    """`cv2.findEssentialMat` with USAC_MAGSAC at 1 px of the mean focal length, from undistorted points."""
    points, focal = undistorted(problem), np.mean([problem.cameras.K1[0, 0], problem.cameras.K2[0, 0]])
    settings = {"prob": confidence, "maxIters": maxIters, "threshold": 1 / focal}
    try:
        E, mask = cv2.findEssentialMat(*points, np.eye(3), method=cv2.USAC_MAGSAC, **settings)
    except cv2.error:
        E, mask = None, None
    kept = np.zeros(len(points[0]), bool) if mask is None else np.ravel(mask) > 0
    return Answer(kept, pose=recovered(E, kept, points))


def image_size(problem: Problem) -> tuple[int, int]:
    """The size of the image whose middle is the principal point."""
    width, height = np.round(2.0 * problem.cameras.K1[:2, 2] + 1.0).astype(int).tolist()
    return width, height


def without_focal_length(problem: Problem, seed: int, guessed: bool = False) -> Answer:
    """`filter_points`, and the pose with the focal length that it estimates, or with COLMAP's guess."""
    result, size = filter_points(problem.points1, problem.points2, rng=seed), image_size(problem)
    given = {"camera1": Camera.from_focal_length(None, size)} if guessed else {"image_size": size}
    return Answer(result.inlier_mask, pose=tuple(result.camera_pose(**given)) if result.motions else None)


def focal_poselib(threshold: float, problem: Problem, seed: int) -> Answer:
    """PoseLib's relative pose with one unknown focal length."""
    centre, options = problem.cameras.K1[:2, 2], {"max_epipolar_error": threshold, "seed": seed}
    found, info = poselib.estimate_shared_focal_relative_pose(problem.points1, problem.points2, centre, options)
    return Answer(np.asarray(info["inliers"], bool), pose=(found.pose.R, found.pose.t))


def lpm(problem: Problem, seed: int) -> Answer:
    """Locality Preserving Matching."""
    return Answer(*locality_preserving_matching(problem.points1, problem.points2))


# --- The methods of each measure, by name.


def mask_methods() -> dict[str, Method]:
    """Every method that makes a mask."""
    methods: dict[str, Method] = {OURS: ours}
    methods |= {f"{OURS} {kind}": partial(ours, model=kind) for kind in MODELS.values()}
    methods[f"{OURS} find_homography"] = partial(single, "homography", partial(found_by_cv2_name, "homography"))
    for (letter, kind), threshold in product(MODELS.items(), THRESHOLDS):
        for name, one in estimators(kind, threshold).items():
            methods[f"{letter} {name}"] = partial(single, kind, of_points(one))
            if name.endswith("100k") or name.startswith("SupeRANSAC"):
                methods[f"sequential {letter} {name}"] = partial(in_turn, kind, one, FEWEST_IN_TURN[kind])
            elif name == f"PoseLib {threshold:g} px":
                repeated = partial(of_poselib, kind, threshold=threshold, max_iterations=ITERATIONS_IN_TURN)
                methods[f"sequential {letter} {name}"] = partial(in_turn, kind, repeated, FEWEST_IN_TURN[kind])
    return methods | {"LPM": lpm}


def line_methods() -> dict[str, Method]:
    """The methods of `LINES` that are here."""
    methods = mask_methods()
    return {name: methods[name] for name in LINES if name in methods}


def near_methods() -> dict[str, Method]:
    """What filters near misses: the rows of `LINES`, and one fundamental matrix at each threshold."""
    return line_methods() | {name: one for name, one in mask_methods().items() if name.startswith("F ")}


def model_methods() -> dict[str, Method]:
    """Estimators of one model of the problem's kind."""
    methods: dict[str, dict[str, Callable[[Problem, int], Found]]] = {
        OURS: {kind: partial(found_by_cv2_name, kind) for kind in FEWEST}
    }
    for kind, threshold in product(FEWEST, THRESHOLDS):
        for name, one in estimators(kind, threshold).items():
            methods.setdefault(name, {})[kind] = of_points(one)
    of_kind = lambda of, problem, seed: single(problem.kind, of[problem.kind], problem, seed)  # noqa: E731
    return {name: partial(of_kind, of) for name, of in methods.items()}


def one_model_methods() -> dict[str, Method]:
    """`filter_points`, and estimators of one model with 100,000 iterations; PoseLib's homography with a million, too."""
    peers = {name: one for name, one in model_methods().items() if name != OURS}

    def longest(problem: Problem, seed: int) -> Answer:
        most = 1_000_000 if problem.kind == "homography" else MANY["maxIters"]
        found = partial(of_poselib, problem.kind, threshold=THRESHOLDS[-1], max_iterations=most)
        return single(problem.kind, of_points(found), problem, seed)

    def found(problem: Problem, seed: int) -> Answer:
        options = {"threshold": PIXELS[problem.kind], **MANY}
        return single(problem.kind, partial(found_by_cv2_name, problem.kind, **options), problem, seed)

    own = {OURS: ours, f"{OURS} confidence=0.99": partial(ours, confidence=0.99), f"{OURS} find_*": found}
    return own | peers | ({f"PoseLib {THRESHOLDS[-1]:g} px 1M": longest} if poselib else {})


def pose_methods() -> dict[str, Method]:
    """Ways to a pose: with known cameras, from a mask, from a fundamental matrix."""
    methods: dict[str, Method] = {
        OURS: ours, f"{OURS}, cameras given": with_cameras, f"{OURS}, one camera given": partial(with_cameras, known=(True, False)),
        f"{OURS}, find_fundamental_matrix": partial(single, "fundamental", partial(found_by_cv2_name, "fundamental")),
        f"{OURS}, motions[0]": partial(single, "fundamental", first_motion),
    }  # fmt: skip
    for threshold in THRESHOLDS:
        found = estimators("fundamental", threshold)
        methods |= {f"F {name}": partial(single, "fundamental", of_points(one)) for name, one in found.items()}
        if poselib is not None:
            given = partial(calibrated_poselib, threshold=threshold)
            methods[f"PoseLib {threshold:g} px, cameras given"] = given
    methods |= {"E USAC_MAGSAC 1 px": calibrated_opencv, "E USAC_MAGSAC 1 px 100k": partial(calibrated_opencv, **MANY)}
    if poselib is not None:
        masks = OURS, "F USAC_MAGSAC 1 px 100k"
        methods |= {f"PoseLib after {name}": partial(after, methods[name]) for name in masks}
    return methods


def focal_methods() -> dict[str, Method]:
    """Ways to a pose of one camera whose focal length is not known."""
    methods: dict[str, Method] = {
        OURS: without_focal_length, f"{OURS}, focal length guessed": partial(without_focal_length, guessed=True),
        f"{OURS}, cameras given": with_cameras,
    }  # fmt: skip
    if poselib is not None:
        methods |= {f"PoseLib {each:g} px": partial(focal_poselib, each) for each in THRESHOLDS}
    return methods


def video_methods() -> dict[str, Method]:
    """Poses of known cameras at the rate of video."""
    names = f"{OURS}, cameras given", OURS, "PoseLib 1 px, cameras given", "E USAC_MAGSAC 1 px 100k"
    methods = pose_methods()
    return {name: methods[name] for name in names if name in methods}


def own_methods(**variants: dict[str, Any]) -> dict[str, Method]:
    """This package alone, and with other options."""
    return {OURS: ours} | {f"{OURS} {name.replace('_', ' ')}": partial(ours, **of) for name, of in variants.items()}
