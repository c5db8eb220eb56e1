"""``ruzhash-cv demo``: this package beside OpenCV's RANSAC and MAGSAC on bundled image pairs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import cv2
import numpy as np

from ruzhash_cv.cli.common import RATIO, Commands, InputError, file, say, write_picture
from ruzhash_cv.cli.filter import match_images
from ruzhash_cv.drawing import draw_matches, draw_scores, draw_structures
from ruzhash_cv.drawing.canvas import titled
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.opencv import find_fundamental_matrix, find_homography
from ruzhash_cv.pipelines.files import as_unusable

if TYPE_CHECKING:
    from ruzhash_cv.datasets import ImagePair

#: Pixels. OpenCV's functions get the one that is best on the pair, as only its truth can say.
THRESHOLDS = 1.0, 2.0, 3.0, 5.0, 12.0
#: Of MAGSAC. RANSAC has OpenCV's defaults.
MANY = {"maxIters": 100_000, "confidence": 0.9999}
#: Inliers that one more homography in turn needs.
FEWEST = 15
#: Differences of F1 below it are ties, and how many times as fast OpenCV must be for a tie to be in its favour.
TIE, FASTER = 0.01, 10.0
FIND: dict[str, Callable[..., Any]] = {"homography": find_homography, "fundamental": find_fundamental_matrix}
OURS, TURN = "filter_points", "cv2.USAC_MAGSAC homographies in turn"
Points: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True)
class Case:
    """A bundled pair, what it shows, the model of most of its matches, and how they were matched and are judged."""

    pair: str
    shows: str
    model: str = "fundamental"
    in_turn: bool = False
    matched: str = "ratio"
    within: float = 3.0


CASES = {
    "facade": Case("facade", "Five planes of a static scene. One fundamental matrix fits all.", in_turn=True),
    "desk": Case("desk", "The camera, two books and two boxes moved. One matrix has one motion, and loses the others.", in_turn=True),
    "rigid": Case("rigid", "One rigid scene of many small faces. One fundamental matrix is enough."),
    "plane": Case("plane", "One plane of repeated windows. One homography removes windows matched one off.", "homography"),
    "learned": Case("desk", "The desk matched by XFeat, mutual nearest neighbours.", in_turn=True, matched="xfeat", within=5.0),
    "wrong": Case("rigid", "The rigid scene, the second picture dim and noisy, no ratio test. One matrix only.", matched="dim"),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What a method keeps of a pair: F1, also at its worst threshold, the time, and the best threshold if it takes one."""

    mask: Mask
    f1: float
    worst: float
    seconds: float
    threshold: float | None = None


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    words = "compare with OpenCV's RANSAC and MAGSAC on bundled image pairs"
    description = f"{words[0].upper()}{words[1:]}; draw what each makes of them."
    parser = commands.add_parser("demo", help=words, description=description)
    folder = Path("ruzhash_cv_demo")
    words = f"where pictures go, default {folder}"
    parser.add_argument("-o", "--output", type=file, default=folder, metavar="DIR", help=words)
    parser.add_argument("--pair", action="append", metavar="NAME", help="only this pair, e.g. desk; may be repeated")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compare with OpenCV on the bundled pairs."""
    names = options.pair or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        raise InputError(f"there is no pair {unknown[0]!r}; the bundled ones are {', '.join(CASES)}")
    with as_unusable(f"cannot make the directory {options.output}"):
        options.output.mkdir(parents=True, exist_ok=True)
    listed = ", ".join(f"{threshold:g}" for threshold in THRESHOLDS)
    print(
        f"SIFT, ratio test {RATIO}, unless a pair says otherwise. OpenCV's functions have the best of {listed} px on each pair, which "
        "only the truth tells; `lowest` is F1 at the worst one. MAGSAC may take 100,000 iterations, RANSAC its default. In turn: fit, "
        "remove the inliers, repeat. ms: processor time."
    )
    found = {name: _compare(name, CASES[name], options.output) for name in names}
    _print_totals(found)
    say(f"pictures are in {options.output}")


def _compare(name: str, case: Case, folder: Path) -> dict[str, Row]:
    """Print a row for every method, and draw what this package and the better MAGSAC made of the pair."""
    pair, points = _matched(case)
    truth = pair.labels(*points, tolerance=case.within) >= 0
    print(f"\n{name}: {case.shows}\n{len(truth)} matches, {truth.mean():.0%} true (within {case.within:g} px)")
    print(f"{'':38} best px  kept  wrong  recall     F1  lowest      ms")
    result = filter_points(*points)  # a process's first call is slower
    rows = {}
    for method, (call, thresholds) in _methods(case).items():
        rows[method] = _best([_judged(partial(call, *points, each), truth, each) for each in thresholds])
        _print_row(method, rows[method], truth)
    print(_verdict(rows))
    magsac = max((method for method in rows if "MAGSAC" in method), key=lambda method: rows[method].f1)
    drawn = pair.img1, points[0], pair.img2, points[1], None
    title = f"{magsac}, {rows[magsac].threshold:g} px, F1 {rows[magsac].f1:.3f}"
    pictures = {
        "": (draw_matches(*drawn, result), f"ruzhash_cv, F1 {rows[OURS].f1:.3f}: kept and flagged matches"),
        "_structures": (draw_structures(*drawn, result), "ruzhash_cv: kept matches by motion and plane"),
        "_scores": (draw_scores(*drawn, result), "ruzhash_cv: anomaly scores"),
        "_magsac": (draw_matches(*drawn, rows[magsac].mask), title),
    }
    for suffix, (picture, words) in pictures.items():
        write_picture(folder / f"{name}{suffix}.jpg", titled(picture, words))
    return rows


def _matched(case: Case) -> tuple[ImagePair, Points]:
    """Return the pictures of a pair and the points of its matches."""
    from ruzhash_cv.datasets import load_pair
    from ruzhash_cv.datasets.pairs import data_folder

    pair = load_pair(case.pair)
    if case.matched == "xfeat":
        with np.load(data_folder() / f"{case.pair}_xfeat.npz") as arrays:
            points = arrays["sixteenths"] / 16.0
        return pair, (points[:, :2], points[:, 2:])
    if case.matched == "dim":
        dim = 40 + 0.5 * cv2.GaussianBlur(pair.img2, (0, 0), 1.2)
        noisy = dim + np.random.default_rng(0).normal(0, 10, dim.shape)
        pair = replace(pair, img2=np.clip(noisy, 0, 255).astype(np.uint8))
    ratio = RATIO if case.matched == "ratio" else np.inf
    first, second, matches = match_images((pair.img1, pair.img2), ("1", "2"), ratio=ratio)
    return pair, (first.points[matches[:, 0]], second.points[matches[:, 1]])


def _methods(case: Case) -> dict[str, tuple[Callable[..., Mask], tuple[float | None, ...]]]:
    """Return the methods of a pair by name, with the thresholds of those that need one."""
    find = FIND[case.model]
    methods: dict[str, tuple[Callable[..., Mask], tuple[float | None, ...]]] = {
        OURS: (lambda first, second, _: filter_points(first, second).inlier_mask, (None,)),
        find.__name__: (lambda first, second, _: find(first, second)[1].reshape(-1) > 0, (None,)),
        f"cv2.RANSAC {case.model}": (partial(_opencv, case.model, cv2.RANSAC), THRESHOLDS),
        f"cv2.USAC_MAGSAC {case.model}": (partial(_opencv, case.model, cv2.USAC_MAGSAC, **MANY), THRESHOLDS),
    }
    return methods | ({TURN: (_in_turn, THRESHOLDS)} if case.in_turn else {})


def _opencv(family: str, method: int, points1: Array, points2: Array, threshold: float, /, **options: float) -> Mask:
    """Return OpenCV's inlier mask; empty on failure, where OpenCV leaves it uninitialised."""
    cv2.setRNGSeed(0)
    estimate: Any = cv2.findHomography if family == "homography" else cv2.findFundamentalMat
    matrix, mask = estimate(points1, points2, method, threshold, **options)
    return np.zeros(len(points1), bool) if matrix is None or mask is None else np.asarray(mask.reshape(-1) > 0)


