"""From photos to a reconstruction, with COLMAP's verification and with others in its place.

python benchmarks/reconstruct.py --photos ../shared/sceaux_castle -o docs/benchmarks_reconstruction.md

Every verifier starts from a copy of one database with keypoints and raw matches. Its processor seconds are those of this process, on
one thread; mapping is not counted.
"""

from __future__ import annotations

import argparse
import csv
import functools
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pycolmap
from numpy.typing import NDArray
from report import about_this_run, markdown
from street import FOCAL, SIZE, true_pair, views

from ruzhash_cv import cli
from ruzhash_cv.warmup import warmup

Array = NDArray[np.float64]
MIN_INLIERS = 15
#: A match is right within so many pixels of its true place.
RIGHT = 3.0
KEPT = ("pairs kept", "wrong pairs", "matches kept", "precision", "recall")
#: COLMAP's global mapper gives every pair the same say in the cameras' rotations, and wrong pairs are many but small: so many matches
#: a pair brought back the maps of streets 3 and 4.
MANY = 100
MAPPINGS = ("incremental", "global", f"global, min_num_matches={MANY}")
MAP = ("images", "points", "reprojection error, px", "camera error, m: median of means / largest", "lost maps")
#: A map is lost where a camera is so many metres off.
LOST = 1.0
HOW_TO_READ = f"""\
All verifiers get the same database of COLMAP's SIFT and raw matches; then COLMAP maps, incrementally and globally. CPU: of the
verification alone, on one thread. Of the rendered street the cameras and every pixel's partner are known. A match is right
within {RIGHT:g} px of its true place, a pair is wrong where fewer than half of its kept matches are right, and the cameras'
error is measured after the best similarity. Maps: one for each set and seed of COLMAP's; images are those of all maps, the rest
are medians, and the largest error of a camera; a map is lost where a camera is more than {LOST:g} m off."""


@dataclass
class Photos:
    """A folder of photos by one camera, "f,cx,cy", and what is known about them."""

    name: str
    folder: Path
    camera: str
    centres: dict[str, Array] | None = None
    truth: Callable[[str, str, Array, Array], NDArray[np.bool_]] | None = None


# Photos


def street_photos(folder: Path, n_views: int, seed: int = 0) -> Photos:
    """Render a street, and know everything about it."""
    folder.mkdir()
    scene, cameras, images = views(n_views, seed)
    named = {f"{number:02}.png": camera for number, camera in enumerate(cameras)}
    for name, image in zip(named, images, strict=True):
        cv2.imwrite(str(folder / name), image)

    def right(name1: str, name2: str, points1: Array, points2: Array) -> NDArray[np.bool_]:
        pair = true_pair(scene, named[name1], named[name2])
        return pair.transfer_errors(points1 - 0.5, points2 - 0.5) <= RIGHT  # COLMAP's first pixel has its centre at 0.5

    centres = {name: -camera.R.T @ camera.t for name, camera in named.items()}
    return Photos(f"street {seed}, {n_views} views", folder, f"{FOCAL},{SIZE[0] / 2},{SIZE[1] / 2}", centres, right)


def matched(photos: Photos, database: Path, ratio: float) -> None:
    """Fill a database with SIFT keypoints and raw matches."""
    reader = pycolmap.ImageReaderOptions(camera_model="SIMPLE_PINHOLE", camera_params=photos.camera)
    extraction = pycolmap.FeatureExtractionOptions(use_gpu=False, num_threads=1, max_image_size=1000)
    matching = pycolmap.FeatureMatchingOptions(use_gpu=False, num_threads=1, skip_geometric_verification=True)
    matching.sift.max_ratio = ratio
    single = pycolmap.CameraMode.SINGLE
    pycolmap.extract_features(
        database, photos.folder, camera_mode=single, reader_options=reader, extraction_options=extraction
    )
    pycolmap.match_exhaustive(database, matching_options=matching)


def pairs_of(database: Path) -> dict[tuple[int, int], Any]:
    """Return the two-view geometries by image ids."""
    with pycolmap.Database.open(database) as db:
        pairs, geometries = db.read_two_view_geometries()
    found = zip(pairs, geometries, strict=True)
    return {
        tuple(pycolmap.pair_id_to_image_pair(pair)): geometry
        for pair, geometry in found
        if len(geometry.inlier_matches) >= MIN_INLIERS and int(geometry.config) > 1
    }


# Verifiers


def by_colmap(database: Path) -> None:
    options = pycolmap.GeometricVerifierOptions(num_threads=1)
    pycolmap.geometric_verification(database, options)


