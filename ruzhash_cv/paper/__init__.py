"""What exists only to repeat the experiments of the paper and of its predecessor, PI-Forest.

F. Leveni, L. Magri, C. Alippi, G. Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023.
"""

from ruzhash_cv.paper.algebraic import AlgebraicFundamentalMatrices as AlgebraicFundamentalMatrices
from ruzhash_cv.paper.algebraic import AlgebraicHomographies as AlgebraicHomographies
from ruzhash_cv.paper.algebraic import normalise_pairs as normalise_pairs
from ruzhash_cv.paper.configuration import BINARY_METHODS as BINARY_METHODS
from ruzhash_cv.paper.configuration import METHODS as METHODS
from ruzhash_cv.paper.configuration import Problem as Problem
from ruzhash_cv.paper.configuration import paper_forest as paper_forest
from ruzhash_cv.paper.configuration import paper_preferences as paper_preferences
from ruzhash_cv.paper.configuration import paper_scores as paper_scores
from ruzhash_cv.paper.configuration import pose as pose
from ruzhash_cv.paper.configuration import problem_from as problem_from
from ruzhash_cv.paper.curves import AlgebraicCircles as AlgebraicCircles
from ruzhash_cv.paper.preferences import embed_preferences as embed_preferences
from ruzhash_cv.paper.preferences import family_preferences as family_preferences
from ruzhash_cv.paper.preferences import jaccard_distance as jaccard_distance
from ruzhash_cv.paper.preferences import ruzicka_distance as ruzicka_distance
from ruzhash_cv.paper.preferences import tanimoto_distance as tanimoto_distance
from ruzhash_cv.paper.sampling import fit_noise as fit_noise
from ruzhash_cv.paper.sampling import sample_models as sample_models
from ruzhash_cv.paper.voronoi import VoronoiForest as VoronoiForest
