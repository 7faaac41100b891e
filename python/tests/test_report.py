"""Reports of loops: which figures they have, and whether a clock around `next` agrees; and threads that follow elements that wait.

The verdict, its advice and the tuner are tested by scenes in Rust (`src/report/scenes`, `src/tune/scenes`). Tests that measure a machine
are marked `live`, and each sleep in them stands for a source that waits or for the step of the loop.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"num_workers": 1, "ram_budget": "1GiB", "worker_heap": "192MiB"}


def computes(x: int) -> int:
    """Keeps the interpreter's lock for half a millisecond."""
    end = time.perf_counter() + 0.0005
    while time.perf_counter() < end:
        pass
    return x


def waits(x: int) -> int:
    """Waits, and lets others have the interpreter."""
    time.sleep(0.002)
    return x


def batches(function: Callable[[int], int], n: int = 1600) -> gm.IterDataset:
    return gm.MapDataset.range(n).map(function).to_iter_dataset().batch(4)


def clocked(loader: gm.DatasetIterator, step_s: float, steps: int) -> tuple[float, float]:
    """The share of a loop's time that a clock around `next` sees, and the seconds."""
    waited, start = 0.0, time.perf_counter()
    for _ in range(steps):
        asked = time.perf_counter()
        next(loader)
        waited += time.perf_counter() - asked
        if step_s:
            time.sleep(step_s)
    return waited / (time.perf_counter() - start), waited


@pytest.fixture(params=["inline", "1 thread", "2 threads", "4 threads", "worker"])
def running(request: pytest.FixtureRequest) -> Iterator[gm.DatasetIterator]:
    ds = batches(computes)
    how = request.param
    if how == "worker":
        loader = ds.mp_prefetch(**WORKERS).loader()
    else:
        loader = ds.loader(threads=0 if how == "inline" else int(how.split()[0]))
    with loader:
        yield loader


def test_parts_of_the_wait_add_up_and_are_within_a_clock_around_next(running: gm.DatasetIterator) -> None:
    _, waited_s = clocked(running, 0.0, 200)
    report = running.report().as_dict()
    assert 0 < report["consumer_wait_share"] * report["wall_s"] <= waited_s, str(running.report())
    stages = sum(stage["wait_share"] for stage in report["stages"])
    parts = stages + report["startup_share"] + report["handover_share"] + report["aside_share"]
    assert parts == pytest.approx(report["consumer_wait_share"], abs=1e-6)
    # Each look at a function of Python finds that it takes the interpreter's lock.
    assert next(stage for stage in report["stages"] if stage["name"] == "map")["interpreted"], str(running.report())


def test_a_run_of_ten_batches_blames_no_stage() -> None:
    with batches(int, 40).loader() as loader:
        assert len(list(loader)) == 10
        verdict = loader.report().as_dict()["verdict"]
    assert verdict["bottleneck"] in ("none", "start-up") and verdict["stage"] is None and not verdict["advice"], verdict


@pytest.mark.live
@pytest.mark.parametrize("step_s", [0.0, 0.003])
def test_shares_are_those_of_a_clock_around_next(running: gm.DatasetIterator, step_s: float) -> None:
    share, _ = clocked(running, step_s, 200)
    assert running.report().as_dict()["consumer_wait_share"] == pytest.approx(share, abs=0.02), str(running.report())


@pytest.mark.live
def test_measure_says_what_the_report_says(running: gm.DatasetIterator) -> None:
    with gm.measure(running, samples=lambda _: 4) as measured:
        for _, _ in zip(measured, range(200), strict=False):
            time.sleep(0.002)
        stall = measured.metrics().as_dict()["stall"]
    assert running.report().as_dict()["steady_wait_share"] == pytest.approx(stall, abs=0.02), str(running.report())


@pytest.mark.live
@pytest.mark.parametrize("threads", [0, 2])
def test_a_function_that_holds_the_lock_is_advised_processes(threads: int) -> None:
    with batches(computes).loader(threads=threads) as loader:
        clocked(loader, 0.0, 200)
        report, text = loader.report().as_dict(), str(loader.report())
    stage = next(stage for stage in report["stages"] if stage["name"] == "map")
    assert stage["interpreted"], text
    changes = [advice["change"] for advice in report["verdict"]["advice"]]
    assert not any("threads" in change for change in changes), text
    assert any("workers" in change for change in changes) == (report["cores"] > 1), text
    assert ("mp_prefetch" in text) == (report["cores"] > 1), text
    if threads > 1:
        assert stage["lock_s"] > 0.2 * stage["self_s"] and stage["blocked_s"] < 0.3 * stage["self_s"], text


