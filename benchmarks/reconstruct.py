"""From photos to a reconstruction, with COLMAP's verification and with others in its place.

    python benchmarks/reconstruct.py --photos ../shared/sceaux_castle

Every verifier starts from a copy of one database with keypoints and raw matches. Its processor seconds are those of this process, on
one thread; mapping is not counted. Of the rendered street the cameras and every pixel's partner are known. A match is right within
3 px of its true place, a pair is wrong where fewer than half of its kept matches are right, and the cameras' error is measured after
the best similarity. A map is lost where a camera is more than a metre off.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pycolmap
from numpy.typing import NDArray
from report import about_this_run, markdown
from street import FOCAL, SIZE, true_pair, views

from ruzhash_cv import Camera, cli

Array = NDArray[np.float64]
Keep = Callable[[str, str, Array, Array], NDArray[np.bool_]]
"""Which matches of two images, by their names and points."""
MIN_INLIERS, RIGHT, LOST = 15, 3.0, 1.0  # matches, pixels, metres
#: COLMAP's global mapper gives every pair the same say in the cameras' rotations; wrong pairs are many but small.
MAPPINGS = {"incremental": None, "global": 0, "global, min_num_matches=100": 100}
KEPT = (
    "pairs kept",
    "wrong pairs",
    "matches kept",
    "precision",
    "recall",
    "CPU ms a pair",
    "motions of a right pair: mean, share with one",
)
MAP = ("images", "points", "reprojection error, px", "camera error, m: median / largest", "lost maps")


@dataclass
class Photos:
    """A folder of photos by one camera, "f,cx,cy", and what is known about them."""

    name: str
    folder: Path
    camera: str
    centres: dict[str, Array] | None = None
    truth: Keep | None = None


def street_photos(folder: Path, n_views: int, seed: int, distortion: float = 0.0) -> Photos:
    """Render a street, and know everything about it; seen through a lens of this radial distortion, COLMAP's k of SIMPLE_RADIAL."""
    folder.mkdir()
    scene, cameras, images = views(n_views, seed)
    named = {f"{number:02}.png": camera for number, camera in enumerate(cameras)}
    lens = lens_of(distortion)
    grid = np.stack(np.meshgrid(*map(np.arange, SIZE)), axis=-1).reshape(-1, 2).astype(np.float64)
    sources = straight(grid, lens).reshape(SIZE[1], SIZE[0], 2).astype(np.float32)
    for name, image in zip(named, images, strict=True):
        seen = image if distortion == 0.0 else cv2.remap(image, sources, None, cv2.INTER_LINEAR)
        cv2.imwrite(str(folder / name), seen)

    def right(name1: str, name2: str, points1: Array, points2: Array) -> NDArray[np.bool_]:
        pair = true_pair(scene, named[name1], named[name2])
        # COLMAP's first pixel has its centre at 0.5.
        return pair.transfer_errors(straight(points1 - 0.5, lens), straight(points2 - 0.5, lens)) <= RIGHT

    centres = {name: -camera.R.T @ camera.t for name, camera in named.items()}
    told = f"{lens.matrix[0, 0]},{SIZE[0] / 2},{SIZE[1] / 2}" + (f",{distortion}" if distortion else "")
    return Photos(f"street {seed}, {n_views} views", folder, told, centres, right)


def lens_of(distortion: float) -> Camera:
    """A camera whose picture lies within the rendered one, which is a pinhole's."""
    corner = np.hypot(*SIZE) / 2 / FOCAL
    focal = FOCAL if distortion == 0.0 else 1.01 * FOCAL / (1.0 + distortion * corner**2)
    matrix = [[focal, 0, SIZE[0] / 2 - 0.5], [0, focal, SIZE[1] / 2 - 0.5], [0, 0, 1]]
    return Camera(np.array(matrix), [distortion, 0, 0, 0])


