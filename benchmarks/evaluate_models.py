"""How precise a single model is: pixels between true matches free of noise and the estimate, and F1 of its mask."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import adelaide
import numpy as np
import rendered
from estimators import Estimator, Found, estimators
from geometry import Matrix, Points, apply_homography, refit, residuals
from matching import RATIO
from measures import mask_quality, paired_difference
from numpy.typing import NDArray
from peers import OURS
from photos import KINDS, photos
from pictured import matched, pictured, posed
from pose_measures import model_errors
from pose_scenes import Pair, given
from pose_worlds import RIGID
from problems import Problem
from report import about_this_run, markdown
from variants import DEFAULT, all_variants, run

from ruzhash_cv import find_fundamental_matrix, find_homography
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.opencv import find_matrix
from ruzhash_cv.parameters import PARAMETERS

THRESHOLD = 3.0  # pixels, for all that take one
PRECISE = 1.0  # pixels
LIMITS = 1e-3, 1e3  # pixels; errors beyond count as these in ratios
FLAGS = ("RANSAC", "LMEDS", "USAC_DEFAULT", "USAC_ACCURATE", "USAC_MAGSAC")


@dataclass(frozen=True)
class Target:
    """Matches, and for each structure true matches free of noise; `labels`: 0 = mismatch, k = structure k."""

    points1: Points
    points2: Points
    labels: NDArray[np.intp]
    judged: NDArray[np.bool_]
    exact: dict[int, tuple[Points, Points]]

    @classmethod
    def of(cls, found: Pair | Problem, exact: dict[int, tuple[Any, Any]] | None = None) -> Target:
        """The matches of a pair or a problem; its own exact points are those of one structure."""
        exact = exact or {1: (found.exact1, found.exact2)}
        return cls(found.points1, found.points2, found.labels, found.judged, exact)


def of_problem(problem: Problem) -> Target:
    """Structures of a rendered scene; each exact match belongs to the one it has no residual to."""
    points, exact = (np.asarray(problem.exact1), np.asarray(problem.exact2)), {}
    for number, model in enumerate(problem.models, 1):
        rows = residuals(problem.kind, model, *points) < 1e-6
        if rows.sum() >= 8:
            exact[number] = points[0][rows], points[1][rows]
    return Target.of(problem, exact)


def labelled(half: str, per_cell: int) -> Iterator[Target]:
    """AdelaideRMF's planes: the reference is the least-squares fit to all labelled matches, not the truth."""
    for problem in (problem for problem in adelaide.labelled(half) if problem.kind == "homography"):
        exact = {}
        for number in range(1, int(problem.labels.max()) + 1):
            rows = problem.labels == number
            model = refit("homography", problem.points1[rows], problem.points2[rows]) if rows.sum() >= 8 else None
            if model is not None:
                exact[number] = problem.points1[rows], apply_homography(model, problem.points1[rows])
        yield Target.of(problem, exact)


def without_ratio(half: str, per_cell: int) -> Iterator[Target]:
    """Mutual nearest neighbours of SIFT on worn rendered pictures of one plane."""
    for seed in range(rendered.first_seed(half), rendered.first_seed(half) + 4 * per_cell):
        arrays = pictured("one plane", 1, seed)
        yield Target.of(matched("", "", arrays, "sift"), {1: (arrays["exact1"], arrays["exact2"])})


def moving(ratio: float | None, half: str, per_cell: int) -> Iterator[Target]:
    """SIFT on worn rendered pictures of static scenes."""
    return (Target.of(pair) for pair in posed(half, per_cell, ratio) if pair.motion != "rotation")


def drawn(family: str, half: str, per_cell: int) -> Iterator[Target]:
    """Matches drawn from rendered scenes, noise of 0.3 to 3 px."""
    return map(of_problem, rendered.drawn(family, half, per_cell))


def with_ratio(half: str, per_cell: int) -> Iterator[Target]:
    """SIFT on rendered pictures of one plane, ratio test."""
    return map(of_problem, rendered.pictures("sift", half, per_cell, ["one plane"]))


