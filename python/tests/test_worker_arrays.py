"""Arrays that functions make in a worker lie in shared memory from the start; what was delivered never changes."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"ram_budget": "1GiB", "worker_heap": "192MiB"}
#: Numbers in an array of 1 MiB.
NUMBERS = 1 << 17
#: Copies, of 60 arrays, that may happen to lie at one distance.
COPIES = 10


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def delivered(function: Callable[[int], Any], count: int = 60, workers: int = 1, batch: int = 0, **options: Any) -> list[Any]:
    """What comes of the first numbers, one by one or in batches, all of it held at a time."""
    ds = gm.MapDataset.range(count).map(function).to_iter_dataset()
    ds = ds.batch(batch) if batch else ds
    with ds.mp_prefetch(num_workers=workers, **(WORKERS | options)).loader() as it:
        return list(it)


def in_place(elements: list[Any], field: str = "x") -> int:
    """Elements whose array lies where the function made it: both processes have the slab at one distance from each other.
    Those of batches lie there row by row."""
    rows = [np.atleast_1d(element["at"]) for element in elements]
    follow = [np.all(np.diff(at) == element[field].nbytes // at.size) for at, element in zip(rows, elements, strict=True)]
    distances = [int(at[0]) - address(element[field]) for at, element in zip(rows, elements, strict=True)]
    counted = [distance for distance, whole in zip(distances, follow, strict=True) if whole]
    return max((counted.count(distance) for distance in set(counted)), default=0)


def full(x: int) -> Any:
    array = np.full(NUMBERS, x)
    return {"x": array, "at": address(array)}


def reshaped(x: int) -> Any:
    array = np.full(NUMBERS, x).reshape(-1, 64)
    return {"x": array, "at": address(array)}


def zeros(x: int) -> Any:
    array = np.zeros(NUMBERS, np.int64)
    array += x
    return [{"x": array, "at": address(array)}]


def computed(x: int) -> Any:
    array = np.arange(NUMBERS) * 2 + x
    return {"x": array, "at": address(array)}


@pytest.mark.parametrize("function", [full, reshaped])
def test_arrays_are_delivered_where_they_were_made(function: Callable[[int], Any]) -> None:
    elements = delivered(function)
    for x, element in enumerate(elements):
        assert (element["x"] == x).all()
    # Of the first tasks nobody knew how much room they take.
    assert in_place(elements) > COPIES


def test_zeroed_memory_and_arrays_in_lists() -> None:
    elements = [element for (element,) in delivered(zeros)]
    assert all((element["x"] == x).all() for x, element in enumerate(elements))
    assert in_place(elements) > COPIES


def test_arrays_in_between_are_no_part_of_what_is_delivered() -> None:
    elements = delivered(computed)
    assert all((element["x"] == np.arange(NUMBERS) * 2 + x).all() for x, element in enumerate(elements))


def fraction(x: int) -> Any:
    """A row with a larger array in between."""
    array = (np.arange(NUMBERS) % 251).astype(np.float32) + x
    return {"x": array, "at": address(array), "name": str(x)}


@pytest.mark.parametrize("function", [full, reshaped, fraction])
def test_rows_of_batches_are_delivered_where_they_were_made(function: Callable[[int], Any]) -> None:
    batches = delivered(function, 240, batch=4)
    assert len(batches) == 60
    for b, batch in enumerate(batches):
        for row, x in enumerate(range(4 * b, 4 * b + 4)):
            assert np.array_equal(batch["x"][row], function(x)["x"]), f"row {row} of batch {b}"
    assert in_place(batches) > COPIES


def two_rows(x: int) -> Any:
    return {"x": np.full(NUMBERS, x), "y": np.full(NUMBERS, -x), "at": 0}


def odd_rows(x: int) -> Any:
    return {"x": np.full(NUMBERS + 1, x), "at": 0}


def uneven(x: int) -> Any:
    """A row with arrays in between, now larger and now smaller, which leaves room where the next row has not enough."""
    array = (np.zeros(NUMBERS, np.uint16 if x % 2 else np.int64)).astype(np.int32) + np.int32(x)
    return {"x": array, "at": 0}


class KeepsRow:
    """Rows, of which one is kept for good."""

    def __init__(self) -> None:
        self.kept: Any = None

    def __call__(self, x: int) -> Any:
        array = np.full(NUMBERS, x)
        if x == 101:
            self.kept = array
        return {"x": array, "at": 0}


@pytest.mark.parametrize("function", [two_rows, odd_rows, uneven, KeepsRow()])
def test_rows_that_are_not_the_batch_as_they_lie_are_copied(function: Callable[[int], Any]) -> None:
    batches = delivered(function, 240, batch=4)
    assert all((batch["x"] == np.arange(4 * b, 4 * b + 4)[:, None]).all() for b, batch in enumerate(batches))
    assert all((batch["y"] == -batch["x"]).all() for batch in batches if "y" in batch)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_ARRAYS_IN_SLAB", "0")
    elements = delivered(full)
    assert all((element["x"] == x).all() for x, element in enumerate(elements))
    assert in_place(elements) <= COPIES


#: So many elements later what a function returned was delivered: no task has as many of this size.
LATER = 16


class Keeps:
    """Writes to arrays that it returned a while ago."""

    def __init__(self) -> None:
        self.kept: deque[Any] = deque()
        self.last: Any = None

    def keep(self, array: Any) -> None:
        self.kept.append(array)
        if len(self.kept) > LATER:
            self.kept.popleft()[:] = -1

    def __call__(self, x: int) -> Any:
        array = np.full(NUMBERS, x)
        self.keep(array)
        return {"x": array}


class KeepsDict(Keeps):
    """The same, of dicts that arrays are in."""

    def __call__(self, x: int) -> Any:
        element = {"x": np.full(NUMBERS, x)}
        self.kept.append(element)
        if len(self.kept) > LATER:
            self.kept.popleft()["x"][:] = -1
        return element


class KeepsView(Keeps):
    """The same, of parts of arrays."""

    def __call__(self, x: int) -> Any:
        array: Any = np.full(NUMBERS, x)
        self.keep(np.asarray(memoryview(array))[5:])
        return {"x": array}


class Again(Keeps):
    """Returns a few arrays again and again."""

    def __call__(self, x: int) -> Any:
        array = self.kept.popleft() if len(self.kept) == LATER else np.empty(NUMBERS, np.int64)
        array[:] = x
        self.kept.append(array)
        return {"x": array}


class PartOf(Again):
    """Returns parts of such arrays."""

    def __call__(self, x: int) -> Any:
        return {"x": super().__call__(x)["x"][64:]}


class Later(Keeps):
    """Writes from another thread, once the element is on its way."""

    def __call__(self, x: int) -> Any:
        array = np.full(NUMBERS, x)

        def write() -> None:
            # After the element was copied out of the array, which takes microseconds.
            time.sleep(0.5)
            array[:] = -1

        # There are many at a time, in a heap that is limited.
        threading.stack_size(256 << 10)
        threading.Thread(target=write).start()
        return {"x": array}


class Ahead(Keeps):
    """Makes arrays that another thread fills while the function is not at work."""

    def __call__(self, x: int) -> Any:
        if self.last is None:
            self.last = self.begin(x)
        array, thread = self.last
        thread.join()
        if array[0] != x:
            array, thread = self.begin(x)
            thread.join()
        self.last = self.begin(x + 1)
        return {"x": array}

    def begin(self, x: int) -> Any:
        array = np.empty(NUMBERS, np.int64)

        def fill() -> None:
            # Fills the array while the function is not called. A later fill is waited for.
            time.sleep(0.001)
            array[:] = x

        thread = threading.Thread(target=fill)
        thread.start()
        return array, thread


class Resized(Keeps):
    """Arrays that grow."""

    def __call__(self, x: int) -> Any:
        array = np.full(NUMBERS // 2, x)
        array.resize(NUMBERS, refcheck=False)
        array[NUMBERS // 2 :] = x
        return {"x": array}


class Hoards(Keeps):
    """Keeps everything for a while, and lets go of it."""

    def __call__(self, x: int) -> Any:
        if self.last is None or len(self.last) > 20:
            self.last = []
        array = np.full(NUMBERS, x)
        self.last.append(array)
        return {"x": array.copy()}


class Boxed:
    """Something that only pickle knows."""

    def __init__(self, x: int) -> None:
        self.array = np.full(NUMBERS, x)


class Pickled(Keeps):
    """Arrays inside of other objects."""

    def __call__(self, x: int) -> Any:
        return {"x": np.full(NUMBERS, x), "box": Boxed(x)}


CHANGES = [Keeps, KeepsDict, KeepsView, Again, PartOf, Later, Ahead, Resized, Hoards, Pickled]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("function", CHANGES)
def test_what_functions_do_later_changes_nothing(function: type[Keeps], workers: int) -> None:
    elements = delivered(function(), workers=workers)
    # For the writes that come later. A write that comes after the comparison is not seen, and fails nothing.
    time.sleep(0.6 if function is Later else 0)
    assert len(elements) == 60
    for x, element in enumerate(elements):
        assert (element["x"] == x).all(), f"element {x}"


@pytest.mark.parametrize("function", [function for function in CHANGES if function is not Pickled])
def test_what_functions_do_later_changes_no_row_of_a_batch(function: type[Keeps]) -> None:
    batches = delivered(function(), 60, batch=3)
    # For the writes that come later. A write that comes after the comparison is not seen, and fails nothing.
    time.sleep(0.6 if function is Later else 0)
    assert len(batches) == 20
    for b, batch in enumerate(batches):
        assert (batch["x"] == np.arange(3 * b, 3 * b + 3)[:, None]).all(), f"batch {b}"


# Threads that keep arrays for long are no matter of shared memory: those lie in the heap by then.
@pytest.mark.parametrize("function", [function for function in CHANGES if function is not Later])
def test_what_is_kept_does_not_starve_a_small_slab(function: type[Keeps]) -> None:
    # Some 16 MiB of shared memory, of which views hold nothing.
    ds = gm.MapDataset.range(200).map(function()).to_iter_dataset()
    ds = ds.mp_prefetch(num_workers=1, ram_budget="290MiB", worker_heap="192MiB")
    with ds.loader() as it:
        for x, element in enumerate(it):
            assert (element["x"] == x).all()


def forks(x: int) -> Any:
    """A fork has the arrays as they were, and what it writes there is its own."""
    array = np.full(NUMBERS, x)
    pid = os.fork()
    if pid == 0:
        right = (array == x).all()
        array[:] = -1
        array = np.full(NUMBERS, -2)
        os._exit(7 if right else 1)
    _, status = os.waitpid(pid, 0)
    return {"x": array, "at": address(array), "child": os.waitstatus_to_exitcode(status)}


def test_a_fork_in_a_function_has_its_arrays() -> None:
    elements = delivered(forks)
    assert {element["child"] for element in elements} == {7}
    assert all((element["x"] == x).all() for x, element in enumerate(elements))
    assert in_place(elements) > COPIES


def sizes(x: int) -> Any:
    rng = np.random.default_rng(x)
    return {str(n): rng.integers(0, 100, int(rng.integers(0, 60_000))) for n in range(int(rng.integers(1, 6)))}


def test_the_data_is_that_of_no_workers() -> None:
    expected = [sizes(x) for x in range(300)]
    for workers in (1, 2):
        for x, (element, alone) in enumerate(zip(delivered(sizes, 300, workers), expected, strict=True)):
            assert list(element) == list(alone)
            for name, array in alone.items():
                assert element[name].dtype == array.dtype and np.array_equal(element[name], array), f"element {x}, {name}"


def test_what_is_delivered_stays_while_it_is_held() -> None:
    ds = gm.MapDataset.range(10_000).map(full).to_iter_dataset().mp_prefetch(num_workers=2, **WORKERS)
    with ds.loader() as it:
        held = [element["x"] for element in islice(it, 0, 400, 20)]
        for _ in islice(it, 200):
            pass
        for n, array in enumerate(held):
            assert (array == 20 * n).all()
