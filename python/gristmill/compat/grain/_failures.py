"""Rewords errors and warnings of the core as Grain words them, for programs that match the text. Keeps the original."""

import logging
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import CodeType, FrameType
from typing import Any

import gristmill as gm
from gristmill.compat.grain import _functions


def in_grains_words(error: gm.Error, ds: Any) -> gm.Error:
    """Returns the error of a pass over `ds` in Grain's words, or unchanged if Grain has no such error."""
    words = _words(str(error), ds)
    if words is None:
        return error
    told = type(error)(words).with_traceback(error.__traceback__)
    for note in (*getattr(error, "__notes__", ()), f"gristmill: {error}"):
        told.add_note(note)
    told.help, told.__cause__ = error.help, error.__cause__
    return told


def warn_in_grains_words(reads: CodeType) -> None:
    """Rewords warnings from now on, if they are logged below a call of `reads`, a method of a pass."""
    logging.getLogger("gristmill").addFilter(lambda record: _reworded(record, reads))


def _reworded(record: logging.LogRecord, reads: CodeType) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not reads:
        frame = frame.f_back
    if frame is not None:
        said = record.getMessage()
        words = _words(said, frame.f_locals["self"]._dataset)
        if words is not None:
            record.msg, record.args = "%s (gristmill: %s)", (words, said)
    return True


def _words(said: str, ds: Any) -> str | None:
    for pattern, words in _WORDS.items():
        found = re.search(pattern, said)
        if found is not None:
            return words(found, ds)
    return None


def explain(error: gm.ConfigError, ds: Any) -> None:
    """Adds a note that names the dataset whose function cannot be sent to worker processes, if that is the error."""
    if "cannot be sent to worker processes" not in str(error):
        return
    named = _first(ds, _unpicklable)
    if named is not None:
        error.add_note(f"Dataset: {named} cannot be pickled!")


def _first(ds: Any, wanted: Callable[[Any], bool]) -> Any:
    """Returns the wanted dataset nearest to a source; earlier parents come first."""
    for parent in ds.parents:
        found = _first(parent, wanted)
        if found is not None:
            return found
    return ds if wanted(ds) else None


def _unpicklable(ds: Any) -> bool:
    try:
        import_module("cloudpickle").dumps(getattr(ds, "_transform", None))
    except Exception:
        return True
    return False


def _dropped(found: re.Match[str], ds: Any) -> str:
    # Elements dropped by a `MapDataset` are counted at its conversion to a stream.
    filter = _first(ds, lambda one: isinstance(one, _functions.FilterIterDataset))
    counts = filter or _first(ds, lambda one: hasattr(one, "length_of_source")) or ds
    name = str(counts).replace("IterDataset", "DatasetIterator", 1)
    return f"Transformation {name} skipped {float(found[1]):.2f} % of the last seen {found[2]} elements."


def _unequal(found: re.Match[str], _ds: Any) -> str:
    shorter, longer = int(found[1]), int(found[2])
    odd, than = (shorter, "shorter") if shorter > 1 else (longer, "longer")
    others = "argument 1" if odd == 2 else f"arguments 1-{odd - 1}"
    return f"ZipIterDataset argument {odd} is {than} than {others}"


def _ended(found: re.Match[str], _ds: Any) -> str:
    return f"Worker process was terminated unexpectedly with exit code {found[1]}: a function ended it"


_WORDS: dict[str, Callable[[re.Match[str], Any], str]] = {
    r"(\d+\.\d+) % of the last (\d+) elements were dropped": _dropped,
    r"zip argument (\d+) is shorter than argument (\d+)": _unequal,
    r"^SystemExit: (\d+)$": _ended,
}
