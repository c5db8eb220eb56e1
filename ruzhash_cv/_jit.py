"""The one jit decorator of the package, and the one way its kernels are spread over threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def jit(function: F) -> F:
    """Compile a kernel.

    nogil: kernels run side by side in the threads of :func:`run_blocks`.
    cache: the first call of a process costs a file read, not a compilation.
    error_model="numpy": division by zero gives infinity as in NumPy, and no branch in the inner loops.
    No parallel: numba's own thread pool aborts the process when two Python threads enter it, or after a fork.
    No fastmath: NaN and infinity mark degenerate models and must survive.
    """
    return cast(F, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def run_blocks(function: Callable[[int, int], T], n_items: int, n_jobs: int, *, smallest: int = 1) -> list[T]:
    """Call ``function(start, stop)`` on up to `n_jobs` blocks of `n_items` and return the results in order.

    Blocks change only who does the work: a function must give the same answer for any cut.
    """
    n_blocks = max(1, min(n_jobs, n_items // max(1, smallest)))
    edges: Sequence[int] = [n_items * block // n_blocks for block in range(n_blocks + 1)]
    if n_blocks == 1:
        return [function(0, n_items)]
    with ThreadPoolExecutor(n_blocks) as pool:
        return list(pool.map(function, edges[:-1], edges[1:]))
