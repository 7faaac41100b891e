"""A state after any element continues with the next, whoever evaluates."""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import gristmill as gm
import pytest


def numbers() -> gm.MapDataset:
    return gm.MapDataset.range(23).seed(5)


def tokens(x: int) -> dict[str, list[int]]:
    return {"tokens": [x] * (x % 5 + 1)}


PIPELINES: dict[str, Callable[[], gm.IterDataset]] = {
    "map": lambda: numbers().shuffle().map(lambda x: x * 2).to_iter_dataset(),
    "filter": lambda: numbers().to_iter_dataset().filter(lambda x: x % 3).map(str),
    "batch": lambda: numbers().map(lambda x: {"x": x}).to_iter_dataset().filter(lambda e: e["x"] % 4).batch(3),
    "random": lambda: numbers().to_iter_dataset().random_map(lambda x, rng: (x, rng.random())),
    "index": lambda: numbers().to_iter_dataset().filter(lambda x: x % 2).map_with_index(lambda i, x: (i, x)),
    "flat_map": lambda: numbers().to_iter_dataset().flat_map(lambda x: [x] * (x % 4)).batch(4),
    "window": lambda: numbers().to_iter_dataset().window_shuffle(5).map(lambda x: -x),
    "epochs": lambda: numbers().to_iter_dataset().limit(7).repeat(3),
    "pack": lambda: numbers().map(tokens).to_iter_dataset().first_fit_pack(length={"tokens": 8}, num_packing_bins=3),
    "mix": lambda: gm.IterDataset.mix([numbers().to_iter_dataset(), numbers().map(str).to_iter_dataset()], [2, 1]),
}


def shown(elements: Any) -> list[str]:
    return [repr(element) for element in elements]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_state_at_every_element(name: str) -> None:
    ds = PIPELINES[name]()
    everything = shown(ds)
    it = ds.loader()
    for done in range(len(everything) + 1):
        state = json.dumps(it.get_state())
        resumed = ds.loader()
        resumed.set_state(json.loads(state))
        assert json.dumps(resumed.get_state()) == state
        assert shown(resumed) == everything[done:], done
        assert shown(islice(it, 1)) == everything[done : done + 1]


@pytest.mark.parametrize("name", PIPELINES)
def test_threads_change_nothing(name: str) -> None:
    ds = PIPELINES[name]()
    everything = shown(ds)
    for threads in (1, 3):
        with ds.loader(threads=threads) as it:
            first = shown(islice(it, 4))
            state = it.get_state()
            assert first + shown(it) == everything
        resumed = ds.loader(threads=4 - threads)
        resumed.set_state(state)
        assert shown(resumed) == everything[len(first) :]


def test_a_state_may_be_text_or_bytes_and_goes_back_too() -> None:
    it = iter(numbers())
    start = it.get_state()
    assert next(it) == 0
    for state in (start, json.dumps(start), json.dumps(start).encode()):
        it.set_state(state)
        assert [next(it), next(it)] == [0, 1]


def test_a_state_of_another_pipeline_is_refused_and_changes_nothing() -> None:
    it = iter(numbers())
    next(it)
    with pytest.raises(gm.StateError, match=r"stage 0 was range\(0, 9, 1\) and is range\(0, 23, 1\)"):
        it.set_state(iter(gm.MapDataset.range(9).seed(5)).get_state())
    with pytest.raises(gm.StateError, match="not a checkpoint"):
        it.set_state({"position": 3})
    assert next(it) == 1


def withdrawn(files: int) -> gm.IterDataset:
    parts = [gm.MapDataset.range(10 * i, 10 * i + 10) for i in range(files)]
    return gm.MapDataset.concatenate(parts).to_iter_dataset().batch(4)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_file_is_withdrawn_and_the_state_accepted(threads: int) -> None:
    with withdrawn(3).loader() as it:
        batches = [next(it).tolist(), next(it).tolist()]
        state = it.get_state()
    with withdrawn(2).loader(threads=threads) as it:
        with pytest.raises(gm.StateError, match="accept_changes"):
            it.set_state(state)
    with withdrawn(2).loader(threads=threads, accept_changes=True) as it:
        it.set_state(state)
        # Again, and beyond the end: another loader takes the place of this.
        for _ in range(2):
            batches = [batch.tolist() for batch in it]
            assert batches == [[8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]
            later = it.get_state()
            it.set_state(state)
        assert "accepted change: stage 2 was range(20, 30, 1), concatenate" in str(it.report())
    [change] = later["accepted_changes"]
    assert (change["delivered"], change["stage"], len(change["was"]), len(change["is"])) == (2, 2, 2, 1)
    with withdrawn(2).loader() as it:
        it.set_state(later)
        assert it.get_state() == later


def mixed_and_packed() -> gm.IterDataset:
    """A bit of everything, in workers."""
    some = gm.MapDataset.range(10_000).seed(3).shuffle().map(tokens)
    more = gm.MapDataset.range(10_000, 20_000).seed(4).shuffle().map(tokens)
    mixed = gm.MapDataset.mix([some, more], [3, 1]).repeat().filter(lambda e: len(e["tokens"]) > 2).to_iter_dataset()
    rows = mixed.window_shuffle(64, seed=5).first_fit_pack(length={"tokens": 128}, num_packing_bins=8)
    return rows.batch(4).mp_prefetch(num_workers=2, ram_budget="1GiB", worker_heap="192MiB")


def test_a_state_is_small_however_rich_the_pipeline() -> None:
    with mixed_and_packed().loader() as it:
        sizes = [len(json.dumps(it.get_state())) for _ in islice(it, 200)]
    assert len(sizes) == 200 and max(sizes) < 1024
