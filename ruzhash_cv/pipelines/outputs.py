"""Files with the results of many pairs: one HDF5 file, or a folder with an .npz file for each pair.

Both know which pairs they hold and with what settings these were made. A pair is there as a whole or not at all.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ruzhash_cv.pipelines.files import (
    UnusableFile,
    as_spoilt,
    as_unusable,
    check_space,
    locked,
    new_hdf5,
    write_arrays,
    written_beside,
)
from ruzhash_cv.pipelines.folders import FilteredPair, Names, stamp
from ruzhash_cv.pipelines.hosts import host
from ruzhash_cv.result import Structure

#: The file with the settings, in a folder of results.
SETTINGS = "settings.json"
#: Bytes of a name on most disks, less those of ".npz" and to spare.
LONGEST_NAME = 240

#: A function from a picture's name to the size and time of its file.
Stamps: TypeAlias = Callable[[str], tuple[int, int]]


@contextlib.contextmanager
def open_output(path: Path, settings: dict[str, Any], images: Path) -> Iterator[Output]:
    """Open an .h5 or .hdf5 file, or a folder, new or to be continued, for pairs of the pictures in `images`.

    A pair counts as held if its pictures have the size and the time they had then.

    `UnusableFile` where something else is there, or pairs made with other settings: nothing of it is changed.
    """
    stamps = functools.cache(lambda name: stamp(images / name))
    if path.suffix.lower() in (".h5", ".hdf5"):
        if not path.exists():
            with new_hdf5(path) as empty:
                empty.attrs["settings"] = json.dumps(settings)
        with locked(path):
            with _opened(path, "r") as file:  # HDF5 changes any file that it opens to be written
                _check(path, file.attrs.get("settings"), settings)
            with _opened(path, "r+") as file:
                yield _Hdf5File(file, stamps)
    else:
        held = path / SETTINGS
        with as_unusable(f"cannot write to {path}"):
            path.mkdir(parents=True, exist_ok=True)
            if all(there.suffix == ".part" for there in path.iterdir()):  # of a run that was killed
                with written_beside(held, replace=False) as part:
                    part.write_text(json.dumps(settings), encoding="utf-8")
        _check(path, held.read_bytes() if held.is_file() else None, settings)
        with locked(held, path):
            yield _Folder(path, stamps)


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[Any]:
    try:
        # Large blocks make it rare that a killed process leaves a file shorter than its own metadata says.
        file = host("h5py", "hloc").File(path, mode, locking=False, meta_block_size=2**20)
    except OSError:
        raise UnusableFile(f"{path} is no HDF5 file, or a spoilt one; nothing is overwritten") from None
    with file:
        yield file


def contents(pair: FilteredPair) -> dict[str, Any]:
    """Return the arrays of a pair: its points, the indices of its keypoints, what was decided on each match, models and motions."""
    result = pair.result
    return {
        "points1": pair.points1,
        "points2": pair.points2,
        "keypoint_indices": pair.keypoint_indices,
        "inlier_mask": result.inlier_mask,
        "anomaly_scores": result.anomaly_scores,
        "inlier_probabilities": result.inlier_probabilities,
        "labels": result.labels,
        "motion_labels": result.motion_labels,
        **_arrays_of("model", result.models),
        **_arrays_of("motion", result.motions),
        "evidence": np.array(result.evidence),
        "reason": np.array(result.reason or "", dtype=np.str_),
    }


def _arrays_of(name: str, structures: Sequence[Structure]) -> dict[str, Any]:
    """Return the matrices (n, 3, 3) of structures, or of motions, and arrays (n,) of what else is known of each."""
    numbers = ("tolerance", "noise_scale", "evidence")
    return {
        f"{name}s": np.array([of.matrix for of in structures]).reshape(-1, 3, 3),
        f"{name}_kinds": np.array([of.kind for of in structures], dtype="U11"),
        **{f"{name}_{number}s": np.array([getattr(of, number) for of in structures], float) for number in numbers},
        f"{name}_stationary": np.array([of.stationary for of in structures], bool),
    }


class _Folder:
    """One file for each pair, in a folder for each first picture."""

    def __init__(self, path: Path, stamps: Stamps) -> None:
        self._path, self._stamps = path, stamps

    def _file(self, names: Names) -> Path:
        first, second = (_quoted(name) for name in names)
        return self._path / first / f"{second}.npz"

    def holds(self, names: Names) -> bool:
        """Return whether a pair of these pictures is there; not if one was replaced since."""
        # Spoilt files raise many kinds of errors, and NumPy would leave them open.
        with contextlib.suppress(Exception), self._file(names).open("rb") as file, np.load(file) as held:
            return bool(held["stamps"].tolist() == [[*self._stamps(name)] for name in names])
        return False

    def write(self, pair: FilteredPair) -> None:
        """Add a pair."""
        file, stamps = self._file(pair.names), [self._stamps(name) for name in pair.names]
        file.parent.mkdir(exist_ok=True)
        write_arrays(file, {"images": np.array(pair.names), "stamps": np.array(stamps), **contents(pair)})


class _Hdf5File:
    """One group for each pair, in a group for each first picture; its attribute `stamps` is written last."""

    def __init__(self, file: Any, stamps: Stamps) -> None:
        self._file, self._stamps = file, stamps

    def holds(self, names: Names) -> bool:
        """Return whether a pair of these pictures is there, and complete."""
        with as_spoilt(self._file.filename):
            group = self._file.get("/".join(map(_quoted, names)))
            held = None if group is None else group.attrs.get("stamps")
        return held is not None and np.array_equal(held, [self._stamps(name) for name in names])

    def write(self, pair: FilteredPair) -> None:
        """Add a pair."""
        check_space(Path(self._file.filename))
        with as_spoilt(self._file.filename):
            self._write(pair)

    def _write(self, pair: FilteredPair) -> None:
        place = "/".join(map(_quoted, pair.names))
        if place in self._file:  # of pictures that were replaced, or incomplete
            del self._file[place]
        group = self._file.create_group(None)
        for name, array in contents(pair).items():
            words = array.dtype.kind == "U"
            kind = host("h5py", "hloc").string_dtype() if words else None
            group.create_dataset(name, data=array.astype(object) if words else array, dtype=kind)
        for key, name in zip(("image1", "image2"), pair.names, strict=True):
            group.attrs[key] = os.fsencode(name).decode(errors="backslashreplace")
        group.attrs["stamps"] = [self._stamps(name) for name in pair.names]
        # The link to the group is written last: a process that is killed before leaves a file that can be read.
        self._file.flush()
        self._file[place] = group
        self._file.flush()


Output: TypeAlias = _Folder | _Hdf5File


def _quoted(name: str) -> str:
    """Return a picture's name as one level of a path: unique, in UTF-8, and short enough for a file system."""
    quoted = re.sub("[%/\udc80-\udcff]", lambda found: f"%{ord(found[0]) & 0xFF:02X}", name)
    if len(quoted.encode()) <= LONGEST_NAME:
        return quoted
    return f"{quoted[:40]}%~{hashlib.blake2b(quoted.encode(), digest_size=16).hexdigest()}"


def _check(path: Path, held: Any, settings: dict[str, Any]) -> None:
    """Raise `UnusableFile` unless results were made with the same settings."""
    try:
        before = json.loads(held)
        other = [name for name in settings if before.get(name) != settings[name]]
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise UnusableFile(f"{path} is there and was not written by this command; nothing is overwritten") from None
    if other:
        name = other[0]
        raise UnusableFile(
            f"{path} holds pairs made with {name} = {before.get(name)}, not {settings[name]}; nothing is overwritten"
        )
