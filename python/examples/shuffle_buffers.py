"""Three ways to shuffle, and how far each of them moves a record."""

import gristmill as gm
import numpy as np

COUNT, FILES = 10_000, 20
numbers = gm.MapDataset.range(COUNT)


def moved(ds: gm.MapDataset | gm.IterDataset) -> str:
    """How far records are from where they lie, and whether the whole is the same again."""
    order = np.fromiter(ds, np.int64)
    assert sorted(order) == list(range(COUNT))
    return f"{np.abs(order - np.arange(COUNT)).mean() / COUNT:6.1%} of the data on average"


# Random access: a permutation of everything, in constant memory. Nothing is buffered.
print("shuffle                      ", moved(numbers.shuffle(seed=1)))

# A stream: a window is held in memory, and a record moves no further than it is wide.
window = numbers.to_iter_dataset().seed(1).window_shuffle(500)
print("window_shuffle               ", moved(window))

# Several files in turn in front of the window: records of all of them meet in it.
size = COUNT // FILES
files = [numbers[at : at + size].to_iter_dataset() for at in range(0, COUNT, size)]
mixed = gm.IterDataset.interleave(files, cycle_length=FILES).seed(1).window_shuffle(500)
print("interleave and window_shuffle", moved(mixed))
