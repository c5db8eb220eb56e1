"""ROC AUC of the five methods over b, and what their test time grows with.

AUC takes PI-Forest's distances from a matrix; times never do. Times are processor seconds of one thread, all methods in turn on
the same rows, so that other load on the machine changes them little and their ratios less.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scenes import GROUP_OF, GROUPS, REAL, TOLERANCES, load, widened
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from table import GrowingTable, Row, read
from tqdm import tqdm

from ruzhash_cv import RuzHashForest
from ruzhash_cv.paper import (
    BINARY_METHODS,
    METHODS,
    Problem,
    VoronoiForest,
    family_preferences,
    jaccard_distance,
    paper_forest,
    paper_preferences,
    ruzicka_distance,
    sample_models,
    tanimoto_distance,
)

BRANCHES = (2, 4, 8, 16, 32, 64, 128, 256)
DISTANCES = {"PIF": tanimoto_distance, "PIF-R": ruzicka_distance, "PIF-B": jaccard_distance}
TIMED = ("stair4", "circle4", "ladysymon", "biscuitbook", "circle5", "breadcube")
#: All runs of the sweep, from which it continues. Not in git, which has their means.
ROWS = "auc_rows.csv"
CUTS = (0.25, 1.0, 3.0, 5.0, 12.0, 24.0, 48.0)


def auc(problem: Problem, scores: Any) -> float:
    """Return the ROC AUC, anomalies being positive, to four decimals."""
    return round(float(roc_auc_score(problem.labels < 0, scores)), 4)


def both_rows(problem: Problem, run: int) -> dict[bool, Any]:
    """Return continuous and binary preferences for the same models."""
    return {binary: paper_preferences(problem, binary=binary, rng=run) for binary in (False, True)}


def jobs(scenes: list[str], runs: int) -> Iterator[tuple[int, str, str]]:
    """Yield (run, scene, tolerance), one run of everything before the next."""
    for run in range(runs):
        for tolerance in TOLERANCES:
            for scene in scenes:
                if tolerance == "paper" or GROUP_OF[scene] in REAL:
                    yield run, scene, tolerance


def sweep_auc(out: Path, scenes: list[str], runs: int, branches: tuple[int, ...], until: float) -> None:
    """Append the AUC of each method and b; a scene is done as a whole or not at all."""
    key = ("run", "scene", "tolerance", "method", "b")
    table = GrowingTable(out / ROWS, key, ("auc",))
    todo = [
        job for job in jobs(scenes, runs) if dict(zip(key, (*job, METHODS[-1], branches[-1]), strict=True)) not in table
    ]
    for run, scene, tolerance in tqdm(todo, desc="AUC over b", unit="scene"):
        if time.monotonic() > until:
            break
        problem = widened(load(scene, run), tolerance)
        rows = both_rows(problem, run)
        tables = {name: distance(rows[name in BINARY_METHODS]) for name, distance in DISTANCES.items()}
        common = {"run": run, "scene": scene, "tolerance": tolerance}
        for b in branches:
            for method in METHODS:
                forest: Any = paper_forest(method, branching_factor=b, rng=run)
                if method in tables:
                    forest = VoronoiForest(metric="precomputed", branching_factor=b, rng=run)
                given = tables.get(method, rows[method in BINARY_METHODS])
                row = common | {"method": method, "b": b, "auc": auc(problem, forest.fit(given).anomaly_scores(given))}
                if row not in table:
                    table.append(row)


def summarise_auc(out: Path) -> None:
    """Write ``auc.csv``, a line for each scene, tolerance and method with its mean AUC over runs at each b."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read(out / ROWS):
        found[row["scene"], row["tolerance"], row["method"]][row["b"]].append(float(row["auc"]))
    if not found:
        return
    branches = list(next(iter(found.values())))
    lines = [["scene", "tolerance", "method", "runs", *branches]]
    for key, of_b in found.items():
        means = (f"{np.mean(of_b[b]):.6f}" for b in branches)
        lines.append([*key, str(len(of_b[branches[-1]])), *means])
    (out / "auc.csv").write_text("".join(",".join(line) + "\n" for line in lines), encoding="utf-8")


def read_auc(out: Path) -> list[Row]:
    """Return a row for each scene, tolerance, method and b of ``auc.csv``."""
    return [
        {**line, "group": GROUP_OF[line["scene"]], "b": b, "auc": line[b]}
        for line in read(out / "auc.csv")
        for b in line
        if b.isdigit()
    ]


