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


class _Held(list[Any]):
    """What SIGINT calls while it is held back: keeps what comes."""

    def __call__(self, *signalled: Any) -> None:
        self.append(signalled)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold SIGINT back until the end, unless it is held already; a handler that is set meanwhile stays, and gets the signal."""
    handler, held = _signal.getsignal(signal.SIGINT), _Held()
    is_main = threading.current_thread() is threading.main_thread()  # no other gets signals
    if not is_main or isinstance(handler, _Held) or not callable(handler):
        yield
        return
    _signal.signal(signal.SIGINT, held)
    try:
        yield
    finally:
        if _signal.getsignal(signal.SIGINT) is held:
            _signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
