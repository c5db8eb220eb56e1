"""All kernels compiled ahead, in several processes: numba compiles one at a time in each."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Iterator

from ruzhash_cv._core.jit import kernels, notice
from ruzhash_cv._core.validation import check_n_jobs


def warmup(n_jobs: int | None = None, *, package: str = "ruzhash_cv") -> int:
    """Compile the kernels of a package that declare their signature and are not in the cache, and return how many these were.

    `n_jobs` processes do it, None and -1: one for each processor. RuntimeError if one fails; its message is on stderr.
    """
    names = missing_kernels(package)
    n_processes = min(check_n_jobs(n_jobs), len(names))
    code = "import sys; sys.path[:] = {!r}; from ruzhash_cv._core.warmup import prepare; prepare({!r})"
    with held_back():
        processes = [
            subprocess.Popen([sys.executable, "-c", code.format(sys.path, names[first::n_processes])])
            for first in range(n_processes)
        ]
    failed = [process.wait() != 0 for process in processes]
    if any(failed):
        raise RuntimeError("a process that compiles kernels failed")
    return len(names)


def missing_kernels(package: str = "ruzhash_cv") -> list[str]:
    """Import all modules of a package and return its kernels that declare their signature and are not in the cache yet."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        importlib.import_module(module.name)
    own = [name for name in kernels if f"{name}.".replace(":", ".").startswith(f"{package}.")]
    return [name for name in own if kernels[name].missing()]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C back, and let processes that are started meanwhile never get it. No help on Windows.

    A terminal sends it to each of them, and one that is still importing would show where it stood.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # a process of Python's own; started later it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def prepare(names: list[str]) -> None:
    """Compile kernels in a process that is there for nothing else."""
    # Ctrl-C ends this process at once and without a word: files of the cache are whole or not there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    notice.said = True
    for name in names:
        importlib.import_module(name.partition(":")[0])
        kernels[name].prepare()
