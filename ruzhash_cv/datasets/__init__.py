"""Image pairs with known answers."""

import typing as _typing

from ruzhash_cv.datasets.adelaidermf import ADELAIDERMF_NAMES as ADELAIDERMF_NAMES
from ruzhash_cv.datasets.adelaidermf import FUNDAMENTAL_SCENES as FUNDAMENTAL_SCENES
from ruzhash_cv.datasets.adelaidermf import HOMOGRAPHY_SCENES as HOMOGRAPHY_SCENES
from ruzhash_cv.datasets.adelaidermf import AdelaideScene as AdelaideScene
from ruzhash_cv.datasets.adelaidermf import DatasetError as DatasetError
from ruzhash_cv.datasets.adelaidermf import fetch_adelaidermf as fetch_adelaidermf
from ruzhash_cv.datasets.pairs import PAIR_NAMES as PAIR_NAMES
from ruzhash_cv.datasets.pairs import ImagePair as ImagePair
from ruzhash_cv.datasets.pairs import data_folder as data_folder
from ruzhash_cv.datasets.pairs import load_pair as load_pair

_SHAPES = "benchmarks/paper/problems.py of the repository draws and loads shapes"
_SEQUENCES = "read the pictures panorama1.jpg to 4, clip1.jpg to 4 and walk1.jpg to 5 of `data_folder()`"
_SUCCESSORS = dict.fromkeys(
    ("CIRCLE_SHAPES", "LINE_SHAPES", "SHAPE_NAMES", "Shape", "load_shape", "make_shape"), _SHAPES
)
_SUCCESSORS |= dict.fromkeys(("SEQUENCE_NAMES", "load_sequence"), _SEQUENCES)


def __getattr__(name: str) -> _typing.Any:
    if name in _SUCCESSORS:
        raise AttributeError(f"`ruzhash_cv.datasets.{name}` is gone: {_SUCCESSORS[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
