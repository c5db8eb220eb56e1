"""Ablation: what accuracy gains or loses where one rule is left out or replaced, or one number halved or doubled. Tuning halves only.

    python benchmarks/evaluate_ablation.py                              # all rules and numbers: less than an hour on two cores
    python benchmarks/evaluate_ablation.py --variants mask reach --suites fresh --seeds 3 --print
    python benchmarks/evaluate_ablation.py --numbers                    # the table of numbers of docs/numbers.md

Rows of single problems are kept beside the results, out of the repository. A second call computes what is missing; a change of the
package makes all rows stale.
"""

import argparse
import os
from functools import partial

import numpy as np
import pandas as pd
from evaluate import Measure, Row, calibration_row, collect, mask_row
from methods import Answer
from problems import Problem
from report import RESULTS, ROWS, about_this_run, markdown, shown
from suites import GROUPS, SUITES, members
from variants import DEFAULT, FACTORS, NUMBERS, RULES, Variant, all_variants, run

MEASURES = {"f1": "F1", "auc": "AUC", "calibration": "calibration error"}


def answer(variant: Variant, problem: Problem, seed: int) -> Answer:
    """What a variant of the method says of a problem."""
    result = run(variant, problem.points1, problem.points2, seed)
    return Answer(result.inlier_mask, result.anomaly_scores, result=result)


def row(problem: Problem, answer: Answer) -> Row:
    """Every measure of an answer."""
    masks = mask_row(problem, answer)
    return {"f1": masks["f1"], "auc": masks["auc"], "calibration": calibration_row(problem, answer)["error"]}


def measured(names: list[str], suites: list[str], options: argparse.Namespace) -> pd.DataFrame:
    """A row for each variant, problem and seed; a suite goes by its name on the command line."""
    variants = all_variants()
    methods = {name: partial(answer, variants[name]) for name in names}
    measure = Measure((), lambda: methods, row, (), is_shuffled=False, is_own=True)
    parts = []
    for suite in suites:
        asked = argparse.Namespace(rows=ROWS, half="tune", methods=None, **vars(options) | {"suite": [suite]})
        rows = collect("ablation", measure, asked, options.n_jobs)
        parts.append(rows.assign(problem=rows.suite + ", " + rows.problem, suite=suite))
    return pd.concat(parts).rename(columns={"method": "variant"})


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each variant: paired differences to the default and their standard errors, in the mean over suites and for each suite.

    Suites are no sample, their problems are: the error of a mean over suites is that of the problems in them. The line of the default
    has its own means, the line "problems" how many there are.
    """
    means = rows.groupby(["variant", "suite", "problem"], sort=False)[list(MEASURES)].mean().unstack("variant")
    order, suites = [name for name in all_variants() if name in set(rows.variant)], list(dict.fromkeys(rows.suite))
    table = pd.DataFrame(index=["problems", *order])
    for field in MEASURES:
        values = means[field].reindex(columns=order)
        differences = values.sub(values[DEFAULT], axis=0)
        differences[DEFAULT] = values[DEFAULT]
        by_suite = differences.groupby("suite", sort=False)
        mean, error = by_suite.mean(), by_suite.sem()
        table[field] = mean.mean()
        table[f"{field} error"] = np.sqrt((error**2).sum()) / mean.notna().sum()
        for suite in suites if field == "f1" else ():
            table[suite], table[f"{suite} error"] = mean.loc[suite], error.loc[suite]
            table.loc["problems", suite] = by_suite.size()[suite]
    table.loc["problems", "f1"] = len(means)
    return table.rename_axis("variant")


def tables(found: pd.DataFrame) -> str:
    """The default's means, every variant's differences in the mean over suites, and those of F1 by suite."""
    suites = [name for name in found if f"{name} error" in found and name not in MEASURES]
    own = [["F1", *(shown(found.loc[DEFAULT, suite]) for suite in suites)]]
    own.append(["problems", *(f"{found.loc['problems', suite]:.0f}" for suite in suites)])
    parts, others = [markdown([DEFAULT, *suites], own)], found.drop(["problems", DEFAULT])
    for title, fields, digits in (("mean over suites", MEASURES, 4), ("F1", suites, 3)):
        cells = lambda row: (shown(row[field], digits, row[f"{field} error"], "+") for field in fields)  # noqa: E731, B023
        lines = [[str(name), *cells(row)] for name, row in others.iterrows()]
        parts.append(markdown([f"minus default, {title}", *(MEASURES.get(field, field) for field in fields)], lines))
    return "\n\n".join(parts)


def number_table() -> str:
    """Every number of the method, with F1 minus the default's where it is halved and doubled, as far as it was measured."""
    path, lines = RESULTS / "ablation.csv", []
    found = pd.read_csv(path, index_col="variant") if path.exists() else pd.DataFrame(columns=["f1", "f1 error"])
    for name, number in NUMBERS.items():
        line = [f"`{name}`", number.shown, number.meaning]
        for word in FACTORS:
            variant = f"{name} {word}"
            row = found.loc[variant] if variant in found.index else None
            line.append("" if row is None else shown(row["f1"], 4, row["f1 error"], "+"))
        lines.append(line)
    return markdown(["number", "value", "meaning", "F1 minus the default's: halved", "doubled"], lines)


def chosen(names: list[str]) -> list[str]:
    """The default, and the variants whose name holds one of these texts; "rules" and "numbers" stand for themselves."""
    groups = {"rules": RULES, "numbers": all_variants().keys() - RULES.keys()}
    holds = lambda name, variant: variant in groups[name] if name in groups else name in variant  # noqa: E731
    found = [variant for variant in all_variants() if any(holds(name, variant) for name in names)]
    if not found:
        raise SystemExit(f"no variant has {', '.join(map(repr, names))} in its name")
    return list(dict.fromkeys([DEFAULT, *found]))


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", default=["rules", "numbers"], help="parts of names, these two")
    parser.add_argument("--suites", nargs="+", default=["all"], choices=[*SUITES, *GROUPS])
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each problem")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--numbers", action="store_true", help="print the table of numbers and compute nothing")
    parser.add_argument("--print", action="store_true", help="leave `results` as it is")
    return parser.parse_args()


def main() -> None:
    """Compute what is missing, then print the tables of what was asked for."""
    options = arguments()
    if options.numbers:
        print(number_table())
        return
    names = chosen(options.variants)
    result = summary(measured(names, members(options.suites), options))
    if not options.print:
        result.to_csv(RESULTS / "ablation.csv", float_format="%.4f")
    print(about_this_run(), tables(result), sep="\n\n")


if __name__ == "__main__":
    main()
