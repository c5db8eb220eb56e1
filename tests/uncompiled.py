"""Kernels without a compiler: ``load("fit")`` returns a module of kernels as plain Python, and `recorded` what kernels are called with.

What C does and Python does not is written out: unsigned numbers wrap, x / 0 is infinite, arrays have a size, addresses move. An index
through an address is checked. Debuggers stop in the source: its lines are those of the file.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import importlib
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

PACKAGE = "ruzhash_cv.core.kernels"
FOLDER = Path(importlib.import_module(PACKAGE).__file__ or "").parent


class Pointer:
    """The address of an element, which others of the array follow."""

    def __init__(self, array: Any, *place: int) -> None:
        self.values, self.at = array, place[0]
        if isinstance(array, Pointer):
            self.values, self.at = array.values, array.at + place[0]
        elif array.ndim > 1:
            assert array.flags.c_contiguous
            self.values, self.at = array.reshape(-1), int(np.dot(place, array.strides)) // array.itemsize

    def __add__(self, n: int) -> Pointer:
        return Pointer(self.values, self.at + n)

    def _index(self, n: int) -> int:
        if not 0 <= self.at + n < len(self.values):
            raise IndexError(f"{self.at + n} of {len(self.values)}")
        return int(self.at + n)

    def __getitem__(self, n: int) -> Any:
        return self.values[self._index(n)]

    def __setitem__(self, n: int, value: Any) -> None:
        self.values[self._index(n)] = value


class Anything(contextlib.nullcontext[None]):
    """Whatever decorates a function or opens a block without the interpreter's lock."""

    def __getattr__(self, name: str) -> Anything:
        return self

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if given and callable(given[0]) else self


def wrapped(kind: Any, bits: int) -> Callable[[Any], Any]:
    return lambda value: kind(int(value) & ((1 << bits) - 1))


def as_pointer(value: Any) -> Pointer:
    return value if isinstance(value, Pointer) else Pointer(value, 0)


#: What becomes of a value where it is given to a name of a type of C. Indices are Python's integers.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "Py_ssize_t": int, "longlong": np.int64, "int": int, "bint": bool, "uint": wrapped(np.uint32, 32),
    "ulonglong": wrapped(np.uint64, 64), "uchar": wrapped(np.uint8, 8), "float": np.float32, "double": np.float64,
}  # fmt: skip


