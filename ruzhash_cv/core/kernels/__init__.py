"""The inner loops, compiled ahead by Cython when the package is built: Python's syntax, C's types, no GIL.

Callers pass C-contiguous arrays that can be written, of the dtypes in the signatures; masks as `uint8`. What is read comes first, then
what is overwritten: room, and results last.
"""

import contextlib as _contextlib
import pathlib as _pathlib

try:
    import ruzhash_cv.core.kernels._ruzhash_shared as _shared  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "the kernels are not compiled: run `pip install .`, or in a checkout `pip install -e .`"
    ) from _error

with _contextlib.suppress(ImportError):  # numpy's own table of what the processor has
    from numpy._core._multiarray_umath import __cpu_features__ as _features  # type: ignore[import-not-found]

    if _features.get("AVX2"):
        __path__.insert(0, str(_pathlib.Path(__file__).parent / "avx2"))
