"""The one jit decorator of the package, and the one way its kernels are spread over threads."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast, overload

import numba
import numpy as np
from numba.core import sigutils, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from ruzhash_cv._core.contents import digest

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Seconds of compiling after which a process says so.
PATIENCE = 2.0

_NO_CACHE = (
    "ruzhash_cv's compiled kernels can be kept neither beside the package nor in the user's cache directory: every process compiles "
    "them anew, which takes up to a minute. Set NUMBA_CACHE_DIR to a directory that can be written; `ruzhash-cv warmup` fills it."
)
_COMPILING = "ruzhash_cv: compiling kernels, once after installation (`ruzhash-cv warmup` does it ahead)"
_warned = False
_pools: dict[int, ThreadPoolExecutor] = {}


@overload
def jit(declared: str) -> Callable[[F], F]: ...
@overload
def jit(declared: F) -> F: ...
def jit(declared: str | F) -> Callable[[F], F] | F:
    """Compile a kernel: ``@jit("void(f8[:, ::1], i8)")`` if Python calls it, ``@jit`` if only other kernels do.

    A kernel that declares its signature is compiled for that one alone, at its first call and never at import. It takes Python's
    int and float for i8 and f8, an int for f8, and no float for i8. Any other type raises TypeError, and so does a read-only array
    in place of a mutable one: declare ``Array(f8, 1, "C", readonly=True)`` for an array that is only read and may be read-only.

    nogil: kernels run side by side in the threads of :func:`run_blocks`.
    error_model="numpy": division by zero gives infinity as in NumPy, and no branch in the inner loops.
    No parallel: numba's own thread pool aborts the process when two Python threads enter it, or after a fork.
    No fastmath: NaN and infinity mark degenerate models and must survive.

    Cached: the first call of a process costs a file read, not a compilation. numba's own ``cache=True`` raises where no file can be
    written, at import or in the midst of a call. It also compiles anew after every installation, and not when a kernel changes
    that is called from another module.
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
    kernel._cache = _KernelCache(kernel)
    if signature is not None:
        kernel.declare(signature)
        kernels[f"{function.__module__}:{function.__qualname__}"] = kernel
    return cast(F, kernel)


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """numba's dispatcher, but Ctrl-C waits for the kernel's end, and a declared signature is the only one.

    numba calls back into Python, to compile and to wrap an array it returns, and the interpreter would raise KeyboardInterrupt there;
    numba does not expect it, and what follows is a SystemError, an error of typing or a crash.
    """

    #: None: compiled for whatever types it is called with.
    signature: str | None = None
    _types: tuple[Any, ...] = ()
    _integers: tuple[int, ...] = ()

    def declare(self, signature: str) -> None:
        """Set the only signature this kernel will have."""
        self.signature = signature
        self._types = tuple(sigutils.normalize_signature(signature)[0])
        names = self.py_func.__code__.co_argcount
        if len(self._types) != names:
            raise ValueError(
                f"{self.__qualname__} takes {names} arguments, its signature {signature!r} has {len(self._types)}"
            )
        self._integers = tuple(at for at, kind in enumerate(self._types) if isinstance(kind, types.Integer))

    def __call__(self, *arguments: Any) -> Any:
        if self.signature is not None:
            if self._can_compile:
                uninterrupted(self.prepare)
            self._refuse_fractions(arguments)
        return uninterrupted(super().__call__, *arguments)

    def prepare(self) -> None:
        """Load or compile the declared signature, and no other from now on."""
        if self.signature is None or not self._can_compile:
            return
        with global_compiler_lock:
            if self._can_compile:  # of two threads the second
                self.compile(self.signature)
                self.disable_compile()

    def missing(self) -> bool:
        """Tell whether the declared signature could be kept on disk and is not there."""
        return not self._cache.holds(self.signature, self.targetctx)

    def compile(self, signature: Any) -> Any:
        """Load or compile one signature."""
        with global_compiler_lock, _patience:
            return super().compile(signature)

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        """Return what a kernel that calls this one compiles in."""
        self.prepare()
        return super().get_call_template(arguments, keywords)

    def _refuse_fractions(self, arguments: tuple[Any, ...]) -> None:
        """Raise for a float in place of an integer, which numba would cut off."""
        for at in self._integers:
            value = arguments[at] if at < len(arguments) else None
            if type(value) is not int and isinstance(value, (float, np.floating)):
                self._explain_matching_error(*arguments)

    def _explain_matching_error(self, *arguments: Any, **keywords: Any) -> None:
        """Raise the TypeError of arguments that fit no signature; numba calls this."""
        if self.signature is None or keywords:
            super()._explain_matching_error(*arguments, **keywords)
        given = [self.typeof_pyval(value) for value in arguments]
        wrong = [
            f"argument {self.py_func.__code__.co_varnames[at]} must be {kind}, got {there}"
            for at, (kind, there) in enumerate(zip(self._types, given, strict=False))
            if self.typingctx.can_convert(there, kind) is None
            or (at in self._integers and isinstance(there, types.Float))
        ]
        raise TypeError(f"{self.__qualname__}: {'; '.join(wrong) or f'no match for {given}'}")


