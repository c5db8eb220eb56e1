"""The paper's experiments, one command: CSVs first, then every table and figure from them.

    python benchmarks/paper/run.py              # continues where it stopped; under an hour on two cores
    python benchmarks/paper/run.py --quick      # two drawn shapes, under two minutes, into a scratch folder
    python benchmarks/paper/run.py --only figures

AdelaideRMF is read from where `fetch_adelaidermf` finds it, the published shapes from `../shared/synthetic2d`; shapes like
them are drawn where that folder is absent.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import complexity
import figures
import sweep
import tables
from scenes import GROUP_OF, REAL, ROOT, adelaidermf_is_here

PARTS = ("times", "complexity", "tolerance", "scores", "auc", "figures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two drawn shapes, one run, two values of b")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--minutes", type=float, default=55.0, help="stop sweeping after this long; the next call continues"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    if options.quick:
        out = options.out or Path(tempfile.mkdtemp(prefix="paper-"))
        scenes, timed, runs, branches, cuts = ["stair4", "circle4"], ["stair4"], 1, (2, 32), (3.0, 5.0)
    else:
        out = options.out or ROOT / "docs" / "paper"
        scenes = sweep.all_scenes(real=adelaidermf_is_here())
        timed, runs = [name for name in sweep.TIMED if name in scenes], options.runs
        branches, cuts = sweep.BRANCHES, sweep.CUTS
    if "times" in options.only:
        sweep.sweep_times(out, timed, min(runs, 2), branches, until)
    if "complexity" in options.only and not options.quick:
        complexity.measure(out, 2, until)
    if "tolerance" in options.only:
        # On shapes the cut-off is not in question: the distance from a line has one unit.
        real = [name for name in scenes if GROUP_OF[name] in REAL]
        sweep.sweep_tolerance(out, real or scenes, cuts, until)
    if "scores" in options.only:
        sweep.sweep_scores(out, scenes, min(runs, 2), until)
    if "auc" in options.only:
        sweep.sweep_auc(out, scenes, runs, branches, until)
        sweep.summarise_auc(out)
    if "figures" in options.only:
        figures.draw_all(out)
        print(tables.write(out))
        print(f"tables and figures are in {out}")


if __name__ == "__main__":
    main()
