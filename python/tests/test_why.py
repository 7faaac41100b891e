"""Waits for Python's lock, for devices and behind a restore are told from other waits, and add up.

Verdicts on them are tested by scenes in Rust (`src/report/scenes`). Faults in runs on a real machine are marked `live`; each sleep in
them stands for the step of the loop, or for a device.
"""

import ctypes
import threading
import time
from collections.abc import Iterator
from typing import Any

import gristmill as gm
import numpy as np
import pytest

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


def lock_is_found(seed: int) -> str | None:
    """Another thread holds the lock for a while; what is said that is wrong."""
    ms = int(np.random.default_rng(seed).integers(80, 120))
    holder = Holder(ms)
    ds = gm.MapDataset.range(400).map(computes).to_iter_dataset().batch(4)
    report = passed(ds, holder.start, threads=2 + seed % 3)
    holder.join()
    longest, verdict = report["longest_waits"][0], report["verdict"]
    found = longest["cause"] == "lock" and longest["wait_s"] > 0.0005 * ms and verdict["bottleneck"] == "lock"
    return None if found else f"{longest} {verdict}"


def step_is_found(seed: int) -> str | None:
    """The step of the loop takes long: it waits for nothing."""
    step = float(np.random.default_rng(seed).uniform(0.008, 0.012))
    ds = gm.MapDataset.range(160).map(lambda x: x + 1).to_iter_dataset().batch(4)
    with ds.loader(threads=1 + seed % 3) as batches:
        for _ in batches:
            time.sleep(step)
        report = batches.report().as_dict()
    adds_up(report)
    return None if report["verdict"]["bottleneck"] in ("consumer", "start-up") else f"{report['verdict']} {report['why']}"


def transfer_is_found(seed: int) -> str | None:
    """The device is slow to take batches."""
    time_of_one = float(np.random.default_rng(seed).uniform(0.008, 0.012))
    ds = gm.MapDataset.range(160).map(lambda x: {"x": np.full(16, x, np.float32)}).to_iter_dataset().batch(4)
    with pytest.MonkeyPatch.context() as patch:
        from gristmill.jax._target import Target

        put = Target.put

        def slow(self: Any, *args: Any) -> Any:
            time.sleep(time_of_one)
            return put(self, *args)

        patch.setattr(Target, "put", slow)
        with gm.jax.device_put(ds.loader(threads=1 + seed % 2)) as batches:
            for _ in batches:
                pass
            report = batches.report().as_dict()
    adds_up(report)
    found = seconds(report)
    is_found = max(found, key=found.__getitem__) == "transfer" and report["verdict"]["bottleneck"] == "device"
    return None if is_found else f"{report['verdict']} {found}"


@pytest.mark.live
def test_faults_are_found() -> None:
    pytest.importorskip("jax")
    kinds = [lock_is_found, step_is_found, transfer_is_found]
    told = {f"{kind.__name__} {seed}": kind(seed) for kind in kinds for seed in range(8)}
    missed = {name: what for name, what in told.items() if what is not None}
    assert 20 * len(missed) <= len(told), missed


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
    found = seconds(passed(gm.MapDataset.range(400).map(computes).to_iter_dataset().batch(4)))
    # Nobody else evaluates, so nothing is waited for that another thread has.
    assert found["reader"] > 0 and found.keys() <= {"start", "reader", "hand_over", "lock"}, found


@pytest.mark.live
def test_functions_in_a_loop_of_its_own_are_nearly_all_that_is_waited_for() -> None:
    found = seconds(passed(gm.MapDataset.range(400).map(computes).to_iter_dataset().batch(4)))
    assert found["reader"] > 0.9 * (sum(found.values()) - found["start"]), found


class Numbers:
    def __iter__(self) -> Iterator[int]:
        return iter(range(60))


@pytest.mark.live
@pytest.mark.parametrize("threads", [0, 1])
def test_a_function_of_a_stream_that_waits_is_advised_threads(threads: int) -> None:
    def wait(x: int) -> int:
        # The report judges runs of 0.1 s and more.
        time.sleep(0.005)
        return x

    with gm.IterDataset.source(Numbers()).map(wait).loader(threads=threads) as it:
        list(it)
        verdict = it.report().as_dict()["verdict"]
    assert verdict["bottleneck"] == "map"
    assert "threads" in verdict["advice"][0]["change"]
