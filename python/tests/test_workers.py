"""Worker processes never change the data."""

import dataclasses
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"ram_budget": "1GiB", "worker_heap": "192MiB"}


def numbers(count: int = 400) -> gm.MapDataset:
    return gm.MapDataset.range(count).seed(5)


def tokens(x: int) -> dict[str, Any]:
    return {"tokens": np.full(x % 7 + 1, x, np.int32)}


@dataclasses.dataclass
class Pair:
    name: str
    values: Any


def test_a_list_of_plain_values_is_read_in_workers() -> None:
    # No stage is a Python function, and the elements are Python objects all the same.
    dataset = gm.MapDataset.source([{"text": f"{i}"} for i in range(20)]).shuffle(seed=1).batch(4)
    stream = dataset.to_iter_dataset()
    batches = [batch["text"].tolist() for batch in stream.mp_prefetch(workers=1, **WORKERS)]
    assert batches == [batch["text"].tolist() for batch in stream]


def everything(x: int) -> Any:
    """Leaves of every kind, some of which only pickle knows."""
    return {
        "none": None,
        "truth": x % 2 == 0,
        "number": x,
        "large": 1 << 70,
        "real": x / 3,
        "text": "é" * (x % 40),
        "lone surrogate": "\udcff",
        "bytes": bytes(x % 50),
        "list": [x, [x, "a"], ()],
        "tuple": (x, np.float32(x)),
        "array": np.arange(x % 30, dtype=np.float32).reshape(-1, 1),
        "flags": np.array([x % 2 == 0]),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3) + x),
        "date": np.array(["2024-01-01"], "M8[D]"),
        "complex": np.array([x + 1j]),
        "scalar array": np.array(x),
        "keys": {1: x, (2, 3): np.arange(3)},
        "pair": Pair(str(x), np.arange(x % 9)),
    }


PIPELINES: dict[str, Callable[[], gm.IterDataset]] = {
    "native": lambda: numbers().shuffle().to_iter_dataset().batch(7),
    "map": lambda: numbers().shuffle().map(lambda x: {"x": np.array([x, -x]), "s": str(x)}).to_iter_dataset(),
    "filter and batch": lambda: numbers().map(tokens).filter(lambda e: len(e["tokens"]) > 2).map(
        lambda e: {"n": len(e["tokens"])}
    ).to_iter_dataset().batch(6),
    "pack": lambda: numbers().shuffle().map(tokens).to_iter_dataset().first_fit_pack(
        length={"tokens": 16}, num_packing_bins=5
    ).batch(3),
    "random": lambda: numbers().random_map(lambda x, rng: (x, rng.random())).to_iter_dataset().window_shuffle(20),
    "mix": lambda: gm.IterDataset.mix([numbers().to_iter_dataset(), numbers().map(str).to_iter_dataset()], [2, 1]),
    "flat_map": lambda: numbers().to_iter_dataset().flat_map(lambda x: [x, str(x)] * (x % 3)).filter(bool).batch(
        4, batch_fn=list
    ),
    "batch_fn": lambda: numbers().to_iter_dataset().batch(5, batch_fn=sum),
    "everything": lambda: numbers(60).map(everything).to_iter_dataset(),
}


def shown(elements: Any) -> list[str]:
    return [repr(element) for element in elements]


@pytest.mark.parametrize("name", PIPELINES)
def test_any_number_of_workers_gives_the_same_elements(name: str) -> None:
    ds = PIPELINES[name]()
    expected = shown(ds)
    for workers in (0, 1, 3):
        with ds.mp_prefetch(num_workers=workers, **WORKERS).loader() as it:
            assert shown(it) == expected, workers
    threads = ds.mp_prefetch(num_workers=1, threads_per_worker=3, **WORKERS)
    assert shown(threads) == expected


@pytest.mark.parametrize("name", ["native", "pack", "random"])
def test_a_state_goes_to_another_number_of_workers(name: str) -> None:
    ds = PIPELINES[name]()
    expected = shown(ds)
    seen: list[str] = []
    state: dict[str, Any] | None = None
    for workers in (2, 0, None, 1):
        # The last has none at all: the pipeline is the same.
        part = ds if workers is None else ds.mp_prefetch(num_workers=workers, **WORKERS)
        with part.loader() as it:
            if state is not None:
                it.set_state(state)
            seen += shown(islice(it, 9))
            state = it.get_state()
    assert seen == expected[:36]


