"""Processor time of this package beside OpenCV's USAC_MAGSAC and PoseLib, in turn in one process and on one thread.

    python benchmarks/times.py --store                         # all rows, the CSV of docs/benchmarks.md
    python benchmarks/times.py --rows rigid,unrelated          # some of them

A line is measured on `--seeds` shuffles of its matches, after one call that is not counted: medians and 95th percentiles. A method
stops after 20 s of a line. Peers fit the one model that a line's scene has at its best threshold, a pose where cameras are known.
"""

import argparse
import cProfile
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import adelaide
import cv2
import numpy as np
import pandas as pd
import posed_photos
import rendered
from cache import stored
from matching import detect, nearest
from methods import (
    LINES,
    MANY,
    OURS,
    PIXELS,
    calibrated_opencv,
    calibrated_poselib,
    mask_methods,
    of_points,
    of_poselib,
    opencv,
    poselib,
    with_cameras,
)
from photos import home
from problems import Cameras, Problem, four_planes
from rendering import draw_correspondences
from report import RESULTS, about_this_run, markdown, shown
from threadpoolctl import threadpool_limits
from video import video

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import data_folder, load_pair

PEERS = ("USAC_MAGSAC", "USAC_MAGSAC 100k", "PoseLib")
LONGEST, FEWEST_RUNS = 20.0, 3
"""Processor seconds of a method on a line, beyond which it is run no more than so many times."""
POSED_MATCHES, UNRELATED_MATCHES, N_UNRELATED = 926, (300, 1500), 5
FRAMES = 20
Call = Callable[[Problem, int], Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """What is measured: a title, problems that the seeds take in turn, and methods by the names of the columns."""

    title: str
    problems: list[Problem]
    methods: dict[str, Call]


# --- Methods.


def filtered(problem: Problem, seed: int, **options: str) -> None:
    """`filter_points`, and no pose."""
    filter_points(problem.points1, problem.points2, rng=seed, **options)


def one_model(kind: str, **options: Any) -> dict[str, Call]:
    """This package, and peers that fit one homography or fundamental matrix."""
    magsac = partial(opencv, kind, "USAC_MAGSAC", PIXELS[kind])
    found: dict[str, Call] = {OURS: partial(filtered, **options)}
    found |= {"USAC_MAGSAC": of_points(magsac), "USAC_MAGSAC 100k": of_points(partial(magsac, **MANY))}
    return found | ({"PoseLib": of_points(partial(of_poselib, kind, threshold=PIXELS[kind]))} if poselib else {})


def relative_pose() -> dict[str, Call]:
    """This package with cameras, filter and pose; peers that estimate a relative pose."""
    found: dict[str, Call] = {OURS: with_cameras, "USAC_MAGSAC": calibrated_opencv}
    found |= {"USAC_MAGSAC 100k": partial(calibrated_opencv, **MANY)}
    return found | ({"PoseLib": calibrated_poselib} if poselib else {})


# --- Problems.


def bare(name: str, kind: str, points: Any, cameras: Cameras | None = None) -> Problem:
    """A problem without truth."""
    n = len(points[0])
    return Problem(name, "times", kind, *points, np.ones(n, np.intp), np.ones(n, bool), cameras=cameras)


def drawn(family: str, structures: int, n: int, rate: float, seed: int = 0) -> Problem:
    """Matches drawn from a rendered scene with 1 px of noise, and its cameras."""
    scene = rendered.build(family, structures, seed)
    found = draw_correspondences(scene, n, mismatch_rate=rate, noise=1.0, rng=seed)
    one, two = scene.cameras
    R = two.R @ one.R.T
    kind = "homography" if family == "one plane" else "fundamental"
    return bare(f"{n}", kind, (found.points1, found.points2), Cameras(one.K, two.K, R, two.t - R @ one.t))


def drawn_lines(family: str, structures: int, sizes: tuple[int, ...], rates: tuple[float, ...]) -> Iterator[Line]:
    """A line for each number of matches and share of mismatches."""
    title = {"one rigid": "rigid scene", "one plane": "one plane"}[family]
    for n in sizes:
        for rate in rates:
            problem = drawn(family, structures, n, rate)
            yield Line(f"{title}, {rate:.0%} wrong", [problem], one_model(problem.kind))


def labelled_lines(name: str, **options: str) -> Iterator[Line]:
    """A scene of AdelaideRMF with its own matches."""
    scene = next(of for half in ("tune", "judge") for of in adelaide.labelled(half) if of.name == name)
    yield Line(f"{name}, AdelaideRMF", [scene], one_model("fundamental"))
    if options:
        yield Line(f'{name}, model="{options["model"]}"', [scene], one_model(options["model"], **options))


def posed_lines() -> Iterator[Line]:
    """The photographed pair of known cameras that has about 926 matches."""
    pairs = [problem for half in ("tune", "judge") for problem in posed_photos.posed(half)]
    if pairs:
        problem = min(pairs, key=lambda of: abs(len(of.labels) - POSED_MATCHES))
        yield Line("photographed pair", [problem], one_model("fundamental"))


def unrelated_pairs() -> Iterator[Problem]:
    """SIFT's mutual nearest neighbours of photographs of different places."""
    paths = sorted(path for path in (home() / "rigid").glob("*") if path.suffix in (".jpg", ".png"))
    # A half of the sorted names later it is another place.
    for one, two in zip(paths[::4], np.roll(paths, len(paths) // 2)[::4].tolist(), strict=True):

        def make(one: Path = one, two: Path = two) -> dict[str, Any]:
            sides = [detect(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), "sift", 3000) for path in (one, two)]
            found = nearest(*sides, "sift")
            points = [side["keypoints"][found.pairs[found.mutual, at]] for at, side in enumerate(sides)]
            return dict(zip("ab", points, strict=True))

        points = stored(f"unrelated_{one.stem}_{two.stem}_opencv{cv2.__version__}", make)
        yield bare(f"{one.stem} {two.stem}", "fundamental", (points["a"], points["b"]))


def unrelated_lines() -> Iterator[Line]:
    """Five pairs that share nothing, of different numbers of matches."""
    pairs = [of for of in unrelated_pairs() if UNRELATED_MATCHES[0] <= len(of.labels) <= UNRELATED_MATCHES[1]]
    pairs.sort(key=lambda of: len(of.labels))
    for place in np.unique(np.linspace(0, len(pairs) - 1, N_UNRELATED).astype(int)) if pairs else ():
        yield Line("unrelated photographs", [pairs[place]], one_model("fundamental"))


def bundled_lines() -> Iterator[Line]:
    """Bundled pictures matched by SIFT with the ratio test: moving things, several planes, a turning camera."""
    pictures = {name: (load_pair(name).img1, load_pair(name).img2) for name in ("desk", "facade")}
    pictures["panorama"] = tuple(cv2.imread(str(data_folder() / f"panorama{number}.jpg")) for number in (1, 2))
    for name, images in pictures.items():
        sides = [posed_photos.features_of(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)) for image in images]
        kind = "homography" if name == "panorama" else "fundamental"
        yield Line(f"bundled {name}", [bare(name, kind, posed_photos.matched(*sides))], one_model(kind))


def wrong_lines() -> Iterator[Line]:
    """Most matches wrong."""
    yield from drawn_lines("one rigid", 1, (1000,), (0.8, 0.85, 0.9))
    yield from drawn_lines("one plane", 1, (1000,), (0.9,))


def camera_lines() -> Iterator[Line]:
    """Cameras given: filter and pose, 30 % wrong."""
    for family, structures, title in (("one rigid", 1, "rigid scene"), ("planes", 4, "walls")):
        for n in (300, 1000, 2000):
            yield Line(f"{title}, cameras given", [drawn(family, structures, n, 0.3)], relative_pose())


def video_lines() -> Iterator[Line]:
    """Consecutive frames of ORB video, 640 by 480, cameras given: filter and pose."""
    clips: dict[str, list[Problem]] = {}
    for problem in video("judge"):
        clips.setdefault(str(problem.settings["clip"]), []).append(problem)
    for clip, problems in clips.items():
        yield Line(f"ORB video, {clip}", problems[:FRAMES], relative_pose())


def method_lines() -> Iterator[Line]:
    """The methods of the README on a drawn rigid scene."""
    methods, names = mask_methods(), [name for name in LINES if name != OURS]
    own: dict[str, Call] = {OURS: filtered}
    chosen = {name: methods[name] for name in names if name in methods}
    yield Line("all methods", [drawn("one rigid", 1, 300, 0.4)], own | chosen)


ROWS: dict[str, Callable[[], Iterator[Line]]] = {
    "rigid": partial(drawn_lines, "one rigid", 1, (300,), (0.4,)),
    "plane": partial(drawn_lines, "one plane", 1, (300,), (0.4,)),
    "neem": partial(labelled_lines, "neem"),
    "posed": posed_lines,
    "unihouse": partial(labelled_lines, "unihouse", model="homography"),
    "large": partial(drawn_lines, "one rigid", 1, (10_000, 50_000), (0.4,)),
    "unrelated": unrelated_lines,
    "bundled": bundled_lines,
    "wrong": wrong_lines,
    "cameras": camera_lines,
    "video": video_lines,
    "methods": method_lines,
}
"""What is measured line by line, by the names of the command line."""


# --- Measuring.


def measured(row: str, line: Line, seeds: int) -> list[Row]:
    """Median and 95th percentile of each method's milliseconds; the methods in turn, and who begins changes with the seed."""
    names, taken = list(line.methods), {name: [] for name in line.methods}  # type: ignore[var-annotated]
    for name in names:
        line.methods[name](line.problems[0], 0)  # a method's first call is slower
    for seed in range(seeds):
        problem = line.problems[seed % len(line.problems)].shuffled(seed)
        for place in range(len(names)):
            name = names[(place + seed) % len(names)]
            if sum(taken[name]) > LONGEST and len(taken[name]) >= FEWEST_RUNS:
                continue
            start = time.process_time()
            line.methods[name](problem, seed)
            taken[name].append(time.process_time() - start)
    n = round(np.mean([len(problem.labels) for problem in line.problems]))
    numbers = {name: (1e3 * float(np.median(of)), 1e3 * float(np.percentile(of, 95))) for name, of in taken.items()}
    return [fact(row, line.title, ms, "ms", p95, name, n, len(taken[name])) for name, (ms, p95) in numbers.items()]


def fact(
    row: str, title: str, value: float, unit: str, p95: float = np.nan, method: str = OURS, n: int = 0, runs: int = 1
) -> Row:
    """A row of the CSV."""
    return {
        "row": row, "title": title, "n": n, "method": method, "median": value, "p95": p95, "unit": unit, "runs": runs,
    }  # fmt: skip


# --- Start, calls, memory.

START = """
import sys, time; start = time.process_time()
from ruzhash_cv import filter_points; imported = time.process_time() - start
import numpy as np
points = np.load(sys.argv[1])
filter_points(points["a"], points["b"])
print(imported, time.process_time() - start)
"""
MEMORY = """
import sys, numpy as np, ruzhash_cv
def megabytes(field):
    line = next(line for line in open("/proc/self/status") if line.startswith(field))
    return float(line.split()[1]) / 1024
points = np.load(sys.argv[1])
ruzhash_cv.filter_points(points["a"][:300], points["b"][:300])
open("/proc/self/clear_refs", "w").write("5")
before = megabytes("VmRSS")
ruzhash_cv.filter_points(points["a"], points["b"])
print(before, megabytes("VmHWM") - before)
"""


def in_new_process(code: str, problem: Problem) -> list[float]:
    """The numbers that a program prints, of a process of its own, given the matches."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/points.npz", a=problem.points1, b=problem.points2)
        command = [sys.executable, "-c", code, f"{folder}/points.npz"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def first_facts(seeds: int) -> Iterator[Row]:
    """The import and the first call of a process."""
    problem = drawn("one rigid", 1, 300, 0.4)
    imported, called = np.median([in_new_process(START, problem) for _ in range(min(seeds, 5) + 1)][1:], axis=0)
    yield fact("first", "import and first call of a process", float(called), "processor s")
    yield fact("first", "import", float(imported), "processor s")


def call_facts(seeds: int) -> Iterator[Row]:
    """Calls of Python functions in one filter of 300 matches, and the time of a million matches."""
    problem, profile = drawn("one rigid", 1, 300, 0.4), cProfile.Profile(builtins=False)
    filtered(problem, 0)
    profile.runcall(filtered, problem, 0)
    yield fact("calls", "Python function calls, 300 matches", pstats.Stats(profile).total_calls, "")
    many = bare("four planes", "homography", four_planes(1_000_000))
    start = time.process_time()
    filtered(many, 0)
    yield fact("calls", "four planes", time.process_time() - start, "processor s", n=1_000_000)


def memory_facts(seeds: int) -> Iterator[Row]:
    """Memory of a process, and what a call takes beyond it, on Linux."""
    if Path("/proc/self/clear_refs").exists():
        for n in (10_000, 50_000):
            held, extra = in_new_process(MEMORY, drawn("one rigid", 1, n, 0.4))
            if n == 10_000:
                yield fact("memory", "memory of a process after its first call", held, "MB")
            yield fact("memory", "peak memory of a call", extra, "MB", n=n)


FACTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "first": first_facts, "calls": call_facts, "memory": memory_facts,
}  # fmt: skip
"""Single numbers, by the names of the command line."""


# --- Tables.


def per_line(rows: pd.DataFrame) -> Iterator[tuple[str, int, pd.DataFrame]]:
    """Lines with the rows of their methods, in the order measured."""
    for (title, n), own in rows[rows.row.isin(ROWS)].groupby(["title", "n"], sort=False):
        yield str(title), int(n), own.set_index("method")


def line_table(rows: pd.DataFrame) -> str:
    """Medians of this package and its peers, the ratio to the faster of USAC_MAGSAC 100k and PoseLib, and the spread over seeds."""
    lines = []
    for title, n, own in per_line(rows[rows.row != "methods"]):
        mine = own.loc[OURS]
        cells = [f"{own['median'][name]:.3g}" if name in own.index else "" for name in PEERS]
        fastest = own["median"].reindex(PEERS[1:]).min()
        numbers = [f"{mine['median']:.3g}", f"{mine.p95:.3g}", shown(mine.p95 / mine["median"], 1)]
        lines.append([title, f"{n:,}", *numbers, *cells, shown(mine["median"] / fastest, 2)])
    spread = "95th percentile", "over median"
    header = ["processor ms", "matches", OURS, *spread, *PEERS, "ruzhash_cv over the faster peer"]
    return markdown(header, lines)


def method_table(rows: pd.DataFrame) -> str:
    """Medians of all methods on one problem."""
    own = rows[rows.row == "methods"].sort_values("median")
    lines = [[of.method, f"{of.median:.3g}", f"{of.p95:.3g}"] for of in own.itertuples()]
    return markdown(["method", "ms", "95th percentile"], lines)


def fact_table(rows: pd.DataFrame) -> str:
    """Single numbers; frames a second of video follow from its lines."""
    lines = []
    for of in rows[rows.row.isin(FACTS)].itertuples():
        size = f", {of.n:,} matches" if of.n else ""
        unit = f" {of.unit}" if isinstance(of.unit, str) and of.unit else ""
        lines.append([f"{of.title}{size}", f"{of.median:,.4g}{unit}"])
    for title, _, own in per_line(rows[rows.row == "video"]):
        rates = (f"{name} {1e3 / own['median'][name]:.0f}" for name in (OURS, "PoseLib") if name in own.index)
        lines.append([f"{title}, frames a second", ", ".join(rates)])
    return markdown(["what", "value"], lines)


def tables(rows: pd.DataFrame) -> str:
    """All tables that have rows."""
    parts = []
    if rows.row.isin(set(ROWS) - {"methods"}).any():
        parts.append(line_table(rows))
    if (rows.row == "methods").any():
        parts.append(method_table(rows))
    if rows.row.isin(FACTS).any() or (rows.row == "video").any():
        parts.append(fact_table(rows))
    return "\n\n".join(parts)


def store(rows: pd.DataFrame) -> None:
    """Put rows in the place of those of the same name in `results`."""
    path = RESULTS / "times.csv"
    if path.exists():
        earlier = pd.read_csv(path)
        rows = pd.concat([earlier[~earlier.row.isin(rows.row)], rows])
    order = {name: place for place, name in enumerate([*ROWS, *FACTS])}
    rows = rows.sort_values("row", key=lambda of: of.map(order), kind="stable")
    rows.to_csv(path, index=False, float_format="%.4g")


def main() -> None:
    """Measure the rows asked for, print the tables, store the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*ROWS, *FACTS]
    parser.add_argument("--rows", default=",".join(every), metavar="NAME,NAME", help=f"default: {', '.join(every)}")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--store", action="store_true", help="write `results/times.csv`")
    options = parser.parse_args()
    if unknown := set(options.rows.split(",")) - set(every):
        parser.error(f"no such rows: {', '.join(sorted(unknown))}")
    cv2.setNumThreads(1)
    rows: list[Row] = []
    with threadpool_limits(1):
        for name in options.rows.split(","):
            begun = time.process_time()
            if name in ROWS:
                for line in ROWS[name]():
                    rows += measured(name, line, options.seeds)
            else:
                rows += FACTS[name](options.seeds)
            print(f"{name}: {time.process_time() - begun:.0f} s", file=sys.stderr, flush=True)
            if options.store:
                store(pd.DataFrame([of for of in rows if of["row"] == name]))
    print(about_this_run(), tables(pd.DataFrame(rows)), sep="\n\n")


if __name__ == "__main__":
    main()
