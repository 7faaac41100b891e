"""A line on the terminal while a loop runs."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TextIO, TypeVar

_Item = TypeVar("_Item")
_EVERY = 0.1
_WIDTH = 24
# The length of what repeats without end.
_ENDLESS = 1 << 62


def progress(
    iterable: Iterable[_Item],
    *,
    total: int | None = None,
    desc: str = "",
    unit: str = "batches",
    file: TextIO | None = None,
) -> Iterator[_Item]:
    """The elements of `iterable`, while a line shows how far it is, how fast, and how long it will take.

    `for batch in gm.progress(batches, total=1000): …` writes one line over and over to `file`, standard error at first,
    and only if that is a terminal; elsewhere it is silent. The total is the iterable's length where it has one. Of a pass
    of gristmill it also says for which share of the time the loop waited for data.
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    line = _Line(iterable, total if total is None or total < _ENDLESS else None, desc, unit)
    out = sys.stderr if file is None else file
    return _shown(iterable, line, out) if out.isatty() else iter(iterable)


def _shown(iterable: Iterable[_Item], line: "_Line", out: TextIO) -> Iterator[_Item]:
    started = shown = time.monotonic()
    try:
        for item in iterable:
            yield item
            line.done += 1
            now = time.monotonic()
            if now - shown >= _EVERY:
                shown = now
                _write(out, line.text(now - started))
    finally:
        _write(out, line.text(time.monotonic() - started) + "\n")


def _write(out: TextIO, text: str) -> None:
    # Back to the start of the line, which is cleared.
    out.write(f"\r\x1b[K{text}")
    out.flush()


class _Line:
    def __init__(self, source: object, total: int | None, desc: str, unit: str) -> None:
        self._source, self._total, self._desc, self._unit = source, total, desc, unit
        self.done = 0

    def text(self, elapsed: float) -> str:
        """What is to be seen after so many seconds."""
        rate = self.done / elapsed if elapsed > 0 else 0.0
        of = "" if self._total is None else f"/{self._total}"
        words = [f"{self.done}{of} {self._unit}", f"{rate:.3g}/s", _clock(elapsed)]
        if self._total is not None and rate > 0 and self.done < self._total:
            words.append(f"{_clock((self._total - self.done) / rate)} left")
        waited = self._waited()
        if waited is not None:
            words.append(f"waited {100 * waited:.0f} %")
        head = f"{self._desc} " if self._desc else ""
        return f"{head}{self._bar()}{' · '.join(words)}"

    def _bar(self) -> str:
        if not self._total:
            return ""
        filled = min(_WIDTH, _WIDTH * self.done // self._total)
        return "█" * filled + "░" * (_WIDTH - filled) + " "

    def _waited(self) -> float | None:
        report: Any = getattr(self._source, "report", None)
        try:
            return None if report is None else report().as_dict()["consumer_wait_share"]
        except ValueError:
            # Closed by the loop itself.
            return None


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
