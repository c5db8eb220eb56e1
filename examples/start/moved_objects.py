"""
Objects that moved
==================

Between two pictures of a desk the camera moved, and so did the books and boxes. A fundamental matrix explains one motion;
`ruzhash_cv.filter_points` keeps every motion, and says which match belongs to which.
"""

# sphinx_gallery_thumbnail_path = 'images/desk_movers.jpg'

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import draw_matches, filter_points
from ruzhash_cv.datasets import load_pair

pair = load_pair("desk")  # two rendered pictures that ship with the package, with their exact truth
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
rows = cv2.BFMatcher().knnMatch(des1, des2, k=2)
matches = [best for best, second in rows if best.distance < 0.8 * second.distance]
points1 = np.array([kp1[match.queryIdx].pt for match in matches])  # (n, 2), pixels
points2 = np.array([kp2[match.trainIdx].pt for match in matches])

result = filter_points(points1, points2)
picture = draw_matches(pair.img1, kp1, pair.img2, kp2, matches, result)
plt.figure(figsize=(10, 4.2), layout="constrained")
plt.imshow(picture[:, :, ::-1])  # OpenCV's pictures are BGR, matplotlib's RGB
plt.title("ruzhash_cv", loc="left")
plt.axis("off")

# %%
# OpenCV's MAGSAC keeps the motion of the desk and flags what moved on its own.

mask = cv2.findFundamentalMat(points1, points2, cv2.USAC_MAGSAC, 3.0)[1].ravel() > 0
picture = draw_matches(pair.img1, kp1, pair.img2, kp2, matches, mask)
plt.figure(figsize=(10, 4.2), layout="constrained")
plt.imshow(picture[:, :, ::-1])
plt.title("cv2.USAC_MAGSAC, one fundamental matrix", loc="left")
plt.axis("off")

# %%
# Both against the truth, which the renderer knows:

true = pair.labels(points1, points2) >= 0
for name, keep in (("ruzhash_cv", result.inlier_mask), ("cv2.USAC_MAGSAC", mask)):
    print(f"{name:15} kept {keep.sum()}, among them {(keep & true).sum()} of the {true.sum()} true matches")

plt.show()
