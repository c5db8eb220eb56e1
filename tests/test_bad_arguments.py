"""One table of arguments that public functions refuse: the error names the argument, the requirement and what arrived."""

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from many_pairs import problem
from posed_views import CAMERA1, CAMERA2, WALL, filtered, on_plane, views
from scipy.sparse import csr_array

import ruzhash_cv as rc
from ruzhash_cv import Camera, filter_points, find_essential_matrix, find_fundamental_matrix, find_homography, paper
from ruzhash_cv.datasets import fetch_adelaidermf, load_pair
from ruzhash_cv.models import Circles, FundamentalMatrices, Homographies, Lines, sampson_distance, transfer_error
from ruzhash_cv.paper import RuzHashForest, VoronoiForest, ruzhash
from ruzhash_cv.pipelines import filter_pairs
from ruzhash_cv.sklearn import PreferenceIsolationForest

T, V, INDEX = TypeError, ValueError, IndexError
SOME, SQUARE = np.zeros((4, 2)), [[0, 1, 2, 3]]
KP1, KP2 = np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)
IMAGE, PAIRS, MASK = np.zeros((60, 80), np.uint8), np.array([[0, 0], [1, 1]]), [True, False]
FLAT = [cv2.DMatch(0, 0, 0.1), cv2.DMatch(1, 1, 0.5), cv2.DMatch(2, 0, 0.9)]
KNN = [(match, cv2.DMatch(match.queryIdx, 1, 1.0)) for match in FLAT]
OF_IMAGES = [cv2.DMatch(0, 1, number, 0.1) for number in range(9)]
RAYS = np.ones((10, 3))
ROWS = np.array([[0.3, -2.9], [0.1, 0.4], [1.0, 2.0], [0.5, 0.5], [2.0, 0.0]])
WALL_SEEN = views(on_plane(WALL, 60, np.random.default_rng(0)))
FOLDING, BOTH = Camera(CAMERA1, [-40.0, 0.0, 0.0, 0.0]), (CAMERA1, CAMERA2)

points = partial(filter_points, SOME, SOME)
matches = partial(rc.as_correspondences, KP1, KP2)
seen = partial(filter_points, *WALL_SEEN)
essential = partial(find_essential_matrix, *WALL_SEEN)
structures = partial(rc.find_structures, np.zeros((9, 2)))
camera = partial(Camera, CAMERA1)
crossing = partial(rc.draw_matches, IMAGE, KP2, IMAGE, KP2, PAIRS)
scored = partial(rc.draw_scores, IMAGE, KP2, IMAGE, KP2, PAIRS)
surfaces = partial(rc.draw_structures, IMAGE, KP2, IMAGE, KP2, None)
hashes = partial(ruzhash, np.ones((1, 1)))
embedded = partial(paper.embed_preferences, np.zeros((2, 2)))
precomputed = VoronoiForest(metric="precomputed")


def page(keypoints: Any, result: Any, image: Any = IMAGE, **options: Any) -> None:
    rc.write_html(Path("a.html"), IMAGE, keypoints, image, keypoints, None, result, **options)


@cache
def wall(calibrated: bool) -> rc.FilterResult:
    return filtered(WALL_SEEN, cameras=BOTH if calibrated else None)


def pose(*given: Any, calibrated: bool = False, **options: Any) -> Callable[..., Any]:
    """Return a call for the pose of a wall."""
    return lambda: wall(calibrated).camera_pose(*given, **options)


