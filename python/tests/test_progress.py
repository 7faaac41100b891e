"""What is to be seen of a run: the report in a notebook, a line on a terminal."""

import html
import io
import re

import gristmill as gm
import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_notebook_shows_the_words_of_the_text() -> None:
    it = gm.MapDataset.range(50).map(lambda x: x + 1).to_iter_dataset().batch(7).loader()
    assert len(list(it)) == 8
    report = it.report()
    shown = report._repr_html_()
    assert html.unescape(re.sub("<[^>]*>", "", shown)).strip() == str(report).strip()
    assert "<b>VERDICT" in shown


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
