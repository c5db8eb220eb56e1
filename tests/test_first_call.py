"""What a process imports for its first calls, and the two builds of the kernels."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ruzhash_cv
from ruzhash_cv.core import kernels

CALLS = """
import sys
before = set(sys.modules)
import numpy as np, ruzhash_cv as rc
import ruzhash_cv.core.kernels
{first}
rng, camera = np.random.default_rng(0), np.array([[800.0, 0, 400], [0, 800, 300], [0, 0, 1]])
points = rng.uniform(0, 800, (300, 3))
points1, points2 = points[:, :2], points[:, :2] + np.column_stack([points[:, 2] / 20, rng.normal(0, 1, 300)])
points2[:60] = rng.uniform(0, 800, (60, 2))
result = rc.filter_points(points1, points2, cameras=(camera, camera))
found = [rc.find_homography(points1, points2), rc.find_fundamental_matrix(points1, points2)]
found += [rc.find_essential_matrix(points1, points2, camera)]
{last}
"""
IMPORTED = """
pose = result.camera_pose()
names = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(name for name in names if not name.startswith(("_", "cython"))))
"""
RESULTS = """
for array in (result.inlier_mask, result.inlier_probabilities, result.anomaly_scores, *(each for pair in found for each in pair)):
    print(np.asarray(array).tobytes().hex())
"""
PLAIN = "ruzhash_cv.core.kernels.__path__[:] = [path for path in ruzhash_cv.core.kernels.__path__ if not path.endswith('avx2')]"


def output_of(first: str, last: str) -> str:
    """Return what a new process prints of the calls."""
    code = CALLS.replace("{first}", first.replace("ruzhash_cv", "rc")).replace("{last}", last)
    environment = {**os.environ, "PYTHONPATH": str(Path(ruzhash_cv.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_first_calls_import_nothing_but_numpy_and_opencv() -> None:
    assert output_of("", IMPORTED).strip() == "['cv2', 'numpy', 'ruzhash_cv']"


@pytest.mark.skipif(len(kernels.__path__) == 1, reason="no kernels for AVX2, or no such processor")
def test_both_builds_give_the_same_bits() -> None:
    assert output_of("", RESULTS) == output_of(PLAIN, RESULTS)
