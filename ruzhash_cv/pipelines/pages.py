"""A folder of pages: an index of pairs and a page for each. A resumed run adds to it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.pipelines.features import Image, read_image
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, locked, write_text, written_beside
from ruzhash_cv.report.numbers import pair_as_dict, row_as_dict
from ruzhash_cv.report.photos import Photo, as_jpeg, data_address
from ruzhash_cv.results.result import FilterResult

#: The rows of the index, a line of JavaScript for each pair.
ROWS = "pairs.js"
#: The file that marks a folder of pages, and that a run locks.
MARK = "ruzhash_cv.txt"
#: The longer side of photographs and of their small pictures, px.
PHOTO, THUMBNAIL = 1200, 120

#: Width and height of an image, None if they are not known.
Size: TypeAlias = tuple[int, int] | None


@contextlib.contextmanager
def open_pages(
    folder: str | PathLike[str] | None, images: str | PathLike[str] | None, *, corner: float = -0.5
) -> Iterator[Pages | None]:
    """Open a folder of pages, new or of an earlier run; None without a `folder`.

    `images` is the folder of the photographs: without it, and for those that it lacks, pages show the matches alone. `corner` is as of
    `Photo`. `UnusableFile` if the folder holds other files: none of them is changed.
    """
    if folder is None:
        yield None
        return
    host("bokeh", "html")
    from ruzhash_cv.report.pages import any_pair_page, index_page

    path = Path(folder)
    with as_unusable(f"cannot write to {path}"):
        path.mkdir(parents=True, exist_ok=True)
        if not (path / MARK).is_file():
            if any(path.iterdir()):
                raise UnusableFile(f"{path} holds files and is no folder of pages; nothing is overwritten")
            (path / MARK).write_text("Pages of ruzhash-cv. Its next run into this folder adds to them.\n")
    with locked(path / MARK, path):
        with as_unusable(f"cannot write to {path}"):
            for name in ("pairs", "photos", "thumbnails"):
                (path / name).mkdir(exist_ok=True)
            write_text(path / "index.html", index_page())
            write_text(path / "pair.html", any_pair_page())
            _keep_last_rows(path / ROWS)
        yield Pages(path, None if images is None else Path(images), corner)
        with as_unusable(f"cannot write to {path}"):
            _keep_last_rows(path / ROWS)


def _keep_last_rows(path: Path) -> None:
    """Write the rows of the index again, the last row of each pair, without incomplete rows of a killed run."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    rows = {line.partition('"id":"')[2].partition('"')[0]: line for line in lines if line.endswith(");\n")}
    write_text(path, "".join(rows.values()))


class Pages:
    """An open folder of pages. `not_shown` names the photographs that cannot be shown, and why."""

    def __init__(self, path: Path, images: Path | None, corner: float) -> None:
        self._path, self._images, self._corner = path, images, corner
        self._photos: dict[str, Photo] = {}
        self.not_shown: dict[str, str] = {}

    def add(
        self, names: tuple[str, str], points: tuple[Array, Array] | None, result: FilterResult,
        sizes: tuple[Size, Size] = (None, None), left_out: str | None = None,
    ) -> None:  # fmt: skip
        """Write the page of a pair, and its row; `points` are None if they cannot be read, `left_out` is why no match is kept."""
        from ruzhash_cv.report.pages import as_script

        points = (np.full((len(result.inlier_mask), 2), np.nan),) * 2 if points is None else points
        photos = [self._photo(*side) for side in zip(names, points, sizes, strict=True)]
        pair, name = pair_as_dict(photos, *points, result, left_out), _digest(*names)
        kept = [0 if left_out else each for each in pair["columns"]["kept"]]
        row = row_as_dict(name, photos, [_thumbnail(photo) for photo in photos], result, kept, left_out)
        with as_unusable(f"cannot write to {self._path}"):
            write_text(self._path / "pairs" / f"{name}.js", f"hold({as_script(pair)});\n")
            with (self._path / ROWS).open("a", encoding="utf-8") as file:
                file.write(f"hold({as_script(row)});\n")

    def _photo(self, name: str, points: Array, size: Size) -> Photo:
        """Return a photograph, written once; without one, as large as its matches need."""
        if self._images is not None and name not in self._photos and name not in self.not_shown:
            try:
                self._photos[name] = self._written(name, _stored_as(_within(self._images, name), size))
            except UnusableFile as error:
                self.not_shown[name] = str(error)
        if name in self._photos:
            return self._photos[name]
        finite = points[np.isfinite(points).all(axis=1)]
        width, height = np.ceil(finite.max(axis=0) + 1) if len(finite) else (640.0, 480.0)
        return Photo(_shown(name), None, max(float(width), 1.0), max(float(height), 1.0), self._corner)

    def _written(self, name: str, image: Image) -> Photo:
        from ruzhash_cv.report.pages import as_script

        height, width = image.shape[:2]
        digest = _digest(name)
        photo = Photo(_shown(name), f"photos/{digest}.js", width, height, self._corner)
        with as_unusable(f"cannot write to {self._path}"):
            write_text(self._path / f"photos/{digest}.js", f"hold({as_script(data_address(image, PHOTO))});\n")
            with written_beside(self._path / f"thumbnails/{digest}.jpg") as part:
                part.write_bytes(as_jpeg(image, THUMBNAIL))
        return photo


def _within(folder: Path, name: str) -> Path:
    """Return the path of a photograph; `UnusableFile` unless it is a regular file in the folder, links resolved."""
    path = folder / name
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        is_inside = False
    if not is_inside:
        raise UnusableFile(f"{name!r} is not a file in {folder}")
    return path


def _stored_as(path: Path, size: Size) -> Image:
    """Return a photograph as it is stored, as COLMAP and hloc see it; turned by its EXIF data if only this has their size."""
    image = read_image(path, turned=False)
    if size in (None, image.shape[1::-1]):
        return image
    turned = read_image(path)
    return turned if turned.shape[1::-1] == size else image


def _thumbnail(photo: Photo) -> str:
    return "" if photo.address is None else photo.address.replace("photos", "thumbnails").replace(".js", ".jpg")


def _digest(*names: str) -> str:
    """Return a name for the files of a photograph or of a pair."""
    return hashlib.blake2b("\0".join(names).encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()


def _shown(name: str) -> str:
    """Return a name as text, whatever bytes it holds."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
