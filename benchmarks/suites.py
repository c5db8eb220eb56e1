"""The suites by name; each yields problems of the half asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import adelaide
import rendered
from problems import Problem

SUITES: dict[str, Callable[[str, int], Iterator[Problem]]] = {
    "adelaidermf": lambda half, per_cell: adelaide.labelled(half),
    "adelaidermf-sift": lambda half, per_cell: adelaide.fresh(half, "sift"),
    "adelaidermf-orb": lambda half, per_cell: adelaide.fresh(half, "orb"),
    "one-plane": partial(rendered.drawn, "one plane"),
    "planes": partial(rendered.drawn, "planes"),
    "one-rigid": partial(rendered.drawn, "one rigid"),
    "motions": partial(rendered.drawn, "motions"),
    "repeated": rendered.repeated,
    "rendered-sift": partial(rendered.photographed, "sift"),
    "rendered-orb": partial(rendered.photographed, "orb"),
}
"""Name on the command line -> function of the half and of the number of problems in each cell of a rendered suite."""

GROUPS: dict[str, tuple[str, ...]] = {
    "fresh": ("adelaidermf-sift", "adelaidermf-orb"),
    "rendered": ("one-plane", "planes", "one-rigid", "motions", "repeated"),
    "photographed": ("rendered-sift", "rendered-orb"),
    "all": tuple(SUITES),
}


def problems(names: list[str], half: str, per_cell: int) -> Iterator[Problem]:
    """Every problem of the named suites or groups, one half."""
    chosen = dict.fromkeys(suite for name in names for suite in GROUPS.get(name, (name,)))
    for suite in chosen:
        yield from SUITES[suite](half, per_cell)
