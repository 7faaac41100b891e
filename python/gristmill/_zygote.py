"""The process that forks workers: it has one thread, preloads their modules and takes commands from the trainer."""

import importlib
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from gristmill import _gristmill
from gristmill._worker import prepare

#: Memory limit of this process. Workers have their own limit.
_MEMORY = 64 << 20


def main(trainer: int) -> NoReturn:
    """Serves the parent process `trainer` until it ends or closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # An ignored SIGCHLD is inherited from the trainer and would discard the exit status of workers.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent: Any = getattr(_gristmill, "_end_with_parent")
    end_with_parent()
    watch = os.pidfd_open(trainer)
    if os.getppid() != trainer:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    control = socket.socket(fileno=os.dup(0))
    empty = os.open("/dev/null", os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    prepare()
    _Zygote(control, watch).run()
    os._exit(0)


def _load(modules: Iterable[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    try:
        alone = len(os.listdir("/proc/self/task")) == 1
    except OSError:
        # The number of threads is unknown.
        alone = False
    if not alone:
        # A fork is unsafe if there are other threads. The trainer then starts each worker as a new process.
        os._exit(0)


class _Zygote:
    def __init__(self, control: socket.socket, watch: int) -> None:
        self._control = control
        self._watch = watch
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(watch, select.POLLIN)
        #: Running workers, and by descriptor the workers whose end must be reported.
        self._running: set[int] = set()
        self._told: dict[int, int] = {}
        #: Connections of workers to fork, in order of the requests.
        self._files: list[int] = []

    def run(self) -> None:
        heard = b""
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            for fd in ready & self._told.keys():
                self._tell_end(fd)
            if self._watch in ready:
                break
            if self._control.fileno() in ready:
                try:
                    more, files, *_ = socket.recv_fds(self._control, 1 << 16, 16)
                except OSError:
                    # The trainer has ended without closing the connection.
                    break
                self._files += files
                if not more:
                    break
                *lines, heard = (heard + more).split(b"\n")
                for line in lines:
                    self._obey(os.fsdecode(line))
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)

    def _obey(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "load":
            _load(rest.split())
        elif word == "start":
            given = self._files.pop(0)
            pid = os.fork()
            if pid == 0:
                self._become_worker(given, rest)
            os.close(given)
            self._running.add(pid)
            self._say(f"started {pid}")
        elif word == "opened":
            fd = os.pidfd_open(int(rest))
            self._told[fd] = int(rest)
            self._poll.register(fd, select.POLLIN)

    def _tell_end(self, fd: int) -> None:
        pid = self._told.pop(fd)
        self._poll.unregister(fd)
        os.close(fd)
        _, status = os.waitpid(pid, 0)
        self._running.discard(pid)
        if os.WIFSIGNALED(status):
            self._say(f"ended {pid} 0 {os.WTERMSIG(status)} {int(os.WCOREDUMP(status))}")
        else:
            self._say(f"ended {pid} {os.waitstatus_to_exitcode(status)} 0 0")

    def _say(self, words: str) -> None:
        try:
            self._control.sendall(f"{words}\n".encode())
        except OSError:
            # The trainer is gone; the main loop notices next.
            pass

    def _become_worker(self, given: int, call: str) -> NoReturn:
        try:
            self._control.close()
            os.close(self._watch)
            for fd in (*self._told, *self._files):
                os.close(fd)
            os.dup2(given, 0)
            os.close(given)
            if "numpy.random" in sys.modules:
                # Reseeds NumPy: otherwise all workers would draw equal unseeded random numbers.
                sys.modules["numpy.random"].seed()
            # Lifts the limit of this process. The pipeline brings the limit of the worker.
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            os.environ["GRISTMILL_WORKER"] = call
            serve: Any = getattr(_gristmill, "_serve")
            serve()
        finally:
            os._exit(1)