#: The kernels that declare their signature, by "module:name".
kernels: dict[str, _Kernel] = {}


class _KernelFiles(CompileResultCacheImpl):  # type: ignore[misc]
    """Places of a kernel's files. Their names hold no line number: a kernel that only moves stays compiled."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        name = fullname.replace("<", "").replace(">", "")
        return f"{name}.py{sys.version_info[0]}{sys.version_info[1]}{abiflags}"


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, but what it holds is known by its contents, and files that cannot be used cost a compilation and no more.

    The files are looked for at the first call: only then do all globals exist that a kernel refers to.
    """

    _impl_class = _KernelFiles

    def __init__(self, kernel: _Kernel) -> None:
        # Not numba's: that looks for the files now.
        self._kernel = kernel
        self._name, self._py_func = repr(kernel.py_func), kernel.py_func
        self._cache_path: str | None = None
        self._cache_file: Any = None
        self.enable()

    def open(self) -> bool:
        """Find the place of the files; False where there is none."""
        if self._cache_file is None and self._enabled:
            try:
                self._impl = self._impl_class(self._py_func)
            except RuntimeError:  # no place for files
                self.disable()
                _warn_once()
                return False
            self._cache_path = self._impl.locator.get_cache_path()
            stamp = digest(self._kernel, numba.__version__)
            self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)
        return self._cache_file is not None

    def holds(self, signature: Any, target: Any) -> bool:
        """Tell whether a signature can be loaded, or cannot be saved either."""
        if not self.open():
            return True
        try:
            return self._cache_file.load(self._index_key(signature, target.codegen())) is not None
        except Exception:  # as below
            return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        found = None
        if self.open():
            try:
                found = super().load_overload(signature, target)
            except OSError:
                pass
            except Exception:  # what unpickling raises depends on how the file is spoilt
                with contextlib.suppress(OSError):
                    self.flush()
        if found is None:
            _patience.compile()
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            if self.open():
                super().save_overload(signature, compiled)
        except Exception:
            _warn_once()

    def flush(self) -> None:
        if self.open():
            super().flush()

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        # The stamp stands for the code. numba's key pickles closures, and kernels in them differently in every process.
        return signature, codegen.magic_tuple()


class _Patience:
    """Says once a process that kernels are being compiled, where that takes long. For holders of numba's compiler lock.

    Kernels are compiled within the compilation of those that call them: only the outermost is timed.
    """

    def __init__(self) -> None:
        self.silent = False
        self._seconds = 0.0
        self._depth = 0
        self._since: float | None = None

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._since is not None:
            self._seconds += time.perf_counter() - self._since
            self._since = None

    def compile(self) -> None:
        """Note that a compilation begins."""
        now = time.perf_counter()
        if self._since is None:
            self._since = now
        if not self.silent and self._seconds + now - self._since >= PATIENCE:
            self.silent = True
            # There may be no stderr, or a closed one.
            with contextlib.suppress(AttributeError, OSError, ValueError):
                sys.stderr.write(f"{_COMPILING}\n")
                sys.stderr.flush()


_patience = _Patience()


def say_nothing() -> None:
    """Compile in silence from now on, however long it takes."""
    _patience.silent = True


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(_NO_CACHE, RuntimeWarning, stacklevel=2)


# What `signal` wraps: its own functions look up enumerations, which takes ten times as long and would happen at every call of a kernel.
_signal: Any = importlib.import_module("_signal")


def uninterrupted(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that cannot bear a KeyboardInterrupt: Ctrl-C waits for its end."""
    handler = _signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    caught: list[Any] = []
    _signal.signal(signal.SIGINT, lambda *signalled: caught.append(signalled))
    try:
        return function(*arguments)
    finally:
        _signal.signal(signal.SIGINT, handler)
        if caught:
            handler(*caught[0])


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


# Random numbers inside kernels: keyed 64-bit hashes, the same on every platform and for any number of threads. The mixing function
# is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, "Fast splittable pseudorandom number generators"). A stream is a
# counter added to a key, so that any draw can be made without those before it.

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
