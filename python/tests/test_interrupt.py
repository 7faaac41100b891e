"""Ctrl-C ends a call of `next` at once, and the next one goes on where it was."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import gristmill as gm
import pytest
from gristmill._workers import _arguments

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Interrupts are heard, also where the tests run in the background and whoever started them ignores these."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def gate() -> Any:
    """Closed until a test opens it, and open in the end, whatever happens."""
    event = threading.Event()
    yield event
    event.set()


class Interrupting:
    """Sends SIGINT once a function of the pass was called and `next` is asked: threads of a loader may call functions before."""

    def __init__(self, begun: threading.Event) -> None:
        self.asked, self._begun = threading.Event(), begun
        self._thread = threading.Thread(target=self._interrupt)
        self._thread.start()

    def _interrupt(self) -> None:
        self.asked.wait(60)
        self._begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    def next(self, it: Any) -> None:
        """Asks for an element, which never comes."""
        with pytest.raises(KeyboardInterrupt):
            self.asked.set()
            next(it)
        self._thread.join()


def test_a_pass_with_threads_goes_on(gate: threading.Event) -> None:
    begun = threading.Event()
    ds = gm.MapDataset.range(10).map(lambda x: (begun.set(), gate.wait(60), x)[2])
    with ds.loader(threads=2) as it:
        Interrupting(begun).next(it)
        assert not gate.is_set()
        gate.set()
        assert list(it) == list(range(10))


def test_a_pass_without_threads_goes_on(gate: threading.Event) -> None:
    waited = threading.Event()

    def wait_at_three(x: int) -> int:
        if x == 3 and not waited.is_set():
            waited.set()
            gate.wait(60)
        return x

    it = gm.MapDataset.range(10).map(wait_at_three).to_iter_dataset().loader()
    assert [next(it), next(it), next(it)] == [0, 1, 2]
    Interrupting(waited).next(it)
    assert not gate.is_set()
    assert list(it) == list(range(3, 10))


class Interrupted(BaseException):
    """Raised by a handler of signals."""


def spin(x: int) -> dict[str, int]:
    end = time.perf_counter() + 0.0003
    while time.perf_counter() < end:
        pass
    return {"x": x}


#: Sends signals as long as its parent runs. A thread would need the interpreter.
SENDER = """
import os, random, signal, sys, time
times, parent = random.Random(5), int(sys.argv[1])
while os.getppid() == parent:
    os.kill(parent, signal.SIGINT)
    os.write(1, b".")
    time.sleep(times.uniform(0.0005, 0.01)) # the time between two signals
"""

PASSES: dict[str, Callable[[gm.MapDataset[Any]], Any]] = {
    "inline": lambda ds: ds.to_iter_dataset().loader(),
    "one thread": lambda ds: ds.loader(threads=1),
    "threads": lambda ds: ds.loader(threads=3, buffer=2),
    "batches": lambda ds: ds.to_iter_dataset().batch(1).map(lambda batch: {"x": int(batch["x"][0])}).loader(threads=2),
    "worker": lambda ds: ds.mp_prefetch(num_workers=1, ram_budget="500MiB", worker_heap="160MiB").loader(),
}


@pytest.mark.parametrize("how", PASSES)
def test_signals_at_random_times_lose_and_repeat_nothing(how: str) -> None:
    ds, got = gm.MapDataset.range(1_000_000).map(spin), list[dict[str, int]]()
    it = PASSES[how](ds)

    def take() -> None:
        # Nothing of Python runs between an element and the list that it goes to.
        got.extend(itertools.islice(it, 1))

    def interrupt(_: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code in (take.__code__, spin.__code__):
            raise Interrupted

    interrupts, states = 0, list[tuple[int, Any]]()
    signal.signal(signal.SIGINT, interrupt)
    sender = subprocess.Popen([sys.executable, "-c", SENDER, str(os.getpid())], stdout=subprocess.PIPE)
    try:
        assert sender.stdout is not None and sender.stdout.read(1)
        while len(got) < 1000 or interrupts < 20:
            try:
                take()
            except Interrupted:
                interrupts += 1
                if len(states) < 20:
                    states.append((len(got), it.get_state()))
    finally:
        sender.kill()
        sender.wait()
    it.close()
    assert [element["x"] for element in got] == list(range(len(got)))
    for count, state in states:
        with PASSES[how](ds) as rest:
            rest.set_state(state)
            assert next(rest)["x"] == count


def test_reading_ahead_begins_before_the_first_next(gate: threading.Event) -> None:
    ds = gm.MapDataset.range(10).map(lambda x: gate.set() or x)
    with ds.loader(threads=1) as it:
        it.start_prefetch()
        assert gate.wait(60)
        assert list(it) == list(range(10))
    idle = ds.loader()
    idle.start_prefetch()
    assert next(idle) == 0
    idle.close()
    with pytest.raises(ValueError, match="closed"):
        idle.start_prefetch()


@pytest.mark.parametrize("native", [False, True])
def test_a_worker_that_is_still_being_loaded_says_nothing_of_ctrl_c(native: bool) -> None:
    *options, program = _arguments(native)
    begins, _ = program.split("; import sys;", 1)
    command = [sys.executable, *options, f"{begins}; import os; os.kill(os.getpid(), 2); print('goes on')"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "goes on\n", "")
