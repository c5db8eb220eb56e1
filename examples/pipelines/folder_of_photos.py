"""
A folder of photographs, for COLMAP or hloc
===========================================

OpenCV finds keypoints in each photo and matches all pairs. `verify` then filters the matches in a COLMAP database; with ``--hloc``,
`filter_matches` filters them in hloc's files. Needs the extra ``colmap`` or ``hloc``.
``python examples/pipelines/folder_of_photos.py PHOTOS`` takes a folder; without it, four bundled photos.
"""

# sphinx_gallery_thumbnail_path = '../data/walk1.jpg'

import itertools
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

from ruzhash_cv.datasets import load_pair

output, arguments = Path(tempfile.mkdtemp()), [word for word in sys.argv[1:] if word != "--hloc"]
photos = Path(arguments[0]) if arguments else output / "photos"
photos.mkdir(exist_ok=True)
for name in () if arguments else ("desk", "plane"):
    for number, image in enumerate((load_pair(name).img1, load_pair(name).img2), start=1):
        cv2.imwrite(str(photos / f"{name}{number}.png"), image)

# %%
# Keypoints in pixels of the stored photos, and the matches that pass Lowe's ratio test, as pairs of indices.
sift, matcher = cv2.SIFT.create(5000), cv2.BFMatcher()
keypoints, descriptors, matches = {}, {}, {}
for path in sorted(photos.iterdir()):
    picture = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION)
    if picture is None:
        sys.exit(f"{path} is not a picture")
    found, descriptors[path.name] = sift.detectAndCompute(picture, None)
    keypoints[path.name] = np.asarray(cv2.KeyPoint.convert(found))
for one, two in itertools.combinations(keypoints, 2):
    rows = matcher.knnMatch(descriptors[one], descriptors[two], k=2)
    good = [(best.queryIdx, best.trainIdx) for best, second in rows if best.distance < 0.8 * second.distance]
    matches[one, two] = np.array(good, np.uint32).reshape(-1, 2)

# %%
# Both filters work in several processes. A run on a COLMAP database that was stopped continues if it is started again.
if "--hloc" in sys.argv:
    import h5py

    from ruzhash_cv.pipelines.hloc import filter_matches

    with h5py.File(output / "features.h5", "w") as file:
        for name, points in keypoints.items():
            file[f"{name}/keypoints"] = points
    with h5py.File(output / "matches.h5", "w") as file:
        for (one, two), indices in matches.items():
            partners = np.full(len(keypoints[one]), -1)
            partners[indices[:, 0]] = indices[:, 1]
            file[f"{one}/{two}/matches0"] = partners
            file[f"{one}/{two}/matching_scores0"] = (partners >= 0).astype(np.float16)
    done = filter_matches(output / "features.h5", output / "matches.h5", matches, output / "filtered.h5", n_jobs=-1)
else:
    import pycolmap

    from ruzhash_cv.pipelines.colmap import verify

    pycolmap.Database.open(output / "database.db").close()
    pycolmap.import_images(output / "database.db", photos)
    with pycolmap.Database.open(output / "database.db") as database:
        ids = {image.name: image.image_id for image in database.read_all_images()}
        for name, points in keypoints.items():
            database.write_keypoints(ids[name], points + np.float32(0.5))  # COLMAP's first pixel has its centre there
        for (one, two), indices in matches.items():
            database.write_matches(ids[one], ids[two], indices)
    done = verify(output / "database.db", n_jobs=-1)
print(f"{done.pairs} pairs, matches kept: {done.inliers} of {done.matches}, in {output}")
