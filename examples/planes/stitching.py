"""
OpenCV's stitcher with other inliers
====================================

Between the matcher and the estimator of `cv2.detail` lies a list of `MatchesInfo`. Replace the inliers in it, and everything
after it works on yours. OpenCV 5 lets Python set them.
"""

import sys

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import data_folder

if cv2.__version__ < "5":
    sys.exit(f"OpenCV 5 is needed, this is {cv2.__version__}")
# Four pictures of a terrace, from one place.
images = [np.asarray(cv2.imread(str(data_folder() / f"panorama{number}.jpg"))) for number in (1, 2, 3, 4)]
SIZE = images[0].shape[1], images[0].shape[0]
features = [cv2.detail.computeImageFeatures2(cv2.SIFT.create(), image) for image in images]
matches = cv2.detail.BestOf2NearestMatcher(False, 0.5).apply2(features)

# %%
# OpenCV wants one homography of coordinates from the pictures' centres, and a confidence made of the counts.
for info in (info for info in matches if info.matches):
    points1 = np.array([features[info.src_img_idx].keypoints[match.queryIdx].pt for match in info.matches])
    points2 = np.array([features[info.dst_img_idx].keypoints[match.trainIdx].pt for match in info.matches])
    result = filter_points(points1 - np.divide(SIZE, 2), points2 - np.divide(SIZE, 2), model="homography")
    inliers, before = result.motion_labels == 0, info.num_inliers
    info.inliers_mask, info.num_inliers = inliers.astype(np.uint8), int(inliers.sum())
    info.confidence = info.num_inliers / (8 + 0.3 * len(inliers))
    info.H = result.motions[0].matrix if result.motions else np.zeros((0, 0))
    print(f"{info.src_img_idx}-{info.dst_img_idx}: {len(inliers)} matches, inliers: {before}, now {inliers.sum()}")

# %%
# From here on it is OpenCV's own pipeline: cameras, bundle adjustment, a cylinder, blending.
_, found = cv2.detail.HomographyBasedEstimator().apply(features, matches, [])
for camera in found:
    camera.R = camera.R.astype(np.float32)
_, found = cv2.detail.BundleAdjusterRay().apply(features, matches, found)
warper = cv2.PyRotationWarper("cylindrical", float(np.median([camera.focal for camera in found])))
blender, white = cv2.detail.MultiBandBlender(), np.full(SIZE[::-1], 255, np.uint8)
views = [(camera.K().astype(np.float32), camera.R) for camera in found]
boxes = [warper.warpRoi(SIZE, *view) for view in views]
blender.prepare(cv2.detail.resultRoi([box[:2] for box in boxes], [box[2:] for box in boxes]))
for image, view in zip(images, views, strict=True):
    corner, warped = warper.warp(image, *view, cv2.INTER_LINEAR, cv2.BORDER_CONSTANT)
    blender.feed(warped.astype(np.int16), warper.warp(white, *view, cv2.INTER_NEAREST, cv2.BORDER_CONSTANT)[1], corner)
panorama = blender.blend(np.zeros(0), np.zeros(0))[0]
plt.figure(figsize=(10, 4), layout="constrained")
plt.imshow(np.clip(panorama, 0, 255).astype(np.uint8)[:, :, ::-1])
plt.show()
