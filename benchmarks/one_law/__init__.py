"""One law of residuals, a prototype of the next method: structures, masks and probabilities from the likelihood of one mixture.

The package's search proposes homographies; everything after it is decided here. `benchmarks/README.md` has the formulas.
"""

from one_law.estimate import Estimate as Estimate
from one_law.estimate import estimate_structures as estimate_structures
from one_law.filtering import Result as Result
from one_law.filtering import filter_points as filter_points
from one_law.parameters import Parameters as Parameters
from one_law.refinement import refine as refine
