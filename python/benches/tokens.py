"""Token ids from files and tables, beside what NumPy makes of the same bytes, in one run.

`python python/benches/tokens.py [-r ROUNDS]`, with an optimised build of the package. Crops are batches of 256 times 1024 `uint16` ids,
out of a mapped file of 100 million, as `int32`; rates are of the bytes of the output, and the limit is a copy of as many into new
memory. Sequences are rows of an Arrow table, packed into rows of 2048; rates are per second of CPU time. All take turns, and rates are
medians.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
from measure import per_cpu_second, table

IDS, SEQ_LEN, BATCH = 100_000_000, 1024, 256
SEQUENCES = 500_000

Work = Callable[[], float]


def per_second(batches: Any, count: int) -> float:
    """Gigabytes a second of `count` batches behind the first."""
    next(batches)
    start = time.perf_counter()
    total = sum(batch.nbytes for batch in islice(batches, count))
    return total / (time.perf_counter() - start) / 1e9


def crops(folder: Path, count: int) -> dict[str, Work]:
    """Batches of random crops, by everybody who can make them."""
    path = folder / "train.bin"
    np.random.default_rng(0).integers(0, 50_000, IDS, dtype=np.uint16).tofile(path)
    ids = np.memmap(path, dtype=np.uint16, mode="r")
    windows = np.lib.stride_tricks.sliding_window_view(ids, SEQ_LEN)
    source = np.ones((64, BATCH, SEQ_LEN), np.int32)
    ds = gm.MapDataset.random_crops(path, seq_len=SEQ_LEN, seed=1, layout="u16").to_iter_dataset().batch(BATCH)

    def numpy() -> Any:
        rng = np.random.default_rng(1)
        while True:
            yield windows[rng.integers(0, len(windows), BATCH)].astype(np.int32)

    def copies() -> Any:
        while True:
            yield from (part.copy() for part in source)

    def ours(threads: int) -> Work:
        def run() -> float:
            with ds.loader(threads=threads) as it:
                return per_second((batch["tokens"] for batch in it), count)

        return run

    return {
        "copies into new memory": lambda: per_second(copies(), count),
        "NumPy: windows[starts].astype(int32)": lambda: per_second(numpy(), count),
        "random_crops, batch": ours(0),
        "random_crops, batch, one thread ahead": ours(1),
    }


def packed(shortest: int, longest: int) -> dict[str, Work]:
    """Sequences of a table through packing, in millions."""
    import pyarrow as pa

    lengths = np.random.default_rng(0).integers(shortest, longest, SEQUENCES)
    ends = np.cumsum(lengths)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    values = np.arange(offsets[-1], dtype=np.int32)
    table = pa.table({"tokens": pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))})
    sequences = gm.MapDataset.arrow(table).to_iter_dataset()
    length = {"tokens": 2048}
    stages = {
        "first fit": sequences.first_fit_pack(length=length, num_packing_bins=64),
        "window": sequences.window_pack(length=length, window=1024),
        "concat then split": sequences.concat_then_split_pack(length=length),
    }

    def run(ds: gm.IterDataset) -> Work:
        def work() -> float:
            sum(1 for _ in ds.batch(32))
            return SEQUENCES / 1e6

        return lambda: per_cpu_second(work)

    name = f"sequences of {shortest} to {longest} ids, "
    return {name + of: run(ds) for of, ds in stages.items()}


def states(count: int) -> dict[str, Work]:
    """Microseconds of `get_state`."""
    pool = [{"tokens": np.arange(20 + n, dtype=np.int32)} for n in range(97)]
    sequences = gm.MapDataset.range(1 << 40).map(lambda x: pool[x * 31 % 97]).to_iter_dataset()
    pipelines = {
        "get_state: shuffle, batch": gm.MapDataset.range(1 << 40).shuffle(seed=1).to_iter_dataset().batch(32),
        "get_state: first fit, batch": sequences.first_fit_pack(length={"tokens": 128}, num_packing_bins=16).batch(4),
        "get_state: window, batch": sequences.window_pack(length={"tokens": 1024}, window=256).batch(4),
    }

    def run(ds: gm.IterDataset) -> Work:
        def work() -> float:
            with ds.loader() as it:
                next(it)
                times: list[float] = []
                for _ in islice(it, count):
                    start = time.perf_counter()
                    it.get_state()
                    times.append(time.perf_counter() - start)
                return statistics.median(times) * 1e6

        return work

    return {name: run(ds) for name, ds in pipelines.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("-r", "--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        units = {
            "GB/s": crops(Path(folder), 300),
            "M/s": packed(16, 48) | packed(16, 240),
            "µs": states(200),
        }
        runs = [(name, unit, run) for unit, named in units.items() for name, run in named.items()]
        measured: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, _, run in runs:
                measured.setdefault(name, []).append(run())
    print(table(("figure", "median"), [(name, {"median": f"{statistics.median(measured[name]):.2f} {unit}"}) for name, unit, _ in runs]))


if __name__ == "__main__":
    main()
