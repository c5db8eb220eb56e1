"""Variants of the method: one function patched by name, or one of its numbers halved or doubled."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from geometry import Points
from numpy.typing import NDArray

from ruzhash_cv import FilterResult, filtering
from ruzhash_cv.core.forests.ruzhash import RuzHashForest
from ruzhash_cv.core.method import evidence
from ruzhash_cv.core.method.bending import STRAIGHT
from ruzhash_cv.core.method.evidence import chosen_structures
from ruzhash_cv.core.method.law import probabilities_of
from ruzhash_cv.core.method.matches import match_weights
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.core.method.preferences import embed
from ruzhash_cv.core.method.sampling import decoys_of_matches, draw_samples
from ruzhash_cv.core.method.scores import Scores, score
from ruzhash_cv.core.method.search import proposal_weights
from ruzhash_cv.filtering import Options, families_of

DEFAULT = "default"
FACTORS = {"halved": 0.5, "doubled": 2.0}
Replaced = dict[str, Callable[..., Any]]


@dataclass(frozen=True)
class Variant:
    """Other numbers, other functions, and options of the call; functions that keep state are made for each run."""

    numbers: dict[str, Any] = field(default_factory=dict)
    functions: Replaced | Callable[[], Replaced] = field(default_factory=dict)
    model: str = "auto"
    false_discovery_rate: float | None = None


@contextmanager
def patched(functions: Replaced) -> Iterator[None]:
    """Replace functions of the package by name, in every module that calls them."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("ruzhash_cv.")]
    with ExitStack() as stack:
        for name, function in functions.items():
            own = [of for of in modules if getattr(vars(of).get(name), "__module__", "").startswith("ruzhash_cv.")]
            if not own:
                raise AttributeError(f"no module of the package has a function {name}")
            for module in own:
                stack.enter_context(patch.object(module, name, function))
        yield


def run(variant: Variant, points1: Points, points2: Points, seed: int) -> FilterResult:
    """What `filter_points` returns if the method is the variant."""
    functions = variant.functions() if callable(variant.functions) else variant.functions
    parameters = replace(PARAMETERS, **variant.numbers)
    options = Options(false_discovery_rate=variant.false_discovery_rate)
    with patched(functions):
        families, rng = families_of(variant.model), np.random.default_rng(seed)
        return filtering.run(points1, points2, families, parameters, options, rng)


# --- Functions in place of the package's.


class RowSums:
    """In place of a forest: 2^(-sum / largest sum) of weighted preferences, which rows hold as 1 - exp(-saturation x share)."""

    def __init__(self, **options: Any) -> None:
        self.saturation = PARAMETERS.saturation

    def draw(self) -> "RowSums":
        """Nothing is drawn."""
        return self

    def anomaly_scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores of rows (n, m)."""
        # A row of float32 may be 1 by rounding.
        logs = np.log1p(-np.minimum(rows.astype(np.float64), 1 - 1e-9))
        return np.asarray(np.exp2(logs.sum(axis=1) / self.saturation))

    def fit_anomaly_scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores of matches."""
        return self.anomaly_scores(rows)


def led_by_row_sums() -> Replaced:
    """Row sums lead the samples, the forest scores the matches."""
    remembered: dict[str, Any] = {}

    def scored(*given: Any) -> Scores:
        with patched({"RuzHashForest": RowSums}):
            remembered["scores"] = score(*given).of_matches
        return score(*given)

    def proposals(first: bool, weights: Any, unexplained: Any, scores: Any) -> Any:
        return proposal_weights(first, weights, unexplained, scores if scores is None else remembered["scores"])

    return {"score": scored, "proposal_weights": proposals}


def not_led(first: bool, weights: Any, unexplained: Any, scores: Any) -> list[Any]:
    """Samples among all matches and among the unexplained ones, evenly."""
    return [weights] if scores is None else [weights, unexplained]


