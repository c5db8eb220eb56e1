import gc
import hashlib
import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import cv2
import numpy as np
import pytest
from scipy.io import savemat

from ruzhash_cv import datasets

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

Scenes = Callable[[str], datasets.AdelaideScene]
Patch = pytest.MonkeyPatch


def made_up_scene() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    data = np.ones((6, 5))
    data[[0, 1, 3, 4]] = rng.uniform(0, 20, (4, 5))
    red = np.zeros((8, 10, 3), np.uint8)
    red[..., 0] = 200
    return {"data": data, "label": np.array([[0, 1, 2, 1, 0]], np.uint8), "img1": red, "img2": red[:, :7]}


def as_mat(contents: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    savemat(file, contents)  # type: ignore[arg-type]
    return file.getvalue()


MAT = as_mat(made_up_scene())


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files a server publishes, and an empty cache; no proxy between us and the loopback."""
    folder = tmp_path / "published"
    folder.mkdir()
    monkeypatch.delenv("RUZHASH_CV_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.os_cache", lambda _: tmp_path / "cache")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    address = f"http://127.0.0.1:{server.server_address[1]}"

    def read_checksums() -> dict[str, dict[str, str]]:
        sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        sums = {"barrsmith.mat": hashlib.sha256(MAT).hexdigest()} | sums
        return {name: {"file": name, "sha256": digest, "url": f"{address}/{name}"} for name, digest in sums.items()}

    monkeypatch.setattr(datasets.adelaidermf, "_read_checksums", read_checksums)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()
    gc.collect()  # pooch leaves the socket of a failed request to it


def assert_as_made_up(scene: datasets.AdelaideScene) -> None:
    truth = made_up_scene()
    np.testing.assert_array_equal(scene.points1, truth["data"][0:2].T)
    np.testing.assert_array_equal(scene.points2, truth["data"][3:5].T)
    np.testing.assert_array_equal(scene.labels, [-1, 0, 1, 0, -1])
    assert scene.img1[0, 0].tolist() == [0, 0, 200]  # red, in OpenCV's order of channels


def test_shipped_checksums_have_an_address_and_a_sum_for_every_file_of_every_scene() -> None:
    assert len(datasets.HOMOGRAPHY_SCENES) == len(datasets.FUNDAMENTAL_SCENES) == 19
    checksums = datasets.adelaidermf._read_checksums()
    mats = {f"{name}.mat" for name in datasets.ADELAIDERMF_NAMES if not name.startswith("johnson")}
    parts = {f"johnson{x}{end}" for x in "ab" for end in (".csv", "_gt.csv", "_img1.png", "_img2.png")}
    assert set(checksums) == mats | parts
    for entry in checksums.values():
        assert entry["url"].startswith("https://")
        assert entry["url"].endswith("/" + entry["file"])
        assert len(bytes.fromhex(entry["sha256"])) == 32


def test_missing_file_is_downloaded_once_and_decoded(published: Path) -> None:
    (published / "barrsmith.mat").write_bytes(MAT)
    scene = datasets.fetch_adelaidermf("barrsmith")
    assert_as_made_up(scene)
    assert (scene.points1.flags.c_contiguous, scene.points2.dtype, scene.labels.dtype) == (True, np.float64, np.int64)
    assert (scene.name, scene.kind) == ("barrsmith", "homography")
    assert (scene.img1.shape, scene.img2.shape) == ((8, 10, 3), (8, 7, 3))
    (published / "barrsmith.mat").unlink()
    assert_as_made_up(datasets.fetch_adelaidermf("barrsmith"))


def test_grey_images_become_three_equal_channels_unmirrored(published: Path) -> None:
    ramp = np.arange(80, dtype=np.uint8).reshape(8, 10)
    (published / "boardgame.mat").write_bytes(as_mat(made_up_scene() | {"img1": ramp, "img2": ramp}))
    scene = datasets.fetch_adelaidermf("boardgame", data_home=published)
    assert scene.kind == "fundamental"
    for channel in range(3):
        np.testing.assert_array_equal(scene.img1[..., channel], ramp)


def test_scene_in_parts_is_put_together_from_csv_and_png(published: Path) -> None:
    truth = made_up_scene()
    for end, rows in ((".csv", truth["data"]), ("_gt.csv", truth["label"].T)):
        np.savetxt(published / f"johnsona{end}", rows, delimiter=",")
    for number in (1, 2):
        bgr = cv2.cvtColor(truth[f"img{number}"], cv2.COLOR_RGB2BGR)
        (published / f"johnsona_img{number}.png").write_bytes(cv2.imencode(".png", bgr)[1].tobytes())
    assert_as_made_up(datasets.fetch_adelaidermf("johnsona", data_home=published))


def test_absent_file_names_file_address_and_directories(published: Path, tmp_path: Path) -> None:
    with pytest.raises(datasets.DatasetError, match="404") as caught:
        datasets.fetch_adelaidermf("barrsmith", data_home=tmp_path / "mine")
    for part in ("/barrsmith.mat", str(tmp_path / "mine"), str(tmp_path / "cache"), "by hand", "RUZHASH_CV_DATA"):
        assert part in str(caught.value)


def test_data_home_goes_before_the_environment(published: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    """One without the file is passed over."""
    mine, environment = tmp_path / "mine", tmp_path / "environment"
    for directory, contents in ((mine, MAT), (environment, MAT[:-1])):
        directory.mkdir()
        (directory / "barrsmith.mat").write_bytes(contents)
    monkeypatch.setenv("RUZHASH_CV_DATA", str(environment))
    assert_as_made_up(datasets.fetch_adelaidermf("barrsmith", data_home=mine))
    for data_home in (str(tmp_path), tmp_path / "nowhere", mine / "barrsmith.mat", None):
        with pytest.raises(datasets.DatasetError, match=re.escape(f"{environment / 'barrsmith.mat'} is corrupt")):
            datasets.fetch_adelaidermf("barrsmith", data_home=data_home)
    assert (environment / "barrsmith.mat").read_bytes() == MAT[:-1]


def test_all_scenes_load_with_points_inside_their_images(scene: Scenes) -> None:
    sizes = []
    for name in datasets.ADELAIDERMF_NAMES:
        pair = scene(name)
        n = len(pair.labels)
        sizes.append(n)
        assert pair.points1.shape == pair.points2.shape == (n, 2)
        assert np.unique(pair.labels).tolist() == list(range(-1, pair.labels.max() + 1))
        for points, image in ((pair.points1, pair.img1), (pair.points2, pair.img2)):
            assert (image.dtype, image.shape[2]) == (np.uint8, 3)
            assert ((points >= 0) & (points <= [image.shape[1], image.shape[0]])).all()
    assert (min(sizes), max(sizes)) == (106, 2084)
    unihouse = scene("unihouse").labels  # the true one, not the copy of johnsonb that some archives hold
    assert (len(unihouse), unihouse.max(), (unihouse == -1).sum()) == (2084, 4, 345)


@pytest.mark.parametrize("name", ["barrsmith", "unihouse"])
def test_labelled_planes_are_planes(scene: Scenes, name: str) -> None:
    pair = scene(name)
    for label in range(pair.labels.max() + 1):
        source, target = pair.points1[pair.labels == label], pair.points2[pair.labels == label]
        moved = cv2.perspectiveTransform(source[None], cv2.findHomography(source, target)[0])[0]
        assert np.median(np.linalg.norm(moved - target, axis=1)) < 3