def test_functions_run_in_the_workers_and_those_behind_them_here() -> None:
    ds = numbers().map(lambda x: os.getpid()).mp_prefetch(num_workers=2, **WORKERS).map(lambda pid: (pid, os.getpid()))
    pids = set(ds)
    assert {here for _, here in pids} == {os.getpid()}
    assert os.getpid() not in {pid for pid, _ in pids}


def test_what_is_behind_the_workers_need_not_be_pickled() -> None:
    unpicklable = (i for i in range(1000))
    ds = numbers().map(str).mp_prefetch(num_workers=1, **WORKERS).map(lambda text: (text, next(unpicklable)))
    assert list(ds)[-1] == ("399", 399)


def test_functions_may_hold_much() -> None:
    held = np.arange(6 << 20)
    ds = numbers().map(lambda x: int(held[x])).mp_prefetch(num_workers=1, ram_budget="2GiB")
    assert list(ds) == list(range(400))


class Spoiled(Exception):
    pass


class Stubborn(Exception):
    """It cannot be unpickled: its arguments are not what its constructor takes."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__("stubborn")


def fails(x: int) -> int:
    if x == 33:
        raise Spoiled(x)
    if x == 44:
        raise Stubborn(1, 2)
    return x


def test_an_exception_keeps_its_type_and_says_where_it_was_raised() -> None:
    it = iter(numbers().map(fails).mp_prefetch(num_workers=2, **WORKERS))
    with pytest.raises(Spoiled) as caught:
        list(it)
    assert caught.value.args == (33,)
    notes = "\n".join(caught.value.__notes__)
    assert "raised in worker process" in notes and "in fails" in notes
    assert "stage 2 map, element 33" in notes and "33 elements were delivered" in notes


def test_a_traceback_has_the_frames_of_the_worker() -> None:
    ds = numbers()[30:].map(lambda x: fails(x)).mp_prefetch(num_workers=1, **WORKERS)
    with pytest.raises(Spoiled) as caught:
        list(ds)
    here, *there = traceback.extract_tb(caught.value.__traceback__)
    assert here.name == "test_a_traceback_has_the_frames_of_the_worker"
    assert [frame.name for frame in there] == ["<lambda>", "fails"]
    assert {frame.filename for frame in there} == {__file__} and there[1].line == "raise Spoiled(x)"
    # Nothing in the line is underlined: where in it is not known.
    assert "^^^" not in "".join(traceback.format_list(there))


def test_without_workers_their_part_is_evaluated_here() -> None:
    ds = numbers().map(lambda _: os.getpid()).mp_prefetch(num_workers=2, **WORKERS)
    with ds.loader(workers=False) as it:
        assert next(it) == os.getpid()


def test_an_exception_that_cannot_be_pickled_is_told() -> None:
    ds = numbers()[40:].map(fails).mp_prefetch(num_workers=1, **WORKERS)
    with pytest.raises(gm.WorkerError, match="Stubborn: stubborn") as caught:
        list(ds)
    assert "in fails" in "\n".join(caught.value.__notes__)


def test_a_function_that_ends_its_program_ends_no_other() -> None:
    ds = numbers().map(lambda x: sys.exit(7) if x == 5 else x).mp_prefetch(num_workers=1, **WORKERS)
    with pytest.raises(gm.WorkerError, match="SystemExit: 7"):
        list(ds)


@pytest.mark.parametrize("size", [1, 5])
def test_sources_may_be_arrays(size: int) -> None:
    ds = gm.MapDataset.source(np.arange(size) + 3).map(lambda x: x + 1).mp_prefetch(num_workers=1, **WORKERS)
    assert [int(x) for x in ds] == [x + 4 for x in range(size)]


def test_what_cannot_be_sent_is_named() -> None:
    generator = (i for i in range(3))
    ds = numbers().map(str).filter(lambda _: bool(generator)).mp_prefetch(num_workers=1, **WORKERS)
    with pytest.raises(gm.ConfigError, match="filter: <function .*generator"):
        iter(ds)


def test_an_element_that_cannot_come_back_is_named() -> None:
    ds = numbers().map(lambda x: (i for i in [x])).mp_prefetch(num_workers=1, **WORKERS)
    with pytest.raises(gm.DataError, match="holds a generator, which cannot leave the worker"):
        list(ds)


class Init:
    seen: tuple[int, int] | None = None

    def __call__(self, index: int, count: int) -> None:
        Init.seen = (index, count)
        os.environ["WORKER_INDEX"] = f"{index} of {count}"


def test_each_worker_is_initialised_first() -> None:
    ds = numbers().map(lambda _: os.environ["WORKER_INDEX"])
    for given in ({}, {"options": gm.MpOptions(num_workers=2, **WORKERS)}):
        keywords = given or {"num_workers": 2, **WORKERS}
        seen = set(ds.mp_prefetch(worker_init_fn=Init(), **keywords))
        assert seen and seen <= {"0 of 2", "1 of 2"}
    assert Init.seen is None
    with pytest.raises(TypeError, match="worker_init_fn is a function of two numbers"):
        ds.mp_prefetch(worker_init_fn=3)  # type: ignore[arg-type]


def test_arrays_are_views_of_shared_memory_that_outlive_the_workers() -> None:
    with numbers().map(lambda x: np.full(5000, x)).mp_prefetch(num_workers=1, **WORKERS).loader() as it:
        arrays = [array[7:9] for array in islice(it, 50)]
    assert [int(array[0]) for array in arrays] == list(range(50))
    addresses = [array.__array_interface__["data"][0] - 56 for array in arrays]
    assert all(address % 64 == 0 for address in addresses)


def test_datasets_are_pickled_by_their_recipe(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(12).reshape(6, 2))
    parent = gm.MapDataset.npy(tmp_path / "a.npy").shuffle(seed=3)
    datasets: list[Any] = [
        parent[1:5:2],
        gm.MapDataset.concatenate([parent, parent]).repeat(2).select_indices([3, 1, 20]),
        parent.to_iter(on_bad_record="skip").window_shuffle(3, seed=1).batch(2, drop_remainder=True).mp_prefetch(4),
    ]
    for ds in datasets:
        assert shown(pickle.loads(pickle.dumps(ds))) == shown(ds)
        assert repr(pickle.loads(pickle.dumps(ds))) == repr(ds)


def test_a_long_pipeline_is_pickled_without_recursion() -> None:
    ds = gm.MapDataset.range(5)
    for _ in range(300):
        ds = ds.seed(1)
    assert list(pickle.loads(pickle.dumps(ds))) == list(range(5))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"ram_budget": "much"}, "ram_budget: `much` is no amount of memory"),
    ({"ram_budget": "0GiB"}, "ram_budget is 0 bytes, and must be 1 MiB or more"),
    ({"num_workers": -1}, "num_workers: -1 is less than 0"),
    ({"num_workers": "2"}, "num_workers: needs a whole number, got"),
    ({"num_workers": 2, "workers": 3}, "give one of them"),
    ({"per_worker_buffer_size": 0}, "per_worker_buffer_size is 0"),
    ({"deadline": 0}, "deadline: is 0"),
    ({"on_poison": "keep"}, "on_poison: "),
    ({"num_workers": 2, "max_workers": 3}, "num_workers and max_workers exclude each other"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_options_that_cannot_be_are_refused_where_they_are_given(options: dict[str, Any], says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says):
        numbers().mp_prefetch(**options)


def test_too_small_a_budget_says_what_is_needed() -> None:
    with pytest.raises(gm.ConfigError, match=r"ram_budget is 50 MiB; 2 x \(192 MiB of heap \+ 10 MiB"):
        iter(numbers().map(str).mp_prefetch(num_workers=2, ram_budget="50MiB"))


def test_the_report_has_a_row_for_every_worker() -> None:
    with numbers(3000).map(str).mp_prefetch(num_workers=2, **WORKERS).loader() as it:
        list(it)
        stages = {stage["name"]: stage for stage in it.report().as_dict()["stages"]}
    assert stages["map"]["elements"] == 3000

    def slow(x: int) -> int:
        # One worker alone would do where it is ready before the next element is asked for.
        time.sleep(0.002)
        return x

    with numbers().repeat().map(slow).mp_prefetch(num_workers=2, **WORKERS).loader() as it:
        rows: list[Any] = []
        while len([row for row in rows if row["tasks"] > 0]) < 2:
            next(it)
            rows = it.report().as_dict()["workers"]["workers"]
    assert len({row["pid"] for row in rows} - {os.getpid()}) == 2