TABLE: list[tuple[Callable[..., Any], type[Exception], str]] = [
    # The filter
    (partial(filter_points, np.zeros((4, 3)), SOME), V, r"`points1` must have shape \(n, 2\), got \(4, 3\)"),
    (partial(filter_points, np.zeros((5, 0)), SOME), V, r"`points1` .*\(n, 2\), got \(5, 0\)"),
    (partial(filter_points, SOME, np.zeros((5, 2))), V, "`points1` and `points2` must have the same length, got 4 and 5"),
    (partial(filter_points, np.array([["a", "b"]]), SOME), T, "`points1` must be an array of real numbers"),
    (partial(filter_points, 3.0, SOME), V, r"`points1` must have shape \(n, 2\), got \(\)"),
    (partial(filter_points, None, SOME), T, "`points1` must be an array of real numbers, got NoneType"),
    (partial(filter_points, "points.txt", SOME), T, "`points1` must be an array of real numbers, got str"),
    (partial(filter_points, [[None, 1]], SOME), T, "`points1` must be an array of real numbers, got list of NoneType"),
    (partial(filter_points, (point for point in ()), SOME), T, "`points1` must be an array of real numbers, got generator"),
    (partial(filter_points, [(1.0, 2.0), cv2.KeyPoint()], SOME), V, r"`points1` .*, got a mixture of tuple and KeyPoint"),
    (partial(points, sizes=([1.0] * 4, [1, 1, 10**400, 1])), V, r"`sizes\[1\]` must be finite and above 0, got inf in row 2"),
    (partial(points, model=Homographies(sample_size=0)), V, "`model.sample_size` must be at least 1, got 0"),
    (partial(points, sizes=[1.0] * 4), V, "`sizes` must be a pair with an array for each image, got 4 entries"),
    (partial(points, sizes=2.0), V, "`sizes` must be a pair .*got float"),
    (partial(points, sizes="ab"), V, "`sizes` must be a pair .*got str"),
    (partial(points, sizes=([1.0] * 4, [1.0] * 3)), V, r"`sizes\[1\]` must have one entry per row of points, shape \(4,\), got \(3,\)"),
    (partial(points, sizes=(["a"] * 4, [1.0] * 4)), T, r"`sizes\[0\]` must be an array of real numbers"),
    *((partial(points, sizes=([1.0] * 4, [1, 1, bad, 1])), V, r"`sizes\[1\]` must be finite and above 0, got .* in row 2")
      for bad in (0.0, -1.0, np.nan, np.inf)),
    (partial(rc.filter_matches, KP1, KP2, PAIRS, sizes=([1.0] * 3, [1.0] * 3)), V, r"`sizes\[1\]` must have .*\(2,\), got \(3,\)"),
    (partial(find_homography, SOME, SOME, sizes=([1.0] * 3, [1.0] * 4)), V, r"`sizes\[0\]` must have .*\(4,\), got \(3,\)"),
    (partial(essential, CAMERA1, sizes=[1.0]), V, "`sizes` must be a pair .*got 1 entries"),
    (partial(points, model="affine"), V, "one of 'auto', 'homography', 'fundamental'.*got 'affine'"),
    *((partial(points, model=model), V, "`model` must be one of") for model in (3, ["homography"], np.array(["homography", "auto"]))),
    (partial(points, model=None), V, "`model` must be .*got None"),
    (partial(points, model="essential"), V, "`model` must be one of 'auto', 'homography', 'fundamental', a TwoViewFamily, got 'ess"),
    (partial(points, pixel=0), V, "`pixel` must be .*above 0, got 0"),
    (partial(points, pixel=np.inf), V, "`pixel` must be .*above 0, got inf"),
    (partial(points, pixel=None), T, "`pixel` must be a number, got None"),
    (partial(points, pixel=(1.0, 0.0)), V, r"`pixel\[1\]` must be .*above 0, got 0"),
    (partial(points, pixel=(1.0,)), V, "`pixel` must be a number, or a pair with one for each image, got 1$"),
    (partial(points, threshold=0), V, "`threshold` must be .*above 0, got 0"),
    (partial(points, threshold=10**600), V, "`threshold` must be .*got inf"),
    (partial(points, threshold="3"), T, "`threshold` must be a number, got '3'"),
    (partial(points, treshold=3), T, "treshold"),
    (partial(points, ratio=0.8), V, "`ratio` needs `matches` that are knnMatch output .*got None"),
    (partial(points, "homography"), T, "`matches` must be a sequence, got str"),
    (partial(points, [[0, 4]]), INDEX, r"`matches\[0\]` has trainIdx 4, but `points2` has 4 keypoints"),
    (partial(points, rng=-1), T, r"`rng` must be a non-negative int, a numpy\.random\.Generator or None, got -1"),
    *((partial(points, rng=seed), T, "`rng` must be a non-negative int, .* got") for seed in (1.0, "0", True)),
    (partial(points, keep_stationary="False"), T, "`keep_stationary` must be True or False, got 'False'"),
    (partial(points, keep_stationary=None), T, "`keep_stationary` must be True or False, got None"),
    (partial(points, false_discovery_rate=1.5), V, "between 0 and 1, got 1.5"),
    (partial(points, confidence=0), V, "`confidence` must lie between 0 and 1, got 0"),
    (partial(points, confidence="0.9"), T, "`confidence` must be a number, got '0.9'"),
    (partial(points, max_iters=0), V, "`max_iters` must be at least 1, got 0"),
    (partial(points, max_iters=1e4), T, "`max_iters` must be an integer, got 10000.0"),
    (partial(rc.filter_matches, SOME, SOME, SQUARE[:0], keep_stationary="False"), T, "`keep_stationary` must be True or False"),
    (partial(rc.filter_matches, {"x": 1}, SOME, SQUARE), T, "`kp1` must be a sequence"),
    (partial(rc.filter_matches, csr_array(SOME), SOME, SQUARE), T, "`kp1` must be an array of real"),
    (partial(rc.filter_matches, SOME, SOME, {}), T, "`matches` must be a sequence, got dict"),
    (partial(rc.filter_matches, SOME, SOME, np.array(3)), T, "`matches` must be a sequence"),
    (partial(rc.filter_matches, SOME, SOME, [[1, 2], [3]]), V, "`matches` must have shape"),
    # Cameras
    (partial(seen, cameras=CAMERA1[:2]), V, r"`cameras` is no camera: `matrix` must have shape \(3, 3\), got \(2, 3\)"),
    (partial(seen, cameras=(CAMERA1, np.zeros(5))), V, r"got a matrix and its distortion: give `Camera\(matrix, distortion\)`"),
    *((partial(seen, cameras=[CAMERA1] * n), V, f"`cameras` must be a camera, or a pair with one for each image, got {n}")
      for n in (0, 1, 3, 4)),
    (partial(seen, cameras=(None, None)), V, "`cameras` must hold a camera, got None for both images"),
    (partial(seen, cameras=(CAMERA1, np.zeros((3, 3)))), V, r"`cameras\[1\]` is no camera: `matrix` must be finite"),
    (partial(seen, cameras=(CAMERA1, "x")), T, r"`cameras\[1\]` is no camera: `matrix` must be an array of real numbers"),
    (partial(seen, cameras=(FOLDING, CAMERA2)), V, "`cameras` must see `points1`, got a camera that has no ray for .* of 60 points"),
    (partial(seen, model="essential", cameras=(CAMERA1, None)), V, "`model` must be one of .*'fundamental', got 'essential'"),
    (partial(filter_points, RAYS, RAYS * np.eye(10)[:, 4:5], cameras=(Camera.from_rays(0.1),) * 2), V, "rays of a length above 0"),
    (partial(Camera, np.eye(2)), V, r"`matrix` must have shape \(3, 3\), got \(2, 2\)"),
    (partial(Camera, np.zeros((3, 3))), V, "`matrix` must be finite and have an inverse"),
    (partial(Camera, np.full((3, 3), np.nan)), V, "`matrix` must be finite and have an inverse"),
    (partial(Camera, np.diag([-700.0, 700.0, 1.0])), V, "`matrix` must have positive focal lengths, got -700 and 700"),
    (partial(Camera, CAMERA1.T), V, r"`matrix` must be \[\[fx, s, cx\], \[0, fy, cy\], \[0, 0, 1\]\]"),
    (partial(camera, [0.1, 0.2]), V, r"`distortion` must hold 0, 4, 5, 8, 12 or 14 numbers, got shape \(2,\)"),
    (partial(camera, np.zeros((2, 2))), V, r"`distortion` must hold .* numbers, got shape \(2, 2\)"),
    (partial(camera, np.zeros(5), True), V, r"`distortion` must hold 0 or 4 numbers, got shape \(5,\)"),
    (partial(camera, [0.1, np.nan, 0.0, 0.0]), V, r"`distortion` must be finite, got \[0.1, nan, 0.0, 0.0\]"),
    (partial(camera, "none"), T, "`distortion` must be an array of real numbers, got str"),
    (partial(camera, None, 1), T, "`fisheye` must be True or False, got 1"),
    (partial(Camera.of, (CAMERA1, [0.1]), "camera1"), V, r"`camera1` is no camera: `distortion` must hold"),
    (partial(Camera.from_focal_length, -1.0, (640, 480)), V, "`focal_length` must be a finite number above 0, got -1"),
    (partial(Camera.from_focal_length, 1.0, 640), V, r"`image_size` must be \(width, height\), got shape \(\)"),
    (partial(Camera.from_focal_length, 1.0, (640, 0)), V, "`image_size` must be at least 1, got 0"),
    (partial(Camera.equirectangular, 3), V, "`width` must be at least 4, got 3"),
    *((partial(Camera.from_rays, pixel), V, f"`pixel` must lie between 1e-15 and 1, got {pixel}") for pixel in (0.0, 1e-300)),
    (lambda: Camera(CAMERA1).pixels([[0.0, 0.0, 0.0]]), V, "`rays` must be rays of a length above 0, got "),
    (lambda: Camera(CAMERA1).pixels([[0.0, 1.0]]), V, r"`rays` must have shape \(n, 3\), got \(1, 2\)"),
    (lambda: Camera(CAMERA1).rays([[0.0, 1.0, 1.0]]), V, r"`points` must have shape \(n, 2\), got \(1, 3\)"),
    # Poses
    (pose(CAMERA1, [1.0, 2.0, 3.0]), V, r"`camera2` is no camera: `matrix` must have shape \(3, 3\), got \(3,\)"),
    (pose(None, CAMERA1), T, "`camera1` is no camera: `matrix`"),
    (pose(), T, "`camera1` and `camera2` must be given, or `image_size`: the matches were filtered without two known cameras"),
    (pose(np.zeros((3, 3)), CAMERA2), V, "`camera1` is no camera: `matrix` must be finite and have an inverse"),
    (pose(1e300 * CAMERA1, CAMERA2), V, "`camera1` is no camera: .* of a size from 1e-100 to 1e100, got"),
    (pose(*BOTH, 1), INDEX, "`motion` must be an index into 1 motions, got 1"),
    *((pose(*BOTH, at), T, f"`motion` must be an integer, got {at!r}") for at in ("0", 0.0, True)),
    (pose(image_size=640), V, r"`image_size` must be \(width, height\), got shape \(\)"),
    (pose(image_size=(640, 0)), V, "`image_size` must be at least 1, got 0"),
    (pose(CAMERA1, image_size=(640, 480)), T, "`image_size` is for a camera whose focal length is not known, got cameras as well"),
    (pose(calibrated=True, image_size=(640, 480)), T, "`image_size` is for a camera whose focal length is not known"),
    (lambda: points().camera_pose(*BOTH), INDEX, "there is no motion whose pose could be estimated: 0 of "),
    (lambda: filtered(WALL_SEEN, threshold=1e-9).camera_pose(*BOTH), INDEX, "there is no motion whose pose could be estimated: 0 of "),
    # Matches
    (partial(matches, 5), T, "`matches` must be a sequence, got int"),
    (partial(matches, {1, 2}), T, "`matches` must be a sequence, got set"),
    (partial(matches, np.zeros((2, 3), int)), V, r"index pairs of shape \(n, 2\) or one .*, got \(2, 3\)"),
    (partial(matches, np.zeros((2, 3, 2), int)), V, r"index pairs of shape \(n, 2\) or one .*, got \(2, 3, 2\)"),
    (partial(matches, np.zeros(4, int)), V, r"one index for each of the 3 keypoints of `kp1`, got \(4,\)"),
    (partial(matches, (np.arange(3), np.arange(2))), V, "index arrays of `matches` must have the same length, got 3 and 2"),
    (partial(matches, [True, False, True]), T, "`matches` must hold .* or integer indices, got a mask"),
    (partial(matches, [None, None]), T, "`matches` must hold DMatch, .* or index pairs, got list of NoneType"),
    (partial(matches, [[0.0, 1.0]]), T, "integer index pairs, got dtype float64"),
    (partial(matches, [[np.inf, np.nan], [0.5, 1.0]]), T, "`matches` must hold integer index pairs, got dtype float64"),
    (partial(matches, [*FLAT, KNN[0]]), T, "got a mixture"),
    (partial(matches, [*KNN[:2], FLAT[2]]), V, r"`matches` must have shape \(n, 2\), got a mixture of tuple and DMatch"),
    (partial(matches, [[0, 10**30]]), T, "`matches` must hold .* or index pairs, got list of int"),
    (partial(matches, [*FLAT, *OF_IMAGES[:2]]), V, r"of one train image, got imgIdx 0, 1: .*imgIdx == 0\]"),
    (partial(filter_points, KP1, KP2, [(match,) for match in OF_IMAGES]), V, r"got imgIdx 0, 1, 2, 3, \.\.\.: filter each"),
    (partial(matches, FLAT, ratio=0.8), V, "`ratio` needs knnMatch output with k >= 2, got a flat sequence"),
    (partial(matches, PAIRS, ratio=0.8), V, "`ratio` needs knnMatch output with k >= 2, got an index array"),
    (partial(matches, [(match,) for match in FLAT], ratio=0.8), V, "with k >= 2, got rows of one DMatch"),
    (partial(matches, PAIRS, ratio=0.0), V, "`ratio` must lie between 0 and 1, got 0.0"),
    (partial(matches, PAIRS, ratio=1.2), V, "`ratio` must lie between 0 and 1, got 1.2"),
    (partial(matches, PAIRS, ratio="0.8"), T, "`ratio` must be a number, got '0.8'"),
    (partial(matches, PAIRS, ration=0.8), T, "ration"),
    (partial(matches, [[0, 1], [3, 0]]), INDEX, r"`matches\[1\]` has queryIdx 3, but `kp1` has 3 keypoints$"),
    (partial(matches, [[0, 1], [0, 2]]), INDEX, r"has trainIdx 2, but `kp2` has 2 keypoints; are the images exchanged\?$"),
    (partial(matches, [[0, -1]]), INDEX, r"`matches\[0\]` has trainIdx -1, but `kp2` has 2 keypoints$"),
    (partial(matches, [-1, -2, 0]), INDEX, r"`matches\[1\]` has trainIdx -2"),
    (partial(matches, [cv2.DMatch(0, 1, 0.5), cv2.DMatch(9, 0, 0.5)]), INDEX, r"`matches\[1\]` has queryIdx 9"),
    (partial(matches, [cv2.DMatch()]), INDEX, r"`matches\[0\]` has queryIdx -1"),
    (partial(matches, [(), (cv2.DMatch(0, 7, 1.0),)]), INDEX, r"`matches\[1\]` has trainIdx 7"),
    (partial(rc.as_correspondences, None, KP2, PAIRS), T, "`kp1` must be a sequence of cv2.KeyPoint or an array .* got None"),
    (partial(rc.as_correspondences, 7, KP2, PAIRS), T, "`kp1` must be a sequence of cv2.KeyPoint or an array"),
    (partial(rc.as_correspondences, np.stack([KP1, KP1]), KP2, PAIRS), V, r"`kp1` must have shape \(n, 2\), got \(2, 3, 2\)"),
    (partial(rc.as_correspondences, KP1.T, KP2, PAIRS), V, r"`kp1` must have shape \(n, 2\), got \(2, 3\)"),
    (partial(rc.as_correspondences, [[0, 1], [2]], KP2, PAIRS), V, r"`kp1` must have shape \(n, 2\), got a ragged sequence"),
    (partial(rc.as_correspondences, [cv2.KeyPoint(), None], KP2, PAIRS), T, "`kp1` must hold only cv2.KeyPoint, got NoneType"),
    (partial(rc.as_correspondences, KP1 + 1j, KP2, PAIRS), T, "`kp1` must be an array of real numbers, got dtype complex128"),
    (partial(rc.select_matches, FLAT, MASK), V, r"`inlier_mask` must have one entry per match, shape \(3,\), got \(2,\)"),
    (partial(rc.select_matches, [()], [True]), T, r"`matches\[0\]` is kept .* cv2.DMatch, got \(\)"),
    (partial(rc.select_matches, "ab", [True, True]), T, "`matches` must be a sequence, got str"),
    (partial(rc.select_matches, [(), ()], [0.5, 1.0]), T, "`inlier_mask` must be a FilterResult or a mask of bool"),
    (partial(rc.select_matches, FLAT[:2], np.ma.masked_array(MASK, [False, True])), T, "got dtype bool with masked entries"),
    # Single models, and all structures
    *((partial(find, SOME, SOME, method), T, r"`method` must be one of OpenCV's robust methods.*`threshold=`")
      for find in (find_homography, find_fundamental_matrix) for method in (3.0, "RANSAC", True)),
    *((partial(find, SOME, SOME, method), V, f"`method` must be one of OpenCV's robust methods.*got {method}; for a fit .* {theirs}$")
      for find, theirs in ((find_homography, "cv2.findHomography"), (find_fundamental_matrix, "cv2.findFundamentalMat"))
      for method in (0, cv2.FM_7POINT, cv2.FM_8POINT, 5, -1)),
    (partial(essential, CAMERA1, 0), V, "`method` must be one of OpenCV's robust methods.* call cv2.findEssentialMat$"),
    *((partial(find, SOME, SOME, cv2.RANSAC, 3.0, threshold=2.0), T, "`threshold` is given twice, .* `ransacReprojThreshold` 3.0")
      for find in (find_homography, find_fundamental_matrix)),
    *((partial(find_homography, **dict.fromkeys(names, SOME)), T, r"`points\d` must be given, or `(src|dst)Points`, .* and not both")
      for names in ((), ("points1",), ("srcPoints",), ("points1", "srcPoints"), ("points1", "srcPoints", "dstPoints"))),
    *((partial(find, SOME, SOME, cv2.UsacParams(), threshold=2.0), T, r"`threshold` is given twice, .* `params.threshold` 1\.5")
      for find in (find_homography, find_fundamental_matrix)),
    *((partial(find, SOME, SOME, **named), error, message)
      for find in (find_homography, find_fundamental_matrix)
      for named, error, message in (
          ({"confidence": 1.0}, V, "`confidence` must lie between 0 and 1, got 1.0"),
          ({"confidence": "high"}, T, "`confidence` must be a number, got 'high'"),
          ({"maxIters": 0}, V, "`maxIters` must be at least 1, got 0"),
          ({"maxIters": 1e5}, T, "`maxIters` must be an integer, got 100000.0"))),
    (partial(essential, CAMERA1, cv2.RANSAC, 0.0), V, "`prob` must lie between 0 and 1, got 0.0"),
    (partial(essential, CAMERA1, cv2.RANSAC, 0.9, 1.0, 0), V, "`maxIters` must be at least 1, got 0"),
    (partial(essential, focal="700"), T, "`focal` must be a number, got '700'"),
    (partial(essential, 0.0), V, "`focal` must be a finite number above 0, got 0"),
    (partial(essential, 700.0, 320.0), V, r"`pp` must have shape \(2,\), got \(\)"),
    (partial(essential, 700.0, (1.0, 2.0), 0.999), T, "`method` must be one of OpenCV's robust methods"),
    (partial(essential, CAMERA1, None, None, None, cameraMatrix2=None), T, "multiple values for argument 'cameraMatrix2'"),
    (partial(essential, cameraMatrix1=CAMERA1), T, "missing .* 'cameraMatrix2'"),
    (partial(essential, CAMERA1, focal=1.0), T, r"find_essential_matrix\(\) got an unexpected keyword argument 'focal'"),
    (partial(essential, focal=1.0, cameraMatrix=CAMERA1), T, r"find_essential_matrix\(\) got an unexpected keyword argument 'focal'"),
    (partial(essential, CAMERA1, cv2.RANSAC, 0.9, 1.0, threshold=1.0), T, "`threshold` is given twice"),
    (partial(essential, CAMERA1, 0.999), T, "`method` must be one of OpenCV's robust methods"),
    (partial(essential, CAMERA1, cv2.RANSAC, 0.9, 1.0, 10, None, None), T, "from 1 to 6 positional arguments but 7"),
    (partial(essential, CAMERA1, pixel=0.0), V, "`pixel` must be a finite number above 0, got 0"),
    (partial(essential, [1.0]), V, r"`cameraMatrix` is no camera: `matrix` must have shape \(3, 3\)"),
    (partial(find_essential_matrix, RAYS, RAYS, CAMERA1), V, r"`points1` must have shape \(n, 2\), got \(10, 3\)"),
    (partial(rc.find_structures, np.zeros(5), Lines()), V, r"`data` must have shape \(n, d\), got \(5,\)"),
    (partial(rc.find_structures, [["a", "b"]], Lines()), T, "`data` must be an array of real numbers"),
    (partial(rc.find_structures, np.zeros((60, 3)), Lines()), V, r"`family` \(line\) fails on points of 3 coordinates"),
    (partial(rc.find_structures, np.zeros((9, 2)), Homographies()), V, r"`family` \(homography\) fails on points of 2 coordinates"),
    (partial(rc.find_structures, np.zeros((9, 5)), Homographies()), V, r"`family` \(homography\) fails on points of 5 coordinates"),
    (partial(rc.find_structures, np.zeros((9, 2)), FundamentalMatrices()), V, r"\(fundamental\) fails on points of 2 .*got 2\Z"),
    (partial(rc.find_structures, np.zeros((0, 1)), Lines()), V, r"`family` \(line\) fails on points of 1 coordinates"),
    (partial(structures, Lines), T, "`family` must be a ModelFamily, such as .*, got the class Lines"),
    (partial(structures, "line"), T, "`family` must be a ModelFamily, .*, got 'line' without `name`"),
    (partial(structures, Homographies(sample_size=0)), V, "`family.sample_size` must be at least 1, got 0"),
    (partial(structures, Homographies(codimension=3)), V, r"`family.codimension` must be one of \[1, 2\], got 3"),
    (partial(structures, Lines(), threshold=0.0), V, "`threshold` must be a finite number above 0"),
    (partial(structures, Lines(), noise_scale=0.0), V, "`noise_scale` must be a finite number above 0"),
    # Residuals, hashes and forests
    *((partial(function, np.zeros((3, 2)), SOME, np.eye(3)), V, "`points1` and `points2` must have the same length, got 3 and 4")
      for function in (transfer_error, sampson_distance)),
    (partial(transfer_error, SOME, SOME, np.eye(2)), V, r"`homographies` must have shape \(3, 3\) or \(m, 3, 3\), got \(2, 2\)"),
    (partial(sampson_distance, SOME, SOME, [["a"]]), T, "`fundamental_matrices` must be an array"),
    (partial(ruzhash, [[1e300]]), V, r"`preferences` must lie in \[0, 1\], got values from 1e\+300"),
    (partial(ruzhash, csr_array(1j * np.ones((1, 2)))), V, "`preferences` must be a numeric array"),
    (partial(ruzhash, [[1], [1, 0]]), V, "`preferences` must have shape .* ragged"),
    (partial(hashes, n_hashes=0), V, "`n_hashes` must be at least 1, got 0"),
    (partial(hashes, n_hashes=1.5), T, r"`n_hashes` must be an integer, got 1\.5"),
    (partial(hashes, hashes=3), T, "hashes"),
    (partial(RuzHashForest, n_trees=0), V, "`n_trees` must be at least 1, got 0"),
    (partial(RuzHashForest, n_trees=10**30), V, "`n_trees` must be at most 2147483647"),
    (partial(RuzHashForest, subsample_size=0), V, "`subsample_size` must be at least 1, got 0"),
    (partial(RuzHashForest, branching_factor=1), V, "`branching_factor` must be at least 2, got 1"),
    (partial(RuzHashForest, branching_factor=2.0), T, r"`branching_factor` must be an integer, got 2\.0"),
    (partial(RuzHashForest, n_jobs=0), V, "`n_jobs` must be at least 1, got 0"),
    (partial(RuzHashForest, n_jobs=np.zeros(2)), T, "`n_jobs` must be an integer"),
    (partial(RuzHashForest, rng=1.5), T, r"`rng` must be .* got 1\.5"),
    (partial(RuzHashForest, n_tree=5), T, "n_tree"),
    (lambda: RuzHashForest().anomaly_scores(np.ones((2, 3))), RuntimeError, "call `fit` first"),
    (lambda: RuzHashForest(n_trees=2).fit(np.ones((4, 3))).path_lengths(np.ones((4, 2))), V, "must have 3 columns as in `fit`, got 2"),
    # The paper's forest, distances and preferences, and data
    (partial(VoronoiForest, metric="cosine"), V, r"`metric` must be one of 'tanimoto', .* got 'cosine'"),
    (partial(VoronoiForest, sink_credit=True), T, "sink_credit"),
    (partial(VoronoiForest, branching_factor=1), V, "`branching_factor` must be at least 2, got 1"),
    (lambda: VoronoiForest().anomaly_scores(np.ones((2, 3))), RuntimeError, "this VoronoiForest has no trees yet"),
    (lambda: VoronoiForest().fit(np.full((4, 3), 2.0)), V, r"must lie in \[0, 1\]"),
    (partial(precomputed.fit, np.ones((3, 2))), V, r"must be a square matrix of distances in `fit`, got \(3, 2\)"),
    (partial(precomputed.fit, -np.ones((3, 3))), V, r"must hold distances of shape \(n, n_training\)"),
    # Zeros that a sparse array leaves out would be distances too.
    (partial(precomputed.fit, csr_array(np.ones((9, 9)))), T, "`preferences` must be an array of real numbers"),
    *((partial(distance, rows), V, f"`preferences` must {message}")
      for distance in (paper.ruzicka_distance, paper.tanimoto_distance, paper.jaccard_distance)
      for rows, message in (
          ([[0.2, 1.5]], r"lie in \[0, 1\], got values from 0.2\d* to 1.5"),
          ([[0.0, -0.5]], r"lie in \[0, 1\], got values from -0.5"),
          ([[0.0, np.nan]], r"lie in \[0, 1\], got values from nan"),
          ([0.0, 1.0], r"be a numeric array of shape \(n, m\), got float64 \(2,\)"),
          ([["a"]], "be a numeric array"))),
    (partial(paper.ruzicka_distance, np.zeros((1, 3)), np.zeros((1, 2))), V, "as many columns, got 3 and 2"),
    (partial(embedded, sigma=0.0), V, "`sigma` must be a finite number above 0, got 0.0"),
    (partial(embedded, sigma="1"), T, "`sigma` must be a number, got '1'"),
    (partial(embedded, sigma=1.0, k=-1), V, "`k` must be a finite number above 0, got -1"),
    (partial(embedded, sigma=1.0, binray=True), T, "binray"),
    (partial(paper.embed_preferences, np.zeros(2), sigma=1.0), V, r"`residuals` must have shape \(n, m\), got \(2,\)"),
    (partial(paper.sample_models, [1.0, 2.0, 3.0], Lines(), n_models=1), V, r"`data` must have shape \(n, d\), got \(3,\)"),
    (partial(paper.paper_forest, "RHF-C"), V, r"`method` must be one of 'PIF', .* got 'RHF-C'"),
    (partial(load_pair, "table"), V, "`name` must be one of 'facade', 'desk', 'rigid', 'plane', got 'table'"),
    (partial(fetch_adelaidermf, "barsmith"), V, r"one of the 38 .* got 'barsmith'; did you mean 'barrsmith'"),
    (partial(fetch_adelaidermf, "zzz"), V, "ADELAIDERMF_NAMES lists them all"),
    # Many pairs, before any is read
    (partial(filter_pairs, None), T, r"`pairs` must be an iterable of \(key, points1, points2\), got NoneType"),
    *((partial(filter_pairs, (1 / 0 for _ in range(1)), **options), error, message) for options, error, message in (
        ({"treshold": 3.0}, T, "filter_pairs got an unexpected option 'treshold'; there are model, threshold"),
        ({"points1": 3.0}, T, "unexpected option 'points1'"),
        ({"threshold": -3.0}, V, "`threshold` must be a finite number above 0, got -3"),
        ({"model": "affine"}, V, "`model` must be one of"),
        ({"keep_stationary": "False"}, T, "`keep_stationary` must be True or False, got 'False'"),
        ({"rng": None}, T, "`rng` must be an integer, got None"),
        ({"rng": np.random.default_rng()}, T, "`rng` must be an integer, got Generator"),
        ({"rng": -1}, V, "`rng` must be at least 0, got -1"),
        ({"batch_size": 0}, V, "`batch_size` must be at least 1, got 0"),
        ({"n_jobs": 0}, V, "`n_jobs` must be at least 1, got 0"),
        ({"n_jobs": -1.0}, T, "`n_jobs` must be an integer, got -1.0"))),
    *((lambda pair=pair: list(filter_pairs([pair])), T, message) for pair, message in (
        (("a", [[0, 0]]), r"`pairs` must hold \(key, points1, points2\) or .* got 2 entries"),
        (7, "`pairs` must hold .* got int"),
        ((0.5, *problem(0)), "a key must be an int, str, bytes, path or a tuple of these, got 0.5"),
        ((["a", "b"], *problem(0)), r"a key must be .* got \['a', 'b'\]"),
        (("a", *problem(0), 3.0), "options of the pair 'a', its fourth entry, must be a mapping, got float"),
        (("a", *problem(0), {"pixels": 2}), "the pair 'a' got an unexpected option 'pixels'"))),
    # Families
    *((partial(call, np.ones((60, 4)), *given, np.ones((40, width))), V, rf"models must have shape \(m, 9\), got \(40, {width}\)")
      for family in (Homographies(), FundamentalMatrices()) for width in (0, 1, 8, 18)
      for call, given in ((family.squared_residuals, ()), (family.fit, [np.ones((40, 60))]), (family.step, [np.ones((40, 60))]))),
    *((partial(Homographies().fit, np.ones((60, 4)), np.ones(shape), np.ones((40, 9))), V, "weights must have shape")
      for shape in ((40, 1), (40, 59), (60, 40), (59,))),
    # The detector of scikit-learn
    *((partial(PreferenceIsolationForest(**options).fit, rows), error, message) for options, rows, error, message in (
        ({"family": "lines"}, ROWS, V, "`family` must be one of 'points', a ModelFamily, got 'lines'"),
        ({"family": Lines}, ROWS, T, "`family` must be a ModelFamily, .*, got the class Lines"),
        ({"contamination": 0.6}, ROWS, V, r"`contamination` must lie between 0 and 0.5, got 0.6"),
        ({"contamination": "some"}, ROWS, V, r"`contamination` must be one of 'auto', a number in \(0, 0.5\], got 'some'"),
        ({"noise_scale": -1.0}, ROWS, V, "`noise_scale` must be a finite number above 0, got -1.0"),
        ({"n_models": 0}, ROWS, V, "`n_models` must be at least 1, got 0"),
        ({"n_estimators": 0}, ROWS, V, "`n_estimators` must be at least 1, got 0"),
        ({"max_samples": 0}, ROWS, V, "`max_samples` must be at least 1, got 0"),
        ({"max_samples": 0.5}, ROWS, T, "`max_samples` must be an integer, got 0.5"),
        ({"max_samples": "all"}, ROWS, V, "`max_samples` must be one of 'auto', an integer, got 'all'"),
        ({"family": Circles()}, np.eye(2), V, r"`X` must have at least 3 rows, .* got 2"),
        ({"family": Lines()}, np.ones((9, 2)), V, "`X` must have samples that make models of the family, got 1000 that make none"),
        ({"family": Lines()}, ROWS[:, :1], V, r"`family` \(line\) fails on points of 1 coordinates, as `X` has"),
        ({"family": Circles()}, np.eye(3), V, r"`family` \(circle\) fails on points of 3 coordinates, as `X` has"),
        ({"family": Circles()}, ROWS * 1e155, V, r"`X` must have coordinates below 1e\+60, got 2.9e\+155"))),
    # Pictures and pages
    (partial(crossing, MASK, show="all"), V, "`show` must be one of 'kept', 'flagged', 'both', 'apart', got 'all'"),
    (partial(crossing, MASK, max_lines=-1), V, "`max_lines` must be at least 0, got -1"),
    (partial(crossing, MASK, max_lines=2.5), T, r"`max_lines` must be an integer, got 2\.5"),
    (partial(crossing, MASK, max_width=239), V, "`max_width` must be at least 240, got 239"),
    (partial(crossing, MASK, max_width=800.0), T, r"`max_width` must be an integer, got 800\.0"),
    (partial(crossing, [True]), V, r"one entry per match, shape \(2,\), got \(1,\)"),
    (partial(crossing, np.ones((1, 2), bool)), V, r"one entry per match, shape \(2,\), got \(1, 2\)"),
    (partial(crossing, [0.2, 0.9]), T, "`result_or_mask` must be a FilterResult or a mask of .* dtype float64"),
    (partial(crossing, None), T, "got NoneType"),
    (partial(rc.draw_matches, IMAGE, KP2, IMAGE, KP2[:1], None, MASK), V, "without `matches`, .* got 2 and 1"),
    (partial(scored, [0.5]), V, r"`result_or_scores` must have one entry per match, shape \(2,\), got \(1,\)"),
    (partial(scored, MASK), T, "`result_or_scores` must be a FilterResult or scores of float, got dtype bool"),
    (partial(scored, None), T, "got NoneType"),
    (partial(surfaces, None), T, "must be a FilterResult, got NoneType"),
    (partial(surfaces, np.array(MASK)), T, "must be .* got ndarray"),
    (lambda: surfaces(filter_points(KP2[:1], KP2[:1])), V, "`result` must have one entry per match, 2, got 1"),
    *((lambda name=name, image=image: rc.draw_scores(**{"img1": IMAGE, "kp1": KP2, "img2": IMAGE, "kp2": KP2, "matches": PAIRS,
                                                       "result_or_scores": [0.4, 0.5], name: image}), error, f"`{name}` {message}")
      for name in ("img1", "img2")
      for image, error, message in (
          (None, T, "must be an image, got None, which cv2.imread returns"),
          ("a.png", T, "must be an array of uint8, got str; read a file by cv2.imread"),
          ((row for row in ()), T, "must be an array of uint8, got generator"),
          (np.zeros((9, 9)), T, "must be an array of uint8, got dtype float64"),
          (np.zeros(9, np.uint8), V, r"must have shape \(h, w\), .* got \(9,\)"),
          (np.zeros((9, 9, 2), np.uint8), V, r"must have shape .* got \(9, 9, 2\)"),
          (np.zeros((0, 9, 3), np.uint8), V, r"must .* not empty, got \(0, 9, 3\)"))),
    (lambda: page(KP2, points(), None), T, "`img2` must be an image, got None"),
    (lambda: page(KP2, points()), V, "`result` must have one entry per match, 2, got 4"),
    (lambda: page(KP2, MASK), T, "`result` must be a FilterResult, got list"),
    (partial(rc.write_html, None, IMAGE, KP2, IMAGE, KP2, None, MASK), T, "`path` must be the path of a file, got NoneType"),
    (lambda: page(SOME, points(), max_size=8), V, "`max_size` must be at least 32, got 8"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), TABLE)
def test_a_bad_argument_is_named(call: Any, error: Any, message: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call()
    assert list(tmp_path.iterdir()) == []


def test_every_public_function_is_in_the_table() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    public = [name for name in dir(rc) if callable(getattr(rc, name)) and not name.startswith("_")]
    records = {"CameraPose", "Correspondences", "FilterResult", "FoundStructures", "Motion", "Plane"}
    assert [name for name in public if name not in records and not re.search(rf"\b{name}\b[(,.]", text)] == []
