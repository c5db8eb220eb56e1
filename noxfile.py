"""The test suite on every supported Python, with the lowest and the newest versions of what it needs.

    nox                                # all of it
    nox -s lowest-3.10                 # the lowest versions pyproject.toml allows
    nox -s "newest-3.13(opencv='5')" -- tests/test_filtering.py

Interpreters are those on the PATH; a Python that is not there is skipped.
"""

import nox

PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
#: Tests marked as slow too.
EVERY = ("-m", "slow or not slow")
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
def lowest(session: nox.Session) -> None:
    """Run the tests with the versions of tests/lowest.txt."""
    session.install("-c", "tests/lowest.txt", ".[test]")
    session.run("pytest", *(session.posargs or EVERY))


@nox.session(python=[*PYTHONS, "3.14"])
@nox.parametrize("opencv", ["4", "5"])
def newest(session: nox.Session, opencv: str) -> None:
    """Run the tests with the newest versions there are, of OpenCV 4 and of OpenCV 5."""
    session.install("--upgrade", "--upgrade-strategy", "eager", ".[test]", f"opencv-python=={opencv}.*")
    session.run("pytest", *(session.posargs or EVERY))


@nox.session(python="3.12")
def hosts(session: nox.Session) -> None:
    """Run the recipes with the tensors they are for."""
    session.install(".[test]", "torch")
    session.run("pytest", "tests/pipelines/test_recipes.py", *session.posargs)