def by_ruzhash(database: Path, *options: str) -> None:
    assert cli.main(["colmap", str(database), "--n-jobs", "1", *options]) == 0


def by_magsac(database: Path) -> None:
    cv2.setRNGSeed(0)
    _replace_each(database, _magsac)


def by_nothing(database: Path) -> None:
    _replace_each(database, lambda points1, points2: np.ones(len(points1), bool))


def _magsac(points1: Array, points2: Array) -> NDArray[np.bool_]:
    F, mask = cv2.findFundamentalMat(points1, points2, cv2.USAC_MAGSAC, 3.0)
    return np.zeros(len(points1), bool) if F is None else mask.ravel() > 0


def _replace_each(database: Path, verify: Callable[[Array, Array], NDArray[np.bool_]]) -> None:
    with pycolmap.Database.open(database) as db:
        keypoints = {image.image_id: db.read_keypoints(image.image_id)[:, :2] for image in db.read_all_images()}
        with pycolmap.DatabaseTransaction(db):
            for pair in db.read_num_matches()[0]:
                one, two = pycolmap.pair_id_to_image_pair(pair)
                matches = db.read_matches(one, two)
                if len(matches) < MIN_INLIERS:
                    continue
                points = (
                    side.astype(np.float64) for side in (keypoints[one][matches[:, 0]], keypoints[two][matches[:, 1]])
                )
                kept = matches[verify(*points)]
                if len(kept) >= MIN_INLIERS:
                    db.write_two_view_geometry(one, two, pycolmap.TwoViewGeometry(config=3, inlier_matches=kept))


def by_truth(photos: Photos, database: Path) -> None:
    """Keep the right matches alone: what no verifier can better."""
    with pycolmap.Database.open(database) as db:
        names = {image.image_id: image.name for image in db.read_all_images()}
        keypoints = {image: db.read_keypoints(image)[:, :2].astype(np.float64) for image in names}
        with pycolmap.DatabaseTransaction(db):
            for pair in db.read_num_matches()[0]:
                one, two = pycolmap.pair_id_to_image_pair(pair)
                matches = db.read_matches(one, two)
                points = keypoints[one][matches[:, 0]], keypoints[two][matches[:, 1]]
                kept = matches[photos.truth(names[one], names[two], *points)]
                if len(kept) >= MIN_INLIERS:
                    db.write_two_view_geometry(one, two, pycolmap.TwoViewGeometry(config=3, inlier_matches=kept))


VERIFIERS = {
    "COLMAP": by_colmap,
    "ruzhash_cv": by_ruzhash,
    "ruzhash_cv --least-evidence 100": lambda database: by_ruzhash(database, "--least-evidence", "100"),
    "ruzhash_cv --all-structures": lambda database: by_ruzhash(database, "--all-structures"),
    "cv2.USAC_MAGSAC, F, 3 px": by_magsac,
    "none, all matches": by_nothing,
}


# What became of it


@dataclass
class Pairs:
    """What is known of all pairs of a database, arrays (n_pairs,): matches, those right, those kept, and those kept and right."""

    matches: Array
    true: Array
    kept: Array
    right: Array

    def row(self, name: str, chosen: NDArray[np.bool_]) -> list[str]:
        """Return a line about the pairs that are `chosen`: how many, how many wrong, matches kept, precision, recall."""
        kept, right = self.kept * chosen, self.right * chosen
        wrong = chosen & (2 * right < kept)
        shares = right.sum() / max(kept.sum(), 1), right.sum() / max(self.true.sum(), 1)
        return [
            name,
            f"{chosen.sum()}",
            f"{wrong.sum()}",
            f"{kept.sum():.0f}",
            *(f"{share:.3f}" for share in shares),
        ]


def counted(photos: Photos, database: Path) -> Pairs:
    """Count all pairs that have matches, in the order of their images; without truth all is right."""
    found, counts = pairs_of(database), []
    with pycolmap.Database.open(database) as db:
        names = {image.image_id: image.name for image in db.read_all_images()}
        keypoints = {image: db.read_keypoints(image)[:, :2].astype(np.float64) for image in names}
        for one, two in sorted(pycolmap.pair_id_to_image_pair(pair) for pair in db.read_num_matches()[0]):
            row = []
            kept = found[one, two].inlier_matches if (one, two) in found else np.zeros((0, 2), np.uint32)
            for matches in (db.read_matches(one, two), kept):
                points = keypoints[one][matches[:, 0]], keypoints[two][matches[:, 1]]
                truth = photos.truth or (lambda *_: np.ones(len(matches), bool))  # noqa: B023
                row += [len(matches), int(truth(names[one], names[two], *points).sum())]
            counts.append(row)
    matches, true, kept, right = np.array(counts).T
    return Pairs(matches, true, kept, right)


