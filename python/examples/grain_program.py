"""A program for Grain that runs on gristmill: only the first two lines are new.

It trains, stops, and resumes with other weights of its mix and another number of workers.
"""

import gristmill.compat.grain

gristmill.compat.grain.install()

from typing import Any

import grain  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]
import numpy as np
from numpy.typing import NDArray


def document(index: int) -> dict[str, NDArray[np.int32]]:
    """Returns token ids, as if read from a file."""
    return {"tokens": np.arange(index % 50 + 1, dtype=np.int32)}


def part(start: int) -> Any:
    ds = grain.MapDataset.range(start, start + 2000).seed(start).shuffle().map(document)
    return ds.to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=64))


def batches(weights: dict[str, float], workers: int) -> Any:
    parts = {"web": part(0), "books": part(7000)}
    mixed = grain.IterDataset.mix({name: parts[name] for name in weights}, weights)
    packed = grain.experimental.FirstFitPackIterDataset(mixed, length_struct={"tokens": 128}, num_packing_bins=8)
    options = grain.MultiprocessingOptions(num_workers=workers)
    return packed.batch(8, drop_remainder=True).mp_prefetch(options)


def main() -> None:
    iterator = iter(batches({"web": 1, "books": 1}, workers=0))
    batch = [next(iterator) for _ in range(10)][-1]
    state = iterator.get_state()
    print("stopped at", batch["tokens"].shape, "with", int((batch["tokens_segment_ids"] > 0).sum()), "tokens")

    # The same stream with workers. Grain would refuse this state, or read other data.
    same = iter(batches({"web": 1, "books": 1}, workers=2))
    same.set_state(state)
    # Another mix of the streams. Each stream continues at its position.
    other = iter(batches({"web": 3, "books": 1}, workers=0))
    other.set_state(state)
    with iterator, same, other:
        assert np.array_equal(next(iterator)["tokens"], next(same)["tokens"])
        print("goes on with", next(other)["tokens"].shape)


if __name__ == "__main__":
    main()
