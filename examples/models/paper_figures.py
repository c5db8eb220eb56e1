"""
The paper's figures
===================

Points on five lines among as many anomalies: the input, the preference space, and the anomaly scores of RuzHash-iForest, after
figure 1 of F. Leveni, L. Magri, C. Alippi, G. Boracchi, *Hashing for Structure-based Anomaly Detection*, ICIAP 2023. All experiments
of the paper are repeated in :doc:`/paper`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import MDS

from ruzhash_cv.models import Lines
from ruzhash_cv.paper import family_preferences, paper_forest, ruzhash, ruzicka_distance, sample_models

NOISE = 0.0135
rng = np.random.default_rng(0)
tips = np.exp(4j * np.pi * np.arange(6) / 5)  # a star of five strokes, from tip to tip
strokes = np.repeat(tips[:-1], 50) + rng.random(250) * np.repeat(np.diff(tips), 50)
star = np.column_stack([strokes.real, strokes.imag]) + rng.normal(0, NOISE, (250, 2))
points, labels = np.vstack([star, rng.uniform(-1, 1, (250, 2))]), np.repeat(np.arange(-1, 5), [250, 50, 50, 50, 50, 50])
points = np.vstack([points[250:], points[:250]])
models, _ = sample_models(points, Lines(), n_models=3000, rng=0)
preferences = family_preferences(points, Lines(), models, sigma=NOISE)
forest = paper_forest("RHF", branching_factor=16, n_trees=300).fit(preferences)
scores = forest.anomaly_scores(preferences)

# %%
# A row of preferences says how well one point agrees with each model. Points of one line have similar rows. Multidimensional scaling of
# their Ruzicka distances shows it: lines gather, anomalies spread.

scaling = MDS(metric="precomputed", init="classical_mds", n_init=1, max_iter=100, random_state=0)
places = scaling.fit_transform(ruzicka_distance(preferences))
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
axes[0].scatter(*points.T, c=labels, s=8, cmap="tab10")
axes[1].scatter(*places.T, c=labels, s=8, cmap="tab10")
axes[2].scatter(*points.T, c=scores, s=8, cmap="inferno")
for axis, title in zip(axes, ("input", "preference space", "anomaly scores"), strict=True):
    axis.set_title(title, loc="left")
    axis.set(xticks=[], yticks=[], aspect="equal")

# %%
# RuzHash is what the forest splits by. Two rows get the same hash about as often as they are similar, so no distance is ever computed.

hashes = ruzhash(preferences, n_hashes=500, rng=0)
first, second = np.random.default_rng(0).integers(0, len(hashes), (2, 3000))
differ = (hashes[first] != hashes[second]).mean(axis=1)
distances = ruzicka_distance(preferences)[first, second]
plt.figure(figsize=(5, 4.2), layout="constrained")
plt.scatter(distances, differ, s=4, alpha=0.4)
plt.plot([0, 1], [0, 1], "k", lw=0.8)
plt.xlabel("Ruzicka distance")
plt.ylabel("share of 500 hashes that differ")
plt.show()