def counting_its_sample(squared: Any, unit: Any, parameters: Any, groups: Any, samples: Any, *rest: Any) -> Any:
    """A match prefers models that were made of it, too."""
    return embed(squared, unit, parameters, groups, np.full_like(samples, -1), *rest)


def staying_wide(*given: Any) -> Any:
    """No structure is narrower by so many radii."""
    with patch.object(evidence, "_N_NARROWER", 10**6):
        return chosen_structures(*given)


def among_all(*given: Any) -> Any:
    """Samples are drawn among all matches, wherever they are."""
    return draw_samples(*given[:7], (0,))


def of_unexplained_alone(matches: Any, unexplained: Any, parameters: Any, rng: Any) -> Any:
    """Decoys are made of matches that no structure explains, if there are any."""
    decoys = decoys_of_matches(matches.take(np.flatnonzero(unexplained > 0.0)), parameters, rng)
    return decoys if len(decoys) > 0 else decoys_of_matches(matches, parameters, rng)


def plain_rows(
    preferences: NDArray[np.float32], weights: NDArray[np.float64], *_: float
) -> tuple[NDArray[np.float32], float]:
    """Weighted preferences, as far as they are no more than 1."""
    return np.ascontiguousarray(np.minimum(preferences * weights[:, None], 1.0).T, np.float32), 1.0


def by_surfaces_alone(scene: Any, *given: Any) -> Any:
    """A match of a motion's surface has the probability that its distance from the surface gives it."""
    return probabilities_of(replace(scene, owners=np.arange(len(scene))), *given)


def keeping_repetitions(structures: Any, scores: Any, *_: Any) -> Any:
    """No structure is dropped, and no planes overlap."""
    return structures, np.zeros((len(structures),) * 2, bool), scores


def replacing(**functions: Callable[..., Any]) -> Variant:
    """The method with other functions of these names."""
    return Variant(functions=functions)


