"""What a family of models offers, a set of models of several families, and the table that dispatches by family."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.linear import check_models, has_rays, in_columns
from ruzhash_cv.core.families.weighting import Law, reweighted
from ruzhash_cv.core.kernels.residuals import squared_residuals
from ruzhash_cv.foundation.arrays import Array, Mask, Rows, cached

FamilyIds = NDArray[np.uint8]
M = TypeVar("M", bound="Models")
#: What kernels compute squared residuals from: a kind of each model, points (4, n) or rays (6, n), and models (m, 9). Of the kind
#: `GIVEN` the residuals (m, n) take the place of the points.
Residuals: TypeAlias = tuple[Rows, Array, Array]
#: Kinds of residuals; for rays there are `OF_RAYS` more.
GIVEN, OF_PLANE, OF_MOTION, OF_RAYS = -1, 0, 1, 2


def residuals_of_kind(kind: int, data: Array, models: Array) -> Array:
    """Return squared residuals (m, n) of correspondences (n, d) to models (m, 9) of a kind."""
    check_models(models)
    squared, kinds = np.empty((len(models), len(data))), np.full(len(models), kind + OF_RAYS * has_rays(data))
    squared_residuals(kinds, in_columns(data), np.ascontiguousarray(models), squared)
    return squared


class ModelFamily(Protocol):
    """A family of models: any object with these members.

    Data are rows (n, d), models are rows (m, p).
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What a result calls a model."""

    @property
    @abstractmethod
    def sample_size(self) -> int:
        """Points of a minimal sample. That many points always fit some model."""

    @property
    @abstractmethod
    def codimension(self) -> int:
        """Equations that a point on a model satisfies, 1 or 2: the share of unrelated points within r grows as r ** codimension."""

    @abstractmethod
    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return finite models (k, p) of samples (s, sample_size, d), and the sample (k,) each was solved from."""

    @abstractmethod
    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared residuals (m, n) of points (n, d) to models (m, p); NaN or infinity if there is none."""

    @abstractmethod
    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return weighted least-squares fits (m, p) to points (n, d), `weights` (m, n); NaN if there is none.

        `models` (m, p), if given, are estimates with which the residuals of the equations become geometric, to first order.
        """


@runtime_checkable
class TwoViewFamily(ModelFamily, Protocol):
    """A family of models of correspondences (x1, y1, x2, y2): what `filter_points` takes as `model`.

    A class that inherits from this one has to define `name`, `sample_size`, `codimension`, `solve`, `squared_residuals`, `fit` and
    `to_pixels`; the other members have defaults.
    """

    @property
    def is_plane(self) -> bool:
        """Whether a model maps points to points, as a homography does, and small samples are nearly affine."""
        return self.codimension == 2

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return models (m, 9) after one step that lowers their weighted squared residuals; used for a structure's last fits."""
        return self.fit(data, weights, models)

    def reweighted(
        self, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
    ) -> tuple[Array, Array]:
        """Return models (m, 9) after rounds of iteratively reweighted least squares, and noise scales (m,): 0 for Tukey's biweight.

        A model is fitted to correspondences with `weights` (n,) within its limit (m,) that are not `excluded` (m, n), or (0, 0). Where
        a fit fails, the model stays. Families of the package have a kernel for it.
        """
        return reweighted(self, data, weights, models, limits, law, n_rounds, excluded)

    @abstractmethod
    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return models (m, 9) of pixels; `into1`, `into2` (3, 3) map homogeneous pixels to the models' coordinates."""


class MotionFamily(TwoViewFamily, Protocol):
    """A family of rigid motions beside one of planes."""

    @property
    @abstractmethod
    def parallax_size(self) -> int:
        """Matches off a plane that a model `from_plane` fits whatever they are."""

    @abstractmethod
    def from_plane(self, plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Return models (k, 9) of a plane's model (9,) and correspondences off it; at most `n` if these are drawn."""

    @abstractmethod
    def from_planes(self, planes: Array) -> Array:
        """Return models (m, 9) of every two of the planes' models (k, 9)."""


@dataclass(frozen=True)
class CheckedFamily:
    """A user's family whose arrays are made what kernels take: float64 or int64, C-contiguous, writable."""

    family: TwoViewFamily
    kernel: ClassVar[int] = GIVEN

    def __getattr__(self, name: str) -> Any:
        if name == "family":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.family, name)

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """See `ModelFamily`; so below."""
        solved: Any = self.family.solve(samples)
        models, owner = solved if isinstance(solved, tuple) and len(solved) == 2 else (solved, None)
        models, owner = self._array("solve", models, (None, None)), self._array("solve", owner, (len(models),))
        if not ((owner >= 0) & (owner < len(samples)) & (owner == np.floor(owner))).all():
            raise ValueError(
                f"`solve` of the family {self.name!r} must return numbers of its {len(samples)} samples, got {owner}"
            )
        return models, owner.astype(np.int64)

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared residuals (m, n), infinite if there is none."""
        squared = self.family.squared_residuals(data, models)
        squared = self._array("squared_residuals", squared, (len(models), len(data)))
        # Of NaN and infinity, the latter; and rounding may leave a little less than 0.
        return np.fmin(np.maximum(squared, 0.0), np.inf)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return fits (m, 9)."""
        return self._array("fit", self.family.fit(data, weights, models), (len(weights), None))

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return models (m, 9) after a step."""
        step = getattr(self.family, "step", self.family.fit)
        return self._array("step", step(data, weights, models), models.shape)

    def reweighted(
        self, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
    ) -> tuple[Array, Array]:
        """Return models (m, 9) after rounds of reweighted least squares, and noise scales (m,)."""
        return reweighted(self, data, weights, models, limits, law, n_rounds, excluded)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return finite models (m, 9) of pixels."""
        matrices = self._array("to_pixels", self.family.to_pixels(models, into1, into2), (len(models), 9))
        unusable = ~np.isfinite(matrices).all(axis=1)
        if unusable.any():
            raise ValueError(
                f"`to_pixels` of the family {self.name!r} must return finite models, got {matrices[unusable][0]}"
            )
        return matrices

    def _array(self, method: str, values: Any, shape: tuple[int | None, ...]) -> Array:
        """Return an array of a shape, of any size for None, as kernels take it."""
        try:
            array = np.require(values, np.float64, ["C", "W"])
        except (TypeError, ValueError):
            array = np.zeros(())
        if array.ndim == len(shape) and all(size in (None, n) for size, n in zip(shape, array.shape, strict=True)):
            return array
        wanted = str(shape).replace("None", "any")
        given = f"shape {values.shape}" if isinstance(values, np.ndarray) else repr(values)
        raise ValueError(f"`{method}` of the family {self.name!r} must return an array of shape {wanted}, got {given}")


