"""
The method, step by step
========================

What `ruzhash_cv.filter_points` does, with the parts of the package in turn and none of its refinements: models from small samples,
preferences of matches for models, a forest that isolates what agrees with nothing, and decoys to compare with.
``python examples/start/step_by_step.py PICTURE`` saves the last figure.
"""

import sys

import cv2
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import load_pair
from ruzhash_cv.models import Homographies
from ruzhash_cv.paper import RuzHashForest, family_preferences

pair = load_pair("desk")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
rows = cv2.BFMatcher().knnMatch(des1, des2, k=2)
matches = [best for best, second in rows if best.distance < 0.8 * second.distance]
points1 = np.array([kp1[match.queryIdx].pt for match in matches])
points2 = np.array([kp2[match.trainIdx].pt for match in matches])

# %%
# **Models.** Four matches make a homography. They are drawn from neighbourhoods, where true matches have true neighbours. The solver
# expects coordinates near the unit square.

rng, unit = np.random.default_rng(0), 500.0  # pixels
pairs = np.hstack([points1, points2]) / unit
neighbours = np.asarray(cKDTree(pairs).query(pairs, k=20)[1])
seeds = rng.integers(len(pairs), size=1000)
samples = rng.permuted(neighbours[seeds], axis=1)[:, :4]
models, owner = Homographies().solve(pairs[samples])
makers = samples[owner]

# %%
# **Preferences.** How well does each match agree with each model? A match has no preference for a model that it made itself. Decoys,
# the first point of one match with the second point of another, agree by chance alone.

false_pairs = np.hstack([pairs[:, :2], rng.permutation(pairs[:, 2:])])
preferences, decoys = (
    family_preferences(data, Homographies(), models, sigma=3.0 / unit).toarray() for data in (pairs, false_pairs)
)
preferences[makers, np.arange(len(models))[:, None]] = 0.0

# %%
# **Scores.** Trees split the rows by a hash of their preferences. A row like no other is alone after few splits.

scores, decoy_scores = RuzHashForest().fit_anomaly_scores(preferences, decoys)

# %%
# **Structures.** The whole method chooses structures from the models, samples anew where matches look good and none holds them, and
# keeps what lies near a structure.

result = filter_points(points1, points2)

figure, axes = plt.subplots(2, 2, figsize=(9, 7.2), layout="constrained")
for axis in (axes[0, 0], axes[1, 1]):
    axis.imshow(pair.img1[:, :, ::-1], alpha=0.45)
    axis.axis("off")
axes[0, 0].plot(*np.stack([points1, points2], axis=2).reshape(-1, 2, 2).transpose(1, 2, 0), color="0.2", lw=0.4)
axes[0, 0].set_title("1  matches: where each point went", loc="left")
labels = result.motion_labels
order = np.lexsort([-result.anomaly_scores, labels])[::-1]
columns = np.argsort(labels[makers].max(axis=1))[::-1]
axes[0, 1].imshow(preferences[order][:, columns], aspect="auto", cmap="Greys", interpolation="nearest")
axes[0, 1].set_title("2  which models does a match agree with?", loc="left")
axes[0, 1].set(xlabel="models", ylabel="matches", xticks=[], yticks=[])
axes[1, 0].hist([scores, decoy_scores], bins=40, label=["matches", "decoys"], color=["#1b6ca8", "#e3a72f"])
axes[1, 0].set_title("3  anomaly scores: mismatches look like decoys", loc="left")
axes[1, 0].legend()
for motion in result.motions:
    axes[1, 1].plot(*points1[motion.mask].T, ".", ms=5)
axes[1, 1].plot(*points1[~result.inlier_mask].T, "x", ms=3, color="0.4")
axes[1, 1].set_title("4  motions in colours, mismatches as crosses", loc="left")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=100)
plt.show()
