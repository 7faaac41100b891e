"""Ends the threads that call Python before the interpreter shuts down."""

import atexit
import os
import threading
import weakref

from gristmill._gristmill import DatasetIterator

_running: weakref.WeakSet[DatasetIterator] = weakref.WeakSet()
_ending = False


def close_at_exit(iterator: DatasetIterator) -> None:
    """Closes `iterator` at exit if it still exists."""
    _running.add(iterator)


def closed() -> BaseException:
    """Returns the error of a call on a closed iterator: `SystemExit` in a daemon thread at exit, else `ValueError`."""
    if _ending and threading.current_thread().daemon:
        return SystemExit()
    return ValueError("the iterator is closed")


def _close_all() -> None:
    global _ending
    _ending = True
    for iterator in list(_running):
        iterator.close()


def _forget() -> None:
    """Forgets the iterators after a fork: their threads belong to the parent."""
    global _running
    _running = weakref.WeakSet()


# Runs before the interpreter joins its threads: a thread that feeds an iterator would wait for a consumer forever.
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
