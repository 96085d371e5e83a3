"""What Gradio keeps of each page that was ever open: its settings and pictures, for 1,000 pages and more."""

from __future__ import annotations

from collections import deque

import gradio as gr

REMEMBERED = 100  # closed pages, of which a late answer may have left something


class Sessions:
    """Lets go of the pages that are closed."""

    def __init__(self, blocks: gr.Blocks) -> None:
        self.blocks = blocks
        self._closed: deque[str] = deque(maxlen=REMEMBERED)

    def forget(self, key: str) -> None:
        """Also those before: work that was still running when its page was closed makes Gradio remember it again."""
        self._closed.append(key)
        kept = self.blocks.state_holder
        with kept.lock:
            for closed in self._closed:
                kept.session_data.pop(closed, None)
                kept.time_last_used.pop(closed, None)
