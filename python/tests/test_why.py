"""Waits for Python's lock, for devices and behind a restore are told from other waits, and add up."""

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest

import gristmill as gm

# Calls of it keep the interpreter's lock: `CDLL` would let it go.
_HOLDING = ctypes.PyDLL(None)


def hold(ms: int) -> None:
    """Does nothing for so long, with the interpreter's lock held."""
    _HOLDING.usleep(1000 * ms)


def adds_up(report: dict[str, Any]) -> None:
    told = sum(why["share"] for why in report["why"])
    assert told == pytest.approx(report["consumer_wait_share"], rel=0.01, abs=0.0005), report["why"]


def seconds(report: dict[str, Any]) -> dict[str, float]:
    """Seconds by cause."""
    found: dict[str, float] = {}
    for why in report["why"]:
        found[why["cause"]] = found.get(why["cause"], 0.0) + why["seconds"]
    return found


def computes(x: int) -> int:
    """Has the interpreter's lock for some hundred microseconds, and never lets it go in between."""
    return x + 0 * sum(range(8000))


def passed(ds: gm.IterDataset, meanwhile: Any = None, **loader: Any) -> dict[str, Any]:
    """The report of a pass, at whose 30th batch `meanwhile` is called."""
    with ds.loader(**loader) as batches:
        for number, _ in enumerate(batches):
            if number == 30 and meanwhile is not None:
                meanwhile()
        report = batches.report().as_dict()
    adds_up(report)
    return report


class Holder:
    """A thread of the program that holds the lock for so long, soon after it is told to."""

    def __init__(self, ms: int) -> None:
        self._ms = ms
        self._go, self._has = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._go.wait()
        hold(self._ms)

    def start(self) -> None:
        self._go.set()

    def join(self) -> None:
        self._thread.join()


@pytest.mark.parametrize("seed", range(8))
def test_a_lock_that_another_thread_holds_is_the_cause(seed: int) -> None:
    ms = int(np.random.default_rng(seed).integers(80, 120))
    holder = Holder(ms)
    ds = gm.MapDataset.range(400).map(computes).to_iter_dataset().batch(4)
    report = passed(ds, holder.start, threads=2 + seed % 3)
    holder.join()
    longest = report["longest_waits"][0]
    assert longest["cause"] == "lock" and longest["wait_s"] > 0.0005 * ms, report
    assert report["verdict"]["bottleneck"] == "lock", report["verdict"]


@pytest.mark.parametrize("seed", range(8))
def test_a_loop_that_takes_its_time_waits_for_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step = float(rng.uniform(0.004, 0.008))
    ds = gm.MapDataset.range(160).map(computes).to_iter_dataset().batch(4)
    with ds.loader(threads=1 + seed % 3) as batches:
        for _ in batches:
            time.sleep(step)
        report = batches.report().as_dict()
    adds_up(report)
    assert report["verdict"]["bottleneck"] == "consumer" or report["steady_wait_share"] < 0.1, report["verdict"]


@pytest.mark.parametrize("seed", range(8))
def test_a_device_that_takes_batches_slowly_is_the_cause(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    from gristmill.jax._target import Target

    time_of_one = float(np.random.default_rng(seed).uniform(0.004, 0.008))
    put = Target.put

    def slow(self: Any, *args: Any) -> Any:
        time.sleep(time_of_one)
        return put(self, *args)

    monkeypatch.setattr(Target, "put", slow)
    ds = gm.MapDataset.range(160).map(lambda x: {"x": np.full(16, x, np.float32)}).to_iter_dataset().batch(4)
    with gm.jax.device_put(ds.loader(threads=1 + seed % 2)) as batches:
        for _ in batches:
            pass
        report = batches.report().as_dict()
    adds_up(report)
    found = seconds(report)
    assert found["transfer"] >= 40 * time_of_one and max(found, key=found.__getitem__) == "transfer", found
    assert report["verdict"]["bottleneck"] == "device", report["verdict"]


@pytest.mark.parametrize("threads", [0, 2])
def test_what_is_waited_for_behind_a_checkpoint_is_told_apart(threads: int) -> None:
    ds = gm.MapDataset.range(400).map(computes).to_iter_dataset().batch(4)
    with ds.loader(threads=threads) as batches:
        for _ in range(20):
            next(batches)
        assert "restore" not in seconds(batches.report().as_dict())
        state = batches.get_state()
        for _ in range(20):
            next(batches)
        batches.set_state(state)
        for _ in range(20):
            next(batches)
        report = batches.report().as_dict()
    adds_up(report)
    assert 0 < seconds(report)["restore"] < report["wall_s"], report["why"]


def test_functions_in_a_loop_of_its_own_are_work() -> None:
    report = passed(gm.MapDataset.range(400).map(computes).to_iter_dataset().batch(4))
    found = seconds(report)
    assert found["reader"] > 0.9 * (sum(found.values()) - found["start"]), found
