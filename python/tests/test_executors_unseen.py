"""Who evaluates a stream is seen by no state of it: `mp_prefetch` anywhere in front of where it is read changes none."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from pathlib import Path
from typing import Any

import gristmill as gm
import pytest

FILES = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lanes")
    for file in range(FILES):
        with gzip.open(folder / f"{file}.jsonl.gz", "wt") as out:
            for line in range(10 * file + 3):
                print(json.dumps({"x": 100 * file + line}), file=out)
    return str(folder / "*.jsonl.gz")


def number(x: Any) -> int:
    if isinstance(x, dict):
        return sum(number(part) for part in x.values())
    if isinstance(x, (list, tuple)):
        return sum(number(part) for part in x)
    return int(x if isinstance(x, int) else x.sum())


def source(rng: random.Random, files: str) -> Any:
    kind = rng.choice(["lanes", "lanes", "lanes", "interleave", "prefix", "mix", "made"])
    if kind == "lanes":
        return gm.IterDataset.jsonl(files, lanes=rng.randrange(1, FILES + 2))
    if kind == "prefix":
        return gm.MapDataset.range(60).shuffle(seed=3).to_iter_dataset()
    parts = [gm.MapDataset.range(100 * k, 103 + 110 * k).to_iter_dataset().filter(lambda x: x % 3 != 1) for k in range(3)]
    if kind == "mix":
        return gm.IterDataset.mix(parts, [1, 2, 3])
    if kind == "interleave":
        return gm.IterDataset.interleave(parts, 2)
    made = gm.MapDataset.range(4).map(lambda k: gm.MapDataset.range(10 * k, 12 * k + 3).to_iter_dataset())
    return gm.IterDataset.interleave(made, 2)


def stage(rng: random.Random, ds: Any) -> Any:
    kind = rng.choice(["map", "map", "filter", "filter", "drop", "batch", "flat", "index", "random", "window", "bad"])
    if kind == "map":
        return ds.map(lambda x: {"of": number(x)})
    if kind == "filter":
        return ds.filter(lambda x: number(x) % 4 != 3)
    if kind == "drop":
        return ds.map(lambda x: None if number(x) % 5 == 1 else x).drop_none()
    if kind == "batch":
        return ds.map(number).batch(rng.randrange(1, 5))
    if kind == "flat":
        return ds.flat_map(lambda x: [number(x)] * (number(x) % 3))
    if kind == "index":
        return ds.map_with_index(lambda i, x: (i, number(x)))
    if kind == "random":
        return ds.random_map(lambda x, rng: (number(x), int(rng.integers(100))), seed=rng.randrange(9))
    if kind == "window":
        return ds.window_shuffle(rng.randrange(1, 9), seed=1)
    return ds.skip_bad_records()


def made(seed: int, files: str, workers: int | None) -> Any:
    """The pipeline of a seed, with `mp_prefetch` somewhere in it if there are `workers`."""
    rng = random.Random(seed)
    ds, stages = source(rng, files), rng.randrange(5)
    at = rng.randrange(stages + 1)
    for position in range(stages + 1):
        if position == at and workers is not None:
            ds = ds.mp_prefetch(num_workers=workers, ram_budget="1GiB")
        if position < stages:
            ds = stage(rng, ds)
    return ds


def taken(ds: Any, resume: Any = None) -> tuple[list[str], list[Any]]:
    """The elements, and the states in front of each and behind the last."""
    with contextlib.closing(ds.loader()) as it:
        if resume is not None:
            it.set_state(resume)
        elements, states = [], [it.get_state()]
        for element in it:
            elements.append(str(element))
            states.append(it.get_state())
    return elements, states


@pytest.mark.parametrize("seed", range(40))
def test_states_go_from_one_to_the_other(files: str, seed: int) -> None:
    plain, behind = made(seed, files, None), made(seed, files, 0 if seed % 5 else 1 + seed % 2)
    elements, states = taken(plain)
    assert (elements, states) == taken(behind)
    rng = random.Random(seed)
    for done in rng.sample(range(len(states)), min(3, len(states))):
        assert taken(behind, states[done]) == (elements[done:], states[done:])
        assert taken(plain, states[done]) == (elements[done:], states[done:])


def test_a_filter_behind_workers_that_read_lanes_is_the_same_filter(files: str) -> None:
    def odd(x: Any) -> bool:
        return x["x"] % 2 == 1

    lanes = gm.IterDataset.jsonl(files, lanes=3)
    assert taken(lanes.filter(odd)) == taken(lanes.mp_prefetch(num_workers=1).filter(odd))
