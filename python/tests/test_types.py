"""Types of elements follow through the stages. It runs, too; what it claims is checked by mypy and pyright."""

from typing import Any, assert_type

import gristmill as gm
import numpy as np


class Half:
    """A transform written as a class."""

    def map(self, element: int) -> float:
        """Half of it."""
        return element / 2


def test_random_access_knows_what_it_yields() -> None:
    numbers = assert_type(gm.MapDataset.range(6), gm.MapDataset[int])
    halves = assert_type(numbers.map(Half()), gm.MapDataset[float])
    assert_type(numbers.map(str).shuffle(1)[1:].repeat(2), gm.MapDataset[str])
    assert_type(gm.MapDataset.mix([halves, halves]), gm.MapDataset[float])
    assert_type(gm.MapDataset.source(["a", "b"]), gm.MapDataset[str])
    assert_type(numbers.flat_map(lambda x: [x, x], 2).filter(lambda x: x > 2), gm.MapDataset[int])
    # Where they are not known they may be anything.
    anything: gm.MapDataset = numbers
    assert_type(anything, gm.MapDataset[Any])


def test_streams_and_passes_know_it_as_well() -> None:
    def noisy(x: int, rng: np.random.Generator) -> float:
        return x + rng.random()

    stream = gm.MapDataset.range(6).to_iter_dataset().random_map(noisy, seed=1)
    assert_type(stream, gm.IterDataset[float])
    assert_type(stream.enumerate(), gm.IterDataset[tuple[int, float]])
    assert_type(stream.apply(lambda ds: ds.skip(1).take(2)), gm.IterDataset[float])
    with stream.loader() as batches:
        assert_type(batches, gm.DatasetIterator[float])
        assert_type(next(batches), float)
    for number in stream:
        assert_type(number, float)
