"""Random loaders: samplers, shards, and operations of every kind."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from stages import Found, copies, is_kept, listed, number


def transform(grain: Any, rng: random.Random, kind: str) -> Any:
    """An operation in today's form."""
    kinds = grain.transforms

    class Pair(kinds.Map):
        def map(self, element: Any) -> Any:
            return (element, 1)

    class Some(kinds.Filter):
        def filter(self, element: Any) -> bool:
            return is_kept(element)

    class Random(kinds.RandomMap):
        def random_map(self, element: Any, rng: np.random.Generator) -> Any:
            return (number(element), int(rng.integers(1000)))

    class Numpy(kinds.TfRandomMap):
        def np_random_map(self, element: Any, rng: np.random.Generator) -> Any:
            return (number(element), rng.random())

    if kind == "flat":
        return copies(grain, 3)
    return {"map": Pair, "filter": Some, "random": Random, "numpy": Numpy}[kind]()


def operation(grain: Any, kind: str) -> Any:
    """An operation in the form of before: it takes an iterator of records."""
    old = grain.python

    def every_second(records: Iterator[Any]) -> Iterator[Any]:
        for at, record in enumerate(records):
            if at % 2:
                yield record

    if kind == "own":
        return every_second
    if kind == "old map":
        return old.MapOperation(lambda x: {"old": x})
    if kind == "old filter":
        return old.FilterOperation(is_kept)
    return old.RandomMapOperation(lambda x, rng: (number(x), int(rng.integers(77))))


# Those that draw random numbers, or may.
RANDOM = ("random", "numpy", "old random", "own")


def operations(grain: Any, rng: random.Random, found: Found) -> list[Any]:
    kinds = grain.transforms
    out: list[Any] = []
    is_flat = False
    for _ in range(rng.randrange(4)):
        kind = rng.choice(["map", "filter", "random", "flat", "numpy", "old map", "old filter", "old random", "own"])
        if kind in RANDOM and is_flat:
            found.rules.add("pieces have random numbers")
        is_flat = is_flat or kind == "flat"
        is_old = kind.startswith("old") or kind == "own"
        out.append(operation(grain, kind) if is_old else transform(grain, rng, kind))
    if rng.random() < 0.5:

        class Number(kinds.Map):
            def map(self, element: Any) -> Any:
                return {"n": number(element)}

        size, drop = rng.randrange(1, 5), rng.random() < 0.5
        batches = [kinds.Batch(size, drop_remainder=drop), kinds.Batch(size, drop_remainder=drop, batch_fn=listed)]
        out += [Number(), rng.choice([*batches, grain.python.BatchOperation(size, drop)])]
        if rng.random() < 0.3:
            # The last record of a batch has the numbers of all of it.
            out.append(transform(grain, rng, rng.choice(["map", "random", "filter"])))
            if is_flat:
                found.rules.add("pieces have random numbers")
    return out


def loader(grain: Any, rng: random.Random, found: Found) -> Any:
    found.grain, found.same = grain, False
    records, drops = rng.randrange(3, 30), rng.random() < 0.5
    count = rng.choice([1, 1, 2, 3])
    shard = grain.sharding.ShardOptions(rng.randrange(count), count, drop_remainder=drops)
    if count == 1 and rng.random() < 0.5:
        shard = grain.sharding.NoSharding()
    seed = rng.choice([None, rng.randrange(99), rng.randrange(99), rng.randrange(99), (1 << 32) - 1])
    if rng.random() < 0.3:
        sampler, total = grain.samplers.SequentialSampler(records, shard, seed=seed), records
    else:
        epochs = rng.choice([None, 1, 2, 3])
        sampler = grain.samplers.IndexSampler(records, shard, shuffle=rng.random() < 0.7, num_epochs=epochs, seed=seed)
        total = (epochs or 0) * records
        found.most = 40 if epochs is None else None
    if total % count and not drops:
        found.rules.add("no record of a shard is lost")
    threads = rng.choice([0, 0, 2])
    found.loader = {
        "data_source": rng.choice([[{"x": i} for i in range(records)], np.arange(records), grain.sources.RangeDataSource(0, records, 1)]),
        "sampler": sampler,
        "operations": operations(grain, rng, found),
        # By default they are those of the sampler.
        "shard_options": rng.choice([shard, None]),
        "read_options": grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 * threads),
    }
    return grain.DataLoader(**found.loader, worker_count=0)


def loaded(grain: Any, rng: random.Random, found: Found) -> Any:
    """The same in one call."""
    found.grain, found.same, found.is_alone = grain, False, True
    records, count = rng.randrange(3, 30), rng.choice([1, 1, 2])
    epochs = rng.choice([None, 1, 2])
    found.most = 40 if epochs is None else None
    drops = rng.random() < 0.5
    if count > 1 and (epochs or 0) * records % count and not drops:
        found.rules.add("no record of a shard is lost")
    return grain.load(
        [{"x": i} for i in range(records)],
        num_epochs=epochs,
        shuffle=rng.random() < 0.5,
        seed=rng.randrange(99),
        shard_options=grain.sharding.ShardOptions(rng.randrange(count), count, drop_remainder=drops),
        transformations=[transform(grain, rng, rng.choice(["map", "random", "filter"]))],
        batch_size=rng.choice([None, 3]) if rng.random() < 0.5 else None,
        drop_remainder=rng.random() < 0.5,
    )