def guarded(function: Callable[[float], float], otherwise: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function of C's library, which raises nothing."""

    def call(x: float) -> Any:
        try:
            return np.float64(function(x))
        except (ValueError, OverflowError):
            return np.float64(otherwise(x))

    return call


MATHS: dict[str, Any] = {
    "INFINITY": np.inf,
    "NAN": np.nan,
    "fabs": abs,
    "floor": np.floor,
    "sqrt": guarded(math.sqrt, lambda x: math.nan),
    "exp": guarded(math.exp, lambda x: math.inf),
    "log": guarded(math.log, lambda x: -math.inf if x == 0.0 else math.nan),
}


class AsPython(ast.NodeTransformer):
    """A kernel's source with the conversions of C written out."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module == "cython.cimports.libc.math":
            return None
        if node.module == f"cython.cimports.{PACKAGE}":
            imported = {each.name: call("load", ast.Constant(each.name)) for each in node.names}
        else:
            assert node.module == "cython"
            imported = {each.name: ast.parse(f"cython.{each.name}", mode="eval").body for each in node.names}
        return [ast.Assign([ast.Name(name, ast.Store())], value) for name, value in imported.items()]

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = node.args.args
        self.types = {each.arg: kind for each in arguments if (kind := kind_of(each.annotation))}
        conversions = [conversion for each in arguments for conversion in self._converted(each)]
        # Of single or double precision, as an array of the arguments is.
        for each in arguments:
            if each.annotation is not None and ast.unparse(each.annotation).startswith("Real["):
                conversions += ast.parse(f"as_Real = {each.arg}.dtype.type").body
        for each in node.decorator_list:
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "cython.locals":
                self.types |= {str(of.arg): kind_of(of.value) or "Real" for of in each.keywords}
                each.keywords = []
        for each in arguments:
            each.annotation = None
        node.returns = None
        self.generic_visit(node)
        node.body[:0] = conversions
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        assert isinstance(node.target, ast.Name)
        self.types[node.target.id] = kind_of(node.annotation) or ""
        value = node.value
        if value is None and (shape := shape_of(node.annotation)):
            value = call("new_array", ast.Constant(shape))
        if value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        return [node, *(each for target in node.targets for each in self._converted(target))]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        before = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node.target)
        value = ast.BinOp(before, node.op, node.value)
        return self.visit(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        # A double, also beside a number of single precision.
        return call("as_double", node) if isinstance(node.value, float) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return call("divided", node.left, node.right) if isinstance(node.op, ast.Div) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return node.value if node.attr == "base" else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func).removeprefix("cython.")
        if name == "address":
            (item,) = node.args
            assert isinstance(item, ast.Subscript)
            place = item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]
            return call("Pointer", item.value, *place)
        if name in ("cast", "declare") and len(node.args) == 2:
            kind = kind_of(node.args[0])
            return call(f"as_{kind}", node.args[1]) if kind else node.args[1]
        return node

    def _converted(self, target: ast.AST) -> list[ast.AST]:
        """Return the assignments that convert the names which were assigned to, if they have a type."""
        names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        names += [target.arg] if isinstance(target, ast.arg) else []
        typed = [name for name in names if self.types.get(name)]
        values = {name: call(f"as_{self.types[name]}", ast.Name(name, ast.Load())) for name in typed}
        return [ast.Assign([ast.Name(name, ast.Store())], values[name]) for name in typed]


def call(name: str, *arguments: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def kind_of(annotation: ast.expr | None) -> str | None:
    """Return the name of a conversion: of a number, or of an address; None of arrays."""
    name = ast.unparse(annotation) if annotation is not None else ""
    if name == "Rank":  # of 32 or 64 bits: nothing that is compared with is more than it holds
        return "ulonglong"
    name = name.removeprefix("cython.")
    if name.startswith(("p_", "pointer[")):
        return "pointer"
    return name if name in CONVERSIONS else None


def shape_of(annotation: ast.expr) -> tuple[int, ...]:
    """Return the shape of an array of C, whose last index is written first."""
    sizes: list[int] = []
    while isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Constant):
        sizes.append(annotation.slice.value)
        annotation = annotation.value
    return tuple(sizes)


def new_array(shape: tuple[int, ...]) -> Any:
    array = np.full(shape, np.nan)
    return array if len(shape) > 1 else Pointer(array, 0)


def divided(x: Any, y: Any) -> Any:
    """Return x / y, in single precision unless one of them is a double or both are integers."""
    single = {type(x), type(y)} in ({np.float32}, {np.float32, int})
    return np.float32(x) / np.float32(y) if single else np.float64(x) / y


@functools.cache
def load(name: str) -> ModuleType:
    """Return a module of kernels that runs as plain Python."""
    path = FOLDER / f"{name}.py"
    tree = ast.fix_missing_locations(AsPython().visit(ast.parse(path.read_text(encoding="utf-8"))))
    module = ModuleType(f"uncompiled_{name}")
    known = {f"as_{kind}": conversion for kind, conversion in CONVERSIONS.items()}
    known |= {each.__name__: each for each in (Pointer, as_pointer, new_array, load)}
    vars(module).update(MATHS | known, cython=Anything(), divided=divided)
    exec(compile(tree, str(path), "exec"), vars(module))
    return module


@functools.cache
def kernels() -> dict[str, Any]:
    """Return the kernels that Python can call, compiled, by their modules and names."""
    modules = [importlib.import_module(f"{PACKAGE}.{path.stem}") for path in sorted(FOLDER.glob("[a-z]*.py"))]
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": item
        for module in modules
        for name, item in vars(module).items()
        if getattr(item, "__module__", "") == module.__name__
    }


Calls = dict[str, list[tuple[Any, ...]]]


@contextlib.contextmanager
def recorded(n_calls: int, most: int) -> Iterator[Calls]:
    """Keep copies of what kernels are called with: calls with large arrays, of no more numbers than `most` if there are such."""
    recorded_calls: Calls = {}

    def rank(arguments: tuple[Any, ...]) -> int:
        size = sum(each.size for each in arguments if isinstance(each, np.ndarray))
        return -size if size <= most else size

    def watched(name: str, kernel: Any) -> Callable[..., Any]:
        kept = recorded_calls.setdefault(name, [])

        def call(*arguments: Any) -> Any:
            if len(kept) < n_calls or rank(arguments) < rank(kept[-1]):
                kept.append(copy.deepcopy(arguments))
                kept.sort(key=rank)
                del kept[n_calls:]
            return kernel(*arguments)

        return call

    wrappers = {id(kernel): watched(name, kernel) for name, kernel in kernels().items()}
    with contextlib.ExitStack() as stack:
        for module in [each for name, each in sys.modules.items() if name.startswith("ruzhash_cv.")]:
            for name, item in list(vars(module).items()):
                if id(item) in wrappers:
                    stack.enter_context(mock.patch.object(module, name, wrappers[id(item)]))
        yield recorded_calls


def run(name: str, arguments: tuple[Any, ...], compiled: bool) -> tuple[Any, ...]:
    """Return a kernel's result, and what it makes of its arguments."""
    room, _, function = name.partition(".")
    given = copy.deepcopy(arguments)
    kernel = kernels()[name] if compiled else getattr(load(room), function)
    with np.errstate(all="ignore"):
        return kernel(*given), *given
