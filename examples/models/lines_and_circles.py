"""
Lines and circles: every structure, beside scikit-image's RANSAC
================================================================

``skimage.measure.ransac`` finds one model for one threshold. `find_structures` takes the points and the family, and finds all models,
each with a tolerance of its own. Half of the points here are strays. The example needs scikit-image.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.measure import CircleModel, LineModelND, ransac

from ruzhash_cv import find_structures
from ruzhash_cv.models import Circles, Lines

# %%
# Four steps of a stair, 50 points each, and 200 strays. RANSAC has to be told the threshold. It returns one line.

rng = np.random.default_rng(0)
steps = [[left, 0.2 + 0.8 * left] + rng.uniform(0, [0.25, 0.0], (50, 2)) for left in (0.0, 0.25, 0.5, 0.75)]
stair = np.vstack([np.vstack(steps) + rng.normal(0, 0.007, (200, 2)), rng.uniform([0.0, 0.2], [1.0, 0.8], (200, 2))])
line, inliers = ransac(stair, LineModelND, min_samples=2, residual_threshold=0.02, rng=0)
found_lines = find_structures(stair, Lines())
print(f"ransac: 1 line, {inliers.sum()} points")
print(f"find_structures: {len(found_lines)} lines, {found_lines.masks.sum(axis=1)} points")

# %%
# Five circles. ``masks[i]`` holds the points of model ``i``, and ``models[i]`` is its centre and radius.

parts = []
for x, y, radius in ((-0.5, -0.5, 0.25), (-0.5, 0.5, 0.3), (0.5, -0.5, 0.2), (0.5, 0.5, 0.4), (0.0, 0.0, 0.25)):
    angles = rng.uniform(0, 2 * np.pi, 50)
    parts.append([x, y] + radius * np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(0, 0.005, (50, 2)))
rings = np.vstack([*parts, rng.uniform(-0.9, 0.9, (250, 2))])
circle, ring = ransac(rings, CircleModel, min_samples=3, residual_threshold=0.015, rng=0)
found_circles = find_structures(rings, Circles())
print(f"ransac: 1 circle, {ring.sum()} points")
print(f"find_structures: {len(found_circles)} circles, {found_circles.masks.sum(axis=1)} points")
print(found_circles.models.round(2))

# %%
# ``labels`` gives each point to the nearest model, -1 for none.

figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
one_line, one_circle = np.where(inliers, 0, -1), np.where(ring, 0, -1)
panels = ((stair, one_line, found_lines.labels), (rings, one_circle, found_circles.labels))
for row, (points, by_ransac, by_us) in zip(axes, panels, strict=True):
    for axis, labels, title in zip(row, (by_ransac, by_us), ("skimage.measure.ransac", "find_structures"), strict=True):
        for label in range(-1, labels.max() + 1):
            own = points[labels == label]
            axis.plot(own[:, 0], own[:, 1], ".", ms=4, color="0.8" if label < 0 else f"C{label}")
        axis.set(title=f"{title}: {labels.max() + 1}", aspect="equal")
        axis.axis("off")
plt.show()
