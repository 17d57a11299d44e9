"""How far a run is: one line rewritten on a terminal, one line a step otherwise. Knows nothing of what is measured."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

BAR = 20
WIDTH = 100


def format_bar(done: int, total: int) -> str:
    """Return a bar of ``BAR`` characters."""
    filled = BAR * min(done, total) // total if total else 0
    return "#" * filled + "." * (BAR - filled)


class TextProgress:
    """Tells steps on a text stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.open_line = False

    def tell(self, text: str, done: int, total: int) -> None:
        """Show one step of ``total``."""
        if not self.terminal:
            print(f"  {text}", file=self.stream, flush=True)
            return
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        print(f"\r\x1b[K[{format_bar(done, total)}] {text}"[: width + 3], end="", file=self.stream, flush=True)
        self.open_line = True

    def say(self, text: str) -> None:
        """Show a line that stays."""
        if self.open_line:
            print("\r\x1b[K", end="", file=self.stream)
            self.open_line = False
        print(text, file=self.stream, flush=True)
