from __future__ import annotations

import gc
import hashlib
import io
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import cv2
import numpy as np
import pytest
from scipy.io import savemat

from ruzhash_cv.datasets import (
    ADELAIDERMF_NAMES,
    FUNDAMENTAL_SCENES,
    HOMOGRAPHY_SCENES,
    AdelaideScene,
    DatasetError,
    adelaidermf,
    fetch_adelaidermf,
)

# pooch leaves the socket of a failed request to the garbage collector, which collects it at the end of the module.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

Scenes = Callable[[str], AdelaideScene]


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


class Server:
    """A local file server that counts its requests and can misbehave."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.truncate = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                contents = outer.files.get(self.path.lstrip("/"))
                if contents is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(contents)))
                self.end_headers()
                self.wfile.write(contents[: len(contents) // 2] if outer.truncate else contents)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect sockets while their warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of our own, nothing in the environment, no proxy between us and the loopback server."""
    monkeypatch.delenv("RUZHASH_CV_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    directory = tmp_path / "cache"
    monkeypatch.setattr(adelaidermf, "_cache_directory", lambda: directory)
    return directory


@pytest.fixture
def published(server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server publishes a small barrsmith.mat, and the registry points there."""
    server.files["barrsmith.mat"] = MAT
    write_registry(tmp_path, monkeypatch, {"barrsmith.mat": MAT}, server.address)
    return server


def write_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], address: str) -> None:
    rows = [
        f"{name},{len(contents)},{hashlib.sha256(contents).hexdigest()},{address}/{name}\n"
        for name, contents in files.items()
    ]
    registry = tmp_path / "registry.csv"
    registry.write_text("file,bytes,sha256,url\n" + "".join(rows))
    monkeypatch.setattr(adelaidermf, "_REGISTRY", registry)


def files_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


# Names and registry


def test_there_are_38_names_in_two_halves() -> None:
    assert len(ADELAIDERMF_NAMES) == len(set(ADELAIDERMF_NAMES)) == 38
    assert len(HOMOGRAPHY_SCENES) == len(FUNDAMENTAL_SCENES) == 19
    assert set(ADELAIDERMF_NAMES) == set(HOMOGRAPHY_SCENES) | set(FUNDAMENTAL_SCENES)


def test_shipped_registry_has_an_address_and_a_sum_for_every_file_of_every_scene() -> None:
    registry = adelaidermf._read_registry()
    mats = {f"{name}.mat" for name in ADELAIDERMF_NAMES if not name.startswith("johnson")}
    parts = {f"johnson{x}{end}" for x in "ab" for end in (".csv", "_gt.csv", "_img1.png", "_img2.png")}
    assert set(registry) == mats | parts
    for entry in registry.values():
        assert entry["url"].startswith("https://")
        assert entry["url"].endswith("/" + entry["file"])
        assert len(bytes.fromhex(entry["sha256"])) == 32
        assert int(entry["bytes"]) > 0


# Downloading


def test_missing_file_is_downloaded_and_decoded(published: Server, cache: Path) -> None:
    scene = fetch_adelaidermf("barrsmith")
    truth = made_up_scene()
    np.testing.assert_array_equal(scene.points1, truth["data"][0:2].T)
    np.testing.assert_array_equal(scene.points2, truth["data"][3:5].T)
    np.testing.assert_array_equal(scene.labels, [-1, 0, 1, 0, -1])
    assert scene.points1.flags.c_contiguous
    assert scene.points2.dtype == np.float64
    assert scene.labels.dtype == np.int64
    assert (scene.name, scene.kind) == ("barrsmith", "homography")
    assert (scene.img1.shape, scene.img2.shape) == ((8, 10, 3), (8, 7, 3))
    assert scene.img1[0, 0].tolist() == [0, 0, 200]  # red, in OpenCV's order of channels
    assert files_in(cache) == ["barrsmith.mat"]


def test_grey_images_become_three_equal_channels_unmirrored(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ramp = np.arange(80, dtype=np.uint8).reshape(8, 10)
    server.files["boardgame.mat"] = as_mat(made_up_scene() | {"img1": ramp, "img2": ramp})
    write_registry(tmp_path, monkeypatch, server.files, server.address)
    scene = fetch_adelaidermf("boardgame")
    assert scene.kind == "fundamental"
    for channel in range(3):
        np.testing.assert_array_equal(scene.img1[..., channel], ramp)


def test_scene_in_parts_is_put_together_from_csv_and_png(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = made_up_scene()
    for end, rows in ((".csv", truth["data"]), ("_gt.csv", truth["label"].T)):
        text = io.StringIO()
        np.savetxt(text, rows, delimiter=",")
        server.files[f"johnsona{end}"] = text.getvalue().encode()
    for number in (1, 2):
        bgr = cv2.cvtColor(truth[f"img{number}"], cv2.COLOR_RGB2BGR)
        server.files[f"johnsona_img{number}.png"] = cv2.imencode(".png", bgr)[1].tobytes()
    write_registry(tmp_path, monkeypatch, server.files, server.address)
    scene = fetch_adelaidermf("johnsona")
    np.testing.assert_array_equal(scene.points1, truth["data"][0:2].T)
    np.testing.assert_array_equal(scene.points2, truth["data"][3:5].T)
    np.testing.assert_array_equal(scene.labels, [-1, 0, 1, 0, -1])
    assert scene.img1[0, 0].tolist() == [0, 0, 200]
    assert files_in(cache) == sorted(server.files)


def test_a_file_of_the_cache_is_fetched_again_only_if_it_is_damaged(published: Server, cache: Path) -> None:
    cache.mkdir()
    (cache / "barrsmith.mat").write_bytes(MAT[:100])
    for _ in range(2):
        fetch_adelaidermf("barrsmith")
        assert (cache / "barrsmith.mat").read_bytes() == MAT
    assert published.requests == ["/barrsmith.mat"]


@pytest.mark.parametrize("truncate", [False, True])
def test_a_spoilt_download_says_so_and_leaves_nothing(published: Server, cache: Path, truncate: bool) -> None:
    published.truncate = truncate
    published.files["barrsmith.mat"] = MAT if truncate else MAT[::-1]
    with pytest.raises(DatasetError, match="could not be downloaded") as caught:
        fetch_adelaidermf("barrsmith")
    assert hashlib.sha256(MAT).hexdigest() in str(caught.value)
    assert files_in(cache) == []
    published.truncate, published.files["barrsmith.mat"] = False, MAT
    fetch_adelaidermf("barrsmith")
    assert files_in(cache) == ["barrsmith.mat"]


def test_absent_file_names_file_address_directories_and_sum(published: Server, cache: Path, tmp_path: Path) -> None:
    published.files.clear()
    with pytest.raises(DatasetError, match="404") as caught:
        fetch_adelaidermf("barrsmith", data_home=tmp_path / "mine")
    message = str(caught.value)
    for part in (
        "barrsmith.mat",
        f"{published.address}/barrsmith.mat",
        str(tmp_path / "mine"),
        str(cache),
        "by hand",
        "RUZHASH_CV_DATA",
        hashlib.sha256(MAT).hexdigest(),
    ):
        assert part in message


def test_cache_that_cannot_be_written_is_a_dataset_error(published: Server, cache: Path) -> None:
    cache.write_text("a file where the directory should be")
    with pytest.raises(DatasetError, match="by hand"):
        fetch_adelaidermf("barrsmith")


# Directories


def test_data_home_goes_before_the_environment_and_the_cache(
    published: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, environment = tmp_path / "mine", tmp_path / "environment"
    for directory, contents in ((mine, MAT), (environment, b"never read"), (cache, b"never read")):
        directory.mkdir()
        (directory / "barrsmith.mat").write_bytes(contents)
    monkeypatch.setenv("RUZHASH_CV_DATA", str(environment))
    assert len(fetch_adelaidermf("barrsmith", data_home=mine).labels) == 5
    with pytest.raises(DatasetError, match="corrupt"):
        fetch_adelaidermf("barrsmith")
    assert published.requests == []


def test_directory_without_the_file_is_passed_over(
    published: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "barrsmith.mat").write_bytes(MAT)
    monkeypatch.setenv("RUZHASH_CV_DATA", str(environment))
    not_a_directory = tmp_path / "registry.csv"
    for data_home in (str(tmp_path), tmp_path / "nowhere", not_a_directory, None):
        fetch_adelaidermf("barrsmith", data_home=data_home)
    assert published.requests == []


def test_corrupt_file_in_data_home_is_an_error_and_stays(published: Server, tmp_path: Path) -> None:
    file = tmp_path / "barrsmith.mat"
    file.write_bytes(MAT[:-1])
    with pytest.raises(DatasetError, match="is corrupt") as caught:
        fetch_adelaidermf("barrsmith", data_home=tmp_path)
    message = str(caught.value)
    for part in (str(file), f"{published.address}/barrsmith.mat", hashlib.sha256(MAT).hexdigest(), f"{len(MAT)} bytes"):
        assert part in message
    assert file.read_bytes() == MAT[:-1]
    file.unlink()
    file.mkdir()
    with pytest.raises(DatasetError, match=r"barrsmith\.mat cannot be read"):
        fetch_adelaidermf("barrsmith", data_home=tmp_path)
    assert published.requests == []


# The real files


def test_all_scenes_load_with_points_inside_their_images(scene: Scenes) -> None:
    sizes = []
    for name in ADELAIDERMF_NAMES:
        pair = scene(name)
        n = len(pair.labels)
        sizes.append(n)
        assert pair.points1.shape == pair.points2.shape == (n, 2)
        assert pair.labels.min() == -1
        assert set(np.unique(pair.labels)) == set(range(-1, pair.labels.max() + 1))
        for points, image in ((pair.points1, pair.img1), (pair.points2, pair.img2)):
            assert image.dtype == np.uint8
            assert image.shape[2] == 3
            assert (points >= 0).all()
            assert (points <= [image.shape[1], image.shape[0]]).all()
    assert (min(sizes), max(sizes)) == (106, 2084)
    unihouse = scene("unihouse").labels  # the true one, not the copy of johnsonb that some archives hold
    assert (len(unihouse), unihouse.max(), (unihouse == -1).sum()) == (2084, 4, 345)


@pytest.mark.parametrize("name", ["barrsmith", "unihouse"])
def test_labelled_planes_are_planes(scene: Scenes, name: str) -> None:
    pair = scene(name)
    for label in range(pair.labels.max() + 1):
        source, target = pair.points1[pair.labels == label], pair.points2[pair.labels == label]
        homography = cv2.findHomography(source, target)[0]
        moved = cv2.perspectiveTransform(source[None], homography)[0]
        assert np.median(np.linalg.norm(moved - target, axis=1)) < 3
