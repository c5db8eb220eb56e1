"""The paper's experiments, one command: CSVs first, then every table and figure from them.

    python benchmarks/run_paper.py              # continues where it stopped; under an hour on two cores
    python benchmarks/run_paper.py --quick      # two drawn shapes, under two minutes, into a scratch folder
    python benchmarks/run_paper.py --only figures

AdelaideRMF is read from where `fetch_adelaidermf` finds it, the published shapes from `../shared/synthetic2d`; shapes like
them are drawn if that folder is absent.
"""

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

from paper import figures, sweep, tables
from paper.problems import GROUP_OF, REAL, ROOT, adelaidermf_is_here

PARTS = ("times", "complexity", "tolerance", "scores", "auc", "figures")


def main() -> None:
    """Measure what is missing, then draw and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two drawn shapes, one run, two values of b")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=55.0, help="stop after this long; the next call continues")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    until, runs, branches, cuts = time.monotonic() + 60 * options.minutes, options.runs, sweep.BRANCHES, sweep.CUTS
    if options.quick:
        out = options.out or Path(tempfile.mkdtemp(prefix="paper-"))
        scenes, timed, runs, branches, cuts = ["stair4", "circle4"], ["stair4"], 1, (2, 16), (3.0, 5.0)
    else:
        out = options.out or ROOT / "docs" / "paper"
        scenes = sweep.all_scenes(real=adelaidermf_is_here())
        timed = [name for name in sweep.TIMED if name in scenes]
    out.mkdir(parents=True, exist_ok=True)
    # For shapes the cut-off is not in question: the distance from a line has one unit.
    real = [name for name in scenes if GROUP_OF[name] in REAL]
    repeats = range(min(runs, 2))
    jobs = {
        "times": (
            [{"run": run, "scene": scene, "b": b} for run in repeats for scene in timed for b in branches],
            sweep.times,
        ),
        "complexity": (sweep.settings(2 - options.quick), sweep.complexity),
        "tolerance": ([{"scene": scene} for scene in real or scenes], partial(sweep.tolerance, cuts=cuts)),
        "scores": (sweep.over_scenes(scenes, len(repeats)), sweep.isolation),
        "auc": (sweep.over_scenes(scenes, runs), partial(sweep.accuracy, branches=branches)),
    }
    for name in (name for name in jobs if name in options.only and not (options.quick and name == "complexity")):
        sweep.sweep(out / ("auc_rows.csv" if name == "auc" else f"{name}.csv"), *jobs[name], until)
    if "auc" in options.only:
        sweep.summarise(out / "auc_rows.csv", out / "auc.csv")
    if "figures" in options.only:
        figures.draw_all(out)
        print(tables.write(out))
        print(f"tables and figures are in {out}")


if __name__ == "__main__":
    main()
