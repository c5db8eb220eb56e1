"""The methods of the paper and of its predecessor, PI-Forest; `benchmarks/paper` of the repository repeats their experiments.

F. Leveni, L. Magri, C. Alippi, G. Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023.
"""

from ruzhash_cv.core.forests.ruzhash import RuzHashForest as RuzHashForest
from ruzhash_cv.core.forests.ruzhash import ruzhash as ruzhash
from ruzhash_cv.paper.configuration import BINARY_METHODS as BINARY_METHODS
from ruzhash_cv.paper.configuration import METHODS as METHODS
from ruzhash_cv.paper.configuration import paper_forest as paper_forest
from ruzhash_cv.paper.configuration import paper_preferences as paper_preferences
from ruzhash_cv.paper.preferences import embed_preferences as embed_preferences
from ruzhash_cv.paper.preferences import family_preferences as family_preferences
from ruzhash_cv.paper.preferences import jaccard_distance as jaccard_distance
from ruzhash_cv.paper.preferences import ruzicka_distance as ruzicka_distance
from ruzhash_cv.paper.preferences import sample_models as sample_models
from ruzhash_cv.paper.preferences import tanimoto_distance as tanimoto_distance
from ruzhash_cv.paper.voronoi import VoronoiForest as VoronoiForest
