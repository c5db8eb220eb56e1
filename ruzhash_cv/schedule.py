"""The schedule of the search: how many models each round samples, of which family, and from where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

#: Sizes of the neighbourhoods that homographies are sampled from, in turn: half of them are small ones.
NEIGHBOURHOODS = (10, 10, 20, 40)
#: And fundamental matrices, beside homographies and where there is no other family; 0 is the whole set.
WIDER_NEIGHBOURHOODS, ONLY_WIDER_NEIGHBOURHOODS = (0, 0, 50), (0, 25, 50)
#: Samples of the first round: homographies from neighbourhoods, homographies and fundamental matrices among what looks good.
N_LOCAL, N_WIDE, N_FUNDAMENTAL = 240, 24, 48
#: Homographies from neighbourhoods are no more than so many for each match in the first round.
MOST_PER_MATCH = 2
#: Fundamental matrices of the first round where there is no other family, and for each match at most.
N_ONLY_FUNDAMENTAL, MOST_ALONE_PER_MATCH = 336, 8
#: Models refitted of each such step: homographies from neighbourhoods, homographies and fundamental matrices among what looks good.
N_REFITTED = (18, 6, 12)
#: Fundamental matrices refitted where there is no other family.
N_ONLY_REFITTED = 36
#: Rounds of sampling, each with twice the samples of the one before.
MOST_ROUNDS = 5
#: Guided samples prefer what agrees with its neighbours better than the median does. From this round on, counted from 0, when planes
#: are hard to find, half of the homographies from neighbourhoods are guided too, and all homographies this many times as strictly.
LATER, STRICTNESS = 2, 6.0


class Step(NamedTuple):
    """One kind of samples: how many, from neighbourhoods of which sizes, how strictly guided (0: not); and how many to refit."""

    kind: str
    n_samples: int
    sizes: tuple[int, ...]
    strictness: float
    n_refitted: int


def rounds(families: tuple[str, ...], n: int) -> Iterator[tuple[bool, list[Step]]]:
    """Yield for each round whether it is the one of planes alone, and what it samples of n matches."""
    for turn in range(MOST_ROUNDS):
        times, (local, wide, lines) = 2**turn, N_REFITTED
        n_local = min(N_LOCAL, MOST_PER_MATCH * n)
        strictness = STRICTNESS if turn >= LATER else 1.0
        # Evenly spread ones, and later as many guided ones.
        levels = (0.0, strictness) if turn >= LATER else (0.0,)
        n_each = n_local * times // len(levels)
        planes = [Step("homography", n_each, NEIGHBOURHOODS, level, local) for level in levels]
        if families == ("fundamental",):
            n_alone = min(N_ONLY_FUNDAMENTAL, MOST_ALONE_PER_MATCH * n)
            alone = Step("fundamental", n_alone * times, ONLY_WIDER_NEIGHBOURHOODS, 1.0, N_ONLY_REFITTED)
            yield False, [*planes, alone]
            continue
        planes.append(Step("homography", N_WIDE * times, (0,), strictness, wide))
        if "fundamental" not in families:
            yield False, planes
            continue
        epipolar = [Step("fundamental", N_FUNDAMENTAL * times, WIDER_NEIGHBOURHOODS, 1.0, lines)]
        if turn == 0:
            yield True, planes
            yield False, epipolar
        else:
            yield False, planes + epipolar
