"""Workers may die in any way, and the program may be written in any way: the data stays, and nothing is left behind."""

import gc
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"ram_budget": "1GiB", "worker_heap": "192MiB"}


def digest(elements: Iterable[Any]) -> str:
    total = hashlib.sha256()
    for element in elements:
        total.update(np.ascontiguousarray(element))
    return total.hexdigest()


def array(x: int) -> np.ndarray[Any, Any]:
    return np.full(500, x * x)


def sigkill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def segv() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os._exit(3)


@pytest.mark.parametrize("end", [sigkill, segv, leave])
def test_workers_that_die_change_nothing(end: Callable[[], None], tmp_path: Path) -> None:
    def dies(x: int) -> np.ndarray[Any, Any]:
        # Once for each of these elements, whichever worker has it.
        if x % 700 == 350:
            try:
                (tmp_path / str(x)).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                end()
        return array(x)

    numbers = gm.MapDataset.range(3000).seed(3).shuffle()
    expected = digest(numbers.map(array))
    with numbers.map(dies).mp_prefetch(num_workers=2, **WORKERS).loader() as it:
        assert digest(it) == expected
        report = it.report().as_dict()
    assert len(list(tmp_path.iterdir())) == 4
    assert 1 <= report["workers"]["replaced"] <= 4


def test_workers_killed_from_outside_change_nothing() -> None:
    # So slow that workers are at work while they are killed.
    numbers = gm.MapDataset.range(4000).map(lambda x: time.sleep(0.0002) or x)
    with numbers.to_iter_dataset().batch(10).mp_prefetch(num_workers=2, **WORKERS).loader() as it:
        seen: list[int] = []
        for at, batch in enumerate(it):
            seen += batch.tolist()
            if at % 90 == 40:
                for row in it.report().as_dict()["workers"]["workers"][:1]:
                    os.kill(row["pid"], signal.SIGKILL)
        replaced = it.report().as_dict()["workers"]["replaced"]
    assert seen == list(range(4000))
    assert replaced >= 1


def poison(x: int) -> int:
    if x == 37:
        os._exit(9)
    return x


def test_an_element_that_kills_every_worker_is_named_or_left_out() -> None:
    ds = gm.MapDataset.range(60).map(poison)
    with pytest.raises(gm.WorkerError, match="element 37: 1 workers died over this element; .* exit code 9"):
        list(ds.mp_prefetch(num_workers=1, retries=1, **WORKERS))
    left = list(ds.mp_prefetch(num_workers=1, retries=1, on_poison="skip", **WORKERS))
    assert left == [x for x in range(60) if x != 37]


def test_a_function_that_hangs_is_ended() -> None:
    # A function that hangs, until its worker is ended.
    ds = gm.MapDataset.range(9).map(lambda x: time.sleep(600) if x == 5 else x)
    with pytest.raises(gm.WorkerError, match="element 5: .* longer than the deadline of 2s"):
        list(ds.mp_prefetch(num_workers=1, retries=1, deadline=2, **WORKERS))


def test_a_worker_has_no_more_memory_than_its_heap() -> None:
    ds = gm.MapDataset.range(4).map(lambda x: np.ones(400 << 20, np.uint8)[:3] if x == 2 else np.ones(3, np.uint8))
    it = iter(ds.mp_prefetch(num_workers=1, ram_budget="500MiB", worker_heap="300MiB"))
    assert len(list(islice(it, 2))) == 2
    with pytest.raises(MemoryError) as caught:
        next(it)
    assert any("element 2" in note for note in caught.value.__notes__)


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread of something else may end between being listed and being read.
        with suppress(OSError):
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


def test_a_replaced_worker_has_the_number_of_its_predecessor(tmp_path: Path) -> None:
    numbers: list[tuple[int, int]] = []

    def init(index: int, count: int) -> None:
        numbers.append((index, count))

    def seen(x: int) -> tuple[int, int]:
        if x % 100 == 50 and not (tmp_path / str(x)).exists():
            (tmp_path / str(x)).touch()
            os._exit(1)
        return numbers[-1]

    ds = gm.MapDataset.range(400).map(seen)
    assert set(ds.mp_prefetch(num_workers=1, worker_init_fn=init, **WORKERS)) == {(0, 1)}
    assert len(list(tmp_path.iterdir())) == 4


