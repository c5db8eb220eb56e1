"""The suites by name; each yields problems of the half asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import adelaide
import pictured
import rendered
from photos import photos
from problems import Problem
from scans import scans

PHOTOGRAPHED = {
    f"photographed-{scenes}-{features}": partial(photos, scenes, features)
    for scenes, kinds in {"planes": ("given", "sift", "mutual", "orb"), "rigid": ("given", "sift", "mutual")}.items()
    for features in kinds
}
SUITES: dict[str, Callable[[str, int], Iterator[Problem]]] = {
    "adelaidermf": lambda half, per_cell: adelaide.labelled(half),
    "adelaidermf-sift": lambda half, per_cell: adelaide.fresh(half, "sift"),
    "adelaidermf-orb": lambda half, per_cell: adelaide.fresh(half, "orb"),
    **{name: lambda half, per_cell, of=of: of(half) for name, of in PHOTOGRAPHED.items()},  # type: ignore[misc]
    "one-plane": partial(rendered.drawn, "one plane"),
    "planes": partial(rendered.drawn, "planes"),
    "one-rigid": partial(rendered.drawn, "one rigid"),
    "motions": partial(rendered.drawn, "motions"),
    "repeated": rendered.repeated,
    "rendered-sift": partial(rendered.pictures, "sift"),
    "rendered-orb": partial(rendered.pictures, "orb"),
    "mutual-sift": partial(pictured.unfiltered, "sift"),
    "mutual-orb": partial(pictured.unfiltered, "orb"),
    "scans": scans,
}
"""Name on the command line -> function of the half and of the number of problems in each cell of a rendered suite."""

GROUPS: dict[str, tuple[str, ...]] = {
    "fresh": ("adelaidermf-sift", "adelaidermf-orb"),
    "photographed": tuple(PHOTOGRAPHED),
    "rendered": ("one-plane", "planes", "one-rigid", "motions", "repeated"),
    "pictures": ("rendered-sift", "rendered-orb"),
    "mutual": ("mutual-sift", "mutual-orb"),
    "aligned": ("scans",),
}
GROUPS["all"] = tuple(name for name in SUITES if name not in GROUPS["mutual"] + GROUPS["aligned"])
"""What the method is tuned and judged on."""


def members(names: list[str]) -> list[str]:
    """The suites of names of suites and groups, each once."""
    return list(dict.fromkeys(suite for name in names for suite in GROUPS.get(name, (name,))))


def problems(names: list[str], half: str, per_cell: int) -> Iterator[Problem]:
    """Every problem of the named suites or groups, one half."""
    for suite in members(names):
        yield from SUITES[suite](half, per_cell)
