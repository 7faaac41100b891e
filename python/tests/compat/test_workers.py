"""Worker processes change nothing of what Grain's programs read."""

import os
from typing import Any

import gristmill.compat.grain as grain
import pytest


class Halves(grain.transforms.Filter):
    def filter(self, element: int) -> bool:
        return element % 2 == 0


def pipelines() -> dict[str, grain.IterDataset[Any]]:
    numbers = grain.MapDataset.range(60).seed(3).shuffle()
    stream = numbers.to_iter_dataset()
    return {
        "filter and batch": numbers.filter(Halves()).to_iter_dataset().batch(4),
        "random": stream.random_map(lambda x, rng: x + int(rng.integers(100)), seed=1),
        "index": stream.filter(Halves()).map_with_index(lambda i, x: (i, x)),
        "window": grain.experimental.WindowShuffleIterDataset(stream, window_size=7, seed=2).batch(5),
        "mix": grain.IterDataset.mix({"a": stream, "b": stream.map(lambda x: -x)}, {"a": 2, "b": 1}),
        "interleave": grain.experimental.InterleaveIterDataset([stream, stream.map(str), stream], cycle_length=2),
    }


def shown(elements: Any) -> list[str]:
    return [str(element) for element in elements]


@pytest.mark.parametrize("name", pipelines())
def test_the_same_for_any_number(name: str) -> None:
    everything = shown(pipelines()[name])
    for workers in (1, 3):
        options = grain.MultiprocessingOptions(num_workers=workers)
        with pipelines()[name].mp_prefetch(options).__iter__() as it:
            read = shown(next(it) for _ in range(5))
            state = it.get_state()
        with pipelines()[name].__iter__() as resumed:
            resumed.set_state(state)
            assert read + shown(resumed) == everything, workers


def test_functions_run_in_other_processes() -> None:
    ds = grain.MapDataset.range(30).map(lambda _: os.getpid()).to_iter_dataset()
    with ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=2)).__iter__() as it:
        assert os.getpid() not in set(it)


def test_no_workers_are_none() -> None:
    ds = grain.MapDataset.range(3).to_iter_dataset()
    assert ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=0)) is ds
    with pytest.raises(ValueError, match="num_workers"):
        ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=-1))
