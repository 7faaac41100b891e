"""Rows of tokens and mixes for Levanter, in place of its cache and its `MixtureDataset`: `python levanter_dataset.py FILE.bin FILE.bin`.

`CausalLmDataset(Rows(ds), Pos, eos_id=…)` is a training set for Levanter's `DataLoader`.
"""

import asyncio
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gristmill as gm
from levanter.data import AsyncDataset, MixtureDataset
from levanter.schedule import BatchSchedule

Weights = Mapping[str, float]


class Rows(AsyncDataset[Any]):  # pyright: ignore[reportGeneralTypeIssues]
    """Rows of a `MapDataset`. Row i does not depend on the rows before it, so Levanter's step is the whole state of a resume."""

    def __init__(self, ds: gm.MapDataset[Any], column: str = "tokens", threads: int = 2) -> None:
        super().__init__()
        self.ds, self.column = ds, column
        self.parts, self.pool = threads, ThreadPoolExecutor(threads)

    def is_finite(self) -> bool:
        return len(self.ds) < sys.maxsize

    async def async_len(self) -> int:
        return len(self.ds)

    # Versions of 2025 and earlier, whose datasets may grow, call these two.
    async def final_length_is_known(self) -> bool:
        return True

    async def current_len(self) -> int | None:
        return len(self.ds) if self.is_finite() else None

    async def get_batch(self, indices: Sequence[int]) -> Sequence[Any]:
        loop = asyncio.get_running_loop()
        size = -(-len(indices) // self.parts) or 1
        parts = [indices[at : at + size] for at in range(0, len(indices), size)]
        read = await asyncio.gather(*(loop.run_in_executor(self.pool, self.rows, part) for part in parts))
        return [row for part in read for row in part]

    def rows(self, indices: Sequence[int]) -> list[Any]:
        return [self.ds[int(index)][self.column] for index in indices]


def mixed(
    datasets: Mapping[str, gm.MapDataset[Any]], train_weights: Weights | Iterable[tuple[int, Weights]], schedule: Any
) -> gm.MapDataset[Any]:
    """Mixes by Levanter's `train_weights`: weights by name, or pairs of a training step and the weights from that step on."""
    stages = [(0, train_weights)] if isinstance(train_weights, Mapping) else train_weights
    entries = [(schedule.global_data_offset_by_step(step), weights) for step, weights in stages]
    return gm.MapDataset.mix(datasets, entries, at_end="repeat")


async def cost(ds: Any, batch: int = 32, batches: int = 128) -> float:
    """Returns the CPU time of a row in microseconds."""
    start = time.process_time()
    for step in range(batches):
        await ds.get_batch(range(batch * step, batch * (step + 1)))
    return (time.process_time() - start) / (batch * batches) * 1e6


async def main(paths: Sequence[str]) -> None:
    # The first file alone, then all files.
    weights = [(0, {paths[0]: 1.0}), (64, dict.fromkeys(paths, 1.0))]
    sets = {path: gm.MapDataset.crops(path, seq_len=1024, layout="u16").shuffle(seed=1) for path in paths}
    ours = Rows(mixed(sets, weights, BatchSchedule(32)))
    stages = [(step * 32, stage) for step, stage in weights]
    theirs = MixtureDataset({path: Rows(ds) for path, ds in sets.items()}, stages, block_size=2048, key=0)
    print(f"MixtureDataset: {await cost(theirs):.0f} µs per row, gm.MapDataset.mix: {await cost(ours):.0f} µs per row")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
