"""How many of the matches that are not judged lie off the labelled planes, as far as the pictures say (`patches.py`).

python benchmarks/off_planes.py
"""

from collections.abc import Iterator

import adelaide
import numpy as np
from patches import CLEAR, Image, agreements, is_shifted
from photos import images_of, photos
from problems import Problem
from report import about_this_run, markdown

FEWEST = 5


def pairs() -> Iterator[tuple[Problem, tuple[Image, Image]]]:
    """Problems whose planes have known homographies, and their grey pictures."""
    for half in ("tune", "judge"):
        for features in ("given", "sift"):
            yield from ((of, images_of("planes", of.name)) for of in photos("planes", features, half))
        for of in adelaide.fresh(half, "sift"):
            if of.kind == "homography":
                yield of, adelaide.images_of(of.name)


def main() -> None:
    """Print a line for each pair that has enough such matches."""
    lines, total = [], np.zeros(4, int)
    for problem, images in pairs():
        rows = problem.moved
        if rows is None or rows.sum() < FEWEST:
            continue
        found = agreements(images, problem.models, problem.points1[rows], problem.points2[rows])
        off, on = int((found[:, 0] > found[:, 1] + CLEAR).sum()), int(is_shifted(found).sum())
        counts = np.array([rows.sum(), off, on, rows.sum() - off - on])
        total += counts
        lines.append([f"{problem.name}: {problem.suite}", *map(str, counts)])
    header = ["pair", "not judged", "off the planes", "on a plane, shifted", "undecided"]
    print(markdown(header, [*lines, ["all", *map(str, total)]]), about_this_run(), sep="\n\n")


if __name__ == "__main__":
    main()
