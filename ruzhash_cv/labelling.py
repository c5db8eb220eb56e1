"""Labelling: how probable it is that a match is true, which to keep, and the structure of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.law import Components, Limits, ScoreLaw, tail_shares
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.scoring import Scores

#: More probable than not: what a kept match is at least. Single precision tells it from 1/2, too.
MORE_THAN_HALF = 0.5 + 2.0**-20


@dataclass(frozen=True)
class Labelling:
    """Mask, probabilities and labels (-1 = none) of the distinct correspondences."""

    keep: Mask
    probabilities: Array
    labels: Rows

    @classmethod
    def nothing(cls, n: int) -> Labelling:
        """Return the labelling that keeps none of n matches."""
        return cls(np.zeros(n, bool), np.zeros(n), np.full(n, -1))

    def match_weights(self, weights: Array, scores: Array) -> Array:
        """Return weights of matches with anomaly scores (n,); a flagged one counts by the share of these that score no better."""
        ranked: Array = np.sort(scores[~self.keep])
        better = np.searchsorted(ranked, scores, side="left") / max(1, len(ranked))
        return np.asarray(weights * np.where(self.keep, 1.0, 1.0 - better))

    def without(self, rows: NDArray[Any]) -> Labelling:
        """Return the labelling with some matches, by number or mask, no longer kept."""
        keep, labels = self.keep.copy(), self.labels.copy()
        keep[rows], labels[rows] = False, -1
        return replace(self, keep=keep, labels=labels)

    def of_structures(self, kept: Mask) -> Labelling:
        """Return the labelling with labels of those structures that are `kept` (k,), numbered anew."""
        numbers = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        return replace(self, labels=numbers[self.labels])


class Agreement(NamedTuple):
    """How correspondences agree with structures: distances (n, k), and anomaly scores (n,) of one forest."""

    distances: Array
    scores: Array


class Choice(NamedTuple):
    """What a caller asks of the mask: one tolerance in place of the structures' own, and the share of wrong ones among those kept."""

    tolerance: float | None = None
    false_discovery_rate: float | None = None


#: The structures' own tolerances, and what is more probable than not.
OWN_CHOICE = Choice()


def label_matches(
    structures: Models,
    matches: MatchSet,
    scores: Array,
    searched: MatchSet,
    null: Scores,
    families: Families,
    parameters: Parameters,
    choice: Choice = OWN_CHOICE,
) -> Labelling:
    """Return the labelling of matches by their distances to structures and their scores (n,), compared with the decoys of `null`.

    The shares of the law are found among the matches that were `searched`.
    """
    tolerances = structures.tolerances
    if choice.tolerance is not None:
        tolerances = np.full_like(tolerances, choice.tolerance)
    limits = Limits(tolerances, families.codimensions[structures.family_ids])
    own, among, decoys = (
        Agreement(np.sqrt(families.squared_residuals(structures, data).T, order="C"), of)
        for data, of in (
            (matches.data, scores),
            (searched.data, null.of_matches),
            (null.decoys, null.of_decoys),
        )
    )
    posteriors = posteriors_of(own, among, decoys, searched.weights, limits, matches.unit, parameters)
    distances, decoy_shares = own.distances, tail_shares(scores, np.sort(null.of_decoys))
    planes, strict = families.is_plane(structures), choice.tolerance is not None
    labelling = label(distances, posteriors, decoy_shares, limits, parameters, strict=strict)
    if not strict:
        labelling = break_one_to_one(matches, labelling, scores, planes, parameters)
    if choice.false_discovery_rate is not None:
        labelling = most_probable(labelling, choice.false_discovery_rate)
    return labelling


def posteriors_of(
    own: Agreement,
    searched: Agreement,
    decoys: Agreement,
    weights: Array,
    limits: Limits,
    unit: float,
    parameters: Parameters,
) -> Array:
    """Return the law's probabilities (n, k) that matches belong to each structure; its shares are those among the `searched` ones."""
    components = Components.of(limits, decoys.distances, unit, parameters)
    told, told_of_searched = np.ones_like(own.distances), np.ones_like(searched.distances)
    for item in np.flatnonzero(limits.codimensions == 1):
        near, near_decoys = (each.distances[:, item] <= limits.tolerances[item] for each in (searched, decoys))
        law = ScoreLaw.of(decoys.scores[near_decoys], searched.scores[near], weights[near])
        told[:, item], told_of_searched[:, item] = law.ratios(own.scores), law.ratios(searched.scores)
    shares = components.shares(components.ratios(searched.distances, told_of_searched), weights)
    return components.probabilities(components.ratios(own.distances, told), shares, len(limits.tolerances))


def is_overlay(structures: Models, labelling: Labelling, matches: MatchSet) -> Mask:
    """Tell which structures did not move while more matches did: a watermark, a border, the bonnet of the car."""
    weights = np.bincount(labelling.labels + 1, matches.weights, minlength=len(structures) + 1)[1:]
    return np.asarray(structures.stationary & (weights < weights[~structures.stationary].sum()))


