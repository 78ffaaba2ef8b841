"""How far a long computation is, on standard error."""

from __future__ import annotations

import sys
from time import perf_counter


class Progress:
    """Counts parts of a whole: one line that is rewritten on a terminal, else a line each."""

    def __init__(self, name: str, total: int, shown: bool) -> None:
        self.name, self.total, self.shown = name, total, shown
        self._done, self._begun, self._width = 0, perf_counter(), 0

    def tick(self, parts: int = 1) -> None:
        """Some parts are done."""
        self._done += parts
        if not self.shown:
            return
        spent = perf_counter() - self._begun
        left = spent / self._done * (self.total - self._done)
        text = f"[{self.name}] {self._done}/{self.total} fits of a fold and a penalty, "
        text += f"{spent:.1f} s" if self._done == self.total else f"about {left:.1f} s left"
        if sys.stderr.isatty():
            end = "\n" if self._done == self.total else ""
            sys.stderr.write("\r" + text.ljust(self._width) + end)
            self._width = len(text)
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