def straight(pixels: Array, lens: Camera) -> Array:
    """Pixels of the rendered picture, whose principal point is half of its size."""
    if not lens.distortion.any():
        return pixels
    rays = lens.rays(pixels)
    return FOCAL * rays[:, :2] / rays[:, 2:] + np.array(SIZE) / 2


def matched(photos: Photos, database: Path, ratio: float) -> None:
    """Fill a database with SIFT keypoints and raw matches."""
    model = "SIMPLE_PINHOLE" if photos.camera.count(",") == 2 else "SIMPLE_RADIAL"
    reader = pycolmap.ImageReaderOptions(camera_model=model, camera_params=photos.camera)
    extraction = pycolmap.FeatureExtractionOptions(use_gpu=False, num_threads=1, max_image_size=1000)
    matching = pycolmap.FeatureMatchingOptions(use_gpu=False, num_threads=1, skip_geometric_verification=True)
    matching.sift.max_ratio = ratio
    options = {"camera_mode": pycolmap.CameraMode.SINGLE, "reader_options": reader, "extraction_options": extraction}
    pycolmap.extract_features(database, photos.folder, **options)
    pycolmap.match_exhaustive(database, matching_options=matching)


def pairs_of(db: Any) -> dict[tuple[int, int], tuple[str, str, Array, Array, NDArray[np.uint32]]]:
    """Names, points and index pairs of the raw matches of each pair of images."""
    names = {image.image_id: image.name for image in db.read_all_images()}
    points = {image: db.read_keypoints(image)[:, :2].astype(np.float64) for image in names}
    found = {}
    for one, two in sorted(map(pycolmap.pair_id_to_image_pair, db.read_num_matches()[0])):
        matches = db.read_matches(one, two)
        found[one, two] = names[one], names[two], points[one][matches[:, 0]], points[two][matches[:, 1]], matches
    return found


def by_colmap(photos: Photos, database: Path) -> None:
    """COLMAP's own verification."""
    pycolmap.geometric_verification(database, pycolmap.GeometricVerifierOptions(num_threads=1))


def by_ruzhash(*options: str) -> Callable[[Photos, Path], None]:
    """The command of this package."""

    def verify(photos: Photos, database: Path) -> None:
        report = database.with_suffix(".report.csv")
        if cli.main(["colmap", str(database), "--n-jobs", "1", "--report", str(report), *options]) != 0:
            raise SystemExit(f"ruzhash-cv colmap {' '.join(options)} failed")

    return verify


def by(keep: Callable[[Photos], Keep]) -> Callable[[Photos, Path], None]:
    """A verifier that keeps some matches of each pair."""

    def verify(photos: Photos, database: Path) -> None:
        with pycolmap.Database.open(database) as db, pycolmap.DatabaseTransaction(db):
            for (one, two), (*told, matches) in pairs_of(db).items():
                kept = matches[keep(photos)(*told)] if len(matches) >= MIN_INLIERS else matches
                if len(kept) >= MIN_INLIERS:
                    db.write_two_view_geometry(one, two, pycolmap.TwoViewGeometry(config=3, inlier_matches=kept))

    return verify


def magsac(name1: str, name2: str, points1: Array, points2: Array) -> NDArray[np.bool_]:
    """Inliers of OpenCV's fundamental matrix."""
    F, mask = cv2.findFundamentalMat(points1, points2, cv2.USAC_MAGSAC, 3.0)
    return np.zeros(len(points1), bool) if F is None else mask.ravel() > 0


def everything(name1: str, name2: str, points1: Array, points2: Array) -> NDArray[np.bool_]:
    """All matches."""
    return np.ones(len(points1), bool)


