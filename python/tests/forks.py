"""Children that are forked off by a test, and what they say."""

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import gristmill as gm

#: Seconds after which a child counts as hanging.
PATIENCE = 60


def in_fork(work: Callable[[], Any]) -> str:
    """What `work` says in a forked child that must end by itself, silently, with code 0."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 2)
        code = 1
        try:
            os.write(writer, str(work()).encode())
            gc.collect()
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    timer = threading.Timer(PATIENCE, os.kill, (pid, 9))
    timer.start()
    with open(reader, "rb") as file:
        said = file.read().decode()
    _, status = os.waitpid(pid, 0)
    timer.cancel()
    assert status == 0, f"{status}: {said}"
    return said


def refused(ask: Callable[[], Any]) -> str:
    try:
        return f"no error, but {ask()!r}"
    except gm.WorkerError as error:
        return str(error)
