"""A folder of pages: an index of pairs and a page for each. A run that is gone on with adds to it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ruzhash_cv._arrays import Array
from ruzhash_cv._extras import host
from ruzhash_cv.pipelines.features import read_image
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, locked, written_beside
from ruzhash_cv.report.numbers import pair_as_dict
from ruzhash_cv.report.photos import Photo, as_jpeg, data_address
from ruzhash_cv.result import FilterResult

#: The rows of the index, a line of JavaScript for each pair.
ROWS = "pairs.js"
#: The longer side of photographs and of their small pictures, px.
PHOTO, THUMBNAIL = 1200, 120


@contextlib.contextmanager
def open_pages(path: Path | None, images: Path | None, *, corner: float = -0.5) -> Iterator[Pages | None]:
    """Open a folder of pages, new or to be gone on with; None without a `path`.

    `images` is the folder of the photographs: without it, and for those that it lacks, pages show the matches alone. `corner` is as of
    `Photo`. `UnusableFile` where something else is there: nothing of it is changed.
    """
    if path is None:
        yield None
        return
    host("bokeh", "html")
    from ruzhash_cv.report.pages import any_pair_page, index_page

    rows = path / ROWS
    with as_unusable(f"cannot write to {path}"):
        path.mkdir(parents=True, exist_ok=True)
        if not rows.is_file() and any(path.iterdir()):
            raise UnusableFile(f"{path} is there and was not written by this command; nothing is overwritten")
        rows.touch()
        with locked(rows, path):
            for folder in ("pairs", "photos", "thumbnails"):
                (path / folder).mkdir(exist_ok=True)
            _write(path / "index.html", index_page())
            _write(path / "pair.html", any_pair_page())
            os.truncate(rows, len("".join(_whole_lines(rows)).encode()))
            yield Pages(path, images, corner)


class Pages:
    """An open folder of pages."""

    def __init__(self, path: Path, images: Path | None, corner: float) -> None:
        self._path, self._images, self._corner = path, images, corner
        self._photos: dict[str, Photo] = {}
        self._held = {line.partition('"id":"')[2].partition('"')[0] for line in _whole_lines(path / ROWS)}

    def holds(self, names: tuple[str, str]) -> bool:
        """Return whether there is a page of a pair."""
        return _digest(*names) in self._held

    def add(self, names: tuple[str, str], points: tuple[Array, Array] | None, result: FilterResult) -> None:
        """Write the page of a pair, and its row; `points` are None where they cannot be read."""
        from ruzhash_cv.report.pages import as_script

        points = (np.full((len(result.labels), 2), np.nan),) * 2 if points is None else points
        photos = [self._photo(*each) for each in zip(names, points, strict=True)]
        pair, name = pair_as_dict(photos, *points, result), _digest(*names)
        matches, kept = len(pair["columns"]["kept"]), sum(pair["columns"]["kept"])
        row = {
            "id": name,
            "image1": photos[0].name,
            "image2": photos[1].name,
            "thumbnail1": _thumbnail(photos[0]),
            "thumbnail2": _thumbnail(photos[1]),
            "matches": matches,
            "kept": kept,
            "share": round(kept / max(matches, 1), 4),
            "structures": len(result.models),
            "motions": len(result.motions),
            "evidence": round(result.evidence, 1),
            "reason": result.reason or "",
        }
        with as_unusable(f"cannot write to {self._path}"):
            _write(self._path / "pairs" / f"{name}.js", f"hold({as_script(pair)});\n")
            with (self._path / ROWS).open("a", encoding="utf-8") as file:
                file.write(f"hold({as_script(row)});\n")
        self._held.add(name)

    def _photo(self, name: str, points: Array) -> Photo:
        """Return a photograph, written once; without one, as large as its matches need."""
        if name not in self._photos and self._images is not None:
            with contextlib.suppress(UnusableFile):
                self._photos[name] = self._written(name, self._images / name)
        if name in self._photos:
            return self._photos[name]
        finite = points[np.isfinite(points).all(axis=1)]
        width, height = np.ceil(finite.max(axis=0) + 1) if len(finite) else (640.0, 480.0)
        return Photo(_shown(name), None, max(float(width), 1.0), max(float(height), 1.0), self._corner)

    def _written(self, name: str, path: Path) -> Photo:
        from ruzhash_cv.report.pages import as_script

        image, digest = read_image(path), _digest(name)
        height, width = image.shape[:2]
        photo = Photo(_shown(name), f"photos/{digest}.js", width, height, self._corner)
        with as_unusable(f"cannot write to {self._path}"):
            _write(self._path / f"photos/{digest}.js", f"hold({as_script(data_address(image, PHOTO))});\n")
            with written_beside(self._path / f"thumbnails/{digest}.jpg") as part:
                part.write_bytes(as_jpeg(image, THUMBNAIL))
        return photo


def _thumbnail(photo: Photo) -> str:
    return "" if photo.address is None else photo.address.replace("photos", "thumbnails").replace(".js", ".jpg")


def _whole_lines(path: Path) -> list[str]:
    """Return the lines of a file but the last one of a run that was killed."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.endswith(");\n")]


def _digest(*names: str) -> str:
    """Return a name for the files of a photograph or of a pair."""
    return hashlib.blake2b("\0".join(names).encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()


def _shown(name: str) -> str:
    """Return a name as text, whatever bytes it holds."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _write(path: Path, text: str) -> None:
    with written_beside(path) as part:
        part.write_text(text, encoding="utf-8")
