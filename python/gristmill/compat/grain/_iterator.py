"""A pass that the core makes."""

from typing import Any, cast

import gristmill as gm
from gristmill.compat.grain import _states
from gristmill.compat.grain._dataset import CoreIterDataset, DatasetIterator, IterDataset, Plan


class CoreIterator(DatasetIterator[Any]):
    """A pass over a whole pipeline of the core's stages; its state is theirs, under Grain's names."""

    def __init__(self, dataset: IterDataset[Any]) -> None:
        super().__init__()
        self._dataset = dataset
        plan = Plan()
        self._pipeline = self._start(plan)
        self._threads = plan.threads
        self._loader: gm.DatasetIterator | None = None

    def _start(self, plan: Plan) -> gm.IterDataset:
        return self._dataset._core(plan)

    def _running(self) -> gm.DatasetIterator:
        self._assert_not_closed()
        if self._loader is None:
            # As with Grain, a trainer may write into its batches.
            self._loader = self._pipeline.loader(threads=self._threads, writable=True)
        return self._loader

    def __next__(self) -> Any:
        return next(self._loader or self._running())

    def get_state(self) -> dict[str, Any]:
        state = self._running().get_state()["state"]
        # Of a stream of the user's own with nothing behind it the state is the user's.
        given: dict[str, Any] = state["python"] if _states.is_opaque(state) else _states.to_grain(state)
        return given

    def set_state(self, state: dict[str, Any]) -> None:
        self._dataset_check(state)
        loader = self._running()
        checkpoint = loader.get_state()
        opaque = _states.is_opaque(checkpoint["state"])
        checkpoint["state"] = {"python": state} if opaque else _states.to_core(state)
        loader.set_state(checkpoint)

    def _dataset_check(self, state: dict[str, Any]) -> None:
        """Refuses a position behind the end of a dataset that everything is read from."""
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

    def _set_next_index(self, index: int) -> None:
        self.set_state(cast("CoreIterDataset[Any]", self._dataset).state_at(index))

    def _get_next_index(self) -> int:
        return cast("CoreIterDataset[Any]", self._dataset).index_of(self.get_state())

    def start_prefetch(self) -> None:
        loader = self._running()
        # Without threads there is nobody to read ahead.
        start = getattr(loader, "start_prefetch", None)
        if start is not None:
            start()

    def close(self) -> None:
        super().close()
        if self._loader is not None:
            self._loader.close()
            self._loader = None

    def report(self) -> gm.Report:
        """Where the time went so far."""
        return self._running().report()

    def __str__(self) -> str:
        return f"DatasetIterator({self._dataset})"
