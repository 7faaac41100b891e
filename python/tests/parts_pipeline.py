"""The pipeline of several processes: three sources, mixed, filtered and packed, in global batches."""

import gristmill as gm
import numpy as np

# One, two, three, four and six processes divide it.
BATCH = 12


def pipeline() -> gm.IterDataset:
    def sequence(x: int) -> dict[str, np.ndarray]:
        return {"ids": np.full(x % 5 + 1, x, np.int32)}

    parts = [gm.MapDataset.range(start, 1000, 3).shuffle(start) for start in (1, 2, 3)]
    mixed = gm.MapDataset.mix(parts, weights=[3, 2, 1]).filter(lambda x: x % 7 != 0).map(sequence)
    return mixed.to_iter_dataset().window_pack(length={"ids": 8}, window=32).batch(BATCH, drop_remainder=True)
