"""Whether a device waits whose steps take 5 ms, and batches 80 % of that: beside Grain and PyTorch's DataLoader where they are installed.

`python python/benches/waiting.py [-s STEPS] [-r ROUNDS]`. The device is a sleep, as in MLPerf Storage, and AU is counted as there,
without the first steps. A batch has 16 elements from a Python function which for 0.25 ms each either waits, as for a disk, or
computes and holds the interpreter. All take turns; a figure is the median over the rounds. Wall time, on several cores.
"""

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gristmill as gm
import numpy as np
from measure import table

STEP = 0.005
BATCH = 16
WORK = 0.8 * STEP / BATCH
# Workers are started in the first steps.
EXCLUDED = 20


def waits(x: int) -> Any:
    """An element that has to be waited for."""
    time.sleep(WORK)
    return np.full((64, 64), x, np.float32)


def computes(x: int) -> Any:
    """An element that takes the interpreter."""
    end = time.perf_counter() + WORK
    while time.perf_counter() < end:
        pass
    return np.full((64, 64), x, np.float32)


@contextlib.contextmanager
def closing(batches: Any) -> Iterator[Iterable[Any]]:
    """Batches of a loader of gristmill, until it is through."""
    with batches:
        yield batches


def candidates(work: Callable[[int], Any]) -> dict[str, Callable[[int], contextlib.AbstractContextManager[Iterable[Any]]]]:
    """What makes that many batches, by name."""

    def numbers(steps: int) -> Any:
        return gm.MapDataset.range(steps * BATCH).map(work).to_iter_dataset().batch(BATCH)

    rows: dict[str, Callable[[int], contextlib.AbstractContextManager[Iterable[Any]]]] = {
        "inline": lambda steps: closing(numbers(steps).loader()),
        "4 threads": lambda steps: closing(numbers(steps).loader(threads=4)),
        "2 workers": lambda steps: closing(numbers(steps).mp_prefetch(num_workers=2).loader()),
    }
    with contextlib.suppress(ImportError):
        import grain
        from absl import flags

        # Its workers read flags, which somebody has to parse.
        flags.FLAGS(["waiting.py"])

        def theirs(steps: int, **options: int) -> Any:
            ds = grain.MapDataset.range(steps * BATCH).map(work)
            return ds.to_iter_dataset(grain.ReadOptions(**options)).batch(BATCH)

        def in_workers(steps: int) -> Any:
            # Each worker makes batches of its own, which take turns.
            ds = theirs(steps, num_threads=1, prefetch_buffer_size=BATCH)
            return ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))

        rows["Grain: 16 threads, as it is"] = lambda steps: contextlib.nullcontext(
            theirs(steps, num_threads=16, prefetch_buffer_size=500)
        )
        rows["Grain: 2 workers"] = lambda steps: contextlib.nullcontext(in_workers(steps))
    with contextlib.suppress(ImportError):
        from torch.utils.data import DataLoader, Dataset

        class Worked(Dataset[Any]):
            """The same elements."""

            def __init__(self, n: int) -> None:
                self.n = n

            def __len__(self) -> int:
                return self.n

            def __getitem__(self, index: int) -> Any:
                return work(index)

        rows["DataLoader: 2 workers"] = lambda steps: contextlib.nullcontext(
            DataLoader(Worked(steps * BATCH), batch_size=BATCH, num_workers=2)
        )
    return rows


def run(make: Callable[[int], contextlib.AbstractContextManager[Iterable[Any]]], steps: int) -> dict[str, Any]:
    """What a device sees of it."""
    # More than are taken: how long a loader takes to end is another matter.
    with make(2 * steps + EXCLUDED) as batches, gm.measure(batches, exclude_first=EXCLUDED, samples=lambda _: BATCH) as measured:
        for _ in itertools.islice(measured, steps + EXCLUDED):
            time.sleep(STEP)
        return measured.metrics().as_dict()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-s", "--steps", type=int, default=400)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    options = parser.parse_args()
    for work in (waits, computes):
        rows = candidates(work)
        seen: dict[str, list[dict[str, Any]]] = {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, make in rows.items():
                seen[name].append(run(make, options.steps))
        columns = ["AU %", "stall %", "next() p50 us", "p99 us", "steps/s"]
        figures = ["utilisation", "stall", "next_p50_us", "next_p99_us", "steps_per_s"]
        told = []
        for name, runs in seen.items():
            middle = [statistics.median(run[figure] for run in runs) for figure in figures]
            scaled = [100 * middle[0], 100 * middle[1], *middle[2:]]
            told.append((name, {column: f"{value:.1f}" for column, value in zip(columns, scaled, strict=True)}))
        print(table([f"a function that {work.__name__}", *columns], told), end="\n\n")


if __name__ == "__main__":
    main()
