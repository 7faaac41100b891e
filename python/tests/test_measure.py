"""Whether a loop waits: times by hand, loops that sleep, and steps that go on behind the loop."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import gristmill as gm
import numpy as np
import pytest


def test_metrics_are_those_of_the_times() -> None:
    # Load 50 ms and compute 10, then 10 and 10 twice: AU is 20 of 40 ms, the first step does not count.
    steps = [(0.0, 0.05, 0.05, 0.06, 4), (0.06, 0.07, 0.07, 0.08, 4), (0.08, 0.09, 0.09, 0.1, 4)]
    metrics = gm.Metrics.of(steps, 0.1)
    assert metrics is not None
    figures = metrics.as_dict()
    for figure in ("utilisation", "stall", "input_bound_share"):
        assert figures[figure] == pytest.approx(0.5), figure
    assert (figures["steps"], figures["input_bound"]) == (2, "highly")
    assert figures["samples_per_s"] == pytest.approx(200)
    assert metrics.verdict in str(metrics) and "highly input-bound" in metrics.verdict
    assert repr(metrics) == f"<gristmill.Metrics: {metrics.verdict}>"
    shown = metrics._repr_html_()
    assert "font-family: monospace" in shown and f"<b>VERDICT  {metrics.verdict}</b>" in shown
    assert gm.Metrics.of(steps, 0.1, 3) is None
    beside = metrics.beside(metrics).as_dict()
    assert figures["relative_speed"] is None and beside["relative_speed"] == pytest.approx(1)


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf"), 1e300])
def test_times_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not a number of seconds since the start"):
        gm.Metrics.of([(0.0, 0.0, 0.0, bad, 1)], 1.0)


def test_a_loop_that_waits_for_its_steps() -> None:
    ds = gm.MapDataset.range(60).to_iter_dataset().batch(6)
    with ds.loader() as batches, gm.measure(batches) as measured:
        # A lower bound of a step, which holds on a busy machine, too.
        seen = [batch.sum() for batch in measured if time.sleep(0.002) is None]
        figures = measured.metrics().as_dict()
    assert seen == [batch.sum() for batch in ds]
    assert figures["steps"] == 9 and figures["step_ms"] >= 2
    # 54 samples, however long they took.
    assert figures["samples_per_s"] * figures["wall_s"] == pytest.approx(54)
    assert 0 < figures["utilisation"] <= 1


class Device:
    """Runs steps on a thread, each of which ends when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.waited_for: list[str] = []

    def array(self, name: str, *, broken: bool = False) -> Any:
        device = self

        class Array:
            shape = (3,)
            there = threading.Event()

            def block_until_ready(self) -> None:
                device.asked.append(name)
                assert self.there.wait(120)
                device.waited_for.append(name)
                if broken:
                    raise RuntimeError("deleted")

        return Array()


def test_steps_that_go_on_behind_the_loop_end_when_their_output_is_there() -> None:
    device = Device()
    batches = [{"x": device.array(f"batch {k}", broken=k == 1)} for k in range(3)]
    measured = gm.measure(batches, exclude_first=0)
    outputs = []
    for k, batch in enumerate(measured):
        batch["x"].there.set()
        outputs.append(device.array(f"output {k}"))
        measured.running([outputs[-1]])
    # The loop is through; no step is.
    assert not any(name.startswith("output") for name in device.waited_for)
    while "output 0" not in device.asked:
        # Looks again: the thread that asks is the library's.
        time.sleep(0.001)
    # The first step can begin since then. The sleep is a lower bound of the time that is measured.
    time.sleep(0.01)
    for output in outputs:
        output.there.set()
    figures = measured.metrics().as_dict()
    assert device.waited_for == ["batch 0", "output 0", "batch 1", "output 1", "batch 2", "output 2"]
    assert figures["wall_s"] >= 0.01
    assert (figures["steps"], round(figures["samples_per_s"] * figures["wall_s"])) == (3, 9)
    # The device worked from its first step on, though the loop went on.
    assert figures["step_ms"] * 3 >= 10
    assert measured.metrics().as_dict() == figures


def test_what_cannot_be_measured_is_told() -> None:
    with pytest.raises(gm.ConfigError, match="exclude_first is -1"):
        gm.measure([1], exclude_first=-1)
    measured = gm.measure([np.zeros(3)])
    with pytest.raises(gm.ConfigError, match="no batch was taken yet"):
        measured.running(1)
    assert len(list(measured)) == 1
    with pytest.raises(gm.ConfigError, match="1 steps were measured, the first 1 do not count"):
        measured.metrics()
    with pytest.raises(gm.ConfigError, match="0 steps were measured") as refused:
        gm.measure([]).metrics()
    assert refused.value.help == "loop over what gm.measure gives, in place of the batches"


def test_a_batch_is_let_go_of_before_the_next_is_asked_for() -> None:
    alive: list[int] = []

    class Batch:
        def __init__(self) -> None:
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    def batches() -> Iterator[Batch]:
        for _ in range(3):
            assert not alive
            yield Batch()

    measured = gm.measure(batches(), exclude_first=0)
    while next(measured, None):
        pass
    assert not alive


def test_errors_of_batches_and_of_the_loop_pass() -> None:
    def fail(x: int) -> int:
        if x == 3:
            raise KeyError(x)
        return x

    measured = gm.measure(gm.MapDataset.range(9).map(fail).loader(), exclude_first=0)
    with pytest.raises(KeyError), measured:
        for _ in measured:
            pass
    assert measured.metrics().as_dict()["steps"] == 3


@pytest.mark.parametrize(
    ("batch", "samples"),
    [({"a": np.zeros((5, 2)), "b": 1}, 5), ([np.zeros(4)], 4), (np.float32(1), 1), ({}, 1), ("text", 1)],
)
def test_samples_are_rows_or_what_a_function_says(batch: object, samples: int) -> None:
    def count(**options: Any) -> int:
        measured = gm.measure([batch, batch], **options)
        assert len(list(measured)) == 2
        figures = measured.metrics().as_dict()
        return round(figures["samples_per_s"] * figures["wall_s"])

    assert count() == samples
    assert count(samples=lambda _: 7) == 7


def test_steps_of_jax_go_on_behind_the_loop() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    step = jax.jit(lambda weight, batch: weight + batch.sum())
    # A batch that is given away cannot be waited for, and was there when the step began.
    given = jax.jit(lambda batch: batch + 1, donate_argnums=0)
    ds = gm.MapDataset.range(80).to_iter_dataset().batch(8)
    weight = 0.0
    with gm.jax.device_put(ds.loader()) as batches, gm.measure(batches) as measured:
        for batch in measured:
            weight = step(weight, batch)
            measured.running({"weight": weight, "other": [given(batch)]})
    figures = measured.metrics().as_dict()
    assert float(weight) == sum(range(80)) and figures["steps"] == 9
    assert figures["samples_per_s"] * figures["wall_s"] == pytest.approx(72)
    assert 0 < figures["utilisation"] <= 1
