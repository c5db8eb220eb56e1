"""
A fisheye and a 360 degree image
================================

Points of a room, drawn as a fisheye of 220 degrees and a 360 degree camera see them, with as many mismatches. No fundamental matrix
relates these images. Cameras turn their pixels into rays, and an essential matrix relates the rays, also those behind a camera.
"""

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import Camera, filter_points

rng = np.random.default_rng(0)
points = rng.uniform(-1.0, 1.0, (1500, 3))
points[np.arange(1500), rng.integers(3, size=1500)] = rng.choice([-1.0, 1.0], 1500)  # on walls, floor and ceiling
points *= [4.0, 1.5, 5.0]
turn, move = cv2.Rodrigues(np.array([0.1, 0.6, 0.0]))[0], np.array([1.0, 0.1, 0.4])

fisheye = Camera([[320.0, 0.0, 640.0], [0.0, 320.0, 640.0], [0.0, 0.0, 1.0]], [0.02, -0.005, 0.0, 0.0], fisheye=True)
globe = Camera.equirectangular(2048)
points1, points2 = fisheye.pixels(points), globe.pixels(points @ turn.T + move)
seen = np.linalg.norm(points1 - 640.0, axis=1) < 620.0
points1, points2 = (each[seen] + rng.normal(0, 0.5, (seen.sum(), 2)) for each in (points1, points2))
n = len(points1)
points1, points2 = np.vstack([points1, points1]), np.vstack([points2, rng.permutation(points2)])

# For the globe, rays (n, 3) in place of pixels would do as well.
result = filter_points(points1, points2, cameras=(fisheye, globe))
pose = result.camera_pose()
print(
    f"kept: {result.inlier_mask[:n].mean():.1%} of the true matches, {result.inlier_mask[n:].mean():.1%} of the mismatches"
)
print(f"rotation is {np.degrees(np.linalg.norm(cv2.Rodrigues(pose.rotation @ turn.T)[0])):.2f} degrees off")
print(f"direction is {np.degrees(np.arccos(pose.translation @ move / np.linalg.norm(move))):.2f} degrees off")

# %%
# Kept matches in both images, each in one colour.
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(1, 2))
for axis, places, title in zip(axes, (points1, points2), ("fisheye", "360 degrees"), strict=True):
    axis.scatter(*places[result.inlier_mask].T, 3, points1[result.inlier_mask, 0], cmap="turbo")
    axis.set(title=title, aspect="equal", xlabel="x (pixels)", ylabel="y (pixels)")
    axis.invert_yaxis()
plt.show()