def known(scenes: tuple[str, ...], motions: tuple[str, ...], half: str, per_cell: int) -> Iterator[Target]:
    """Given matches of known geometry."""
    return map(Target.of, given(half, 5 * per_cell, scenes, motions))


def photographed(scenes: str, features: str, half: str, per_cell: int) -> Iterator[Target]:
    """Photographed pairs; the error is that on the hand-made validation points."""
    return map(Target.of, photos(scenes, features, half))


SETS: dict[str, tuple[str, Callable[[str, int], Iterator[Target]]]] = {
    "given, one plane": ("homography", partial(known, ("plane",), ("wide", "narrow", "forward"))),
    "given, rotation": ("homography", partial(known, RIGID, ("rotation",))),
    "drawn, one plane": ("homography", partial(drawn, "one plane")),
    "drawn, planes": ("homography", partial(drawn, "planes")),
    "SIFT, one plane": ("homography", with_ratio),
    "SIFT without ratio test, one plane": ("homography", without_ratio),
    "AdelaideRMF, planes": ("homography", labelled),
    **{
        f"photographed {scenes}, {features}": (kind, partial(photographed, scenes, features))
        for scenes, kind in KINDS.items()
        for features in ("given", "sift", "mutual")
    },
    "given, rigid": ("fundamental", partial(known, RIGID, ("wide", "narrow", "forward"))),
    "drawn, one rigid": ("fundamental", partial(drawn, "one rigid")),
    "SIFT, rigid": ("fundamental", partial(moving, RATIO)),
    "SIFT without ratio test, rigid": ("fundamental", partial(moving, None)),
}


def own(kind: str, threshold: float | None, points1: Points, points2: Points, seed: int) -> Found:
    """This package's estimate."""
    find = find_homography if kind == "homography" else find_fundamental_matrix
    model, mask = find(points1, points2, threshold=threshold, rng=seed)
    return model, mask.ravel() > 0


def of_variant(kind: str, variant: str, points1: Points, points2: Points, seed: int) -> Found:
    """The strongest structure or motion of a variant of the ablation."""
    result = run(all_variants()[variant], points1, points2, seed)
    models, labels = (result.models, result.labels) if kind == "homography" else (result.motions, result.motion_labels)
    numbers = [number for number, model in enumerate(models) if model.kind == kind]
    return (models[numbers[0]].matrix, labels == numbers[0]) if numbers else (None, np.zeros(len(points1), bool))


def one_of_variant(kind: str, variant: str, points1: Points, points2: Points, seed: int) -> Found:
    """The one model for one threshold with the numbers of a variant."""
    numbers, rng = replace(PARAMETERS, **all_variants()[variant].numbers), np.random.default_rng(seed)
    matrix = find_matrix(kind, MatchSet.of(points1, points2, numbers.unit), THRESHOLD, numbers, rng)
    if matrix is None:
        return None, np.zeros(len(points1), bool)
    return matrix, residuals(kind, matrix, points1, points2) <= THRESHOLD


def methods(kind: str, peers: bool, variant: str | None) -> dict[str, Estimator]:
    """All estimators of one kind of model by name."""
    flags = (*FLAGS, "RHO") if kind == "homography" else FLAGS
    ours: dict[str, Estimator] = {
        OURS: partial(own, kind, None),
        f"{OURS} {THRESHOLD:g} px": partial(own, kind, THRESHOLD),
    }
    if variant is not None:
        ours |= {f"strongest, {name}": partial(of_variant, kind, name) for name in (DEFAULT, variant)}
        ours[f"{THRESHOLD:g} px, {variant}"] = partial(one_of_variant, kind, variant)
    return ours | (estimators(kind, flags, THRESHOLD) if peers else {})


