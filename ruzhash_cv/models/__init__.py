"""Families of models: homographies, fundamental matrices, lines, circles and custom families. Residuals of matches."""

from ruzhash_cv.core.families.base import ModelFamily as ModelFamily
from ruzhash_cv.core.families.base import TwoViewFamily as TwoViewFamily
from ruzhash_cv.core.families.epipolar import FundamentalMatrices as FundamentalMatrices
from ruzhash_cv.core.families.planes import Homographies as Homographies
from ruzhash_cv.models.curves import Circles as Circles
from ruzhash_cv.models.curves import Lines as Lines
from ruzhash_cv.models.distances import sampson_distance as sampson_distance
from ruzhash_cv.models.distances import transfer_error as transfer_error
