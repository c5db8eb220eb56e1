"""One law of residuals: structures, masks and probabilities from the likelihood of a mixture."""

from .estimate import Estimate, estimate_structures, refine, within_threshold
from .parameters import Parameters

__all__ = ["Estimate", "Parameters", "estimate_structures", "refine", "within_threshold"]
