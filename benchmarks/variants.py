"""Variants of the method: one rule left out or replaced, or one of its numbers halved or doubled."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numba
import numpy as np
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.structures import evidence, motions, refinement, search

from ruzhash_cv import filtering, matchset, preferences, sampling, verdict
from ruzhash_cv.forests.ruzhash import RuzHashForest

Change = Callable[[ExitStack], None]
Array = NDArray[np.float64]
DEFAULT = "default"


@dataclasses.dataclass(frozen=True)
class Variant:
    """A change of the package, if any, and options of `filter_points`."""

    change: Change | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


@contextmanager
def changed(variant: Variant) -> Iterator[None]:
    """Within this context the package is the variant."""
    with ExitStack() as stack:
        if variant.change is not None:
            variant.change(stack)
        yield


# --- How the package is changed.


@lru_cache
def _syntax(module: ModuleType) -> list[ast.stmt]:
    return ast.parse(inspect.getsource(module)).body


def _rooms_of(module: ModuleType, name: str) -> Iterator[ModuleType]:
    """Yield the module that defines a name, and those that import it from there."""
    yield module
    for at, other in list(sys.modules.items()):
        if at.startswith("ruzhash_cv.") and (module.__name__, name) in imports(other):
            yield other


@lru_cache
def imports(module: ModuleType) -> set[tuple[str | None, str]]:
    """Return the modules and names that a module imports under names of their own."""
    found = [statement for statement in _syntax(module) if isinstance(statement, ast.ImportFrom)]
    return {(one.module, alias.name) for one in found for alias in one.names if alias.asname in (None, alias.name)}


def _derived(module: ModuleType, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, and those of the module's constants that are computed from them."""
    scope, found = {**vars(module), **values}, dict(values)
    for statement in _syntax(module):
        if not isinstance(statement, ast.Assign):
            continue
        targets = {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        used = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
        if used & found.keys() and not targets & values.keys():
            exec(compile(ast.Module([statement], []), module.__file__ or "", "exec"), scope)
            found |= {name: scope[name] for name in targets}
    return found


def _compile_anew(stack: ExitStack, module: ModuleType, names: set[str]) -> None:
    """Replace the module's kernels that refer to any of the names, or to kernels that do: a constant is compiled into them."""
    kernels = {
        name: kernel
        for name, kernel in vars(module).items()
        if isinstance(kernel, CPUDispatcher) and kernel.py_func.__module__ == module.__name__
    }
    stale: dict[str, Any] = {}
    while found := {
        name: kernel
        for name, kernel in kernels.items()
        if name not in stale and (names | stale.keys()) & set(kernel.py_func.__code__.co_names)
    }:
        stale |= found
    for name, kernel in stale.items():
        stack.enter_context(patch.object(module, name, _uncached_jit(kernel.py_func)))


def _uncached_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as the package's own decorator does, which would replace the default's files in the cache."""
    compiled: Callable[..., Any] = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled


def replaced(module: ModuleType, **values: Any) -> Change:
    """Other values of a module's names, wherever the package uses them, and of the constants that are computed from them."""

    def change(stack: ExitStack) -> None:
        waiting = [(module, values)]
        while waiting:
            own, given = waiting.pop()
            found = _derived(own, given)
            for name, value in found.items():
                if not hasattr(own, name):
                    raise AttributeError(f"{own.__name__} has no {name}")
                for room in _rooms_of(own, name):
                    stack.enter_context(patch.object(room, name, value))
                    waiting += [(room, {name: value})] if room is not own else []
            _compile_anew(stack, own, set(found))
            for cached in [value for value in vars(own).values() if hasattr(value, "cache_clear")]:
                cached.cache_clear()
                stack.callback(cached.cache_clear)

    return change


def method(owner: type, name: str, function: Callable[..., Any]) -> Change:
    """Another method of a class."""

    def change(stack: ExitStack) -> None:
        stack.enter_context(patch.object(owner, name, function))

    return change


def rewritten(owner: type, name: str, *lines: tuple[str, str], **scope: Any) -> Change:
    """A method of a class with other text for some of its own; `scope` are names that the new text uses."""

    def change(stack: ExitStack) -> None:
        stack.enter_context(patch.object(owner, name, with_lines(getattr(owner, name), lines, scope)))

    return change


def with_lines(function: Callable[..., Any], lines: tuple[tuple[str, str], ...], scope: dict[str, Any]) -> Any:
    """Return a function made anew from its source with other text for some of its own."""
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in lines:
        if source.count(old) != 1:
            raise ValueError(f"{function.__qualname__} has {old!r} {source.count(old)} times, not once")
        source = source.replace(old, new)
    space = {**function.__globals__, **scope}
    # Annotations stay unread, as in this file.
    exec(compile(source, function.__name__, "exec"), space)
    return space[function.__name__]


def both(*changes: Change) -> Change:
    """One change after the other."""

    def change(stack: ExitStack) -> None:
        for part in changes:
            part(stack)

    return change


# --- What takes the place of a rule.


def row_sums(columns: search.Columns, matches: matchset.MatchSet, families: search.Families) -> Array:
    """Return what the forest's rows are made of, summed: of each match the weighted sum of its preferences."""
    squared = squared_residuals(families, columns.codes, columns.models, matches.data)
    agreement = search.embed(squared, matches.length, matches.groups, columns.members)
    return np.asarray(columns.weights @ agreement, np.float64)


class RowSumScorer(search.Scorer):
    """Scores without a forest: 2^(-sum / largest sum)."""

    def others(self, data: Array, groups: NDArray[np.int64]) -> Array:
        """Return scores of correspondences."""
        squared = squared_residuals(self.families, self.columns.codes, self.columns.models, data)
        agreement = search.embed(squared, self.length, groups, self.columns.members)
        return np.asarray(np.exp2(-(self.columns.weights @ agreement) / self.most), np.float64)


def row_sum_scores(
    columns: search.Columns,
    matches: matchset.MatchSet,
    null: Array,
    families: search.Families,
    rng: np.random.Generator | None = None,
    n_jobs: int = 1,
) -> tuple[Array, Array, search.Scorer]:
    """Score matches and decoys without a forest."""
    most = max(float(row_sums(columns, matches, families).max(initial=0.0)), 1e-30)
    scorer = RowSumScorer(RuzHashForest(), columns, families, matches.length, most)
    nowhere = np.full(len(null), -2, np.int64)
    return scorer.others(matches.data, matches.groups), scorer.others(null, nowhere), scorer


def counting_its_own_sample(
    squared: Array, length: float, groups: Any, members: Any, *told: Any, own: Any = preferences.embed_and_sum
) -> Any:
    """Prefer models that were made of the match itself, too."""
    return own(squared, length, groups, np.full((len(members), 1), -1, np.int64), *told)


def plain_rows(agreement: NDArray[np.float32], _: float) -> NDArray[np.float32]:
    """Return weighted preferences, as far as they are no more than 1."""
    return np.ascontiguousarray(np.minimum(agreement, 1.0).T)


def summing_decoys(
    squared: Array,
    length: float,
    groups: Any,
    members: Any,
    votes: Array,
    *into: Any,
    own: Any = preferences.embed_and_sum,
) -> Any:
    """Sum the preferences of decoys in place of counting them."""
    decoys = np.ascontiguousarray(squared[:, len(votes) :])
    nobody = np.full((len(members), 1), -1, np.int64)
    found = own(squared, length, groups, members, votes, *into)
    found[2][:] = own(decoys, length, np.zeros(decoys.shape[1], np.int64), nobody, np.ones(decoys.shape[1]))[1]
    return found


def by_decoys(
    self: search.Search, sums: Array, n_decoys: Array, _: Any, free: Any = 0.0, own: Any = search.Search._significance
) -> Array:
    """Weigh models by the mean preference of decoys, and of one more that agrees fully."""
    return np.asarray(own(self, sums, n_decoys, 1.0, free))


@lru_cache
def draw_kernel_of_one_largest_weight() -> Any:
    """Return the kernel that draws samples, compiled with the largest of all weights in place of the neighbourhood's."""
    lines = (
        ("counter = np.uint64(0)", "counter, heaviest = np.uint64(0), weights.max()"),
        ("largest = max(largest, weights[around[item]])", "largest = heaviest"),
    )
    return with_lines(sampling._draw_kernel.py_func, lines, {"jit": _uncached_jit})


def by_one_largest_weight(stack: ExitStack) -> None:
    """Accept neighbours in proportion to the largest of all weights: neighbourhoods of little weight make few samples."""
    stack.enter_context(patch.object(sampling, "_draw_kernel", draw_kernel_of_one_largest_weight()))


def uniform_plans() -> dict[int, search.Plan]:
    """Return the plans with all matches as the only neighbourhood."""
    return {codimension: plan._replace(neighbourhoods=(0,)) for codimension, plan in search.PLANS.items()}


_LED_BY = "led_by = scores"
_at_once = rewritten(search.Search, "run", ("alone = turn == 0 and", "alone = False and"))
_row_sums = "led_by = row_sum_scores(scorer.columns, self._matches, self._null, self._families)[0]"


def guides(chosen: Callable[[list[np.ndarray]], list[np.ndarray]]) -> Change:
    """Other guides of the samples, made of the default's."""
    own = search.Search._guides
    return method(search.Search, "_guides", lambda self, *arguments: chosen(own(self, *arguments)))


def planes_alone_stay() -> Change:
    """Where a plane goes no motion of the others joins them."""
    own = search.Search.without
    return method(search.Search, "without", lambda self, found, gone, motions=None: own(self, found, gone))


def repetitions_alone(*arguments: Any) -> tuple[Array, Array]:
    """Planes in one place are not told."""
    repeated, mixed = refinement.tell_repetitions(*arguments)
    return repeated, np.zeros_like(mixed)


RULES: dict[str, Variant] = {
    DEFAULT: Variant(),
    "model: homography": Variant(None, {"model": "homography"}),
    "model: fundamental": Variant(None, {"model": "fundamental"}),
    "samples: uniform": Variant(replaced(search, PLANS=uniform_plans())),
    "samples: one draw": Variant(replaced(sampling, N_DRAWS=1)),
    "samples: families at once": Variant(_at_once),
    "samples: one round, families at once": Variant(both(replaced(search, MOST_ROUNDS=1), _at_once)),
    "samples: among all matches only": Variant(guides(lambda own: own[:1])),
    "samples: among what is left only": Variant(guides(lambda own: own[-1:])),
    "samples: larger ones among all matches evenly": Variant(
        method(
            search.Search,
            "_guides",
            lambda self, _, scores, own=search.Search._guides: own(self, 0, scores),
        )
    ),
    "samples: not led by scores": Variant(replaced(search, best_first=lambda left, scores: left.copy())),
    "samples: neighbours by the largest weight of all": Variant(by_one_largest_weight),
    "samples: planes alone bring no more than others": Variant(replaced(search, EVIDENCE_PER_VOTE=1.0)),
    "samples: led by row sums": Variant(
        rewritten(search.Search, "run", (_LED_BY, _row_sums), row_sum_scores=row_sum_scores)
    ),
    "models: no local optimisation": Variant(replaced(search, refit=lambda family, data, votes, models, radii: models)),
    "models: no significance weights": Variant(
        method(search.Search, "_significance", lambda self, sums, *_: np.ones(len(sums)))
    ),
    "models: weighed by the preferences of decoys": Variant(
        both(replaced(preferences, embed_and_sum=summing_decoys), method(search.Search, "_significance", by_decoys))
    ),
    "preferences: no self-exclusion": Variant(replaced(preferences, embed_and_sum=counting_its_own_sample)),
    "preferences: plain": Variant(replaced(preferences, as_rows=plain_rows)),
    "preferences: no columns of structures": Variant(replaced(search, STRUCTURE_WEIGHT=0.0)),
    "forest: none, row sums in its place": Variant(replaced(search, score=row_sum_scores)),
    "forest: b = 2": Variant(replaced(search, BRANCHES=2)),
    "forest: b = 16": Variant(replaced(search, BRANCHES=16)),
    "forest: the paper's credit in sinks": Variant(
        replaced(search, RuzHashForest=partial(RuzHashForest, sink_credit=True))
    ),
    "evidence: no annulus": Variant(replaced(evidence, DENSITY_RATIO=0.0)),
    "evidence: texture repeated in one direction stays": Variant(
        method(search.Search, "_along_lines", lambda self, structures, candidates: np.zeros(len(self._matches), bool))
    ),
    "evidence: planes in one place stay": Variant(replaced(search, tell_repetitions=repetitions_alone)),
    "evidence: no motion joins the planes that stay": Variant(planes_alone_stay()),
    "evidence: repetitions stay": Variant(method(search.Search, "_without_repetitions", lambda self, found: found)),
    "models: last fits by least squares": Variant(replaced(refinement, DEGREES=(1e6,))),
    "votes: one for each of several duplicates": Variant(
        replaced(matchset, duplicate_groups=lambda data, radius: np.arange(len(data)))
    ),
    "votes: several for a keypoint": Variant(
        replaced(matchset, votes_of=lambda groups, keypoints: 1.0 / np.bincount(groups)[groups])
    ),
    "p-values: decoys of any matches": Variant(replaced(search, PRIOR_MATCHES=np.inf)),
    "p-values: equal scores stay equal": Variant(
        replaced(verdict, ranked_looks=lambda scores, distances, null_scores, null_distances: (scores, null_scores))
    ),
    "p-values: by the decoys' own law": Variant(replaced(verdict, empirical_null=lambda p, n_decoys: 0.0)),
    "p-values: not held against what is rejected": Variant(
        replaced(verdict, better_rejected=lambda scores, rejected: np.zeros(len(scores)))
    ),
    "mask: structures alone": Variant(replaced(verdict, ON_A_LINE=1.0, SURE=-1.0)),
    "mask: no reach beyond tolerances": Variant(replaced(verdict, REACH=1.0)),
    "mask: reach among crowds too": Variant(
        replaced(verdict, stands_out=lambda nearest, distance, codimensions: np.ones(len(codimensions), bool))
    ),
    "mask: rivals stay": Variant(replaced(verdict, lost_to_rivals=lambda *_: np.zeros(0, np.int64))),
    "mask: p <= 0.01": Variant(None, {"false_acceptance_rate": 0.01}),
    "mask: p <= 0.05": Variant(None, {"false_acceptance_rate": 0.05}),
}

#: The rules that are no options of `filter_points`: `changed` alone brings them about.
CHANGES = [name for name, rule in RULES.items() if not rule.options]


# --- The numbers.


class Number(NamedTuple):
    """A number of the method: where it stands, what it means, and how it is halved and doubled.

    `path` leads to it within what `name` stands for: keys and fields. Of an "exponent" of sqrt 2 the power is halved and
    doubled, and a "share" is never more than 1.
    """

    module: ModuleType
    name: str
    path: tuple[Any, ...]
    meaning: str
    kind: str = "plain"

    def __str__(self) -> str:
        steps = (f".{at}" if isinstance(at, str) else f"[{at}]" for at in self.path)
        return f"{self.module.__name__.rsplit('.', 1)[-1]}.{self.name}{''.join(steps)}"

    @property
    def exists(self) -> bool:
        """Whether the package still has it."""
        try:
            return self.value is not None
        except (AttributeError, LookupError, TypeError):
            return False

    @property
    def value(self) -> Any:
        """What it is now."""
        value = getattr(self.module, self.name)
        for at in self.path:
            value = getattr(value, at) if isinstance(at, str) else value[at]
        return value

    def scaled(self, factor: float) -> Any:
        """What `name` stands for with the number times `factor`."""
        return _written(getattr(self.module, self.name), self.path, _scaled(self.value, factor, self.kind))

    def variant(self, factor: float) -> Variant:
        """The method with the number times `factor`."""

        def change(stack: ExitStack) -> None:
            replaced(self.module, **{self.name: self.scaled(factor)})(stack)

        return Variant(change)

    def differs(self, factor: float) -> bool:
        """Tell whether that is another number: of 1 there is no half."""
        return repr(_scaled(self.value, factor, self.kind)) != repr(self.value)


def _scaled(value: Any, factor: float, kind: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(item, factor, kind) for item in value)
    if kind == "exponent":
        return value + int(2 * np.log2(factor))
    if isinstance(value, int):
        return value and max(1, round(value * factor))
    return min(value * factor, 0.999) if kind == "share" else value * factor


def _written(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return `value` with `new` at the end of a path."""
    if not path:
        return new
    at, *rest = path
    if isinstance(at, str):
        return value._replace(**{at: _written(getattr(value, at), tuple(rest), new)})
    inner = _written(value[at], tuple(rest), new)
    if isinstance(value, dict):
        return {**value, at: inner}
    return (*value[:at], inner, *value[at + 1 :])


NUMBERS = [
    Number(matchset, "LENGTH", (), "the one length, px: noise scales, radii, duplicates and rivals are multiples of it"),
    Number(filtering, "SEARCH_SIZE", (), "matches the models are searched in; more are only scored"),
    Number(search, "PLANS", (2, "n_samples"), "samples of homographies in the first round"),
    Number(search, "PLANS", (2, "neighbourhoods"), "neighbours a homography's sample is drawn from, in turn; 0: all"),
    Number(search, "PLANS", (2, "n_refitted"), "homographies that are refitted, of each round and guide"),
    Number(search, "PLANS", (1, "n_samples"), "samples of fundamental matrices in their first round"),
    Number(search, "PLANS", (1, "neighbourhoods"), "neighbours a fundamental matrix's sample is drawn from, in turn"),
    Number(search, "PLANS", (1, "n_refitted"), "fundamental matrices that are refitted, of each round and guide"),
    Number(search, "MOST_ROUNDS", (), "rounds, each with as many samples as all before it"),
    Number(refinement, "N_PATCHES", (), "patches of a wide plane that its parts are looked for among"),
    Number(refinement, "PATCH_SIZE", (), "matches in a patch"),
    Number(refinement, "DEGREES", (), "degrees of freedom of the laws that their residuals may have"),
    Number(refinement, "CLOSING_RADII", (), "radii of the refits, in lengths; last fits are as many"),
    Number(search, "N_DECOYS", (), "decoys that models are weighed against, and others that scores are compared with"),
    Number(search, "SIGNIFICANCE", (), "exponent of a model's weight"),
    Number(search, "N_COLUMNS", (), "models the forest's rows are made of, besides structures"),
    Number(search, "STRUCTURE_WEIGHT", (), "weight of a structure among them"),
    Number(search, "N_TREES", (), "trees of the forest"),
    Number(search, "SUBSAMPLE", (), "matches a tree is grown on"),
    Number(search, "BRANCHES", (), "branches of a node, b"),
    Number(search, "LOOKS_GOOD", (), "a match looks good if this share of decoys looks as good", "share"),
    Number(search, "EVIDENCE_PER_VOTE", (), "evidence of structures, for each vote they explain, that the last round needs"),
    Number(evidence, "WIDEST", (1,), "largest radius of a fundamental matrix: exponent of sqrt 2, in lengths", "exponent"),
    Number(evidence, "WIDEST", (2,), "radius of a homography, largest (and 1 / smallest): exponent of sqrt 2", "exponent"),
    Number(evidence, "ANNULUS", (), "width of the annulus, in radii tried"),
    Number(evidence, "DENSITY_RATIO", (), "a structure is so many times as dense as the annulus"),
    Number(evidence, "TOLERANCE", (), "from a structure's radius to its tolerance, in radii tried"),
    Number(evidence, "LEAST_VOTES", (), "votes in an annulus, at least"),
    Number(refinement, "N_NEIGHBOURS", (), "neighbours looked at to tell repetitions"),
    Number(refinement, "MIXED", (), "others are among the neighbours of matches that lie among them, in shares of chance", "share"),
    Number(refinement, "SMALL", (), "a structure smaller than this share of the stronger ones need not compete for keypoints", "share"),
    Number(motions, "N_PARALLAXES", (), "matrices tried of a plane and two matches off it, where planes lie in one place"),
    Number(motions, "INLIER", (), "a motion's inliers are within so many noise scales"),
    Number(preferences, "N_SCALES", (), "noise scales of a preference, each a third of the one before"),
    Number(preferences, "WIDEST_SCALE", (), "widest noise scale, in lengths; so far decoys keep from what could be true"),
    Number(preferences, "CUT", (), "preferences end at so many widest noise scales, and rivals are further apart"),
    Number(preferences, "SATURATION", (), "components above their thresholds in the row that agrees most"),
    Number(sampling, "N_DRAWS", (), "draws of a sample, of which the most nearly affine is taken"),
    Number(sampling, "MOST_DEGENERATE", (), "degenerate draws after which a sample is given up"),
    Number(sampling, "FLATTEST", (), "height of a triangle, in lengths, below which its points are collinear"),
    Number(sampling, "PRIOR_MATCHES", (), "decoys, or matches of any kind, that few mismatches count against"),
    Number(verdict, "ON_A_LINE", (), "share of decoys that may look as good as a match on a line", "share"),
    Number(verdict, "REACH", (), "how far beyond their tolerances structures keep what looks good"),
    Number(verdict, "INLIERS", (), "p-values above are hardly ever inliers'", "share"),
    Number(verdict, "MIDDLE", (), "how many of these are at most that tells the mismatches' law", "share"),
]  # fmt: skip

#: Numbers of the same modules that are no choice: definitions, guards, names of cases, and what follows from other numbers.
NOT_TUNED = {
    "ruzhash_cv.filtering": {"FEWEST_MATCHES"},
    "ruzhash_cv.matchset": {"LARGEST_COORDINATE"},
    "ruzhash_cv.preferences": {"SCALES", "_WIDTH"},
    "ruzhash_cv.sampling": {"_FEW_DISTANCES", "_REPEATED", "_COLLINEAR", "_FLIPPED", "_GOOD"},
    "ruzhash_cv.structures.search": {"_MODELS_AT_ONCE", "_NOWHERE"},
    "ruzhash_cv.structures.refinement": {"EXACT", "N_FITS"},
    "ruzhash_cv.structures.motions": {"N_SEVENS", "N_REFINED", "AS_WELL", "LEAST_NOISE", "NEAR", "FREE", "_SEED"},
    "ruzhash_cv.structures.evidence": {"FINEST", "MOST_STRUCTURES", "N_RADII", "RADII", "_N_STEPS"},
    "ruzhash_cv.verdict": {"EQUATIONS", "RIVALS_APART", "SURE"},
}
FACTORS = {"halved": 0.5, "doubled": 2.0}


def untold_numbers() -> list[str]:
    """Return the constants of the method's modules that neither `NUMBERS` nor `NOT_TUNED` has."""
    untold = []
    for module in dict.fromkeys(number.module for number in NUMBERS):
        told = {number.name for number in NUMBERS if number.module is module} | NOT_TUNED.get(module.__name__, set())
        for statement in _syntax(module):
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            untold += [
                f"{module.__name__}.{name}" for name in sorted(names - told) if _is_number(getattr(module, name))
            ]
    return untold


def _is_number(value: Any) -> bool:
    if isinstance(value, (dict, tuple)):
        return all(map(_is_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float, np.ndarray))


def number_variants() -> dict[str, Variant]:
    """Return every number halved and doubled, by name."""
    return {
        f"{number} {word}": number.variant(factor)
        for number in NUMBERS
        for word, factor in FACTORS.items()
        if number.exists and number.differs(factor)
    }


def all_variants() -> dict[str, Variant]:
    """Return the rules, then the numbers."""
    return RULES | number_variants()


def place_of(number: Number) -> str:
    """Return the file that a number stands in."""
    return f"{number.module.__name__.replace('.', '/')}.py"
