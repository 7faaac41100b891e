"""Elements that are evaluated several at a time: what comes out, and what a function sees, is what it would be one by one."""

from typing import Any

import gristmill as gm
import numpy as np
import pytest

MANY = 5000


def batches(ds: gm.MapDataset, size: int) -> list[Any]:
    """Batches of random access and of a stream must be the same."""
    ahead = [batch.tolist() for batch in ds.batch(size)]
    behind = [batch.tolist() for batch in ds.to_iter_dataset().batch(size)]
    threads = [batch.tolist() for batch in ds.to_iter_dataset().batch(size).loader(threads=2)]
    assert ahead == behind == threads
    return sum(ahead, [])


def test_a_function_sees_each_element_once_and_in_order() -> None:
    expected = [3 * x for x in gm.MapDataset.range(MANY).shuffle(1)]
    assert batches(gm.MapDataset.range(MANY).shuffle(1).map(lambda x: 3 * x), 256) == expected
    for stacked in (lambda ds: ds.batch(300), lambda ds: ds.to_iter_dataset().batch(300)):
        calls: list[int] = []
        passed = iter(stacked(gm.MapDataset.range(MANY).map(lambda x: calls.append(x) or x)))
        for asked in range(1, 10):
            assert next(passed).tolist() == list(range(300 * (asked - 1), 300 * asked))
            # No function is called before the batch is asked for that needs it.
            assert calls == list(range(300 * asked))


def test_elements_of_any_kind_go_through() -> None:
    ds = gm.MapDataset.range(MANY).map(lambda x: {"x": np.full(2, x), "y": float(x)}).map(lambda e: (e["x"], e["y"]))
    for first, batch in zip(range(0, MANY, 100), ds.batch(100)):
        xs, ys = batch
        assert xs[:, 0].tolist() == xs[:, 1].tolist() == ys.tolist() == list(range(first, first + 100))
    big = gm.MapDataset.range(MANY).map(lambda x: x << 70).to_iter_dataset().batch(500, batch_fn=list)
    assert sum(big, []) == [x << 70 for x in range(MANY)]


def test_a_filter_may_drop_any_of_them() -> None:
    ds = gm.MapDataset.range(MANY).filter(lambda x: x % 7 != 3).map(lambda x: -x)
    kept = [-x for x in range(MANY) if x % 7 != 3]
    assert sum((b.tolist() for b in ds.to_iter_dataset().batch(256)), []) == kept
    assert sum((b.tolist() for b in ds.to_iter_dataset().batch(256).loader(threads=2)), []) == kept


@pytest.mark.parametrize("threads", [0, 2])
def test_an_exception_belongs_to_its_element(threads: int) -> None:
    def checked(x: int) -> int:
        if x >= 2000 and x % 3 == 0:
            raise KeyError(x)
        return x

    passed = gm.MapDataset.range(MANY).map(checked).to_iter_dataset().batch(256).loader(threads=threads)
    seen: list[int] = []
    with pytest.raises(KeyError, match="2001") as caught:
        while True:
            seen += next(passed).tolist()
    notes = ["gristmill: stage 1 map, element 2001", "gristmill: 7 elements were delivered before it"]
    assert caught.value.__notes__ == notes
    assert any(frame.name == "checked" for frame in caught.traceback)
    assert seen == list(range(7 * 256))


def test_stop_iteration_is_an_error_and_not_the_end() -> None:
    def stops(x: int) -> int:
        if x == 3000:
            raise StopIteration
        return x

    passed = iter(gm.MapDataset.range(MANY).map(stops).batch(100))
    for _ in range(30):
        next(passed)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        next(passed)


class Together:
    """A source that reads many at once, and counts how often it was asked."""

    def __init__(self, bad: int | None = None, short: bool = False) -> None:
        self.bad, self.short, self.asked, self.alone = bad, short, 0, 0

    def __len__(self) -> int:
        return MANY

    def __getitem__(self, index: int) -> int:
        self.alone += 1
        if index == self.bad:
            raise OSError(f"no {index}")
        return index * 10

    def __getitems__(self, indices: list[int]) -> list[int]:
        assert type(indices) is list
        self.asked += 1
        if self.bad in indices:
            raise OSError("one of them")
        return [index * 10 for index in indices[self.short :]]


def test_a_source_may_read_many_at_once() -> None:
    source = Together()
    assert batches(gm.MapDataset.source(source).shuffle(3), 250) == [10 * x for x in gm.MapDataset.range(MANY).shuffle(3)]
    # Few are read alone, while chunks grow.
    assert source.asked > 0
    assert source.alone < MANY / 4


def test_where_reading_many_fails_the_error_is_that_of_one() -> None:
    passed = gm.MapDataset.source(Together(bad=4321)).to_iter_dataset().batch(100).loader()
    seen: list[int] = []
    with pytest.raises(OSError, match="no 4321") as caught:
        while True:
            seen += next(passed).tolist()
    assert caught.value.__notes__[0] == "gristmill: stage 0 source, element 4321"
    assert seen == [10 * x for x in range(4300)]


def test_a_source_gives_as_many_as_it_was_asked_for() -> None:
    with pytest.raises(gm.DataError, match=r"`__getitems__` of .*Together gave \d+ records for \d+ indices"):
        list(gm.MapDataset.source(Together(short=True)).batch(250))
