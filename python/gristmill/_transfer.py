"""Adds the time of device transfers to the report of a pass."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from gristmill import _gristmill
from gristmill._gristmill import DatasetIterator

_native = cast("Any", _gristmill)


@contextmanager
def transferring(source: DatasetIterator) -> Generator[None]:
    """Counts the time spent in the block as waiting for the device, in the report of `source`."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        _native._waited_for_device(source, time.perf_counter() - begin)
