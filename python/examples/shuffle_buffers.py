"""Compares three ways to shuffle by the distance that records move."""

import gristmill as gm
import numpy as np

COUNT, FILES = 10_000, 20
numbers = gm.MapDataset.range(COUNT)


def moved(ds: gm.MapDataset | gm.IterDataset) -> str:
    """Returns the mean distance that records move. Checks that no record is lost or repeated."""
    order = np.fromiter(ds, np.int64)
    assert sorted(order) == list(range(COUNT))
    return f"{np.abs(order - np.arange(COUNT)).mean() / COUNT:6.1%} of the data on average"


# Random access: a permutation of the whole dataset, in constant memory, without a buffer.
print("shuffle                      ", moved(numbers.shuffle(seed=1)))

# A stream: a window is held in memory, and its width limits how far a record moves.
window = numbers.to_iter_dataset().seed(1).window_shuffle(500)
print("window_shuffle               ", moved(window))

# Interleaved files before the window: records of all files meet in it.
size = COUNT // FILES
files = [numbers[at : at + size].to_iter_dataset() for at in range(0, COUNT, size)]
mixed = gm.IterDataset.interleave(files, cycle_length=FILES).seed(1).window_shuffle(500)
print("interleave and window_shuffle", moved(mixed))
