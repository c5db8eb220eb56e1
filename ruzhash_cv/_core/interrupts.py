"""Ctrl-C: what cannot bear a KeyboardInterrupt in its midst is called to its end first."""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# What `signal` wraps: its own functions look up enumerations, which takes ten times as long and would happen at every call of a kernel.
_signal: Any = importlib.import_module("_signal")


def uninterrupted(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that cannot bear a KeyboardInterrupt: Ctrl-C waits for its end."""
    handler = _signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    caught: list[Any] = []
    _signal.signal(signal.SIGINT, lambda *signalled: caught.append(signalled))
    try:
        return function(*arguments)
    finally:
        _signal.signal(signal.SIGINT, handler)
        if caught:
            handler(*caught[0])
