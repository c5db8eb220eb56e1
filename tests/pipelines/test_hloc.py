"""hloc's files: its reader finds in ours what was kept, and one line for what cannot be used."""

import csv
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import Captured, Patch, refusal
from two_views import motion

from ruzhash_cv import Camera, cli, filter_points
from ruzhash_cv.pipelines import pair_seed
from ruzhash_cv.pipelines.hloc import Summary, filter_matches
from ruzhash_cv.pipelines.hloc_files import Files, new_hdf5

h5py = pytest.importorskip("h5py")

Names = tuple[str, str]
N, N_TRUE = 60, 45


# hloc's reader, as its layout asks for it


def as_group(first: str, second: str, separator: str = "/") -> str:
    """Return the name of a pair's group: slashes within names become dashes."""
    return separator.join(name.replace("/", "-") for name in (first, second))


def stored(file: Any, names: Names) -> tuple[str, bool]:
    """Return the group of a pair, and whether it is stored the other way round; joined by _ in older files."""
    for separator, reverse in itertools.product("/_", (False, True)):
        group = as_group(*(names[::-1] if reverse else names), separator)
        if group in file:
            return group, reverse
    raise KeyError(names)


def read_pair(path: Path, names: Names) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the matches (m, 2) of a pair in the order of its names, and their scores (m,)."""
    with h5py.File(path, "r") as file:
        group, reverse = stored(file, names)
        partners, scores = file[group]["matches0"][()], file[group]["matching_scores0"][()]
    rows = np.flatnonzero(partners != -1)
    found = np.stack([rows, partners[rows]], axis=1)
    return (found[:, ::-1] if reverse else found), scores[rows]


# Files as hloc writes them


def write(path: Path, kind: str, held: dict[str, NDArray[Any]]) -> Path:
    """Write keypoints of images, or matches0 of groups and scores beside them."""
    with h5py.File(path, "w") as file:
        for name, values in held.items():
            file[f"{name}/{kind}"] = values
            if kind == "matches0":
                file[f"{name}/matching_scores0"] = np.ones(len(values), np.float16)
    return path


def write_pairs(path: Path, pairs: Sequence[Names]) -> Path:
    path.write_text("".join(f"{one} {two}\n" for one, two in pairs))
    return path


def scene(n_pairs: int = 1) -> tuple[dict[str, NDArray[Any]], list[Names], list[NDArray[Any]]]:
    """Return keypoints of nested names, pairs of them, and the matches of each pair, a quarter of them wrong."""
    keypoints, pairs, matches = {}, [], []
    for number in range(n_pairs):
        rng, points = np.random.default_rng(number), motion(N, noise=0.3, seed=number)
        names = (f"db/day-1/{number}.jpg", f"query/{number}.jpg")
        keypoints[names[0]], keypoints[names[1]] = points[:, :2], points[:, 2:]
        partners = np.arange(N, dtype=np.int16)
        partners[N_TRUE:] = rng.permutation(N)[: N - N_TRUE]
        partners[::7] = -1
        pairs.append(names)
        matches.append(partners)
    return keypoints, pairs, matches


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Features, matches and the list of one pair, and where the output will be."""
    keypoints, pairs, matches = scene()
    return [
        write(tmp_path / "features.h5", "keypoints", keypoints),
        write(tmp_path / "matches.h5", "matches0", {as_group(*pairs[0]): matches[0]}),
        write_pairs(tmp_path / "pairs.txt", pairs),
        tmp_path / "filtered.h5",
    ]


# What is written


def test_pairs_come_back_through_hloc_s_reader(tmp_path: Path) -> None:
    keypoints, pairs, matches = scene(12)
    features = write(tmp_path / "features.h5", "keypoints", keypoints)
    source = write(tmp_path / "matches.h5", "matches0", {as_group(*n): m for n, m in zip(pairs, matches, strict=True)})
    output, listed = tmp_path / "filtered.h5", write_pairs(tmp_path / "pairs.txt", pairs)
    options: dict[str, Any] = {"strongest_motion": False, "least_evidence": 0, "n_jobs": 2, "batch_size": 5}
    done = filter_matches(features, source, listed, output, **options)
    for names, partners in zip(pairs, matches, strict=True):
        rows = np.flatnonzero(partners != -1)
        alone = filter_points(keypoints[names[0]][rows], keypoints[names[1]][partners[rows]], rng=pair_seed(names))
        kept = rows[alone.inlier_mask]
        found, scores = read_pair(output, names)
        assert found.tolist() == np.stack([kept, partners[kept]], axis=1).tolist()
        np.testing.assert_array_equal(scores, (1 - alone.anomaly_scores[alone.inlier_mask]).astype(np.float16))
        assert (kept < N_TRUE).mean() > 0.85
    n_inliers = sum(len(read_pair(output, names)[0]) for names in pairs)
    n_matches = sum(int((partners != -1).sum()) for partners in matches)
    assert done == Summary(len(pairs), 0, len(pairs), n_matches, n_inliers, done.seconds)


