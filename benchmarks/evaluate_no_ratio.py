"""Masks of mutual nearest neighbours without a ratio test, with and without what the keypoints know besides their places."""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from measures import mask_quality, paired_difference
from numpy.typing import NDArray
from optional_peers import _module
from peers import ABSENT, all_peers
from pictured import RATIO, Matched, unfiltered
from report import about_this_run, markdown

from ruzhash_cv import filter_points

Mask: TypeAlias = NDArray[np.bool_]
Method = Callable[[Matched, int], Mask]
OURS = "ruzhash_cv"
#: Told which model is right, where there is one; the general ones need not be told.
PEERS = ("H USAC_MAGSAC", "F USAC_MAGSAC", "H poselib", "F poselib", "sequential H poselib", "LPM", "AdaLAM")
#: Names of this package's variants -> the arguments they add.
EXTRAS: dict[str, tuple[str, ...]] = {
    "sizes, angles": ("sizes", "angles"),
    "sizes": ("sizes",),
    "angles": ("angles",),
    "match_quality": ("match_quality",),
    "sizes, angles, match_quality": ("sizes", "angles", "match_quality"),
}


def keypoint_arguments(found: Matched, names: tuple[str, ...], rows: Any = slice(None)) -> dict[str, Any]:
    """What `filter_points` takes besides the points; the quality is the ratio, low = good."""
    sizes, angles = (tuple(side[rows] for side in of) for of in (found.sizes, found.angles))
    given = {"sizes": sizes, "angles": angles, "match_quality": found.ratio[rows]}
    return {name: given[name] for name in names}


def own(names: tuple[str, ...]) -> Method:
    """This package with these further arguments."""

    def run(found: Matched, seed: int) -> Mask:
        arguments = keypoint_arguments(found, names)
        return np.asarray(filter_points(found.points1, found.points2, rng=seed, **arguments).inlier_mask)

    return run


def passing(found: Matched, seed: int) -> Mask:
    """Lowe's ratio test alone."""
    return found.ratio < RATIO


def own_after_ratio(found: Matched, seed: int) -> Mask:
    """The ratio test, then this package on what passes."""
    mask = passing(found, seed)
    mask[mask] = filter_points(found.points1[mask], found.points2[mask], rng=seed).inlier_mask
    return mask


def adalam_of(adalam: Any, torch: Any) -> Method:
    """AdaLAM as its authors use it: orientations, scales, and the ratio to choose seeds by."""

    def run(found: Matched, seed: int) -> Mask:
        first, second = (torch.as_tensor(points, dtype=torch.float32) for points in (found.points1, found.points2))
        angles, sizes = (
            [torch.as_tensor(side, dtype=torch.float32) for side in of] for of in (found.angles, found.sizes)
        )
        config = adalam.get_adalam_default_config() | {"force_seed_mnn": False}
        keypoints = {"o1": angles[0], "o2": angles[1], "s1": sizes[0], "s2": sizes[1]}
        ratio = torch.as_tensor(found.ratio, dtype=torch.float32)
        kept = adalam.AdalamFilter(config).filter_matches(first, second, torch.arange(len(ratio)), ratio, **keypoints)
        mask = np.zeros(len(ratio), bool)
        mask[kept[:, 0].numpy()] = True
        return mask

    return run


def methods(peers: bool) -> dict[str, Method]:
    """All methods by name; what this version of the package does not take is left out and named in ABSENT."""
    chosen: dict[str, Method] = {OURS: own(())}
    accepted = inspect.signature(filter_points).parameters
    for name, arguments in EXTRAS.items():
        missing = [argument for argument in arguments if argument not in accepted]
        if missing:
            ABSENT[f"{OURS} with {name}"] = f"filter_points takes no `{missing[0]}`"
        else:
            chosen[f"{OURS} with {name}"] = own(arguments)
    chosen |= {f"ratio test {RATIO}, then {OURS}": own_after_ratio, f"ratio test {RATIO}": passing}
    chosen["keep everything"] = lambda found, seed: np.ones(len(found.ratio), bool)
    if not peers:
        return chosen
    available = all_peers()
    for name in PEERS:
        if name in available:
            chosen[name] = lambda found, seed, peer=available[name]: peer(found.points1, found.points2, seed).mask
    torch = _module("torch", "AdaLAM with sizes, angles, ratio")
    adalam = torch and _module("kornia.feature.adalam.adalam", "AdaLAM with sizes, angles, ratio")
    if adalam:
        chosen["AdaLAM with sizes, angles, ratio"] = adalam_of(adalam, torch)
    return chosen


def measure(problems: list[Matched], chosen: dict[str, Method], seeds: range) -> dict[str, NDArray[np.float64]]:
    """Method -> precision, recall, F1 and ms of each problem, means over seeds."""
    rows: dict[str, list[list[float]]] = {name: [] for name in chosen}
    for found in problems:
        true = found.labels[found.judged] > 0
        for name, method in chosen.items():
            runs = []
            for seed in seeds:
                start = time.perf_counter()
                mask = method(found, seed)
                milliseconds = 1e3 * (time.perf_counter() - start)
                quality = mask_quality(mask[found.judged], true)
                runs.append([quality["precision"], quality["recall"], quality["f1"], milliseconds])
            rows[name].append(np.mean(runs, axis=0).tolist())
    return {name: np.array(of) for name, of in rows.items()}


def table(rows: dict[str, NDArray[np.float64]], suites: NDArray[np.str_]) -> str:
    """Means over all problems and F1 by suite, each method's F1 paired with that of this package without extras."""
    names = list(dict.fromkeys(suites.tolist()))
    short = [name.split(" on ")[1] for name in names]
    header = ["method", "F1", "precision", "recall", "median ms", "F1, this minus ruzhash_cv", *short]
    lines = []
    for method, of in rows.items():
        line = [method, *(f"{of[:, column].mean():.3f}" for column in (2, 0, 1)), f"{np.median(of[:, 3]):.1f}"]
        difference = "{:+.3f} ± {:.3f}".format(*paired_difference(of[:, 2], rows[OURS][:, 2]))
        line.append("" if method == OURS else difference)
        for name in names:
            own_rows = suites == name
            change, error = paired_difference(of[own_rows, 2], rows[OURS][own_rows, 2])
            paired = "" if method == OURS else f" ({change:+.3f} ± {error:.3f})"
            line.append(f"{of[own_rows, 2].mean():.3f}{paired}")
        lines.append(line)
    return markdown(header, lines)


def main() -> None:
    """Compare all methods on the matches of one half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each problem")
    parser.add_argument("--per-cell", type=int, default=4, help="rendered pairs of each family")
    parser.add_argument("--features", nargs="+", default=["sift", "orb"], choices=["sift", "orb"])
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    options = parser.parse_args()
    first = 10_000 if options.half == "judge" else 0
    chosen = methods(peers=not options.no_peers)
    print(about_this_run(ABSENT))
    for features in options.features:
        problems = list(unfiltered(options.half, options.per_cell, features))
        suites = np.array([found.suite for found in problems])
        rates = np.array([np.mean(found.labels[found.judged] == 0) for found in problems])
        rows = measure(problems, chosen, range(first, first + options.seeds))
        title = f"{features}: {len(problems)} pairs, {rates.mean():.0%} of the matches wrong, {options.seeds} seeds"
        print(f"\n### {title}\n\n{table(rows, suites)}", flush=True)


if __name__ == "__main__":
    main()
