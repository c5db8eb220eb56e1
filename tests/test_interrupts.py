"""Ctrl-C: public functions hold it until their end, and raise it as KeyboardInterrupt and nothing else."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import cv2
import pytest
from public_calls import calls, points

import ruzhash_cv as rc
from ruzhash_cv.foundation.interrupts import uninterrupted
from ruzhash_cv.models import Homographies


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[Any]:
    """Handle SIGINT as by default: a shell's background jobs ignore it, and what they start does too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


# The guard


def interrupted_call(ended: list[bool], *meanwhile: Callable[[], Any]) -> Callable[[], None]:
    """Return a guarded function that gets two signals before its end, with a guarded one within."""

    @uninterrupted
    def inner() -> None:
        signal.raise_signal(signal.SIGINT)

    @uninterrupted
    def outer() -> None:
        inner()
        for call in meanwhile:
            call()
        signal.raise_signal(signal.SIGINT)
        ended.append(True)

    return outer


def test_an_interruption_waits_for_the_end_of_the_outermost_call(interruptible: Any) -> None:
    ended: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_call(ended)()
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is interruptible


def test_an_interruption_is_raised_after_an_error_of_the_call() -> None:
    @uninterrupted
    def fail() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ValueError("an error of the call")

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ValueError)


def test_a_handler_that_is_set_during_a_call_stays_and_gets_what_came() -> None:
    came: list[int] = []

    def handler(number: int, frame: Any) -> None:
        came.append(number)

    interrupted_call([], lambda: signal.signal(signal.SIGINT, handler))()
    assert came == [signal.SIGINT] * 2  # the second at once, the first at the end
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_an_interruption_that_is_ignored_changes_nothing(handler: Any) -> None:
    signal.signal(signal.SIGINT, handler)
    ended: list[bool] = []
    interrupted_call(ended)()
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is handler


def test_one_signal_wakes_an_event_loop_once() -> None:
    """A loop's handlers run once for each byte at the descriptor it sleeps on."""
    receiver, sender = socket.socketpair()
    signal.signal(signal.SIGINT, lambda *_: None)
    with receiver, sender:
        sender.setblocking(False)
        before = signal.set_wakeup_fd(sender.fileno())
        try:
            uninterrupted(signal.raise_signal)(signal.SIGINT)
        finally:
            signal.set_wakeup_fd(before)
        assert receiver.recv(16) == bytes([signal.SIGINT])


def test_other_threads_touch_no_handler(interruptible: Any) -> None:
    seen: list[Any] = []
    thread = threading.Thread(target=uninterrupted(lambda: seen.append(signal.getsignal(signal.SIGINT))))
    thread.start()
    thread.join()
    assert seen == [interruptible]


# What it guards


def test_no_interruption_reaches_opencv_s_solver(monkeypatch: pytest.MonkeyPatch, interruptible: Any) -> None:
    held: list[bool] = []
    solver = cv2.findFundamentalMat

    def watched(*arguments: Any) -> Any:
        held.append(signal.getsignal(signal.SIGINT) is not interruptible)
        return solver(*arguments)

    monkeypatch.setattr(cv2, "findFundamentalMat", watched)
    for call in calls().values():
        call()
    assert len(held) > 300
    assert all(held)


def test_an_interruption_within_a_call_waits_for_its_end(interruptible: Any) -> None:
    """It comes between calls of OpenCV, and must not cut the call off."""

    class Interrupted(Homographies):
        n_fits = 0

        def fit(self, *arguments: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            Interrupted.n_fits += 1
            return super().fit(*arguments)

    with pytest.raises(KeyboardInterrupt):
        rc.filter_points(*points(), model=Interrupted())
    assert Interrupted.n_fits > 3
    assert signal.getsignal(signal.SIGINT) is interruptible
