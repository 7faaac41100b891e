"""Threads that call Python end before the interpreter does."""

import atexit
import os
import threading
import weakref

from gristmill._gristmill import DatasetIterator

_running: weakref.WeakSet[DatasetIterator] = weakref.WeakSet()
_ending = False


def close_at_exit(iterator: DatasetIterator) -> None:
    """Closes `iterator` when the program ends, if it is still there."""
    _running.add(iterator)


def closed() -> BaseException:
    """What a thread is told that asks an iterator which is closed: where the program ends, a daemon thread is to end, too."""
    if _ending and threading.current_thread().daemon:
        return SystemExit()
    return ValueError("the iterator is closed")


def _close_all() -> None:
    global _ending
    _ending = True
    for iterator in list(_running):
        iterator.close()


def _forget() -> None:
    """A fork has none of the threads, and those of its parent are not for it to end."""
    global _running
    _running = weakref.WeakSet()


# Before the interpreter waits for threads that it knows: those of an iterator would wait for a consumer.
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
