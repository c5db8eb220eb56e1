"""Times are measured line by line, and what they are called is what the tables show. No test asserts a time."""

import sys

import numpy as np
import pandas as pd
import pytest
import times
from times import OURS, PEERS, Line, drawn, fact, measured, one_model, relative_pose, store, tables


def test_a_line_measures_every_method_on_shuffled_matches() -> None:
    problem, orders = drawn("one rigid", 1, 60, 0.4), []
    methods = one_model("fundamental") | {"spy": lambda of, seed: orders.append(of.points1[0].tolist())}
    rows = measured("rigid", Line("rigid scene", [problem], methods), seeds=2)
    assert [row["method"] for row in rows] == list(methods)
    assert {(row["n"], row["runs"], row["unit"]) for row in rows} == {(60, 2, "ms")}
    assert len({tuple(order) for order in orders}) == 3  # one of them not counted
    assert all(row["median"] <= row["p95"] for row in rows)


def test_a_slow_method_stops_early(monkeypatch) -> None:
    monkeypatch.setattr(times, "LONGEST", 0.0)
    line = Line("rigid scene", [drawn("one rigid", 1, 60, 0.4)], {OURS: lambda problem, seed: sum(range(10_000))})
    assert measured("rigid", line, seeds=9)[0]["runs"] == times.FEWEST_RUNS


def test_methods_with_cameras_return_poses() -> None:
    problem = drawn("one rigid", 1, 200, 0.3)
    for name, method in relative_pose().items():
        assert method(problem, 0).pose is not None, name


def test_tables_hold_ratios_and_rates() -> None:
    ms = {OURS: 20.0, "USAC_MAGSAC": 2.0, "USAC_MAGSAC 100k": 5.0, "PoseLib": 10.0}
    rows = [fact("video", "ORB video, store room", value, "ms", 2 * value, name, 900, 20) for name, value in ms.items()]
    rows += [fact("calls", "Python function calls", 39, ""), fact("memory", "peak memory of a call", 8, "MB", n=50_000)]
    rows += [fact("methods", "all methods", value, "ms", value, name, 300, 20) for name, value in ms.items()]
    text = tables(pd.DataFrame(rows))
    assert "| ORB video, store room | 900 | 20 | 40 | 2.0 | 2 | 5 | 10 | 4.00 |" in text
    assert "| ORB video, store room, frames a second | ruzhash_cv 50, PoseLib 100 |" in text
    assert "| Python function calls | 39 |" in text
    assert "| peak memory of a call, 50,000 matches | 8 MB |" in text
    assert "| PoseLib | 10 | 10 |" in text


def test_rows_are_stored_in_the_place_of_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(times, "RESULTS", tmp_path)
    for row, value in (("first", 9.0), ("rigid", 1.0), ("first", 7.0)):
        store(pd.DataFrame([fact(row, "title", value, "s")]))
    stored = pd.read_csv(tmp_path / "times.csv")
    assert stored[["row", "median"]].to_numpy().tolist() == [["rigid", 1.0], ["first", 7.0]]


def test_rows_are_chosen_by_name(monkeypatch, capsys) -> None:
    methods = dict.fromkeys((OURS, *PEERS), lambda problem, seed: np.zeros(3))
    line = Line("a line", [drawn("one plane", 1, 60, 0.4)], methods)
    monkeypatch.setitem(times.ROWS, "plane", lambda: iter([line]))
    monkeypatch.setattr(sys, "argv", ["times.py", "--rows", "plane", "--seeds", "1"])
    times.main()
    assert "| a line | 60 |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["times.py", "--rows", "plain"])
    with pytest.raises(SystemExit):
        times.main()
    assert "no such rows: plain" in capsys.readouterr().err
