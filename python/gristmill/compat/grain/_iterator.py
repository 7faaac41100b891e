"""A pass that the core evaluates."""

import copy
from typing import Any, cast

import gristmill as gm
from gristmill.compat.grain import _states
from gristmill.compat.grain._base import ExecutionTrackingMode
from gristmill.compat.grain._config import config
from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._failures import explain, in_grains_words, warn_in_grains_words
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._stages import CoreIterDataset
from gristmill.compat.grain._tracebacks import filter_frames


class CoreIterator(DatasetIterator[Any]):
    """A pass over a pipeline of core stages. Its state is the core's state, with Grain's names.

    Threads and worker processes start with the first element, or with `start_prefetch`.
    """

    # The rows of every batch that this pass yields; `None` for all rows.
    _part: gm.Part | None = None

    def __init__(self, dataset: IterDataset[Any]) -> None:
        super().__init__()
        self._dataset = dataset
        self._plan = Plan()
        self._pipeline = self._start(self._plan)
        self._loader: gm.DatasetIterator | None = None
        # The state to begin at, if the workers have not started yet.
        self._begin: dict[str, Any] | None = None

    def _start(self, plan: Plan) -> gm.IterDataset:
        return self._dataset._core(plan)

    def _running(self) -> gm.DatasetIterator:
        self._assert_not_closed()
        if self._loader is None:
            try:
                # Writable because Grain's users may write into batches.
                self._loader = self._pipeline.loader(threads=self._plan.threads, writable=True, part=self._part)
            except gm.ConfigError as error:
                explain(error, self._dataset)
                raise
            if self._begin is not None:
                begin, self._begin = self._begin, None
                self._go_to(begin)
        return self._loader

    def _at_rest(self) -> gm.DatasetIterator:
        """Returns a core pass to read the state from. It does not start prefetching if this pass has not begun."""
        if self._loader is not None or not self._plan.reads_ahead:
            return self._running()
        self._assert_not_closed()
        return self._pipeline.loader(workers=False)

    def __next__(self) -> Any:
        try:
            return next(self._loader or self._running())
        except StopIteration:
            raise
        except gm.Error as error:
            told = in_grains_words(error, self._dataset)
            filter_frames(told)
            if told is error:
                raise
            raise told from told.__cause__
        except Exception as error:
            filter_frames(error)
            raise

    def _core_state(self) -> Any:
        return self._at_rest().get_state()["state"]

    def get_state(self) -> dict[str, Any]:
        if self._begin is not None:
            return copy.deepcopy(self._begin)
        state = self._core_state()
        # For a custom stream without later stages, the state is the custom iterator's own.
        given: dict[str, Any] = state["python"] if _states.is_opaque(state) else _states.to_grain(state)
        return given

    def set_state(self, state: dict[str, Any]) -> None:
        self._assert_not_closed()
        self._dataset_check(state)
        if self._loader is None and self._plan.has_workers:
            self._begin = copy.deepcopy(state)
        else:
            self._go_to(state)

    def _go_to(self, state: dict[str, Any]) -> None:
        loader = self._running()
        checkpoint = loader.get_state()
        opaque = _states.is_opaque(checkpoint["state"])
        checkpoint["state"] = {"python": state} if opaque else _states.to_core(state)
        loader.set_state(checkpoint)

    def _dataset_check(self, state: dict[str, Any]) -> None:
        """Raises `IndexError` for a position after the end of the dataset that the whole pipeline reads."""
        ds: Any = self._dataset
        inner: Any = state
        while not hasattr(ds, "length_of_source"):
            if len(ds.parents) != 1 or not isinstance(ds, IterDataset):
                return
            ds = ds.parents[0]
        while isinstance(inner, dict) and "parent" in inner:
            inner = inner["parent"]
        index = inner.get("next_index") if isinstance(inner, dict) else None
        length = ds.length_of_source()
        if isinstance(index, int) and not 0 <= index <= length:
            raise IndexError(f"Checkpoint `next_index` {index} is out of range for dataset of length {length}.")

    def _execution_summary(self) -> gm.Report:
        if self._plan.options.execution_tracking_mode is ExecutionTrackingMode.DISABLED and not config.py_debug_mode:
            raise ValueError(
                "Set `grain_py_debug_mode` or set `execution_tracking_mode` in grain options to `STAGE_TIMING` to enable "
                "execution statistics collection. Here `report()` of the iterator has them without it."
            )
        return self.report()

    def _set_next_index(self, index: int) -> None:
        self.set_state(cast("CoreIterDataset[Any]", self._dataset).state_at(index))

    def _get_next_index(self) -> int:
        return cast("CoreIterDataset[Any]", self._dataset).index_of(self.get_state())

    def start_prefetch(self) -> None:
        self._running().start_prefetch()

    def close(self) -> None:
        super().close()
        if self._loader is not None:
            self._loader.close()
            self._loader = None

    def report(self) -> gm.Report:
        """Returns the report of the pass so far."""
        return self._running().report()

    def __str__(self) -> str:
        return f"DatasetIterator({self._dataset})"


warn_in_grains_words(CoreIterator.__next__.__code__)