# Counts files of the whole machine.
@pytest.mark.alone
def test_closing_ends_everything_at_once() -> None:
    # What tests before this one have left in cycles, such as the traceback of an exception.
    gc.collect()
    before = (children(), os.listdir("/dev/shm"), len(os.listdir("/proc/self/fd")))
    for ends in ("with", "drop", "error"):
        it = gm.MapDataset.range(1 << 40).map(array).mp_prefetch(num_workers=2, **WORKERS).loader()
        kept = next(it)
        rows = it.report().as_dict()["workers"]["workers"]
        assert rows
        if ends == "with":
            with it:
                pass
        elif ends == "error":
            with pytest.raises(KeyError), it:
                raise KeyError
        del it
        assert int(kept[0]) == 0
        del kept
        # Processes that were killed vanish when the kernel gets to it.
        deadline = time.monotonic() + 60
        while any(Path(f"/proc/{row['pid']}").exists() for row in rows):
            assert time.monotonic() < deadline, ends
            time.sleep(0.01)
    assert children() <= before[0]
    assert (os.listdir("/dev/shm"), len(os.listdir("/proc/self/fd"))) == before[1:]


def born(x: int) -> tuple[int, int, float]:
    # So slow that both workers get elements.
    time.sleep(0.001)
    return os.getppid(), os.getpid(), float(np.random.random())


def test_workers_are_forked_by_a_process_of_one_thread_that_is_not_the_trainer() -> None:
    with gm.MapDataset.range(1 << 40).map(born).mp_prefetch(num_workers=2, **WORKERS).loader() as it:
        first: dict[int, tuple[int, float]] = {}
        while len(first) < 2:
            parent, pid, number = next(it)
            first.setdefault(pid, (parent, number))
        parents, numbers = {parent for parent, _ in first.values()}, {number for _, number in first.values()}
        assert len(parents) == 1 and os.getpid() not in parents
        assert len(numbers) == 2, "two workers have the same random numbers"
        zygote = parents.pop()
        assert len(os.listdir(f"/proc/{zygote}/task")) == 1
    assert not alive(zygote)


def test_without_that_process_workers_are_started_one_by_one(tmp_path: Path) -> None:
    def dies(x: int) -> tuple[int, int]:
        if x == 20:
            if not (tmp_path / "zygote").exists():
                (tmp_path / "zygote").touch()
                os.kill(os.getppid(), signal.SIGKILL)
                os._exit(1)
        return x, os.getppid()

    found = list(gm.MapDataset.range(60).map(dies).mp_prefetch(num_workers=1, **WORKERS))
    assert [x for x, _ in found] == list(range(60))
    assert found[-1][1] == os.getpid()


def test_one_that_is_stopped_is_not_waited_for(tmp_path: Path) -> None:
    def dies(x: int) -> tuple[int, int]:
        if x == 20 and not (tmp_path / "zygote").exists():
            (tmp_path / "zygote").touch()
            os.kill(os.getppid(), signal.SIGSTOP)
            os._exit(1)
        return x, os.getppid()

    with gm.MapDataset.range(60).map(dies).mp_prefetch(num_workers=1, deadline=2, **WORKERS).loader() as it:
        found = list(it)
    assert [x for x, _ in found] == list(range(60))
    assert found[-1][1] == os.getpid()


def test_threads_of_the_trainer_are_undisturbed() -> None:
    stop = threading.Event()
    turns = [0] * 3

    def spin(which: int) -> None:
        while not stop.is_set():
            turns[which] += 1
            # Hands the interpreter to another thread.
            time.sleep(0)

    threads = [threading.Thread(target=spin, args=(which,)) for which in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert list(gm.MapDataset.range(300).map(lambda x: x + 1).mp_prefetch(num_workers=2, **WORKERS))[-1] == 300
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert min(turns) > 0


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    given = None if arguments else textwrap.dedent(program)
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)


