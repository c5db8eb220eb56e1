"""Every method under comparison answers in one form, also where there is nothing to find; photographs have their truth."""

from __future__ import annotations

import numpy as np
import photos
import pytest
from geometry import residuals
from peers import Peer, all_peers
from problems import four_planes
from suites import GROUPS, SUITES, members

PEERS = all_peers()


@pytest.mark.parametrize("peer", PEERS.values(), ids=list(PEERS))
@pytest.mark.parametrize("n", [0, 3, 9, 120])
def test_every_method_returns_a_mask_of_any_number_of_matches(peer: Peer, n: int) -> None:
    if n == 0 and peer is PEERS.get("isolation forest on displacements"):
        pytest.skip("it takes no empty problem")
    verdict = peer(*four_planes(n), 0)
    assert verdict.mask.shape == (n,)
    assert verdict.mask.dtype == bool
    assert verdict.labels is None or np.array_equal(verdict.labels >= 0, verdict.mask)


def test_groups_name_suites() -> None:
    assert {suite for group in GROUPS.values() for suite in group} == SUITES.keys()
    assert members(["fresh", "adelaidermf-sift"]) == ["adelaidermf-sift", "adelaidermf-orb"]


@pytest.mark.parametrize("scenes", list(photos.KINDS))
def test_photographs_have_true_matches_near_their_model(scenes: str) -> None:
    if not photos.home().is_dir():
        pytest.skip(f"no photographs in {photos.home()}: RUZHASH_CV_PHOTOGRAPHED names their directory")
    halves = [[problem.name for problem in photos.photos(scenes, "given", half)] for half in ("tune", "judge")]
    assert [len(names) for names in halves] == {"planes": [6, 8], "rigid": [9, 7]}[scenes]
    assert not set(halves[0]) & set(halves[1])
    for problem in photos.photos(scenes, "given", "judge"):
        exact = residuals(problem.kind, problem.models[0], problem.exact1, problem.exact2)
        assert np.median(exact) < 3
        assert 0.2 < (problem.labels > 0).mean() <= 1
