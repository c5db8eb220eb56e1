"""Every number of the law."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Parameters:
    """Numbers of the likelihood, of its selection and of the search for motions; lengths in px.

    Attributes
    ----------
    finest_scale, scale_ratio
        Noise scales of the law: the finest, and the ratio of each to the one before.
    n_plane_scales, n_motion_scales, n_relief_scales
        How many scales a true match may have: from a plane, across an epipolar line, and along it (from `scale_ratio` times the finest on).
        One more, the next wider one, is that of mismatches that crowd around a structure.
    weight_prior
        Pseudo-counts, in votes, of each weight of the mixture.
    n_gain_steps, n_mixture_steps
        Steps of EM for the gain of one candidate, and for all structures together.
    max_structures
        A guard.
    relief_neighbours, relief_floor
        A motion tells where along the line a match lies by so many neighbours; this share lies anywhere.
    n_parallaxes, n_sevens
        Matrices tried of a plane and two matches off it, and of seven matches, for each group of matches.
    n_seed_planes
        Planes that propose motions, and that are surfaces of them.
    n_fits
        Reweighted fits of each matrix that is proposed.
    same_motion
        Matrices that hold this share of the same matches are one.
    n_plane_rounds
        Times that planes are chosen again after their fits. A second one does nothing, without the first drawn scenes lose .02 to .04.
    share_motions
        Planes become surfaces of motions where the likelihood is for it.
    threshold
        Largest residual of what belongs to a structure, px; see `within`.
    """

    finest_scale: float = 1.0
    scale_ratio: float = 3.0
    n_plane_scales: int = 3
    n_motion_scales: int = 2
    n_relief_scales: int = 3
    weight_prior: float = 0.1
    n_gain_steps: int = 6
    n_mixture_steps: int = 12
    max_structures: int = 24
    relief_neighbours: int = 6
    relief_floor: float = 0.02
    n_parallaxes: int = 40
    n_sevens: int = 32
    n_seed_planes: int = 4
    n_fits: int = 3
    same_motion: float = 0.9
    n_plane_rounds: int = 1
    share_motions: bool = True
    threshold: float | None = None

    def within(self, threshold: float) -> Parameters:
        """Return the numbers for structures of which nothing lies further than a threshold, px: scales up to a third of it."""
        finest = min(self.finest_scale, threshold / 3.0)
        n_scales = 1 + math.floor(math.log(threshold / 3.0 / finest * (1.0 + 1e-9), self.scale_ratio))
        return replace(
            self, finest_scale=finest, n_plane_scales=min(self.n_plane_scales, n_scales), n_motion_scales=min(self.n_motion_scales, n_scales),
            threshold=threshold,
        )  # fmt: skip