@dataclass(frozen=True)
class Models:
    """Models of several families in columns: entry i of every column is about model i. Stages add columns by types of their own."""

    matrices: Array  # (m, 9); of points (m, p)
    family_ids: FamilyIds

    #: Types of the further columns, by NumPy's characters.
    further: ClassVar[str] = ""

    @classmethod
    def none(cls: type[M]) -> M:
        """Return no models."""
        return cls(np.zeros((0, 9)), np.zeros(0, np.uint8), *(np.zeros(0, kind) for kind in cls.further))

    @staticmethod
    def of_family(matrices: Array, family_id: int) -> Models:
        """Return models (m, 9) of one family."""
        return Models(matrices, np.full(len(matrices), family_id, np.uint8))

    @classmethod
    def join(cls: type[M], parts: list[M]) -> M:
        """Return the models of several sets as one."""
        parts = [part for part in parts if len(part)] or parts[-1:]
        if len(parts) == 1:
            return parts[0]
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def take(self: M, rows: NDArray[Any]) -> M:
        """Return some of the models."""
        return type(self)(*[column[rows] for column in vars(self).values()])

    def __len__(self) -> int:
        return len(self.matrices)


@dataclass(frozen=True)
class Families:
    """The families that are sampled, in order; a family's number is its place. `structural`: their models may become structures."""

    members: tuple[TwoViewFamily, ...]
    structural: tuple[bool, ...]

    def __iter__(self) -> Iterator[TwoViewFamily]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, family_id: int) -> TwoViewFamily:
        return self.members[family_id]

    @cached
    def codimensions(self) -> Rows:
        """Codimension of each family."""
        return np.array([family.codimension for family in self])

    @cached
    def sample_sizes(self) -> Rows:
        """Size of a minimal sample of each family."""
        return np.array([family.sample_size for family in self])

    @cached
    def _kinds(self) -> Rows:
        # Families that no kernel knows are alone.
        return np.array([getattr(family, "kernel", GIVEN) for family in self])

    @cached
    def _planes(self) -> Mask:
        return np.array([family.is_plane for family in self])

    @cached
    def motion_id(self) -> int | None:
        """Number of the family of rigid motions, None if all are planes."""
        return None if self._planes.all() else int(np.argmin(self._planes))

    @property
    def has_both(self) -> bool:
        """Whether planes as well as rigid motions may become structures."""
        return self.motion_id is not None and len(self) > 1 and self.structural[0]

    def is_plane(self, models: Models) -> Mask:
        """Tell which models are planes."""
        return self._planes[models.family_ids]

    def squared_residuals(self, models: Models, data: Array) -> Array:
        """Return squared residuals (m, n) of correspondences (n, 4), infinite if a family has none."""
        residuals = self.residuals(models, data)
        squared = np.empty((len(models), len(data)))
        squared_residuals(*residuals, squared)
        return squared

    def residuals(self, models: Models, data: Array) -> Residuals:
        """Return what kernels compute squared residuals of correspondences (n, d) from."""
        kinds, matrices = self._kinds[models.family_ids], np.ascontiguousarray(models.matrices)
        if self._kinds[0] == GIVEN:
            return kinds, np.ascontiguousarray(self[0].squared_residuals(data, matrices)), matrices
        return kinds + OF_RAYS * has_rays(data), in_columns(data), matrices

    def in_tolerances(self, models: Models, tolerances: Array, data: Array) -> Array:
        """Return distances (m, n) of correspondences (n, 4) to models, as multiples of their tolerances (m,)."""
        distances: Array = np.sqrt(self.squared_residuals(models, data)) / tolerances[:, None]
        return distances

    def to_pixels(self, models: Models, into: tuple[Array, Array]) -> Array:
        """Return matrices (m, 3, 3) of pixels; the matrices `into` brought homogeneous pixels to the models' coordinates."""
        matrices = np.empty_like(models.matrices)
        for family_id in np.unique(models.family_ids):
            rows = models.family_ids == family_id
            matrices[rows] = self[family_id].to_pixels(models.matrices[rows], *into)
        return matrices.reshape(-1, 3, 3)
