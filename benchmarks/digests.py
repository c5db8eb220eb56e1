"""Digests of what the package says of many problems, a line each: whether two versions give the same bits.

    PYTHONPATH=../before python benchmarks/digests.py > before.txt
    python benchmarks/digests.py > after.txt && diff before.txt after.txt

A line has the problem and the call, then 16 letters each of mask, labels, scores, probabilities, matrices and pose.
`evaluate.py compare` says by how much F1 differs.
"""

import argparse
import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from methods import OURS, Method, model_methods, ours, with_cameras
from paper.problems import SHAPE_NAMES, make_shape
from problems import Problem
from suites import problems

from ruzhash_cv import find_structures
from ruzhash_cv.models import Circles, Lines
from ruzhash_cv.results.printing import row_labels, table

NAMES = [
    "adelaidermf", "fresh", "photographed", "rendered", "pictures", "scans", "posed", "poses", "poses-distorted", "poses-fisheye",
    "overlaid", "still", "unrelated", "alike",
]  # fmt: skip
#: Every problem is filtered as by default; by turns one of these comes beside.
CALLS: dict[str, Method] = {
    "model=homography": partial(ours, model="homography"),
    "model=fundamental": partial(ours, model="fundamental"),
    "threshold=3": partial(ours, threshold=3.0),
    "false_discovery_rate=.05": partial(ours, false_discovery_rate=0.05),
    "keep_stationary=False": partial(ours, keep_stationary=False),
    "find_*": model_methods()[OURS],
}


def digest(arrays: Iterable[Any]) -> str:
    """16 letters of the bits of arrays."""
    state = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(() if array is None else array)
        state.update(repr(values.shape).encode() + values.tobytes())
    return state.hexdigest()[:16]


def line(problem: Problem, call: str, method: Method) -> str:
    """The line of a call."""
    answer = method(problem, 0)
    parts: list[list[Any]] = [[answer.mask], [answer.scores], [answer.model]]
    if (result := answer.result) is not None:
        rows = table(result)
        labels, matrices = row_labels(rows, len(answer.mask)), [row.structure.matrix for row in rows]
        parts[1:] = [labels], [answer.scores], [result.inlier_probabilities], matrices, [*(answer.pose or ())]
    return "\t".join([f"{problem.suite}, {problem.name} [{call}]", *map(digest, parts)])


def lines(half: str, per_cell: int) -> Iterator[str]:
    """A line for each problem and call, and for each shape."""
    for problem, call in zip(problems(NAMES, half, per_cell), cycle(CALLS), strict=False):
        for name, method in {"": ours, call: CALLS[call]}.items():
            yield line(problem, name, method)
        if problem.cameras is not None:
            yield line(problem, "cameras", with_cameras)
    for name in SHAPE_NAMES:
        shape = make_shape(name)
        found = find_structures(shape.points, Lines() if shape.kind == "line" else Circles())
        yield f"{name}\t{digest([found.masks, found.labels, found.anomaly_scores, found.models, found.tolerances])}"


def main() -> None:
    """Print the digests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    options = parser.parse_args()
    print(*lines(options.half, options.per_cell), sep="\n")


if __name__ == "__main__":
    main()
