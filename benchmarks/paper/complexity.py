"""The paper's table 1, measured: how training and test times grow with psi, t, b and n."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import IsolationForest
from table import GrowingTable, read
from tqdm import tqdm

from ruzhash_cv.paper import BINARY_METHODS, METHODS, paper_forest

#: The one that varies, the others stay: b = 2, psi = 256, t = 50, n = 512; m and the share of preferences are the same throughout.
BASE = {"b": 2, "psi": 256, "t": 50, "n": 512}
STEPS = {"b": (2, 4, 16, 256), "psi": (64, 128, 256, 512), "t": (25, 50, 100, 200), "n": (256, 512, 1024, 2048)}
N_MODELS, SHARE = 2000, 0.05
IFOREST = "iForest"


def make_rows(n: int) -> sparse.csr_array:
    """Return preference rows without structure, all as long as each other."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.random((n, N_MODELS)).argsort(axis=1)[:, : int(SHARE * N_MODELS)], axis=1)
    values = rng.random(columns.shape).astype(np.float32)
    return sparse.csr_array((values.ravel(), columns.ravel(), np.arange(n + 1) * columns.shape[1]), shape=(n, N_MODELS))


def measure(out: Path, repeats: int, until: float) -> None:
    """Append processor seconds of one thread."""
    key = ("repeat", "method", "varied", "b", "psi", "t", "n")
    table = GrowingTable(out / "complexity.csv", key, ("train_seconds", "test_seconds"))
    settings = [(r, varied, BASE | {varied: v}) for r in range(repeats) for varied in STEPS for v in STEPS[varied]]
    for repeat, varied, at in tqdm(settings, desc="complexities", unit="setting"):
        for method in (*METHODS, IFOREST):
            row: dict[str, Any] = {"repeat": repeat, "method": method, "varied": varied, **at}
            if row in table or time.monotonic() > until or (method == IFOREST and varied == "b"):
                continue
            rows = make_rows(at["n"])
            if method in BINARY_METHODS:
                rows.data[:] = 1.0
            train, test = _time(method, rows, at, repeat)
            table.append(row | {"train_seconds": round(train, 5), "test_seconds": round(test, 5)})


def _time(method: str, rows: sparse.csr_array, at: dict[str, int], seed: int) -> tuple[float, float]:
    if method == IFOREST:
        dense = rows.toarray()
        forest: Any = IsolationForest(
            n_estimators=at["t"], max_samples=min(at["psi"], at["n"]), random_state=seed, n_jobs=1
        )
        began = time.process_time()
        forest.fit(dense)
        trained = time.process_time()
        forest.score_samples(dense)
        return trained - began, time.process_time() - trained
    options = {"branching_factor": at["b"], "n_trees": at["t"], "subsample_size": at["psi"], "rng": seed, "n_jobs": 1}
    forest = paper_forest(method, **options)
    forest.fit(rows[:8]).anomaly_scores(rows[:8])
    began = time.process_time()
    forest.fit(rows)
    trained = time.process_time()
    forest.anomaly_scores(rows)
    return trained - began, time.process_time() - trained


def exponents(path: Path) -> list[dict[str, Any]]:
    """Return for each method and variable the exponent of the time, and of the time over the factor that table 1 expects."""
    rows = read(path)
    found = []
    for method in (*METHODS, IFOREST):
        for varied in STEPS:
            own = [row for row in rows if row["method"] == method and row["varied"] == varied]
            if len({row[varied] for row in own}) < 2:
                continue
            line: dict[str, Any] = {"method": method, "varied": varied}
            for phase in ("train", "test"):
                sizes = np.array([float(row[varied]) for row in own])
                seconds = np.array([float(row[f"{phase}_seconds"]) for row in own])
                expected = np.array([_expected(method, phase, row) for row in own])
                line[f"{phase}_exponent"] = round(_slope(sizes, seconds), 2)
                line[f"{phase}_expected"] = round(_slope(sizes, expected), 2)
            found.append(line)
    return found


def _slope(sizes: Any, values: Any) -> float:
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-6)), 1)[0])


def _expected(method: str, phase: str, row: dict[str, str]) -> float:
    """Return table 1's term: psi t log_b psi in training, n t log_b psi in a test; times b where distances to b centres are taken."""
    b, psi, t, n = (int(row[name]) for name in ("b", "psi", "t", "n"))
    psi = min(psi, n)
    term = (psi if phase == "train" else n) * t * np.log(psi) / np.log(2 if method == IFOREST else b)
    return float(term * (b if method.startswith("PIF") else 1))
