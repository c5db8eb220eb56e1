"""Compile the kernels whenever the package is built: Cython makes C of them, and a C compiler extensions beside their sources.

RUZHASH_CV_BUILD=strict takes the compiler's warnings for errors. RUZHASH_CV_BUILD=checked is for tests: an index out of bounds raises,
and GCC's sanitizers end the process at a wrong pointer; they need LD_PRELOAD=$(gcc -print-file-name=libasan.so).
"""

import os
import sysconfig
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

MODULES = sorted(path.stem for path in Path("ruzhash_cv/core/kernels").glob("[a-z]*.py"))
PACKAGE = "ruzhash_cv.core.kernels"
MODE = os.environ.get("RUZHASH_CV_BUILD", "")
#: What typed arrays are made of, compiled once for all modules. Cython puts it into `sys.modules` without its package too.
SHARED = f"{PACKAGE}._ruzhash_shared"
# No contraction: a sum of products is rounded twice on every processor. The others change no number. MSVC, which has none of these
# flags, contracts nothing by default.
FLAGS = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-g0"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
OF_MODE = {
    "": [],
    # A C array that is declared too small is found by warnings alone.
    "strict": ["-Wall", "-Wextra", "-Werror"],
    "checked": ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS],
}
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": MODE == "checked",
    "initializedcheck": MODE == "checked",
    "wraparound": False,
    "cdivision": True,
    "infer_types": True,
}
NO_COMPILER = (
    "ruzhash_cv could not be compiled: {error}. It needs a C compiler and Python's headers: on Debian and Ubuntu `apt-get install "
    "build-essential python3-dev`, on macOS `xcode-select --install`, on Windows Microsoft's Build Tools for C++. Wheels need neither."
)


class CythonHook(BuildHookInterface):
    """Build the extensions in place, and tell the wheel that it is for one platform and Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Run before the files are collected."""
        build_data.update(
            pure_python=False, infer_tag=True, artifacts=[f"/{path}" for path in build_extensions(force=True)]
        )


class Build(build_ext):
    """Flags of the compiler that there is."""

    def build_extensions(self) -> None:
        for extension in self.extensions:
            if self.compiler.compiler_type == "msvc":
                extension.extra_compile_args = ["/O2"]
            else:
                extension.extra_compile_args[:0] = [*FLAGS, *OF_MODE[MODE]]
                extension.extra_link_args = SANITIZERS if MODE == "checked" else []
        super().build_extensions()


def build_extensions(force: bool = False) -> list[str]:
    """Build the extensions beside their sources, all of them if forced to, else those that changed, and return their paths."""
    given = [Extension(f"{PACKAGE}.{name}", [f"ruzhash_cv/core/kernels/{name}.py"]) for name in MODULES]
    given.append(Extension(SHARED, ["build/_ruzhash_shared.c"], extra_compile_args=["-O1"]))
    modules = cythonize(
        given,
        compiler_directives=DIRECTIVES,
        build_dir="build",
        shared_utility_qualified_name=SHARED,
        force=force,
        quiet=True,
    )
    # The same C again for processors with AVX2, a quarter faster; `kernels` looks there first.
    if sysconfig.get_platform().endswith("x86_64") and MODE != "checked":
        for name, module in zip(MODULES, list(modules), strict=False):
            modules.append(Extension(f"{PACKAGE}.avx2.{name}", module.sources, extra_compile_args=["-mavx2"]))
            Path("ruzhash_cv/core/kernels/avx2").mkdir(exist_ok=True)
    command = Build(Distribution({"ext_modules": modules}))
    command.inplace, command.parallel, command.force = True, len(MODULES), force
    command.ensure_finalized()
    try:
        command.run()
    except Exception as error:  # of a class that depends on the version of setuptools
        raise SystemExit(NO_COMPILER.format(error=error)) from None
    return [Path(command.get_ext_fullpath(module.name)).relative_to(Path.cwd()).as_posix() for module in modules]
