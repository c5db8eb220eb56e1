"""What a kernel is compiled from, as one digest: its code, the constants it reads, and the kernels it calls in any module.

Line numbers, comments and the text of docstrings do not count. A name counts where a module's global goes by it, even if the code
means an attribute: one compilation too many is cheap, old code is not.
"""

from __future__ import annotations

import enum
import hashlib
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

Seen = set[Any]


def digest(*values: object) -> str:
    """Return a digest of kernels and values that is the same in every process, and changes with what they are compiled to."""
    return hashlib.sha256(repr(_described(values, frozenset(), set())).encode()).hexdigest()


def _described(value: object, names: frozenset[str], seen: Seen) -> object:
    """Return a value as nested tuples of what `repr` tells apart. Of a module, what `names` find in it."""
    if isinstance(getattr(value, "py_func", None), FunctionType):
        return _described_kernel(value, seen)
    if isinstance(value, ModuleType):
        return value.__name__, _described_names(vars(value), names, seen, (id(value), names))
    if isinstance(value, np.ndarray):
        return "array", value.dtype.descr, value.shape, value.strides, value.tobytes()
    if isinstance(value, np.generic):
        return value.dtype.str, value.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value).__qualname__, [_described(item, names, seen) for item in value]
    if isinstance(value, frozenset):
        return "frozenset", sorted(repr(_described(item, names, seen)) for item in value)
    if isinstance(value, enum.EnumMeta):
        members: dict[str, Any] = dict(value.__members__)
        return value.__qualname__, [repr(member) for member in members.values()]
    if callable(value):  # a type or a function of NumPy: its version decides, and numba's
        return getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))
    # An object whose repr holds its address is never found in the cache: slow, not wrong.
    return type(value).__qualname__, repr(value)


def _described_kernel(kernel: Any, seen: Seen) -> object:
    function = kernel.py_func
    name = (function.__module__, function.__qualname__)
    if id(function) in seen:
        return name
    seen.add(id(function))
    code = function.__code__
    names = _names(code)
    cells = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    return (
        name,
        getattr(kernel, "signature", None),
        sorted(kernel.targetoptions.items()),
        _described_code(code, function.__doc__),
        _described(function.__defaults__, names, seen),
        _described_names({**function.__globals__, **cells}, names, seen, None),
    )


def _described_names(scope: dict[str, Any], names: frozenset[str], seen: Seen, key: object) -> object:
    """Return what `names` stand for in a scope; nothing where this `key` was seen before, as in modules that hold each other."""
    if key in seen:
        return ()
    if key is not None:
        seen.add(key)
    return [(name, _described(scope[name], names, seen)) for name in sorted(names & scope.keys())]


def _names(code: CodeType) -> frozenset[str]:
    """Return the names that code, and the code within it, may look up in a module."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(code.co_freevars, *inner)


def _described_code(code: CodeType, docstring: str | None) -> object:
    constants = list(code.co_consts)
    if docstring is not None and constants and constants[0] == docstring:
        constants[0] = None
    return (
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        (code.co_argcount, code.co_kwonlyargcount, code.co_flags),
        getattr(code, "co_exceptiontable", b""),  # since Python 3.11
        [
            _described_code(item, None) if isinstance(item, CodeType) else _described(item, frozenset(), set())
            for item in constants
        ],
    )
