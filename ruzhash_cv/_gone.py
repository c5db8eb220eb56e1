"""What left the package and what takes its place, in one table."""

from __future__ import annotations

_SHAPES = "benchmarks/paper/problems.py of the repository draws and loads shapes"
_SEQUENCES = "read the pictures panorama1.jpg to 4, clip1.jpg to 4 and walk1.jpg to 5 of `data_folder()`"
_PROBLEMS = "it is in benchmarks/paper/problems.py of the repository"
_ALGEBRAIC = "it is in benchmarks/paper/algebraic.py of the repository"
_FORMS = "`RuzHashForest().fit(preferences)` takes preferences, and `ruzhash_cv.paper.embed_preferences` makes them of residuals"

#: By what the caller writes.
GONE = {
    "ruzhash_cv.Motion": "a `Structure` has `parts`",
    "ruzhash_cv.adapters.pyod": "PyOD's scores are -score_samples(X) of ruzhash_cv.sklearn",
    "ruzhash_cv.adapters.rtabmap": "docs/recipes.md has the script for RTAB-Map",
    "ruzhash_cv.adapters.vismatch": "docs/recipes.md has the lines for vismatch",
    "ruzhash_cv.datasets.CIRCLE_SHAPES": _SHAPES,
    "ruzhash_cv.datasets.LINE_SHAPES": _SHAPES,
    "ruzhash_cv.datasets.SHAPE_NAMES": _SHAPES,
    "ruzhash_cv.datasets.Shape": _SHAPES,
    "ruzhash_cv.datasets.load_shape": _SHAPES,
    "ruzhash_cv.datasets.make_shape": _SHAPES,
    "ruzhash_cv.datasets.SEQUENCE_NAMES": _SEQUENCES,
    "ruzhash_cv.datasets.load_sequence": _SEQUENCES,
    "ruzhash_cv.paper.AlgebraicCircles": _PROBLEMS,
    "ruzhash_cv.paper.AlgebraicFundamentalMatrices": _ALGEBRAIC,
    "ruzhash_cv.paper.AlgebraicHomographies": _ALGEBRAIC,
    "ruzhash_cv.paper.Problem": _PROBLEMS,
    "ruzhash_cv.paper.fit_noise": _PROBLEMS,
    "ruzhash_cv.paper.normalise_pairs": _PROBLEMS,
    "ruzhash_cv.paper.pose": _PROBLEMS,
    "ruzhash_cv.paper.problem_from": _PROBLEMS,
    "FilterResult.p_values": "`inlier_probabilities` says how probable it is that a match is true",
    "FilterResult.score_threshold": "matches are chosen by `inlier_probabilities`",
    "FilterResult.mismatch_rate": "the mean of 1 - `inlier_probabilities` is the share of mismatches to expect",
    "family='residuals'": _FORMS,
    "family='preferences'": _FORMS,
    "ruzhash-cv pairs": "examples/pipelines/folder_of_photos.py matches a folder into a COLMAP database or hloc's files, "
    "which the commands colmap and hloc filter; in Python, ruzhash_cv.pipelines.filter_pairs",
}


def gone(name: str) -> str:
    """Return the message for a name of the table."""
    return f"`{name}` is gone: {GONE[name]}"


def missing(owner: str, name: str) -> AttributeError:
    """Return the error for an attribute that a module or a class does not have, or not any more."""
    full = f"{owner}.{name}"
    return AttributeError(gone(full) if full in GONE else f"{owner} has no attribute {name!r}")
