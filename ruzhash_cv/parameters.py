"""Every tuned number of the search and the mask, with its meaning and unit; modules keep guards and OpenCV's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ruzhash_cv._arrays import Array

T = TypeVar("T")


def _number(default: T, meaning: str, kind: str = "plain") -> T:
    """Return a field with its meaning; "share" is never above 1, and "exponent" is one of sqrt 2: scaling it adds to it."""
    value: Any = field(default=default, metadata={"meaning": meaning, "kind": kind})
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Parameters:
    """The numbers of the method.

    Lengths are multiples of `unit`, which is in pixels. `dataclasses.replace` makes variants; `docs/method.md` has the table.
    """

    unit: float = _number(3.0, "pixels; noise scales, radii, duplicates and one-to-one constraints are multiples of it")
    max_searched: int = _number(1024, "matches that models are searched in; more are only scored")

    plane_samples: int = _number(400, "samples of homographies in the first round")
    plane_neighbourhoods: tuple[int, ...] = _number(
        (5, 10, 20, 40, 0), "neighbours a homography's sample is drawn from, in turn; 0: all matches"
    )
    plane_refits: int = _number(36, "homographies refitted in each round, for each proposal")
    motion_samples: int = _number(48, "samples of fundamental matrices in their first round")
    motion_neighbourhoods: tuple[int, ...] = _number(
        (50, 0), "neighbours a fundamental matrix's sample is drawn from, in turn; 0: all matches"
    )
    motion_refits: int = _number(12, "fundamental matrices refitted in each round, for each proposal")
    max_rounds: int = _number(6, "rounds; each draws as many samples as all before it")
    n_candidates: int = _number(4, "draws of a homography's sample, of which the most nearly affine is solved")
    max_degenerate: int = _number(20, "degenerate draws after which a sample is given up")
    min_height: float = _number(0.5, "height of a triangle, in units, below which its points are collinear")

    n_decoys: int = _number(1000, "decoys that models are weighed against, and others that scores are compared with")
    prior_matches: int = _number(40, "pseudo-count: so many matches of any kind are added where mismatches are few")

    n_scales: int = _number(3, "noise scales of a preference, each a third of the one before")
    widest_scale: float = _number(3.0, "widest noise scale, in units; decoys are further from what could be true")
    preference_cut: float = _number(3.0, "preferences end at so many widest noise scales")
    significance_exponent: float = _number(3.0, "exponent of a model's weight")

    n_columns: int = _number(32, "models the forest's rows are made of, besides structures")
    structure_weight: float = _number(4.0, "weight of a structure among them")
    saturation: float = _number(4.0, "components of the row that agrees most that are above their thresholds")
    n_trees: int = _number(32, "trees of the forest")
    subsample_size: int = _number(64, "matches a tree is grown on, psi")
    branching_factor: int = _number(4, "branches of a node, b")

    plane_widest_radius: int = _number(
        5, "largest radius of a homography (and 1 / smallest): exponent of sqrt 2, in units", "exponent"
    )
    motion_widest_radius: int = _number(
        2, "largest radius of a fundamental matrix: exponent of sqrt 2, in units", "exponent"
    )
    annulus_steps: int = _number(2, "width of the annulus around a radius, in radii tried")
    background_errors: float = _number(
        3.0, "standard errors by which decoys within a radius have to exceed the law of the family"
    )
    density_ratio: float = _number(1.5, "a structure is so many times as dense as its annulus")
    tolerance_steps: int = _number(1, "from a structure's radius to its tolerance, in radii tried")
    min_annulus_weight: float = _number(0.05, "matches counted in an annulus, at least")
    refit_radii: tuple[float, ...] = _number((9.0, 3.0, 1.0), "radii of the refits, in units; last fits are as many")

    significant_share: float = _number(
        0.01, "a match is significant if at most this share of decoys scores as well", "share"
    )
    evidence_per_match: float = _number(3.0, "evidence for each match explained, of structures that planes alone find")

    n_neighbours: int = _number(3, "neighbours that tell whether matches are interleaved with others")
    interleaved_share: float = _number(
        0.55, "matches are interleaved with others that are their neighbours this often, as a share of chance", "share"
    )
    small_share: float = _number(
        0.25,
        "a repetition with fewer matches than this share of the stronger structures need not compete for keypoints",
        "share",
    )
    n_patches: int = _number(32, "patches of a wide plane that its parts are looked for among")
    patch_size: int = _number(20, "matches in a patch")
    student_degrees: tuple[float, ...] = _number(
        (2.0, 8.0, 1000.0), "degrees of freedom of the laws that residuals may have in the last fits"
    )

    n_parallaxes: int = _number(100, "matrices tried of a plane and two matches off it")
    inlier_scales: float = _number(2.5, "a motion's inliers are within so many noise scales")

    kept_share: float = _number(
        0.98, "a model for one threshold has at least this share of the most matches that any has", "share"
    )

    line_decoy_share: float = _number(0.02, "share of decoys that may look as good as a match on a line", "share")
    finest_scale: float = _number(
        1.0 / 9.0,
        "finest noise scale that probabilities are computed with, in units; each next one is three times as wide",
    )

    @cached_property
    def scales(self) -> Array:
        """Noise scales of a preference, in units, the widest first."""
        return np.asarray(self.widest_scale / 3.0 ** np.arange(self.n_scales))

    @property
    def preference_limit(self) -> float:
        """Distance, in units, at which preferences end."""
        return self.preference_cut * self.widest_scale

    @property
    def finest_radius(self) -> int:
        """Exponent of sqrt 2 of the smallest radius tried, in units: as far down as up."""
        return -max(self.plane_widest_radius, self.motion_widest_radius)

    @property
    def n_radii(self) -> int:
        """How many radii are tried."""
        return 1 - 2 * self.finest_radius

    @property
    def n_radius_indices(self) -> int:
        """Indices a residual may have: those of radii, of the annulus around the largest, and one for what lies beyond."""
        return self.n_radii + self.annulus_steps + 1

    @cached_property
    def radii(self) -> Array:
        """Radii tried, in units: powers of sqrt 2."""
        return np.asarray(np.sqrt(2.0) ** np.arange(self.finest_radius, self.finest_radius + self.n_radii))

    @property
    def tolerance_ratio(self) -> float:
        """A structure's tolerance, in radii."""
        return float(np.sqrt(2.0) ** self.tolerance_steps)

    def widest_tolerance(self, codimension: int) -> float:
        """Return the largest tolerance of structures of families of a codimension, in units."""
        exponent = self.motion_widest_radius if codimension == 1 else self.plane_widest_radius
        return float(np.sqrt(2.0) ** exponent) * self.tolerance_ratio
