"""What the pipelines share: optional packages, batches, a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from ruzhash_cv._extras import host as host

Item = TypeVar("Item")


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def with_bar(items: Iterable[Item], shown: bool | None = None, **words: Any) -> Iterable[Item]:
    """Show tqdm's progress bar on stderr; None: where that is a terminal."""
    from tqdm import tqdm

    disable = sys.stderr is None or (None if shown is None else not shown)  # `2>&-` leaves none
    bar: Iterable[Item] = tqdm(items, disable=disable, **words)
    return bar
