"""Reliability: sums over problems, and shares of wrong ones at a rate."""

from __future__ import annotations

import argparse

import evaluate_calibration
import numpy as np
import pandas as pd
import pytest
from evaluate_calibration import BINS, RATES, bins, measured, rates, table
from measures import N_BINS
from suites import SUITES


def rows() -> pd.DataFrame:
    """Two problems and two seeds: of ten kept at every rate none, one, two and three are wrong."""
    found = []
    for number in range(4):
        row = {"suite": "s", "problem": number % 2, "seed": number // 2, **dict.fromkeys(BINS, 0.0)}
        row |= {"count2": 10.0, "sum2": 2.5, "true2": number, "count9": 30.0, "sum9": 29.0, "true9": 30.0}
        for rate in RATES:
            row |= {f"kept {rate}": 10, f"wrong {rate}": number, f"expected {rate}": 1.0}
        found.append(row)
    return pd.DataFrame(found)


def test_shares_are_those_of_all_problems() -> None:
    by_bin, by_rate = bins(rows()), rates(rows())
    assert by_bin[["bin", "count", "probability", "true"]].to_numpy().tolist() == [
        [2, 40, 0.25, 0.15], [9, 120, 29 / 30, 1.0]
    ]  # fmt: skip
    assert by_rate.wrong.tolist() == [6 / 40] * 3
    assert by_rate.expected.tolist() == [0.1] * 3
    # Seed 0 has one wrong of twenty, seed 1 five; problem 0 two of twenty, problem 1 four.
    assert by_rate.range_of_seeds.tolist() == pytest.approx([0.2] * 3)
    assert by_rate.standard_error.tolist() == pytest.approx([np.sqrt(2) / 40] * 3)
    error = (40 * 0.1 + 120 / 30) / 160
    assert f"| s | 160 | {error:.3f} | 0.150 ± 0.035 (expected 0.100, seeds within 0.200) |" in table(by_bin, by_rate)


def test_a_problem_s_sums_are_those_of_its_judged_matches() -> None:
    problem = next(iter(SUITES["one-plane"]("tune", 1)))
    row = measured(problem, argparse.Namespace(variant="default", model="auto"), 0)
    counts, sums, true = np.array([row[name] for name in BINS]).reshape(3, N_BINS)
    assert counts.sum() == problem.judged.sum()
    assert true.sum() == (problem.labels[problem.judged] > 0).sum()
    assert ((sums >= counts * np.arange(N_BINS) / N_BINS) & (sums <= counts * np.arange(1, N_BINS + 1) / N_BINS)).all()
    for rate in evaluate_calibration.RATES:
        assert row[f"wrong {rate}"] <= row[f"kept {rate}"]
        assert row[f"expected {rate}"] <= rate * row[f"kept {rate}"] + 1e-9
