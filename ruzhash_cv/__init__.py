"""Outlier rejection for keypoint matches by a RuzHash isolation forest in preference space."""

import typing as _typing
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

from ruzhash_cv.foundation.interrupts import interrupts_held as _interrupts_held

__version__ = "0.4.0"

if _typing.TYPE_CHECKING:
    from ruzhash_cv._api import *  # noqa: F403
else:

    def __getattr__(name: str) -> _typing.Any:
        """Import modules and the public names when they are asked for, so that the command line starts before."""
        with _interrupts_held():
            if _find_spec(f"{__name__}.{name}"):
                return _import_module(f"{__name__}.{name}")
            public = vars(_import_module(f"{__name__}._api"))
        globals().update({key: public[key] for key in public.keys() - globals().keys() if not key.startswith("_")})
        if name not in globals():
            raise AttributeError(f"{__name__} has no attribute {name!r}")
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *vars(_import_module(f"{__name__}._api"))})
