"""Passes that go on with another number of hosts, on the package of Grain's name."""

import itertools
import json
from typing import Any

import gristmill.compat.grain as grain
import numpy as np
import pytest


def after(it: Any, count: int) -> list[Any]:
    return [next(it) for _ in range(count)]


def test_elastic_iterators_cover_every_global_batch() -> None:
    ds = grain.MapDataset.range(24).map(lambda x: x + 1)

    def step(hosts: list[Any]) -> set[int]:
        return {int(x) for host in hosts for x in next(host)}

    def start(count: int) -> list[Any]:
        shards = [grain.sharding.ShardOptions(i, count) for i in range(count)]
        return [grain.experimental.ElasticIterator(ds, 8, shard) for shard in shards]

    two = start(2)
    assert step(two) == set(range(1, 9))
    states = [host.get_state() for host in two]
    assert states == [{"global_next_index": 8}] * 2
    four = start(4)
    for host in four:
        host.set_state(states[0])
    assert step(four) == set(range(9, 17))
    assert step(four) == set(range(17, 25))
    with pytest.raises(StopIteration):
        next(four[0])
    four[1].close()
    with pytest.raises(ValueError, match="closed"):
        next(four[1])


def packed(length: int = 600) -> Any:
    """Documents as MaxText packs them: two corpora, mixed, filtered, in rows of 16 tokens."""

    def corpus(offset: int, seed: int) -> Any:
        ds = grain.MapDataset.range(length).seed(seed).shuffle()
        return ds.map(lambda x: {"inputs": np.full(1 + (x + offset) % 7, x + 1, np.int32)})

    ds = grain.IterDataset.mix([corpus(0, 1).to_iter_dataset(), corpus(3, 2).to_iter_dataset()], [0.7, 0.3])
    ds = ds.filter(lambda element: element["inputs"][0] % 5 != 0)
    return grain.experimental.FirstFitPackIterDataset(ds, length_struct={"inputs": 16}, num_packing_bins=9)


@pytest.mark.parametrize("workers", [None, grain.MultiprocessingOptions(2)])
def test_packed_streams_go_on_with_another_number_of_hosts(workers: Any) -> None:
    elastic = grain.experimental.ElasticIterator
    whole = [batch["inputs"].tolist() for batch in elastic(packed(), 12, grain.sharding.NoSharding())]
    assert len(whole) > 10
    seen: list[Any] = []
    state: Any = None
    for count, steps in [(4, 3), (2, 2), (3, 4), (1, 1000)]:
        shards = [grain.sharding.ShardOptions(index, count) for index in range(count)]
        hosts = [elastic(packed(), 12, shard, multiprocessing_options=workers) for shard in shards]
        for host in hosts:
            if state is not None:
                host.set_state(json.loads(json.dumps(state)))
        taken = [[batch["inputs"].tolist() for batch in itertools.islice(host, steps)] for host in hosts]
        seen += [[row for rows in step for row in rows] for step in zip(*taken, strict=True)]
        states = [host.get_state() for host in hosts]
        assert states == states[:1] * count
        state = states[-1]
        for host in hosts:
            host.close()
    assert seen == whole


def test_a_filter_and_stages_behind_are_elastic_too() -> None:
    def host(index: int, count: int, size: int = 6) -> Any:
        ds = grain.MapDataset.range(60).shuffle(3).filter(lambda x: x % 3 != 0)
        ds = grain.experimental.ElasticIterator(ds, size, grain.sharding.ShardOptions(index, count))
        return ds.map(lambda batch: batch * 10).__iter__()

    whole = [batch.tolist() for batch in host(0, 1)]
    assert len(whole) == 6 and len({x for batch in whole for x in batch}) == 36
    halves = [host(index, 2) for index in range(2)]
    first = [after(half, 2) for half in halves]
    assert [[*a.tolist(), *b.tolist()] for a, b in zip(*first, strict=True)] == whole[:2]
    # Also in batches of another size.
    later = host(0, 1, 4)
    later.set_state(halves[1].get_state())
    rest = [x for batch in later for x in batch.tolist()]
    # Four were left over in batches of six.
    assert rest[:-4] == [x for batch in whole[2:] for x in batch] and len(rest) == 28
    with pytest.raises(ValueError, match="takes a MapDataset or an IterDataset, got list"):
        grain.experimental.ElasticIterator([1, 2], 2, grain.sharding.NoSharding())


def test_stages_stand_behind_an_elastic_iterator() -> None:
    shard = grain.sharding.ShardOptions(0, 2)
    ds = grain.experimental.ElasticIterator(grain.MapDataset.range(16), 4, shard)
    sums = ds.map(lambda batch: int(batch.sum())).__iter__()
    assert after(sums, 2) == [0 + 2, 4 + 6]
    assert ds.get_state() == sums.get_state() == {"global_next_index": 8}
    resumed = grain.experimental.ElasticIterator(grain.MapDataset.range(16), 4, shard).map(lambda batch: int(batch.sum()))
    it = resumed.__iter__()
    it.set_state({"global_next_index": 8})
    assert list(it) == [8 + 10, 12 + 14]
