"""Threads that call Python end before the interpreter does."""

import atexit
import threading
import weakref

from gristmill._gristmill import DatasetIterator

_running: weakref.WeakSet[DatasetIterator] = weakref.WeakSet()


def close_at_exit(iterator: DatasetIterator) -> None:
    """Closes `iterator` when the program ends, if it is still there."""
    _running.add(iterator)


def _close_all() -> None:
    for iterator in list(_running):
        iterator.close()


# Before the interpreter waits for threads that it knows: those of an iterator would wait for a consumer.
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_close_all)
