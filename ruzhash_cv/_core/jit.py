"""Kernels: the one decorator that compiles them, the threads they run in, and the random numbers they draw."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast, overload

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import TimingListener, register
from numba.core.registry import CPUDispatcher

from ruzhash_cv._core.cache import KernelCache, find_cache

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Seconds of compiling after which a process says so.
PATIENCE = 2.0

# What `signal` wraps: its own functions look up enumerations, which takes ten times as long and would happen at every call of a kernel.
_signal: Any = importlib.import_module("_signal")


@overload
def jit(declared: str) -> Callable[[F], F]: ...
@overload
def jit(declared: F) -> F: ...
def jit(declared: str | F) -> Callable[[F], F] | F:
    """Compile a kernel: ``@jit("void(f8[:, ::1], i8)")`` if Python calls it, ``@jit`` if only other kernels do.

    A kernel that declares its signature is compiled for that one alone, at its first call and never at import. It takes Python's
    int and float for i8 and f8, and an int for f8; a float for i8 is cut off. Any other type raises TypeError, and so does a read-only
    array in place of a mutable one: declare ``Array(f8, 1, "C", readonly=True)`` for one that is only read and may be read-only.

    nogil: kernels run side by side in the threads of :func:`run_blocks`.
    error_model="numpy": division by zero gives infinity as in NumPy, and no branch in the inner loops.
    No parallel: numba's own thread pool aborts the process when two Python threads enter it, or after a fork.
    No fastmath: NaN and infinity mark degenerate models and must survive.
    Cached: the first call of a process costs a file read, not a compilation.
    """
    if isinstance(declared, str):
        signature: str = declared
        return lambda function: _kernel(function, signature)
    return _kernel(declared, None)


def _kernel(function: F, signature: str | None) -> F:
    kernel: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if not isinstance(kernel, CPUDispatcher):  # NUMBA_DISABLE_JIT
        return function
    kernel.__class__ = _Kernel
    del kernel._cache  # found at the first call: only then do all globals exist that a kernel refers to
    if signature is not None:
        kernel.signature = signature
        kernels[f"{function.__module__}:{function.__qualname__}"] = kernel
    return cast(F, kernel)


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """numba's dispatcher, but Ctrl-C waits for the kernel's end, and a declared signature is the only one.

    numba calls back into Python, to compile and to wrap an array it returns, and the interpreter would raise KeyboardInterrupt there;
    numba does not expect it, and what follows is a SystemError, an error of typing or a crash.
    """

    #: None: compiled for whatever types it is called with.
    signature: str | None = None

    @functools.cached_property
    def _cache(self) -> Any:
        return find_cache(self)

    def __call__(self, *arguments: Any) -> Any:
        if self._can_compile:
            uninterrupted(self.prepare)
            let_through()
        return uninterrupted(CPUDispatcher.__call__, self, *arguments)

    def prepare(self) -> None:
        """Load or compile the declared signature, and no other from now on."""
        with global_compiler_lock:
            if self.signature is not None and self._can_compile:  # of two threads the second finds it done
                self.compile(self.signature)
                self.disable_compile()

    def missing(self) -> bool:
        """Tell whether the declared signature could be kept on disk and is not there."""
        return isinstance(self._cache, KernelCache) and not self._cache.holds(self.signature, self.targetctx)

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        """Return what a kernel that calls this one compiles in."""
        self.prepare()
        return super().get_call_template(arguments, keywords)


#: The kernels that declare their signature, by "module:name".
kernels: dict[str, _Kernel] = {}


class _Notice(TimingListener):  # type: ignore[misc]
    """Says once a process that kernels are being compiled, where that takes long."""

    said = False
    _duration = 0.0  # of compilations that have ended; a kernel's goes on while those it calls are compiled

    def on_start(self, event: Any) -> None:
        super().on_start(event)
        late = self._duration + time.perf_counter() - self._ts >= PATIENCE
        if late and not self.said and isinstance(event.data["dispatcher"], _Kernel):
            self.said = True
            # There may be no stderr, or a closed one.
            with contextlib.suppress(AttributeError, OSError, ValueError):
                sys.stderr.write(
                    "ruzhash_cv: compiling kernels, once after installation (`ruzhash-cv warmup` does it ahead)\n"
                )
                sys.stderr.flush()


notice = _Notice()
register("numba:compile", notice)


class _Held(list[Any]):
    """What SIGINT calls while it is held back from its handler: keeps the signals that come."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._handler = handler

    def __call__(self, *signalled: Any) -> None:
        self.append(signalled)

    def let_through(self) -> None:
        """Hand on the signals that came."""
        while self:
            self._handler(*self.pop(0))


def uninterrupted(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that cannot bear a KeyboardInterrupt: Ctrl-C waits for its end.

    Within another such function it waits for that one's, or until `let_through` is called.
    """
    handler = _signal.getsignal(signal.SIGINT)
    is_held = isinstance(handler, _Held)
    if is_held or not callable(handler) or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    held = _Held(handler)
    _signal.signal(signal.SIGINT, held)
    try:
        return function(*arguments)
    finally:
        _signal.signal(signal.SIGINT, handler)
        held.let_through()


def let_through() -> None:
    """Let Ctrl-C through that is held back, where it does no harm: long work is uninterrupted in parts."""
    handler = _signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Held) and threading.current_thread() is threading.main_thread():
        handler.let_through()


def run_blocks(function: Callable[[int, int], T], n_items: int, n_jobs: int, *, smallest: int = 1) -> list[T]:
    """Call ``function(start, stop)`` on up to `n_jobs` blocks of `n_items` and return the results in order.

    Blocks change only who does the work: a function must give the same answer for any cut.
    """
    n_blocks = max(1, min(n_jobs, n_items // max(1, smallest)))
    edges = [n_items * block // n_blocks for block in range(n_blocks + 1)]
    if n_blocks == 1:
        return [function(0, n_items)]
    # A thread that is started and not yet entered among the pool's would keep the process from ending.
    others = uninterrupted(_threads(os.getpid()).map, function, edges[1:-1], edges[2:])
    return [function(0, edges[1]), *others]


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return a process's threads, kept because starting one takes as long as a small kernel; a fork has none of its parent's."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ruzhash_cv")


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
    """Return a number in [0, 1) for the pair (key, counter)."""
    return float(mix(key, counter) >> _SHIFT11) * _UNIT


@jit
def below(key: np.uint64, counter: np.uint64, n: int) -> int:
    """Return an integer in [0, n) for the pair (key, counter)."""
    return min(int(uniform(key, counter) * n), n - 1)


def draw_key(rng: np.random.Generator) -> np.uint64:
    """Draw the key of a stream."""
    return np.uint64(rng.integers(0, 1 << 64, dtype=np.uint64))
