"""Several streams in turn."""

from collections.abc import Sequence
from typing import Any, cast

import gristmill as gm
from gristmill.compat.grain._dataset import MapDataset
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._stages import CoreIterDataset
from gristmill.compat.grain._states import to_core, to_grain


class _Streams:
    """The core streams of datasets, each made when its turn comes."""

    def __init__(self, datasets: Any, plan: Plan) -> None:
        self._datasets = datasets
        self._plan = plan

    def __len__(self) -> int:
        return len(self._datasets)

    def __getitem__(self, index: int) -> gm.IterDataset | None:
        ds: Any = self._datasets[index]
        if ds is None:
            return None
        if isinstance(ds, MapDataset):
            ds = ds.to_iter_dataset()
        core: gm.IterDataset = ds._core(self._plan)
        return core


class InterleaveIterDataset(CoreIterDataset[Any]):
    """One element of each of `cycle_length` streams in turn; one that ends makes room for the next.

    `datasets` are a sequence or a `MapDataset` of datasets, without end if it has none. The other arguments say how much
    Grain reads ahead.
    """

    def __init__(
        self,
        datasets: Any,
        *,
        cycle_length: int,
        num_make_iter_threads: int = 1,
        make_iter_buffer_size: int = 1,
        iter_buffer_size: int = 1,
    ) -> None:
        super().__init__()
        if cycle_length < 1:
            raise ValueError(f"`cycle_length` must be greater than 0, got {cycle_length}")
        self._asked_length = cycle_length
        self._take(datasets)
        self._ahead: Sequence[int] = (num_make_iter_threads, make_iter_buffer_size, iter_buffer_size)

    def _take(self, datasets: Any) -> None:
        self._datasets = datasets
        self._parents = list(datasets) if isinstance(datasets, (list, tuple)) else ()
        self._cycle_length = min(self._asked_length, max(len(datasets), 1))

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Leaves only the datasets of a slice.

        Grain's workers do so, each with a slice of its own. Here it is for programs that divide datasets themselves.
        """
        del sequential_slice
        self._take(self._datasets[sl])

    @property
    def _seed_parents(self) -> Sequence[Any]:
        """None, as in Grain: its datasets are made when their turn comes."""
        return ()

    def _build(self, plan: Plan) -> gm.IterDataset:
        made = gm.MapDataset.computed(_Streams(self._datasets, plan))
        return gm.IterDataset.interleave(made, self._cycle_length)

    def _only(self, what: str) -> Any:
        if len(self._datasets) != 1:
            raise NotImplementedError(f"{what} is not supported for {self}")
        return self._datasets[0]

    def state_at(self, index: int) -> dict[str, Any]:
        state: Any = self._only("set_next_index").state_at(index)
        slot = {"lane": 0, "state": to_core(state)}
        return cast("dict[str, Any]", to_grain({"next_slot": 0, "next_lane": 1, "slots": [slot]}))

    def index_of(self, state: dict[str, Any]) -> int:
        only = self._only("get_next_index")
        (inner,) = state["iterators_in_use_states"]
        # Before the first element no stream has begun; behind the last one none is left.
        if inner is None:
            return only.length_of_source() if state["next_index_in_datasets"] else 0
        return cast(int, only.index_of(inner))

    @property
    def _element_spec(self) -> Any:
        first = self._datasets[0]
        return first._element_spec

    def __str__(self) -> str:
        return f"InterleaveIterDataset([{len(self._datasets)} datasets], cycle_length={self._cycle_length})"