def test_layout_is_hloc_s_own_and_a_pair_listed_in_both_orders_is_filtered_once(files: list[Path]) -> None:
    names = scene()[1][0]
    assert filter_matches(files[0], files[1], [names, names[::-1], names], files[3]).pairs == 1
    with h5py.File(files[1]) as source, h5py.File(files[3]) as output:
        assert list(output) == list(source)
        group = output["db-day-1-0.jpg/query-0.jpg"]
        assert sorted(group) == ["matches0", "matching_scores0"]
        assert (group["matches0"].dtype, group["matching_scores0"].dtype) == (np.int16, np.float16)
        before, after = source[group.name]["matches0"][()], group["matches0"][()]
        assert set(np.unique(after[before != after])) == {-1}
        assert np.all(group["matching_scores0"][()][before == -1] == 0)
    assert not list(files[3].parent.rglob(".*.part"))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("spell", [as_group, lambda *names: as_group(*names, "_"), lambda *names: "/".join(names)])
def test_either_order_and_every_separator_is_found(files: list[Path], spell: Any, reverse: bool) -> None:
    _, (names,), (partners,) = scene()
    filter_matches(*files)
    expected, _ = read_pair(files[3], names)
    files[3].unlink()
    if reverse:
        back = np.full(N, -1, np.int16)
        rows = np.flatnonzero(partners != -1)[::-1]
        back[partners[rows]] = rows  # a keypoint with two partners loses one, which may be a true one
        partners, group = back, spell(*names[::-1])
    else:
        group = spell(*names)
    write(files[1], "matches0", {group: partners})
    filter_matches(*files)
    with h5py.File(files[3]) as output:
        found = output[group]["matches0"][()]
    rows = np.flatnonzero(found != -1)
    pairs = {(int(b), int(a)) if reverse else (int(a), int(b)) for a, b in zip(rows, found[rows], strict=True)}
    assert len(pairs & {tuple(row) for row in expected.tolist()}) > 0.8 * len(expected)
    assert reverse or len(pairs) == len(expected)


@pytest.mark.parametrize(("count", "kind"), [(32767, np.int16), (32768, np.int32), (40000, np.int32)])
def test_keypoints_beyond_int16_are_written_in_int32(files: list[Path], count: int, kind: type) -> None:
    """hloc itself writes int16 that wraps: 39,990 as -25,546."""
    points = motion(N, seed=0)
    many = np.full((count, 2), 1.0)
    many[-N:] = points[:, 2:]
    write(files[0], "keypoints", {"a": points[:, :2], "b": many})
    partners = np.arange(count - N, count)
    write(files[1], "matches0", {"a/b": partners.astype(np.int16)})
    write_pairs(files[2], [("a", "b")])
    filter_matches(*files)
    with h5py.File(files[3]) as output:
        assert output["a/b/matches0"].dtype == kind
    found, _ = read_pair(files[3], ("a", "b"))
    assert len(found) > 0.9 * N
    np.testing.assert_array_equal(found[:, 1], partners[found[:, 0]])


def test_a_pair_of_less_evidence_than_asked_for_is_written_without_a_match(files: list[Path], tmp_path: Path) -> None:
    report, names = tmp_path / "report.csv", scene()[1][0]
    done = filter_matches(*files, n_jobs=1, report=report)
    (row,) = csv.DictReader(report.read_text().splitlines())
    assert (row["name1"], row["name2"], int(row["inliers"])) == (*names, done.inliers)
    assert int(row["motions"]) >= 1
    assert int(row["matches"]) == done.matches
    evidence = float(row["evidence"])
    filter_matches(*files, n_jobs=1, overwrite=True, least_evidence=evidence - 1)
    assert len(read_pair(files[3], names)[0]) == done.inliers
    assert filter_matches(*files, n_jobs=1, overwrite=True, least_evidence=evidence + 1).inliers == 0
    assert len(read_pair(files[3], names)[0]) == 0


