"""Ctrl-C between two steps instead of in the midst of one, so that what was computed can be kept."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """While it is entered, the first Ctrl-C only sets `came`; a second one stops at once, as usual.

    With `heeded` nothing changes, nor outside of the main thread, where signals never arrive.
    """

    def __init__(self, heeded: bool = False) -> None:
        self.came = False
        self.deferred = not heeded and threading.current_thread() is threading.main_thread()
        self.before: Any = None

    def __enter__(self) -> Interrupts:
        if self.deferred and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
