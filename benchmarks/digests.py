"""Digests of what the filter says of 300 scenes of all suites: whether two versions of the package give the same bits.

    PYTHONPATH=../before python benchmarks/digests.py -o before.txt
    python benchmarks/digests.py --compare before.txt

Prints a line a scene: its name, 16 letters each of mask, labels, scores, probabilities, the matrices of models and of motions, F1, and
milliseconds. Then a line for each case of `door_digests.py`, in the same columns. The scenes are made once and kept in the cache.
`--compare` names those that differ, and says by how much F1 does.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import door_digests
import numpy as np
import pair_sets
import pose_scenes
import rendered
from adelaide import fresh, labelled
from cache import Arrays, stored
from geometry import Points
from measures import mask_quality, paired_difference
from numpy.typing import NDArray
from photos import home, photos

FIELDS = ("mask", "labels", "scores", "probabilities", "models", "motions")
Scene = tuple[str, Points, Points, NDArray[np.bool_], NDArray[np.bool_]]
"""Name, points of both images, which matches are true, and which count."""
Options = dict[str, Any]


def pairs(half: str) -> Iterator[Scene]:
    """Overlays, and pairs that share nothing."""
    for number, of in enumerate([*pair_sets.overlaid(half, 2), *pair_sets.still(half, 2)]):
        yield f"{of.suite} {half} {number}", of.points1, of.points2, of.labels > 0, of.judged
    for title, make in (("unrelated", pair_sets.unrelated), ("alike", pair_sets.look_alike)):
        for number, of in enumerate(make(half, 4)):
            yield f"{title}, {half} {number}", of.points1, of.points2, of.labels > 0, of.judged


def problems(half: str) -> Iterator[tuple[str, Iterable[Any]]]:
    """Some problems of every suite, under a title."""
    yield "adelaidermf", labelled(half)
    yield "poses", islice(pose_scenes.given(half, 1), 0, None, 2)
    for features in ("sift", "orb"):
        yield f"{features} on adelaidermf", islice(fresh(half, features), 0, None, 2)
        for family in rendered.STRUCTURES:
            yield f"{features} on rendered {family}", islice(rendered.pictures(features, half, 1, [family]), 2)
    for family in rendered.STRUCTURES:
        yield family, rendered.drawn(family, half, 1)
    yield "repeated", islice(rendered.repeated(half, 1), 0, None, 2)


def photographed(half: str) -> Iterator[tuple[str, Iterable[Any]]]:
    """Photographed pairs, where they are there."""
    for scenes in ("planes", "rigid"):
        yield f"photographed {scenes}", photos(scenes, "given", half)
        yield f"photographed {scenes}, mutual", islice(photos(scenes, "mutual", half), 4)


def make_all() -> Arrays:
    """Every scene as one array (n, 6): points, whether it is true, whether it counts."""
    found: Arrays = {}
    for name, *rows in chain.from_iterable(map(pairs, ("tune", "judge"))):
        found[f"{len(found):03} {name}"] = np.column_stack(rows)
    for make, half in product((problems, photographed), ("tune", "judge")):
        for title, problem in ((title, problem) for title, suite in make(half) for problem in suite):
            rows = problem.points1, problem.points2, problem.labels > 0, problem.judged
            found[f"{len(found):03} {title}, {problem.name}"] = np.column_stack(rows)
    return found


def scenes() -> Iterator[Scene]:
    """All scenes, from the cache where they are there."""
    photographs = "" if home().is_dir() else "_without_photographs"
    for name, rows in stored(f"digests_1{photographs}", make_all).items():
        yield name, rows[:, :2], rows[:, 2:4], rows[:, 4] > 0, rows[:, 5] > 0


def options_of(number: int, name: str) -> Iterator[tuple[str, Options]]:
    """The defaults for every scene, and for some of them one other setting beside."""
    yield "", {}
    if name.split(" ", 1)[1].startswith("overlay"):
        yield "keep_stationary=False", {"keep_stationary": False}
    others: tuple[Options, ...] = ({"model": "homography"}, {"model": "fundamental"}, {"threshold": 3.0})
    others += ({"false_discovery_rate": 0.05}, {"rng": 7}, {"model": "fundamental", "threshold": 1.5})
    if number % 4 == 0:
        told = others[number // 4 % len(others)]
        yield ", ".join(f"{key}={value}" for key, value in told.items()), told


def digest(*arrays: Any) -> str:
    """16 letters of the bits of arrays."""
    state = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        if values.dtype.kind == "i":
            values = values.astype(np.int64)
        state.update(repr(values.shape).encode() + values.tobytes())
    return state.hexdigest()[:16]


def digests_of(result: Any) -> list[str]:
    """Digests of each of `FIELDS`."""
    arrays = result.inlier_mask, result.labels, result.anomaly_scores, getattr(result, "inlier_probabilities", ())
    matrices = [[one.matrix for one in found] for found in (result.models, result.motions)]
    return [*map(digest, arrays), *(digest(*found) for found in matrices)]


def filter_cases(every: int) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """A title and what computes the cells, for each scene and setting of `filter_points`."""
    from ruzhash_cv import filter_points

    known = inspect.signature(filter_points).parameters
    single: Options = {"n_jobs": 1} if "n_jobs" in known else {}
    for number, (name, points1, points2, true, judged) in enumerate(scenes()):
        if number % every:
            continue
        for setting, options in options_of(number, name):

            def cells(given: Scene = (name, points1, points2, true, judged), options: Options = options) -> list[str]:
                result = filter_points(*given[1:3], **{"rng": 0, **single, **options})
                f1 = mask_quality(result.inlier_mask[given[4]], given[3][given[4]])["f1"]
                return [*digests_of(result), f"{f1:.6f}"]

            yield f"{name} [{setting}]" if setting else name, cells


def door_cases(every: int) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """A title and what computes the cells, for cameras, the other functions and files."""
    for name, answer in islice(door_digests.cases(), 0, None, every):

        def cells(answer: Callable[[], door_digests.Answer] = answer) -> list[str]:
            fields = answer()
            return [*(digest(*fields.get(field, ())) for field in FIELDS), f"{fields.get('f1', 0.0):.6f}"]

        yield name, cells


def lines(cases: Iterable[tuple[str, Callable[[], list[str]]]]) -> Iterator[str]:
    """A line for each case."""
    for title, cells_of in cases:
        start = time.process_time()
        try:
            cells = cells_of()
        except Exception as error:  # the other scenes are still worth their answers
            cells = [f"{type(error).__name__}: {error}".splitlines()[0].replace("\t", " "), "nan"]
        yield "\t".join([title, *cells, f"{1e3 * (time.process_time() - start):.0f}"])


def compare(before: dict[str, list[str]], after: dict[str, list[str]]) -> str:
    """Which scenes differ in what, and the paired difference of F1: of those that differ, and of all."""
    common = [name for name in after if name in before]
    told, changed = [], []
    for name in common:
        old, new = before[name], after[name]
        differ = [field for field, a, b in zip(FIELDS, old, new, strict=False) if a != b]
        if len(old) != len(new):
            differ = [min(old, new, key=len)[0]]
        if differ:
            changed.append(name)
            told.append(f"{name}: {', '.join(differ)}; F1 {old[-2]} -> {new[-2]}")
    for title, names in (("of those that differ,", changed), ("of all", common)):
        if not names:
            continue
        values = np.array([[float(found[name][-2]) for found in (after, before)] for name in names]).reshape(-1, 2).T
        mean, error = paired_difference(*values)
        told.append(f"F1 after minus before, {title} {len(names)}: {mean:+.6f} ± {error:.6f}")
    for field in FIELDS:
        at = FIELDS.index(field)
        both = [(after[name], before[name]) for name in common if len(after[name]) == len(before[name])]
        count = sum(new[at] != old[at] for new, old in both if len(new) > 2)
        told.append(f"{field}: {count} differ")
    seconds = [sum(float(found[name][-1]) for name in common) / 1e3 for found in (before, after)]
    told.append("processor seconds before {:.1f}, after {:.1f}".format(*seconds))
    if len(common) < max(len(before), len(after)):
        told.append(f"{len(before)} scenes before, {len(after)} after, {len(common)} in both")
    return "\n".join(told)


def read(text: Iterable[str]) -> dict[str, list[str]]:
    """Cells of each line by the scene's name."""
    return {line.split("\t")[0]: line.rstrip("\n").split("\t")[1:] for line in text if not line.startswith("#")}


def main() -> None:
    """Print the digests, or what differs from those of another version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="write the digests there; default print them")
    parser.add_argument("--compare", type=Path, metavar="OTHER.txt", help="digests of the version before")
    parser.add_argument("--every", type=int, default=1, help="only one scene of so many")
    parser.add_argument("--doors", action="store_true", help="only the cases of door_digests.py")
    options = parser.parse_args()
    start = time.process_time()
    import ruzhash_cv

    print(f"package: {Path(ruzhash_cv.__file__).parent}", file=sys.stderr)
    cases = chain(() if options.doors else filter_cases(options.every), door_cases(options.every))
    found = list(lines(cases))
    print(f"{len(found)} scenes, {time.process_time() - start:.0f} processor seconds", file=sys.stderr)
    if options.output:
        options.output.write_text("\n".join(found) + "\n", encoding="utf-8")
    if options.compare:
        print(compare(read(options.compare.read_text(encoding="utf-8").splitlines()), read(found)))
    elif not options.output:
        print(*found, sep=os.linesep)


if __name__ == "__main__":
    main()
