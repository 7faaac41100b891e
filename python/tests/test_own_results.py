"""A function may fill one buffer at each call and return it: what it does later does not change an element that it gave before."""

import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gristmill as gm
import numpy as np
import pytest

COUNT = 40
#: Name and number.
Pair = namedtuple("Pair", ["x", "n"])


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class Own(threading.local):
    """A function that has what it reuses once for each thread: two that fill one buffer overwrite each other whoever calls them."""

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        return type(self), ()


class Reuses(Own):
    """A function that fills a buffer of its own, and gives it away in one of many ways."""

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        return type(self), (self.way,)

    def __init__(self, way: str) -> None:
        self.way = way
        self.buffer = np.zeros(6, np.int64)
        self.rows = [np.zeros(2, np.int64), np.zeros(3, np.int64)]
        self.element: dict[str, Any] = {}
        self.bytes = bytearray(4)

    def __call__(self, x: int) -> Any:
        self.buffer[:] = x
        return getattr(self, self.way)(x)

    def array(self, _: int) -> Any:
        return self.buffer

    def view(self, _: int) -> Any:
        return self.buffer[1:4]

    def view_of_view(self, _: int) -> Any:
        return self.buffer[1:5].reshape(2, 2)[1:]

    def read_only_view(self, _: int) -> Any:
        view = self.buffer[:3]
        view.flags.writeable = False
        return view

    def fresh_dict(self, x: int) -> Any:
        return {"x": self.buffer, "own": np.full(2, x), "n": x}

    def nested(self, x: int) -> Any:
        return {"deep": {"tree": [{"x": self.buffer[2:]}, (self.buffer, x)]}}

    def same_dict(self, x: int) -> Any:
        self.element["x"] = np.full(3, x)
        self.element["n"] = x
        return self.element

    def dict_inside(self, x: int) -> Any:
        self.element.update(n=x)
        return {"inside": self.element}

    def same_list(self, x: int) -> Any:
        for row in self.rows:
            row[:] = x
        return self.rows

    def tuple_of(self, x: int) -> Any:
        return (self.buffer, x)

    def named(self, x: int) -> Any:
        return Pair(self.buffer, x)

    def twice(self, _: int) -> Any:
        return {"a": self.buffer, "b": self.buffer}

    def raw(self, x: int) -> Any:
        self.bytes[:] = x.to_bytes(4, "little")
        return {"x": np.frombuffer(self.bytes, np.int32)}

    def windows(self, _: int) -> Any:
        return np.lib.stride_tricks.sliding_window_view(self.buffer, 3, writeable=True)

    def masked(self, _: int) -> Any:
        return self.buffer.reshape(2, 3).T


WAYS = [way for way in vars(Reuses) if not way.startswith("_")]
EXECUTORS = ["inline", "threads", "one worker", "two workers"]


