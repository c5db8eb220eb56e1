"""Camera poses: from the mask as a filter before a calibrated estimator, and from the fundamental matrix itself."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from estimators import Estimator, Found, estimators, poselib
from measures import mask_quality, paired_difference
from numpy.typing import NDArray
from pictured import RATIO, posed
from pose_measures import (
    THRESHOLDS,
    Pose,
    matrix_pose,
    opencv_pose,
    pose_error,
    pose_score,
    poselib_pose,
)
from pose_scenes import Pair, given
from rendered import photographed
from report import about_this_run, markdown
from variants import DEFAULT, RULES
from variants import run as run_variant

from ruzhash_cv import FilterResult, filter_points, find_fundamental_matrix

KIND = "fundamental"
SETS: dict[str, Callable[[str, int], Iterator[Pair]]] = {
    "given": given,
    "sift": lambda half, per_cell: posed(half, max(1, per_cell // 3), RATIO),
    "sift-without-ratio": lambda half, per_cell: posed(half, max(1, per_cell // 3), None),
}
OWN_MATRIX = "matrix: camera_pose"  # what stands for the package among them


@dataclass(frozen=True)
class Outcome:
    """What one method made of one pair: degrees, seconds, F1 of its mask; `found` is false without a model."""

    error: float
    seconds: float
    f1: float
    found: bool


def motion_of(result: FilterResult) -> Found:
    """The motion of most matches if it is a fundamental matrix, as (matrix, its matches)."""
    if not result.motions or result.motions[0].kind != KIND:
        return None, np.zeros(len(result.labels), bool)
    return result.motions[0].matrix, result.motion_labels == 0


def matrices(
    pair: Pair, result: FilterResult, seed: int, peers: dict[str, Estimator]
) -> Iterator[tuple[str, Found, float]]:
    """Name, (fundamental matrix, its matches) and seconds of every way to a matrix."""
    points = pair.points1, pair.points2
    start = time.perf_counter()
    found = motion_of(result)  # motions are searched for when first asked for
    yield "motions[0]", found, time.perf_counter() - start
    for name, threshold in (("", None), ("threshold=1", 1.0), ("threshold=3", 3.0)):
        start = time.perf_counter()
        F, mask = find_fundamental_matrix(*points, threshold=threshold, rng=seed)
        yield f"find_fundamental_matrix {name}".strip(), (F, mask.ravel() > 0), time.perf_counter() - start
    for name, peer in peers.items():
        start = time.perf_counter()
        yield name, peer(*points, seed), time.perf_counter() - start


def judge(pair: Pair, pose: Pose, kept: NDArray[np.bool_], seconds: float, found: bool) -> Outcome:
    """Compare with the truth."""
    f1 = mask_quality(kept[pair.judged], pair.labels[pair.judged] > 0)["f1"]
    return Outcome(pose_error(pose, pair), seconds, f1, found)


def run(pair: Pair, seed: int, peers: dict[str, Estimator], variant: str = DEFAULT) -> dict[str, Outcome]:
    """Every method on one pair; the keys say how the pose came about."""
    start = time.perf_counter()
    result = filter_points(pair.points1, pair.points2, rng=seed)
    seconds = time.perf_counter() - start
    found, others = {}, {}
    for name, (F, kept), took in matrices(pair, result, seed, peers):
        # The motions come first, out of the result that the mask is of.
        took += seconds if name == "motions[0]" else 0.0
        found[f"matrix: {name}"] = judge(pair, matrix_pose(F, pair, kept), kept, took, F is not None)
        if name == "motions[0]":
            # Where the strongest motion has no fundamental matrix its matches still have a pose.
            others["motion_labels == 0"] = result.motion_labels == 0, took, F is not None
        elif "threshold" not in name:
            others[name] = kept, took, F is not None
    found[OWN_MATRIX] = own_pose(pair, result, found["matrix: motions[0]"].seconds)
    masks = {"ruzhash_cv": (result.inlier_mask, seconds, any_fundamental(result))}
    masks["nothing"] = np.ones(len(pair.labels), bool), 0.0, True
    masks["the truth"] = pair.labels > 0, 0.0, True
    masks |= others
    if variant != DEFAULT:
        start = time.perf_counter()
        other = run_variant(RULES[variant], pair.points1, pair.points2, seed)
        took = time.perf_counter() - start
        masks[variant] = other.inlier_mask, took, any_fundamental(other)
    for name, (kept, seconds, exists) in masks.items():
        for way, estimate in (("PoseLib", poselib_pose), ("findEssentialMat", opencv_pose)):
            if poselib is None and way == "PoseLib":
                continue
            start = time.perf_counter()
            pose = estimate(pair, kept, seed)
            total = seconds + time.perf_counter() - start
            found[f"{way} after {name}"] = judge(pair, pose, kept, total, exists)
    return found


def own_pose(pair: Pair, result: FilterResult, seconds: float) -> Outcome:
    """The pose that the result itself gives, `seconds` after the call."""
    start = time.perf_counter()
    pose = result.camera_pose(pair.K1, pair.K2) if result.motions else None
    return judge(pair, pose, result.motion_labels == 0, seconds + time.perf_counter() - start, pose is not None)


def any_fundamental(result: FilterResult) -> bool:
    """Whether anything in the result is a rigid motion."""
    return any(model.kind == KIND for model in (*result.models, *result.motions))


def shuffled(pair: Pair, seed: int) -> Pair:
    """The same pair with its rows in another order: how a seed reaches methods that take none."""
    order = np.random.default_rng(seed).permutation(len(pair.labels))
    return replace(pair, **{name: getattr(pair, name)[order] for name in ("points1", "points2", "labels", "judged")})


class Table:
    """Outcomes of all methods on all pairs, averaged over seeds."""

    def __init__(self, pairs: list[Pair], seeds: range, peers: dict[str, Estimator], variant: str) -> None:
        self.pairs = pairs
        rows: dict[str, list[list[Outcome]]] = defaultdict(list)
        for number, pair in enumerate(pairs):
            repeats = [run(shuffled(pair, seed), seed, peers, variant) for seed in seeds]
            for name in repeats[0]:
                rows[name].append([one[name] for one in repeats])
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {len(pairs)} pairs", end="", file=sys.stderr)
        self.errors, self.seconds, self.f1, self.found = (
            {name: np.array([[getattr(o, field) for o in of] for of in found]) for name, found in rows.items()}
            for field in ("error", "seconds", "f1", "found")
        )

    def score(self, name: str, threshold: float, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mean over seeds of what each of these pairs adds to the AUC."""
        return np.asarray(pose_score(self.errors[name][rows], threshold).mean(axis=1))

    def ours(self, name: str) -> str:
        """The row of this package that a method is compared with."""
        if name.startswith("matrix"):
            return OWN_MATRIX
        return f"{name.split(' after ')[0]} after ruzhash_cv"

    def overall(self, rows: NDArray[np.bool_]) -> str:
        """All methods on these pairs."""
        header = ["pose from", *(f"AUC@{threshold:.0f}" for threshold in THRESHOLDS), "median error (°)", "no matrix"]
        header += ["F1 of mask", "median ms", "AUC@10, ruzhash_cv minus this"]
        lines = []
        for name, errors in self.errors.items():
            line = [name, *(f"{self.score(name, threshold, rows).mean():.3f}" for threshold in THRESHOLDS)]
            line += [f"{np.median(errors[rows]):.2f}", f"{np.mean(~self.found[name][rows]):.1%}"]
            line += [f"{self.f1[name][rows].mean():.3f}", f"{1e3 * np.median(self.seconds[name][rows]):.1f}"]
            reference = self.ours(name)
            pairs = (self.score(row, 10.0, rows) for row in (reference, name))
            line.append("" if reference == name else "{:+.3f} ± {:.3f}".format(*paired_difference(*pairs)))
            lines.append(line)
        return markdown(header, lines)

    def groups(self, groups: dict[str, NDArray[np.bool_]], threshold: float = 10.0) -> str:
        """AUC of all methods on parts of the pairs."""
        lines = [
            [name, *(f"{self.score(name, threshold, rows).mean():.3f}" for rows in groups.values())]
            for name in self.errors
        ]
        header = [f"AUC@{threshold:.0f}", *(f"{name} ({rows.sum()})" for name, rows in groups.items())]
        return markdown(header, lines)