VERIFIERS = {
    "COLMAP": by_colmap,
    "ruzhash_cv": by_ruzhash(),
    "ruzhash_cv --no-calibrated": by_ruzhash("--no-calibrated"),
    "ruzhash_cv --least-evidence 100": by_ruzhash("--least-evidence", "100"),
    "ruzhash_cv --all-structures": by_ruzhash("--all-structures"),
    "cv2.USAC_MAGSAC, F, 3 px": by(lambda photos: magsac),
    "none, all matches": by(lambda photos: everything),
    "the right matches alone": by(lambda photos: photos.truth or everything),
}


def counted(photos: Photos, database: Path) -> NDArray[np.int64]:
    """For each pair its matches that are right, those kept, and those kept and right; without truth all is right."""
    truth, counts = photos.truth or everything, []
    with pycolmap.Database.open(database) as db:
        pairs, geometries = db.read_two_view_geometries()
        kept = {
            pycolmap.pair_id_to_image_pair(pair): {tuple(row) for row in geometry.inlier_matches.tolist()}
            for pair, geometry in zip(pairs, geometries, strict=True)
            if len(geometry.inlier_matches) >= MIN_INLIERS and int(geometry.config) > 1
        }
        for pair, (*told, matches) in pairs_of(db).items():
            right, own = truth(*told), kept.get(pair, set())
            held = np.array([tuple(row) in own for row in matches.tolist()], bool)
            counts.append((right.sum(), held.sum(), (right & held).sum()))
    return np.array(counts)


def motions_of(databases: list[Path], right: NDArray[np.bool_]) -> str:
    """Motions of the pairs that are right: the mean, and the share that has one; where a report tells it."""
    reports = [database.with_suffix(".report.csv") for database in databases]
    if not all(report.exists() for report in reports):
        return ""
    told = [pd.read_csv(report).sort_values(["image_id1", "image_id2"]).motions for report in reports]
    for report in reports:
        report.unlink()
    motions = np.concatenate(told)[right]
    return f"{motions.mean():.2f}, {np.mean(motions == 1):.0%}"


def mapped(sets: list[tuple[Photos, Path]], mapping: str, seeds: list[int]) -> list[str]:
    """Shares of images, medians of points, reprojection and camera error, the largest error, and how many maps are lost."""
    n_images, models, errors, lost = 0, [], [], 0
    for photos, database in sets:
        with pycolmap.Database.open(database) as db:
            n_images += len(seeds) * db.num_images()
        for model in (mapped_once(photos, database, mapping, seed) for seed in seeds):
            if model is None:
                lost += 1
                continue
            models.append(model)
            if photos.centres is not None:
                errors.append(camera_errors(model, photos.centres))
                lost += errors[-1].max() > LOST
    if not models:
        return [f"0 of {n_images}", "", "", "", ""]
    points = np.median([model.num_points3D() for model in models])
    error = np.median([model.compute_mean_reprojection_error() for model in models])
    row = [f"{sum(model.num_reg_images() for model in models)} of {n_images}", f"{points:.0f}", f"{error:.2f}"]
    if not errors:
        return [*row, "", ""]
    told = f"{np.median([of.mean() for of in errors]):.3f} / {max(of.max() for of in errors):.3f}"
    return [*row, told, f"{lost} of {len(seeds) * len(sets)}"]


def mapped_once(photos: Photos, database: Path, mapping: str, seed: int) -> Any:
    """COLMAP's largest model, None where there is none; on one thread, so that it can be repeated."""
    with tempfile.TemporaryDirectory() as folder:
        if mapping == "incremental":
            options = pycolmap.IncrementalPipelineOptions(random_seed=seed, num_threads=1)
            models = pycolmap.incremental_mapping(database, photos.folder, folder, options=options)
        else:
            options = pycolmap.GlobalPipelineOptions(random_seed=seed, num_threads=1)
            options.min_num_matches = MAPPINGS[mapping] or options.min_num_matches
            models = pycolmap.global_mapping(database, photos.folder, folder, options=options)
    return max(models.values(), key=lambda model: model.num_reg_images(), default=None)


