"""One model for one threshold: of all models tried one with about the largest consensus set, as RANSAC's users expect.

The models of the largest consensus sets are refitted to what lies within the threshold, and the best of these to random samples of its
matches, larger than minimal ones (Chum, Matas, Kittler, "Locally optimized RANSAC", DAGM 2003). The most precise model seldom has the
largest set of all, because a mismatch within the threshold counts as much as a match. So the likeliest of those models is returned that
have nearly as many matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.fits import irls, refine, refits
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models, MotionFamily, TwoViewFamily
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.scoring import most_significant
from ruzhash_cv.search import Tried


@dataclass(frozen=True)
class Consensus:
    """What models of one family are counted by: matches, how often each was given, and the threshold in the frame."""

    family: TwoViewFamily
    matches: MatchSet
    repeats: Rows
    threshold: float
    parameters: Parameters

    def within(self, models: Array) -> Mask:
        """Tell which matches (m, n) lie within the threshold of models."""
        return np.asarray(self.family.squared_residuals(self.matches.data, models) <= self.threshold**2)

    def counts(self, models: Array) -> Array:
        """Return how many of the matches given lie within the threshold of models, (m,)."""
        return np.asarray(self.within(models) @ self.repeats)

    def likelihoods(self, models: Array) -> Array:
        """Return the log-likelihoods (m,) of models, less that of mismatches spread evenly.

        A true match has one of several noise scales, with equal probability. They are those of preferences that end at the threshold.
        """
        residuals = np.sqrt(self.family.squared_residuals(self.matches.data, models))
        unit = self.threshold / self.parameters.preference_limit
        scales = (self.parameters.scales * unit)[:, None, None]
        ratios = (self.threshold / scales) ** self.family.codimension
        with np.errstate(over="ignore", under="ignore"):  # what is so far off is no match
            densities = (ratios * np.exp(-0.5 * (np.fmin(residuals, np.inf) / scales) ** 2)).mean(axis=0)
        return np.asarray(np.log1p(densities) @ self.matches.weights)

    def largest(self, models: Array, n: int) -> Array:
        """Return those n of models (m, 9) that have most matches, the first one first."""
        return models[np.argsort(-self.counts(models), kind="stable")[:n]]

    def likeliest(self, models: Array, n: int) -> Array:
        """Return those n of models (m, 9) that are likeliest, the first one first."""
        return models[np.argsort(-self.likelihoods(models), kind="stable")[:n]]

    def refitted(self, models: Array) -> Array:
        """Return models, and these refitted to what lies within the threshold, several times."""

        def within(squared: Array) -> tuple[Array, Array]:
            weights = (squared <= self.threshold**2).astype(np.float64)
            return weights, weights.sum(axis=1)

        fitted = [models]
        for _ in self.parameters.refit_radii:
            fitted.append(irls(self.family, self.matches.data, fitted[-1], within))
        return np.vstack(fitted)

    def optimised(self, model: Array, rng: np.random.Generator) -> Array:
        """Return a model (9,) and fits to random samples of the matches within the threshold, those of most matches first: (k, 9)."""
        rows = np.flatnonzero(self.within(model[None])[0])
        if len(rows) <= self.family.sample_size:
            return model[None]
        n_samples = self.parameters.motion_samples
        weights = np.zeros((n_samples, len(self.matches)))
        drawn = rng.random((n_samples, len(rows))).argsort(axis=1)[:, : 2 * self.family.sample_size]
        np.put_along_axis(weights, rows[drawn], 1.0, axis=1)
        fitted = self.family.fit(self.matches.data, weights)
        fitted = self.largest(fitted[np.isfinite(fitted).all(axis=1)], self.parameters.n_refits)
        found = np.vstack([model, self.refitted(fitted)])
        return self.largest(found, len(found))


def largest_consensus(consensus: Consensus, models: Array, rng: np.random.Generator) -> Array:
    """Return the models (k, 9) of most matches that models (m, 9) lead to, the largest first, and then the likeliest given."""
    parameters = consensus.parameters
    best = consensus.largest(consensus.refitted(consensus.largest(models, parameters.n_refits)), 1)[0]
    # Refits of one fundamental matrix end far from the likeliest, those of one homography do not.
    optimised = consensus.optimised(best, rng)[: 1 if consensus.family.is_plane else None]
    likeliest = consensus.likeliest(consensus.largest(models, 2 * parameters.n_refits), parameters.n_refits)
    return np.vstack([optimised, likeliest])


def models_tried(
    tried: Tried, family_id: int, matches: MatchSet, decoys: Array, families: Families, rng: np.random.Generator
) -> Array:
    """Return the models (m, 9) of a family that the search tried and kept.

    Of a motion also matrices of the strongest plane and two matches off it, see `motions`. If all lie on it, any two points off it
    give a matrix that fits.
    """
    family, parameters, models = (
        cast(MotionFamily, families[family_id]),
        tried.parameters,
        [models_of(tried, family_id)],
    )
    if not family.is_plane:
        columns = Models.join(tried.columns)
        columns = most_significant(columns.take(np.flatnonzero(families.is_plane(columns))), 1)
        if len(columns) > 0:
            plane = refits(families[0], matches, columns.matrices, parameters)[-1]
            squared = families[0].squared_residuals(matches.data, plane[None])[0]
            off = matches.data[squared > matches.unit**2]
            off = off if len(off) >= max(family.parallax_size, 1) else decoys
            models.append(family.from_plane(plane, off, parameters.motion_samples, rng))
    every = np.vstack(models)
    return np.asarray(every[np.isfinite(every).all(axis=1)])


def with_most_matches(
    structures: Models,
    tried: Tried,
    matches: MatchSet,
    families: Families,
    threshold: float,
    rng: np.random.Generator,
) -> Models:
    """Return structures; a motion that more than half of all matches agree with gets the likeliest model with nearly the most."""
    # A match that was given several times counts once, as everywhere in the filter.
    once, parameters = np.ones(len(matches), np.int64), tried.parameters
    held = families.squared_residuals(structures, matches.data) <= threshold**2
    held[families.is_plane(structures)] = False
    counts = held.sum(axis=1)
    best = int(np.argmax(counts)) if len(counts) else -1
    if best < 0 or not counts[best] > 0.5 * len(matches):
        return structures
    family_id = int(structures.family_ids[best])
    consensus = Consensus(families[family_id], matches, once, threshold, parameters)
    given = np.vstack([structures.matrices[[best]], models_of(tried, family_id)])
    matrices = structures.matrices.copy()
    matrices[best] = precise(consensus, largest_consensus(consensus, given, rng))
    return replace(structures, matrices=matrices)


def models_of(tried: Tried, family_id: int) -> Array:
    """Return the models (m, 9) of a family that the search tried and kept."""
    models = np.vstack([part.matrices[part.family_ids == family_id] for part in (*tried.columns, *tried.candidates)])
    return np.asarray(models[np.isfinite(models).all(axis=1)])


def precise(consensus: Consensus, models: Array) -> Array:
    """Return a model (9,): of models (m, 9) refitted at their own noise scales the likeliest that has nearly the most matches."""
    family, tolerances = Families((consensus.family,), (True,)), np.full(len(models), consensus.threshold)
    fitted, _ = refine(Models.of_family(models, 0), consensus.matches, tolerances, family, consensus.parameters)
    tried = np.vstack([consensus.refitted(models[:1]), fitted])
    counts = consensus.counts(tried)
    kept = tried[counts >= consensus.parameters.kept_share * counts.max()]
    return np.asarray(consensus.likeliest(kept, 1)[0])
