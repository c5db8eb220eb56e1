"""Files that other programs wrote, spoilt: read, continued or refused in one line, and never changed where they are refused."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from inputs import Draw
from laws import scene
from targets import Target, claim

from ruzhash_cv.pipelines import colmap, hloc
from ruzhash_cv.pipelines.features import read_image
from ruzhash_cv.pipelines.files import UnusableFile, listed_pairs
from ruzhash_cv.pipelines.report import Report

COLUMNS = {"image": str, "matches": int, "evidence": float}


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def in_one_line(path: Path, call: Callable[[], Any], may_change: bool = False) -> Any:
    """Return what a call returns, None where it refuses a file; that must be said in one line and leave the file as it was."""
    before = held_by(path)
    try:
        return call()
    except UnusableFile as error:
        claim("\n" not in str(error) and str(error), f"not one line: {error!r}")
        claim(may_change or held_by(path) == before, f"changed what it refuses: {error}")
        return None


def held_by(path: Path) -> bytes | None:
    """Return what is in a file, None where there is none; of a database without the counter of its transactions."""
    with contextlib.suppress(OSError):
        content = path.read_bytes()
        return content[:24] + content[28:92] + content[96:] if path.suffix == ".db" else content
    return None


def spoilt(draw: Draw, content: bytes) -> bytes:
    """Return bytes cut off, with some changed, doubled, or others altogether."""
    rng, n = draw.rng, len(content)
    kind = draw.pick(["whole", "cut", "changed", "changed", "inserted", "noise", "zeros", "twice", "empty"])
    if kind in ("cut", "empty"):
        return content[: int(rng.integers(n + 1))] if kind == "cut" else b""
    if kind == "changed" and n:
        array = np.frombuffer(content, np.uint8).copy()
        array[rng.integers(n, size=draw.pick([1, 3, 30]))] = rng.integers(256)
        return array.tobytes()
    if kind == "inserted":
        at = int(rng.integers(n + 1))
        return content[:at] + rng.bytes(draw.pick([1, 7, 100])) + content[at:]
    made = {
        "noise": rng.bytes(draw.pick([1, 100, 3000])),
        "zeros": bytes(draw.pick([1, 16, 3000])),
        "twice": 2 * content,
    }
    return made.get(kind, content)


def list_of_pairs(draw: Draw) -> None:
    words = [
        "a.png",
        "b.png",
        "# a",
        "#a.png",
        "\t",
        " ",
        "\n",
        "\r\n",
        "\ufeff",
        "ä",
        "\x85",
        "\0",
        "a b.png",
        "\u2028",
    ]
    text = "".join(str(draw.pick(words)) for _ in range(draw.pick([0, 2, 5, 40]))).encode()
    with folder() as held:
        path = held / "pairs.txt"
        path.write_bytes(spoilt(draw, text) if draw.chance(0.3) else text)
        found = in_one_line(path, lambda: list(listed_pairs(path, lambda name: name == "#a.png")))
    for names, where in found or ():
        claim(len(names) == 2 and all(names) and where.startswith(str(path)), f"{names} {where}")


def report(draw: Draw) -> None:
    """A report that is continued keeps its rows; one that cannot be is refused before anything is written."""
    suffix = draw.pick([".csv"] * 6 + [".txt"])
    words = ["a,b", 'a"b', "a\nb", "", "ä", "-1", "\r", ";", "\udce9", "=1+1"]
    names = list(dict.fromkeys(f"{number}{draw.pick(words)}" for number in range(draw.pick([1, 3, 20]))))
    rows = [{"image": name, "matches": int(draw.rng.integers(100)), "evidence": draw.rng.random()} for name in names]
    with folder() as held:
        path = held / f"report{suffix}"
        table = in_one_line(path, lambda: Report(path, COLUMNS))
        claim((table is None) == (suffix == ".txt"), f"{suffix} was {'refused' if table is None else 'taken'}")
        if table is None:
            return
        table.start(lambda _: True)
        table.add(rows)
        content = path.read_bytes()
        path.write_bytes(new := spoilt(draw, content))
        again = in_one_line(path, lambda: Report(path, COLUMNS))
        claim(again is not None or new != content, "its own report was refused")
        if again is not None:
            again.start(lambda _: True)
            claim(new != content or path.read_bytes() == content, "a report that goes on has other rows")


def hloc_files(draw: Draw) -> None:
    """Datasets of other kinds, missing ones and wrong rows: the pair has a reason, the others are done."""
    import h5py

    pairs = scene(draw, 20)
    rows = np.arange(20)
    hostile: list[Any] = [
        rows, rows - 1, rows + 1, rows * 1000, rows[::-1], rows * 0.5, rows[None], b"text", rows.astype("i1"), rows * 0 - 1,
        rows.astype(">u8"), np.zeros(0, int), np.zeros(3, [("a", "i4")]), rows - 2**40, None,
    ]  # fmt: skip
    points: list[Any] = [
        pairs[:, 2:], pairs[:, 2:].astype("f2"), pairs[:, :1], pairs[:5, 2:], pairs[:, 2:] * np.nan, pairs[None], b"text",
        None, np.zeros((0, 2)), pairs[:, 2:] + 1j,
    ]  # fmt: skip
    with folder() as held:
        features, matches, out = (held / f"{name}.h5" for name in ("features", "matches", "out"))
        with h5py.File(features, "w") as file:
            file["a/keypoints"] = pairs[:, :2]
            for name, data in (("b/keypoints", draw.pick(points)), ("c/keypoints", pairs[:, 2:])):
                if data is not None:
                    file[name] = data
        with h5py.File(matches, "w") as file:
            for name, data in (("a/b/matches0", draw.pick(hostile)), ("a/c/matches0", rows)):
                if data is not None:
                    file[name] = data
        victim = draw.pick([features, matches])
        if broken := draw.chance(0.3):
            victim.write_bytes(spoilt(draw, victim.read_bytes()))
        found = in_one_line(
            victim, lambda: hloc.filter_matches(features, matches, [("a", "b"), ("a", "c")], out, n_jobs=1)
        )
        claim(found is None or broken or ("a", "c") not in found.left_out, f"{found}")
        claim((found is not None) == out.exists(), "an output of a run that was refused, or none of one that was done")


@functools.cache
def database() -> Path:
    """Return a database of three images, made once in a process."""
    import pycolmap

    path, pairs = Path(tempfile.mkdtemp()) / "made.db", scene(Draw(1), 40)
    with pycolmap.Database.open(path) as db:
        camera = db.write_camera(pycolmap.Camera(model="SIMPLE_PINHOLE", width=800, height=600, params=[900, 400, 300]))
        for number, points in enumerate((pairs[:, :2], pairs[:, 2:], pairs[:, 2:] + 9.0), start=1):
            image = db.write_image(pycolmap.Image(name=f"{number}.jpg", camera_id=camera))
            db.write_keypoints(image, points.astype(np.float32))
        for pair in ((1, 2), (1, 3), (2, 3)):
            db.write_matches(*pair, np.stack([np.arange(40)] * 2, axis=1).astype(np.uint32))
    return path


def colmap_database(draw: Draw) -> None:
    with folder() as held:
        path = held / "database.db"
        shutil.copy(database(), path)
        path.write_bytes(new := spoilt(draw, path.read_bytes()))
        found = in_one_line(path, lambda: colmap.verify(path, n_jobs=1, progress=False))
        if found is None:
            claim(new != database().read_bytes(), "a database was refused")
        else:
            claim(found.pairs + found.skipped <= 3, f"{found}")


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Discard what is written to stderr: libjpeg and libpng tell there of damage that they mend, whatever OpenCV is told."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def image_file(draw: Draw) -> None:
    image = draw.rng.integers(256, size=(draw.pick([1, 30]), 40, 3)).astype(np.uint8)
    content = cv2.imencode(draw.pick([".png", ".jpg", ".bmp", ".tiff", ".ppm", ".webp"]), image)[1].tobytes()
    with folder() as held, silent():
        path = held / "picture"
        path.write_bytes(spoilt(draw, content))
        found = in_one_line(path, lambda: read_image(path))
        claim(found is None or (found.ndim == 3 and found.dtype == np.uint8), "no picture in colour")


def there(*modules: str) -> bool:
    """Tell whether optional libraries are installed."""
    return all(importlib.util.find_spec(module) for module in modules)


FILES: dict[str, Target] = {
    "list_of_pairs": list_of_pairs,
    "report": report,
    "image_file": image_file,
}
if there("h5py", "joblib"):
    FILES["hloc_files"] = hloc_files
if there("pycolmap", "joblib"):
    FILES["colmap_database"] = colmap_database
