"""Workers start here for a few pairs too."""

import pytest

from ruzhash_cv.pipelines import pairs


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs go to workers, however few they are."""
    monkeypatch.setattr(pairs, "FEW_PAIRS", 0)
