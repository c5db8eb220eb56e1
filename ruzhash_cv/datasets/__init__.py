"""Image pairs with known answers."""

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