def judge(kind: str, target: Target, model: Matrix | None, mask: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Median error and its 95 % point on the structure that the model fits best, and F1 for the one that the mask fits best."""
    # "nearest", as between two infinite errors there is no number.
    errors = [model_errors(kind, model, *points) for points in target.exact.values()]
    found = [np.percentile(of, [50, 95], method="nearest") for of in errors]
    middle, high = min(found, key=lambda of: float(of[0]))
    rows, structures = target.judged, np.unique(target.labels[target.labels > 0])
    return middle, high, max(mask_quality(mask[rows], target.labels[rows] == number)["f1"] for number in structures)


def once(kind: str, target: Target, estimate: Estimator, seed: int) -> tuple[float, float, float, float]:
    """What :func:`judge` says of one run in the seed's order of matches, and its milliseconds."""
    order = np.random.default_rng(seed).permutation(len(target.labels))
    start = time.perf_counter()
    model, mask = estimate(target.points1[order], target.points2[order], seed)
    milliseconds = 1e3 * (time.perf_counter() - start)
    back = np.zeros(len(order), bool)
    back[order] = mask
    return *judge(kind, target, model, back), milliseconds


def measure(kind: str, targets: list[Target], estimators: dict[str, Estimator], seeds: range) -> str:
    """Run all methods and make the table."""
    rows = {
        name: np.array([[once(kind, target, estimate, seed) for seed in seeds] for target in targets])
        for name, estimate in estimators.items()
    }
    header = ["method", "median error (px)", f"below {PRECISE:g} px", f"95 % of points below {PRECISE:g} px"]
    header += ["error over ruzhash_cv's", "no model", "F1 of mask", "F1, ruzhash_cv minus this", "median ms"]
    lines = []
    for name, of in rows.items():
        error, high, f1, milliseconds = np.moveaxis(of, -1, 0)
        line = [name, f"{np.median(error):.3f}", f"{np.mean(error < PRECISE):.1%}", f"{np.mean(high < PRECISE):.1%}"]
        line += ["" if name == OURS else ratio(error, rows[OURS][..., 0]), f"{np.mean(np.isinf(error)):.1%}"]
        difference = "{:+.3f} ± {:.3f}".format(*paired_difference(rows[OURS][..., 2].mean(axis=1), f1.mean(axis=1)))
        line += [f"{f1.mean():.3f}", "" if name == OURS else difference, f"{np.median(milliseconds):.1f}"]
        lines.append(line)
    return markdown(header, lines)


def ratio(errors: NDArray[np.float64], reference: NDArray[np.float64]) -> str:
    """Geometric mean of the quotient of paired errors, and the factor that one standard error makes."""
    logs = [np.log(np.clip(of, *LIMITS)).mean(axis=1) for of in (errors, reference)]
    mean, error = paired_difference(*logs)
    return f"{np.exp(mean):.2f} ×÷ {np.exp(error):.2f}"


def main() -> None:
    """Measure every set of one half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each problem")
    parser.add_argument("--per-cell", type=int, default=1, help="problems of each cell of a set")
    parser.add_argument("--set", nargs="+", default=list(SETS), help="names or their beginnings; default all")
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    parser.add_argument(
        "--beside",
        choices=all_variants(),
        metavar="NAME",
        help="a variant of the ablation, and the strongest model without it",
    )
    options = parser.parse_args()
    first = 10_000 if options.half == "judge" else 0
    chosen = [name for name in SETS if any(name.startswith(start) for start in options.set)]
    if not chosen:
        raise SystemExit(f"no set {' '.join(options.set)!r}; there are: {', '.join(SETS)}")
    print(about_this_run())
    for name in chosen:
        kind, make = SETS[name]
        targets = list(make(options.half, options.per_cell))
        if not targets:  # its files are not here
            continue
        chosen_methods = methods(kind, not options.no_peers, options.beside)
        table = measure(kind, targets, chosen_methods, range(first, first + options.seeds))
        print(f"\n### {name} ({kind}): {len(targets)} problems, {options.seeds} seeds\n\n{table}", flush=True)


if __name__ == "__main__":
    main()
