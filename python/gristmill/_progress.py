"""A progress line on the terminal or in a notebook."""

import html
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from importlib import import_module
from typing import Any, TextIO, TypeVar

_Item = TypeVar("_Item")
_EVERY = 0.1
_WIDTH = 24
# Length of an endlessly repeated dataset.
_ENDLESS = 1 << 62


def progress(
    iterable: Iterable[_Item],
    *,
    total: int | None = None,
    desc: str = "",
    unit: str = "batches",
    file: TextIO | None = None,
) -> Iterator[_Item]:
    """Yields the elements of `iterable` and shows a line with progress, rate and remaining time.

    For a pass of gristmill the line also shows the share of time that the loop waited for data.

    Args:
        iterable: Iterable to loop over.
        total: Number of elements; by default, the length of the iterable if it has a length.
        desc: Text at the start of the line.
        unit: Name of the counted unit.
        file: File that the line is written to repeatedly: by default standard error or, in a notebook, the output of
            the cell. Nothing is written if the file is not a terminal.

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


#: Replaces the shown text. The second argument is true for the final text.
_Show = Callable[[str, bool], None]


def _on_terminal(out: TextIO) -> _Show | None:
    if not out.isatty():
        return None

    def show(text: str, last: bool) -> None:
        # Return to the start of the line and clear it.
        out.write(f"\r\x1b[K{text}" + ("\n" if last else ""))
        out.flush()

    return show


class _Html:
    """A line of text for a notebook."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f'<pre style="font-family: monospace">{html.escape(self._text)}</pre>'


def _in_notebook() -> _Show | None:
    # A notebook implies that IPython has been imported.
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
        """Returns the line after `elapsed` seconds."""
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
            # The loop has closed the pass.
            return None


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
