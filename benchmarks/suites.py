"""The suites by name; each yields problems of the half asked for."""

from collections.abc import Callable, Iterator
from functools import partial

import adelaide
import camera_scenes
import facades
import moved_things
import pair_sets
import pictured
import pose_scenes
import posed_photos
import rendered
from matching import RATIO
from photos import photos
from problems import Problem
from scans import scans
from video import video

PHOTOGRAPHED = {
    f"photographed-{scenes}-{features}": partial(photos, scenes, features)
    for scenes, kinds in {"planes": ("given", "sift", "mutual", "orb"), "rigid": ("given", "sift", "mutual")}.items()
    for features in kinds
}
LEARNED = "xfeat", "lighterglue"
SUITES: dict[str, Callable[[str, int], Iterator[Problem]]] = {
    "adelaidermf": lambda half, per_cell: adelaide.labelled(half),
    **{f"adelaidermf-{name}": lambda half, per_cell, name=name: adelaide.fresh(half, name) for name in ("sift", "orb")},  # type: ignore[misc]
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
    "mostly-wrong": rendered.mostly_wrong,
    "few-true": rendered.few_true,
    "scans": scans,
    "near": posed_photos.near_misses,
    "posed": posed_photos.posed,
    **{f"learned-{matcher}": partial(posed_photos.learned, matcher) for matcher in LEARNED},
    "by-hand": moved_things.by_hand,
    "solids": moved_things.solids,
    **{f"facades-{way}": partial(facades.facades, way) for way in facades.WAYS},
    "poses": pose_scenes.given,
    "poses-distorted": camera_scenes.distorted,
    "poses-fisheye": camera_scenes.fisheyes,
    "poses-sift": lambda half, per_cell: pictured.posed(half, max(1, per_cell // 3), RATIO),
    "poses-sift-without-ratio": lambda half, per_cell: pictured.posed(half, max(1, per_cell // 3), None),
    "video": video,
    "walks": pose_scenes.walks,
    "building": posed_photos.building,
    "static": posed_photos.static,
    "related": lambda half, per_cell: pair_sets.related(half, 10 * per_cell),
    "unrelated": lambda half, per_cell: pair_sets.unrelated(half, 10 * per_cell),
    "alike": lambda half, per_cell: pair_sets.look_alike(half, 10 * per_cell),
    "random-points": lambda half, per_cell: pair_sets.random_points(half, 10 * per_cell),
    "unrelated-photographs": lambda half, per_cell: pair_sets.unrelated_photographs(half, 10 * per_cell),
    "overlaid": pair_sets.overlaid,
    "still": pair_sets.still,
    "varied": rendered.varied,
}
"""Name on the command line -> function of the half and of the number of problems in each cell of a rendered suite."""

GROUPS: dict[str, tuple[str, ...]] = {
    "fresh": ("adelaidermf-sift", "adelaidermf-orb"),
    "photographed": tuple(PHOTOGRAPHED),
    "rendered": ("one-plane", "planes", "one-rigid", "motions", "repeated"),
    "pictures": ("rendered-sift", "rendered-orb"),
    "mutual": ("mutual-sift", "mutual-orb"),
    "one-model": (
        *(name for name in PHOTOGRAPHED if name != "photographed-planes-orb"),
        "one-plane",
        "one-rigid",
        "poses",
        "poses-sift",
        "building",
    ),
    "learned": tuple(f"learned-{matcher}" for matcher in LEARNED),
    "facades": tuple(f"facades-{way}" for way in facades.WAYS),
    "pairs": ("related", "unrelated", "alike"),
    "false-alarms": ("random-points", "unrelated-photographs"),
    "overlays": ("overlaid", "still"),
}
GROUPS["all"] = ("adelaidermf", *GROUPS["fresh"], *GROUPS["photographed"], *GROUPS["rendered"], *GROUPS["pictures"])
"""What the method is tuned and judged on."""


def members(names: list[str]) -> list[str]:
    """The suites of names of suites and groups, each once."""
    return list(dict.fromkeys(suite for name in names for suite in GROUPS.get(name, (name,))))


def problems(names: list[str], half: str, per_cell: int) -> Iterator[Problem]:
    """Every problem of the named suites or groups, one half."""
    for suite in members(names):
        yield from SUITES[suite](half, per_cell)
