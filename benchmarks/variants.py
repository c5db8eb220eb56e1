"""Variants of the method: one rule left out or replaced, or one of its numbers halved or doubled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from geometry import Points
from numpy.typing import NDArray

from ruzhash_cv import FilterResult, filtering
from ruzhash_cv.filtering import PARAMETERS, STAGES, Method, Options, families_of
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.labelling import Labelling
from ruzhash_cv.problem import Problem
from ruzhash_cv.scoring import Scores, weighted_preferences

DEFAULT = "default"
FACTORS = {"halved": 0.5, "doubled": 2.0}
Replaced = dict[str, Callable[..., Any]]


@dataclass(frozen=True)
class Variant:
    """Other numbers, other stages, and what a caller may ask for; a function makes stages that remember something anew for each run."""

    numbers: dict[str, Any] = field(default_factory=dict)
    stages: Replaced | Callable[[], Replaced] = field(default_factory=dict)
    model: str = "auto"
    false_discovery_rate: float | None = None


def run(variant: Variant, points1: Points, points2: Points, seed: int) -> FilterResult:
    """What `filter_points` returns where the method is the variant."""
    stages = variant.stages() if callable(variant.stages) else variant.stages
    method = Method(families_of(variant.model), replace(PARAMETERS, **variant.numbers), replace(STAGES, **stages))
    options = Options(false_discovery_rate=variant.false_discovery_rate)
    return filtering.run(points1, points2, method, options, np.random.default_rng(seed))


# --- What takes the place of a stage.


class RowSums:
    """In place of a forest: 2^(-sum / largest sum) of weighted preferences, which rows tell as 1 - exp(-saturation x share)."""

    def __init__(self, saturation: float) -> None:
        self.saturation = saturation

    def anomaly_scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores of rows (n, m)."""
        # A row of float32 may be 1 by rounding.
        logs = np.log1p(-np.minimum(rows.astype(np.float64), 1 - 1e-9))
        return np.asarray(np.exp2(logs.sum(axis=1) / self.saturation))

    def fit_anomaly_scores(self, rows: Any, decoys: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of matches and of decoys."""
        return self.anomaly_scores(rows), self.anomaly_scores(decoys)


def row_sums(problem: Problem, rng: np.random.Generator) -> RowSums:
    """No forest."""
    return RowSums(problem.parameters.saturation)


def forest_with_credit(problem: Problem, rng: np.random.Generator) -> RuzHashForest:
    """The forest whose sinks have the credit that the paper gives them."""
    told = {name: getattr(problem.parameters, name) for name in ("n_trees", "subsample_size", "branching_factor")}
    return RuzHashForest(**told, sink_credit=True, rng=rng)


def scored_by(make: Callable[[Problem, np.random.Generator], Any]) -> Callable[..., Scores]:
    """The stage that scores, with another forest."""

    def score(columns: Any, structures: Any, unexplained: Any, problem: Problem, rng: np.random.Generator) -> Scores:
        found, matches = STAGES.score(columns, structures, unexplained, problem, rng), problem.matches
        groups = np.append(matches.groups, np.full(len(found.decoys), -2))
        agreement = weighted_preferences(found.columns, problem, np.vstack([matches.data, found.decoys]), groups)
        rows = problem.stages.as_rows(agreement, found.largest, problem.parameters.saturation)
        forest, n = make(problem, rng), len(matches)
        of_matches, of_decoys = forest.fit_anomaly_scores(rows[:n], rows[n:])
        return replace(found, of_matches=of_matches, of_decoys=of_decoys, forest=forest)

    return score


def led_by_row_sums() -> Replaced:
    """Row sums lead the samples, the forest scores the matches."""
    remembered: dict[str, Any] = {}

    def score(*told: Any) -> Scores:
        remembered["scores"] = scored_by(row_sums)(*told[:-1], np.random.default_rng(0)).of_matches
        found: Scores = STAGES.score(*told)
        return found

    def propose(first: bool, weights: Any, unexplained: Any, scores: Any) -> Any:
        return STAGES.propose(first, weights, unexplained, scores if scores is None else remembered["scores"])

    return {"score": score, "propose": propose}


def not_led(first: bool, weights: Any, unexplained: Any, scores: Any) -> list[Any]:
    """Samples among all matches and among what is unexplained, evenly."""
    return [weights] if scores is None else [weights, unexplained]


def counting_its_own_sample(squared: Any, kernel: Any, groups: Any, sample_groups: Any, *told: Any) -> Any:
    """A match prefers models that were made of it, too."""
    return STAGES.embed(squared, kernel, groups, np.full_like(sample_groups, -1), *told)


def among_all(matches: Any, weights: Any, n_samples: int, family: Any, parameters: Any, rng: Any) -> Any:
    """Samples are drawn among all matches, whatever their places."""
    parameters = replace(parameters, neighbourhoods=(0,))
    return STAGES.draw_samples(matches, weights, n_samples, family, parameters, rng)


def of_unexplained_alone(matches: Any, unexplained: Any, parameters: Any, rng: Any) -> Any:
    """Decoys are made of what no structure explains, as far as that gives any."""
    own = STAGES.decoys_of_matches(matches.take(np.flatnonzero(unexplained > 0.0)), parameters, rng)
    return own if len(own) > 0 else STAGES.decoys_of_matches(matches, parameters, rng)


def plain_rows(agreement: NDArray[np.float32], largest: float, saturation: float) -> NDArray[np.float32]:
    """Weighted preferences, as far as they are no more than 1."""
    return np.ascontiguousarray(np.minimum(agreement, 1.0).T)


def within_tolerances(*told: Any, strict: bool) -> Labelling:
    """Beyond the tolerances of all structures nothing is kept."""
    found: Labelling = STAGES.label(*told, strict=True)
    return found


def by_law_alone(
    distances: Any, posteriors: Any, decoy_shares: Any, limits: Any, parameters: Any, *, strict: bool
) -> Labelling:
    """What is more probable than not is kept, within tolerances and beyond."""
    probabilities = np.minimum(posteriors.sum(axis=1), 1.0)
    keep = probabilities > 0.5
    return Labelling(keep, probabilities, np.where(keep, posteriors.argmax(axis=1), -1))


RULES: dict[str, Variant] = {
    DEFAULT: Variant(),
    "model: homography": Variant(model="homography"),
    "model: fundamental": Variant(model="fundamental"),
    "samples: uniform": Variant(stages={"draw_samples": among_all}),
    "samples: neighbourhoods of five too": Variant({"neighbourhoods": (5, *PARAMETERS.neighbourhoods)}),
    "samples: one draw": Variant({"n_candidates": 1}),
    "samples: one round, of planes alone": Variant({"max_rounds": 1}),
    "samples: planes alone are never enough": Variant({"evidence_per_match": 1e9}),
    "samples: planes alone bring no more than others": Variant({"evidence_per_match": 1.0}),
    "samples: among all matches only": Variant(stages={"propose": lambda *told: STAGES.propose(*told)[:1]}),
    "samples: among what is unexplained only": Variant(stages={"propose": lambda *told: STAGES.propose(*told)[-1:]}),
    "samples: larger ones among all matches evenly": Variant(
        stages={"propose": lambda first, *told: STAGES.propose(True, *told)}
    ),
    "samples: not led by scores": Variant(stages={"propose": not_led}),
    "samples: led by row sums": Variant(stages=led_by_row_sums),
    "models: no local optimisation": Variant(stages={"refit": lambda family, matches, models, radii: models}),
    "models: no significance weights": Variant(
        stages={"significance": lambda embedded, *_: np.ones(len(embedded.sums))}
    ),
    "models: last fits by least squares": Variant({"student_degrees": (1e6,)}),
    "preferences: no self-exclusion": Variant(stages={"embed": counting_its_own_sample}),
    "preferences: plain": Variant(stages={"as_rows": plain_rows}),
    "preferences: no columns of structures": Variant({"structure_weight": 0.0}),
    "forest: none, row sums in its place": Variant(stages={"score": scored_by(row_sums)}),
    "forest: b = 2": Variant({"branching_factor": 2}),
    "forest: b = 16": Variant({"branching_factor": 16}),
    "forest: the paper's credit in sinks": Variant(stages={"score": scored_by(forest_with_credit)}),
    "evidence: no annulus": Variant({"density_ratio": 0.0}),
    "evidence: decoys are counted within the largest radius alone": Variant({"background_errors": 1e9}),
    "evidence: texture repeated in one direction is kept": Variant(
        stages={"find_texture": lambda structures, hypotheses, problem, *told: np.zeros(len(problem.matches), bool)}
    ),
    "evidence: repetitions are kept": Variant(stages={"drop_repetitions": lambda estimate, problem, rng: estimate}),
    "evidence: overlapping planes are kept": Variant(
        stages={"resolve_overlaps": lambda estimate, problem, rng: estimate}
    ),
    "evidence: no motion joins the planes kept": Variant(
        stages={"resolve_overlaps": partial(STAGES.resolve_overlaps, join_motions=False)}
    ),
    "weights: one for each of several duplicates": Variant(
        stages={"weigh_matches": lambda groups, keypoints: STAGES.weigh_matches(np.arange(len(groups)), keypoints)}
    ),
    "weights: several for a keypoint": Variant(
        stages={"weigh_matches": lambda groups, keypoints: 1.0 / np.bincount(groups)[groups]}
    ),
    "scores: decoys of the unexplained alone": Variant(stages={"decoys_of_unexplained": of_unexplained_alone}),
    "scores: decoys of any matches": Variant(
        stages={"decoys_of_unexplained": lambda matches, _, *told: STAGES.decoys_of_matches(matches, *told)}
    ),
    "mask: nothing beyond tolerances": Variant(stages={"label": within_tolerances}),
    "mask: the law alone": Variant(stages={"label": by_law_alone}),
    "mask: several matches for a keypoint": Variant(stages={"one_to_one": lambda matches, labelling, *_: labelling}),
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


NUMBERS = {
    of.name: Number(getattr(PARAMETERS, of.name), of.metadata["meaning"], of.metadata["kind"])
    for of in fields(PARAMETERS)
}


def all_variants() -> dict[str, Variant]:
    """The rules, then every number halved and doubled; of 1 there is no half."""
    return RULES | {
        f"{name} {word}": Variant({name: number.scaled(factor)})
        for name, number in NUMBERS.items()
        for word, factor in FACTORS.items()
        if number.scaled(factor) != number.value
    }
