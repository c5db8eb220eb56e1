"""The one jit decorator of the package, and the one way its kernels are spread over threads."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher

from ruzhash_cv._interrupts import uninterrupted

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_NO_CACHE = (
    "ruzhash_cv's compiled kernels can be kept neither beside the package nor in the user's cache directory: every process compiles "
    "them anew, which takes up to a minute. Set NUMBA_CACHE_DIR to a directory that can be written; `ruzhash-cv warmup` fills it."
)
_warned = False
_pools: dict[int, ThreadPoolExecutor] = {}


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, but a file that cannot be read or written costs a compilation and not the answer."""

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return super().load_overload(*arguments)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def save_overload(self, *arguments: Any) -> None:
        try:
            super().save_overload(*arguments)
        except (OSError, EOFError, pickle.UnpicklingError):
            _warn_once()


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """numba's dispatcher, but Ctrl-C waits for the kernel's end.

    numba calls back into Python, to compile and to wrap an array it returns, and the interpreter would raise KeyboardInterrupt there;
    numba does not expect it, and what follows is a SystemError, an error of typing or a crash.
    """

    def __call__(self, *arguments: Any) -> Any:
        return uninterrupted(super().__call__, *arguments)


def jit(function: F) -> F:
    """Compile a kernel.

    nogil: kernels run side by side in the threads of :func:`run_blocks`.
    error_model="numpy": division by zero gives infinity as in NumPy, and no branch in the inner loops.
    No parallel: numba's own thread pool aborts the process when two Python threads enter it, or after a fork.
    No fastmath: NaN and infinity mark degenerate models and must survive.

    Cached: the first call of a process costs a file read, not a compilation. numba's own ``cache=True`` raises where no file can be
    written, at import or in the midst of a call.
    """
    kernel: Any = numba.njit(nogil=True, error_model="numpy")(function)
    kernel.__class__ = _Kernel
    try:
        kernel._cache = _KernelCache(function)
    except RuntimeError:  # no place for files
        _warn_once()
    return cast(F, kernel)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(_NO_CACHE, RuntimeWarning, stacklevel=2)


def run_blocks(function: Callable[[int, int], T], n_items: int, n_jobs: int, *, smallest: int = 1) -> list[T]:
    """Call ``function(start, stop)`` on up to `n_jobs` blocks of `n_items` and return the results in order.

    Blocks change only who does the work: a function must give the same answer for any cut.
    """
    n_blocks = max(1, min(n_jobs, n_items // max(1, smallest)))
    edges: Sequence[int] = [n_items * block // n_blocks for block in range(n_blocks + 1)]
    if n_blocks == 1:
        return [function(0, n_items)]
    others = _threads().map(function, edges[1:-1], edges[2:])
    return [function(0, edges[1]), *others]


def _threads() -> ThreadPoolExecutor:
    """Return this process's threads. They are kept: starting one costs as much as a small kernel takes.

    A forked process has none of its parent's threads, and gets its own. No lock, which a fork could leave locked: of two callers that
    come first at once, one's executor is dropped before it has started a thread.
    """
    process = os.getpid()
    if process not in _pools:
        _pools.setdefault(process, ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ruzhash_cv"))
    return _pools[process]
