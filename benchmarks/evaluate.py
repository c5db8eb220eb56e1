"""What the package is judged by, in one runner: a measure is its suites, its methods, a row, and the columns of its table.

    python benchmarks/evaluate.py accuracy --suite adelaidermf photographed --half judge --seeds 5
    python benchmarks/evaluate.py near poses models motions --half judge --seeds 5     # near misses, poses, single models, motions
    PYTHONPATH=../before python benchmarks/evaluate.py accuracy --methods ruzhash_cv --rows before
    python benchmarks/evaluate.py compare before/accuracy.csv after/accuracy.csv        # two versions, paired by problem

Prints a table for each suite and half, in Markdown, with the command, the versions and the machine. Rows of single problems are kept
beside the results, out of the repository, and a second call computes what is missing; a change of the package's code makes its own
rows stale, a change of the truth those of all methods. `--store` writes the means into `results`.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import measures
import numpy as np
import pandas as pd
import report
from geometry import Points, residuals
from joblib import Parallel, delayed
from methods import (
    OURS,
    Answer,
    Method,
    cameras_of,
    focal_methods,
    mask_methods,
    model_methods,
    near_methods,
    one_model_methods,
    ours,
    own_methods,
    pose_methods,
    video_methods,
    with_cameras,
)
from posed_photos import line_distances
from problems import Problem, first_seed
from suites import GROUPS, SUITES, problems

KEY = ["suite", "half", "problem", "method", "seed"]
MEASURED = [*KEY, "package"]
WITH_TRUTH = ["auc", "label_error", "off_plane", "shifted"]
MEASURES = ["f1", "precision", "recall", "balanced_accuracy", *WITH_TRUTH, "ms"]
RATES = (0.01, 0.05, 0.1)
FEWEST_OFF_PLANE = 5
"""Unjudged matches that a pair needs, off the labelled planes or shifted on them, to have a share of them that is kept."""
PRECISE, WITHIN = 1.0, 3.0  # pixels
LINE_TRUTHS = (3.0, 5.0, 10.0)  # pixels
FLIPPED = 90.0  # degrees
CUTS, FALSE_ALARMS = (5.0, 10.0, 20.0, 30.0, 50.0, 100.0), (0.1, 0.01, 0.001)  # evidence, shares of pairs
Row = dict[str, Any]
Column = tuple[str, str, Callable[[pd.Series], float], int]
"""Title, column of the rows, how the problems are summed up, digits."""


@dataclass(frozen=True)
class Measure:
    """What is asked of which methods on which suites; the first column is compared between methods, paired by problem."""

    suites: tuple[str, ...]
    methods: Callable[[], dict[str, Method]]
    row: Callable[[Problem, Answer], Row]
    columns: tuple[Column, ...]
    is_shuffled: bool = True
    is_own: bool = False
    """Whether all methods are variants of this package."""


def mean(values: pd.Series) -> float:
    """The mean of the known values."""
    return float(values.mean())


def median(values: pd.Series) -> float:
    """A value in the middle: between two infinite errors there is no number."""
    return float(values.quantile(0.5, interpolation="nearest"))


def quantile(share: float, values: pd.Series) -> float:
    """The value that a share of them does not exceed."""
    return float(values.quantile(share))


def share_below(limit: float, values: pd.Series) -> float:
    """The share of known values below a limit."""
    return float((values.dropna() < limit).mean())


def auc_at(limit: float, values: pd.Series) -> float:
    """The AUC of pose errors up to so many degrees."""
    return float(measures.pose_score(values.to_numpy(), limit).mean())


# --- What a row holds.


def f1_of(problem: Problem, answer: Answer) -> float:
    """F1 of the mask."""
    return measures.mask_quality(answer.mask[problem.judged], problem.labels[problem.judged] > 0)["f1"]


def mask_row(problem: Problem, answer: Answer) -> Row:
    """Every measure of a mask that applies; NaN for the others."""
    judged = problem.judged
    true, row = problem.labels[judged] > 0, dict.fromkeys(WITH_TRUTH, float("nan"))
    if problem.shifted is not None:
        groups = {"off_plane": problem.moved & ~problem.shifted, "shifted": problem.shifted}
        row |= {name: answer.mask[of].mean() for name, of in groups.items() if of.sum() >= FEWEST_OFF_PLANE}
    if answer.scores is not None:
        row["auc"] = measures.roc_auc(answer.scores[judged], ~true)
    if answer.labels is not None:
        row["label_error"] = measures.label_error(answer.labels[judged], problem.labels[judged])
    return measures.mask_quality(answer.mask[judged], true) | row


def near_row(problem: Problem, answer: Answer) -> Row:
    """Shares kept of near misses and of the other true matches, and the mean probability of near misses."""
    moved, result = problem.moved, answer.result
    probability = np.nan if result is None else result.inlier_probabilities[moved].mean()
    kept, others = (answer.mask[rows].mean() for rows in (moved, problem.labels > 0))
    return {"kept": kept, "others": others, "probability": probability}


def calibration_row(problem: Problem, answer: Answer) -> Row:
    """The error of the probabilities of judged matches, and of those kept, which share is wrong and is expected to be."""
    judged = problem.judged
    columns = problem.labels > 0, answer.mask, answer.result.inlier_probabilities
    true, kept, probabilities = (column[judged] for column in columns)
    shares = (kept & ~true).sum() / max(kept.sum(), 1), (1 - probabilities[kept]).sum() / max(kept.sum(), 1)
    error = measures.calibration_error(probabilities, true)
    return {"error": error, "wrong_share": shares[0], "expected_share": shares[1]}


def model_row(problem: Problem, answer: Answer) -> Row:
    """Errors of the model on true matches free of noise, of the structure it fits best; F1 for the structure the mask fits best."""
    structures = [number for number in np.unique(problem.labels) if number > 0]
    judged, row = problem.judged, {"px": np.nan, "px95": np.nan, "f1": np.nan, "within": 0.0}
    if answer.model is not None:
        row["within"] = float((residuals(problem.kind, answer.model, problem.points1, problem.points2) <= WITHIN).sum())
    if structures:
        masks = [problem.labels[judged] == number for number in structures]
        row["f1"] = max(measures.mask_quality(answer.mask[judged], mask)["f1"] for mask in masks)
    if problem.exact1 is not None:
        points = [(problem.exact1, problem.exact2)]
        if len(problem.models) > 1:
            nearest = np.argmin([residuals(problem.kind, model, *points[0]) for model in problem.models], axis=0)
            own = [nearest == number for number in np.unique(nearest)]
            points = [(points[0][0][rows], points[0][1][rows]) for rows in own]
        errors = [measures.model_errors(problem.kind, answer.model, *part) for part in points]
        row["px"], row["px95"] = min(tuple(np.percentile(of, [50, 95], method="nearest")) for of in errors)
    return row


def motion_row(problem: Problem, answer: Answer) -> Row:
    """Whether the first motion is rigid and of little noise, how many motions there are, and what is kept."""
    motions = answer.result.motions
    kept = answer.mask[problem.labels > 0].mean() if problem.labels.any() else np.nan
    precise = any(of.kind != "homography" and of.noise_scale < PRECISE for of in motions[:1])
    return {"motion": precise, "motions": len(motions), "several": len(motions) > 1, "kept": kept}


def pose_row(problem: Problem, answer: Answer) -> Row:
    """The error of the pose in degrees, its parts, and F1 of the mask; a flip is a translation that points backwards."""
    wrong = (problem.labels[problem.judged] == 0).any()
    parts = dict.fromkeys(("rotation", "translation", "flip"), np.nan)
    if answer.pose is not None:
        parts["rotation"] = measures.rotation_angle(answer.pose[0], problem.cameras.R)
        if problem.cameras.t.any() and np.any(answer.pose[1]):
            parts["translation"] = measures.direction_angle(answer.pose[1], problem.cameras.t)
            parts["flip"] = float(parts["translation"] > FLIPPED)
    parts |= {"error": measures.pose_error(answer.pose, problem.cameras), "found": answer.pose is not None}
    return parts | {"f1": f1_of(problem, answer) if wrong else np.nan}


def learned_row(problem: Problem, answer: Answer) -> Row:
    """What `pose_row` says, and F1 of the mask with matches true that are within so many pixels of their true epipolar lines."""
    distance = line_distances(problem)
    f1 = {f"within{px:g}": measures.mask_quality(answer.mask, distance <= px)["f1"] for px in LINE_TRUTHS}
    return pose_row(problem, answer) | f1


def deviation_row(problem: Problem, answer: Answer) -> Row:
    """The errors of a pose with its cameras in the standard deviations that it says; NaN without a baseline."""
    row, truth = dict.fromkeys(("rotation", "direction"), np.nan), problem.cameras
    pose = answer.result.camera_pose(*cameras_of(problem)) if answer.result.motions else None
    if pose is not None and pose.has_baseline and truth.t.any():
        row["rotation"] = measures.rotation_angle(pose.rotation, truth.R) / pose.rotation_deviation
        row["direction"] = measures.direction_angle(pose.translation, truth.t) / pose.direction_deviation
    return row


def pair_row(problem: Problem, answer: Answer) -> Row:
    """How sure it is that two pictures share anything, and how many matches are kept."""
    evidence = answer.result.evidence
    return {"evidence": evidence, **{f"above{cut:g}": evidence >= cut for cut in CUTS}, "kept": answer.mask.sum()}


def overlay_row(problem: Problem, answer: Answer) -> Row:
    """Shares kept of the scene (1), of static matches (2) and of mismatches (0), and what is said of the static ones."""
    result, labels = answer.result, problem.labels
    groups = {"scene": labels == 1, "static": labels == 2, "wrong": labels == 0}
    row = {name: answer.mask[rows].mean() if rows.any() else np.nan for name, rows in groups.items()}
    stationary = [number for number, motion in enumerate(result.motions) if motion.stationary]
    moving = next((number for number, motion in enumerate(result.motions) if not motion.stationary), -2)
    row["called"] = np.isin(result.motion_labels[groups["static"]], stationary).mean()
    return row | {"joined": (result.motion_labels[groups["static"]] == moving).mean()}


def jittered(points1: Points, points2: Points) -> tuple[Points, Points]:
    """Points moved by .05 px."""
    rng = np.random.default_rng(0)
    return points1 + rng.normal(0, 0.05, points1.shape), points2 + rng.normal(0, 0.05, points2.shape)


CHANGES: dict[str, tuple[Callable[[Points, Points], tuple[Points, Points]], int]] = {
    "another seed": (lambda one, two: (one, two), 1),
    "images swapped": (lambda one, two: (two, one), 0),
    "both images mirrored": (lambda one, two: (one * [-1, 1], two * [-1, 1]), 0),
    "jitter of .05 px": (jittered, 0),
    "a far mismatch added": (lambda one, two: (np.vstack([one, [[5e4, 0.0]]]), np.vstack([two, [[0.0, -5e4]]])), 0),
}
"""The changed points and what is added to the seed, by what changes."""


def change_row(problem: Problem, answer: Answer) -> Row:
    """The share of verdicts, in percent, that each change changes."""
    row = {}
    for name, (change, seed) in CHANGES.items():
        points1, points2 = change(problem.points1, problem.points2)
        mask = ours(replace(problem, points1=points1, points2=points2, cameras=None), seed).mask
        row[name] = 100 * (mask[: len(answer.mask)] != answer.mask).mean()
    return row


TIME: Column = ("median ms", "ms", median, 1)
F1: Column = ("F1", "f1", mean, 3)
POSED = ("posed", "poses", "poses-distorted", "poses-fisheye", "poses-sift", "poses-sift-without-ratio")
MASKS: tuple[Column, ...] = (
    F1, ("off-plane kept", "off_plane", mean, 3), ("shifted kept", "shifted", mean, 3), ("lowest F1", "f1", min, 3),
    ("precision", "precision", mean, 3), ("recall", "recall", mean, 3),
    ("balanced accuracy", "balanced_accuracy", mean, 3), ("AUC", "auc", mean, 3), ("label error", "label_error", mean, 3),
    TIME,
)  # fmt: skip
NEAR: tuple[Column, ...] = (
    ("near misses kept", "kept", mean, 3), ("others kept", "others", mean, 3),
    ("probability of near misses", "probability", mean, 3), TIME,
)  # fmt: skip
ONE_MODEL: tuple[Column, ...] = (
    ("below 1 px", "px", partial(share_below, PRECISE), 3), ("median error (px)", "px", median, 3),
    ("95 % of points below 1 px", "px95", partial(share_below, PRECISE), 3), ("F1 of the mask", "f1", mean, 3),
    ("matches within 3 px", "within", mean, 1), TIME,
)  # fmt: skip
MOTIONS: tuple[Column, ...] = (
    ("precise motion first", "motion", mean, 3), ("motions", "motions", mean, 2),
    ("more than one", "several", mean, 3), ("true matches kept", "kept", mean, 3), TIME,
)  # fmt: skip
POSES: tuple[Column, ...] = (
    ("AUC@10°", "error", partial(auc_at, 10.0), 3), ("AUC@5°", "error", partial(auc_at, 5.0), 3),
    ("AUC@20°", "error", partial(auc_at, 20.0), 3), ("median error (°)", "error", median, 2), ("F1 of the mask", "f1", mean, 3),
    ("has a pose", "found", mean, 3), TIME,
)  # fmt: skip
LEARNED: tuple[Column, ...] = (
    *((f"F1 within {px:g} px", f"within{px:g}", mean, 3) for px in LINE_TRUTHS), *POSES[:4], TIME,
)  # fmt: skip
VIDEO: tuple[Column, ...] = (
    ("AUC@10°", "error", partial(auc_at, 10.0), 3), ("flips", "flip", sum, 0), ("median rotation (°)", "rotation", median, 3),
    ("median translation (°)", "translation", median, 2), ("95th percentile", "translation", partial(quantile, 0.95), 1),
    ("below 5°", "error", partial(share_below, 5.0), 3), ("F1 of the mask", "f1", mean, 3), ("has a pose", "found", mean, 3), TIME,
)  # fmt: skip
DEVIATIONS: tuple[Column, ...] = tuple(
    (f"{part} within {limit:g}", part, partial(share_below, limit), 2)
    for part, limit in product(("rotation", "direction"), (1.0, 2.0))
)
CALIBRATION: tuple[Column, ...] = (
    ("calibration error", "error", mean, 3), ("wrong among the kept", "wrong_share", mean, 3),
    ("expected", "expected_share", mean, 3), TIME,
)  # fmt: skip
PAIRS: tuple[Column, ...] = (
    ("median evidence", "evidence", median, 1), *((f"above {cut:g}", f"above{cut:g}", mean, 3) for cut in CUTS),
    *((f"reached by {share:g}", "evidence", partial(quantile, 1 - share), 1) for share in FALSE_ALARMS),
    ("matches kept", "kept", mean, 1), TIME,
)  # fmt: skip
OVERLAYS: tuple[Column, ...] = (
    ("scene kept", "scene", mean, 3), ("static kept", "static", mean, 3), ("mismatches kept", "wrong", mean, 3),
    ("static called static", "called", mean, 3), ("static in the scene's motion", "joined", mean, 3),
)  # fmt: skip
VARIED: tuple[Column, ...] = (*((f"{name}, %", name, mean, 1) for name in CHANGES), TIME)
AT_RATES = {f"at {rate:g}": {"false_discovery_rate": rate} for rate in RATES}
MEASURE: dict[str, Measure] = {
    "accuracy": Measure(("all",), mask_methods, mask_row, MASKS),
    "near": Measure(("near",), near_methods, near_row, NEAR),
    "models": Measure(("one-model",), model_methods, model_row, ONE_MODEL),
    "wrong": Measure(("mostly-wrong",), one_model_methods, mask_row, (F1, TIME)),
    "motions": Measure(("building", "static"), partial(own_methods, at_3_px={"threshold": 3.0}), motion_row, MOTIONS),
    "poses": Measure(POSED, pose_methods, pose_row, POSES),
    "learned": Measure(("learned",), pose_methods, learned_row, LEARNED),
    "focal": Measure(("posed",), focal_methods, pose_row, POSES),
    "video": Measure(("video",), video_methods, pose_row, VIDEO),
    "deviations": Measure(
        ("posed", "learned", "poses"), lambda: {f"{OURS}, cameras given": with_cameras}, deviation_row, DEVIATIONS
    ),
    "calibration": Measure(("all",), partial(own_methods, **AT_RATES), calibration_row, CALIBRATION),
    "pairs": Measure(("pairs",), own_methods, pair_row, PAIRS),
    "overlays": Measure(("overlays",), partial(own_methods, dropped={"keep_stationary": False}), overlay_row, OVERLAYS),
    "changes": Measure(("varied",), own_methods, change_row, VARIED, is_shuffled=False),
}


# --- The loop.


WARM: set[str] = set()
"""Methods that this process has called: the first call is slower."""


def run_once(measure: Measure, problem: Problem, name: str, method: Method, seed: int) -> Row:
    """What a measure says of one method on a problem in the seed's order, timed on the processor."""
    given = problem.shuffled(seed) if measure.is_shuffled else problem
    if name not in WARM:
        WARM.add(name)
        method(given, seed)
    start = time.process_time()
    answer = method(given, seed)
    milliseconds = 1e3 * (time.process_time() - start)
    return {"n": len(problem.labels)} | measure.row(given, answer) | {"ms": milliseconds}


