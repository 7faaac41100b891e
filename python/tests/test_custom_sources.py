"""Datasets written in Python, as sources of native ones."""

import json
from collections.abc import Iterator
from typing import Any

import gristmill as gm
import pytest


class Squares:
    """Computes elements of every epoch; some have none."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int | None:
        return None if index % 4 == 2 else index * index


class Count:
    """A stream with a state of its own."""

    def __init__(self, stop: int) -> None:
        self.stop = stop
        self.restored: list[int] = []

    def __iter__(self) -> "CountIterator":
        return CountIterator(self)


class CountIterator:
    def __init__(self, ds: Count) -> None:
        self.ds = ds
        self.at = 0

    def __iter__(self) -> "CountIterator":
        return self

    def __next__(self) -> int:
        if self.at == self.ds.stop:
            raise StopIteration
        self.at += 1
        return self.at - 1

    def get_state(self) -> dict[str, int]:
        return {"at": self.at}

    def set_state(self, state: dict[str, int]) -> None:
        self.at = state["at"]
        self.ds.restored.append(self.at)


class Plain:
    """A stream without a state."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(7))


def test_computed_is_asked_for_later_epochs() -> None:
    ds = gm.MapDataset.computed(Squares())
    assert [ds[i] for i in range(7)] == [0, 1, None, 9, 16, 25, None]
    assert list(ds.repeat(2).map(lambda x: x + 1)) == [1, 2, 10, 17, 26, 50]


def test_dense_may_be_batched_and_has_no_holes() -> None:
    with pytest.raises(gm.ConfigError, match="may drop"):
        gm.MapDataset.computed(Squares()).batch(2)
    ds = gm.MapDataset.computed(Squares(), dense=True).batch(2)
    assert list(ds[0]) == [0, 1]
    with pytest.raises(gm.DataError, match="no element 2"):
        ds[1]


def test_none_is_dropped_on_both_sides() -> None:
    odd = gm.MapDataset.range(6).map(lambda x: x if x % 2 else None)
    assert odd[0] is None
    assert list(odd.to_iter_dataset()) == [None, 1, None, 3, None, 5]
    assert list(odd.drop_none()) == [1, 3, 5]
    assert list(odd.to_iter_dataset().limit(4).drop_none()) == [1, 3]


def test_flat_map_fills_slots() -> None:
    ds = gm.MapDataset.range(4).flat_map(lambda x: [x] * x, 3)
    assert len(ds) == 12
    assert [ds[i] for i in range(8)] == [None, None, None, 1, None, None, 2, 2]
    assert list(ds) == [1, 2, 2, 3, 3, 3]
    with pytest.raises(gm.DataError, match="2"):
        list(gm.MapDataset.range(4).flat_map(lambda x: [x] * x, 2))
    with pytest.raises(TypeError, match="max_fan_out"):
        gm.MapDataset.range(4).flat_map(lambda x: [x])


def test_streams_side_by_side() -> None:
    long, short = (gm.MapDataset.range(n).to_iter_dataset() for n in (5, 2))
    assert list(gm.IterDataset.zip([long, short], strict=False)) == [(0, 0), (1, 1)]
    with pytest.raises(gm.DataError, match="shorter"):
        list(gm.IterDataset.zip([long, short]))


def test_interleave_of_streams_made_when_their_turn_comes() -> None:
    made: list[int] = []

    def make(k: int) -> gm.IterDataset:
        made.append(k)
        return gm.MapDataset.range(10 * k, 10 * k + 2).to_iter_dataset()

    it = gm.IterDataset.interleave(gm.MapDataset.range(4).map(make), 2).loader()
    assert [next(it), next(it)] == [0, 10]
    assert made == [0, 1]
    assert list(it) == [1, 11, 20, 30, 21, 31]


@pytest.mark.parametrize("source", [Count(7), Plain()])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_stream_is_restored_anywhere(source: Any, threads: int) -> None:
    ds = gm.IterDataset.source(source).map(lambda x: x * 2).batch(2)
    everything = [batch.tolist() for batch in ds]
    assert everything == [[0, 2], [4, 6], [8, 10], [12]]
    for done in range(len(everything) + 1):
        with ds.loader(threads=threads) as it:
            for _ in range(done):
                next(it)
            state = json.dumps(it.get_state())
        with ds.loader(threads=threads) as resumed:
            resumed.set_state(json.loads(state))
            assert [batch.tolist() for batch in resumed] == everything[done:]


def test_a_state_of_its_own_is_used() -> None:
    source = Count(9)
    it = gm.IterDataset.source(source).loader()
    assert [next(it), next(it)] == [0, 1]
    state = it.get_state()
    assert state["state"] == {"python": {"at": 2}}
    it.set_state(state)
    assert source.restored == [2]
    assert next(it) == 2


def test_a_state_that_json_cannot_hold() -> None:
    source = Count(3)
    it = gm.IterDataset.source(source)
    CountIterator.get_state, kept = (lambda self: {"at": {1}}), CountIterator.get_state  # type: ignore[assignment,return-value]
    try:
        with pytest.raises(gm.StateError, match="JSON"):
            it.loader().get_state()
    finally:
        CountIterator.get_state = kept  # type: ignore[method-assign]


class Told:
    """A stream whose state is whatever it was given."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __iter__(self) -> "Told":
        return self

    def __next__(self) -> int:
        return 0

    def get_state(self) -> Any:
        return self.state

    def set_state(self, state: Any) -> None:
        self.state = state


def told(state: Any) -> Any:
    """The state of a pass over a stream that says `state`."""
    return gm.IterDataset.source(_Again(state)).loader().get_state()["state"]["python"]


class _Again:
    def __init__(self, state: Any) -> None:
        self.state = state

    def __iter__(self) -> Told:
        return Told(self.state)


def test_a_state_comes_back_as_json_reads_it() -> None:
    numbers = {"ints": [0, -1, 2**63, 2**64 - 1, -(2**63)], "floats": (0.1, -0.0, 1e300, 5e-324)}
    state = {**numbers, "é": [None, True, "\U0001f33e"], "": {}}
    got = told(state)
    assert repr(sorted(got.items())) == repr(sorted(json.loads(json.dumps(state)).items()))


@pytest.mark.parametrize("huge", [2**64, -(2**63) - 1, 10**40])
def test_a_state_that_would_be_rounded_is_refused(huge: int) -> None:
    with pytest.raises(gm.StateError, match=f"not {huge}: write it as text"):
        told({"generator": [{"state": huge}]})


def test_an_iterator_is_no_stream() -> None:
    with pytest.raises(TypeError, match="only once"):
        gm.IterDataset.source(iter([1, 2]))
    with pytest.raises(TypeError, match="__iter__"):
        gm.IterDataset.source(3)  # type: ignore[arg-type]


def test_threads_have_numbers() -> None:
    import threading

    def name(_: int) -> str:
        return threading.current_thread().name

    with gm.MapDataset.range(500).map(name).loader(threads=2) as it:
        assert {int(text.split("_")[1]) for text in it} <= {0, 1}
