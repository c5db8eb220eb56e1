"""Kernels are compiled when they are first called, never at import, and where their cache cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ruzhash_cv
from ruzhash_cv._jit import run_blocks

PACKAGE = Path(ruzhash_cv.__file__).parent


def run(code: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that imports the package found in `cwd`."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    command = [sys.executable, "-W", "always::RuntimeWarning", "-c", code]
    return subprocess.run(
        command, cwd=cwd, env={**inherited, "PYTHONPATH": str(cwd), **environment}, capture_output=True, text=True
    )


@pytest.fixture
def read_only_install(tmp_path: Path) -> Path:
    """A copy of the package with a file where the folder of compiled code would have to be."""
    shutil.copytree(PACKAGE, tmp_path / "ruzhash_cv", ignore=shutil.ignore_patterns("__pycache__", "datasets", "data"))
    shutil.copytree(PACKAGE / "datasets", tmp_path / "ruzhash_cv" / "datasets", ignore=shutil.ignore_patterns("data"))
    (tmp_path / "ruzhash_cv" / "__pycache__").write_text("")
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


def test_a_cache_that_is_lost_after_the_import_warns_once_and_works(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    lose = f"import shutil, ruzhash_cv; shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()"
    done = run(lose + CALL.format(folder=""), PACKAGE.parent, NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stdout) == (0, "[5.]\n"), done.stderr
    assert done.stderr.count("RuntimeWarning") == 1


def test_a_spoilt_cache_warns_once_and_works(tmp_path: Path) -> None:
    code, cache = CALL.format(folder=""), tmp_path / "cache"
    assert run(code, PACKAGE.parent, NUMBA_CACHE_DIR=str(cache)).stderr == ""
    for index in cache.rglob("*.nbi"):
        index.write_bytes(b"")
    done = run(code, PACKAGE.parent, NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stdout) == (0, "[5.]\n"), done.stderr
    assert done.stderr.count("RuntimeWarning") == 1


@pytest.mark.parametrize(
    ("n_items", "n_jobs", "smallest"), [(0, 4, 1), (1, 4, 1), (10, 3, 1), (10, 1000, 4), (7, 1, 99)]
)
def test_blocks_cover_all_items_once_and_in_order(n_items: int, n_jobs: int, smallest: int) -> None:
    blocks = run_blocks(lambda start, stop: list(range(start, stop)), n_items, n_jobs, smallest=smallest)
    assert [item for block in blocks for item in block] == list(range(n_items))
    assert len(blocks) <= max(1, min(n_jobs, n_items // smallest))
