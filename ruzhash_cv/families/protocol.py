"""What a family of models has to offer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ruzhash_cv._arrays import Array, Rows


class ModelFamily(Protocol):
    """A family of models: any object with these members is one.

    Data are rows (n, d), models are rows (m, p). The stages of the method know a family by these members alone. Of two families
    the one of larger codimension comes first, and its structures are called planes.
    """

    @property
    def name(self) -> str:
        """What a result calls a model."""

    @property
    def sample_size(self) -> int:
        """Points of a minimal sample. As many fit a model whatever they are."""

    @property
    def codimension(self) -> int:
        """Equations that a point on a model satisfies, 1 or 2: the share of unrelated points within r grows as r ** codimension."""

    @property
    def locally_affine(self) -> bool:
        """Whether small samples of two images are nearly affine maps, as those of a plane are."""

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return finite models (k, p) of samples (s, sample_size, d), and the sample (k,) each was solved from."""

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared residuals (m, n) of points (n, d) to models (m, p); NaN or infinity where there is none."""

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return weighted least-squares fits (m, p) to points (n, d), `weights` (m, n); NaN where there is none.

        `models` (m, p), where given, tell how far a residual of the equations is from one of the geometry.
        """


@runtime_checkable
class TwoViewFamily(ModelFamily, Protocol):
    """A family of models of correspondences (x1, y1, x2, y2): what `filter_points` takes as `model`.

    It may have ``step(data, weights, models)`` too, which takes the place of `fit` in a structure's last fits: a step towards the least
    squares of its residuals.
    """

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return models (m, 9) of pixels; `into1`, `into2` (3, 3) brought homogeneous pixels to the models' coordinates."""
