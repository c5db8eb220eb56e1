"""
Known cameras
=============

Two of the photos of a store room that ship with the package, by a camera of known focal length. With cameras the filter looks for
essential matrices; the pose of the second camera and the points in space come with it.
"""

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import Camera, filter_points
from ruzhash_cv.datasets import data_folder

photos = [np.asarray(cv2.imread(str(data_folder() / f"walk{number}.jpg"))) for number in (2, 4)]
camera = Camera.from_focal_length(400.0, (480, 360))  # or a matrix, (matrix, distortion), a fisheye, a pycolmap.Camera
sift = cv2.SIFT.create()
(kp1, des1), (kp2, des2) = (sift.detectAndCompute(photo, None) for photo in photos)
matches = cv2.BFMatcher().match(des1, des2)
result = filter_points(kp1, kp2, matches, cameras=(camera, camera))
pose = result.camera_pose()
print(result)
print(f"the camera moved: {pose.has_baseline}; rays of a point are {pose.median_angle:.1f} degrees apart in the median")
print(
    f"rotation by {np.degrees(np.linalg.norm(cv2.Rodrigues(pose.rotation)[0])):.1f} degrees, t = {pose.translation.round(2)}"
)

# %%
# The points in space from above, in baselines, and both cameras.
seen = pose.points3d[pose.inliers]
centre = -pose.rotation.T @ pose.translation
plt.figure(figsize=(7, 6), layout="constrained")
columns, rows = np.array([kp1[match.queryIdx].pt for match in matches])[pose.inliers].astype(int).T
colours = photos[1][rows, columns, ::-1]
plt.scatter(seen[:, 0], seen[:, 2], 6, colours / 255)
plt.plot([0.0, centre[0]], [0.0, centre[2]], "k^", label="cameras")
plt.axis("equal")
plt.xlabel("x (baselines)")
plt.ylabel("z (baselines)")
plt.legend()
plt.show()
