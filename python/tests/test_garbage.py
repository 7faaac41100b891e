"""Datasets and iterators that hang in cycles with the functions they call are collected, and nothing else is."""

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import gristmill as gm
import pytest


pytestmark = pytest.mark.usefixtures("own_heap")


class Trainer:
    """Holds a dataset that calls its methods."""

    data: Any
    more: Any = None

    def double(self, x: int) -> int:
        return 2 * x

    def with_index(self, index: int, x: int) -> int:
        return index + x

    def random(self, x: int, rng: Any) -> int:
        return x

    def keep(self, x: int) -> bool:
        return x >= 0

    def repeat(self, x: int) -> list[int]:
        return [x, x]

    def together(self, batch: list[int]) -> int:
        return sum(batch)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        return index


NUMBERS = gm.MapDataset.range(6)
MAKE: dict[str, Callable[[Trainer], Any]] = {
    "map": lambda t: NUMBERS.map(t.double),
    "map_with_index": lambda t: NUMBERS.map_with_index(t.with_index),
    "random_map": lambda t: NUMBERS.random_map(t.random, seed=1),
    "filter": lambda t: NUMBERS.filter(t.keep),
    "batch_fn": lambda t: NUMBERS.batch(2, batch_fn=t.together),
    "source": lambda t: gm.MapDataset.source(t),
    "computed": lambda t: gm.MapDataset.computed(t),
    "slice": lambda t: NUMBERS.map(t.double)[1:],
    "zip": lambda t: gm.MapDataset.zip([NUMBERS.map(t.double), NUMBERS.map(t.double)]),
    "mix": lambda t: gm.MapDataset.mix([NUMBERS.map(t.double), NUMBERS]),
    "concatenate": lambda t: gm.MapDataset.concatenate([NUMBERS.map(t.double), NUMBERS]),
    "behind": lambda t: NUMBERS.map(t.double).shuffle(1).to_iter_dataset().batch(2),
    "stream map": lambda t: NUMBERS.to_iter_dataset().map(t.double),
    "stream map_with_index": lambda t: NUMBERS.to_iter_dataset().map_with_index(t.with_index),
    "stream random_map": lambda t: NUMBERS.to_iter_dataset().random_map(t.random, seed=1),
    "stream filter": lambda t: NUMBERS.to_iter_dataset().filter(t.keep),
    "stream flat_map": lambda t: NUMBERS.to_iter_dataset().flat_map(t.repeat),
    "stream batch_fn": lambda t: NUMBERS.to_iter_dataset().batch(2, batch_fn=t.together),
    "stream mix": lambda t: gm.IterDataset.mix([NUMBERS.map(t.double).to_iter_dataset()] * 2),
    "interleave": lambda t: gm.IterDataset.interleave([NUMBERS.map(t.double).to_iter_dataset()] * 2, cycle_length=2),
}


def after(change: Callable[[Trainer], None]) -> "weakref.ref[Trainer]":
    trainer = Trainer()
    change(trainer)
    return weakref.ref(trainer)


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("running", ["no", "begun", "threads closed"])
def test_a_cycle_is_collected(kind: str, running: str) -> None:
    def change(trainer: Trainer) -> None:
        trainer.data = MAKE[kind](trainer)
        if running != "no":
            trainer.more = trainer.data.loader(threads=0 if running == "begun" else 1)
            next(trainer.more)
        if running == "threads closed":
            trainer.more.close()

    trainer = after(change)
    assert trainer() is not None
    gc.collect()
    assert trainer() is None


class Stream(Trainer):
    """A stream that holds what is made of it."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(6))


@pytest.mark.parametrize("running", [False, True])
def test_a_stream_in_a_cycle_is_collected(running: bool) -> None:
    stream = Stream()
    stream.data = gm.IterDataset.source(stream).map(stream.double)
    stream.more = iter(stream.data)
    if running:
        assert next(stream.more) == 0
    seen = weakref.ref(stream)
    del stream
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("kind", MAKE)
def test_what_is_still_used_is_not(kind: str) -> None:
    trainer = Trainer()
    ds = trainer.data = MAKE[kind](trainer)
    expected = repr(list(ds))
    behind = ds.loader()
    seen = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert repr(list(behind)) == expected and seen() is not None
    del behind
    gc.collect()
    assert repr(list(ds)) == expected


def test_a_list_of_parts_may_change() -> None:
    trainer = Trainer()
    parts = [NUMBERS.map(trainer.double), NUMBERS.map(trainer.double)]
    trainer.data = ds = gm.MapDataset.concatenate(parts)
    parts.clear()
    del trainer
    gc.collect()
    assert list(ds) == [0, 2, 4, 6, 8, 10] * 2


def test_functions_of_a_child_whose_parent_is_gone() -> None:
    trainer = Trainer()
    child = NUMBERS.map(trainer.double).to_iter_dataset().filter(trainer.keep)
    trainer.data = child
    del trainer
    gc.collect()
    assert list(child) == [0, 2, 4, 6, 8, 10]


def test_threads_at_work_keep_what_they_call() -> None:
    trainer = Trainer()
    running = trainer.data = NUMBERS.map(trainer.double).loader(threads=1)
    seen = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert seen() is not None and list(running) == [0, 2, 4, 6, 8, 10]
    running.close()
    del running
    gc.collect()
    assert seen() is None


def test_a_dataset_that_does_not_know_how_it_was_made_is_safe() -> None:
    trainer = Trainer()
    parent = NUMBERS.map(trainer.double)
    # Past the method that takes notes.
    child = getattr(gm.MapDataset.shuffle, "__wrapped__")(parent, 1)
    trainer.data = parent
    del trainer, parent
    gc.collect()
    assert sorted(child[index] for index in range(6)) == [0, 2, 4, 6, 8, 10]


def test_a_dataset_that_a_function_gives_lives_as_long_as_it_is_read() -> None:
    trainer = Trainer()
    trainer.data = NUMBERS.map(trainer.double).to_iter_dataset()
    pool, seen = [trainer.data], weakref.ref(trainer)
    del trainer
    ds = gm.IterDataset.interleave(gm.MapDataset.range(1).map(lambda _: pool.pop()), cycle_length=1)
    running = iter(ds)
    assert next(running) == 0
    gc.collect()
    assert seen() is not None and list(running) == [2, 4, 6, 8, 10]
    del running, ds
    gc.collect()
    assert seen() is None
