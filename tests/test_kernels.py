"""Kernels are compiled when they are first called, never at import, and where their cache cannot be written; the guard around calls
that run them; their random numbers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ruzhash_cv import _kernels

ROOT = Path(_kernels.__file__).parents[1]
CALL = """
from ruzhash_cv import transfer_error
print(transfer_error([[0.0, 0.0]], [[3.0, 4.0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
from ruzhash_cv._kernels import n_compiled
print(n_compiled())
"""


def run(code: str, cache: Path | str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that keeps its kernels in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache), **environment}
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
    (tmp_path / "file").touch()
    # Of numba's places for files only that which is a file here.
    done = run(CALL, tmp_path / "file" / "cache", NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")
    assert done.stdout.split()[0] == "[5.]", done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert "Set NUMBA_CACHE_DIR to a directory" in done.stderr