RULES: dict[str, Variant] = {
    DEFAULT: Variant(),
    "model: homography": Variant(model="homography"),
    "model: fundamental": Variant(model="fundamental"),
    "samples: uniform": replacing(draw_samples=among_all),
    "samples: neighbourhoods of five too": Variant({"neighbourhoods": (5, *PARAMETERS.neighbourhoods)}),
    "samples: one draw": Variant({"n_candidates": 1}),
    "samples: one round, of planes alone": Variant({"max_rounds": 1}),
    "samples: planes alone are never enough": Variant({"evidence_per_match": 1e9}),
    "samples: planes alone bring no more than others": Variant({"evidence_per_match": 1.0}),
    "samples: among all matches only": replacing(proposal_weights=lambda *given: proposal_weights(*given)[:1]),
    "samples: among what is unexplained only": replacing(proposal_weights=lambda *given: proposal_weights(*given)[-1:]),
    "samples: larger ones among all matches evenly": replacing(
        proposal_weights=lambda first, *given: proposal_weights(True, *given)
    ),
    "samples: not led by scores": replacing(proposal_weights=not_led),
    "samples: led by row sums": Variant(functions=led_by_row_sums),
    "models: no local optimisation": replacing(refit=lambda family, matches, models, radii: models),
    "models: no significance weights": replacing(chances_of=lambda models, *_: np.zeros(len(models))),
    "models: last fits by least squares": Variant({"student_degrees": 1e6}),
    "preferences: no self-exclusion": replacing(embed=counting_its_sample),
    "preferences: plain": replacing(as_rows=plain_rows),
    "preferences: no columns of structures": Variant({"structure_weight": 0.0}),
    "forest: none, row sums in its place": replacing(RuzHashForest=RowSums),
    "forest: b = 2": Variant({"branching_factor": 2}),
    "forest: b = 16": Variant({"branching_factor": 16}),
    "forest: the paper's credit in sinks": replacing(RuzHashForest=partial(RuzHashForest, sink_credit=True)),
    "evidence: no annulus": Variant({"density_ratio": 0.0}),
    "evidence: decoys are counted within the largest radius alone": Variant({"background_errors": 1e9}),
    "evidence: repetitions are kept": replacing(drop_repetitions=keeping_repetitions),
    "evidence: overlapping planes are kept": replacing(
        overlapped=lambda scene, surfaces, *_: np.zeros(len(surfaces), bool)
    ),
    "evidence: wide structures do not give way": replacing(chosen_structures=staying_wide),
    "motions: slips rank matrices": replacing(contradicting=lambda labels, *_: np.zeros(len(labels), bool)),
    "surfaces: a patch is as many witnesses as matches": replacing(patch_size=lambda _: 1.0),
    "surfaces: motions lie among others": replacing(interleaved=lambda *_, **__: False),
    "surfaces: no lens": replacing(lens_of_planes=lambda *_: STRAIGHT),
    "surfaces: motions keep their planes' places": replacing(
        planes_in_place_of_motions=lambda chosen, left, *_: (chosen, left)
    ),
    "motions: static matches never move as others": replacing(
        moves_as_others=lambda surfaces, *_: surfaces.stationary & False
    ),
    "motions: none but those that the search selects": replacing(
        find_motions=lambda surfaces, *_: ([], np.full(len(surfaces), -1), np.zeros((0, 9)), STRAIGHT)
    ),
    "motions: likeliest matrix, whatever it misses": replacing(ranked=lambda of, *_: np.argsort(-of, kind="stable")),
    "motions: no likeliest matrix": replacing(with_best_matrices=lambda scene, pool, *_: (scene, pool)),
    "labels: no tail of distances": Variant(numbers={"tail_scale": 3.0}),
    "labels: by distances from surfaces alone": replacing(probabilities_of=by_surfaces_alone),
    "weights: one for each of several duplicates": replacing(
        match_weights=lambda groups, keypoints: match_weights(np.arange(len(groups)), keypoints)
    ),
    "weights: several for a keypoint": replacing(
        match_weights=lambda groups, keypoints: 1.0 / np.bincount(groups)[groups]
    ),
    "scores: decoys of the unexplained alone": replacing(decoys_of_unexplained=of_unexplained_alone),
    "scores: decoys of any matches": replacing(
        decoys_of_unexplained=lambda matches, _, *given: decoys_of_matches(matches, *given)
    ),
    "mask: a share of .01 is wrong": Variant(false_discovery_rate=0.01),
    "mask: a share of .05 is wrong": Variant(false_discovery_rate=0.05),
}


# --- The numbers.


@dataclass(frozen=True)
class Number:
    """A number of the method; a "share" is never more than 1, and of an "exponent" of sqrt 2 the power is halved and doubled."""

    value: Any
    meaning: str
    kind: str

    @property
    def shown(self) -> str:
        """The value for a table."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return ", ".join(f"{value:g}" for value in values)

    def scaled(self, factor: float) -> Any:
        """The number times a factor: integers are rounded and at least 1 unless they are 0, tuples are scaled as a whole."""
        if isinstance(self.value, tuple):
            return tuple(replace(self, value=value).scaled(factor) for value in self.value)
        if self.kind == "exponent":
            return self.value + int(2 * np.log2(factor))
        if isinstance(self.value, int):
            return self.value and max(1, round(self.value * factor))
        return min(self.value * factor, 0.999) if self.kind == "share" else self.value * factor


SHOWN = [of for of in fields(PARAMETERS) if of.metadata]
NUMBERS = {of.name: Number(getattr(PARAMETERS, of.name), of.metadata["meaning"], of.metadata["kind"]) for of in SHOWN}


def all_variants() -> dict[str, Variant]:
    """The rules, then every number halved and doubled; of 1 there is no half."""
    return RULES | {
        f"{name} {word}": Variant({name: number.scaled(factor)})
        for name, number in NUMBERS.items()
        for word, factor in FACTORS.items()
        if number.scaled(factor) != number.value
    }
