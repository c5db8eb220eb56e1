"""The compiled modules: Cython makes C of them and the compiler extensions, beside their sources, whenever a wheel is built."""

import platform
import sys
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension

MODULES = ("draw", "fit", "five_points", "lenses", "rays", "weigh")
# No contraction: a sum of products is rounded twice on every processor. The others change no number.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-g0"]
SMALL = ["/O1"] if sys.platform == "win32" else ["-O1", "-g0"]
WIDE = ["-mavx2"] if platform.machine() in ("x86_64", "AMD64") and sys.platform != "win32" else []
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "infer_types": True,
}


class CythonHook(BuildHookInterface):
    """Build the extensions in place, and tell the wheel that it is for one platform and Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Run before the files are collected."""
        build_extensions()
        build_data.update(pure_python=False, infer_tag=True, artifacts=["*.so", "*.pyd"])


def build_extensions() -> None:
    """Build the extensions beside their sources."""
    given = [
        Extension(f"ruzhash_cv.kernels.{name}", [f"ruzhash_cv/kernels/{name}.py"], extra_compile_args=FLAGS)
        for name in MODULES
    ]
    # What typed arrays are made of, compiled once.
    given.append(Extension("ruzhash_cv.kernels._shared", ["build/_shared.c"], extra_compile_args=SMALL))
    shared = {"shared_utility_qualified_name": "ruzhash_cv.kernels._shared"}
    modules = cythonize(given, compiler_directives=DIRECTIVES, build_dir="build", **shared)
    if WIDE:
        Path("ruzhash_cv/kernels/avx2").mkdir(exist_ok=True)
        # The same C again for processors with AVX2; `kernels` looks there first. Without contraction the results are the same bits.
        modules += [
            Extension(f"ruzhash_cv.kernels.avx2.{name}", module.sources, extra_compile_args=[*FLAGS, *WIDE])
            for name, module in zip(MODULES, modules, strict=False)
        ]
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.inplace, command.parallel = True, len(MODULES)
    command.ensure_finalized()
    command.run()
