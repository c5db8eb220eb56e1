"""The groups of cases, and the share of each: what takes less than a millisecond is most of them."""

from __future__ import annotations

from files import FILES
from geometry import GEOMETRY
from laws import EXACT, STATISTICAL
from names import NAMES
from targets import TARGETS, Target
from together import CONCURRENCY, SIGNALS

#: Functions that take 5 ms and more, most of them by filtering.
SLOW = (
    "filter_points", "filter_matches", "find_homography", "find_fundamental_matrix", "draw_matches", "draw_scores",
    "draw_structures", "VoronoiForest", "embed_preferences", "find_structures", "write_html",
)  # fmt: skip
CAMERAS = "Camera", "camera_pose", "cameras"
SLOW_FILES = "hloc_files", "colmap_database"

GROUPS: dict[str, tuple[float, dict[str, Target]]] = {
    "functions": (0.84, {name: target for name, target in TARGETS.items() if name not in SLOW + CAMERAS}),
    "pipeline": (0.007, {name: TARGETS[name] for name in SLOW}),
    "cameras": (0.003, {name: TARGETS[name] for name in CAMERAS}),
    "geometry": (0.003, GEOMETRY),
    "laws": (0.005, EXACT),
    "agreement": (0.002, STATISTICAL),
    "files": (0.05, {name: target for name, target in FILES.items() if name not in SLOW_FILES}),
    "names": (0.08, NAMES),
    "outputs": (0.006, {name: target for name, target in FILES.items() if name in SLOW_FILES}),
    "signals": (0.002 if SIGNALS else 0.0, SIGNALS),
    "concurrency": (0.002, CONCURRENCY),
}
