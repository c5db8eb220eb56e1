"""Every number of the law, with its meaning and unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

T = TypeVar("T")


def _number(default: T, unit: str, meaning: str) -> T:
    value: Any = field(default=default, metadata={"unit": unit, "meaning": meaning})
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Parameters:
    """The numbers of the likelihood, of the selection, of the search for motions and of the last fits."""

    finest_scale: float = _number(1.0, "px", "finest noise scale of a true match")
    scale_ratio: float = _number(3.0, "1", "each scale over the next finer one")
    n_plane_scales: int = _number(
        3, "scales", "of a match of a plane; one wider is that of mismatches that crowd around it"
    )
    n_motion_scales: int = _number(2, "scales", "across an epipolar line; one wider is that of mismatches")
    n_relief_scales: int = _number(3, "scales", "along an epipolar line, from `scale_ratio` times the finest on")
    cut: float = _number(3.0, "widest scales", "a structure's density ends here; 2.5 loses accuracy")

    prior_matches: float = _number(0.1, "matches", "pseudo-count of each share of the mixture")
    n_gain_steps: int = _number(6, "steps of EM", "for the gain of one candidate")
    n_bound_steps: int = _number(2, "steps of EM", "for the first bound of a gain")
    n_crowd_steps: int = _number(3, "steps of EM", "at most, for the likelihood of a candidate's crowd alone")
    n_mixture_steps: int = _number(12, "steps of EM", "for all structures together")
    n_loss_steps: int = _number(4, "steps of EM", "for the likelihood without a structure")
    bound_slack: float = _number(5.0, "nats", "what a first bound may fall short of the gain")
    n_surface_models: float = _number(8.0, "models", "tried, as it is counted, for a surface of a known motion")
    max_structures: int = _number(24, "structures", "a guard")

    n_neighbours: int = _number(3, "matches", "neighbours that tell whether a structure lies among others")
    interleaved_share: float = _number(0.55, "share of chance", "others among the neighbours of what lies among them")
    small_share: float = _number(
        0.25, "share of others", "below which a structure among others needs no rival keypoint"
    )

    n_seed_planes: int = _number(4, "planes", "the strongest ones, that propose motions and may be their surfaces")
    n_parallaxes: int = _number(40, "models", "of a plane and two matches off it, for each group of matches")
    n_sevens: int = _number(32, "samples", "of seven matches, for each group of matches")
    seven_neighbourhood: int = _number(50, "matches", "around a first one, for half the samples where no plane leads")
    off_plane: float = _number(3.0, "px", "beyond which a match is off a plane and tells of parallax")
    n_refined: int = _number(2, "models", "of each group of matches that are refined")
    n_fits: int = _number(3, "fits", "of each proposed matrix")
    fit_scales: tuple[float, ...] = _number(
        (3.0, 1.0, 1.0 / 3.0), "px", "of fits, across lines; fits end finer than structures"
    )
    fit_share: float = _number(0.7, "share", "of a motion's matches among those that propose it")
    fit_width: float = _number(54.0, "px", "across lines, over which the other matches are spread")
    same_motion: float = _number(0.9, "share", "of common matches from which on two motions are one")

    relief_neighbours: int = _number(6, "matches", "in the first image, whose places along lines tell a match's own")
    relief_agreement: float = _number(0.1, "share", "of the largest density across lines, that such a neighbour has")
    relief_floor: float = _number(
        0.02, "share", "of matches that lie anywhere along their lines; .1 lets false motions in"
    )
    near_line: float = _number(0.7, "px", "half width of the strip in which keypoints near lines are counted")
    around_line: float = _number(9.0, "px", "half width of the strip around it, for comparison")
    far_off_plane: float = _number(27.0, "px", "off the strongest plane are the matches whose lines are looked at")
    most_lines: int = _number(100, "lines", "looked at")
    most_keypoints: int = _number(512, "keypoints", "counted along each, about")
    fewest_lines: int = _number(5, "lines", "below which nothing is counted")

    n_consensus: int = _number(10, "models", "refitted for the most matches within a threshold")
    consensus_reaches: tuple[float, ...] = _number(
        (2.0, 1.5, 1.0, 1.0), "thresholds", "within which these fits are, in turn"
    )
    threshold: float | None = _number(None, "px", "beyond which nothing belongs to a structure; set by `within`")

    def within(self, threshold: float) -> Parameters:
        """Return the numbers for structures of which nothing lies further than a threshold in px: scales up to a third of it."""
        finest = min(self.finest_scale, threshold / 3.0)
        n_scales = 1 + math.floor(math.log(threshold / 3.0 / finest * (1.0 + 1e-9), self.scale_ratio))
        fewer = {name: min(getattr(self, name), n_scales) for name in ("n_plane_scales", "n_motion_scales")}
        return replace(self, finest_scale=finest, threshold=threshold, **fewer)