def sweep_times(out: Path, scenes: list[str], runs: int, branches: tuple[int, ...], until: float) -> None:
    """Append training and test seconds of each method and b, distances computed as they are needed."""
    key = ("run", "scene", "method", "b")
    table = GrowingTable(out / "times.csv", key, ("n", "m", "density", "train_seconds", "test_seconds", "auc"))
    todo = [(run, scene, b) for run in range(runs) for scene in scenes for b in branches]
    todo = [job for job in todo if dict(zip(key, (*job[:2], METHODS[-1], job[2]), strict=True)) not in table]
    _warm_up()
    for run, scene, b in tqdm(todo, desc="times over b", unit="b"):
        if time.monotonic() > until:
            break
        problem = load(scene, run)
        rows = both_rows(problem, run)
        for method in METHODS:
            given = rows[method in BINARY_METHODS]
            forest = paper_forest(method, branching_factor=b, rng=run, n_jobs=1)
            began = time.process_time()
            forest.fit(given)
            trained = time.process_time()
            scores = forest.anomaly_scores(given)
            seconds = {
                "train_seconds": round(trained - began, 5),
                "test_seconds": round(time.process_time() - trained, 5),
            }
            density = round(given.nnz / (given.shape[0] * given.shape[1]), 4)
            row = {"run": run, "scene": scene, "method": method, "b": b, "n": given.shape[0], "m": given.shape[1]}
            row |= {"density": density, "auc": auc(problem, scores), **seconds}
            if row not in table:
                table.append(row)


def sweep_scores(out: Path, scenes: list[str], runs: int, until: float) -> None:
    """Append the AUC of scikit-learn's isolation forest on preferences and on raw data, and beside it that of the forests here."""
    key = ("run", "scene", "tolerance", "method", "b")
    table = GrowingTable(out / "scores.csv", key, ("group", "auc"))
    last = ("iForest, raw data", 2)
    todo = [job for job in jobs(scenes, runs) if dict(zip(key, (*job, *last), strict=True)) not in table]
    for run, scene, tolerance in tqdm(todo, desc="isolation forests", unit="scene"):
        if time.monotonic() > until:
            break
        problem = widened(load(scene, run), tolerance)
        rows = paper_preferences(problem, rng=run)
        distances = ruzicka_distance(rows)
        common = {"run": run, "scene": scene, "tolerance": tolerance, "group": GROUP_OF[scene]}
        found = []
        for b in (2, 16):
            options: dict[str, Any] = {"branching_factor": b, "rng": run}
            hashed = RuzHashForest(sink_credit=True, **options).fit(rows).anomaly_scores(rows)
            cells = VoronoiForest(metric="precomputed", **options).fit(distances).anomaly_scores(distances)
            found += [("RHF", b, hashed), ("PIF-R", b, cells)]
        for name, data in (("iForest, preferences", rows.toarray()), ("iForest, raw data", problem.data)):
            scores = (
                -IsolationForest(n_estimators=100, max_samples=min(256, len(data)), random_state=run)
                .fit(data)
                .score_samples(data)
            )
            found.append((name, 2, scores))
        for method, b, values in found:
            row = common | {"method": method, "b": b, "auc": auc(problem, values)}
            if row not in table:
                table.append(row)


def sweep_tolerance(out: Path, scenes: list[str], cuts: tuple[float, ...], until: float) -> None:
    """Append the AUC at preferences cut at multiples of the true noise (1 within, 0 beyond): the paper's eps, apart from k."""
    key = ("scene", "cut", "method", "b")
    table = GrowingTable(out / "tolerance.csv", key, ("group", "density", "auc"))
    todo = [scene for scene in scenes if dict(zip(key, (scene, cuts[-1], "PIF-B", 16), strict=True)) not in table]
    for scene in tqdm(todo, desc="tolerance", unit="scene"):
        if time.monotonic() > until:
            break
        problem = load(scene, 0)
        models, _ = sample_models(problem.data, problem.family, n_models=10 * len(problem.data), rng=0)
        for cut in cuts:
            rows = family_preferences(problem.data, problem.family, models, sigma=problem.sigma, k=cut, binary=True)
            distances = jaccard_distance(rows)
            for b in (2, 16):
                cells = VoronoiForest(metric="precomputed", branching_factor=b)
                for method, forest, given in (
                    ("RHF-B", paper_forest("RHF-B", branching_factor=b), rows),
                    ("PIF-B", cells, distances),
                ):
                    value = auc(problem, forest.fit(given).anomaly_scores(given))  # type: ignore[attr-defined]
                    row = {"scene": scene, "cut": cut, "method": method, "b": b, "group": GROUP_OF[scene]}
                    row |= {"density": round(rows.nnz / (rows.shape[0] * rows.shape[1]), 4), "auc": value}
                    if row not in table:
                        table.append(row)


def all_scenes(*, real: bool) -> list[str]:
    """Return the scenes of all groups, a few of each at a time, so that a sweep cut short is balanced."""
    groups = [list(names) for group, names in GROUPS.items() if real or group not in REAL]
    return [names[at] for at in range(max(map(len, groups))) for names in groups if at < len(names)]


def _warm_up() -> None:
    rows = np.eye(8)
    for method in METHODS:
        paper_forest(method, n_trees=2, n_jobs=1).fit(rows).anomaly_scores(rows)
