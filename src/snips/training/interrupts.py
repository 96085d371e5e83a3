"""Ctrl-C and the end of a job between two steps instead of in the midst of one: what was computed can be kept."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """While it is entered, the first SIGINT (Ctrl-C) or SIGTERM only sets `came`; a second Ctrl-C stops at once.

    Outside of the main thread, where signals never arrive, and where somebody else handles them, nothing changes.
    """

    def __init__(self) -> None:
        self.came = False
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number, usual in USUAL.items():
                if signal.getsignal(number) is usual:
                    self.before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.came and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.came = True