def together(parts: list[Pairs]) -> Pairs:
    return Pairs(*np.hstack([[*vars(pairs).values()] for pairs in parts]))


def cuts(seeds: list[int], n_views: int, ratio: float, work: Path) -> str:
    """Return a table of the pairs of several streets that are kept by cuts of evidence, of inliers, and of their share."""
    ours, evidences, colmap = [], [], []
    for seed in seeds:
        photos, original = street_photos(work / f"cut{seed}", n_views, seed), work / f"cut{seed}.db"
        matched(photos, original, ratio)
        database, report = Path(shutil.copy(original, work / "verified.db")), work / "report.csv"
        by_ruzhash(database, "--least-evidence", "0", "--report", str(report))
        ours.append(counted(photos, database))
        with report.open(newline="") as file:
            rows = sorted(
                (int(row["image_id1"]), int(row["image_id2"]), row["evidence"]) for row in csv.DictReader(file)
            )
        evidences.append([float(row[2]) for row in rows])
        by_colmap(Path(shutil.copy(original, database)))
        colmap.append(counted(photos, database))
    own, other = together(ours), together(colmap)
    evidence, kept = np.concatenate(evidences), own.kept >= MIN_INLIERS
    lines = [other.row("COLMAP", other.kept >= MIN_INLIERS)]
    lines += [own.row(f"evidence of at least {cut}", kept & (evidence >= cut)) for cut in (0, 20, 50, 100, 150, 200)]
    lines += [own.row(f"at least {cut} inliers", own.kept >= cut) for cut in (30, 40, 50, 60)]
    lines += [
        own.row(f"at least {cut:.0%} inliers", kept & (own.kept >= cut * own.matches)) for cut in (0.2, 0.25, 0.3)
    ]
    title = (
        f"## Which pairs are kept: {len(seeds)} other streets (seeds {seeds[0]} to {seeds[-1]}), {len(evidence)} pairs"
    )
    return f"{title}\n\n{markdown(['pairs of', *KEPT], lines)}"


def mapped(databases: list[tuple[Photos, Path]], mapping: str, seeds: list[int]) -> list[str]:
    """Return shares of images, medians of points, reprojection and camera error, the largest error, and how many maps are lost."""
    n_images = n_mapped = lost = 0
    maps, errors = [], []
    for photos, database in databases:
        with pycolmap.Database.open(database) as db:
            n_images += len(seeds) * db.num_images()
        for model in (mapped_once(photos, database, mapping, seed) for seed in seeds):
            if model is None:
                lost += 1
                continue
            n_mapped, maps = n_mapped + model.num_reg_images(), [*maps, model]
            if photos.centres is not None:
                errors.append(camera_errors(model, photos.centres))
                lost += errors[-1].max() > LOST
    if not maps:
        return [f"0 of {n_images}", "", "", "", ""]
    points = np.median([model.num_points3D() for model in maps])
    error = np.median([model.compute_mean_reprojection_error() for model in maps])
    row = [f"{n_mapped} of {n_images}", f"{points:.0f}", f"{error:.2f}"]
    if not errors:
        return [*row, "", ""]
    means, largest = [each.mean() for each in errors], max(each.max() for each in errors)
    return [*row, f"{np.median(means):.3f} / {largest:.3f}", f"{lost} of {len(seeds) * len(databases)}"]


def mapped_once(photos: Photos, database: Path, mapping: str, seed: int) -> Any:
    """Return COLMAP's largest model, None where there is none; on one thread, so that it can be repeated."""
    with tempfile.TemporaryDirectory() as folder:
        if mapping == "incremental":
            incremental = pycolmap.IncrementalPipelineOptions(random_seed=seed, num_threads=1)
            models = pycolmap.incremental_mapping(database, photos.folder, folder, options=incremental)
        else:
            together = pycolmap.GlobalPipelineOptions(random_seed=seed, num_threads=1)
            if mapping != "global":
                together.min_num_matches = MANY
            models = pycolmap.global_mapping(database, photos.folder, folder, options=together)
    return max(models.values(), key=lambda model: model.num_reg_images(), default=None)


