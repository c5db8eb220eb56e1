"""
From photos to a COLMAP reconstruction
======================================

COLMAP extracts and matches without verification, `ruzhash_cv.pipelines.colmap.verify` filters the matches in the
database, and COLMAP maps. Needs the extra ``colmap``.
``python examples/pipelines/photos_to_colmap.py FOLDER`` takes a folder; without it, five bundled photos.
"""

import sys
import tempfile
from pathlib import Path

import cv2
import matplotlib.pyplot as plt
import numpy as np

try:
    import pycolmap
except ImportError:
    sys.exit('pycolmap is missing: pip install "ruzhash-cv[colmap]"')
from ruzhash_cv.datasets import data_folder
from ruzhash_cv.pipelines.colmap import verify

folder = tempfile.TemporaryDirectory()
work, photos, database = (Path(folder.name) / name for name in ("", "photos", "database.db"))
if len(sys.argv) > 1:
    photos = Path(sys.argv[1])
else:
    photos.mkdir()
    for picture in data_folder().glob("walk*.jpg"):
        cv2.imwrite(str(photos / f"{picture.stem}.png"), np.asarray(cv2.imread(str(picture))))

# %%
# Keypoints and raw matches, then the filter in place of COLMAP's verification, then the map.
pycolmap.logging.minloglevel = 2
pycolmap.extract_features(database, photos, camera_mode=pycolmap.CameraMode.SINGLE)
pycolmap.match_exhaustive(database, matching_options=pycolmap.FeatureMatchingOptions(skip_geometric_verification=True))
done = verify(database)
print(f"pairs kept: {done.kept} of {done.pairs}, matches kept: {done.inliers} of {done.matches}")
model = max(pycolmap.incremental_mapping(database, photos, work).values(), key=lambda model: model.num_reg_images())
print(model.summary())

# %%
# What three photos or more see, and the cameras, from above.
seen = [point for point in model.points3D.values() if point.track.length() > 2]
points = np.array([point.xyz for point in seen])
centres = np.array([image.projection_center() for image in model.images.values()])
plt.figure(figsize=(7, 6), layout="constrained")
plt.scatter(points[:, 0], points[:, 2], 3, np.array([point.color for point in seen]) / 255)
plt.plot(centres[:, 0], centres[:, 2], "k^", label="cameras")
plt.axis("equal")
plt.legend()
plt.show()
