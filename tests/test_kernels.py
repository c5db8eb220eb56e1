"""Kernels are compiled when they are first called, never at import, and where their cache cannot be written; the guard around calls
that run them; their random numbers.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import naive
import numba
import numpy as np
import pytest
from fuzzing.interrupts import calls
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv import _kernels, warmup
from ruzhash_cv._kernels import below, draw_key, mix, n_compiled, uniform, uninterrupted

ROOT = Path(_kernels.__file__).parents[1]
CALL = """
from ruzhash_cv import transfer_error
print(transfer_error([[0.0, 0.0]], [[3.0, 4.0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
from ruzhash_cv._kernels import n_compiled
print(n_compiled())
"""
#: numba tries each place for its files with a temporary one.
NO_PLACE = """
import tempfile
def refuse(*_, **__):
    raise PermissionError("no place")
tempfile.TemporaryFile = refuse
"""


def run(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that keeps its kernels in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "always::RuntimeWarning", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_nothing_is_compiled_at_import(tmp_path: Path) -> None:
    done = run("import ruzhash_cv.cli, ruzhash_cv._kernels as k; print(len(k.KERNELS) > 30, k.n_compiled())", tmp_path)
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_a_kernel_is_compiled_by_one_process_and_loaded_by_the_next(tmp_path: Path) -> None:
    for compiled in (1, 0):
        done = run(CALL, tmp_path)
        assert done.stdout.split()[0] == "[5.]"
        assert (int(done.stdout.split()[1]) > 0) == compiled


def test_without_a_place_for_files_kernels_are_compiled_in_memory_and_one_warning_says_so(tmp_path: Path) -> None:
    done = run(NO_PLACE + CALL, tmp_path)
    assert done.stdout.split()[0] == "[5.]", done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert "Set NUMBA_CACHE_DIR to a directory" in done.stderr


# Modules that change

HELPER = """
from ruzhash_cv._kernels import jit
FACTOR = 2.0

@jit
def double(x):
    return FACTOR * x
"""
KERNEL = """
from ruzhash_cv._kernels import jit
from tiny_helper import double

@jit
def kernel(x):
    return double(x) + 1.0
"""
Tiny = Callable[..., Any]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """``tiny(helper)`` imports a kernel and its helper afresh, with a cache of their own, and returns the kernel."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_kernels, "KERNELS", [])
    monkeypatch.setattr(_kernels, "said", set())
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def load(helper: str = HELPER) -> Any:
        _kernels.KERNELS.clear()
        _kernels._source.cache_clear()
        for name, source in (("tiny_helper", helper), ("tiny_kernel", KERNEL)):
            file = tmp_path / f"{name}.py"
            if not file.exists() or file.read_text() != source:  # numba 0.60 takes a file with a new date for a new one
                file.write_text(source)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("tiny_kernel").kernel

    return load


def test_a_kernel_is_compiled_anew_where_one_that_it_calls_changes_in_another_module(tiny: Tiny) -> None:
    assert (tiny()(3.0), n_compiled()) == (7.0, 2)
    assert (tiny()(3.0), n_compiled()) == (7.0, 0)
    assert (tiny(HELPER.replace("2.0", "3.0"))(3.0), n_compiled()) == (10.0, 2)


def test_a_warmup_makes_a_spoilt_cache_anew(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny()(3.0)
    for suffix, content in ((".nbi", b""), (".nbc", b"spoilt")):
        for file in (tmp_path / "cache").rglob(f"*{suffix}"):
            file.write_bytes(content)
        kernel = tiny()
        monkeypatch.setattr(warmup, "KERNELS", _kernels.KERNELS)
        monkeypatch.setattr(warmup, "_call_all", lambda kernel=kernel: kernel(3.0))
        assert warmup.warmup() > 0
        assert (tiny()(3.0), n_compiled()) == (7.0, 0)


# What is said while kernels are compiled


def test_long_compilation_is_announced_once(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_kernels, "PATIENCE", 1e-2)
    for helper in (HELPER, HELPER.replace("2.0", "3.0")):
        uninterrupted(tiny(helper))(3.0)
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("ruzhash_cv: compiling kernels, once")


def test_neither_loading_nor_a_slow_call_is_announced(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny()(3.0)
    monkeypatch.setattr(_kernels, "PATIENCE", 1e-3)
    uninterrupted(tiny())(3.0)
    uninterrupted(time.sleep)(0.02)
    assert capsys.readouterr().err == ""


def test_a_process_without_stderr_compiles_all_the_same(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernels, "PATIENCE", 1e-3)
    monkeypatch.setattr(sys, "stderr", None)
    assert uninterrupted(tiny())(3.0) == 7.0


# Ctrl-C


@pytest.fixture
def interruptible() -> Iterator[Any]:
    """Handle SIGINT as by default: a shell's background jobs ignore it, and what they start does too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupted_call(ended: list[bool], *meanwhile: Callable[[], Any]) -> Callable[[], None]:
    """Return a guarded function that gets two signals before its end, with a guarded one within."""

    @uninterrupted
    def inner() -> None:
        signal.raise_signal(signal.SIGINT)

    @uninterrupted
    def outer() -> None:
        inner()
        for each in meanwhile:
            each()
        signal.raise_signal(signal.SIGINT)
        ended.append(True)

    return outer


def test_an_interruption_waits_for_the_end_of_the_outermost_call(interruptible: Any) -> None:
    ended: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_call(ended)()
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is interruptible


def test_an_interruption_is_raised_after_an_error_of_the_call(interruptible: Any) -> None:
    @uninterrupted
    def fail() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ValueError("its own")

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ValueError)


def test_a_handler_that_is_set_during_a_call_stays_and_gets_what_came(interruptible: Any) -> None:
    came: list[int] = []

    def handler(number: int, frame: Any) -> None:
        came.append(number)

    interrupted_call([], lambda: signal.signal(signal.SIGINT, handler))()
    assert came == [signal.SIGINT] * 2  # the second at once, the first at the end
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_an_interruption_that_is_ignored_changes_nothing(interruptible: Any, handler: Any) -> None:
    signal.signal(signal.SIGINT, handler)
    ended: list[bool] = []
    interrupted_call(ended)()
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is handler


def test_no_kernel_runs_where_an_interruption_could_reach_it(
    monkeypatch: pytest.MonkeyPatch, interruptible: Any
) -> None:
    warmup.warmup()  # what is compiled calls the kernels themselves
    held: dict[str, bool] = {}

    def watched(kernel: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            is_held = signal.getsignal(signal.SIGINT) is not interruptible
            held[kernel.__qualname__] = held.get(kernel.__qualname__, True) and is_held
            return kernel(*arguments)

        return call

    for module in [module for name, module in sys.modules.items() if name.startswith("ruzhash_cv.")]:
        for name, value in list(vars(module).items()):
            if any(value is kernel for kernel in _kernels.KERNELS):
                monkeypatch.setattr(module, name, watched(value))
    for call in calls().values():
        call()
    assert len(held) > 15
    assert [name for name, is_held in held.items() if not is_held] == []


def test_other_threads_touch_no_handler(interruptible: Any) -> None:
    seen: list[Any] = []
    thread = threading.Thread(target=uninterrupted(lambda: seen.append(signal.getsignal(signal.SIGINT))))
    thread.start()
    thread.join()
    assert seen == [interruptible]


# Random numbers

words = st.integers(0, naive.WORD - 1)


@settings(max_examples=200, deadline=None)
@given(key=words, counter=words)
def test_mix_equals_its_twin_in_python_integers(key: int, counter: int) -> None:
    assert int(mix(np.uint64(key), np.uint64(counter))) == naive.mix(key, counter)
    assert uniform(np.uint64(key), np.uint64(counter)) == (naive.mix(key, counter) >> 11) / 2**53


@settings(max_examples=100, deadline=None)
@given(key=words, counter=words, n=st.integers(1, 2**40))
def test_numbers_below_n_are_uniform_ones_cut_off(key: int, counter: int, n: int) -> None:
    number = below(np.uint64(key), np.uint64(counter), n)
    assert 0 <= number < n
    assert number == int(uniform(np.uint64(key), np.uint64(counter)) * n)


def test_numbers_of_a_stream_are_even() -> None:
    """Chi-squared of 32 cells has mean 31 and standard deviation sqrt(62): five of these."""
    n = 40000
    drawn = np.array([below(np.uint64(9), np.uint64(counter), 32) for counter in range(n)])
    squares = ((np.bincount(drawn, minlength=32) - n / 32) ** 2 / (n / 32)).sum()
    assert abs(squares - 31) < 5 * np.sqrt(62)


def test_one_seed_draws_one_key_after_the_other() -> None:
    first, again = np.random.default_rng(3), np.random.default_rng(3)
    keys = [draw_key(first) for _ in range(20)]
    assert keys == [draw_key(again) for _ in range(20)]
    assert len(set(keys)) == 20
    assert all(isinstance(key, np.uint64) for key in keys)
