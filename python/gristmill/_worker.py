"""Entry point of a worker process."""

from __future__ import annotations

import os
import sys

from gristmill import _gristmill
from gristmill._gristmill import IterDataset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def main() -> NoReturn:
    """Serves the parent process until it sends stop or ends."""
    prepare()
    serve: Any = getattr(_gristmill, "_serve")
    serve()
    raise SystemExit(1)


def prepare() -> None:
    """Makes printed lines appear at once: a worker may be killed at any time."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def build(payload: bytes, index: int) -> IterDataset:
    """Returns the pipeline that this worker evaluates."""
    # Child processes of this worker are not workers.
    os.environ.pop("GRISTMILL_WORKER", None)
    # A view, not a copy: the payload may be as large as the heap allows.
    kind, rest = payload[:1], memoryview(payload)[1:]
    if kind == b"m":
        import marshal

        steps = marshal.loads(rest)
    else:
        import pickle

        # Loaded early: reporting an exception needs this module when memory may be exhausted.
        import gristmill._remote as _

        steps, init, count = pickle.loads(rest)
        if init is not None:
            init(index, count)
    from gristmill._recipe import rebuild

    made = rebuild(steps)
    return made if isinstance(made, IterDataset) else made.mp_prefetch()
