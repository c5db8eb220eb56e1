"""The first call: kernels are compiled when they are called, kept for later processes if they can be, and used in any case."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from ruzhash_cv import _kernels, cli
from ruzhash_cv._kernels import n_compiled

ROOT = Path(_kernels.__file__).parents[1]
COMPILING = "ruzhash_cv: compiling kernels, once after installation (`ruzhash-cv warmup` does it ahead)\n"
#: numba tries each directory for its files with a temporary one.
NO_DIRECTORY = """
import tempfile
def refuse(*_, **__):
    raise PermissionError("no place")
tempfile.TemporaryFile = refuse
"""
NO_THREAD = """
import threading
def refuse(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
"""
WARM_UP = "from ruzhash_cv.warmup import warmup; print(warmup())"
CALL = """
from ruzhash_cv.models import transfer_error
print(transfer_error([[0.0, 0.0]], [[3.0, 4.0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
"""
CALLS = """
from public_calls import calls
from ruzhash_cv._kernels import KERNELS, n_compiled
for call in calls().values():
    call()
print(n_compiled(), [kernel for kernel in KERNELS if len(kernel.signatures) > 1])
"""


def run(code: str, cache: Path) -> tuple[str, str]:
    """Run code in a new process that keeps its kernels in a folder, and return what it writes to stdout and stderr."""
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "always::RuntimeWarning", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that a warm-up filled, in a process that could start no thread."""
    path = tmp_path_factory.mktemp("cache")
    compiled, stderr = run(NO_THREAD + WARM_UP, path)
    assert int(compiled) > 10
    assert stderr == COMPILING
    return path


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_after_a_warmup_nothing_is_compiled_and_nothing_is_added_to_the_cache(cache: Path) -> None:
    """And every kernel that Python calls is always called with the same types."""
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert before
    assert run(CALLS, cache) == ("0 []", "")
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == before


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_copy_of_a_filled_cache_is_used(cache: Path, tmp_path: Path) -> None:
    """As docs/install.md says for images that can only be read."""
    shutil.copytree(cache, tmp_path / "copy", copy_function=shutil.copyfile)
    assert run(WARM_UP, tmp_path / "copy") == ("0", "")


def test_an_import_compiles_nothing_and_leaves_out_what_few_calls_need(tmp_path: Path) -> None:
    few_need = (
        "print([name for name in ('scipy.optimize', 'matplotlib', 'pooch', 'tqdm', 'bokeh') if name in sys.modules])"
    )
    assert run(f"import sys, ruzhash_cv; {few_need}", tmp_path) == ("[]", "")
    counted = "import ruzhash_cv.cli, ruzhash_cv._kernels as k; print(len(k.KERNELS) > 30, k.n_compiled())"
    assert run(counted, tmp_path) == ("True 0", "")


def test_without_a_directory_for_files_one_warning_says_so(tmp_path: Path) -> None:
    stdout, stderr = run(NO_DIRECTORY + CALL, tmp_path)
    assert (stdout, stderr.count("RuntimeWarning")) == ("[5.]", 1)
    assert "compiled kernels cannot be kept (there is no directory for them)" in stderr
    assert "Set NUMBA_CACHE_DIR to a directory" in stderr


# A kernel and another that it calls, with a cache that only they use

HELPER = """
from ruzhash_cv._kernels import jit

@jit
def double(x):
    return 2.0 * x
"""
KERNEL = """
from ruzhash_cv._kernels import jit
from tiny_helper import double

@jit
def kernel(x):
    return double(x) + 1.0
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``tiny()`` imports the kernels as a new process would, and returns the one that calls the other."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def load(helper: str = HELPER) -> Any:
        for name, source in (("tiny_helper", helper), ("tiny_kernel", KERNEL)):
            file = tmp_path / f"{name}.py"
            if not file.exists() or file.read_text() != source:
                file.write_text(source)
        for name in ("KERNELS", "unkept", "_announced"):
            monkeypatch.setattr(_kernels, name, [])
        for name in ("tiny_helper", "tiny_kernel"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("tiny_kernel").kernel

    return load


def test_only_the_first_process_compiles_and_says_so_once(tiny: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert (tiny()(3.0), n_compiled()) == (7.0, 2)
    assert capsys.readouterr() == ("", COMPILING)
    assert (tiny()(3.0), n_compiled()) == (7.0, 0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("helper", [HELPER, HELPER.replace("2.0 * x", "x.nothing")], ids=["compiles", "fails"])
def test_garbage_is_collected_as_before_but_not_during_a_compilation(tiny: Any, enabled: bool, helper: str) -> None:
    meanwhile = set()

    class Watch(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            meanwhile.add(gc.isenabled())

        def on_end(self, event: Any) -> None:
            pass

    kernel, before = tiny(helper), gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with event.install_listener("numba:run_pass", Watch()), contextlib.suppress(numba.TypingError):
            kernel(3.0)
        assert (meanwhile, gc.isenabled()) == ({False}, enabled)
    finally:
        (gc.enable if before else gc.disable)()


def test_a_kernel_is_compiled_again_if_one_that_it_calls_changes_in_another_module(tiny: Any) -> None:
    assert tiny()(3.0) == 7.0
    assert (tiny(HELPER.replace("2.0", "31.0"))(3.0), n_compiled()) == (94.0, 2)


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", [b"", b"spoilt"])
def test_spoilt_files_are_made_again(tiny: Any, tmp_path: Path, suffix: str, content: bytes) -> None:
    tiny()(3.0)
    for file in (tmp_path / "cache").rglob(f"*{suffix}"):
        file.write_bytes(content)
    for misses in (2, 0):
        assert (tiny()(3.0), n_compiled()) == (7.0, misses)


@pytest.mark.parametrize("method", ["_load_index", "_save_index", "_save_data"])
@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        FileNotFoundError(2, "No such file"),
        PermissionError(13, "Permission denied"),
    ],
)
def test_a_kernel_that_cannot_be_kept_is_used(
    tiny: Any, monkeypatch: pytest.MonkeyPatch, method: str, error: OSError
) -> None:
    def fail(*_: Any) -> None:
        raise error

    def compiled() -> tuple[float, int]:
        return tiny()(3.0), n_compiled()

    with monkeypatch.context() as patched:
        patched.setattr(IndexDataCacheFile, method, fail)
        with pytest.warns(RuntimeWarning, match="cannot be kept") as caught:
            assert compiled() == (7.0, 2)
    assert len(caught) == 1
    assert str(error) in str(caught[0].message)
    assert [compiled(), compiled()] == [(7.0, 2), (7.0, 0)]  # nothing half-written is loaded


def test_a_warmup_whose_kernels_cannot_be_kept_says_so_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ruzhash_cv.cli.warmup.warmup", lambda: 3)
    monkeypatch.setattr("ruzhash_cv.cli.warmup.unkept", ["[Errno 28] No space left on device"])
    assert cli.main(["warmup"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("3 of them compiled, but they cannot be kept: [Errno 28] No space left on device\n")


def test_a_process_without_stderr_compiles_all_the_same(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert tiny()(3.0) == 7.0
