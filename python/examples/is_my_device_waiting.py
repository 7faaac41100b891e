"""Measures whether a training loop waits for its batches: `python is_my_device_waiting.py`."""

import itertools
import time

import gristmill as gm
import numpy as np

STEP = 0.005


def decode(x: int) -> dict[str, object]:
    """Simulates decoding an image: it takes time and lets other threads run."""
    time.sleep(0.002)
    return {"image": np.full((32, 32, 3), x % 256, np.uint8)}


def train(batch: object) -> None:
    """Simulates a step on an accelerator that this loop waits for."""
    time.sleep(STEP)


def run(threads: int) -> gm.Metrics:
    ds = gm.MapDataset.range(640).shuffle(seed=1).map(decode).to_iter_dataset().batch(8)
    with ds.loader(threads=threads) as batches, gm.measure(batches, exclude_first=2) as measured:
        for batch in measured:
            train(batch)
        return measured.metrics()


def at_best() -> gm.Metrics:
    """Runs the same steps on a single batch in memory."""
    batch = {"image": np.zeros((8, 32, 32, 3), np.uint8)}
    with gm.measure(itertools.repeat(batch, 80), exclude_first=2) as measured:
        for batch in measured:
            train(batch)
        return measured.metrics()


def main() -> None:
    best = at_best()
    for threads in (0, 16):
        metrics = run(threads).beside(best)
        print(f"--- {threads} threads\n{metrics}")
        assert metrics.as_dict()["steps"] == 78


if __name__ == "__main__":
    main()
