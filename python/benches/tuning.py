"""What is tuned by itself against the best fixed setting: sources that wait, functions that hold the interpreter's lock or let go of it.

`python python/benches/tuning.py [-s SECONDS] [NAME …]`. Of each shape the fixed settings of a grid that goes far beyond the cores run for
two seconds each, in batches of 8; then `threads="auto"` or `mp_prefetch()` runs for `-s` seconds, of which the last four are counted, and
the best of the grid as long again behind it. Wall time, on several cores.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import gristmill as gm
from measure import table

GRID = 2.0
LAST = 4.0
BATCH = 8
THREADS = [1, 2, 4, 8, 16, 32, 64]
WORKERS = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 4), (2, 16), (2, 32), (4, 16)]


class Waits:
    """A source that answers after so many milliseconds."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> int:
        time.sleep(self.ms / 1e3)
        return index


def lets_go(x: int) -> int:
    """Waits for 3 ms, while others have the interpreter."""
    time.sleep(0.003)
    return x


def holds(x: int) -> int:
    """Computes for a millisecond, with the interpreter."""
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end:
        pass
    return x


def stream(ds: gm.MapDataset) -> gm.IterDataset:
    return ds.to_iter_dataset().batch(BATCH)


SHAPES: dict[str, Callable[[], gm.IterDataset]] = {
    "source 2 ms": lambda: stream(gm.MapDataset.source(Waits(2))),
    "source 5 ms": lambda: stream(gm.MapDataset.source(Waits(5))),
    "lets go 3 ms": lambda: stream(gm.MapDataset.range(1 << 40).map(lets_go)),
    "holds 1 ms": lambda: stream(gm.MapDataset.range(1 << 40).map(holds)),
}


def rate(loader: gm.DatasetIterator, seconds: float, last: float) -> tuple[float, dict[str, Any]]:
    """Elements per second of the last so many, and the report."""
    with loader:
        start = time.perf_counter()
        counted, since = 0, start
        while (now := time.perf_counter()) - start < seconds:
            if now - start < seconds - last:
                counted, since = 0, now
            next(loader)
            counted += BATCH
        return counted / (time.perf_counter() - since), loader.report().as_dict()


def setting(report: dict[str, Any]) -> str:
    """Workers and threads of each."""
    workers = report["workers"]
    return str(report["threads"]) if workers is None else f"{len(workers['workers'])} × {workers['threads_per_worker']}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-s", "--seconds", type=float, default=30)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    rows = []
    for name, make in SHAPES.items():
        if options.names and not any(part in name for part in options.names):
            continue
        runs: dict[str, tuple[Callable[[Any], gm.DatasetIterator], list[Any]]] = {
            "threads": (lambda n, make=make: make().loader(threads=n), THREADS),
            "workers": (
                lambda n, make=make: make().mp_prefetch(num_workers=n[0], threads_per_worker=n[1], ram_budget="8GiB").loader(),
                WORKERS,
            ),
        }
        for who, (start, grid) in runs.items():
            fixed = {str(at): rate(start(at), GRID, GRID / 2)[0] for at in grid}
            best = max(grid, key=lambda at: fixed[str(at)])
            auto = make().loader(threads="auto") if who == "threads" else make().mp_prefetch(ram_budget="8GiB").loader()
            tuned, report = rate(auto, options.seconds, LAST)
            again, _ = rate(start(best), LAST + GRID, LAST)
            told = {
                "reached": f"{100 * tuned / again:.1f} %",
                "tuned /s": f"{tuned:.0f}",
                "best /s": f"{again:.0f}",
                "settled": setting(report),
                "best": " × ".join(map(str, best)) if isinstance(best, tuple) else str(best),
            }
            rows.append((f"{name}, {who}", told))
            print(f"{name}, {who}: {told}; fixed {dict((at, round(found)) for at, found in fixed.items())}", flush=True)
    print(table(["shape", "reached", "tuned /s", "best /s", "settled", "best"], rows))


if __name__ == "__main__":
    main()
