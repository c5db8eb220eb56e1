"""The next method, one law of residuals, measured beside the package's default on the same problems and seeds.

It is a prototype in `benchmarks/one_law`, not part of the package: `benchmarks/README.md` says how it works and what it lacks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
from matching import matches_of
from measures import calibration_error, label_error, mask_quality, paired_difference
from one_law import filter_points
from problems import Problem
from report import about_this_run, markdown, shown
from suites import GROUPS, SUITES, members

import ruzhash_cv

STATIC = ("one-rigid", "photographed-rigid", "photos")
"""Beginnings of names of suites whose scenes are one rigid motion: it should be the first structure, with little noise."""
FEWEST, STATIC_SHARE = 50, 0.6
"""Of a pair of photos: matches, and the share of these that one motion holds within a pixel."""


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the milliseconds of the process's time it takes."""
    start = time.process_time()
    result = call()
    return result, 1e3 * (time.process_time() - start)


def measured(problem: Problem, seed: int) -> dict[str, float]:
    """Both methods on one problem; planes are labelled by structures, rigid motions by motions."""
    points, judged = (problem.points1, problem.points2), problem.judged
    true = problem.labels > 0
    today, today_ms = timed(partial(ruzhash_cv.filter_points, *points, rng=seed))
    law, law_ms = timed(partial(filter_points, *points, seed))
    labels = law.labels if problem.kind == "homography" else law.motion_labels
    first = today.models[0] if today.models else None
    row = {"today_ms": today_ms, "law_ms": law_ms}
    for name, mask, found in (("today", today.inlier_mask, today.labels), ("law", law.inlier_mask, labels)):
        row[f"{name}_f1"] = mask_quality(mask[judged], true[judged])["f1"]
        row[f"{name}_label_error"] = label_error(np.where(mask, found, -1)[judged], problem.labels[judged])
    row["today_motion"] = float(first is not None and first.kind == "fundamental" and first.noise_scale < 1.0)
    row["law_motion"] = float(law.first_kind == "fundamental" and law.first_noise < 1.0)
    row["calibration"] = calibration_error(law.inlier_probabilities[judged], true[judged])
    return row


def static_pairs(folder: Path) -> Iterator[Problem]:
    """Pairs of a folder's photos at half their size of which one motion holds most SIFT matches; there is no truth."""
    shots = [np.asarray(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)) for path in sorted(folder.glob("*.[jJ][pP]*[gG]"))]
    shots = [cv2.resize(shot, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for shot in shots]
    for (i, one), (j, two) in combinations(enumerate(shots), 2):
        rows = matches_of(one, two, "sift", 4000)[0]
        if len(rows) < FEWEST:
            continue
        _, mask = cv2.findFundamentalMat(rows[:, :2], rows[:, 2:], cv2.USAC_MAGSAC, 1.0, 0.9999, 5000)
        if mask is not None and mask.mean() >= STATIC_SHARE:
            labels = np.zeros(len(rows), np.intp)
            judged = np.zeros(len(rows), bool)
            yield Problem(f"{i}-{j}", "photos", "fundamental", rows[:, :2], rows[:, 2:], labels, judged)


def suite_name(suite: str, problem: Problem) -> str:
    """The suite's name; scenes of planes and of motions of AdelaideRMF are apart, as in papers."""
    return f"{suite} {problem.kind[0].upper()}" if suite.startswith("adelaidermf") else suite


def table(rows: pd.DataFrame) -> str:
    """A line for each suite and half."""
    header = ["suite", "half", "problems", "F1, today", "F1, one law", "difference", "label error, today", "one law"]
    header += ["rigid motion first, today", "one law", "calibration error", "median ms, today", "one law"]
    lines, differences = [], []
    for (suite, half), own in rows.groupby(["suite", "half"], sort=False):
        own = own.groupby("problem").mean(numeric_only=True)
        mean, error = paired_difference(own.law_f1.to_numpy(), own.today_f1.to_numpy())
        static, judged = str(suite).startswith(STATIC), suite != "photos"
        means = own.mean()
        line = [str(suite), str(half), str(len(own))]
        line += [shown(means[name]) if judged else "" for name in ("today_f1", "law_f1")]
        line.append(shown(mean, 4, error, "+") if judged else "")
        line += [shown(means[name]) if judged else "" for name in ("today_label_error", "law_label_error")]
        line += [shown(means[name], 2) if static else "" for name in ("today_motion", "law_motion")]
        line.append(shown(means.calibration) if judged else "")
        lines.append([*line, *(shown(own[name].median(), 1) for name in ("today_ms", "law_ms"))])
        differences += [mean] if judged else []
    whole = f"Mean over suites and halves of the difference in F1: {np.mean(differences):+.4f}" if differences else ""
    return f"{markdown(header, lines)}\n\n{whole}"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ["adelaidermf", "photographed", "rendered"]
    parser.add_argument("--suites", nargs="*", default=default, choices=[*SUITES, *GROUPS])
    parser.add_argument("--half", default="both", choices=["tune", "judge", "both"])
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each problem")
    parser.add_argument("--photos", type=Path, help="a folder of photos of one building, for `rigid motion first`")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = arguments()
    halves = ("tune", "judge") if options.half == "both" else (options.half,)
    rng = np.random.default_rng(0)
    measured(Problem("warm", "", "", *rng.uniform(0, 500, (2, 60, 2)), np.ones(60, int), np.ones(60, bool)), 0)
    sets = [
        (suite, half, SUITES[suite](half, options.per_cell)) for suite in members(options.suites) for half in halves
    ]
    if options.photos:
        sets.append(("photos", "", static_pairs(options.photos)))
    rows = [
        {"suite": suite_name(suite, problem), "half": half, "problem": f"{problem.suite} {problem.name}"}
        | measured(problem, seed)
        for suite, half, problems in sets
        for problem in problems
        for seed in range(options.seeds)
    ]
    print(about_this_run(), table(pd.DataFrame(rows)), sep="\n\n")


if __name__ == "__main__":
    main()