def select(methods: dict[str, Method], wanted: list[str] | None) -> dict[str, Method]:
    """Methods by exact name, else by the beginning of their name; all if none is wanted."""
    chosen = {}
    for text in [""] if wanted is None else wanted:
        matches = [text] if text in methods else [name for name in methods if name.startswith(text)]
        if not matches:
            report.ABSENT.setdefault(text, "no such method here")
        chosen |= {name: methods[name] for name in matches}
    return chosen


def collect(name: str, measure: Measure, options: argparse.Namespace, n_jobs: int = 1) -> pd.DataFrame:
    """All rows that belong to this call; those that are not there yet are measured, in so many processes."""
    path, methods = options.rows / f"{name}.csv", select(measure.methods(), options.methods)
    done, keys, missing = set(report.read_rows(path, MEASURED)[MEASURED].itertuples(index=False, name=None)), set(), []
    for half in ("tune", "judge") if options.half == "both" else (options.half,):
        for problem in problems(options.suite or list(measure.suites), half, options.per_cell):
            for method in methods:
                is_own = measure.is_own or OURS in method
                package = report.package_digest() if is_own else f"peer {report.truth_digest()}"
                for repetition in range(options.seeds if is_own else 1):
                    key = problem.suite, half, problem.name, method, first_seed(half) + repetition, package
                    keys.add(key)
                    missing += [] if key in done else [(key, problem)]
    if not keys:
        raise SystemExit(f"no problems for {name}: are its files here?")
    calls = (delayed(run_once)(measure, problem, key[3], methods[key[3]], key[4]) for key, problem in missing)
    for count, row in enumerate(Parallel(n_jobs, return_as="generator")(calls)):
        report.append_row(path, dict(zip(MEASURED, missing[count][0], strict=True)) | row)
        print(f"\r{name}: {count + 1} of {len(missing)} rows", end="", file=sys.stderr)
    rows = report.read_rows(path, MEASURED)
    return rows[[key in keys for key in rows[MEASURED].itertuples(index=False, name=None)]]


