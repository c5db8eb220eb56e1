"""Compiled kernels on disk, known by what they are compiled from.

numba's own ``cache=True`` raises where no file can be written, compiles anew after every installation, and not when a kernel
changes that is called from another module.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import warnings
from types import ModuleType
from typing import Any

import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.registry import CPUDispatcher

_NO_CACHE = (
    "ruzhash_cv's compiled kernels can be kept neither beside the package nor in the user's cache directory: every process compiles "
    "them anew, which takes up to a minute. Set NUMBA_CACHE_DIR to a directory that can be written; `ruzhash-cv warmup` fills it."
)
_warned = False


def find_cache(kernel: Any) -> Any:
    """Return the cache of a kernel, one that holds nothing where there is no place for files."""
    try:
        return KernelCache(kernel)
    except RuntimeError:
        _warn_once()
        return NullCache()


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, but files that cannot be used cost a compilation and no more."""

    def __init__(self, kernel: Any) -> None:
        super().__init__(kernel.py_func)
        # Without numba's line number: a kernel that only moves stays compiled.
        name = re.sub(r"-\d+\.py", ".py", self._impl.filename_base)
        self._cache_file = IndexDataCacheFile(self._cache_path, name, digest(kernel))

    def holds(self, signature: Any, target: Any) -> bool:
        """Tell whether a signature can be loaded."""
        try:
            return self._cache_file.load(self._index_key(signature, target.codegen())) is not None
        except Exception:  # what unpickling raises depends on how the file is spoilt
            return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            return super().load_overload(signature, target)
        except Exception:  # as above
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception:
            _warn_once()


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(_NO_CACHE, RuntimeWarning, stacklevel=2)


def digest(kernel: Any) -> str:
    """Return what a kernel is compiled from as one hash: its code, the constants it reads, the kernels it calls in any module.

    Line numbers, comments and the text of docstrings do not count. A name counts where a module's global goes by it, even if the
    code means an attribute: one compilation too many is cheap, old code is not.
    """
    return hashlib.sha256(repr(_contents(kernel, frozenset(), set())).encode()).hexdigest()


def _contents(value: Any, names: frozenset[str], seen: set[Any]) -> Any:
    """Return what a global of a kernel consists of, in a form that `repr` tells apart: of a module, what `names` find in it."""
    if isinstance(value, (CPUDispatcher, ModuleType)):
        key = (id(value), None if isinstance(value, CPUDispatcher) else names)
        if key in seen:  # kernels that call each other, modules that hold each other
            return value.__name__
        seen.add(key)
    if isinstance(value, CPUDispatcher):
        function, code = value.py_func, value.py_func.__code__
        return (
            (function.__module__, function.__qualname__, function.__defaults__),
            (value.signature, sorted(value.targetoptions.items())),
            (code.co_code, code.co_names, code.co_varnames, code.co_argcount),
            # A function within a kernel would show its address, and never be found in the cache: slow, not wrong.
            [None if constant is function.__doc__ else repr(constant) for constant in code.co_consts],
            _found(function.__globals__, frozenset(code.co_names), seen),
        )
    if isinstance(value, ModuleType):
        return _found(vars(value), names, seen)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return [_contents(item, names, seen) for item in value]
    if callable(value):  # a type or a function of NumPy: its version decides, and numba's
        return getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))
    return repr(value)


def _found(scope: dict[str, Any], names: frozenset[str], seen: set[Any]) -> Any:
    return [(name, _contents(scope[name], names, seen)) for name in sorted(names & scope.keys())]
