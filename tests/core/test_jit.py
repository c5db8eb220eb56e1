"""Kernels are compiled when they are first called, never at import, and where their cache cannot be written; their threads and
their random numbers.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import naive
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.caching import FunctionCache
from numba.core.event import install_recorder

import ruzhash_cv
from ruzhash_cv._core import cache
from ruzhash_cv._core import jit as room
from ruzhash_cv._core.jit import below, draw_key, jit, mix, run_blocks, uniform
from ruzhash_cv._core.warmup import missing_kernels, warmup

PACKAGE = Path(ruzhash_cv.__file__).parent


def run(code: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that imports the package found in `cwd`."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    command = [sys.executable, "-W", "always::RuntimeWarning", "-c", code]
    done = subprocess.run(
        command, cwd=cwd, env={**inherited, "PYTHONPATH": str(cwd), **environment}, capture_output=True, text=True
    )
    # Where compiling takes long, as on a busy machine, a line says so.
    done.stderr = re.sub(r"^ruzhash_cv: compiling kernels.*\n", "", done.stderr, flags=re.MULTILINE)
    return done


@pytest.fixture
def read_only_install(tmp_path: Path) -> Path:
    """A copy of the package with a file wherever a folder of compiled code would have to be."""
    shutil.copytree(PACKAGE, tmp_path / "ruzhash_cv", ignore=shutil.ignore_patterns("__pycache__", "datasets", "data"))
    shutil.copytree(PACKAGE / "datasets", tmp_path / "ruzhash_cv" / "datasets", ignore=shutil.ignore_patterns("data"))
    for module in (tmp_path / "ruzhash_cv").rglob("*.py"):
        (module.parent / "__pycache__").touch()
    (tmp_path / "no_home").write_text("")
    return tmp_path


CALL = """
import ruzhash_cv
assert ruzhash_cv.__file__.startswith({folder!r})
print(ruzhash_cv.transfer_error([[0.0, 0.0]], [[3.0, 4.0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
"""


def test_an_install_that_cannot_be_written_warns_once_and_works(read_only_install: Path) -> None:
    home = str(read_only_install / "no_home")
    code = CALL.format(folder=str(read_only_install))
    done = run(code, read_only_install, HOME=home, USERPROFILE=home, LOCALAPPDATA=home)
    assert (done.returncode, done.stdout) == (0, "[5.]\n"), done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert "Set NUMBA_CACHE_DIR to a directory" in done.stderr


def test_a_cache_directory_is_the_remedy(read_only_install: Path) -> None:
    home, cache = str(read_only_install / "no_home"), read_only_install / "cache"
    code = CALL.format(folder=str(read_only_install))
    done = run(code, read_only_install, HOME=home, USERPROFILE=home, LOCALAPPDATA=home, NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[5.]\n", "")
    assert any(cache.rglob("*.nbi"))


def test_nothing_is_compiled_at_import(tmp_path: Path) -> None:
    code = (
        "from numba.core.event import install_recorder\n"
        "with install_recorder('numba:compile') as recorder:\n"
        "    import ruzhash_cv, ruzhash_cv.cli\n"
        "print(len(recorder.buffer))\n"
        "with install_recorder('numba:compile') as recorder:\n"
        "    import numba; numba.njit(lambda: 1)()\n"
        "print(len(recorder.buffer) > 0)\n"
    )
    done = run(code, PACKAGE.parent)
    assert (done.stdout, done.stderr) == ("0\nTrue\n", "")


def test_a_spoilt_cache_is_replaced(tmp_path: Path) -> None:
    call, cache = CALL.format(folder=""), tmp_path / "cache"
    assert run(call, PACKAGE.parent, NUMBA_CACHE_DIR=str(cache)).stderr == ""
    for file in cache.rglob("*.nb?"):
        file.write_bytes(b"" if file.suffix == ".nbi" else b"spoilt")
    for compiles in (True, False):
        done = run(counting(call), PACKAGE.parent, NUMBA_CACHE_DIR=str(cache))
        assert (done.returncode, done.stderr) == (0, "")
        answer, count = done.stdout.split()
        assert (answer, int(count) > 0) == ("[5.]", compiles)


# What the cache knows a kernel by

HELPER = """
from ruzhash_cv._core.jit import jit

@jit
def double(x):
    return 2.0 * x
"""
KERNEL = """
import numpy as np
from ruzhash_cv._core.jit import jit
from tiny_helper import double

STEP = 1.0
TABLE = np.array([[10.0, 20.0]])
PAIR = (100.0, 200)

@jit("f8(f8[::1], i8)")
def kernel(values, at):
    return double(values[at]) + STEP + later() + TABLE[0, 1] + PAIR[1]

@jit
def later():
    return 0.5
"""
Tiny = Callable[..., tuple[float, list[str]]]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """``tiny(kernel, helper)`` imports two modules of these sources afresh and returns an answer, and what was compiled for it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def call(kernel: str = KERNEL, helper: str = HELPER) -> tuple[float, list[str]]:
        for name, source in (("tiny_helper", helper), ("tiny_kernel", kernel)):
            (tmp_path / f"{name}.py").write_text(source)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        module = importlib.import_module("tiny_kernel")
        return compiled_in(lambda: module.kernel(np.array([3.0, 4.0]), 1))

    return call


def compiled_in(function: Callable[[], float]) -> tuple[float, list[str]]:
    """Return a function's answer and the names of what is compiled in the meantime, innermost last."""
    with install_recorder("numba:compile") as recorder:
        answer = function()
    return answer, [event.data["dispatcher"].__name__ for _, event in recorder.buffer if event.is_start]


ALL = ["kernel", "double", "later"]


def test_a_kernel_is_compiled_once(tiny: Tiny) -> None:
    assert tiny() == (229.5, ALL)
    assert tiny() == (229.5, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\nSTEP", "\n\n# a comment\n\nOTHER = 3\nSTEP"),
        ("values, at):\n", "values, at):\n    # a comment\n"),
        ("values, at):\n    return", "values, at):\n\n    return"),
    ],
)
def test_lines_and_comments_may_move(tiny: Tiny, old: str, new: str) -> None:
    tiny()
    assert KERNEL.count(old) == 1
    assert tiny(KERNEL.replace(old, new)) == (229.5, [])


def test_a_cache_that_is_lost_in_the_midst_is_made_again(tiny: Tiny, tmp_path: Path) -> None:
    tiny()
    double = sys.modules["tiny_helper"].double
    assert double(1.0) == 2.0
    shutil.rmtree(tmp_path / "cache")
    assert double(1) == 2.0
    assert any((tmp_path / "cache").rglob("tiny_helper.double.*.nbc"))


def test_a_cache_that_cannot_be_made_again_warns_once_and_works(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny()
    double = sys.modules["tiny_helper"].double
    assert double(1.0) == 2.0
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").touch()
    monkeypatch.setattr(cache, "_warned", False)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as caught:
        assert (double(1), double(np.float32(1)), double(1.0)) == (2.0, 2.0, 2.0)
    assert len(caught) == 1


def test_docstrings_may_change(tiny: Tiny) -> None:
    documented = HELPER.replace("(x):\n", '(x):\n    """Return twice x."""\n')
    tiny(helper=documented)
    assert tiny(helper=documented.replace("twice", "two times")) == (229.5, [])


def test_the_files_time_does_not_count(tiny: Tiny, tmp_path: Path) -> None:
    tiny()
    module = sys.modules["tiny_kernel"]
    assert module.__file__ is not None
    os.utime(module.__file__, (0, 0))
    module = importlib.reload(module)
    assert compiled_in(lambda: module.kernel(np.zeros(2), 1))[1] == []


@pytest.mark.parametrize(
    ("old", "new", "answer", "compiled"),
    [
        ("STEP = 1.0", "STEP = 2.0", 230.5, ["kernel"]),
        ("20.0]]", "30.0]]", 239.5, ["kernel"]),
        ("200)", "300)", 329.5, ["kernel"]),
        ("200)", "200.0)", 229.5, ["kernel"]),
        ("0.5", "0.25", 229.25, ["kernel", "later"]),
        ("+ STEP", "- STEP", 227.5, ["kernel"]),
        ("f8(f8[::1], i8)", "f8(f8[:], i8)", 229.5, ["kernel"]),
    ],
)
def test_what_changes_is_compiled_anew(tiny: Tiny, old: str, new: str, answer: float, compiled: list[str]) -> None:
    tiny()
    assert KERNEL.count(old) == 1
    assert tiny(KERNEL.replace(old, new)) == (answer, compiled)


def test_a_helper_that_changes_in_another_module_has_its_callers_compiled_anew(tiny: Tiny) -> None:
    tiny()
    assert tiny(helper=HELPER.replace("2.0", "3.0")) == (233.5, ["kernel", "double"])


def test_a_helper_that_declares_another_signature_has_its_callers_compiled_anew(tiny: Tiny) -> None:
    helper = HELPER.replace("@jit", '@jit("f8(f8)")')
    tiny(helper=helper)
    assert tiny(helper=helper.replace("f8(f8)", "i8(i8)"))[1] == ["kernel", "double"]


def test_a_constant_of_a_module_that_is_named_counts(tiny: Tiny) -> None:
    kernel = KERNEL.replace("import double", "import double\nimport tiny_helper").replace(
        "+ STEP", "+ tiny_helper.STEP"
    )
    assert tiny(kernel, f"STEP = 1.0\n{HELPER}")[0] == 229.5
    assert tiny(kernel, f"STEP = 5.0\n{HELPER}") == (233.5, ["kernel"])


# Declared signatures


@jit("f8(f8[:, ::1], f8, i8)")
def declared(values, factor, at):  # type: ignore[no-untyped-def]
    """Read one value."""
    return factor * values[0, at]


@jit("void(f8[::1])")
def writes(values):  # type: ignore[no-untyped-def]
    values[0] = 1.0


@jit('f8(Array(f8, 1, "C", readonly=True))')
def reads(values):  # type: ignore[no-untyped-def]
    return values[0]


VALUES = np.array([[3.0, 4.0]])


@pytest.mark.parametrize("factor", [2.0, 2, np.float64(2), np.float32(2), np.int64(2)])
@pytest.mark.parametrize("at", [1, True, np.int32(1), np.uint8(1)])
def test_a_declared_kernel_takes_python_s_numbers(factor: float, at: int) -> None:
    assert declared(VALUES, factor, at) == 8.0
    assert len(declared.signatures) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((VALUES.astype(np.float32), 2.0, 1), r"No matching definition .*array\(float32, 2d, C\)"),
        ((VALUES[:, ::-1], 2.0, 1), r"No matching definition .*array\(float64, 2d, A\)"),
        ((VALUES[0], 2.0, 1), r"No matching definition .*array\(float64, 1d, C\)"),
        ((VALUES, 2j, 1), "No matching definition .*complex128"),
        ((VALUES, None, 1), "No matching definition .*none"),
        ((VALUES, "2", 1), "No matching definition .*unicode_type"),
        ((VALUES, 2.0), "not enough arguments: expected 3, got 2"),
        ((VALUES, 2.0, 1, 1), "too many arguments: expected 3, got 4"),
    ],
)
def test_other_types_are_refused(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        declared(*arguments)
    assert len(declared.signatures) == 1  # type: ignore[attr-defined]


def test_read_only_arrays_are_for_kernels_that_declare_them() -> None:
    frozen = np.ones(1)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match=r"No matching definition .*readonly array"):
        writes(frozen)
    assert reads(frozen) == reads(np.ones(1)) == 1.0


def test_other_kernels_call_the_declared_signature_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @jit("f8(f8)")
    def inner(x):  # type: ignore[no-untyped-def]
        return x / 2

    @jit
    def outer(x):  # type: ignore[no-untyped-def]
        return inner(x)

    assert (outer(3), outer(np.float32(5))) == (1.5, 2.5)
    assert len(inner.signatures) == 1  # type: ignore[attr-defined]


def test_threads_that_come_first_at_once_compile_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @jit("i8(i8)")
    def kernel(x):  # type: ignore[no-untyped-def]
        return x + 1

    barrier, answers = threading.Barrier(4), []

    def call() -> None:
        barrier.wait()
        answers.append(kernel(1))

    def start() -> float:
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return 0.0

    assert compiled_in(start)[1] == ["kernel"]
    assert answers == [2] * 4


# What is said while kernels are compiled


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has compiled nothing yet."""
    monkeypatch.setattr(room.notice, "said", False)
    monkeypatch.setattr(room.notice, "_duration", 0.0)


def test_long_compilation_is_announced_once(
    tiny: Tiny, patience: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(room, "PATIENCE", 1e-3)
    tiny()
    tiny(helper=HELPER.replace("2.0", "3.0"))
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("ruzhash_cv: compiling kernels, once")


def test_loading_is_not_announced(
    tiny: Tiny, patience: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny()
    assert capsys.readouterr().err == ""  # less than two seconds
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    tiny()
    assert capsys.readouterr().err == ""


def test_a_process_without_stderr_compiles_all_the_same(
    tiny: Tiny, patience: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", None)
    assert tiny()[0] == 229.5


# Warm-up

CALLS = (
    "import tiny.one, tiny.deep.two\nprint(tiny.one.first(1), tiny.one.second(1.0), tiny.deep.two.third(1), end=' ')"
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of three kernels in two modules, one of them in a folder."""
    (tmp_path / "tiny" / "deep").mkdir(parents=True)
    head = "from ruzhash_cv._core.jit import jit\n"
    first = '@jit("i8(i8)")\ndef first(x):\n    return helper(x) + 1\n\n@jit\ndef helper(x):\n    return x\n\n'
    second = '@jit("f8(f8)")\ndef second(x):\n    return helper(x) + 2\n'
    third = '@jit("i8(i8)")\ndef third(x):\n    return x + 3\n'
    sources = {"__init__": "", "one": head + first + second, "deep/__init__": "", "deep/two": head + third}
    for name, source in sources.items():
        (tmp_path / "tiny" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path
    for module in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
        del sys.modules[module]


def counting(code: str) -> str:
    """Code that runs this and then prints how many compilations that took."""
    return f"""
from numba.core.event import install_recorder
with install_recorder("numba:compile") as recorder:
    exec({code!r})
print(sum(event.is_start for _, event in recorder.buffer))
"""


def test_warmup_in_two_processes_leaves_nothing_to_compile(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert missing_kernels("tiny") == ["tiny.deep.two:third", "tiny.one:first", "tiny.one:second"]
    assert warmup(2, package="tiny") == 3
    done = run(
        counting(CALLS), PACKAGE.parent, NUMBA_CACHE_DIR=str(package / "cache"), PYTHONPATH=os.pathsep.join(sys.path)
    )
    assert (done.stdout, done.stderr) == ("2 3.0 4 0\n", "")
    assert warmup(2, package="tiny") == 0
    assert capfd.readouterr() == ("", "")


def test_warmup_compiles_nothing_where_nothing_can_be_kept(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FunctionCache._impl_class, "_locator_classes", [])
    monkeypatch.setattr(cache, "_warned", False)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as caught:
        assert warmup(2, package="tiny") == 0
    assert len(caught) == 1


def test_a_kernel_that_does_not_compile_stops_the_warmup(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (package / "tiny" / "one.py").open("a") as file:
        file.write('\n@jit("i8(i8)")\ndef wrong(x):\n    return x.absent\n')
    with pytest.raises(RuntimeError, match="a process that compiles kernels failed"):
        warmup(1, package="tiny")
    message = capfd.readouterr().err
    assert "absent" in message
    assert "wrong" in message


def test_warmup_looks_for_kernels_in_every_module() -> None:
    missing_kernels()
    files = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
    assert len(files) > 30
    assert {".".join(path.parts).removesuffix(".__init__") for path in files} <= set(sys.modules)


# Threads


@pytest.mark.parametrize(
    ("n_items", "n_jobs", "smallest"), [(0, 4, 1), (1, 4, 1), (10, 3, 1), (10, 1000, 4), (7, 1, 99)]
)
def test_blocks_cover_all_items_once_and_in_order(n_items: int, n_jobs: int, smallest: int) -> None:
    blocks = run_blocks(lambda start, stop: list(range(start, stop)), n_items, n_jobs, smallest=smallest)
    assert [item for block in blocks for item in block] == list(range(n_items))
    assert len(blocks) <= max(1, min(n_jobs, n_items // smallest))


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
