"""Time that batches take to get to a device, in the report of the pass that they are of."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from gristmill import _gristmill
from gristmill._gristmill import DatasetIterator

_native = cast("Any", _gristmill)


@contextmanager
def transferring(source: DatasetIterator) -> Generator[None]:
    """Counts the time that is spent inside as a wait for the device, of the consumer of `source`."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        _native._waited_for_device(source, time.perf_counter() - begin)
