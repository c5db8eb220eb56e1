"""All kernels compiled ahead, in several processes: numba compiles one at a time in each."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ruzhash_cv._core.jit import kernels, say_nothing
from ruzhash_cv._core.validation import check_n_jobs

_SERVE = "import sys; sys.path[:] = sys.argv[1:]; from ruzhash_cv._core.warmup import serve; serve()"


def warmup(n_jobs: int | None = None, *, package: str = "ruzhash_cv") -> int:
    """Compile the kernels of a package that declare their signature, and keep them in the cache.

    Parameters
    ----------
    n_jobs : int or None
        Processes, at most one a kernel. None and -1: one for each processor.
    package : str
        Its modules are imported, all of them.

    Returns
    -------
    int
        How many were compiled: those that were not in the cache. 0 where there is no place for one.

    Raises
    ------
    RuntimeError
        If a process fails; its message is on stderr.
    """
    names = deque(missing_kernels(package))
    n_processes = min(check_n_jobs(n_jobs), len(names))
    if n_processes == 0:
        return 0
    if not sys.executable or getattr(sys, "frozen", False):  # no interpreter to start
        return sum(_prepare(name) for name in names)
    with ThreadPoolExecutor(n_processes) as pool:
        try:
            return sum(pool.map(_feed, [names] * n_processes))
        finally:  # Ctrl-C, or a failure: no process begins another kernel
            names.clear()


def missing_kernels(package: str = "ruzhash_cv") -> list[str]:
    """Return the kernels of a package that declare their signature and are not in the cache yet."""
    return [name for name in kernel_names(package) if kernels[name].missing()]


def kernel_names(package: str) -> list[str]:
    """Import all modules of a package and return the names of its kernels that declare their signature."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    return [name for name in kernels if f"{name}.".replace(":", ".").startswith(f"{package}.")]


def _feed(names: deque[str]) -> int:
    """Hand kernels to one process, one as soon as another is compiled, and return how many it was."""
    command = [sys.executable, "-c", _SERVE, *sys.path]
    compiled = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        for name in _taken(names):
            answer = _ask(process, name)
            if not answer:
                raise RuntimeError(f"the process that compiles {name} failed")
            compiled += int(answer)
    return compiled


def _ask(process: subprocess.Popen[bytes], name: str) -> bytes:
    """Have one kernel compiled and return the answer; nothing if the process has died."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{name}\n".encode())
    return process.stdout.readline()


def _taken(names: deque[str]) -> Iterator[str]:
    """Take one name after the other, until the threads have taken all."""
    while True:
        try:
            yield names.popleft()
        except IndexError:
            return


def serve() -> None:
    """Compile the kernels named on stdin, one a line, and answer each with 1."""
    # Ctrl-C ends a process at once: files of the cache are whole or not there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    say_nothing()
    for line in sys.stdin:
        print(_prepare(line.strip()), flush=True)


def _prepare(name: str) -> int:
    importlib.import_module(name.partition(":")[0])
    kernels[name].prepare()
    return 1
