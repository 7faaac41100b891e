"""Each rule of `differences.py` as one small program, for either library: `both_sides.py SHIM|WHEEL` prints what comes out."""

import contextlib
import json
import logging
import sys
from typing import Any

import numpy as np
import pipelines
import stages


def workers(grain: Any) -> Any:
    ds = grain.MapDataset.range(8).to_iter_dataset().batch(3)
    with contextlib.closing(ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=2)).__iter__()) as it:
        return [batch.tolist() for batch in it]


def shards(grain: Any) -> Any:
    def length(index: int) -> int:
        shard = grain.sharding.ShardOptions(index, 2)
        sampler = grain.samplers.SequentialSampler(17, shard)
        return len(list(grain.DataLoader(data_source=list(range(17)), sampler=sampler, shard_options=shard)))

    return [length(0), length(1)]


def pieces(grain: Any) -> Any:
    class Random(grain.transforms.RandomMap):
        def random_map(self, element: Any, rng: np.random.Generator) -> int:
            return int(rng.integers(1 << 40))

    class Thrice(grain.experimental.FlatMapTransform):
        max_fan_out = 3

        def flat_map(self, element: Any) -> list[Any]:
            return [element] * 3

    def loader() -> Any:
        sampler = grain.samplers.SequentialSampler(4, grain.sharding.NoSharding(), seed=1)
        return grain.DataLoader(data_source=list(range(4)), sampler=sampler, operations=[Thrice(), Random()])

    try:
        numbers = list(loader())
    except AttributeError as error:
        return str(error)
    it = iter(loader())
    for _ in range(4):
        next(it)
    resumed = iter(loader())
    resumed.set_state(it.get_state())
    return [len(set(numbers)) == 12, list(resumed) == numbers[4:]]


def rows(grain: Any) -> Any:
    source = [{"a": np.full(n, n)} for n in (0, 0, 3, 0, 6)]
    packed = grain.experimental.BestFitPackIterDataset(
        grain.MapDataset.source(source).to_iter_dataset(),
        length_struct={"a": 6},
        num_packing_bins=5,
        max_sequences_per_bin=1,
        shuffle_bins=False,
    )
    return [int((row["a_segment_ids"] > 0).sum()) for row in packed]


def beginnings(grain: Any) -> Any:
    source = [{"a": np.full(n, 5)} for n in (0, 3, 1, 0)]
    (row,) = grain.experimental.ConcatThenSplitIterDataset(
        grain.MapDataset.source(source).to_iter_dataset(),
        length_struct={"a": 8},
        split_full_length_features=False,
        bos_handling=grain.experimental.BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS,
        bos_features=("a",),
        bos_token_id=7,
    )
    return row["a"].tolist()


def window(grain: Any) -> Any:
    ds = grain.experimental.WindowShuffleMapDataset(grain.MapDataset.range(10), window_size=4, seed=0)
    return sorted(ds[i] for i in range(10))


def permuted(grain: Any) -> Any:
    return len({grain.experimental.index_shuffle(i, max_index=65536, seed=3, rounds=4) for i in range(65537)})


def tokens(grain: Any) -> Any:
    source = [{"a": np.arange(10), "b": np.arange(100, 106)}]
    cut = grain.experimental.ConcatThenSplitIterDataset(
        grain.MapDataset.source(source).to_iter_dataset(), length_struct={"a": 4, "b": 4}
    )
    out: list[list[int]] = [[], []]
    for row in cut:
        for at, name in enumerate("ab"):
            out[at] += row[name][row[f"{name}_segment_ids"] > 0].tolist()
    return out


def elastic(grain: Any) -> Any:
    def steps(host: int) -> int:
        shard = grain.sharding.ShardOptions(host, 2)
        return len(list(grain.experimental.ElasticIterator(grain.MapDataset.range(11), 4, shard).__iter__()))

    return [steps(0), steps(1)]


def elastic_streams(grain: Any) -> Any:
    odd = grain.MapDataset.range(20).filter(lambda x: x % 2 == 1)
    out: list[Any] = []
    for ds in (odd, odd.to_iter_dataset()):
        try:
            shard = grain.sharding.ShardOptions(1, 2)
            out.append([batch.tolist() for batch in grain.experimental.ElasticIterator(ds, 4, shard)])
        except Exception as error:
            out.append(stages.kind_of(error))
    return out


def endless(grain: Any) -> Any:
    some = grain.MapDataset.range(10).repeat()[3:6]
    try:
        return some[8]
    except ValueError:
        return "refused"


def negative(grain: Any) -> Any:
    ds = grain.MapDataset.range(1000).shuffle(seed=5)
    return ds[-1] == ds[999]


def byte_order(grain: Any) -> Any:
    source = [{"x": np.arange(3, dtype=">i4")} for _ in range(3)]
    batches = list(grain.MapDataset.source(source).to_iter_dataset().batch(2))
    return ["=i4" if batch["x"].dtype.isnative else ">i4" for batch in batches]


def refusal(grain: Any) -> Any:
    try:
        grain.MapDataset.mix([grain.MapDataset.range(3)] * 2, [1.0])
    except Exception as error:
        return stages.kind_of(error)
    return "taken"


def end(grain: Any) -> Any:
    ds = grain.experimental.RepeatIterDataset(grain.MapDataset.range(3).to_iter_dataset(), 2)
    try:
        it = ds.__iter__()
        it.set_state({"parent": {"next_index": 0}, "epoch": 2})
        return [next(it, None)]
    except ValueError:
        return "refused"


SIDES = {
    "data does not depend on workers": workers,
    "no record of a shard is lost": shards,
    "pieces have random numbers": pieces,
    "a full row takes no sequence of no cells": rows,
    "a sequence of no cells has no beginning": beginnings,
    "a short last window is shuffled": window,
    "every length is permuted": permuted,
    "cut tokens come once": tokens,
    "every host has as many batches": elastic,
    "streams are elastic": elastic_streams,
    "no index is behind 2^64": endless,
    "negative indices count from the end": negative,
    "a batch has the byte order of the machine": byte_order,
    "errors are of one family": refusal,
    "ends are no places": end,
}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    found = pipelines.imported()
    # Its workers ask for flags that a program of its own would have parsed.
    from absl import flags

    flags.FLAGS(["both_sides"])
    print(json.dumps({name: show(found) for name, show in SIDES.items()}))
