"""Finds the stage that a slow pipeline waits for: `python reading_the_report.py`."""

import time

import gristmill as gm
import numpy as np


def decode(x: int) -> dict[str, object]:
    """Simulates decoding an image: it takes time and lets other threads run."""
    time.sleep(0.002)
    return {"image": np.full((32, 32, 3), x % 256, np.uint8)}


def train(batch: object) -> None:
    """Simulates a step on an accelerator."""
    time.sleep(0.01)


def run(threads: int) -> gm.Report:
    ds = gm.MapDataset.range(320).shuffle(seed=1).map(decode).to_iter_dataset().batch(16)
    with ds.loader(threads=threads) as batches:
        for batch in batches:
            train(batch)
        return batches.report()


def main() -> None:
    for threads in (0, 4):
        report = run(threads)
        # The text ends with the verdict: the stage that limits the run, and advice.
        print(f"--- {threads} threads\n{report}")
        # The figures as numbers, for a log or a test.
        numbers = report.as_dict()
        slowest = max(numbers["stages"], key=lambda stage: stage["wait_share"])
        share = numbers["consumer_wait_share"]
        print(f"waited {share:.0%} of the time, most of it for {slowest['name']}: {slowest['wait_share']:.0%}")
        # `decode` only waits, so it could use more than four threads, on any number of cores.
        print(f"{slowest['name']} spent {slowest['blocked_s'] / slowest['self_s']:.0%} of its own time waiting")


if __name__ == "__main__":
    main()