def _in_turn(points1: Array, points2: Array, threshold: float) -> Mask:
    """Return the inliers of homographies that MAGSAC fits in turn to the matches that are left."""
    kept = np.zeros(len(points1), bool)
    while np.count_nonzero(~kept) >= FEWEST:
        left = np.flatnonzero(~kept)
        mask = _opencv("homography", cv2.USAC_MAGSAC, points1[left], points2[left], threshold, **MANY)
        if np.count_nonzero(mask) < FEWEST:
            break
        kept[left[mask]] = True
    return kept


def _judged(call: Callable[[], Mask], truth: Mask, threshold: float | None) -> Row:
    """Time a method and judge its mask."""
    since = time.process_time()
    mask = call()
    seconds = time.process_time() - since
    f1 = 2 * int((mask & truth).sum()) / max(int(mask.sum() + truth.sum()), 1)
    return Row(mask, f1, f1, seconds, threshold)


def _best(rows: list[Row]) -> Row:
    """Return the row of the best threshold, with the F1 of the worst one."""
    return replace(max(rows, key=lambda row: row.f1), worst=min(row.f1 for row in rows))


def _print_row(method: str, row: Row, truth: Mask) -> None:
    """Print one row of the demo's tables."""
    both, kept = int((row.mask & truth).sum()), int(row.mask.sum())
    chosen, lowest = ("-", "-") if row.threshold is None else (f"{row.threshold:g}", f"{row.worst:.3f}")
    print(
        f"  {method:36} {chosen:>7} {kept:5} {kept - both:6} {both / max(int(truth.sum()), 1):7.3f} {row.f1:6.3f} {lowest:>7}"
        f" {1000 * row.seconds:7.1f}",
        flush=True,
    )


