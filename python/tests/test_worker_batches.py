"""Batches of Python objects are what they are without workers, though their rows are copied elsewhere."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"ram_budget": "1GiB", "worker_heap": "192MiB", "num_workers": 1}


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Pair:
    name: str
    values: Any


def deep(x: int) -> Any:
    tree: Any = np.arange(3) + x
    for _ in range(70):
        tree = [tree]
    return tree


#: What a function may return of which a batch is made.
ELEMENTS: dict[str, Callable[[int], Any]] = {
    "array": lambda x: np.full((2, 3), x, np.float32),
    "dict": lambda x: {"x": np.full(100, x, np.int16), "label": x, "weight": x / 2, "text": f"n{x}"},
    "tree": lambda x: {"a": {"b": (np.full(9, x), [np.zeros(x % 1 + 1), x])}, "none": None, "empty": {}, "no": ()},
    "other order": lambda x: dict(sorted({"a": np.ones(2) * x, "b": np.ones(3)}.items(), reverse=x % 2 == 1)),
    "keys of all kinds": lambda x: {1: np.full(3, x), "é": np.full(2, x), "\udcff": x},
    "without dimensions": lambda x: {"x": np.array(x), "y": np.float32(x), "z": np.zeros((0, 3))},
    "small": lambda x: np.full(1, x % 2 == 0),
    "mixed dtypes": lambda x: np.full(4, x, np.int16 if x % 2 else np.float32),
    "other byte order": lambda x: np.full(4, x, ">i4"),
    "strided": lambda x: np.asfortranarray(np.arange(12).reshape(3, 4) + x)[:, ::2],
    "dates": lambda x: np.array(["2024-01-01"], "M8[D]") + x,
    "objects": lambda x: np.array([None, x], object),
    "named tuple": lambda x: Point(np.full(2, x), {"z": np.full(3, x)}),
    "dataclass": lambda x: Pair(str(x), np.full(5, x)),
    "masked": lambda x: np.ma.masked_array(np.arange(3) + x, [True, False, False]),
    "deep": deep,
}


def shown(value: Any) -> Any:
    """All there is to know of it."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape, value.tolist()
    if isinstance(value, dict):
        return [(key, shown(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shown(part) for part in value]
    return type(value), repr(value)


@pytest.mark.parametrize("name", ELEMENTS)
def test_batches_are_those_of_one_process(name: str) -> None:
    elements = gm.MapDataset.range(11).map(ELEMENTS[name])
    for ds in (elements.batch(4).to_iter_dataset(), elements.to_iter_dataset().batch(4)):
        assert [shown(batch) for batch in ds.mp_prefetch(**WORKERS)] == [shown(batch) for batch in ds]


def test_a_function_behind_a_batch_sees_it_stacked() -> None:
    ds = gm.MapDataset.range(9).map(ELEMENTS["tree"]).batch(3).map(lambda batch: (shown(batch), batch))
    assert [shown(batch) for batch in ds.mp_prefetch(**WORKERS)] == [shown(batch) for batch in ds]
    twice = gm.MapDataset.range(8).map(ELEMENTS["dict"]).batch(2).batch(2)
    assert [shown(batch) for batch in twice.mp_prefetch(**WORKERS)] == [shown(batch) for batch in twice]


@pytest.mark.parametrize("bad", [lambda x: np.zeros(x), lambda x: {"x": x} if x else [x], lambda x: {str(x): x}])
def test_what_cannot_be_stacked_is_refused_as_in_one_process(bad: Callable[[int], Any]) -> None:
    for ds in (gm.MapDataset.range(4).map(bad).batch(2), gm.MapDataset.range(4).map(bad).to_iter_dataset().batch(2)):
        with pytest.raises(ValueError) as here:
            list(ds)
        with pytest.raises(ValueError) as there:
            list(ds.mp_prefetch(**WORKERS))
        assert str(there.value) == str(here.value)
        assert any("batch" in note for note in there.value.__notes__)


def test_no_batch_is_made_before_it_leaves() -> None:
    def init(index: int, count: int) -> None:
        import gristmill._tree

        def refuse(items: Any) -> Any:
            raise AssertionError("rows are copied where they need not be")

        gristmill._tree.stack = refuse

    rows = gm.MapDataset.range(30).map(lambda x: {"x": np.full(70_000, x, np.uint8), "in": (np.full(3, x),)})
    for ds in (rows.batch(10).to_iter_dataset(), rows.to_iter_dataset().batch(10)):
        batches = list(ds.mp_prefetch(worker_init_fn=init, **WORKERS))
        assert [batch["x"].shape for batch in batches] == [(10, 70_000)] * 3
        assert [int(batch["in"][0][4, 1]) for batch in batches] == [4, 14, 24]
