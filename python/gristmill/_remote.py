"""Pickles values for the trip between processes, with the memory of arrays outside the pickle."""

import contextlib
import os
import pickle
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import CodeType, FunctionType, TracebackType
from typing import Any, NoReturn

from gristmill._errors import WorkerError


#: The suffix " on HOST" of process names if this process serves another machine, else empty.
on_machine = ""


def dumps(leaf: Any) -> tuple[bytes, list[memoryview]]:
    """Returns the pickle of `leaf` and the buffers outside the pickle."""
    parts: list[memoryview] = []

    def apart(part: pickle.PickleBuffer) -> bool:
        try:
            parts.append(part.raw())
        except BufferError:
            return True
        return False

    try:
        return pickle.dumps(leaf, protocol=5, buffer_callback=apart), parts
    except Exception:
        # Classes of a script or a notebook, and local functions, are pickled by value.
        parts.clear()
        return import_module("cloudpickle").dumps(leaf, protocol=5, buffer_callback=apart), parts


def loads(pickled: bytes, parts: Sequence[Any]) -> Any:
    """Returns the unpickled leaf; its arrays view `parts`."""
    return pickle.loads(pickled, buffers=parts)


def pack(exception: BaseException, place: TracebackType | None) -> bytes:
    """Pickles an exception that a function raised in a worker: its text, and the object itself if it can be pickled."""
    said = "".join(traceback.format_exception(type(exception), exception, place))
    kind = type(exception)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    pickled = None
    # An exception such as `SystemExit` must not end the trainer, so its object is left out.
    if isinstance(exception, Exception):
        with contextlib.suppress(Exception):
            pickled = _whole(exception)
    frames = [(code.co_filename, code.co_name, line) for code, line in _frames(place)]
    return pickle.dumps((pickled, name, str(exception), said, f"{os.getpid()}{on_machine}", frames))


def _frames(place: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    for frame, line in traceback.walk_tb(place):
        yield frame.f_code, line


def _whole(exception: BaseException) -> bytes:
    """Returns a pickle that is known to load: exceptions with custom arguments often fail to."""
    try:
        pickled = pickle.dumps(exception)
    except Exception:
        pickled = import_module("cloudpickle").dumps(exception)
    again = pickle.loads(pickled)
    if type(again).__name__ != type(exception).__name__:
        raise TypeError(f"{type(exception).__name__} became {type(again).__name__}")
    return pickled


#: The result of `pack` for a `MemoryError`, made in advance: the handler has no memory left.
OUT_OF_MEMORY = pack(MemoryError("a function exceeded the memory limit of its worker"), None)


def unpack(packed: bytes) -> BaseException:
    """Returns the exception for the process that requested the element."""
    pickled, name, message, said, who, frames = pickle.loads(packed)
    exception: BaseException | None = None
    if pickled is not None:
        with contextlib.suppress(Exception):
            exception = pickle.loads(pickled)
    if exception is None:
        exception = WorkerError(f"{name}: {message}")
        exception.add_note("gristmill: the exception object is not available here: it cannot be pickled, or would end this program")
    exception.add_note(f"gristmill: raised in worker process {who}:\n{said.rstrip()}")
    return exception.with_traceback(_replayed(frames))


class _Replayed(Exception):
    """The exception that ends each synthetic frame of a traceback."""


def _end() -> NoReturn:
    raise _Replayed


def _replayed(frames: Sequence[tuple[str, str, int]]) -> TracebackType | None:
    """Returns a traceback with the given frames (file, function, line) for debuggers and loggers.

    Interpreter frames cannot be pickled. Each frame comes from a function that is synthesized and called.
    """
    # All instructions map to the first line, without columns. Format: `Objects/locations.md` of CPython.
    units = len(_end.__code__.co_code) // 2
    lines = b"".join(bytes([0x80 | 13 << 3 | min(8, units - at) - 1, 0]) for at in range(0, units, 8))
    entry: TracebackType | None = None
    for file, name, line in reversed(frames):
        code = _end.__code__.replace(
            co_filename=file, co_name=name, co_qualname=name, co_firstlineno=line, co_linetable=lines
        )
        try:
            FunctionType(code, {"_Replayed": _Replayed})()
        except _Replayed as ended:
            made = ended.__traceback__
            if made is not None and made.tb_next is not None:
                entry = TracebackType(entry, made.tb_next.tb_frame, made.tb_next.tb_lasti, line)
    return entry