def camera_errors(model: Any, centres: dict[str, Array]) -> Array:
    """Return the distances of the cameras from where they are, after the best similarity (Umeyama, PAMI 1991)."""
    found = [(image.projection_center(), centres[image.name]) for image in model.images.values() if image.has_pose]
    source, target = (np.array(side) for side in zip(*found, strict=True))
    middle1, middle2 = source.mean(axis=0), target.mean(axis=0)
    U, S, Vt = np.linalg.svd((target - middle2).T @ (source - middle1))
    flip = np.diag([1, 1, np.sign(np.linalg.det(U @ Vt))])
    scale = np.trace(np.diag(S) @ flip) / ((source - middle1) ** 2).sum()
    errors: Array = np.linalg.norm(scale * (source - middle1) @ (U @ flip @ Vt).T + middle2 - target, axis=1)
    return errors


def compare(title: str, sets: list[Photos], work: Path, ratio: float, seeds: list[int]) -> str:
    """Return the tables of sets of photos, taken together."""
    for photos in sets:
        matched(photos, work / f"{photos.folder.name}.db", ratio)
    known = {} if sets[0].truth is None else {"the right matches alone": by_truth}
    verified, maps = [], []
    for name, verify in ({name: functools.partial(_anywhere, of) for name, of in VERIFIERS.items()} | known).items():
        databases, counts, seconds = [], [], 0.0
        for photos in sets:
            target = work / f"{photos.folder.name}_verified.db"
            databases.append((photos, Path(shutil.copy(work / f"{photos.folder.name}.db", target))))
            since = time.process_time()
            verify(*databases[-1])
            seconds += time.process_time() - since
            counts.append(counted(*databases[-1]))
        pairs = together(counts)
        row, n_pairs = pairs.row(name, pairs.kept >= MIN_INLIERS), len(pairs.kept)
        if sets[0].truth is None:
            row = [*row[:2], "", row[3], "", ""]
        verified.append([*row, f"{seconds:.2f}", f"{1000 * seconds / n_pairs:.1f}"])
        maps.append([name])
        for mapping in MAPPINGS:
            maps[-1] += mapped(databases, mapping, seeds)
        print(verified[-1], maps[-1], flush=True)
    title = f"## {title}: {n_pairs} pairs with matches, {pairs.matches.sum():,} matches, ratio test {ratio:g}"
    tables = (
        (["verification", *KEPT, "CPU s", "CPU ms a pair"], verified),
        (["mapping after", *(f"{mapping}: {what}" for mapping in MAPPINGS for what in MAP)], maps),
    )
    return "\n\n".join([title, *(markdown(*table) for table in (without_empty_columns(*each) for each in tables))])


def _anywhere(verify: Callable[[Path], None], photos: Photos, database: Path) -> None:
    verify(database)


def without_empty_columns(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out what is not known of these photos."""
    filled = [any(row[column] for row in rows) for column in range(len(header))]
    header, *rows = ([cell for cell, keep in zip(line, filled, strict=True) if keep] for line in (header, *rows))
    return header, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, nargs="*", default=[12], help="of each rendered street")
    parser.add_argument("--streets", type=int, nargs="+", default=[0], help="seeds of the streets that are mapped")
    parser.add_argument("--cut-streets", type=int, nargs="+", default=[], help="seeds of streets for a table of cuts")
    parser.add_argument("--photos", type=Path, help="a folder of photos beside the rendered ones")
    parser.add_argument("--camera", default="1231.3,600,451", help="their camera: f,cx,cy in pixels")
    parser.add_argument("--ratio", type=float, default=0.8, help="of COLMAP's matching")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of COLMAP's mapping")
    parser.add_argument(
        "-o", "--output", type=Path, help="a Markdown file: what begins with its word Command: is written anew"
    )
    options = parser.parse_args()
    pycolmap.logging.minloglevel = 2
    warmup()
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for n_views in options.views:
            sets = [street_photos(work / f"street{seed}_{n_views}", n_views, seed) for seed in options.streets]
            title = f"{len(sets)} streets (seeds {options.streets[0]} to {options.streets[-1]}), {n_views} views each"
            tables.append(compare(title, sets, work, options.ratio, options.seeds))
        if options.photos is not None and options.photos.is_dir():
            sets = [Photos(options.photos.name, options.photos, options.camera)]
            tables.append(compare(sets[0].name, sets, work, options.ratio, options.seeds))
        if options.cut_streets:
            tables.append(cuts(options.cut_streets, options.views[0], options.ratio, work))
    about = f"{about_this_run({})}, pycolmap {pycolmap.__version__}"
    text = "\n\n".join([about, HOW_TO_READ, *tables])
    print(text)
    if options.output is not None:
        there = options.output.read_text(encoding="utf-8") if options.output.exists() else "# Reconstruction\n\n"
        options.output.write_text(f"{there.partition('Command:')[0]}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
