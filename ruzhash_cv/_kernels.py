"""Kernels: the decorator that compiles them, the guard around calls that run them, and the random numbers they draw."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache

from ruzhash_cv._interrupts import interrupts_held

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")

#: All kernels, as numba makes them.
KERNELS: list[Any] = []
_COMPILING = "ruzhash_cv: compiling kernels, once after installation (`ruzhash-cv warmup` does it ahead)"
_NOT_KEPT = (
    "They work, but every process compiles them again, which takes about ten seconds. "
    "Set NUMBA_CACHE_DIR to a directory that can be written; `ruzhash-cv warmup` fills it."
)
#: What kernels count from. A plain 0 is a type of its own to numba, which infers all types of a kernel again where it becomes a number,
#: and compiles a kernel that it is passed to for it first.
ZERO: Any = np.int64(0)
#: Why compiled kernels could not be kept, at the first failure.
unkept: list[str] = []
_announced: list[bool] = []


def jit(function: F) -> F:
    """Compile a kernel at its first call, for the types of its arguments; other types would cost another compilation.

    Callers always pass the same ones: C-contiguous arrays that can be written, of one dtype, and Python's int, float and bool.
    Records go in as plain tuples and are named within: numba has to ask Python for the type of a named one, at every call.

    nogil: other threads run meanwhile.
    error_model="numpy": division by zero gives infinity as in NumPy, and no branch in the inner loops.
    cache: the first call of a process costs a file read, not a compilation.
    no_cfunc_wrapper: nothing calls kernels from C, and these entries are a tenth of what there is to compile.
    No parallel: numba's own thread pool aborts the process when two Python threads enter it, or after a fork.
    No fastmath: NaN and infinity mark degenerate models and must survive.
    """
    kernel = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    if kernel is not function:  # as it is with NUMBA_DISABLE_JIT
        try:
            kernel._cache = _Cache(function)
        except RuntimeError:
            _warn_once("there is no directory for them")
        KERNELS.append(kernel)
    return cast(F, kernel)


class _Cache(FunctionCache):  # type: ignore[misc]
    """numba's files of one kernel. A failure to read or write one costs a compilation, and never the call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # numba compiles again if the kernel's module changes. Here also if a module does that it imports kernels from.
        imported = set(map(id, function.__globals__.values()))
        others = [kernel._cache for kernel in KERNELS if id(kernel) in imported]
        stamps = [other._cache_file._source_stamp for other in others if isinstance(other, _Cache)]
        self._cache_file._source_stamp = frozenset([self._cache_file._source_stamp]).union(*stamps)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what unpickling raises depends on how a file is spoilt
            return self._forget()

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._forget()  # an index that was written before the failure may name a file of older code
            _warn_once(str(error))

    def _forget(self) -> None:
        with contextlib.suppress(OSError):
            Path(self._cache_file._index_path).unlink()


class _Compilation(event.Listener):  # type: ignore[misc]
    """What numba's lock lets only one thread do at a time: the compilation of a kernel, with those that it calls.

    The first one is announced. Python collects no garbage meanwhile: there are more and more objects, nearly all in use, and to look
    through them takes a tenth of the time.
    """

    def __init__(self) -> None:
        self._outermost: Any = None

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"]
        if not any(kernel is own for own in KERNELS):
            return
        if not _announced:
            _announced.append(True)
            with contextlib.suppress(AttributeError, OSError, ValueError):  # there may be no stderr, or a closed one
                print(_COMPILING, file=sys.stderr, flush=True)
        if self._outermost is None and gc.isenabled():
            self._outermost = kernel
            gc.disable()

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] is self._outermost:
            self._outermost = None
            gc.enable()


event.register("numba:compile", _Compilation())


def _warn_once(cause: str) -> None:
    if not unkept:
        unkept.append(cause)
        warnings.warn(f"compiled kernels cannot be kept ({cause}). {_NOT_KEPT}", RuntimeWarning, stacklevel=3)


def n_compiled() -> int:
    """Return how many times a kernel was not in the cache, one that is being compiled included."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Make a public function that runs kernels or OpenCV's solvers hold Ctrl-C until its end.

    Both call back into Python, and the interpreter would raise KeyboardInterrupt there. They do not expect it, and what follows is
    a SystemError or a crash.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with interrupts_held():
            return function(*args, **kwargs)

    return call


# Random numbers: keyed 64-bit hashes, the same on every platform and for any number of threads. The mixing function is the finaliser
# of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, "Fast splittable pseudorandom number generators"). A stream is a counter added to
# a key, so that any draw can be made without those before it.

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER2 = np.uint64(0x94D049BB133111EB)
_SHIFT30, _SHIFT27, _SHIFT31, _SHIFT11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / (1 << 53)


@jit
def mix(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return 64 pseudorandom bits for the pair (key, counter)."""
    z = key + (counter + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _SHIFT30)) * _MULTIPLIER1
    z = (z ^ (z >> _SHIFT27)) * _MULTIPLIER2
    return z ^ (z >> _SHIFT31)


@jit
def uniform(key: np.uint64, counter: np.uint64) -> float:
    """Return a number in [0, 1) for the pair (key, counter); n times it, rounded too, is less than n."""
    return (mix(key, counter) >> _SHIFT11) * _UNIT


def draw_key(rng: np.random.Generator) -> np.uint64:
    """Draw the key of a stream."""
    return np.uint64(rng.integers(0, 1 << 64, dtype=np.uint64))
