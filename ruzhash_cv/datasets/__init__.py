"""Image pairs with known answers."""

from ruzhash_cv.datasets.adelaidermf import ADELAIDERMF_NAMES as ADELAIDERMF_NAMES
from ruzhash_cv.datasets.adelaidermf import FUNDAMENTAL_SCENES as FUNDAMENTAL_SCENES
from ruzhash_cv.datasets.adelaidermf import HOMOGRAPHY_SCENES as HOMOGRAPHY_SCENES
from ruzhash_cv.datasets.adelaidermf import AdelaideScene as AdelaideScene
from ruzhash_cv.datasets.adelaidermf import DatasetError as DatasetError
from ruzhash_cv.datasets.adelaidermf import fetch_adelaidermf as fetch_adelaidermf
from ruzhash_cv.datasets.pairs import PAIR_NAMES as PAIR_NAMES
from ruzhash_cv.datasets.pairs import ImagePair as ImagePair
from ruzhash_cv.datasets.pairs import load_pair as load_pair
from ruzhash_cv.datasets.sequences import SEQUENCE_NAMES as SEQUENCE_NAMES
from ruzhash_cv.datasets.sequences import load_sequence as load_sequence
from ruzhash_cv.datasets.shapes import CIRCLE_SHAPES as CIRCLE_SHAPES
from ruzhash_cv.datasets.shapes import LINE_SHAPES as LINE_SHAPES
from ruzhash_cv.datasets.shapes import SHAPE_NAMES as SHAPE_NAMES
from ruzhash_cv.datasets.shapes import Shape as Shape
from ruzhash_cv.datasets.shapes import load_shape as load_shape
from ruzhash_cv.datasets.shapes import make_shape as make_shape