def parts(pairs: list[Pair], among: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Pairs by motion, scene, kind and share of mismatches."""
    groups = {}
    for attribute in ("motion", "scene"):
        values = [getattr(pair, attribute) for pair in pairs]
        for value in dict.fromkeys(value for value, kept in zip(values, among, strict=True) if kept):
            groups[value] = among & (np.array(values) == value)
    rates = np.array([float(np.mean(pair.labels[pair.judged] == 0)) for pair in pairs])
    groups |= {"under 60 % wrong": among & (rates < 0.6), "over 60 %": among & (rates >= 0.6)}
    for kind in dict.fromkeys(pair.settings.get("mismatches", "") for pair in pairs):
        if kind:
            groups[str(kind)] = among & np.array([pair.settings.get("mismatches") == kind for pair in pairs])
    return {name: rows for name, rows in groups.items() if rows.any()}


def report(title: str, pairs: list[Pair], seeds: range, peers: dict[str, Estimator], variant: str) -> str:
    """All tables of one set of pairs."""
    table = Table(pairs, seeds, peers, variant)
    still = np.array([not pair.t.any() for pair in pairs])
    text = [f"### {title}: {np.sum(~still)} pairs with a baseline, {len(seeds)} seeds", table.overall(~still)]
    text.append(table.groups(parts(pairs, ~still)))
    if still.any():
        text += [
            f"### {title}: {still.sum()} pure rotations, error of the rotation; a matrix is wrong here",
            table.overall(still),
        ]
    return "\n\n".join(text)


def planes_told(half: str, per_cell: int, seeds: range) -> str:
    """How many photographed planes, of which no motion can be told, are called planes."""
    lines = []
    for features in ("sift", "orb"):
        planes = [*photographed(features, half, per_cell, ["one plane"])]
        results = [filter_points(one.points1, one.points2, rng=seed) for one in planes for seed in seeds]
        told = [bool(result.motions) and result.motions[0].kind != KIND for result in results]
        lines.append([f"{features}, {len(planes)}", f"{np.mean(told):.1%}"])
    return "### Single planes\n\n" + markdown(["features, pairs", "called a plane"], lines)


def main() -> None:
    """Run all methods on all pairs of one half and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each pair")
    parser.add_argument(
        "--per-cell", type=int, default=6, help="pairs of each scene and motion; a third of it of pictures"
    )
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    parser.add_argument(
        "--beside", default=DEFAULT, choices=RULES, help="a rule of the ablation: the mask without it as one more"
    )
    options = parser.parse_args()
    peers = {} if options.no_peers else estimators(KIND)
    first = 10_000 if options.half == "judge" else 0
    seeds = range(first, first + options.seeds)
    print(about_this_run())
    for name in options.set:
        pairs = list(SETS[name](options.half, options.per_cell))
        print(f"\n{report(name, pairs, seeds, peers, options.beside)}", flush=True)
    if any(name != "given" for name in options.set):
        print(f"\n{planes_told(options.half, max(1, options.per_cell // 3), seeds)}")


if __name__ == "__main__":
    main()
