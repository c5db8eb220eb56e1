"""Answers for one checkout of the package, which PYTHONPATH leads to: `one_version.py ROOT`.

Reads calls and writes results, pickled, until the input ends. A call is a tuple (points1, points2, seed); a result is a tuple (mask,
scores, seconds of processor time).
"""

from __future__ import annotations

import inspect
import os
import pickle
import sys
import time
from pathlib import Path


def main() -> None:
    """Serve the checkout that the command line names."""
    root = Path(sys.argv[1]).resolve()
    # What anybody prints goes elsewhere: the output is for results.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import ruzhash_cv

    if root not in Path(ruzhash_cv.__file__).resolve().parents:
        raise SystemExit(f"{root} holds no ruzhash_cv: {ruzhash_cv.__file__} was imported")
    one_thread = {"n_jobs": 1} if "n_jobs" in inspect.signature(ruzhash_cv.filter_points).parameters else {}
    while True:
        try:
            points1, points2, seed = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        start = time.process_time()
        result = ruzhash_cv.filter_points(points1, points2, rng=seed, **one_thread)
        seconds = time.process_time() - start
        pickle.dump((result.inlier_mask, result.anomaly_scores, seconds), output)
        output.flush()


if __name__ == "__main__":
    main()
