"""The one jit decorator of the package, and the one way its kernels are spread over threads."""

from __future__ import annotations

import functools
import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
P = ParamSpec("P")

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


def interruptible(function: Callable[P, T]) -> Callable[P, T]:
    """Let an interruption that reaches Python within a kernel come out as the KeyboardInterrupt it was.

    A signal is handled when numba makes Python objects of a kernel's results, and the interpreter reports that as a SystemError.
    """

    @functools.wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return function(*arguments, **options)
        except SystemError as error:
            cause: BaseException | None = error
            while cause is not None:
                if isinstance(cause, KeyboardInterrupt):
                    raise KeyboardInterrupt from error
                cause = cause.__cause__ or cause.__context__
            raise

    return called


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
