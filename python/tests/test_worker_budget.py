"""The RAM budget, watched from outside over all processes that evaluate Python functions."""

import os
import threading
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

MIB = 1 << 20


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, as of now."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        found += [below for child in children for below in (child, *descendants(child))]
    return found


def rollup(pid: int, *keys: str) -> int:
    """Bytes of those kinds of memory; pages that several processes have are divided among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(keys))


def used() -> int:
    """What counts against the budget: private memory below this process, and shared memory."""
    below = sum(rollup(pid, "Pss_Anon:", "Pss_Shmem:") for pid in descendants(os.getpid()))
    return below + rollup(os.getpid(), "Pss_Shmem:")


def most_while(consume: Callable[[], Any]) -> tuple[int, int]:
    """The most that was seen while `consume` ran, and how often it was looked at."""
    ended, seen = threading.Event(), [used()]

    def watch() -> None:
        while not ended.is_set():
            seen.append(used())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        consume()
    finally:
        ended.set()
        watcher.join()
    return max(seen), len(seen)


def large(x: int) -> dict[str, Any]:
    return {"x": np.full(8 * MIB, x % 251, np.uint8)}


def rows(x: int) -> dict[str, Any]:
    return {"x": np.full(64 << 10, x % 251, np.uint8), "n": x}


def greedy(x: int) -> int:
    """Takes all memory that there is, now and then, and gives it back."""
    if x % 20 == 7:
        taken = []
        try:
            while True:
                taken.append(np.ones(4 * MIB, np.uint8))
        except MemoryError:
            del taken
    return x


def reads(batches: Iterable[Any]) -> None:
    assert sum(1 for _ in batches) > 0


def hoards(batches: Iterable[Any]) -> None:
    """Keeps more than there is room for: from then on copies, which are the trainer's own."""
    kept = list(islice(batches, 60))
    assert [int(batch["x"].flat[0]) for batch in kept] == [int(batch["x"].flat[-1]) for batch in kept]


CASES: dict[str, tuple[gm.IterDataset, Callable[[Iterable[Any]], None]]] = {
    "large elements": (gm.MapDataset.range(100).map(large).to_iter_dataset(), reads),
    "batches": (gm.MapDataset.range(6400).map(rows).to_iter_dataset().batch(64), reads),
    "a consumer that hoards": (gm.MapDataset.range(200).map(large).to_iter_dataset(), hoards),
    "greedy functions": (gm.MapDataset.range(100).map(greedy).to_iter_dataset(), reads),
}


@pytest.mark.parametrize("name", CASES)
def test_the_budget_holds_whatever_functions_do(name: str) -> None:
    ds, consume = CASES[name]
    budget = 640 * MIB
    workers = ds.mp_prefetch(num_workers=2, ram_budget=budget, worker_heap=200 * MIB)

    def run() -> None:
        with workers.loader() as it:
            consume(it)

    before = used()
    most, samples = most_while(run)
    assert samples > 2 and most > before + 10 * MIB, "nothing was seen"
    assert most <= budget, f"{most / MIB:.0f} MiB of {budget / MIB:.0f}"
