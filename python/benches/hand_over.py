"""Batches of 16 MiB from worker processes, in bytes per second, beside copies of as many bytes in one process.

A copy between two buffers stays in the processor's cache where that is large enough; batches come out of memory, and so they
are held against copies out of an array as large as the file that they are read from, into buffers as many as are in use.
"""

import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np

MIB = 1 << 20
ROW, ROWS = 64 << 10, 256
BATCH = ROW * ROWS
#: Batches in a file, and buffers that are written in turn.
IN_FILE, IN_USE = 4, 4

Row = tuple[str, dict[str, str]]


def copied(sources: int, targets: int) -> Iterator[int]:
    """Copies without end."""
    source, target = np.ones((sources, BATCH), np.uint8), np.ones((targets, BATCH), np.uint8)
    for at, to in zip(cycle(range(sources)), cycle(range(targets)), strict=False):
        np.copyto(target[to], source[at])
        yield BATCH


def filled(targets: int) -> Iterator[int]:
    """Memory that is used in turn, filled without end."""
    target = np.ones((targets, BATCH), np.uint8)
    for to in cycle(range(targets)):
        target[to].fill(7)
        yield BATCH


def gigabytes(batches: Iterable[int], count: int) -> float:
    """Of `count` batches a second, once memory that nobody has touched is touched."""
    reading = iter(batches)
    sum(islice(reading, count // 4))
    start = time.perf_counter()
    total = sum(islice(reading, count))
    return total / (time.perf_counter() - start) / 1e9


def ours(ds: gm.IterDataset) -> Callable[[], float]:
    def run() -> float:
        with ds.loader() as it:
            return gigabytes((batch["x"].nbytes for batch in it), 160)

    return run


def grains(row: Any) -> Callable[[], float]:
    import grain
    from absl import flags

    def run() -> float:
        flags.FLAGS(["bench"], known_only=True)
        rows = grain.MapDataset.range(1 << 20).map(lambda _: {"x": row}).to_iter_dataset().batch(ROWS)
        it = iter(rows.mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers=1)))
        rate = gigabytes((batch["x"].nbytes for batch in it), 24)
        it.close()
        return rate

    return run


def loaders(row: Any) -> Callable[[], float]:
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset[Any]):
        """The same row again and again."""

        def __len__(self) -> int:
            return 1 << 20

        def __getitem__(self, index: int) -> Any:
            return {"x": row}

    return lambda: gigabytes((b["x"].nbytes for b in DataLoader(Rows(), batch_size=ROWS, num_workers=1)), 24)


def hand_over(folder: Path, rounds: int, installed: Collection[str]) -> list[Row]:
    """A row for each way to make batches; all take turns."""
    np.save(folder / "rows.npy", np.ones((IN_FILE * ROWS, ROW), np.uint8))
    native = gm.MapDataset.npy(folder / "rows.npy", field="x").repeat().to_iter_dataset().batch(ROWS)
    source = np.ones((IN_FILE * ROWS, ROW), np.uint8)
    numbers = gm.MapDataset.range(1 << 40)
    whole = numbers.map(lambda x: {"x": source[x % IN_FILE * ROWS :][:ROWS].reshape(-1)}).to_iter_dataset()
    rows = numbers.map(lambda x: {"x": source[x % len(source)]}).to_iter_dataset().batch(ROWS)
    made = numbers.map(lambda x: {"x": np.full(BATCH, x & 255, np.uint8)}).to_iter_dataset()
    made_rows = numbers.map(lambda x: {"x": np.full(ROW, x & 255, np.uint8)}).to_iter_dataset().batch(ROWS)
    runs: dict[str, dict[str, Callable[[], float]]] = {
        "copies of 16 MiB, one buffer to another": {"gristmill": lambda: gigabytes(copied(1, 1), 100)},
        f"16 MiB filled, {IN_USE} buffers in turn": {"gristmill": lambda: gigabytes(filled(IN_USE), 100)},
        "copies of 16 MiB out of 64 MiB": {"gristmill": lambda: gigabytes(copied(IN_FILE, IN_USE), 100)},
        "16 MiB: rows of a file, a native worker": {"gristmill": ours(native.mp_prefetch())},
        "16 MiB: whole, a Python worker": {"gristmill": ours(whole.mp_prefetch(num_workers=1))},
        "16 MiB: whole, 2 Python workers": {"gristmill": ours(whole.mp_prefetch(num_workers=2))},
        "16 MiB: rows stacked, a Python worker": {"gristmill": ours(rows.mp_prefetch(num_workers=1))},
        "16 MiB: rows stacked, 2 Python workers": {"gristmill": ours(rows.mp_prefetch(num_workers=2))},
    }
    runs["16 MiB: rows of `np.full`, a Python worker"] = {"gristmill": ours(made_rows.mp_prefetch(num_workers=1))}
    runs |= {
        f"16 MiB: `np.full`, {n} Python worker{'s' * (n > 1)}": {"gristmill": ours(made.mp_prefetch(num_workers=n))} for n in (1, 2)
    }
    if "Grain" in installed:
        runs["16 MiB: rows stacked, a Python worker"]["Grain"] = grains(source[0])
    if "DataLoader" in installed:
        runs["16 MiB: rows stacked, a Python worker"]["DataLoader"] = loaders(source[0])
    measured: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name, who, run in [(name, who, run) for name, each in runs.items() for who, run in each.items()]:
            measured.setdefault((name, who), []).append(run())
    copies = statistics.median(measured["copies of 16 MiB out of 64 MiB", "gristmill"])
    told: list[Row] = []
    fills = statistics.median(measured[f"16 MiB filled, {IN_USE} buffers in turn", "gristmill"])
    for name, each in runs.items():
        cells = {who: f"{statistics.median(measured[name, who]):.1f} GB/s" for who in each}
        # 10 GB/s where copies make 13.
        asked = {} if name.startswith("copies") or "filled" in name else {"asked": f"≥ {copies * 10 / 13:.1f} GB/s"}
        if "np.full" in name:
            asked = {"asked": f"≥ {fills * 0.8:.1f} GB/s"}
        told.append((name, asked | cells))
    return told
