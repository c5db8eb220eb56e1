"""Match and filter the pictures of a folder, in pairs; an interrupted run can be resumed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import cv2
import numpy as np

from ruzhash_cv._arrays import Array, Record, Rows
from ruzhash_cv._validation import check_bool
from ruzhash_cv.filtering import Model
from ruzhash_cv.pipelines.features import Features, detect, match, read_image
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, listed_pairs
from ruzhash_cv.pipelines.hosts import with_bar
from ruzhash_cv.pipelines.pairs import LOST, Task, flagged, pair_seed, run_task
from ruzhash_cv.pipelines.streaming import stream
from ruzhash_cv.result import FilterResult

Names: TypeAlias = tuple[str, str]

#: Suffixes of the files in a folder that are taken for pictures.
SUFFIXES = (".bmp", ".jp2", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
#: Pictures and pairs that go to a worker at once: each takes a tenth of a second or more.
BATCH_SIZE = 4


@dataclass(frozen=True)
class Settings:
    """How pictures are matched, as by `features.detect` and `match`, and filtered, as by `filter_points`."""

    features: str = "sift"
    ratio: float = 0.8
    max_size: int | None = None
    model: Model = "auto"
    threshold: float | None = None
    keep_stationary: bool = True
    rng: int = 0

    def __post_init__(self) -> None:
        check_bool(self.keep_stationary, "keep_stationary")


@dataclass(frozen=True, eq=False)
class FilteredPair(Record):
    """The matches of two pictures, in pixels (n, 2) of the files and by indices (n, 2) of keypoints, and the result for them.

    `tried` is False where a picture cannot be read or the worker was killed; the next run tries the pair again.
    """

    names: Names
    points1: Array
    points2: Array
    keypoint_indices: Rows
    result: FilterResult
    tried: bool = True


def read_list(path: Path, images: Path) -> list[Names]:
    """Return the pairs of a text file, two names of pictures a line, each once; `UnusableFile` names a line that is wrong.

    Names are relative to the folder `images`. They are separated by a tab, or by spaces if they hold none.
    """
    pairs: dict[Names, None] = {}
    known: set[str] = set()
    for names, where in listed_pairs(path, lambda name: _is_file(images / name)):
        for name in names:
            if name not in known and (problem := _problem(name, images)):
                raise UnusableFile(f"{where}{problem}")
            known.add(name)
        if names[0] == names[1]:
            raise UnusableFile(f"{where}{names[0]!r} is paired with itself")
        pairs[names] = None
    if not pairs:
        raise UnusableFile(f"{path} lists no pairs")
    return list(pairs)


def all_pairs(folder: Path) -> list[Names]:
    """Return all pairs of the pictures in a folder, by name; `UnusableFile` if there are fewer than two."""
    with as_unusable(f"cannot read {folder}"):
        names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if len(names) < 2:
        raise UnusableFile(f"{folder} holds {len(names)} pictures, and a pair needs 2")
    return list(itertools.combinations(names, 2))


def filter_images(
    pairs: Sequence[Names], images: Path, settings: Settings, scratch: Path, *, n_jobs: int | None = None
) -> Generator[FilteredPair, None, None]:
    """Match and filter pairs of pictures, and yield each as it is done.

    Features are looked for once in each picture, before any pair is done. They wait in the folder `scratch`, where workers read them:
    of many pictures they would not fit in memory. A resumed run finds them there, and a complete run removes them.
    Pairs of a picture that cannot be read come first, not tried.
    """
    names = sorted({name for pair in pairs for name in pair})
    scratch.mkdir(exist_ok=True)
    files = {name: scratch / f"{_digest(name, images, settings)}.features" for name in names}
    look = functools.partial(_look_for_features, settings=settings)
    pictures = ((name, images / name, files[name]) for name in names)
    found = stream(
        look,
        pictures,
        lambda item: (item[0], f"cannot look for features in {item[1]}: {LOST}"),
        n_jobs=n_jobs,
        batch_size=BATCH_SIZE,
    )
    with contextlib.closing(found):
        problems = dict(problem for problem in with_bar(found, desc="features", total=len(names)) if problem)
    for pair in pairs:
        if bad := problems.keys() & pair:
            yield untried(pair, problems[min(bad)])
    items = [(pair, (files[pair[0]], files[pair[1]])) for pair in pairs if problems.keys().isdisjoint(pair)]
    run = functools.partial(_filter_pair, settings=settings)
    done = stream(run, items, lambda item: untried(item[0], LOST), n_jobs=n_jobs, batch_size=BATCH_SIZE)
    with contextlib.closing(done):
        yield from with_bar(done, desc="pairs", total=len(items))
    for file in (*scratch.glob("*.features"), *scratch.glob(".*.part")):
        file.unlink()
    with contextlib.suppress(OSError):  # it holds other files
        scratch.rmdir()


def stamp(picture: Path) -> tuple[int, int]:
    """Return the size and the time of a picture's file, which tell whether it was replaced; zeros if there is no file."""
    with contextlib.suppress(OSError):
        held = picture.stat()
        return held.st_size, held.st_mtime_ns
    return 0, 0


def _digest(name: str, images: Path, settings: Settings) -> str:
    """Return a name for the features of a picture: it depends on the picture's file and on how its features are found."""
    identity = name, *stamp(images / name), settings.features, settings.max_size
    return hashlib.blake2b(repr(identity).encode(), digest_size=16).hexdigest()


def _problem(name: str, images: Path) -> str | None:
    """Return what is wrong with the name of a picture."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        return f"{name!r} must be relative to the folder of the pictures, and lie in it"
    return None if _is_file(images / name) else f"there is no {name!r} in {images}"


def _is_file(path: Path) -> bool:
    with contextlib.suppress(OSError):  # a name that is too long
        return path.is_file()
    return False


def _look_for_features(item: tuple[str, Path, Path], settings: Settings) -> Names | None:
    """Write the features of a picture to a file; return its name and what is wrong, if it cannot be read."""
    name, path, file = item
    if file.exists():
        return None
    try:
        image = read_image(path)
    except UnusableFile as error:
        return name, str(error)
    with _one_thread():
        detect(image, settings.features, settings.max_size).save(file)
    return None


def _filter_pair(item: tuple[Names, tuple[Path, Path]], settings: Settings) -> FilteredPair:
    names, files = item
    first, second = (_load(file) for file in files)
    with _one_thread():
        indices = match(first, second, settings.features, settings.ratio)
    points1, points2 = first.points[indices[:, 0]], second.points[indices[:, 1]]
    blank = [name for name, held in zip(names, (first, second), strict=True) if len(held.points) == 0]
    failure = f"no keypoints in {blank[0]}" if blank else None
    own = {"pixel": max(first.pixel, second.pixel)}
    task = Task(names, pair_seed(names, settings.rng), points1, points2, own, failure)
    options = {name: getattr(settings, name) for name in ("model", "threshold", "keep_stationary")}
    _, result, _ = run_task(task, options, attrgetter("motions"))  # the result keeps them
    return FilteredPair(names, points1, points2, indices, result)


def untried(names: Names, reason: str) -> FilteredPair:
    """Return a pair that was not tried."""
    nothing = np.zeros((0, 2))
    return FilteredPair(names, nothing, nothing, nothing.astype(np.int64), flagged(0, reason), tried=False)


_load = functools.lru_cache(maxsize=8)(Features.load)  # the pairs of a batch share pictures


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Limit OpenCV to one thread: each processor has a worker."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
