"""After a warm-up a new process compiles nothing, whatever of the public functions it calls.

One slow test: a warm-up into an empty cache compiles every kernel of the package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WARM_UP = "from ruzhash_cv.warmup import warmup; print(warmup())"
#: What the demo, the examples and the README call.
CALLS = """
import cv2
import numpy as np
import ruzhash_cv as rc
from ruzhash_cv import paper
from ruzhash_cv.datasets import load_pair, make_shape

pair, rng = load_pair("desk"), np.random.default_rng(0)
points1 = rng.uniform(0, 600, (400, 2))
depths = np.column_stack([rng.uniform(5, 80, 400), np.zeros(400)])
for points2 in (points1 + np.where(points1[:, :1] < 300, [30.0, 5.0], [-40.0, 60.0]), points1 + depths):
    points2[:80] = rng.uniform(0, 600, (80, 2))
    for options in ({}, {"model": "homography"}, {"model": "fundamental"}, {"threshold": 3.0}, {"pixel": 2.0},
                    {"false_discovery_rate": 0.05}, {}):
        result = rc.filter_points(points1, points2, **options)
    rc.find_homography(points1, points2), rc.find_fundamental_matrix(points1, points2, threshold=3.0)
camera = np.diag([800.0, 800.0, 1.0])
result.motions, result.plane_motion(0), result.camera_pose(camera, camera)
many = rng.uniform(0, 900, (2500, 2))
rc.filter_points(many, many + rng.normal(0, 1, many.shape))
rc.filter_points(many, rng.uniform(0, 900, many.shape))
rc.filter_points(many[:5], many[:5]), rc.filter_points(np.zeros((50, 2)), np.zeros((50, 2)))

matches = np.stack([np.arange(400)] * 2, axis=1)
drawn = pair.img1, points1, pair.img2, points2, matches
rc.draw_matches(*drawn, result), rc.draw_scores(*drawn, result), rc.draw_structures(*drawn, result)
rc.filter_matches(points1, points2, [cv2.DMatch(i, i, 0.1) for i in range(400)])

rows = rng.random((300, 20)) * (rng.random((300, 20)) < 0.3)
rc.ruzhash(rows, n_hashes=5)
forest = rc.RuzHashForest(n_trees=20, sink_credit=True)
forest.fit_anomaly_scores(rows, rows[:7]), forest.fit(rows).path_lengths(rows)
paper.VoronoiForest(n_trees=5).fit_anomaly_scores(rows, rows[:7])
paper.VoronoiForest(metric="precomputed", n_trees=5).fit_anomaly_scores(paper.ruzicka_distance(rows))
rc.sampson_distance(points1, points2, np.ones((3, 3))), rc.transfer_error(points1, points2, np.eye(3))
for method in paper.METHODS:
    paper.paper_scores(paper.pose(make_shape("stair4")), method)
"""
COUNTED = f"""
exec({CALLS!r})
from ruzhash_cv._kernels import KERNELS, n_compiled
print(n_compiled(), [kernel for kernel in KERNELS if len(kernel.signatures) > 1])
"""


def run(code: str, cache: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert re.sub("^ruzhash_cv: compiling kernels.*\n", "", done.stderr) == ""
    return done.stdout.strip()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that a warm-up filled."""
    path = tmp_path_factory.mktemp("cache")
    assert int(run(WARM_UP, path)) > 10
    return path


@pytest.mark.timeout(600)
def test_after_a_warmup_nothing_is_compiled_and_nothing_is_added_to_the_cache(cache: Path) -> None:
    """And every kernel that Python calls is always called with the same types."""
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert before
    assert run(COUNTED, cache) == "0 []"
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == before
    assert run(WARM_UP, cache) == "0"


@pytest.mark.timeout(600)
def test_the_copy_of_a_filled_cache_is_used(cache: Path, tmp_path: Path) -> None:
    """As docs/install.md says for images that can only be read."""
    shutil.copytree(cache, tmp_path / "copy", copy_function=shutil.copyfile)
    assert run(WARM_UP, tmp_path / "copy") == "0"


def test_the_import_leaves_out_what_few_calls_need() -> None:
    code = "import sys, ruzhash_cv; print([name for name in ('scipy.optimize', 'matplotlib', 'pooch', 'bokeh') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
