"""What the report says of loops, and whether a clock around `next` says the same; and what is tuned for elements that wait."""

import os
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


def clocked(loader: gm.DatasetIterator, step_s: float, steps: int) -> float:
    """The share of a loop's time that a clock around `next` sees."""
    waited, start = 0.0, time.perf_counter()
    for _ in range(steps):
        asked = time.perf_counter()
        next(loader)
        waited += time.perf_counter() - asked
        if step_s:
            time.sleep(step_s)
    return waited / (time.perf_counter() - start)


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


@pytest.mark.parametrize("step_s", [0.0, 0.003])
def test_shares_are_those_of_a_clock_around_next(running: gm.DatasetIterator, step_s: float) -> None:
    clock = clocked(running, step_s, 200)
    report = running.report().as_dict()
    assert report["consumer_wait_share"] == pytest.approx(clock, abs=0.02), str(running.report())
    stages = sum(stage["wait_share"] for stage in report["stages"])
    parts = stages + report["startup_share"] + report["handover_share"]
    assert parts == pytest.approx(report["consumer_wait_share"], abs=1e-6)


def test_measure_says_what_the_report_says(running: gm.DatasetIterator) -> None:
    with gm.measure(running, samples=lambda _: 4) as measured:
        for _, _ in zip(measured, range(200), strict=False):
            time.sleep(0.002)
        stall = measured.metrics().as_dict()["stall"]
    assert running.report().as_dict()["steady_wait_share"] == pytest.approx(stall, abs=0.02), str(running.report())


def idle_s() -> float:
    """Seconds that all cores together had nothing to do since the machine started."""
    with open("/proc/stat") as stat:
        idle, waiting = stat.readline().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("threads", [0, 2])
def test_a_function_that_holds_the_lock_is_advised_processes(threads: int) -> None:
    for _ in range(6):
        idle, start = idle_s(), time.perf_counter()
        with batches(computes).loader(threads=threads) as loader:
            clocked(loader, 0.0, 200)
            report, text = loader.report().as_dict(), str(loader.report())
        spare = (idle_s() - idle) / (time.perf_counter() - start)
        if "mp_prefetch" in text:
            break
    # While another program has a core, there is none for a process, and the advice would be wrong.
    if "mp_prefetch" not in text and report["cores"] == 2 and spare < 0.7:
        pytest.skip(f"other programs left {spare:.2f} of the second core idle")
    stage = next(stage for stage in report["stages"] if stage["name"] == "map")
    assert stage["interpreted"], text
    changes = [advice["change"] for advice in report["verdict"]["advice"]]
    assert not any("threads" in change for change in changes), text
    assert any("workers" in change for change in changes) == (report["cores"] > 1), text
    assert ("mp_prefetch" in text) == (report["cores"] > 1), text
    if threads > 1:
        assert stage["lock_s"] > 0.2 * stage["self_s"] and stage["blocked_s"] < 0.3 * stage["self_s"], text


def test_workers_are_not_advised_for_what_runs_behind_them() -> None:
    """They would not evaluate it; the advice is followed, and then they do."""
    numbers = gm.MapDataset.range(1600).to_iter_dataset()

    def run(ds: gm.IterDataset) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
        for _ in range(3):
            with ds.batch(4).loader() as loader:
                clocked(loader, 0.0, 200)
                report, text = loader.report().as_dict(), str(loader.report())
            # While another program has a core, the lock is waited for more than the stage.
            if report["verdict"]["advice"]:
                break
        stage = next(stage for stage in report["stages"] if stage["name"] == "map")
        return stage, report["verdict"]["advice"], text

    stage, advice, text = run(numbers.mp_prefetch(tune=False, **WORKERS).map(computes))
    assert stage["place"] == "suffix", text
    assert advice and all(set(told["change"]) == {"cheaper"} for told in advice), text
    assert any("put it in front of mp_prefetch" in told["text"] for told in advice), text
    stage, advice, text = run(numbers.map(computes).mp_prefetch(tune=False, **WORKERS))
    assert stage["place"] == "threads" and "in front of mp_prefetch" not in text, text


def test_start_up_names_what_took_it() -> None:
    def opens(x: int) -> int:
        if x == 0:
            time.sleep(0.1)
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


def test_threads_follow_what_the_loop_needs() -> None:
    with batches(waits, 1 << 30).loader(threads="auto") as loader:
        report = grown(loader, 16)
        assert report["threads"] >= 16 and report["is_tuned"] and report["decisions"], str(loader.report())
    with pytest.raises(ValueError, match='threads is \'many\', and must be a number or "auto"'):
        batches(waits).loader(threads="many")  # type: ignore[arg-type]
    assert list(gm.MapDataset.range(9).to_iter_dataset().loader(threads="auto")) == list(range(9))


class Far:
    """A source that answers after five milliseconds."""

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.005)
        return np.full((16,), index, np.float32)


def test_workers_and_their_threads_grow_where_a_source_waits() -> None:
    ds = gm.MapDataset.source(Far()).seed(1).random_map(lambda x, rng: x + rng.random()).to_iter_dataset().batch(8)
    with ds.mp_prefetch(ram_budget="16GiB").loader() as loader:
        report = grown(loader, 24)
        text = str(loader.report())
    assert report["threads"] >= 24 and report["workers"]["tuned"], text
    assert report["stages"][0]["blocked_s"] > 0.7 * report["stages"][0]["self_s"], text
    assert any("the first worker was ready after" in cause for cause in report["startup"]), text
