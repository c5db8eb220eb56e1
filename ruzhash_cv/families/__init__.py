"""Families of models, one class each: two of two views, lines and circles, and any a user adds."""

from ruzhash_cv.families.plane_curves import Circles as Circles
from ruzhash_cv.families.plane_curves import Lines as Lines
from ruzhash_cv.families.protocol import ModelFamily as ModelFamily
from ruzhash_cv.families.protocol import TwoViewFamily as TwoViewFamily
from ruzhash_cv.families.sampling import family_preferences as family_preferences
from ruzhash_cv.families.sampling import fit_noise as fit_noise
from ruzhash_cv.families.sampling import sample_models as sample_models
from ruzhash_cv.families.two_view import FundamentalMatrices as FundamentalMatrices
from ruzhash_cv.families.two_view import Homographies as Homographies
