"""Families of models, one class each: two of two views, and any a user adds."""

from ruzhash_cv.families.protocol import ModelFamily as ModelFamily
from ruzhash_cv.families.protocol import TwoViewFamily as TwoViewFamily
from ruzhash_cv.families.two_view import FundamentalMatrices as FundamentalMatrices
from ruzhash_cv.families.two_view import Homographies as Homographies
