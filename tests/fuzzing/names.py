"""Names of files, pictures and pairs, and what is typed on a command line."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from files import folder, in_one_line
from inputs import HUGE, Draw
from targets import Target, claim

from ruzhash_cv import cli
from ruzhash_cv.cli.common import InputError, check_picture_name, write_picture
from ruzhash_cv.pipelines import pair_seed
from ruzhash_cv.pipelines.files import listed_pairs, written_beside

PIECES = (
    "a", "B", "é", "e\u0301", "\udce9", "\udc80", "日本", "%", "%2F", "%~", "#", ".", "..", " ", "-", "_", "'", '"', "\\", "\x7f",
    "\x01", "\u202e", "😀", "x" * 60, "x" * 255, "ä" * 130, ".png", ".h5", ".part", "*", "?", ":", "~", "$", "|", "CON", "\ufeff",
)  # fmt: skip


def name_of(draw: Draw, pieces: tuple[str, ...] = PIECES) -> str:
    """Return a name that a file system may have: no slash and no NUL, neither empty nor a folder."""
    name = "".join(draw.pick(pieces) for _ in range(draw.pick([1, 1, 2, 3, 6])))
    return name if name.strip(". ") else f"{name}a"


def path_of(draw: Draw) -> str:
    return "/".join(name_of(draw) for _ in range(draw.pick([1, 1, 2, 3])))


def key_of(draw: Draw, depth: int = 0) -> Any:
    kind = draw.pick(["int", "str", "bytes", "path", "tuple" if depth < 4 else "int"])
    if kind == "tuple":
        return tuple(key_of(draw, depth + 1) for _ in range(draw.pick([0, 1, 2, 3])))
    made = {
        "int": int(draw.rng.integers(-5, 5)) * draw.pick([1, HUGE]),
        "str": path_of(draw),
        "bytes": draw.rng.bytes(draw.pick([0, 3])),
    }
    return made.get(kind, PurePosixPath("a") / name_of(draw))


def keys(draw: Draw) -> None:
    """Equal keys have equal seeds, others do not; what is no key is refused."""
    one, two, rng = key_of(draw), key_of(draw), int(draw.rng.integers(3))
    claim((pair_seed(one, rng) == pair_seed(two, rng)) == (one == two), f"{one!r} and {two!r}")
    claim(pair_seed(one, rng) != pair_seed(one, rng + 1), f"{one!r} whatever the seed")
    for bad in (None, 1.5, [1], {"a": 1}, (1, None), np.zeros(2)):
        with contextlib.suppress(TypeError):
            pair_seed(bad)
            claim(False, f"{bad!r} is a key")


def listed(draw: Draw) -> None:
    """A list with tabs gives back any names without tabs, ends of lines and blanks around them."""
    # Python's `splitlines` ends lines at control characters too.
    pieces = tuple(piece for piece in PIECES if piece not in ("\x01", "\ufeff", "#"))
    pairs = [(name_of(draw, pieces).strip(), name_of(draw, pieces).strip()) for _ in range(draw.pick([1, 5]))]
    written = [tuple(map(os.fsencode, pair)) for pair in pairs]
    mark = draw.pick(["", "\ufeff"])
    with folder() as held:
        path = held / "pairs.txt"
        path.write_bytes(os.fsencode(mark + draw.pick(["\n", "\r\n"]).join("\t".join(pair) for pair in pairs)))
        found = in_one_line(path, lambda: [names for names, _ in listed_pairs(path, lambda _: False)])
    # Bytes are compared: surrogates next to each other may stand for those of one character.
    claim(found is not None and [tuple(map(os.fsencode, pair)) for pair in found] == written, f"{found} of {pairs}")


def picture(draw: Draw) -> None:
    """A picture is written under any name that has a suffix OpenCV knows, or refused in one line."""
    with folder() as held:
        path = held / (name_of(draw) + draw.pick([".png", ".PNG", ".jpg", ".bmp", ".é", "", ".pn\udce9", ".tar.gz"]))
        try:
            check_picture_name(path)
        except InputError as error:
            claim("\n" not in str(error), f"not one line: {error}")
            return
        in_one_line(path, lambda: write_picture(path, np.zeros((3, 5, 3), np.uint8)))
        claim([file.name for file in held.iterdir()] in ([], [path.name]), f"{list(held.iterdir())}")


def beside(draw: Draw) -> None:
    """A file is there as a whole, or the old one is; nothing else is left, and a link stays one."""
    with folder() as held:
        path = held / name_of(draw)
        if len(os.fsencode(path.name)) > 255:
            return
        target = path
        if old := draw.chance(0.5):
            if draw.chance(0.3):
                target = held / "target"
                path.symlink_to(target)
            target.write_text("old")
        try:
            with written_beside(path, replace=draw.pick([True, False])) as part:
                part.write_text("new")
                if draw.chance(0.3):
                    raise KeyboardInterrupt
            written = "new"
        except (KeyboardInterrupt, FileExistsError):
            written = "old" if old else ""
        claim((path.read_text() if path.exists() else "") == written, "neither the old nor the new")
        claim(path.is_symlink() == (target != path) and len(list(held.iterdir())) <= 2, f"{list(held.iterdir())}")


def command(draw: Draw) -> None:
    """Whatever is typed, of files that are not there: one line on stderr and status 2."""
    words = [
        "filter", "pairs", "colmap", "hloc", "--threshold", "--model", "auto", "-o", "x.png", "--n-jobs", "0", "1e400", "-1", "--rng",
        "nan", "--report", "r.csv", "--", "--ratio", "", "--save", "\udce9", "no/such.png", "a" * 300, "--no-such-option", "-",
        "10" * 40,
    ]  # fmt: skip
    arguments = [
        str(draw.pick(["filter", "pairs", "colmap", "hloc", *words])),
        *(draw.pick(words) for _ in range(draw.pick([0, 1, 2, 4, 7]))),
    ]
    said = io.StringIO()
    with folder() as held, contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        before = Path.cwd()
        os.chdir(held)
        try:
            status = cli.main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
        finally:
            os.chdir(before)
    lines = said.getvalue().splitlines()
    claim(status == 2 and len(lines) == 1 and "error: " in lines[0], f"{arguments}: status {status}, {lines}")


NAMES: dict[str, Target] = {
    "keys": keys,
    "listed": listed,
    "picture": picture,
    "beside": beside,
    "command": command,
}
