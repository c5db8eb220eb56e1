"""
Matches of LightGlue and other networks
=======================================

LightGlue answers with arrays: ``keypoints`` of each picture, ``matches`` as pairs of indices, ``scores``. They go in as they
are, without KeyPoint and DMatch. To run without a network, SIFT fills the same arrays here.
"""

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import draw_matches, filter_matches
from ruzhash_cv.datasets import load_pair

pair = load_pair("facade")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
mutual = cv2.BFMatcher(crossCheck=True).match(des1, des2)

# What `rbd(matcher(...))` of LightGlue holds, with SIFT in place of SuperPoint.
feats0 = {"keypoints": cv2.KeyPoint.convert(kp1)}  # (m, 2) float32, pixels
feats1 = {"keypoints": cv2.KeyPoint.convert(kp2)}
matches01 = {
    "matches": np.array([(match.queryIdx, match.trainIdx) for match in mutual]),  # (k, 2) indices
    "scores": np.array([1 / (1 + match.distance / 300) for match in mutual]),  # (k,)
}

# %%
# One call. The mask has one entry per match, and indexes all that comes with them.

mask = filter_matches(feats0["keypoints"], feats1["keypoints"], matches01["matches"])
matches, scores = matches01["matches"][mask], matches01["scores"][mask]
print(f"{mask.sum()} of {len(mask)} matches kept")

# %%
# The matcher's score alone does not tell a mismatch: those of kept and flagged matches overlap.

picture = draw_matches(pair.img1, feats0["keypoints"], pair.img2, feats1["keypoints"], matches01["matches"], mask)
figure, axes = plt.subplots(2, 1, figsize=(10, 7), height_ratios=(2.2, 1), layout="constrained")
axes[0].imshow(picture[:, :, ::-1])
axes[0].axis("off")
axes[1].hist([matches01["scores"][mask], matches01["scores"][~mask]], bins=40, label=["kept", "flagged"])
axes[1].set(xlabel="score of the matcher", ylabel="matches")
axes[1].legend()
plt.show()
