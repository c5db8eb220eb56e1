"""The command line: ``ruzhash-cv demo``, ``ruzhash-cv filter`` and ``ruzhash-cv warmup``.

Tables go to stdout, messages to stderr. Exit status 2 and one line on stderr where the input is no good.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import __version__
from ruzhash_cv._core.warmup import missing_kernels, warmup
from ruzhash_cv.correspondences import Correspondences, as_correspondences, select_matches
from ruzhash_cv.drawing import draw_matches, draw_scores
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.result import FilterResult

if TYPE_CHECKING:
    from ruzhash_cv.datasets import ImagePair

Mask = NDArray[np.bool_]

MODELS = ("auto", "homography", "fundamental")
#: The strongest keypoints of an image, by kind of feature; brute-force matching of more takes minutes.
MOST_KEYPOINTS = {"sift": 10_000, "orb": 5_000}
#: Of the demo: ratio test, and RANSAC's threshold and tolerance of the truth in pixels.
RATIO, PIXELS = 0.8, 3.0
OPENCV = {"cv2.RANSAC": cv2.RANSAC, "cv2.USAC_MAGSAC": cv2.USAC_MAGSAC}


class InputError(Exception):
    """What the user gave cannot be used; the message is the one line they get."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, or 2 for input that cannot be used.

    `arguments` come without the program's name; None: those of the process.

    >>> main(["filter", "no_such_file.jpg", "neither.jpg"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except InputError as error:
        print(f"ruzhash-cv: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ruzhash-cv", description="Outlier rejection for keypoint matches.")
    parser.add_argument("--version", action="version", version=f"ruzhash-cv {__version__}")
    commands = parser.add_subparsers(required=True, metavar="{demo,filter,warmup}")

    demo = commands.add_parser("demo", help="compare with OpenCV's RANSAC and MAGSAC on the bundled image pairs")
    demo.add_argument("-o", "--output", type=Path, default=Path("ruzhash_cv_demo"), metavar="DIR")
    demo.add_argument("--pair", action="append", metavar="NAME", help="only this pair; may be repeated")
    demo.set_defaults(run=_demo)

    filter_ = commands.add_parser("filter", help="match two images and flag the mismatches")
    filter_.add_argument("images", type=Path, nargs=2, metavar="IMG")
    limits = ", ".join(f"{name.upper()}: {most}" for name, most in MOST_KEYPOINTS.items())
    filter_.add_argument("--features", choices=tuple(MOST_KEYPOINTS), default="sift", help=f"at most, {limits}")
    ratio = _number("a number above 0 and at most 1", most=1)
    filter_.add_argument("--ratio", type=ratio, default=RATIO, help="of the ratio test, default 0.8; 1 = nearly all")
    filter_.add_argument("--model", choices=MODELS, default="auto")
    threshold = _number("a number above 0")
    filter_.add_argument("--threshold", type=threshold, metavar="PIXELS", help="default: as the matches ask for")
    filter_.add_argument("-o", "--output", type=Path, metavar="PICTURE", help="draw the matches, e.g. out.png")
    filter_.add_argument("--save", type=Path, metavar="FILE.npz", help="save points, mask, scores and models")
    filter_.set_defaults(run=_filter)

    warmup_ = commands.add_parser("warmup", help="compile the kernels now, so that no later call has to")
    count = _number("a whole number above 0", convert=int)
    warmup_.add_argument("--n-jobs", type=count, metavar="N", help="processes, default: one for each processor")
    warmup_.set_defaults(run=lambda options: _prepare_kernels(options.n_jobs))
    return parser


def _number(requirement: str, most: float = sys.float_info.max, convert: type = float) -> Callable[[str], Any]:
    """Return a parser of numbers above 0 and at most `most`."""

    def parse(text: str) -> Any:
        with contextlib.suppress(ValueError):
            value = convert(text)
            if 0 < value <= most:
                return value
        raise argparse.ArgumentTypeError(f"must be {requirement}, got {text}")

    return parse


# The commands


def _demo(options: argparse.Namespace) -> None:
    from ruzhash_cv.datasets import PAIR_NAMES, load_pair

    names = options.pair or PAIR_NAMES
    if unknown := [name for name in names if name not in PAIR_NAMES]:
        raise InputError(f"there is no pair {unknown[0]!r}; the bundled ones are {', '.join(PAIR_NAMES)}")
    with _told(f"cannot make the directory {options.output}"):
        options.output.mkdir(parents=True, exist_ok=True)
    _prepare_kernels()
    _say(
        f"SIFT, ratio test {RATIO}; OpenCV's threshold {PIXELS:g} px; a match is true within {PIXELS:g} px of the truth"
    )
    print(f"{'pair':8} {'method':28} matches  kept flagged precision recall    F1      ms")
    for name in names:
        _compare(load_pair(name), options.output)
    _say(f"pictures are in {options.output}")


def _compare(pair: ImagePair, folder: Path) -> None:
    """Print a row for every method, and draw what this package and the better MAGSAC made of the pair."""
    kp1, kp2, matches = _match((pair.img1, pair.img2), ("1", "2"))
    pairs = as_correspondences(kp1, kp2, matches)
    points = pairs.points1, pairs.points2
    truth = pair.labels(*points, tolerance=PIXELS) > 0
    filter_points(*points)  # a process's first call also reads the kernels from their cache
    since = time.perf_counter()
    result = filter_points(*points)
    _print_row(pair.name, "ruzhash_cv", result.inlier_mask, truth, time.perf_counter() - since)
    magsac, best = np.zeros(len(truth), bool), -1.0
    for method, flag in OPENCV.items():
        for family in ("homography", "fundamental"):
            since = time.perf_counter()
            mask = _opencv_mask(family, flag, *points)
            f1 = _print_row(pair.name, f"{method} {family}", mask, truth, time.perf_counter() - since)
            if flag == cv2.USAC_MAGSAC and f1 > best:
                magsac, best = mask, f1
    drawn = pair.img1, kp1, pair.img2, kp2, matches
    _write_picture(folder / f"{pair.name}.jpg", draw_matches(*drawn, result))
    _write_picture(folder / f"{pair.name}_scores.jpg", draw_scores(*drawn, result))
    _write_picture(folder / f"{pair.name}_magsac.jpg", draw_matches(*drawn, magsac))


def _filter(options: argparse.Namespace) -> None:
    if options.output is not None and not (options.output.suffix and cv2.haveImageWriter(options.output.name)):
        raise InputError(f"cannot tell the kind of picture from {options.output.name!r}: end it in .png or .jpg")
    img1, img2 = (_read_picture(path) for path in options.images)
    kp1, kp2, matches = _match((img1, img2), options.images, options.features, options.ratio)
    _say(f"{len(matches)} matches pass the ratio test at {options.ratio:g}")
    pairs = as_correspondences(kp1, kp2, matches)
    result = filter_points(pairs.points1, pairs.points2, model=options.model, threshold=options.threshold)
    _print_result(result)
    if options.output is not None:
        _write_picture(options.output, draw_matches(img1, kp1, img2, kp2, matches, result))
    if options.save is not None:
        _save(options.save, pairs, matches, result)


def _prepare_kernels(n_jobs: int | None = None) -> None:
    """Compile all kernels that are not in the cache."""
    since = time.perf_counter()
    missing = len(missing_kernels())
    if missing:
        _say(f"compiling {missing} kernels, once after installation")
    try:
        warmup(n_jobs)
    except RuntimeError as error:
        raise InputError(str(error)) from None
    _say(f"kernels ready after {time.perf_counter() - since:.1f} s")


@contextlib.contextmanager
def _told(failure: str) -> Iterator[None]:
    """Turn an error of the file system into one line for the user."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{failure}: {error.strerror}") from None


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _read_picture(path: Path) -> NDArray[Any]:
    # Not cv2.imread: it writes warnings of its own to stderr, and cannot open every name on Windows.
    with _told(f"cannot read {path}"):
        contents = np.frombuffer(path.read_bytes(), np.uint8)
    image = None
    with contextlib.suppress(cv2.error):
        image = cv2.imdecode(contents, cv2.IMREAD_COLOR)
    if image is None:
        raise InputError(f"{path} is {'not a picture OpenCV can read' if len(contents) else 'empty'}")
    return image


def _write_picture(path: Path, picture: NDArray[np.uint8]) -> None:
    options = [cv2.IMWRITE_JPEG_QUALITY, 80] if path.suffix.lower() in (".jpg", ".jpeg") else []
    done, encoded = cv2.imencode(path.suffix, picture, options)
    if not done:
        raise InputError(f"{path.suffix} holds no colours: end {path.name!r} in .png or .jpg")
    with _told(f"cannot write {path}"):
        path.write_bytes(encoded.tobytes())


def _match(
    images: Sequence[NDArray[Any]], names: Sequence[object], features: str = "sift", ratio: float = RATIO
) -> tuple[Any, Any, list[cv2.DMatch]]:
    """Return the keypoints of both images and the matches that pass the ratio test."""
    most = MOST_KEYPOINTS[features]
    detector: Any = cv2.SIFT.create(most) if features == "sift" else cv2.ORB.create(most)
    (kp1, des1), (kp2, des2) = (detector.detectAndCompute(image, None) for image in images)
    for keypoints, name in zip((kp1, kp2), names, strict=True):
        if len(keypoints) == 0:
            raise InputError(f"no {features.upper()} keypoints in image {name}: is it blank?")
    rows = cv2.BFMatcher(cv2.NORM_L2 if features == "sift" else cv2.NORM_HAMMING).knnMatch(des1, des2, k=2)
    passed = np.isfinite(as_correspondences(kp1, kp2, rows, ratio=ratio).points1[:, 0])
    return kp1, kp2, select_matches(rows, passed)


def _opencv_mask(family: str, method: int, points1: NDArray[Any], points2: NDArray[Any]) -> Mask:
    """Return OpenCV's inlier mask; empty on failure, where OpenCV leaves it uninitialised."""
    cv2.setRNGSeed(0)
    estimate: Any = cv2.findHomography if family == "homography" else cv2.findFundamentalMat
    matrix, mask = estimate(points1, points2, method, PIXELS)
    return np.zeros(len(points1), bool) if matrix is None or mask is None else np.asarray(mask.reshape(-1) > 0)


def _print_row(pair: str, method: str, mask: Mask, truth: Mask, seconds: float) -> float:
    """Print one row of the demo's table and return its F1."""
    both, kept, true = int((mask & truth).sum()), int(mask.sum()), int(truth.sum())
    f1 = 2 * both / max(kept + true, 1)
    print(
        f"{pair:8} {method:28} {len(mask):7} {kept:5} {len(mask) - kept:7} {both / max(kept, 1):9.3f}"
        f" {both / max(true, 1):6.3f} {f1:5.3f} {1000 * seconds:7.1f}",
        flush=True,
    )
    return f1


def _print_result(result: FilterResult) -> None:
    kept = int(result.inlier_mask.sum())
    print(f"matches {len(result.inlier_mask)}\nkept    {kept}\nflagged {len(result.inlier_mask) - kept}")
    print(f"seconds {sum(result.seconds.values()):.3f}")
    if result.reason is not None:
        print(f"reason  {result.reason}")
    if result.models:
        print("structure kind        matches tolerance/px noise/px")
    for number, model in enumerate(result.models):
        print(f"{number:9} {model.kind:11} {model.support:7} {model.tolerance:12.2f} {model.noise_scale:8.2f}")


def _save(path: Path, pairs: Correspondences, matches: Sequence[cv2.DMatch], result: FilterResult) -> None:
    verdict = {name: getattr(result, name) for name in ("inlier_mask", "anomaly_scores", "p_values", "labels")}
    with _told(f"cannot write {path}"), path.open("wb") as file:  # a file, because a name would get a second suffix
        np.savez_compressed(
            file,
            points1=pairs.points1,
            points2=pairs.points2,
            keypoint_indices=np.array([(m.queryIdx, m.trainIdx) for m in matches], np.int64).reshape(-1, 2),
            models=np.array([model.matrix for model in result.models]).reshape(-1, 3, 3),
            model_kinds=np.array([model.kind for model in result.models], dtype="U11"),
            **verdict,
        )


if __name__ == "__main__":
    sys.exit(main())
