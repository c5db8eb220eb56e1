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

    Lengths are multiples of `unit`, which is in pixels. `dataclasses.replace` makes variants; `docs/numbers.md` has the table.
    """

    unit: float = _number(3.0, "pixels; noise scales, radii, duplicates and one-to-one constraints are multiples of it")
    max_searched: int = _number(1024, "matches that models are searched in; more are scored, and fitted at the end")

    plane_samples: int = _number(
        400, "samples of homographies in the first round; candidates of a motion from planes; half: of its planes"
    )
    motion_samples: int = _number(
        48, "samples of fundamental matrices in their first round, and of every motion looked for"
    )
    last_samples: int = _number(
        24, "samples of a motion's matches that its last matrix is chosen among, beside those refined before"
    )
    n_refits: int = _number(16, "models of a family refitted in each round, for each proposal")
    neighbourhoods: tuple[int, ...] = _number(
        (10, 20, 40, 0), "neighbours a sample is drawn from, in turn; 0: all matches"
    )
    max_rounds: int = _number(6, "rounds; each draws as many samples as all before it")
    n_candidates: int = _number(4, "draws of a homography's sample, of which the most nearly affine is solved")

    n_decoys: int = _number(1000, "decoys that models are weighed against, and others that scores are compared with")

    n_scales: int = _number(3, "noise scales of a preference, each a third of the one before")
    widest_scale: float = _number(3.0, "widest noise scale, in units; decoys are further from what could be true")
    preference_cut: float = _number(
        3.0, "preferences end at so many widest noise scales, a motion's inliers at so many of its noise scales"
    )

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
    background_errors: float = _number(
        3.0, "standard errors by which decoys within a radius have to exceed the law of the family"
    )
    density_ratio: float = _number(1.5, "a structure is so many times as dense as its annulus")
    annulus_steps: int = _number(
        2, "width of the annulus around a radius, in radii tried; tolerances are in its middle"
    )
    min_annulus_weight: float = _number(0.05, "matches counted in an annulus, at least")

    significant_share: float = _number(
        0.02, "a match is significant if at most this share of decoys scores as well", "share"
    )
    hopeless_surplus: float = _number(
        3.0, "significant matches, as a multiple of those by chance, below which a search that found nothing ends"
    )
    settled_share: float = _number(0.2, "share of the matches that are explained when a search may settle", "share")
    settled_gain: float = _number(0.01, "share by which a round must explain more, or the search has settled", "share")
    evidence_per_match: float = _number(3.0, "evidence for each match explained, of structures that planes alone find")

    interleaved_share: float = _number(
        0.55, "matches are interleaved with others that are their nearest this often, as a share of chance", "share"
    )
    small_share: float = _number(
        0.25,
        "a repetition with fewer matches than this share of the stronger structures need not compete for keypoints",
        "share",
    )
    exact_noise: float = _number(
        1.0 / 15.0,
        "noise, in units, below which two matrices fit a surface equally well; least noise of a motion's planes",
    )
    held_ratio: float = _number(
        1.4, "noise that the matches of a surface may have in a motion, as a multiple of the least"
    )
    one_way_share: float = _number(
        0.75,
        "matches off a plane that are displaced the same way along the epipolar lines, unless its texture repeats",
        "share",
    )
    motion_cost: float = _number(10.0, "evidence that a motion needs beside that of its plane, for its own numbers")
    relief_scale: float = _number(3.0, "relief of the surfaces of a motion along its epipolar lines, in units")
    tolerance_scales: float = _number(6.0, "tolerance of a structure in the result, in noise scales")
    least_noise: float = _number(0.1, "least noise scale of the law of residuals, in units")
    student_degrees: float = _number(4.0, "degrees of freedom of the law that residuals have in the last fits")

    @cached_property
    def scales(self) -> Array:
        """Noise scales of a preference, in units, the widest first."""
        return np.asarray(self.widest_scale / 3.0 ** np.arange(self.n_scales))

    @cached_property
    def refit_radii(self) -> tuple[float, ...]:
        """Radii of the refits, in units, one after the other: where preferences by each noise scale end. Last fits are as many."""
        return tuple((self.preference_cut * self.scales).tolist())

    @property
    def finest_scale(self) -> float:
        """Finest noise scale that probabilities are computed with, in units: a third of the narrowest of a preference."""
        return self.widest_scale / 3.0**self.n_scales

    @property
    def tolerance_steps(self) -> int:
        """From a structure's radius to its tolerance, in radii tried: half of the annulus."""
        return self.annulus_steps // 2

    @property
    def prior_matches(self) -> int:
        """Pseudo-count: so many matches of any kind are added where mismatches are few, as many as the largest neighbourhood."""
        return max(self.neighbourhoods)

    @property
    def min_height(self) -> float:
        """Height of a triangle, in units, below which its points are collinear: the narrowest noise scale of a preference."""
        return float(self.scales[-1])

    @property
    def preference_limit(self) -> float:
        """Distance, in units, at which preferences end."""
        return self.preference_cut * self.widest_scale

    @cached_property
    def finest_radius(self) -> int:
        """Exponent of sqrt 2 of the smallest radius tried, in units: as far down as up."""
        return -max(self.plane_widest_radius, self.motion_widest_radius)

    @cached_property
    def n_radii(self) -> int:
        """How many radii are tried."""
        return 1 - 2 * self.finest_radius

    @cached_property
    def n_radius_indices(self) -> int:
        """Indices a residual may have: those of radii, of the annulus around the largest, and one for residuals beyond."""
        return self.n_radii + self.annulus_steps + 1

    @cached_property
    def radii(self) -> Array:
        """Radii tried, in units: powers of sqrt 2."""
        return np.asarray(np.sqrt(2.0) ** np.arange(self.finest_radius, self.finest_radius + self.n_radii))

    @cached_property
    def tolerance_ratio(self) -> float:
        """A structure's tolerance, in radii."""
        return float(np.sqrt(2.0) ** self.tolerance_steps)

    def widest_tolerance(self, codimension: int) -> float:
        """Return the largest tolerance of structures of families of a codimension, in units."""
        exponent = self.motion_widest_radius if codimension == 1 else self.plane_widest_radius
        return float(np.sqrt(2.0) ** exponent) * self.tolerance_ratio


#: The numbers of the method.
PARAMETERS = Parameters()
