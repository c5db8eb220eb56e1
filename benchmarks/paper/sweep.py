"""What the experiments measure, into CSVs that grow line by line, so that a sweep continues where it stopped.

AUC takes PI-Forest's distances from a matrix; times never do. Times are processor seconds of one thread, all methods in turn on
the same rows, so that other load on the machine changes them little and their ratios less.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from paper.problems import GROUP_OF, GROUPS, REAL, Problem, load
from report import append_row, read_rows
from scipy import sparse
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from ruzhash_cv import paper

BRANCHES = (2, 4, 8, 16, 32, 64, 128, 256)
DISTANCES = {"PIF": paper.tanimoto_distance, "PIF-R": paper.ruzicka_distance, "PIF-B": paper.jaccard_distance}
TIMED = ("stair4", "circle4", "ladysymon", "biscuitbook", "circle5", "breadcube")
CUTS = (0.25, 1.0, 3.0, 5.0, 12.0, 24.0, 48.0)
IFOREST = "iForest"
#: Table 1: the one that varies, the others stay; m and the share of preferences are the same throughout.
BASE = {"b": 2, "psi": 256, "t": 50, "n": 512}
STEPS = {"b": (2, 4, 16, 256), "psi": (64, 128, 256, 512), "t": (25, 50, 100, 200), "n": (256, 512, 1024, 2048)}
N_MODELS, SHARE = 2000, 0.05
Job = dict[str, Any]
Row = dict[str, Any]


def sweep(path: Path, jobs: Iterable[Job], measure: Callable[..., Iterator[Row]], until: float) -> None:
    """Append the rows that `measure` yields for each job that has none yet; a job whose rows are not all there is done again."""
    jobs = list(jobs)
    key = list(jobs[0])
    done = set(read_rows(path, key)[key].astype(str).itertuples(index=False, name=None)) if path.is_file() else set()
    todo = [job for job in jobs if tuple(map(str, job.values())) not in done]
    for job in tqdm(todo, desc=path.stem, unit="job"):
        if time.monotonic() > until:
            break
        for row in list(measure(**job)):
            append_row(path, job | row)


def read(path: Path) -> pd.DataFrame:
    """A CSV with the group of each scene, empty if there is none."""
    if not path.is_file():
        return pd.DataFrame()
    rows = pd.read_csv(path)
    return rows.assign(group=rows.scene.map(GROUP_OF)) if "scene" in rows else rows


def auc(problem: Problem, scores: Any) -> float:
    """The ROC AUC, anomalies being positive, to four decimals."""
    return round(float(roc_auc_score(problem.labels < 0, scores)), 4)


def over_scenes(scenes: Sequence[str], runs: int) -> Iterator[Job]:
    """Run, scene and tolerance, one run of everything before the next."""
    for run in range(runs):
        for tolerance in ("paper", "wide"):
            for scene in scenes:
                if tolerance == "paper" or GROUP_OF[scene] in REAL:
                    yield {"run": run, "scene": scene, "tolerance": tolerance}


def posed(scene: str, run: int, tolerance: str) -> Problem:
    """A problem with the paper's tolerance or the wide one."""
    problem = load(scene, run)
    return problem if tolerance == "paper" else problem.widened()


def accuracy(run: int, scene: str, tolerance: str, branches: Sequence[int] = BRANCHES) -> Iterator[Row]:
    """AUC of each method and b."""
    problem = posed(scene, run, tolerance)
    rows = {binary: problem.preferences(binary=binary, rng=run) for binary in (False, True)}
    tables = {name: distance(rows[name in paper.BINARY_METHODS]) for name, distance in DISTANCES.items()}
    for b in branches:
        for method in paper.METHODS:
            forest: Any = paper.paper_forest(method, branching_factor=b, rng=run)
            if method in tables:
                forest = paper.VoronoiForest(metric="precomputed", branching_factor=b, rng=run)
            given = tables.get(method, rows[method in paper.BINARY_METHODS])
            yield {"method": method, "b": b, "auc": auc(problem, forest.fit(given).anomaly_scores(given))}


def summarise(rows: Path, out: Path) -> None:
    """A line for each scene, tolerance and method with its mean AUC over runs at each b."""
    table = read(rows)
    key = ["scene", "tolerance", "method"]
    means = table.pivot_table(index=key, columns="b", values="auc", sort=False)
    means.insert(0, "runs", table.groupby(key, sort=False).run.nunique())
    means.to_csv(out, float_format="%.6f")


def read_means(path: Path) -> pd.DataFrame:
    """A row for each scene, tolerance, method and b of the file that `summarise` writes."""
    table = read(path)
    key = ["scene", "tolerance", "method", "runs", "group"]
    return table if table.empty else table.melt(key, var_name="b", value_name="auc").astype({"b": int})


def seconds(forest: Any, rows: Any) -> tuple[float, float, Any]:
    """Processor seconds of training and of scoring, and the scores."""
    began = time.process_time()
    forest.fit(rows)
    trained = time.process_time()
    scores = forest.score_samples(rows) if isinstance(forest, IsolationForest) else forest.anomaly_scores(rows)
    return round(trained - began, 5), round(time.process_time() - trained, 5), scores


