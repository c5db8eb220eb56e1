"""How much of a result depends on the seed: 20 drawn scenes x 20 seeds, for the default and for variants of its numbers.

    python benchmarks/evaluate_seeds.py
    python benchmarks/evaluate_seeds.py --variants default "mean of 3 seeds" "samples x 4" "trees and decoys x 4"

Prints for each variant: verdicts against the majority of a match's verdicts, matches whose verdict ever changes, F1 of the scene in
which it varies most, the mean of these ranges and of F1, and processor time as a ratio to the first variant, measured in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from measures import mask_quality
from numpy.typing import NDArray
from rendered import STRUCTURES, build
from rendering import Correspondences, draw_correspondences
from report import about_this_run, markdown

from ruzhash_cv.filtering import Options, families_of, run
from ruzhash_cv.parameters import PARAMETERS, Parameters

N_MATCHES, NOISE, RATES = 300, 1.0, (0.2, 0.4, 0.5, 0.6, 0.7)
FIRST_SEED = 500
"""Of the scenes, beside those of the suites."""


def scaled(factor: int, *names: str) -> Parameters:
    """The numbers of the method with some of them larger."""
    return replace(PARAMETERS, **{name: factor * getattr(PARAMETERS, name) for name in names})


VARIANTS = {
    "default": PARAMETERS,
    "samples x 2": scaled(2, "plane_samples", "motion_samples"),
    "samples x 4": scaled(4, "plane_samples", "motion_samples"),
    "motion samples and refits x 4": scaled(4, "motion_samples", "n_refits"),
    "decoys x 4": scaled(4, "n_decoys"),
    "trees x 4": scaled(4, "n_trees"),
    "trees and decoys x 4": scaled(4, "n_trees", "n_decoys"),
    "all x 4": scaled(4, "plane_samples", "motion_samples", "n_refits", "n_trees", "n_decoys"),
}
MEANS = {"mean of 3 seeds": 3, "mean of 5 seeds": 5}
"""Probabilities averaged over so many seeds decide, in place of one seed's."""
VARIANTS |= dict.fromkeys(MEANS, PARAMETERS)


def scenes() -> list[Correspondences]:
    """Five scenes of each family, one for each mismatch rate."""
    return [
        draw_correspondences(
            build(family, choices[seed % len(choices)], FIRST_SEED + seed),
            N_MATCHES,
            mismatch_rate=rate,
            noise=NOISE,
            rng=FIRST_SEED + seed,
        )
        for family, choices in STRUCTURES.items()
        for seed, rate in enumerate(RATES)
    ]


@dataclass(frozen=True)
class Varied:
    """The masks (n_seeds, n) of a scene, which matches (n,) are true, and the processor seconds of a call."""

    masks: NDArray[np.bool_]
    true: NDArray[np.bool_]
    seconds: float

    @property
    def shares(self) -> NDArray[np.float64]:
        """How often each match is kept."""
        return np.asarray(self.masks.mean(axis=0))

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 for each seed."""
        return np.array([mask_quality(mask, self.true)["f1"] for mask in self.masks])


def varied(drawn: Correspondences, parameters: Parameters, n_seeds: int, n_means: int = 1) -> Varied:
    """The masks of a scene for each seed, or each `n_means` seeds."""
    given, since = (families_of("auto"), parameters, Options()), time.process_time()
    probabilities = [
        run(drawn.points1, drawn.points2, *given, np.random.default_rng(seed)).inlier_probabilities
        for seed in range(n_seeds * n_means)
    ]
    masks = np.reshape(probabilities, (n_seeds, n_means, -1)).mean(axis=1) > 0.5
    return Varied(masks, drawn.labels > 0, (time.process_time() - since) / n_seeds)


def row(name: str, found: Sequence[Varied], seconds: float) -> list[str]:
    """A line of the table."""
    shares = np.concatenate([each.shares for each in found])
    against, ever = np.minimum(shares, 1.0 - shares).mean(), ((shares > 0.0) & (shares < 1.0)).mean()
    f1 = np.array([each.f1 for each in found])
    ranges = np.ptp(f1, axis=1)
    worst = f1[int(np.argmax(ranges))]
    told = [f"{100 * against:.2f}", f"{100 * ever:.2f}", f"{worst.min():.3f} to {worst.max():.3f}"]
    return [
        name,
        *told,
        f"{ranges.mean():.4f}",
        f"{f1.mean():.4f}",
        f"{sum(each.seconds for each in found) / seconds:.2f}",
    ]


def main() -> None:
    """Print a line for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=["default"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--every", type=int, default=1, help="only one scene of so many")
    options = parser.parse_args()
    found: dict[str, list[Varied]] = {name: [] for name in options.variants}
    for drawn in scenes()[:: options.every]:
        varied(drawn, PARAMETERS, 1)  # kernels are there
        for name in options.variants:
            found[name].append(varied(drawn, VARIANTS[name], options.seeds, MEANS.get(name, 1)))
    seconds = sum(each.seconds for each in found[options.variants[0]])
    head = ["", "against the majority, %", "ever changes, %", "F1 where it varies most", "mean range", "F1", "time"]
    print(markdown(head, [row(name, told, seconds) for name, told in found.items()]), about_this_run(), sep="\n\n")


if __name__ == "__main__":
    main()