# --- Tables.


def leads(scores: pd.DataFrame) -> pd.DataFrame:
    """For each method the mean of this package's score minus its own over the problems that all have answered, and its error."""
    means = scores.groupby(["problem", "method"], sort=False).score.mean().unstack("method").dropna()
    return means.rsub(means.get(OURS, np.nan), axis=0).agg(["mean", "sem"])


def table(rows: pd.DataFrame, columns: tuple[Column, ...]) -> str:
    """A line for each method of one suite and half, best first."""
    title, name, of_column, digits = columns[0]
    lead, lines = leads(rows.assign(score=[of_column(rows[name].iloc[[at]]) for at in range(len(rows))])), []
    for method, of in rows.groupby("method", sort=False):
        cells = [report.shown(column[2](of[column[1]]), column[3]) for column in columns]
        difference = "" if method == OURS else report.shown(lead[method]["mean"], digits, lead[method]["sem"], "+")
        lines.append((of_column(of[name]), [str(method), *cells, difference]))
    lines.sort(key=lambda line: line[0], reverse=name in ("f1", "px", "error", "motion", "evidence"))
    header = ["method", *(column[0] for column in columns), f"{title}, {OURS} minus this"]
    return report.markdown(header, [line for _, line in lines])


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each suite, half and method of accuracy: means over the problems that all methods answered, with errors.

    `off_plane` and `shifted` are means over those of them that have enough such matches. `ms` is a median.
    `lead` is the paired difference in F1 of this package's default to the method.
    """
    found = []
    for (suite, half), own in rows.groupby(["suite", "half"], sort=False):
        means = own.groupby(["method", "problem"], sort=False)[MEASURES].mean()
        f1 = means.f1.unstack("method").dropna()
        kept = means[means.index.get_level_values("problem").isin(f1.index)].groupby("method")
        result = kept.mean().assign(ms=kept.ms.median())
        lead = f1.rsub(f1[OURS], axis=0) if OURS in f1 else f1 * float("nan")
        result.insert(0, "problems", len(f1))
        result.insert(2, "f1_error", f1.sem())
        result.insert(3, "lowest_f1", f1.min())
        found.append(result.assign(lead=lead.mean(), lead_error=lead.sem(), suite=suite, half=half).reset_index())
    return pd.concat(found).set_index(["suite", "half", "method"])


def means(rows: pd.DataFrame, columns: tuple[Column, ...]) -> pd.DataFrame:
    """A line for each suite, half and method: how many problems, and the columns of the table by their titles."""
    groups = rows.groupby(["suite", "half", "method"], sort=False)
    found = {title: [of_column(of[name]) for _, of in groups] for title, name, of_column, _ in columns}
    return pd.DataFrame({"problems": groups.problem.nunique(), **found})


def store(name: str, found: pd.DataFrame) -> None:
    """Put means in the place of the same methods' on the same suites in `results`, with the package's commit."""
    path, found = report.RESULTS / f"{name}.csv", found.assign(commit=report.package_commit())
    if path.exists():
        earlier = pd.read_csv(path, index_col=list(found.index.names), dtype={"commit": str})
        found = pd.concat([earlier[~earlier.index.isin(found.index)], found])
    found.to_csv(path, float_format="%.5g")


def compare(before: Path, after: Path) -> str:
    """Paired differences of two files of rows, after minus before, for each suite and column; seeds are averaged first."""
    tables = [pd.read_csv(path, dtype={"problem": str}) for path in (before, after)]
    names = [name for name in tables[0].select_dtypes(["number", "bool"]) if name not in (*MEASURED, "n")]
    one, two = (of.groupby(KEY[:4])[names].mean().rename_axis(columns="measure").stack() for of in tables)
    pairs = pd.DataFrame({"A": one, "B": two}).dropna().assign(difference=lambda of: of.B - of.A)
    lines = []
    for (suite, method, name), of in pairs.groupby(["suite", "method", "measure"]):
        means = report.shown(of.A.mean(), 4), report.shown(of.B.mean(), 4)
        difference = report.shown(of.difference.mean(), 4, of.difference.sem(), "+")
        lines.append([f"{suite}: {method}", name, str(len(of)), *means, difference])
    return report.markdown(["suite: method", "measure", "problems", "A", "B", "B - A"], lines)


def main() -> None:
    """Measure what is missing, then print the tables."""
    if sys.argv[1:2] == ["compare"]:
        print(compare(Path(sys.argv[2]), Path(sys.argv[3])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = f"of {', '.join(MEASURE)}; or compare A.csv B.csv"
    parser.add_argument("measures", nargs="+", choices=MEASURE, metavar="MEASURE", help=names)
    suites = {"choices": [*SUITES, *GROUPS], "metavar": "SUITE"}
    parser.add_argument("--suite", nargs="+", **suites, help="default: those of the measure")
    parser.add_argument("--half", default="tune", choices=["tune", "judge", "both"])
    parser.add_argument(
        "--seeds", type=int, default=5, help="repetitions of each problem by this package; peers have one"
    )
    parser.add_argument("--per-cell", type=int, default=2, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--methods", nargs="+", help="names or their beginnings; default all")
    parser.add_argument("--rows", type=Path, default=report.ROWS, metavar="FOLDER", help="keep the rows there")
    parser.add_argument("--store", action="store_true", help="write the means into `results`")
    options = parser.parse_args()
    for name in options.measures:
        measure = MEASURE[name]
        rows = collect(name, measure, options)
        for (suite, half), of in rows.groupby(["suite", "half"], sort=False):
            title = f"{name}, {suite}, {half} half: {of.problem.nunique()} problems"
            print(f"\n### {title}\n", table(of, measure.columns), sep="\n", flush=True)
        if options.store:
            store(name, summary(rows) if name == "accuracy" else means(rows, measure.columns))
    print("", report.about_this_run(), sep="\n")


if __name__ == "__main__":
    main()
