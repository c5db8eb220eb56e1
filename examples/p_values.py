"""
p-values, and a rate of false acceptance
========================================

The p-value of a match says how often a mismatch would look as good. The package learns it from decoys, made-up mismatches of
the same two pictures. ``false_acceptance_rate`` turns it into a mask: the share of the mismatches to accept.
"""

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import load_pair

pair = load_pair("facade")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
best = cv2.BFMatcher().match(des1, des2)  # no ratio test: many mismatches to look at
points1 = np.array([kp1[match.queryIdx].pt for match in best])
points2 = np.array([kp2[match.trainIdx].pt for match in best])
true = pair.labels(points1, points2) >= 0  # within 3 px of the truth
wrong = pair.labels(points1, points2, tolerance=10.0) < 0
result = filter_points(points1, points2)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].hist([result.p_values[true], result.p_values[wrong]], bins=20, stacked=True, label=["true", "mismatch"])
axes[0].set(xlabel="p-value", ylabel="matches")
axes[0].legend()
axes[1].hist([result.anomaly_scores[true], result.anomaly_scores[wrong]], bins=40, stacked=True)
axes[1].set(xlabel="anomaly score")
plt.show()

# %%
# Mismatches have p-values spread over (0, 1], true matches gather at zero. So a mask by p-value accepts about the share asked for.
# A low rate may keep few true matches or none. The default mask does not use p-values:
# it keeps what lies within the tolerance of a structure.

print(f"{'mask':12} kept  true  share of mismatches accepted")
for rate in (0.01, 0.05, 0.1, None):
    keep = filter_points(points1, points2, false_acceptance_rate=rate).inlier_mask
    name = "default" if rate is None else f"rate {rate:.0%}"
    print(f"{name:12} {keep.sum():4}  {(keep & true).sum():4}  {keep[wrong].mean():.3f}")

# %%
# On real photographs a rate is kept on average over many pairs, not on each: see the calibration in :doc:`/benchmarks`.