def camera_errors(model: Any, centres: dict[str, Array]) -> Array:
    """Distances of the cameras from where they are, after the best similarity (Umeyama, PAMI 1991)."""
    found = [(image.projection_center(), centres[image.name]) for image in model.images.values() if image.has_pose]
    source, target = (np.array(side) for side in zip(*found, strict=True))
    moved, scale = cv2.estimateAffine3D(source, target, force_rotation=True)
    return np.asarray(np.linalg.norm(scale * source @ moved[:, :3].T + moved[:, 3] - target, axis=1))


def compare(title: str, sets: list[Photos], work: Path, options: argparse.Namespace) -> str:
    """The tables of sets of photos, taken together."""
    originals = [work / f"{photos.folder.name}.db" for photos in sets]
    for photos, original in zip(sets, originals, strict=True):
        matched(photos, original, options.ratio)
    known, verified, maps = sets[0].truth is not None, [], []
    for name in options.verifiers:
        verify = VERIFIERS[name]
        if name == "the right matches alone" and not known:
            continue
        copies = [Path(shutil.copy(original, original.with_suffix(".verified.db"))) for original in originals]
        since = time.process_time()
        for photos, database in zip(sets, copies, strict=True):
            verify(photos, database)
        seconds = time.process_time() - since
        counts = np.vstack([counted(*each) for each in zip(sets, copies, strict=True)])
        (true, kept, right), is_kept = counts.sum(axis=0), counts[:, 1] > 0
        is_right = is_kept & (2 * counts[:, 2] >= counts[:, 1])
        row = [name, f"{is_kept.sum()}", f"{np.sum(is_kept & ~is_right)}", f"{kept}"]
        row += [f"{right / max(kept, 1):.3f}", f"{right / max(true, 1):.3f}", f"{1e3 * seconds / len(counts):.1f}"]
        row.append(motions_of(copies, is_right))
        verified.append(row if known else [*row[:2], "", row[3], "", "", *row[6:]])
        databases = list(zip(sets, copies, strict=True))
        maps.append([name, *(cell for mapping in MAPPINGS for cell in mapped(databases, mapping, options.seeds))])
        print(verified[-1], maps[-1], flush=True)
    header = ["mapping after", *(f"{mapping}: {what}" for mapping in MAPPINGS for what in MAP)]
    tables = markdown(["verification", *KEPT], verified), markdown(header, maps)
    return "\n\n".join([f"## {title}: {len(counts)} pairs with matches, ratio test {options.ratio:g}", *tables])


def main() -> None:
    """Parse the command line, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, nargs="*", default=[12], help="of each rendered street")
    parser.add_argument("--streets", type=int, nargs="+", default=[0], help="seeds of the streets that are mapped")
    parser.add_argument("--distortion", type=float, default=0.0, help="k1 of the rendered pictures, which is known")
    parser.add_argument("--photos", type=Path, help="a folder of photos beside the rendered ones")
    parser.add_argument("--camera", default="1231.3,600,451", help="their camera: f,cx,cy in pixels")
    parser.add_argument("--ratio", type=float, default=0.8, help="of COLMAP's matching")
    parser.add_argument("--verifiers", nargs="+", default=list(VERIFIERS), choices=list(VERIFIERS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of COLMAP's mapping")
    options = parser.parse_args()
    pycolmap.logging.minloglevel = 2
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for n_views in options.views:
            names = {seed: f"street{seed}_{n_views}" for seed in options.streets}
            streets = [street_photos(work / name, n_views, seed, options.distortion) for seed, name in names.items()]
            tables.append(compare(f"{len(streets)} streets, {n_views} views each", streets, work, options))
        if options.photos is not None and options.photos.is_dir():
            photos = Photos(options.photos.name, options.photos, options.camera)
            tables.append(compare(photos.name, [photos], work, options))
    print(f"{about_this_run()}, pycolmap {pycolmap.__version__}", *tables, sep="\n\n")


if __name__ == "__main__":
    main()
