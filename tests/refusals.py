"""How a command refuses what it cannot use."""

from typing import Any

import pytest

from ruzhash_cv import cli

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def refusal(arguments: list[Any], captured: Captured) -> str:
    """Return the one line on stderr that a command ends with, with status 2.

    `captured` is capfd for COLMAP, whose own log would show at the level of the process.
    """
    captured.readouterr()
    try:
        status = cli.main([str(argument) for argument in arguments])
    except SystemExit as stopped:  # of the parser
        status = stopped.code
    out, err = captured.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert ": error: " in err
    return str(err)
