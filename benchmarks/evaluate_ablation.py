"""Ablation: what accuracy and time cost or gain where one part of the method is left out or replaced. Tuning halves only."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measures import mask_quality, roc_auc
from problems import Problem
from report import about_this_run, markdown
from suites import problems

from ruzhash_cv import filter_points, filtering, mask, schedule, scoring, search, selection
from ruzhash_cv.places import votes_of
from ruzhash_cv.search import Search

SUITES = ("adelaidermf", "one-plane", "planes", "one-rigid", "motions")
Change = Callable[[ExitStack], None]


def replaced(**values: Any) -> Change:
    """Other values of names in the stages from the search to the filter."""

    def change(stack: ExitStack) -> None:
        for name, value in values.items():
            # `filtering` before `mask`, whose functions it calls by names of its own.
            module = next(
                room for room in (schedule, search, selection, scoring, filtering, mask) if hasattr(room, name)
            )
            stack.enter_context(patch.object(module, name, value))

    return change


def method(name: str, function: Callable[..., Any]) -> Change:
    """Another method of the search."""

    def change(stack: ExitStack) -> None:
        stack.enter_context(patch.object(Search, name, function))

    return change


def forest(**options: Any) -> Change:
    """Another forest."""
    return replaced(RuzHashForest=partial(scoring.RuzHashForest, **options))


class NoForest:
    """Every match is as isolated as every other: agreement alone ranks them."""

    def __init__(self, **options: Any) -> None:
        pass

    def fit_anomaly_scores(self, rows: Any) -> np.ndarray:
        """Ones."""
        return np.ones(rows.shape[0])

    anomaly_scores = fit_anomaly_scores


def unweighted(self: Search, *arguments: Any, found: Any = Search.weigh) -> Any:
    """All models weigh the same."""
    weights, *rest = found(self, *arguments)
    return np.ones_like(weights), *rest


def counting_itself(self: Search, *arguments: Any, found: Any = Search._sample) -> Any:
    """Matches agree with models they made themselves."""
    bank = found(self, *arguments)
    bank.makers[:] = -1
    return bank


def beside_their_rings(stack: ExitStack) -> None:
    """Planes need not stand out from a crowd, but from their rings."""
    contrasts = tuple((ring, (0.0, 0.0)) for ring, _ in selection.CONTRASTS)
    stack.enter_context(patch.object(filtering, "Limits", partial(selection.Limits, contrasts=contrasts)))


def no_repetitions(points: Any, distances: np.ndarray, *_: Any) -> tuple[np.ndarray, ...]:
    """No structure is a repetition of another."""
    n, k = distances.shape
    return np.zeros(k, bool), np.ones(n, bool), np.zeros(n, bool)


# What is changed, how, and the options of `filter_points`.
VARIANTS: dict[str, tuple[Change | None, dict[str, Any]]] = {
    "default": (None, {}),
    "homographies only": (None, {"model": "homography"}),
    "fundamental matrices only": (None, {"model": "fundamental"}),
    "uniform samples": (replaced(NEIGHBOURHOODS=(0,)), {}),
    "one size of neighbourhood, 25": (replaced(NEIGHBOURHOODS=(25,)), {}),
    "one draw for each sample": (replaced(N_CANDIDATES=1), {}),
    "half the local samples": (replaced(N_LOCAL=120), {}),
    "twice the local samples": (replaced(N_LOCAL=480), {}),
    "nothing is sampled among what is left": (replaced(MOST_GLEANINGS=0), {}),
    "both families at once": (replaced(FEWEST_OFF_PLANES=(-np.inf, 0.95)), {}),
    "a keypoint may have many votes": (replaced(votes_of=lambda places, keypoints: votes_of(places)), {}),
    "and many partners": (replaced(lost_to_rivals=lambda *_: np.zeros(0, np.int64)), {}),
    "one round of samples": (replaced(MOST_ROUNDS=1), {}),
    "neighbourhoods not guided in later rounds": (replaced(LATER=schedule.MOST_ROUNDS), {}),
    "samples not guided by quality": (method("_guide", lambda self, quality, strictness: self.votes), {}),
    "matches agree with models they made": (method("_sample", counting_itself), {}),
    "no significance weights": (method("weigh", unweighted), {}),
    "no local optimisation": (method("_refit", lambda self, bank: bank), {}),
    "one closing radius, 9 px": (replaced(CLOSING_RADII=(9.0,)), {}),
    "fundamental matrices stay where planes explain them": (replaced(NATS_BEYOND_PLANES=-1.0), {}),
    "planes instead of them keep the radii they have there": (replaced(FEWEST_NATS_AMONG_ALL=np.inf), {}),
    "planes need not stand out from a crowd": (beside_their_rings, {}),
    "repetitions stay": (replaced(tell_repetitions=no_repetitions), {}),
    "planes that hold much by little suffice": (replaced(FEWEST_NATS_OF_PLANES=0.0), {}),
    "no columns of structures": (replaced(STRUCTURE_WEIGHTS=np.zeros(2)), {}),
    "path length alone": (replaced(AGREEMENT_SHARE=0.0), {}),
    "weighted row sum alone, no forest": (replaced(RuzHashForest=NoForest), {}),
    "the paper's credit in the sink": (forest(sink_credit=True), {}),
    "b = 2": (forest(branching_factor=2), {}),
    "b = 64": (forest(branching_factor=64), {}),
    "100 trees": (replaced(N_TREES=100), {}),
    "decoys of any matches": (replaced(PRIOR_MATCHES=np.inf), {}),
    "how near structures are does not count": (replaced(NEARNESS_SHARES=np.zeros(2)), {}),
    "mask: crowds are not looked for": (replaced(CROWD_RATE=1.0), {}),
    "mask: few matches far from a plane stay": (replaced(FAR_SHARE=0.0), {}),
    "mask: structures alone": (replaced(SURE_LEVEL=0.0, SLIDING_LEVEL=1.0, PLANAR_LEVEL=1.0, FAR_SHARE=0.0), {}),
    "mask: p <= 0.01": (None, {"false_acceptance_rate": 0.01}),
    "mask: p <= 0.05": (None, {"false_acceptance_rate": 0.05}),
}  # fmt: skip


@contextmanager
def changed(change: Change | None) -> Iterator[None]:
    """Within this context the package is the variant."""
    with ExitStack() as stack:
        if change is not None:
            change(stack)
        yield


def run(found: list[Problem], options: dict[str, Any], seeds: int) -> dict[str, dict[str, float]]:
    """Mean AUC and F1 and median milliseconds of each suite."""
    rows: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for problem in found:
        for seed in range(seeds):
            start = time.perf_counter()
            result = filter_points(problem.points1, problem.points2, rng=seed, **options)
            milliseconds = 1e3 * (time.perf_counter() - start)
            true = problem.labels > 0
            f1 = mask_quality(result.inlier_mask, true)["f1"]
            rows[problem.suite].append((roc_auc(result.anomaly_scores, ~true), f1, milliseconds))
    means = {suite: np.array(values) for suite, values in rows.items()}
    return {
        suite: {"auc": values[:, 0].mean(), "f1": values[:, 1].mean(), "ms": float(np.median(values[:, 2]))}
        for suite, values in means.items()
    }


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """One line for each variant: AUC and F1 of each suite, and the median time over AdelaideRMF."""
    suites = list(next(iter(results.values())))
    lines = []
    for name, of_suite in results.items():
        cells = [f"{of_suite[suite]['auc']:.4f} / {of_suite[suite]['f1']:.4f}" for suite in suites]
        lines.append([name, *cells, f"{of_suite[suites[0]]['ms']:.0f}"])
    return markdown(["AUC / F1", *suites, "ms"], lines)


def main() -> None:
    """Run, store, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    found = list(problems(list(SUITES), "tune", options.per_cell))
    results = {}
    for name, (change, arguments) in VARIANTS.items():
        with changed(change):
            results[name] = run(found, arguments, options.seeds)
        print(name, file=sys.stderr)
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "ablation.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["variant", "suite", "auc", "f1", "ms"])
        for name, of_suite in results.items():
            writer.writerows([name, suite, *(f"{x:.5g}" for x in row.values())] for suite, row in of_suite.items())
    print(about_this_run({}), table(results), sep="\n\n")


if __name__ == "__main__":
    main()
