"""Python functions in worker processes: a stream is stopped with two workers and resumed without workers.

The last line has no `if __name__` guard, and the function is a lambda: both are fine.
"""

import gristmill as gm
import numpy as np


def batches() -> gm.IterDataset:
    """Returns rows of equal length, packed from records of many lengths. The rows do not depend on the workers."""
    numbers = gm.MapDataset.range(5000).shuffle(seed=3)
    kept = numbers.filter(lambda number: number % 7 != 0)
    ragged = kept.map(lambda number: {"tokens": np.arange(number % 40 + 1, dtype=np.int32)})
    return ragged.to_iter_dataset().first_fit_pack(length={"tokens": 64}, num_packing_bins=8).batch(16)


here = [batch["tokens"].sum() for batch in batches().loader()]

in_workers = batches().mp_prefetch(num_workers=2, ram_budget="2GiB")
with in_workers.loader() as data:
    there = [next(data)["tokens"].sum() for _ in range(20)]
    state = data.get_state()
    print(f"{data.report().as_dict()['workers']['ram_budget'] >> 30} GiB for", in_workers)

with batches().loader() as data:
    data.set_state(state)
    there += [batch["tokens"].sum() for batch in data]

assert here == there
print(len(here), "batches, the same by 0 and by 2 workers")