SCRIPT = """
import dataclasses
import gristmill as gm

OFFSET = 10
calls = []

@dataclasses.dataclass
class Pair:
    x: int
    doubled: int

class Transform:
    def __init__(self, factor):
        self.factor = factor
    def map(self, x):
        return Pair(x, helper(x) * self.factor)

def helper(x):
    calls.append(x)
    return x + OFFSET

def closure(n):
    return lambda pair: dataclasses.replace(pair, x=pair.x + n)

ds = gm.MapDataset.range(5).map(Transform(2)).map(closure(100))
found = list(ds.mp_prefetch(num_workers=2, ram_budget="1GiB", worker_heap="192MiB"))
assert found == list(ds), found
assert all(type(pair) is Pair for pair in found)
assert len(calls) == 5
print("fine", found[-1])
"""


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run("", str(tmp_path / "script.py"))
    assert (done.stdout, done.returncode) == ("fine Pair(x=104, doubled=28)\n", 0), done.stderr


def test_neither_does_standard_input_or_a_notebook() -> None:
    for program in (SCRIPT, f"names = {{'__name__': '__main__'}}; exec({SCRIPT!r}, names)"):
        done = run(program)
        assert (done.stdout, done.returncode) == ("fine Pair(x=104, doubled=28)\n", 0), done.stderr


@pytest.mark.parametrize(
    ("begins", "ends"),
    [("", "os._exit(0)"), ("", "it.close()"), ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "next(it)")],
)
def test_the_process_that_forks_workers_says_nothing(begins: str, ends: str) -> None:
    done = run(
        f"""
        import os, signal
        import gristmill as gm
        {begins}
        it = gm.MapDataset.range(1 << 40).map(lambda x: x).mp_prefetch(num_workers=2, ram_budget="1GiB").loader()
        assert next(it) == 0
        {ends}
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_functions_print_is_seen() -> None:
    done = run(
        """
        import gristmill as gm
        def speaks(x):
            print("seen", x)
            return x
        list(gm.MapDataset.range(3).map(speaks).mp_prefetch(num_workers=1, ram_budget="1GiB"))
        """
    )
    assert sorted(done.stdout.split("\n")) == ["", "seen 0", "seen 1", "seen 2"], done.stderr


def test_workers_leave_accelerators_alone_and_import_nothing_of_the_trainer() -> None:
    done = run(
        """
        import sys
        import types
        sys.modules["jax"] = types.ModuleType("jax")
        import gristmill as gm
        def seen(_):
            import os, sys
            return ("jax" in sys.modules, os.environ["JAX_PLATFORMS"], os.environ["CUDA_VISIBLE_DEVICES"])
        print(*set(gm.MapDataset.range(3).map(seen).mp_prefetch(num_workers=1, ram_budget="1GiB")))
        """
    )
    assert done.stdout == "(False, 'cpu', '')\n", done.stderr


def test_workers_end_with_their_trainer() -> None:
    program = """
        import os, signal, sys, time
        import gristmill as gm
        # So slow that workers are at work when the program ends.
        ds = gm.MapDataset.range(1 << 40).map(lambda x: time.sleep(0.01) or x)
        it = ds.mp_prefetch(num_workers=2, ram_budget="1GiB").loader()
        next(it)
        print(*[row["pid"] for row in it.report().as_dict()["workers"]["workers"]], flush=True)
        if "kill" in sys.argv: os.kill(os.getpid(), signal.SIGKILL)
        """
    for arguments in (["-c", textwrap.dedent(program), "kill"], ["-c", textwrap.dedent(program)]):
        done = run("", *arguments)
        pids = [int(pid) for pid in done.stdout.split()]
        assert pids and done.returncode == (-9 if "kill" in arguments else 0), done.stderr
        deadline = time.monotonic() + 120
        while any(alive(pid) for pid in pids):
            assert time.monotonic() < deadline, "a worker outlived its trainer"
            # Looks again: a process that is no child cannot be waited for.
            time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
