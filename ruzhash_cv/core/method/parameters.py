"""Every tuned number of the search and the mask, with its meaning and unit; modules keep guards and OpenCV's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from ruzhash_cv.foundation.arrays import Array, cached

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

    unit: float = _number(3.0, "pixels; noise scales, radii and the distance of duplicates are multiples of it")
    max_searched: int = _number(
        1024, "most matches that the search uses; all matches are scored and enter the last fits"
    )

    plane_samples: int = _number(
        400,
        "samples of homographies in the first round; candidate matrices of a motion made of planes; twice the candidates of its planes",
    )
    motion_samples: int = _number(48, "samples of fundamental matrices in their first round, and for each motion")
    last_samples: int = _number(
        24, "samples of a motion's matches for its last matrix, beside the matrices refined before"
    )
    n_refits: int = _number(16, "models of a family that each draw of a round refits")
    neighbourhoods: tuple[int, ...] = _number(
        (10, 20, 40, 0), "numbers of neighbours that samples are drawn from, in turn; 0: all matches"
    )
    max_rounds: int = _number(6, "most rounds; each draws as many samples as all rounds before it")
    n_candidates: int = _number(4, "draws for each sample of a homography; the most nearly affine one is solved")

    n_decoys: int = _number(1000, "decoys that weigh models, and other decoys that scores are compared with")

    n_scales: int = _number(3, "noise scales of a preference, each a third of the one before")
    widest_scale: float = _number(
        3.0, "widest noise scale, in units, and least distance of a decoy from a true position"
    )
    preference_cut: float = _number(
        3.0, "cut of preferences, in widest noise scales, and of a motion's inliers, in its noise scales"
    )

    n_columns: int = _number(32, "columns of the forest's rows, besides structures")
    structure_weight: float = _number(4.0, "weight of a structure's column")
    saturation: float = _number(4.0, "components above their thresholds in the row that agrees with most models")
    n_trees: int = _number(32, "trees of the forest")
    subsample_size: int = _number(64, "matches that train a tree, psi")
    branching_factor: int = _number(4, "branches of a node, b")

    plane_widest_radius: int = _number(
        5, "exponent of sqrt 2 of a homography's largest radius, in units; its negative gives the smallest", "exponent"
    )
    motion_widest_radius: int = _number(
        2, "exponent of sqrt 2 of a fundamental matrix's largest radius, in units", "exponent"
    )
    background_errors: float = _number(
        3.0, "standard errors by which decoys within a radius must exceed the family's law"
    )
    density_ratio: float = _number(1.5, "least density of a structure, as a multiple of its annulus' density")
    annulus_steps: int = _number(2, "width of the annulus around a radius, in radii tried; the tolerance is its middle")
    min_annulus_weight: float = _number(0.05, "least number of matches counted in an annulus")

    significant_share: float = _number(
        0.02, "a match is significant if at most this share of decoys scores as low", "share"
    )
    hopeless_surplus: float = _number(
        3.0, "a search without structures ends below this multiple of the significant matches expected by chance"
    )
    settled_share: float = _number(0.2, "share of explained matches from which a search may settle", "share")
    settled_gain: float = _number(0.01, "a search settles if a round explains at most this share more", "share")
    evidence_per_match: float = _number(
        3.0, "evidence per explained match that structures of the first round, of planes alone, need"
    )

    interleaved_share: float = _number(
        0.55,
        "matches are interleaved with others if these are their nearest neighbours this often, as a share of chance",
        "share",
    )
    held_ratio: float = _number(
        1.35, "how many times likelier each match of a motion's plane may be with another matrix than with the motion's"
    )
    planes_share: float = _number(
        0.95, "least share of a motion's matches that planes must hold to replace it", "share"
    )
    taken_share: float = _number(
        0.2,
        "least share of matches that end at keypoints of a plane or structure if they repeat its texture, or are a copy of it",
        "share",
    )
    slip_share: float = _number(
        0.35,
        "least share of a motion's off-plane matches that contradict planes, beyond chance, if all are slips",
        "share",
    )
    motion_cost: float = _number(10.0, "evidence, in nats, that a motion needs beyond its strongest plane's")
    tail_scale: float = _number(6.0, "widest scale of the distances of a structure's matches, in noise scales")
    relief_scale: float = _number(3.0, "relief of a motion's planes along epipolar lines, in units")
    tolerance_scales: float = _number(6.0, "tolerance of a structure in the result, in noise scales")
    least_noise: float = _number(
        0.1, "least noise scale, in units, of the law of residuals, of relief and of a motion's planes"
    )
    core_share: float = _number(0.3, "least share of a plane's matches in its core", "share")
    crowd_share: float = _number(0.4, "least share of a plane's matches in a crowd around its core", "share")
    core_density: float = _number(6.0, "how many times denser the core of a plane is than what is around it")
    student_degrees: float = _number(4.0, "degrees of freedom of the Student distribution in the last fits")

    @cached
    def _hash(self) -> int:
        return hash(tuple(getattr(self, number.name) for number in fields(self)))

    def __hash__(self) -> int:
        # It is asked for at each look-up of what follows from the numbers.
        return self._hash

    #: The caller's: most samples of a family, and the confidence that the smallest structure was sampled. None: the rules above.
    max_samples: int | None = None
    confidence: float | None = None

    @cached
    def scales(self) -> Array:
        """Noise scales of a preference, in units, the widest first."""
        return np.asarray(self.widest_scale / 3.0 ** np.arange(self.n_scales))

    @cached
    def refit_radii(self) -> tuple[float, ...]:
        """Radii of the refits, in units, one after the other: where preferences by each noise scale end. Last fits are as many."""
        return tuple((self.preference_cut * self.scales).tolist())

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

    @cached
    def finest_radius(self) -> int:
        """Exponent of sqrt 2 of the smallest radius tried, in units: as far down as up."""
        return -max(self.plane_widest_radius, self.motion_widest_radius)

    @cached
    def n_radii(self) -> int:
        """How many radii are tried."""
        return 1 - 2 * self.finest_radius

    @cached
    def n_radius_indices(self) -> int:
        """Indices a residual may have: those of radii, of the annulus around the largest, and one for residuals beyond."""
        return self.n_radii + self.annulus_steps + 1

    @cached
    def radii(self) -> Array:
        """Radii tried, in units: powers of sqrt 2."""
        return np.asarray(np.sqrt(2.0) ** np.arange(self.finest_radius, self.finest_radius + self.n_radii))

    @cached
    def tolerance_ratio(self) -> float:
        """A structure's tolerance, in radii."""
        return float(np.sqrt(2.0) ** self.tolerance_steps)

    def widest_tolerance(self, codimension: int) -> float:
        """Return the largest tolerance of structures of families of a codimension, in units."""
        exponent = self.motion_widest_radius if codimension == 1 else self.plane_widest_radius
        return float(np.sqrt(2.0) ** exponent) * self.tolerance_ratio


#: The numbers of the method.
PARAMETERS = Parameters()