def times(run: int, scene: str, b: int) -> Iterator[Row]:
    """Training and test seconds of each method, distances computed as they are needed."""
    problem = load(scene, run)
    for method in paper.METHODS:
        rows = problem.preferences(binary=method in paper.BINARY_METHODS, rng=run)
        forest = paper.paper_forest(method, branching_factor=b, rng=run, n_jobs=1)
        forest.fit(rows[:8]).anomaly_scores(rows[:8])  # kernels compile
        train, test, scores = seconds(forest, rows)
        (n, m), density = rows.shape, round(rows.nnz / (rows.shape[0] * rows.shape[1]), 4)
        sizes, spent = {"n": n, "m": m, "density": density}, {"train_seconds": train, "test_seconds": test}
        yield {"method": method, **sizes, **spent, "auc": auc(problem, scores)}


def complexity(repeat: int, varied: str, b: int, psi: int, t: int, n: int) -> Iterator[Row]:
    """Training and test seconds of all methods on rows without structure, all as long as each other."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.random((n, N_MODELS)).argsort(axis=1)[:, : int(SHARE * N_MODELS)], axis=1)
    starts = np.arange(n + 1) * columns.shape[1]
    for method in paper.METHODS:
        is_binary = method in paper.BINARY_METHODS
        values = np.ones(columns.size, np.float32) if is_binary else rng.random(columns.size, np.float32)
        rows = sparse.csr_array((values, columns.ravel(), starts), shape=(n, N_MODELS))
        forest = paper.paper_forest(method, branching_factor=b, n_trees=t, subsample_size=psi, rng=repeat, n_jobs=1)
        forest.fit(rows[:8]).anomaly_scores(rows[:8])
        train, test, _ = seconds(forest, rows)
        yield {"method": method, "train_seconds": train, "test_seconds": test}
    if varied != "b":
        isolation = IsolationForest(n_estimators=t, max_samples=min(psi, n), random_state=repeat, n_jobs=1)
        train, test, _ = seconds(isolation, rows.toarray())
        yield {"method": IFOREST, "train_seconds": train, "test_seconds": test}


def settings(repeats: int) -> Iterator[Job]:
    """What table 1 varies."""
    for repeat in range(repeats):
        for varied, values in STEPS.items():
            yield from ({"repeat": repeat, "varied": varied, **BASE, varied: value} for value in values)


def isolation(run: int, scene: str, tolerance: str) -> Iterator[Row]:
    """AUC of scikit-learn's isolation forest on preferences and on raw data, and beside it that of the forests here."""
    problem = posed(scene, run, tolerance)
    rows = problem.preferences(rng=run)
    distances = paper.ruzicka_distance(rows)
    for b in (2, 16):
        hashed = paper.paper_forest("RHF", branching_factor=b, rng=run).fit(rows).anomaly_scores(rows)
        forest = paper.VoronoiForest(metric="precomputed", branching_factor=b, rng=run)
        cells = forest.fit(distances).anomaly_scores(distances)
        yield {"method": "RHF", "b": b, "auc": auc(problem, hashed)}
        yield {"method": "PIF-R", "b": b, "auc": auc(problem, cells)}
    for name, data in (("iForest, preferences", rows.toarray()), ("iForest, raw data", problem.data)):
        forest = IsolationForest(n_estimators=100, max_samples=min(256, len(data)), random_state=run).fit(data)
        yield {"method": name, "b": 2, "auc": auc(problem, -forest.score_samples(data))}


def tolerance(scene: str, cuts: Sequence[float] = CUTS) -> Iterator[Row]:
    """AUC at preferences cut at multiples of the true noise (1 within, 0 beyond): the paper's eps, apart from k."""
    problem = load(scene, 0)
    models, _ = paper.sample_models(problem.data, problem.family, n_models=10 * len(problem.data), rng=0)
    for cut in cuts:
        rows = paper.family_preferences(problem.data, problem.family, models, sigma=problem.sigma, k=cut, binary=True)
        distances, density = paper.jaccard_distance(rows), round(rows.nnz / (rows.shape[0] * rows.shape[1]), 4)
        for b in (2, 16):
            forests: list[tuple[str, Any, Any]] = [
                ("RHF-B", paper.paper_forest("RHF-B", branching_factor=b), rows),
                ("PIF-B", paper.VoronoiForest(metric="precomputed", branching_factor=b), distances),
            ]
            for method, forest, given in forests:
                scores = forest.fit(given).anomaly_scores(given)
                yield {"cut": cut, "method": method, "b": b, "density": density, "auc": auc(problem, scores)}


def all_scenes(*, real: bool) -> list[str]:
    """The scenes of all groups, a few of each at a time, so that a sweep cut short is balanced."""
    groups = [list(names) for group, names in GROUPS.items() if real or group not in REAL]
    return [names[at] for at in range(max(map(len, groups))) for names in groups if at < len(names)]
