"""Families of models of two views: homographies, fundamental and essential matrices, by name."""

from ruzhash_cv.core.families.base import TwoViewFamily
from ruzhash_cv.core.families.epipolar import EssentialMatrices, FundamentalMatrices
from ruzhash_cv.core.families.planes import Homographies

#: The families of rows without rays, and those of rows with rays.
FAMILIES: dict[str, TwoViewFamily] = {"homography": Homographies(), "fundamental": FundamentalMatrices()}
RAY_FAMILIES: dict[str, TwoViewFamily] = {**FAMILIES, "essential": EssentialMatrices()}
