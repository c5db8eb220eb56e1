"""How much evidence pairs of images that share nothing reach: random points, and photographs of different scenes.

    python benchmarks/evaluate_false_alarms.py --pairs 10000

Prints the share of unrelated pairs whose evidence reaches a cut, by number of matches, and the evidence that a given share reaches, to
set beside `pipelines.selection.evidence_of`.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

import cv2
import numpy as np
from cache import Arrays
from geometry import Points
from matching import RATIO, detect, nearest
from photos import home
from report import about_this_run, markdown

from ruzhash_cv import filter_points

CUTS = (5, 10, 20, 30, 50, 100)
RATES = (1e-1, 1e-2, 1e-3)
SIZES = (10, 20, 50, 100, 200, 500, 1000)
#: Numbers of matches from which a row of the table begins.
BUCKETS = (8, 30, 100, 300)
N_FEATURES = 1500
#: First letters that the names of photographs of one place share, without the A or B at their end.
PLACE = 5
#: Photographs under several names that show one thing.
SAME = {"graff": "graf", "wash": "shout", "zoom": "books"}

Pairs = Iterator[tuple[Points, Points]]


def random_points(count: int) -> Pairs:
    """Points at random in two images of 800 x 600 pixels."""
    rng = np.random.default_rng(0)
    for n in itertools.islice(itertools.cycle(SIZES), count):
        points = rng.uniform(0, [800, 600, 800, 600], (n, 4))
        yield points[:, :2], points[:, 2:]


def photographs() -> Iterator[tuple[str, Arrays]]:
    """The place and the SIFT keypoints of each photograph. Those of AdelaideRMF share buildings and objects, and are left out."""
    for path in sorted(file for file in home().rglob("*") if file.suffix in (".jpg", ".png")):
        place = path.stem[:-1][:PLACE].lower()
        yield SAME.get(place, place), detect(cv2.imread(str(path)), "sift", N_FEATURES)


def unrelated_photographs(count: int) -> Pairs:
    """SIFT matches of photographs of different places, drawn at random: by the ratio test, and by mutual choice."""
    rng, sides = np.random.default_rng(1), list(photographs())
    for number in range(count):
        one, two = rng.choice(len(sides), 2, replace=False)
        while sides[one][0] == sides[two][0]:
            one, two = rng.choice(len(sides), 2, replace=False)
        first, second = sides[one][1], sides[two][1]
        found = nearest(first, second, "sift")
        pairs = found.pairs[found.mutual if number % 2 else found.ratio < RATIO]
        yield first["keypoints"][pairs[:, 0]], second["keypoints"][pairs[:, 1]]


def evidence_of(pairs: Pairs) -> Points:
    """The number of matches and the evidence of each pair, (n, 2)."""
    return np.array([(len(first), filter_points(first, second).evidence) for first, second in pairs])


def rows_of(name: str, found: Points) -> list[list[str]]:
    """A row for each range of numbers of matches: how many pairs, the share that reaches each cut, and the largest evidence."""
    rows = []
    for least, most in itertools.pairwise((*BUCKETS, np.inf)):
        evidence = found[(found[:, 0] >= least) & (found[:, 0] < most), 1]
        if len(evidence):
            shares = [f"{np.mean(evidence >= cut):.4f}" for cut in CUTS]
            rows.append([f"{name}, {least} or more matches", str(len(evidence)), *shares, f"{evidence.max():.0f}"])
    return rows


def main() -> None:
    """Measure both sources and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000, help="of each source")
    options = parser.parse_args()
    sources = {"random points": random_points, "photographs": unrelated_photographs}
    found = {name: evidence_of(source(options.pairs)) for name, source in sources.items()}
    print(about_this_run(), "", sep="\n")
    rows = [row for name, values in found.items() for row in rows_of(name, values)]
    print(markdown(["unrelated pairs", "pairs", *(f"evidence {cut}" for cut in CUTS), "most"], rows), "", sep="\n")
    cuts = [[f"{rate:g}", *(f"{np.quantile(each[:, 1], 1 - rate):.1f}" for each in found.values())] for rate in RATES]
    print(markdown(["false alarms", *found], cuts))


if __name__ == "__main__":
    main()
