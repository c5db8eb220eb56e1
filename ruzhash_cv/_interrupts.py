"""Ctrl-C held back while it would do harm."""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

# What `signal` wraps. Its own functions look up enumerations, which takes ten times as long.
_signal: Any = importlib.import_module("_signal")


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold SIGINT back until the end; a handler that is set meanwhile stays, and gets the signal."""
    handler, came = _signal.getsignal(signal.SIGINT), False
    if threading.current_thread() is not threading.main_thread() or not callable(
        handler
    ):  # no other thread gets signals
        yield
        return

    def hold(*_: Any) -> None:
        nonlocal came
        came = True

    _signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        if _signal.getsignal(signal.SIGINT) is hold:
            _signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)
