"""Streams without random access: one thread reads them, and threads and workers apply the functions of their stages."""

import gzip
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import gristmill as gm
import pytest


class Numbers:
    """A stream without random access."""

    def __init__(self, stop: int) -> None:
        self.stop = stop

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.stop))


@pytest.mark.parametrize("stage", ["map", "filter", "random_map", "flat_map"])
def test_threads_apply_functions_of_a_stream_at_a_time(stage: str) -> None:
    # It returns once 4 threads are in it at a time, which happens once.
    met, barrier = threading.Event(), threading.Barrier(4, timeout=60)

    def meet() -> None:
        if not met.is_set():
            barrier.wait()
            met.set()

    ds = gm.IterDataset.source(Numbers(100))
    functions = {
        "map": lambda: ds.map(lambda x: (meet(), x)[1]),
        "filter": lambda: ds.filter(lambda x: (meet(), True)[1]),
        "random_map": lambda: ds.random_map(lambda x, rng: (meet(), x)[1], seed=1),
        "flat_map": lambda: ds.flat_map(lambda x: (meet(), [x])[1]),
    }
    with functions[stage]().loader(threads=4) as it:
        assert list(it) == list(range(100))


def test_compressed_lines_are_mapped_by_all_threads(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.writelines(f'{{"x": {x}}}\n' for x in range(50))
    met, barrier = threading.Event(), threading.Barrier(4, timeout=60)

    def double(row: dict[str, int]) -> int:
        if not met.is_set():
            barrier.wait()
            met.set()
        return 2 * int(row["x"])

    with gm.IterDataset.jsonl(tmp_path / "a.jsonl.gz").map(double).loader(threads=4) as it:
        assert list(it) == list(range(0, 100, 2))


def test_a_stream_has_the_states_of_one_thread_on_any_number() -> None:
    ds = gm.IterDataset.source(Numbers(60)).filter(lambda x: x % 3).random_map(lambda x, rng: (x, rng.integers(99)), seed=1)

    def passed(threads: int) -> list[tuple[object, str]]:
        with ds.loader(threads=threads) as it:
            return [(element, json.dumps(it.get_state())) for element in it]

    inline = passed(0)
    assert passed(1) == passed(8) == inline
    for at in (0, 7, 38):
        it = ds.loader(threads=8)
        it.set_state(json.loads(inline[at][1]))
        assert list(it) == [element for element, _ in inline[at + 1 :]]


def test_an_error_of_a_stream_comes_behind_the_elements_before_it() -> None:
    ds = gm.IterDataset.source(Numbers(60)).map(lambda x: 1 // (x - 30))
    with ds.loader(threads=4) as it:
        assert [next(it) for _ in range(30)] == [1 // (x - 30) for x in range(30)]
        with pytest.raises(ZeroDivisionError):
            next(it)


def test_workers_apply_functions_of_a_stream() -> None:
    def slow(x: int) -> tuple[int, int]:
        # A function that takes less than 20 µs is applied where the stream is read.
        time.sleep(0.001)
        return x, os.getpid()

    ds = gm.IterDataset.source(Numbers(100)).map(slow).mp_prefetch(num_workers=2, ram_budget="1GiB")
    with ds.map(lambda pair: (*pair, os.getpid())).loader() as it:
        elements = list(it)
    assert [x for x, _, _ in elements] == list(range(100))
    assert os.getpid() not in {there for _, there, _ in elements}
    assert {here for *_, here in elements} == {os.getpid()}


def test_an_element_that_cannot_be_pickled_is_mapped_here() -> None:
    class Locks:
        def __iter__(self) -> Iterator[object]:
            return iter([threading.Lock(), 1, threading.Lock(), 2])

    ds = gm.IterDataset.source(Locks()).map(lambda x: isinstance(x, int)).mp_prefetch(num_workers=1, ram_budget="1GiB")
    assert list(ds) == [False, True, False, True]


def test_explain_says_where_stages_of_a_stream_run() -> None:
    ds = gm.IterDataset.source(Numbers(9)).map(lambda x: x).random_map(lambda x, rng: x, seed=1).batch(3)
    lines = str(ds.explain()).splitlines()
    runs = {line.split()[1]: "on any thread" in line for line in lines if " in order" in line or "on any thread" in line}
    assert {name: runs[name] for name in ("source", "map", "random_map", "batch")} == {
        "source": False, "map": True, "random_map": True, "batch": False,
    }


def test_workers_that_have_nothing_to_do_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ds = gm.IterDataset.source(Numbers(3))
    assert list(ds.mp_prefetch(num_workers=1, ram_budget="1GiB").map(lambda x: x)) == [0, 1, 2]
    assert [record.message for record in caplog.records if "workers have no work" in record.message]
    caplog.clear()
    assert list(ds.map(lambda x: x).mp_prefetch(num_workers=1, ram_budget="1GiB")) == [0, 1, 2]
    assert not [record for record in caplog.records if "workers have no work" in record.message]


def test_none_is_dropped_wherever_it_was_made() -> None:
    def odd(x: int) -> int | None:
        return x if x % 2 else None

    stream = gm.IterDataset.source(Numbers(6)).map(odd)
    assert list(stream.mp_prefetch(num_workers=1, ram_budget="1GiB").drop_none()) == [1, 3, 5]
    assert list(stream.drop_none().mp_prefetch(num_workers=1, ram_budget="1GiB")) == [1, 3, 5]
    rows = gm.MapDataset.range(6).map(odd).to_iter_dataset()
    assert list(rows.mp_prefetch(num_workers=1, ram_budget="1GiB").drop_none()) == [1, 3, 5]
