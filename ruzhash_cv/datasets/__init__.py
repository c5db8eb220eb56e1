"""Image pairs with known answers."""

from ruzhash_cv.datasets.adelaidermf import ADELAIDERMF_NAMES as ADELAIDERMF_NAMES
from ruzhash_cv.datasets.adelaidermf import FUNDAMENTAL_SCENES as FUNDAMENTAL_SCENES
from ruzhash_cv.datasets.adelaidermf import HOMOGRAPHY_SCENES as HOMOGRAPHY_SCENES
from ruzhash_cv.datasets.adelaidermf import AdelaideScene as AdelaideScene
from ruzhash_cv.datasets.adelaidermf import DatasetError as DatasetError
from ruzhash_cv.datasets.adelaidermf import fetch_adelaidermf as fetch_adelaidermf
from ruzhash_cv.datasets.correspondences import Correspondences as Correspondences
from ruzhash_cv.datasets.correspondences import draw_correspondences as draw_correspondences
from ruzhash_cv.datasets.layouts import desk_scene as desk_scene
from ruzhash_cv.datasets.layouts import facade_scene as facade_scene
from ruzhash_cv.datasets.layouts import plane_scene as plane_scene
from ruzhash_cv.datasets.layouts import rigid_scene as rigid_scene
from ruzhash_cv.datasets.pairs import PAIR_NAMES as PAIR_NAMES
from ruzhash_cv.datasets.pairs import ImagePair as ImagePair
from ruzhash_cv.datasets.pairs import load_pair as load_pair
from ruzhash_cv.datasets.pairs import render_pair as render_pair
from ruzhash_cv.datasets.scenes import Scene as Scene
from ruzhash_cv.datasets.shapes import CIRCLE_SHAPES as CIRCLE_SHAPES
from ruzhash_cv.datasets.shapes import LINE_SHAPES as LINE_SHAPES
from ruzhash_cv.datasets.shapes import SHAPE_NAMES as SHAPE_NAMES
from ruzhash_cv.datasets.shapes import Shape as Shape
from ruzhash_cv.datasets.shapes import load_shape as load_shape
from ruzhash_cv.datasets.shapes import make_shape as make_shape
