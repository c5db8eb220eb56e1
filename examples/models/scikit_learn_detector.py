"""
An outlier detector for scikit-learn
====================================

`PreferenceIsolationForest` is used as `IsolationForest` is. Its outliers are points that share no model with others: here no circle.
scikit-learn's forest looks for places where points are rare, and on circles among strays there are none.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from ruzhash_cv.models import Circles, Lines
from ruzhash_cv.sklearn import PreferenceIsolationForest

rng, circles = np.random.default_rng(0), []
for centre, count in (((1.0, 0.0), 80), ((-0.5, 0.87), 340), ((-0.5, -0.87), 80)):
    angles = rng.uniform(0, 2 * np.pi, count)
    circles.append(centre + np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(0, 0.01, (count, 2)))
points = np.vstack([*circles, rng.uniform([-1.5, -1.9], [2.0, 1.9], (500, 2))])  # (1000, 2), half of them strays
truth = np.repeat([1, -1], 500)  # 1 for inliers, -1 for outliers, as in scikit-learn

detectors = {
    "IsolationForest": IsolationForest(contamination=0.5, random_state=0),
    "PreferenceIsolationForest(Circles())": PreferenceIsolationForest(Circles(), contamination=0.5, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for axis, (name, detector) in zip(axes, detectors.items(), strict=True):
    labels = detector.fit_predict(points)
    auc = roc_auc_score(truth, detector.score_samples(points))
    print(f"{name}: AUC {auc:.3f}, {np.mean(labels == truth):.0%} of labels right")
    axis.scatter(*points.T, s=5, c=np.where(labels > 0, "C0", "0.8"))
    axis.set(title=f"{name}, AUC {auc:.2f}", aspect="equal")
    axis.axis("off")
figure.suptitle("points labelled as inliers are blue")

# %%
# In a pipeline its options are found by a grid search, where some labels are known.

pipeline = make_pipeline(MinMaxScaler(), PreferenceIsolationForest(n_models=500, random_state=0))
grid = {
    "preferenceisolationforest__family": ["points", Lines(), Circles()],
    "preferenceisolationforest__noise_scale": [None, 0.005, 0.02],
}
folds = StratifiedKFold(3, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=folds).fit(points, truth)
best = {name.rpartition("__")[2]: value for name, value in search.best_params_.items()}
print(f"best of the grid: {best}, AUC {search.best_score_:.3f}")
plt.show()