def test_pages_change_nothing_of_the_output(files: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    plain, output = tmp_path / "plain.h5", tmp_path / "with_pages.h5"
    filter_matches(*files[:3], plain, n_jobs=1)
    done = filter_matches(*files[:3], output, n_jobs=1, html=tmp_path / "pages")
    rows = (tmp_path / "pages" / "pairs.js").read_text(encoding="utf-8")
    assert rows.count("hold(") == done.pairs
    assert '"image1":"db/day-1/0.jpg","image2":"query/0.jpg"' in rows
    with h5py.File(plain) as one, h5py.File(output) as other:
        group = as_group("db/day-1/0.jpg", "query/0.jpg")
        np.testing.assert_array_equal(one[group]["matches0"][()], other[group]["matches0"][()])


# Input of no use


def refused(files: list[Path], capfd: Captured, *options: str) -> str:
    """Return the one line that the command ends with; it leaves no unfinished file, and the output as it was."""
    before = files[3].read_bytes() if files[3].exists() else None
    said = refusal(["hloc", *files, "--n-jobs", "1", *options], capfd)
    assert not list(files[3].parent.rglob(".*.part"))
    assert (files[3].read_bytes() if files[3].exists() else None) == before
    return said


@pytest.mark.parametrize(
    ("fault", "index"),
    [(fault, at) for fault in ("missing", "truncated", "spoilt names", "text") for at in (0, 1)] + [("missing", 2)],
)
def test_an_input_that_cannot_be_read_is_named(files: list[Path], capfd: Captured, index: int, fault: str) -> None:
    contents = files[index].read_bytes()
    says, spoilt = {
        "missing": ("cannot read {}: No such file", b""),
        "truncated": ("cannot read {}: truncated file", contents[: len(contents) // 2]),
        "spoilt names": ("{} is no HDF5 file, or a spoilt one", contents.replace(b"SNOD", b"DONS")),
        "text": ("cannot read {}: file signature not found", b"no features"),
    }[fault]
    files[index].unlink() if fault == "missing" else files[index].write_bytes(spoilt)
    assert says.format(files[index]) in refused(files, capfd)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("query/0.jpg absent.jpg", "line 2: image 'absent.jpg' is not in"),
        ("query/0.jpg query/0.jpg", "line 2: no matches of 'query/0.jpg' and 'query/0.jpg' in"),
        ("query/0.jpg", "line 2: two names of pictures are needed, got 1"),
        (None, "the list of pairs is empty"),
    ],
)
def test_an_unknown_pair_is_named_with_its_line(files: list[Path], capfd: Captured, line: Any, says: str) -> None:
    files[2].write_text("\n" if line is None else files[2].read_text() + line + "\n")
    assert says in refused(files, capfd)


@pytest.mark.parametrize(
    "lines", ["im0.jpg im1.jpg\n./im0.jpg im1.jpg", "im0.jpg/ im1.jpg\nim0.jpg im1.jpg", "a/b.jpg c.jpg\na-b.jpg c.jpg"]
)
def test_two_pairs_with_one_group_are_refused_before_the_work(files: list[Path], capfd: Captured, lines: str) -> None:
    points = motion(N, seed=0)
    write(files[0], "keypoints", {"im0.jpg": points[:, :2], "im1.jpg": points[:, 2:], "a/b.jpg": points[:, :2]})
    with h5py.File(files[0], "a") as file:
        file["a-b.jpg/keypoints"], file["c.jpg/keypoints"] = points[:, :2], points[:, 2:]
    write(files[1], "matches0", {"im0.jpg/im1.jpg": np.arange(N), "a-b.jpg/c.jpg": np.arange(N)})
    files[2].write_text(lines)
    said = refused(files, capfd)
    assert all(word in said for word in ("line 1", "line 2", "have one group of matches"))


def test_nothing_is_overwritten_unasked(files: list[Path], capfd: Captured) -> None:
    files[3].write_text("precious")
    assert f"{files[3]} is there already" in refused(files, capfd)
    assert cli.main(["hloc", *map(str, files), "--n-jobs", "1", "--overwrite"]) == 0
    assert len(read_pair(files[3], scene()[1][0])[0]) > 0


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_input_is_never_the_output(files: list[Path], capfd: Captured, index: int) -> None:
    assert f"{files[index]}: it is an input" in refused([*files[:3], files[index]], capfd, "--overwrite")


def test_a_second_run_of_the_same_output_is_refused_and_the_first_continues(files: list[Path], capfd: Captured) -> None:
    with new_hdf5(files[3]) as first:
        assert f": {files[3]} is in use by another run\n" in refusal(["hloc", *files, "--n-jobs", "1"], capfd)
        first.attrs["whose"] = "mine"
    with h5py.File(files[3]) as output:
        assert output.attrs["whose"] == "mine"


@pytest.mark.slow
def test_the_unfinished_file_of_a_killed_run_is_removed(files: list[Path]) -> None:
    code = "import os, sys\nfrom pathlib import Path\nfrom ruzhash_cv.pipelines.hloc_files import new_hdf5\n"
    code += "with new_hdf5(Path(sys.argv[1])):\n    os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(files[3])], check=False)
    assert len(list(files[3].parent.glob(".*.part"))) == 1
    filter_matches(*files)
    assert not list(files[3].parent.glob(".*.part"))


def test_a_full_disk_is_told_before_hdf5_meets_it(files: list[Path], capfd: Captured, monkeypatch: Patch) -> None:
    free = iter([2**30, 2**20])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    assert "less than 64 MB are left on its disk" in refused(files, capfd)


def test_a_pair_that_cannot_be_read_is_named_and_the_others_are_done(tmp_path: Path, capfd: Captured) -> None:
    keypoints, pairs, matches = scene(3)
    groups = {as_group(*names): partners for names, partners in zip(pairs, matches, strict=True)}
    features = write(tmp_path / "features.h5", "keypoints", keypoints)
    source = write(tmp_path / "matches.h5", "matches0", groups)
    group, output = as_group(*pairs[1]), tmp_path / "out.h5"
    with h5py.File(source, "a") as file:
        file[group]["matches0"][1] = 500
    files = [features, source, write_pairs(tmp_path / "pairs.txt", pairs), output]
    capfd.readouterr()
    assert cli.main(["hloc", *map(str, files), "--n-jobs", "1"]) == 2
    assert capfd.readouterr().err.splitlines() == [
        f"left out {' and '.join(pairs[1])}: {source}: {group} names keypoint 500 of 'query/1.jpg', which has 60",
        "ruzhash-cv: error: 1 of 3 pairs are left out",
    ]
    assert [len(read_pair(output, names)[0]) > 20 for names in pairs] == [True, False, True]
    assert len(read_pair(output, pairs[1])[0]) == 0


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("matches0", np.array([b"a"] * N), "must hold whole numbers in 1 dimensions, got |S1 in 1"),
        ("matches0", np.zeros(N, [("a", "i4")]), "must hold whole numbers in 1 dimensions"),
        ("matches0", np.full(N, 0.5), "must hold whole numbers in 1 dimensions, got float64 in 1"),
        ("matches0", np.full(N, -5), "names keypoint -5"),
        ("matches0", np.full(N, -2, np.int16), "names keypoint -2"),
        ("matches0", 10**13, "claims more than the file holds"),
        ("keypoints", np.array([[b"a", b"b"]] * N), "must hold numbers in 2 dimensions, got |S1 in 2"),
        ("keypoints", np.zeros((N, 2), complex), "must hold numbers in 2 dimensions"),
        ("keypoints", np.zeros(N), "must hold numbers in 2 dimensions, got float64 in 1"),
        ("keypoints", np.zeros((N, 1)), "must have shape (n, 2), got (60, 1)"),
    ],
)
def test_an_unusable_dataset_leaves_its_pair_out(files: list[Path], name: str, data: Any, says: str) -> None:
    names = scene()[1][0]
    group = as_group(*names) if name == "matches0" else names[0]
    with h5py.File(files[name == "matches0"], "a") as file:
        del file[group][name]
        if isinstance(data, int):  # more than fits in memory, of which nothing is written
            file[group].create_dataset(name, shape=(data,), dtype="i8", chunks=(1000,))
        else:
            file[group].create_dataset(name, data=data)
    assert says in filter_matches(*files).left_out[names]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("kind", ["external link", "soft link", "external storage"])
