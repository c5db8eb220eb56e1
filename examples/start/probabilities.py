"""
Probabilities, and how many may be wrong
========================================

``inlier_probabilities`` says how probable it is that a match is true. The default mask keeps what is more probable than not.
``false_discovery_rate`` chooses another mask: the most probable matches, of which at most such a share is expected to be wrong.
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
probabilities = filter_points(points1, points2).inlier_probabilities

# %%
# Most matches are told for sure, so the axis of counts is logarithmic. Those between are few, and about as many of them are true as
# their probabilities say.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].hist([probabilities[true], probabilities[wrong]], bins=20, stacked=True, label=["true", "mismatch"], log=True)
axes[0].set(xlabel="probability", ylabel="matches")
axes[0].legend()
judged, ranked = true | wrong, np.argsort(-probabilities, kind="stable")
ranked = ranked[judged[ranked]]
n_kept = np.arange(1, len(ranked) + 1)
axes[1].plot(n_kept, np.cumsum(1.0 - probabilities[ranked]) / n_kept, label="expected")
axes[1].plot(n_kept, np.cumsum(wrong[ranked]) / n_kept, label="measured")
axes[1].set(xlabel="most probable matches kept", ylabel="share of wrong ones", xlim=(0, 2.0 * true.sum()))
axes[1].legend()
plt.show()

# %%
# A low rate leaves out matches that are probably true but not surely. A high rate adds what is less probable than not.

print(f"{'mask':12} kept  true  share of wrong ones")
for rate in (0.001, 0.01, 0.05, 0.1, None):
    keep = filter_points(points1, points2, false_discovery_rate=rate).inlier_mask & judged
    name = "default" if rate is None else f"rate {rate:.1%}"
    print(f"{name:12} {keep.sum():4}  {(keep & true).sum():4}  {(keep & wrong).sum() / max(keep.sum(), 1):.3f}")

# %%
# How well the shares agree on many pairs is measured in the calibration of :doc:`/benchmarks`.
