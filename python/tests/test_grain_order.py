"""Grain's orders and random numbers, through Python: pipelines that the real library ran."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import gristmill as gm
import numpy as np

Dataset = gm.MapDataset | gm.IterDataset


def raw(rng: np.random.Generator) -> int:
    return int(rng.bit_generator.random_raw())


def source(op: list[Any]) -> Dataset:
    match op:
        case ["range", *bounds]:
            return gm.MapDataset.range(*bounds)
        case ["concat", parts]:
            return gm.MapDataset.concatenate([maps(part) for part in parts])
        case ["mix", parts, weights]:
            return gm.MapDataset.mix([maps(part) for part in parts], weights)
        case ["iter_mix", parts, weights]:
            return gm.IterDataset.mix([streams(part) for part in parts], weights)
        case _:
            raise AssertionError(op)


def stage(ds: Any, op: list[Any]) -> Dataset:
    match op:
        case ["add", k]:
            return ds.map(lambda x: x + k)
        case ["keep_mod", m, r]:
            return ds.filter(lambda x: x % m == r)
        case ["draw"]:
            return ds.random_map(lambda x, rng: [x, raw(rng), raw(rng)])
        case ["draw_seeded", seed]:
            return ds.random_map(lambda x, rng: [x, raw(rng)], seed=seed)
        case ["repeat", epochs, *reseed]:
            return ds.repeat(epochs, reseed_each_epoch=reseed[0] if reseed else True)
        case ["slice", start, stop, step]:
            return ds[start:stop:step]
        case ["batch", size, *drop]:
            return ds.batch(size, bool(drop and drop[0]), batch_fn=list)
        case ["with_index"]:
            return ds.map_with_index(lambda i, x: [i, x])
        case ["to_iter"]:
            return ds.to_iter_dataset()
        case ["iter_window_shuffle", *arguments]:
            return ds.window_shuffle(*arguments)
        case [("seed" | "shuffle" | "window_shuffle") as name, *arguments]:
            return getattr(ds, name)(*arguments)
        case _:
            raise AssertionError(op)


def build(pipeline: list[list[Any]]) -> Dataset:
    ds = source(pipeline[0])
    for op in pipeline[1:]:
        ds = stage(ds, op)
    return ds


def maps(pipeline: list[list[Any]]) -> gm.MapDataset:
    ds = build(pipeline)
    assert isinstance(ds, gm.MapDataset)
    return ds


def streams(pipeline: list[list[Any]]) -> gm.IterDataset:
    ds = build(pipeline)
    assert isinstance(ds, gm.IterDataset)
    return ds


def test_every_pipeline_gives_the_elements_that_grain_gives(golden: Callable[[str], Any]) -> None:
    cases = golden("order.json")["cases"]
    assert cases
    for case in cases:
        for threads in (0, 2):
            with build(case["pipeline"]).loader(threads=threads) as it:
                output = list(islice(it, case["take"]))
            assert output == case["output"], (case["name"], threads, case["pipeline"])


def test_orders_that_are_known_by_heart() -> None:
    assert list(gm.MapDataset.range(10).shuffle(42)) == [8, 6, 7, 9, 0, 5, 1, 2, 4, 3]
    assert list(gm.MapDataset.range(10).seed(42).shuffle()) == [1, 7, 6, 9, 0, 8, 4, 5, 3, 2]
    ds = gm.MapDataset.range(10).seed(41).random_map(lambda x, rng: x + int(rng.integers(0, 10)))
    assert list(ds) == [0, 6, 9, 5, 10, 14, 14, 13, 15, 13]


def test_the_generator_is_numpys_from_its_first_number_on() -> None:
    draw = lambda x, rng: (rng.random(), rng.normal(), int(rng.integers(7)), rng.permutation(5).tolist())  # noqa: E731
    key = np.random.Philox(9).state["state"]["key"]
    for index, drawn in enumerate(gm.MapDataset.range(5).random_map(draw, seed=9)):
        fresh = np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, index], np.uint64)))
        assert drawn == draw(0, fresh)
