"""What a result tells of motions when asked: the motions behind its kept matches, in pixels, and their camera poses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.pose import camera_pose
from ruzhash_cv.result import FilterResult, Motion
from ruzhash_cv.structures.motions import Motions, MotionSearch, Seen


@dataclass(frozen=True)
class SeenInPixels:
    """What motions are searched in; `where` (n,) tells which distinct match each match given is, -1 for what is flagged."""

    seen: Seen
    where: Rows

    def motions(self) -> tuple[tuple[Motion, ...], Rows]:
        """Return motions in pixels that have matches, and which of them each match given belongs to, -1 for none."""
        found, labels = self.seen.motions()
        listed, given = np.unique(np.append(-1, np.append(labels, -1)[self.where]), return_inverse=True)
        supports = np.bincount(given[1:], minlength=len(listed)).tolist()
        return tuple(map(partial(self._motion, found), listed[1:].tolist(), supports[1:])), given[1:] - 1

    def _motion(self, found: Motions, item: int, support: int) -> Motion:
        seen, family, scale = self.seen, self.seen.families[found.codes[item]], self.seen.matches.frame.scale
        planes = found.holds[item] & np.array([seen.families[code].codimension > 1 for code in seen.structures.codes])
        return Motion(
            self._pixels(found.models[item], int(found.codes[item])),
            family.name,
            support,
            float(found.tolerances[item] / scale),
            float(found.noise[item] / scale),
            float(found.evidences[item]),
            stationary=bool((found.holds[item] & seen.stationary).any()),
            parts=tuple(np.flatnonzero(planes).tolist()),
        )

    def matrix(self, structure: int) -> Array | None:
        """Return a fundamental matrix (3, 3) of pixels that fits a structure's matches; those of one plane leave it free in part."""
        search = MotionSearch(self.seen)
        model = search.own_models[structure]
        return self._pixels(model, search.code) if np.isfinite(model).all() else None

    def _pixels(self, model: Array, code: int) -> Array:
        return self.seen.families[code].to_pixels(model[None], *self.seen.matches.frame.transforms()).reshape(3, 3)

    def pose(self, result: FilterResult, motion: int, camera1: Array, camera2: Array) -> tuple[Array, Array]:
        """Return rotation and translation of the second camera as a motion sees it."""
        found = result.motions[motion]
        rows = np.unique(self.where[result.motion_labels == motion % len(result.motions)])
        frame, points = self.seen.matches.frame, self.seen.matches.data / self.seen.matches.frame.scale
        points1, points2 = points[:, :2] + frame.centre1, points[:, 2:] + frame.centre2
        models = {found.kind: found.matrix} | {
            result.models[part].kind: result.models[part].matrix for part in found.parts[:1]
        }
        return camera_pose(models, points1, points2, rows, self.seen.weights, found.noise_scale, (camera1, camera2))
