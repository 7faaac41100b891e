"""A line on the terminal, or in a notebook, while a loop runs."""

import html
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from importlib import import_module
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
    """Gives the elements of `iterable`, while a line shows how far it is, how fast, and how long it will take.

    Of a pass of gristmill it also says for which share of the time the loop waited for data.

    Args:
        iterable: What is looped over.
        total: How many elements there are; the iterable's length by default, where it has one.
        desc: What stands in front of the line.
        unit: What is counted.
        file: Where the line is written, over and over: standard error by default, and in a notebook the output of the
            cell. A file that is no terminal shows nothing.

    Returns:
        The elements.
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    line = _Line(iterable, total if total is None or total < _ENDLESS else None, desc, unit)
    show = (_in_notebook() if file is None else None) or _on_terminal(sys.stderr if file is None else file)
    return iter(iterable) if show is None else _shown(iterable, line, show)


def _shown(iterable: Iterable[_Item], line: "_Line", show: "_Show") -> Iterator[_Item]:
    started = shown = time.monotonic()
    try:
        for item in iterable:
            yield item
            line.done += 1
            now = time.monotonic()
            if now - shown >= _EVERY:
                shown = now
                show(line.text(now - started), False)
    finally:
        show(line.text(time.monotonic() - started), True)


#: Shows a text in the place of the last one, and whether it is the final one.
_Show = Callable[[str, bool], None]


def _on_terminal(out: TextIO) -> _Show | None:
    if not out.isatty():
        return None

    def show(text: str, last: bool) -> None:
        # Back to the start of the line, which is cleared.
        out.write(f"\r\x1b[K{text}" + ("\n" if last else ""))
        out.flush()

    return show


class _Html:
    """A line as a notebook shows it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f'<pre style="font-family: monospace">{html.escape(self._text)}</pre>'


def _in_notebook() -> _Show | None:
    # Where IPython was not imported there is no notebook.
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    handle: Any = import_module("IPython.display").display(_Html(""), display_id=True)

    def show(text: str, last: bool) -> None:
        handle.update(_Html(text))

    return show


class _Line:
    def __init__(self, source: object, total: int | None, desc: str, unit: str) -> None:
        self._source, self._total, self._desc, self._unit = source, total, desc, unit
        self.done = 0

    def text(self, elapsed: float) -> str:
        """The line after so many seconds."""
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
