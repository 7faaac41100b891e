"""What an element costs on its way through Python, beside a bare loop, Grain and PyTorch's DataLoader where they are installed.

`python python/benches/elements.py [-n ELEMENTS] [-r ROUNDS]`, with an optimised build of the package: `maturin develop --profile dist`.
Everything takes turns in one process; a figure is elements per second of CPU time, that of children included, the median over
the rounds, and in brackets as a multiple of the bare loop that ran beside it.
"""

import argparse
import contextlib
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import gristmill as gm
import numpy as np
from measure import per_cpu_second

BATCH = 256


def double(x: int) -> int:
    """The function that is mapped."""
    return 2 * x


def consume(batches: Iterable[Any]) -> int:
    """Reads everything; how many elements there were."""
    return sum(len(batch) for batch in batches)


def bare(n: int) -> int:
    """The loop that nothing can beat."""
    out = []
    for x in range(n):
        out.append(double(x))
        if len(out) == BATCH:
            np.array(out)
            out = []
    return n


def candidates() -> dict[str, Callable[[int], int]]:
    """What is measured, by name."""
    numbers = gm.MapDataset.range
    rows: dict[str, Callable[[int], int]] = {
        "a bare loop": bare,
        "range.shuffle.batch": lambda n: consume(numbers(n).shuffle(1).batch(BATCH)),
        "range.shuffle.to_iter.batch": lambda n: consume(numbers(n).shuffle(1).to_iter_dataset().batch(BATCH)),
        "range.shuffle.to_iter.batch, 2 threads": lambda n: consume(
            numbers(n).shuffle(1).to_iter_dataset().batch(BATCH).loader(threads=2)
        ),
        "range.map.batch": lambda n: consume(numbers(n).map(double).batch(BATCH)),
        "range.shuffle.map.to_iter.batch": lambda n: consume(
            numbers(n).shuffle(1).map(double).to_iter_dataset().batch(BATCH)
        ),
        "range.filter.map.to_iter.batch": lambda n: consume(
            numbers(n).filter(bool).map(double).to_iter_dataset().batch(BATCH)
        ),
    }
    with contextlib.suppress(ImportError):
        import grain

        few = grain.MapDataset.range
        # A hundredth as many: it takes that much longer.
        rows["grain: range.map.batch"] = lambda n: consume(few(n // 50).map(double).batch(BATCH))
        rows["grain: range.shuffle.batch"] = lambda n: consume(few(n // 50).shuffle(1).batch(BATCH))
    with contextlib.suppress(ImportError):
        from torch.utils.data import DataLoader, Dataset

        class Doubles(Dataset[int]):
            """The same numbers."""

            def __init__(self, n: int) -> None:
                self.n = n

            def __len__(self) -> int:
                return self.n

            def __getitem__(self, index: int) -> int:
                return double(index)

        rows["DataLoader: map, batch"] = lambda n: consume(DataLoader(Doubles(n // 5), batch_size=BATCH))
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", "--elements", type=int, default=2_000_000)
    parser.add_argument("-r", "--rounds", type=int, default=7)
    options = parser.parse_args()
    rows = candidates()
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(options.rounds):
        for name, run in rows.items():
            rates[name].append(per_cpu_second(lambda run=run: run(options.elements)))
    for name, measured in rates.items():
        share = statistics.median(rate / loop for rate, loop in zip(measured, rates["a bare loop"], strict=True))
        print(f"{name:42} {statistics.median(measured) / 1e6:8.2f} M/s   ({share:.2f})")
    for other in ("grain", "DataLoader"):
        if not any(name.startswith(other) for name in rates):
            print(f"{other}: not installed")


if __name__ == "__main__":
    main()
