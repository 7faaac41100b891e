"""Removal of this package's frames from tracebacks: Grain's setting `py_traceback_filtering`.

`auto` means `off`: the core has no Python frames, so there is little to hide.
"""

import traceback
from pathlib import Path
from types import TracebackType

from gristmill.compat.grain._config import config

_HERE = str(Path(__file__).parent)


class UnfilteredStackTraceError(Exception):
    """Carrier of the unfiltered traceback, set as the cause of an exception."""


def filter_frames(error: BaseException) -> None:
    """Hides this package's frames in the traceback of `error` according to the setting."""
    mode = config.py_traceback_filtering
    if mode in ("auto", "off"):
        return
    whole = error.__traceback__
    if mode == "tracebackhide":
        for frame, _ in traceback.walk_tb(whole):
            if frame.f_code.co_filename.startswith(_HERE):
                frame.f_locals["__tracebackhide__"] = True
        return
    error.__traceback__ = _others(whole)
    if mode == "quiet_remove_frames":
        error.add_note("gristmill: frames of the package are hidden: set py_traceback_filtering to off to see them")
        return
    if mode != "remove_frames":
        raise ValueError(f"py_traceback_filtering is {mode!r}, which is no way to filter") from error
    unfiltered = UnfilteredStackTraceError("the whole traceback").with_traceback(whole)
    unfiltered.__cause__ = error.__cause__
    error.__cause__ = unfiltered


def _others(whole: TracebackType | None) -> TracebackType | None:
    """Returns the traceback without this package's frames, except for the frame that raised the exception."""
    entries: list[TracebackType] = []
    while whole is not None:
        entries.append(whole)
        whole = whole.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        frame = entry.tb_frame
        if kept is None or not frame.f_code.co_filename.startswith(_HERE):
            kept = TracebackType(kept, frame, entry.tb_lasti, entry.tb_lineno)
    return kept
