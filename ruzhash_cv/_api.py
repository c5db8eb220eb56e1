"""The public names of the package, which `ruzhash_cv` imports when the first is asked for."""

from ruzhash_cv.drawing import draw_matches as draw_matches
from ruzhash_cv.drawing import draw_scores as draw_scores
from ruzhash_cv.drawing import draw_structures as draw_structures
from ruzhash_cv.filtering import filter_matches as filter_matches
from ruzhash_cv.filtering import filter_points as filter_points
from ruzhash_cv.input.cameras import Camera as Camera
from ruzhash_cv.input.correspondences import Correspondences as Correspondences
from ruzhash_cv.input.correspondences import as_correspondences as as_correspondences
from ruzhash_cv.input.correspondences import select_matches as select_matches
from ruzhash_cv.opencv import find_essential_matrix as find_essential_matrix
from ruzhash_cv.opencv import find_fundamental_matrix as find_fundamental_matrix
from ruzhash_cv.opencv import find_homography as find_homography
from ruzhash_cv.report import write_html as write_html
from ruzhash_cv.results.pose import CameraPose as CameraPose
from ruzhash_cv.results.result import DO_NOT_RECONSTRUCT as DO_NOT_RECONSTRUCT
from ruzhash_cv.results.result import NOTHING_SHARED as NOTHING_SHARED
from ruzhash_cv.results.result import FilterResult as FilterResult
from ruzhash_cv.results.result import Motion as Motion
from ruzhash_cv.results.result import Plane as Plane
from ruzhash_cv.structures import FoundStructures as FoundStructures
from ruzhash_cv.structures import find_structures as find_structures
