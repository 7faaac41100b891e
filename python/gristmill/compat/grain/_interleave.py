"""Interleaving of several streams."""

import copy
from collections.abc import Sequence
from typing import Any, cast

import gristmill as gm
from gristmill.compat.grain import _states
from gristmill.compat.grain._dataset import MapDataset
from gristmill.compat.grain._iterator import CoreIterator
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


class InterleaveDatasetIterator(CoreIterator):
    """A pass over interleaved streams. It also has a state per stream, for a new pass over other streams."""

    # The restored state until the next read: it may contain more about ended streams than the core's state.
    _given: dict[str, Any] | None = None

    def __next__(self) -> Any:
        self._given = None
        return super().__next__()

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy(self._given) if self._given is not None else super().get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._given = copy.deepcopy(state)

    def get_shard_states(self) -> Sequence[Any]:
        """Returns for each dataset whether it has ended, and its position."""
        datasets = cast(InterleaveIterDataset, self._dataset)._datasets
        state = self.get_state()
        states = [_shard(ended, _start(datasets[at])) for at, ended in enumerate(_turns(state, len(datasets)))]
        for lane, inner in _states.waiting(state):
            states[lane] = _shard(inner is None, inner or states[lane]["state"])
        for lane, inner, ended in zip(*(state[name] for name in _states.PLACES), strict=True):
            if inner is not None:
                states[lane] = _shard(bool(ended), inner)
        return states

    def set_shard_states(self, shard_states: Sequence[Any]) -> None:
        """Moves to the positions of the datasets. The first open datasets take the slots of the cycle.

        DIFFERENCE: a dataset that has ended is not read again when its turn comes.
        """
        places = cast(InterleaveIterDataset, self._dataset)._cycle_length
        open_ones = [lane for lane, shard in enumerate(shard_states) if not shard["exhausted"]]
        ended = [lane for lane, shard in enumerate(shard_states) if shard["exhausted"]]
        used = open_ones[:places]
        following = used[-1] + 1 if used else len(shard_states) if not open_ones else 0
        waiting: dict[int, Any] = {lane: shard_states[lane]["state"] for lane in open_ones[places:]}
        waiting.update({lane: None for lane in ended if lane >= following})
        # The remaining slots hold ended streams.
        used += ended[: places - len(used)]
        self.set_state(
            {
                "next_index_in_cycle": 0,
                "next_index_in_datasets": following,
                "iterators_in_use_indices": used,
                "iterators_in_use_states": [shard_states[lane]["state"] for lane in used],
                "exhausted": [int(bool(shard_states[lane]["exhausted"])) for lane in used],
                "future_states": waiting,
            }
        )


def _shard(ended: bool, state: Any) -> dict[str, Any]:
    return {"exhausted": int(ended), "state": state}


def _turns(state: dict[str, Any], count: int) -> list[bool]:
    """Returns for each stream whether its turn has begun. Open streams are handled by the caller."""
    return [lane < state["next_index_in_datasets"] for lane in range(count)]


def _start(ds: Any) -> Any:
    with ds.__iter__() as it:
        return it.get_state()


class InterleaveIterDataset(CoreIterDataset[Any]):
    """An element of each of `cycle_length` streams in turn. The next stream replaces a stream that ends.

    `datasets` is a sequence or a `MapDataset` of datasets, possibly endless. The other arguments control how much Grain
    prefetches.
    """

    _PASS = ("_interleave", "InterleaveDatasetIterator")

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
        """Keeps only the datasets of a slice.

        Grain's workers call this, each for its own slice. Here it serves programs that divide datasets themselves.
        """
        del sequential_slice
        self._take(self._datasets[sl])

    @property
    def _seed_parents(self) -> Sequence[Any]:
        """Empty, as in Grain: the datasets are made when their turn comes."""
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
        # Without an open stream the position is before the first element or after the last.
        if inner is None:
            return only.length_of_source() if state["next_index_in_datasets"] else 0
        return cast(int, only.index_of(inner))

    @property
    def _element_spec(self) -> Any:
        first = self._datasets[0]
        return first._element_spec

    def __str__(self) -> str:
        return f"InterleaveIterDataset([{len(self._datasets)} datasets], cycle_length={self._cycle_length})"
