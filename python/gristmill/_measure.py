"""Measures how long a training loop waits for its batches."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from gristmill import _errors
from gristmill._gristmill import Metrics

_Batch = TypeVar("_Batch")


def measure(
    batches: Iterable[_Batch], *, exclude_first: int = 1, samples: Callable[[_Batch], int] | None = None
) -> "Measured[_Batch]":
    """Wraps `batches` in an iterator that times the loop over them; its `metrics()` returns the result.

    The time that the loop spends on a batch counts as device compute. If the loop only starts a step, as with JAX and
    PyTorch, pass the step's result to `running`.

    Args:
        batches: Iterable to loop over.
        exclude_first: Steps at the start to exclude from all figures, because they include the start of the pipeline
            and compilation.
        samples: Function that returns the number of samples in a batch; by default, the number of rows.

    Returns:
        An iterator over the batches, and a context manager that stops the clock.

    Raises:
        ConfigError: `exclude_first` is negative.
    """
    return Measured(batches, exclude_first, samples)


@dataclass(slots=True)
class _Step:
    asked: float
    got: float
    samples: int
    ready: float | None = None
    done: float | None = None
    running: bool = False


class Measured(Generic[_Batch]):
    """Batches with timing: see `measure`."""

    def __init__(self, batches: Iterable[_Batch], exclude_first: int, samples: Callable[[_Batch], int] | None) -> None:
        if exclude_first < 0:
            raise _errors.make("config", f"exclude_first is {exclude_first}; it is a number of steps", None)
        self._batches = iter(batches)
        self._exclude = exclude_first
        self._samples = samples or _rows
        self._steps: list[_Step] = []
        self._batch: _Batch | None = None
        self._end: float | None = None
        self._waiter: _Waiter | None = None

    def __iter__(self) -> Iterator[_Batch]:
        return self

    def __next__(self) -> _Batch:
        asked = perf_counter()
        self._finish_step(asked)
        # Released as early as the loop releases it: the next batch may need its memory.
        self._batch = None
        try:
            batch = next(self._batches)
        except StopIteration:
            self._stop()
            raise
        got = perf_counter()
        self._steps.append(_Step(asked, got, self._samples(batch)))
        self._batch, self._end = batch, None
        return batch

    def running(self, output: Any) -> None:
        """Declares that the step on the last batch runs until `output` is ready. A thread waits for it.

        Args:
            output: Result of the step: JAX arrays, a PyTorch event (`torch.cuda.Event`) recorded after the step, or a
                dict, list or tuple of these.

        Raises:
            ConfigError: No batch has been taken yet.
        """
        if not self._steps or self._batch is None:
            raise _errors.make("config", "no batch was taken yet: there is no step to be running", None)
        if self._waiter is None:
            self._waiter = _Waiter()
        self._steps[-1].running = True
        self._waiter.put(self._steps[-1], self._batch, output)
        self._batch = None

    def metrics(self, resident: Metrics | None = None) -> Metrics:
        """Waits for all steps and returns their metrics.

        Args:
            resident: Metrics of the same loop over a single batch, to compare the speed with.

        Raises:
            ConfigError: No step remains after the excluded steps.
        """
        if self._end is None:
            self._stop()
        if self._waiter is not None:
            self._waiter.finish()
            self._waiter = None
        start = self._steps[0].asked if self._steps else 0.0
        steps = [_times(step, start) for step in self._steps]
        metrics = Metrics.of(steps, (self._end or start) - start, self._exclude)
        if metrics is None:
            told = f"{len(steps)} steps were measured, the first {self._exclude} do not count"
            more = "measure more steps, or a smaller exclude_first"
            raise _errors.make("config", told, more if steps else "loop over what gm.measure gives, in place of the batches")
        return metrics if resident is None else metrics.beside(resident)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Stops the clock."""
        if self._end is None:
            self._stop()

    def _stop(self) -> None:
        self._end = perf_counter()
        self._finish_step(self._end)
        self._batch = None

    def _finish_step(self, now: float) -> None:
        """Marks the last step as done at `now`, unless `running` was called for it."""
        if self._steps and not self._steps[-1].running and self._steps[-1].done is None:
            self._steps[-1].done = now


class _Waiter:
    """A thread that records when batches and steps become ready."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[_Step, Any, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._wait, name="gristmill-measure", daemon=True)
        self._thread.start()

    def put(self, step: _Step, batch: Any, output: Any) -> None:
        self._queue.put((step, batch, output))

    def finish(self) -> None:
        """Waits for all queued steps, then ends the thread."""
        self._queue.put(None)
        self._thread.join()

    def _wait(self) -> None:
        while (item := self._queue.get()) is not None:
            step, batch, output = item
            _until_there(batch)
            step.ready = perf_counter()
            # Releases the device memory of the batch before the wait for the step.
            del item, batch
            _until_there(output)
            step.done = perf_counter()


def _until_there(tree: Any) -> None:
    if isinstance(tree, Mapping):
        tree = list(cast("Any", tree).values())
    if isinstance(tree, (list, tuple)):
        for leaf in cast("list[Any]", tree):
            _until_there(leaf)
        return
    wait = getattr(tree, "block_until_ready", None) or getattr(tree, "synchronize", None)
    if wait is not None:
        try:
            wait()
        except Exception:
            # A failed step is over; its user gets the error. A donated batch cannot be waited for either.
            return


def _times(step: _Step, start: float) -> tuple[float, float, float, float, int]:
    ready = step.got if step.ready is None else step.ready
    done = ready if step.done is None else step.done
    return step.asked - start, step.got - start, ready - start, done - start, step.samples


def _rows(batch: Any) -> int:
    """Returns the leading dimension of the first array, or 1 if there is none."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    if isinstance(batch, Mapping):
        batch = list(cast("Any", batch).values())
    if isinstance(batch, (list, tuple)) and batch:
        return _rows(cast("list[Any]", batch)[0])
    return 1