def label(
    distances: Array, posteriors: Array, decoy_shares: Array, limits: Limits, parameters: Parameters, *, strict: bool
) -> Labelling:
    """Return the labelling by distances (n, k), the law's probabilities (n, k) and the shares (n,) of decoys that score as well.

    Within the tolerance of a structure the search found more matches than mismatches would give. So a match there has a probability
    above 1/2. Near a line it has if few decoys score as well, because a line passes near many mismatches:

        share of decoys that score as well <= 0.02 ** (coordinates unchecked)

    Otherwise it is not. Beyond all tolerances the law decides alone. If `strict`, the tolerances are the caller's: what lies within
    them is more probable than not, whatever its score, and what lies beyond is a mismatch.
    """
    nearest, away = nearest_structures(distances, limits)
    # 1 for homographies, less for fundamental matrices.
    levels = parameters.significant_share ** (2 - limits.codimensions)
    within, likely = away <= 1.0, (decoy_shares <= levels[nearest]) | strict
    law = np.minimum(posteriors.sum(axis=1), 1.0)
    probabilities = np.where(likely, np.maximum(law, MORE_THAN_HALF), np.minimum(law, 0.5))
    probabilities = np.where(within, probabilities, 0.0 if strict else law)
    keep = probabilities > 0.5
    labels = np.where(within, nearest, posteriors.argmax(axis=1))
    return Labelling(keep, probabilities, np.where(keep, labels, -1))


def most_probable(labelling: Labelling, false_discovery_rate: float) -> Labelling:
    """Return the labelling that keeps as many of the most probable matches as have a mean of 1 - probability of at most the rate."""
    probabilities = labelling.probabilities
    ranked = np.sort(probabilities)[::-1]
    rates = np.cumsum(1.0 - ranked) / np.arange(1, len(ranked) + 1)
    # Matches that are as probable are kept or removed together; what is impossible is removed.
    last = np.append(ranked[1:] != ranked[:-1], True) & (rates <= false_discovery_rate) & (ranked > 0.0)
    least = ranked[last].min(initial=np.inf)
    keep = probabilities >= least
    return replace(labelling, keep=keep, labels=np.where(keep, labelling.labels, -1))


def nearest_structures(distances: Array, limits: Limits) -> tuple[Rows, Array]:
    """Return the structure each match belongs to, or is nearest to, and how many tolerances away it is."""
    with np.errstate(over="ignore", invalid="ignore"):
        away = distances / limits.tolerances
    # A line is easily nearer than a point: what lies within a plane belongs to the plane.
    most = np.where(away <= 1.0, limits.codimensions, 0).max(axis=1, keepdims=True)
    eligible = np.where(limits.codimensions >= most, away, np.inf)
    # A wide structure holds what narrow ones hold: of those that do the narrowest. Ranks below 0 come before any distance.
    narrowest = np.argsort(np.argsort(limits.tolerances)) - len(limits.tolerances)
    nearest = np.argmin(np.where(eligible <= 1.0, narrowest, eligible), axis=1)
    return nearest, away[np.arange(len(distances)), nearest]


def break_one_to_one(
    matches: MatchSet, labelling: Labelling, scores: Array, planes: Mask, parameters: Parameters
) -> Labelling:
    """Return the labelling without matches whose keypoint has a more probable one: a point has one partner in the other image.

    The probability of the others is at most 1 minus that of the better one. Of those that are as probable the one of better score is
    kept. Partners so near each other that one model may be preferred by both do not compete, nor do partners on one plane. `planes`
    (k,) tells which structures are planes.
    """
    kept, probabilities, labels = np.flatnonzero(labelling.keep), labelling.probabilities.copy(), labelling.labels
    on_plane, apart = planes[labels], parameters.preference_limit * matches.unit
    for numbers, other in zip(matches.keypoints, (matches.coordinates[:, 2:], matches.coordinates[:, :2]), strict=True):
        rows = kept[np.bincount(numbers[kept])[numbers[kept]] > 1]
        if len(rows) == 0:
            continue
        rows = rows[np.lexsort((scores[rows], -labelling.probabilities[rows], numbers[rows]))]
        first = np.concatenate([[True], np.diff(numbers[rows]) != 0])
        best = rows[first][np.cumsum(first) - 1]
        far = np.abs(other[rows] - other[best]).max(axis=1) > apart
        beaten = far & ~(on_plane[rows] & (labels[rows] == labels[best]))
        left = 1.0 - labelling.probabilities[best[beaten]]
        probabilities[rows[beaten]] = np.minimum(probabilities[rows[beaten]], left)
    keep = probabilities > 0.5
    return replace(labelling, keep=keep, probabilities=probabilities, labels=np.where(keep, labels, -1))
