"""The side of a worker process."""

from __future__ import annotations

import os
import sys

from gristmill import _gristmill
from gristmill._gristmill import IterDataset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def main() -> NoReturn:
    """Serves the process that started this one, until it says stop or ends."""
    prepare()
    serve: Any = getattr(_gristmill, "_serve")
    serve()
    raise SystemExit(1)


def prepare() -> None:
    """Has what functions print appear at once: a worker may end at any time."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def build(payload: bytes, index: int) -> IterDataset:
    """The pipeline whose elements this worker evaluates."""
    # Processes that are started here are none of ours.
    os.environ.pop("GRISTMILL_WORKER", None)
    # Not a copy: it may be as large as the heap allows.
    kind, rest = payload[:1], memoryview(payload)[1:]
    if kind == b"m":
        import marshal

        steps = marshal.loads(rest)
    else:
        import pickle

        # What tells of exceptions, as long as there is memory to load it.
        import gristmill._remote as _

        steps, init, count = pickle.loads(rest)
        if init is not None:
            init(index, count)
    from gristmill._recipe import rebuild

    made = rebuild(steps)
    return made if isinstance(made, IterDataset) else made.mp_prefetch()