def test_a_stage_runs_on_threads_in_front_of_workers_and_on_one_thread_behind_them() -> None:
    numbers = gm.MapDataset.range(400).to_iter_dataset()
    in_front, behind = numbers.map(computes).mp_prefetch(tune=False, **WORKERS), numbers.mp_prefetch(tune=False, **WORKERS).map(computes)
    for ds, place in [(in_front, "threads"), (behind, "suffix")]:
        with ds.batch(4).loader() as loader:
            assert len(list(loader)) == 100
            stages = loader.report().as_dict()["stages"]
        assert [stage["place"] for stage in stages if stage["name"] == "map"] == [place]


@pytest.mark.live
def test_workers_are_not_advised_for_what_runs_behind_them() -> None:
    """They would not evaluate it; the advice is followed, and then they do."""
    numbers = gm.MapDataset.range(1600).to_iter_dataset()

    def run(ds: gm.IterDataset) -> tuple[list[dict[str, Any]], str]:
        with ds.batch(4).loader() as loader:
            clocked(loader, 0.0, 200)
            return loader.report().as_dict()["verdict"]["advice"], str(loader.report())

    advice, text = run(numbers.mp_prefetch(tune=False, **WORKERS).map(computes))
    assert advice and all(set(told["change"]) == {"cheaper"} for told in advice), text
    assert any("move the stage before mp_prefetch" in told["text"] for told in advice), text
    _, text = run(numbers.map(computes).mp_prefetch(tune=False, **WORKERS))
    assert "before mp_prefetch" not in text, text


def test_start_up_names_what_took_it() -> None:
    def opens(x: int) -> int:
        # Far longer than anything else that a busy machine does before the first element.
        if x == 0:
            time.sleep(1.0)
        return x

    with batches(opens).loader() as loader:
        next(loader)
        report = loader.report().as_dict()
    assert any(cause.endswith("of it: the first elements in map (stage 1)") for cause in report["startup"]), report["startup"]


def test_start_up_names_numpy_where_nobody_had_imported_it() -> None:
    code = """
import gristmill as gm

with gm.MapDataset.range(64).to_iter_dataset().batch(8).loader() as loader:
    assert len(list(loader)) == 8
    report = loader.report().as_dict()
assert report["startup_share"] > report["handover_share"], report["why"]
print(report["startup"])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "of it: NumPy imported" in told, told


@pytest.mark.live
def test_a_function_that_waits_is_advised_threads_and_they_are_worth_it() -> None:
    def timed(threads: int) -> tuple[float, dict[str, Any], str]:
        with batches(waits, 1 << 20).loader(threads=threads) as loader:
            next(loader)
            start = time.perf_counter()
            clocked(loader, 0.0, 50)
            return time.perf_counter() - start, loader.report().as_dict(), str(loader.report())

    for threads in (0, 2):
        before, report, text = timed(threads)
        assert "gain nothing" not in text and "mp_prefetch" not in text, text
        stage = next(stage for stage in report["stages"] if stage["name"] == "map")
        assert stage["blocked_s"] > 0.7 * stage["self_s"] > 0, text
        advised = [advice["change"]["threads"] for advice in report["verdict"]["advice"] if "threads" in advice["change"]]
        assert advised and advised[0] > 8, text
        after, _, _ = timed(advised[0])
        assert 2 * after < before, text


def grown(loader: gm.DatasetIterator, threads: int) -> dict[str, Any]:
    """The report when so many evaluate, or after a while."""
    end = time.monotonic() + 60
    while True:
        clocked(loader, 0.0, 50)
        report = loader.report().as_dict()
        if report["threads"] >= threads or time.monotonic() > end:
            return report


@pytest.mark.live
def test_threads_follow_what_the_loop_needs() -> None:
    with batches(waits, 1 << 30).loader(threads="auto") as loader:
        report = grown(loader, 16)
        assert report["threads"] >= 16 and report["is_tuned"] and report["decisions"], str(loader.report())


def test_threads_are_a_number_or_auto() -> None:
    with batches(int).loader(threads="auto") as loader:
        next(loader)
        report = loader.report().as_dict()
        assert report["is_tuned"] and report["threads"] > 0, str(loader.report())
    with pytest.raises(gm.ConfigError, match="threads: needs"):
        batches(waits).loader(threads="many")  # type: ignore[arg-type]
    assert list(gm.MapDataset.range(9).to_iter_dataset().loader(threads="auto")) == list(range(9))


class Far:
    """A source that answers after five milliseconds."""

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.005)
        return np.full((16,), index, np.float32)


@pytest.mark.live
def test_workers_and_their_threads_grow_where_a_source_waits() -> None:
    ds = gm.MapDataset.source(Far()).seed(1).random_map(lambda x, rng: x + rng.random()).to_iter_dataset().batch(8)
    with ds.mp_prefetch(ram_budget="16GiB").loader() as loader:
        report = grown(loader, 24)
        text = str(loader.report())
    assert report["threads"] >= 24 and report["workers"]["tuned"], text
    assert report["stages"][0]["blocked_s"] > 0.7 * report["stages"][0]["self_s"], text
    assert any("the first worker was ready after" in cause for cause in report["startup"]), text