def plain(tree: Any) -> Any:
    """A tree as lists, which nobody changes later."""
    if isinstance(tree, dict):
        return {name: plain(value) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [plain(value) for value in tree]
    return tree.tolist() if isinstance(tree, (np.ndarray, np.generic)) else tree


def delivered(ds: Any, executor: str) -> list[Any]:
    """All elements, held at a time."""
    if isinstance(ds, gm.MapDataset):
        ds = ds.to_iter_dataset()
    if executor.endswith(("worker", "workers")):
        ds = ds.mp_prefetch(num_workers=1 if executor == "one worker" else 2)
    with ds.loader(threads=2 if executor == "threads" else 0) as it:
        return [plain(element) for element in list(it)]


def looped(function: Callable[[int], Any], count: int = COUNT) -> list[Any]:
    return [plain(function(x)) for x in range(count)]


def batched(elements: list[Any]) -> Any:
    """As elements of nested dicts and lists are batched."""
    first = elements[0]
    if isinstance(first, dict):
        return {name: batched([element[name] for element in elements]) for name in first}
    return elements


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_function_reuses(way: str, executor: str) -> None:
    ds = gm.MapDataset.range(COUNT).map(Reuses(way))
    assert delivered(ds, executor) == looped(Reuses(way))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("way", ["array", "view", "read_only_view", "fresh_dict", "twice", "raw"])
def test_in_batches(way: str, executor: str) -> None:
    ds = gm.MapDataset.range(COUNT).map(Reuses(way)).to_iter_dataset().batch(5)
    expected = looped(Reuses(way))
    parts = [batched(expected[at : at + 5]) for at in range(0, COUNT, 5)]
    assert delivered(ds, executor) == parts


def plus_one(element: Any) -> Any:
    return {"x": element["x"], "y": element["x"] + 1}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_behind_another_function(executor: str) -> None:
    ds = gm.MapDataset.range(COUNT).map(Reuses("fresh_dict")).map(plus_one)
    assert delivered(ds, executor) == [{"x": [x] * 6, "y": [x + 1] * 6} for x in range(COUNT)]


class Sums(Own):
    """Adds up into one array what it is given, and keeps what it was given."""

    def __init__(self) -> None:
        self.sum = np.zeros(6, np.int64)

    def __call__(self, element: Any) -> Any:
        self.sum[:] = element * 2
        return self.sum


@pytest.mark.parametrize("executor", EXECUTORS)
def test_two_that_reuse(executor: str) -> None:
    ds = gm.MapDataset.range(COUNT).map(Reuses("view_of_view")).map(lambda x: {"x": x}).map(lambda e: e["x"][0][0])
    twice = gm.MapDataset.range(COUNT).map(Reuses("array")).map(Sums())
    assert delivered(ds, executor) == list(range(COUNT))
    assert delivered(twice, executor) == [[2 * x] * 6 for x in range(COUNT)]


class Noise(Own):
    def __init__(self) -> None:
        self.buffer = np.zeros(3)

    def __call__(self, x: int, rng: np.random.Generator) -> Any:
        rng.random(out=self.buffer)
        return {"x": self.buffer, "n": x}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_random_maps(executor: str) -> None:
    expected = gm.MapDataset.range(COUNT).random_map(lambda x, rng: {"x": rng.random(3), "n": x}, seed=3)
    ds = gm.MapDataset.range(COUNT).random_map(Noise(), seed=3)
    assert delivered(ds, executor) == [plain(expected[x]) for x in range(COUNT)]
    assert delivered(ds.to_iter_dataset().map(lambda x: x), executor) == [plain(expected[x]) for x in range(COUNT)]


def numbered(reuses: Reuses, index: int, _: int) -> Any:
    return reuses(index)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_maps_with_index(executor: str) -> None:
    ds = gm.MapDataset.range(COUNT).map_with_index(partial(numbered, Reuses("array")))
    assert delivered(ds, executor) == looped(Reuses("array"))
    stream = gm.MapDataset.range(COUNT).to_iter_dataset().map_with_index(partial(numbered, Reuses("array")))
    assert delivered(stream, executor) == looped(Reuses("array"))


def generated(x: int) -> Iterator[Any]:
    buffer = np.zeros(2, np.int64)
    for part in range(3):
        buffer[:] = x, part
        yield {"x": buffer}


def listed(rows: Any, x: int) -> Any:
    for part, row in enumerate(rows):
        row[:] = x, part
    return [{"x": row} for row in rows]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", ["generator", "list"])
def test_flat_maps(kind: str, executor: str) -> None:
    function: Any = generated if kind == "generator" else partial(listed, np.zeros((3, 2), np.int64))
    expected = [{"x": [x, part]} for x in range(COUNT) for part in range(3)]
    assert delivered(gm.MapDataset.range(COUNT).flat_map(function, max_fan_out=3), executor) == expected
    assert delivered(gm.MapDataset.range(COUNT).to_iter_dataset().flat_map(function), executor) == expected


class OneBuffer:
    """A source that reads into one buffer."""

    def __init__(self) -> None:
        self.buffer = np.zeros(3, np.int64)

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        self.buffer[:] = index
        return self.buffer


class Together(OneBuffer):
    """The same, that reads many at a time."""

    def __getitems__(self, indices: list[int]) -> Any:
        return (self[index] for index in indices)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("source", [OneBuffer, Together])
def test_sources(source: type[OneBuffer], executor: str) -> None:
    expected = [[x] * 3 for x in range(COUNT)]
    ds = gm.MapDataset.source(source())
    assert delivered(ds, executor) == expected
    assert delivered(ds.map(lambda x: x), executor) == expected
    assert delivered(gm.MapDataset.computed(OneBuffer()).map(lambda x: x), executor) == expected
    batches = delivered(ds.to_iter_dataset().batch(4), executor)
    assert [row for batch in batches for row in batch] == expected


class Stream:
    def __iter__(self) -> Iterator[Any]:
        buffer = np.zeros(3, np.int64)
        for x in range(COUNT):
            buffer[:] = x
            yield buffer


@pytest.mark.parametrize("executor", EXECUTORS)
def test_streams(executor: str) -> None:
    ds = gm.IterDataset.source(Stream())
    assert delivered(ds, executor) == [[x] * 3 for x in range(COUNT)]
    assert [row for batch in delivered(ds.batch(4), executor) for row in batch] == [[x] * 3 for x in range(COUNT)]


class Stacks:
    def __init__(self) -> None:
        self.buffer = np.zeros(4, np.int64)

    def __call__(self, elements: Any) -> Any:
        self.buffer[:] = elements
        return self.buffer


@pytest.mark.parametrize("executor", EXECUTORS)
def test_batch_functions(executor: str) -> None:
    ds = gm.MapDataset.range(COUNT).to_iter_dataset().batch(4, batch_fn=Stacks())
    assert delivered(ds, executor) == [list(range(at, at + 4)) for at in range(0, COUNT, 4)]


def test_what_a_source_has_is_not_changed_by_functions() -> None:
    data = np.arange(12).reshape(4, 3)
    held = [{"x": np.arange(3)} for _ in range(4)]

    def add(element: Any) -> Any:
        (element["x"] if isinstance(element, dict) else element)[:] += 100
        return element

    for source in (data, held):
        first = delivered(gm.MapDataset.source(source).map(add), "inline")
        assert delivered(gm.MapDataset.source(source).map(add), "threads") == first
    assert data.tolist() == np.arange(12).reshape(4, 3).tolist()
    assert plain(held) == [{"x": [0, 1, 2]}] * 4


def test_one_array_in_two_places_stays_one() -> None:
    for way in ("twice", "fresh_dict"):
        element = gm.MapDataset.range(3).map(Reuses(way)).to_iter_dataset().loader().__next__()
        assert way != "twice" or element["a"] is element["b"]


def test_a_list_in_itself() -> None:
    kept: list[Any] = [np.zeros(2)]
    kept.append(kept)
    element = gm.MapDataset.range(1).map(lambda _: kept)[0]
    assert element is not kept and element[1] is element and element[0] is not kept[0]


#: Makers of what nobody else refers to, each with where its arrays lie.
FRESH: dict[str, Callable[[int], Any]] = {
    "array": lambda x: np.full(64, x),
    "dict": lambda x: {"x": np.full(64, x), "y": np.zeros(3), "n": x},
    "views of one": lambda x: (lambda t: {"inputs": t[:-1], "targets": t[1:]})(np.full(65, x)),
    "list": lambda x: [np.full(64, x), (np.zeros(2),)],
    "twice": lambda x: (lambda t: {"a": t, "b": t})(np.full(8, x)),
}


def addresses(tree: Any) -> list[int]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [place for part in tree for place in addresses(part)]
    return [address(tree)] if isinstance(tree, np.ndarray) else []


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("kind", FRESH)
def test_fresh_arrays_are_not_copied(kind: str, threads: int) -> None:
    made: list[list[int]] = []

    def make(x: int) -> Any:
        tree = FRESH[kind](x)
        made.append(addresses(tree))
        return tree

    passed_on = gm.MapDataset.range(COUNT).map(make).map(lambda x: x)
    if kind == "dict":
        passed_on = passed_on.map(lambda x: {**x, "more": 1})
    with passed_on.to_iter_dataset().loader(threads=threads) as it:
        elements = list(it)
    assert sorted(map(addresses, elements)) == sorted(made)


@pytest.mark.parametrize("threads", [0, 2])
def test_parts_of_fresh_arrays_are_not_copied(threads: int) -> None:
    made: list[list[int]] = []

    def make(x: int) -> Any:
        array = np.full(64, x)
        made.append([address(array) + 8])
        return {"t": array}

    ds = gm.MapDataset.range(COUNT).map(make).map(lambda x: x["t"][1:5])
    with ds.to_iter_dataset().loader(threads=threads) as it:
        assert sorted(map(addresses, it)) == sorted(made)


@pytest.mark.parametrize("threads", [0, 2])
def test_read_only_arrays_are_not_copied(threads: int, npy: Any) -> None:
    constant = np.arange(5)
    constant.flags.writeable = False
    mapped = np.load(npy, mmap_mode="r")
    raw = bytes(16)

    def make(x: int) -> Any:
        return {"a": constant, "b": constant[1:], "c": mapped[x], "d": np.frombuffer(raw, np.int32)}

    ds = gm.MapDataset.range(COUNT).map(make)
    with ds.to_iter_dataset().loader(threads=threads) as it:
        assert [addresses(element) for element in it] == [addresses(make(x)) for x in range(COUNT)]
    rows = [addresses(row) for row in gm.MapDataset.source(mapped).to_iter_dataset().loader(threads=threads)]
    assert rows == [addresses(mapped[x]) for x in range(COUNT)]


def test_records_read_together_are_parts_of_one_array() -> None:
    made: list[int] = []

    class Rows(OneBuffer):
        def __getitems__(self, indices: list[int]) -> Any:
            rows = np.array(indices)[:, None].repeat(3, axis=1)
            made.extend(addresses(list(rows)))
            return rows

    ds = gm.MapDataset.source(Rows())
    with ds.to_iter_dataset().loader(threads=2) as it:
        elements = list(it)
    assert plain(elements) == [[x] * 3 for x in range(COUNT)]
    assert set(made) >= {address(element) for element in elements}