def test_nothing_is_read_from_other_files(files: list[Path], kind: str) -> None:
    """A pipe would block."""
    (names,), fifo = scene()[1], files[3].with_name("fifo")
    os.mkfifo(fifo)
    with h5py.File(files[0], "a") as file:
        del file[names[0]]["keypoints"]
        if kind == "external storage":
            file[names[0]].create_dataset("keypoints", (N, 2), "f8", external=[(str(fifo), 0, h5py.h5f.UNLIMITED)])
        else:
            file["pipe"] = h5py.ExternalLink(str(fifo), "/x")
            link = file.get("pipe", getlink=True)
            file[names[0]]["keypoints"] = link if kind == "external link" else h5py.SoftLink("/pipe")
    says = "claims more than the file holds" if kind == "external storage" else "cannot read"
    assert says in filter_matches(*files).left_out[names]


# Cameras


def write_model(folder: Path, names: Sequence[str], distortion: float) -> Path:
    """Write a COLMAP model of one camera that is distorted, without points."""
    pycolmap = pytest.importorskip("pycolmap")
    model = pycolmap.Reconstruction()
    params = [600.0, 320.5, 240.5, distortion]
    seen = pycolmap.Camera(camera_id=1, model="SIMPLE_RADIAL", width=640, height=480, params=params)
    model.add_camera_with_trivial_rig(seen)
    for number, name in enumerate(names, 1):
        image = pycolmap.Image(name=name, camera_id=1, image_id=number)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d())  # an image without a pose is not written
    folder.mkdir()
    model.write(folder)
    return folder


