"""The slowest of many random scenes, in seconds of processor time, for each `model`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from geometry import Points
from rendered import STRUCTURES, build
from rendering import draw_correspondences
from report import about_this_run, markdown

from ruzhash_cv import filter_points

MODELS = ("auto", "homography", "fundamental")
MISMATCHES = ("uniform", "nearby", "repeated", "nothing else")
N_MATCHES = (20, 5000)  # log-uniform
NOISE = (0.3, 3.0)  # pixels, log-uniform
N_LAYOUTS = 20  # scenes of each family that matches are drawn from: to build one takes longer than to filter it


class Scene(NamedTuple):
    """Matches and how they came about."""

    seed: int
    family: str
    mismatches: str
    mismatch_rate: float
    points1: Points
    points2: Points


def scene(seed: int) -> Scene:
    """Matches of a random kind: mismatches anywhere, crowding around true positions, periods of a texture off, or no true match."""
    rng = np.random.default_rng(seed)
    family, kind = str(rng.choice(list(STRUCTURES))), MISMATCHES[seed % len(MISMATCHES)]
    structures = int(rng.choice(STRUCTURES[family]))
    n = round(np.exp(rng.uniform(*np.log(N_MATCHES))))
    rate = 1.0 if kind == "nothing else" else round(float(rng.uniform(0.05, 0.95)), 2)
    drawn = draw_correspondences(
        build(family, structures, int(rng.integers(N_LAYOUTS))),
        n,
        mismatch_rate=rate,
        noise=float(np.exp(rng.uniform(*np.log(NOISE)))),
        mismatches="uniform" if kind == "nothing else" else kind,
        rng=rng,
    )
    return Scene(seed, family, kind, rate, drawn.points1, drawn.points2)


def seconds(of: Scene, model: str) -> float:
    """Processor time of one call on one thread."""
    start = time.process_time()
    filter_points(of.points1, of.points2, model=model, n_jobs=1)
    return time.process_time() - start


def timed(n_scenes: int, models: list[str]) -> Iterator[tuple[float, str, Scene]]:
    """Seconds of every scene and model."""
    for model in models:  # kernels are loaded before the clock runs
        seconds(scene(0), model)
    for seed in range(n_scenes):
        made = scene(seed)
        for model in models:
            yield seconds(made, model), model, made
        print(f"\r{seed + 1} scenes", end="", file=sys.stderr)
    print(file=sys.stderr)


def main() -> None:
    """Time all, print the worst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=300)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--worst", type=int, default=5, help="how many of each model are printed")
    parser.add_argument("--repeats", type=int, default=3, help="further calls of these; the fastest counts")
    options = parser.parse_args()
    rows = list(timed(options.scenes, options.models))
    print(about_this_run({}), end="\n\n")
    for model in options.models:
        own = sorted((row for row in rows if row[1] == model), key=lambda row: -row[0])
        times = np.array([row[0] for row in own])
        slowest = []
        for first, _, made in own[: options.worst]:
            slowest.append((min([first, *(seconds(made, model) for _ in range(options.repeats))]), made))
        lines = [
            [
                made.family,
                made.mismatches,
                f"{made.mismatch_rate:.0%}",
                str(len(made.points1)),
                str(made.seed),
                f"{taken:.3f}",
            ]
            for taken, made in sorted(slowest, key=lambda row: -row[0])
        ]
        summary = f"median {np.median(times):.3f} s, 99 in 100 within {np.quantile(times, 0.99):.3f} s"
        print(f"model={model!r}, {len(own)} scenes: {summary}; the slowest:\n")
        print(markdown(["scene", "mismatches", "mismatch rate", "matches", "seed", "seconds"], lines), end="\n\n")


if __name__ == "__main__":
    main()
