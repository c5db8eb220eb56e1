"""Ctrl-C held back while it would do harm."""

from __future__ import annotations

import contextlib
import functools
import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# What `signal` wraps. Its own functions look up enumerations, which takes ten times as long.
_signal: Any = importlib.import_module("_signal")


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold SIGINT back until the end; a handler that is set meanwhile stays, and gets the signal.

    The handler is called, the signal is not raised again: an event loop has seen its arrival already.
    """
    handler, came = _signal.getsignal(signal.SIGINT), False
    # No other thread gets signals.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
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
            last = _signal.getsignal(signal.SIGINT)
            if callable(last):
                last(signal.SIGINT, None)
            else:
                signal.raise_signal(signal.SIGINT)


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Make a public function that estimates fundamental matrices hold Ctrl-C until its end.

    OpenCV's `findFundamentalMat` calls back into Python, where the interpreter would raise KeyboardInterrupt. It does not expect that,
    and what follows is a SystemError or a crash. The package's own kernels never call back.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with interrupts_held():
            return function(*args, **kwargs)

    return call