@pytest.mark.filterwarnings("ignore:a fundamental matrix, of any cameras")  # the scene is of others
def test_points_are_undistorted_by_the_cameras_of_a_reconstruction(files: list[Path], tmp_path: Path) -> None:
    keypoints, pairs, matches = scene()
    model = write_model(tmp_path / "model", pairs[0], -0.1)
    filter_matches(*files, reconstruction=model, strongest_motion=False, least_evidence=0.0, n_jobs=1)
    rows = np.flatnonzero(matches[0] != -1)
    # COLMAP's first pixel has its centre at 0.5.
    camera = Camera([[600.0, 0.0, 320.5], [0.0, 600.0, 240.5], [0.0, 0.0, 1.0]], [-0.1, 0.0, 0.0, 0.0])
    first, second = keypoints[pairs[0][0]][rows], keypoints[pairs[0][1]][matches[0][rows]]
    expected = filter_points(first + 0.5, second + 0.5, cameras=camera, rng=pair_seed(pairs[0]))
    kept, _ = read_pair(files[3], pairs[0])
    np.testing.assert_array_equal(kept[:, 0], rows[expected.inlier_mask])
    assert len(kept) > 0


def test_a_model_that_cannot_be_read_is_named(files: list[Path], capfd: Captured) -> None:
    pytest.importorskip("pycolmap")
    assert "cannot read the cameras of none: " in refused(files, capfd, "--reconstruction", "none")


def task_of(files: list[Path]) -> dict[str, Any]:
    """Return the options that the one pair of some files brings."""
    with h5py.File(files[0]) as features, h5py.File(files[1]) as matches:
        source = Files(features, matches, files[2], {}, files[3], True)
        return dict(source.task(*source.groups)[3])


def test_scales_of_features_are_the_sizes_of_keypoints(files: list[Path]) -> None:
    """Unless an image has none, or one that is not above 0, or not as many as keypoints."""
    keypoints, pairs, matches = scene()
    names, rows = pairs[0], np.flatnonzero(matches[0] != -1)
    scales = np.random.default_rng(0).uniform(1.0, 9.0, (2, N))
    first, second = keypoints[names[0]][rows], keypoints[names[1]][matches[0][rows]]
    sizes = scales[0][rows], scales[1][matches[0][rows]]
    sized = filter_points(first, second, sizes=sizes, rng=pair_seed(names))
    with h5py.File(files[0], "a") as file:
        file[f"{names[0]}/scales"] = scales[0]
    assert "sizes" not in task_of(files)
    signalling = np.full(N, 0x7F800001, np.uint32).view(np.float32)  # a NaN whose conversion NumPy warns of
    unusable = scales[1][:-1], scales[1] * 0.0, signalling
    for second_scales, is_known in (*((each, False) for each in unusable), (scales[1], True)):
        with h5py.File(files[0], "a") as file:
            file.pop(f"{names[1]}/scales", None)
            file[f"{names[1]}/scales"] = second_scales
        own = task_of(files)
        assert ("sizes" in own) == is_known
    np.testing.assert_array_equal(own["sizes"], sizes)
    assert filter_points(first, second, **own, rng=pair_seed(names)) == sized
