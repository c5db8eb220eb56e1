"""Pictures of matches on the two images side by side: kept and flagged, by structure, or by anomaly score."""

from ruzhash_cv.drawing.pictures import draw_matches as draw_matches
from ruzhash_cv.drawing.pictures import draw_scores as draw_scores
from ruzhash_cv.drawing.pictures import draw_structures as draw_structures
