"""Where `mp_prefetch` stands is seen by nothing but who evaluates: not by fingerprints, not by states."""

import json
import os
from collections.abc import Callable
from typing import Any

import gristmill as gm
import pytest

STAGES: dict[str, Callable[[gm.IterDataset], gm.IterDataset]] = {
    "map": lambda ds: ds.map(lambda x: x + 1),
    "filter": lambda ds: ds.filter(lambda x: x % 3 != 1),
    "flat": lambda ds: ds.flat_map(lambda x: [x] * (x % 3)),
    "none": lambda ds: ds.drop_none(),
    "random": lambda ds: ds.random_map(lambda x, rng: x + int(rng.integers(9)), seed=1),
    "batch": lambda ds: ds.batch(3),
}


def pipeline(names: list[str], at: int | None) -> gm.IterDataset:
    """The stages, with workers in front of stage `at`."""
    ds = gm.MapDataset.range(23).to_iter_dataset()
    for number, name in enumerate([*names, ""]):
        if number == at:
            ds = ds.mp_prefetch(num_workers=1, ram_budget="1GiB")
        ds = STAGES[name](ds) if name else ds
    return ds


def read(ds: gm.IterDataset) -> tuple[list[str], list[dict[str, Any]]]:
    with ds.loader() as it:
        states = [it.get_state()]
        elements: list[str] = []
        for element in it:
            elements.append(str(element))
            states.append(it.get_state())
    return elements, states


@pytest.mark.parametrize("names", [["map", "filter"], ["filter", "map", "flat"], ["map", "none", "batch"], ["random", "map"]])
def test_states_are_those_of_the_pipeline_without_workers(names: list[str]) -> None:
    elements, states = read(pipeline(names, None))
    for at in (0, len(names) - 1, len(names)):
        assert read(pipeline(names, at)) == (elements, states)
        for done in range(0, len(states), 5):
            it = pipeline(names, at).loader(workers=False)
            it.set_state(json.loads(json.dumps(states[done])))
            assert [str(element) for element in it] == elements[done:]


def test_stages_behind_it_are_evaluated_here() -> None:
    ds = gm.MapDataset.range(5).to_iter_dataset().map(lambda _: os.getpid())
    ds = ds.mp_prefetch(num_workers=1, ram_budget="1GiB").map(lambda there: (there, os.getpid())).flat_map(lambda x: [x])
    pids = list(ds)
    assert [here for _, here in pids] == [os.getpid()] * 5 and os.getpid() not in [there for there, _ in pids]
