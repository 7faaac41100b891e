"""What is to be seen of a run: the report in a notebook, a line on a terminal."""

import html
import io
import re
import sys
import types
from typing import Any

import gristmill as gm
import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_notebook_shows_the_words_of_the_text() -> None:
    it = gm.MapDataset.range(50).map(lambda x: x + 1).to_iter_dataset().batch(7).loader()
    assert len(list(it)) == 8
    report = it.report()
    ribbon, shown = report._repr_html_().split("</svg>\n")
    assert ribbon.startswith("<svg ") and "The consumer waited" in ribbon
    assert html.unescape(re.sub("<[^>]*>", "", shown)).strip() == str(report).strip()
    assert "<b>VERDICT" in shown and "font-family: monospace" in shown


class Cell:
    """The output of a notebook's cell."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, what: Any) -> None:
        self.shown.append(what._repr_html_())


def test_a_notebook_shows_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = lambda what, display_id: Cell(shown)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert len(list(gm.progress(gm.MapDataset.range(30), desc="<train>"))) == 30
    assert "&lt;train&gt; █" in shown[-1] and "30/30 batches" in shown[-1] and "font-family: monospace" in shown[-1]
    ipython.get_ipython = lambda: types.SimpleNamespace()  # type: ignore[attr-defined]
    count = len(shown)
    assert len(list(gm.progress(gm.MapDataset.range(30)))) == 30 and len(shown) == count


def test_a_line_counts_and_ends() -> None:
    terminal = Terminal()
    it = gm.MapDataset.range(30).to_iter_dataset().batch(10).loader()
    assert len(list(gm.progress(it, total=3, desc="train", file=terminal))) == 3
    last = terminal.getvalue().split("\x1b[K")[-1]
    assert re.fullmatch(r"train █{24} 3/3 batches · \S+/s · 00:00 · waited \d+ %\n", last), last


def test_the_length_is_the_total_where_it_has_one() -> None:
    terminal = Terminal()
    assert list(gm.progress(gm.MapDataset.range(4), unit="numbers", file=terminal)) == [0, 1, 2, 3]
    assert "4/4 numbers" in terminal.getvalue()
    terminal = Terminal()
    endless = gm.progress(gm.MapDataset.range(4).repeat(), file=terminal)
    assert [next(endless), next(endless)] == [0, 1]
    endless.close()  # type: ignore[attr-defined]
    assert "1 batches" in terminal.getvalue()


def test_a_loop_that_stops_or_closes_early_keeps_its_line() -> None:
    terminal = Terminal()
    it = gm.MapDataset.range(9).loader()
    with pytest.raises(KeyError):
        for _ in gm.progress(it, file=terminal):
            it.close()
            raise KeyError
    assert terminal.getvalue().endswith("\n") and "waited" not in terminal.getvalue()


def test_elsewhere_it_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(gm.progress(range(3))) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