def _gain(rows: dict[str, Row]) -> tuple[float, float, str]:
    """Return by how much F1 of `filter_points` is above OpenCV's best row, how many times as long it takes, and which row that is."""
    best = max((method for method in rows if method.startswith("cv2")), key=lambda method: rows[method].f1)
    return round(rows[OURS].f1 - rows[best].f1, 3), rows[OURS].seconds / max(rows[best].seconds, 1e-9), best


def _verdict(rows: dict[str, Row]) -> str:
    """Say in a sentence what an OpenCV user gains or loses."""
    gain, times, best = _gain(rows)
    pace = f"takes {times:.{int(times < 10)}f} times as long" if times >= 1 else f"is {1 / times:.1f} times as fast"
    if abs(gain) < TIE:
        return f"A tie with {best} at its best threshold. {OURS} needs no threshold, and {pace}."
    find = list(rows)[1]
    too = f" {find} is as good." if gain < 0 and rows[find].f1 > rows[best].f1 - TIE else ""
    at_best = f"{best} at its best threshold"
    return f"{OURS} {'gains' if gain > 0 else 'loses'} {abs(gain):.3f} against {at_best}, and {pace}.{too}"


def _print_totals(found: dict[str, dict[str, Row]]) -> None:
    """Print means over the pairs, and for which pairs which call is the better one."""
    columns = [list(rows.values()) for rows in found.values()]
    best = [
        max((row for method, row in rows.items() if "MAGSAC" in method), key=lambda row: row.f1)
        for rows in found.values()
    ]
    means = {
        OURS: [rows[0] for rows in columns],
        "find_*, one matrix": [rows[1] for rows in columns],
        "cv2.RANSAC, one matrix": [rows[2] for rows in columns],
        "cv2.USAC_MAGSAC, one matrix": [rows[3] for rows in columns],
        "cv2.USAC_MAGSAC, the better of both": best,
    }
    print(f"\n{'mean of the pairs':42} F1  lowest      ms")
    for name, rows in means.items():
        f1, worst, seconds = (np.mean([getattr(row, field) for row in rows]) for field in ("f1", "worst", "seconds"))
        print(f"  {name:36} {f1:7.3f} {worst:7.3f} {1000 * seconds:7.1f}")
    uses: dict[str, list[str]] = {
        f"use {OURS}": [],
        f"a tie, and {OURS} needs no threshold": [],
        "a tie, and OpenCV is much faster, if you know model and threshold": [],
        "use OpenCV, if you know the threshold": [],
    }
    for name, of_pair in found.items():
        gain, times, _ = _gain(of_pair)
        use = 0 if gain >= TIE else 3 if gain <= -TIE else 1 + (times >= FASTER)
        list(uses.values())[use].append(f"{name} ({gain:+.3f})")
    for words, pairs in uses.items():
        print(f"{words}: {', '.join(pairs) or 'none'}")
