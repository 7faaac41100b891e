"""Servers of their own processes, for tests of stores: in ours, they would wait for us while we wait for them."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(command: Sequence[str], ask: Callable[[], object]) -> Iterator[None]:
    """Runs a server from when it first answers what is asked."""
    # Not where output is kept: nobody reads it.
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            try:
                ask()
                break
            except OSError:
                # Asks again: a server tells nobody that it listens.
                time.sleep(0.1)
        yield
    finally:
        server.kill()
        server.wait()
