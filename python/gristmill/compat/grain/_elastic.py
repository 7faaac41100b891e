"""A pass that goes on with another number of hosts."""

from typing import Any

from gristmill.compat.grain import _functions
from gristmill.compat.grain._dataset import MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions
from gristmill.compat.grain._sharding import ShardOptions


def _refuse_filters(ds: Any) -> None:
    if isinstance(ds, _functions.FilterMapDataset):
        raise ValueError("ElasticIterator does not support `filter` transformation.")
    for parent in ds.parents:
        _refuse_filters(parent)


class ElasticIterator(DatasetIterator[Any]):
    """This host's part of every global batch. The state is one number, the same on every host: the elements that all of
    them have read. A state of `n` hosts restores on any number that divides the batch.
    """

    def __init__(
        self,
        ds: Any,
        global_batch_size: int,
        shard_options: ShardOptions,
        *,
        read_options: ReadOptions | None = None,
        multiprocessing_options: MultiprocessingOptions | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(ds, MapDataset):
            raise ValueError(f"ElasticIterator takes a MapDataset, got {type(ds).__name__}: others have no global index")
        if global_batch_size % shard_options.shard_count:
            raise ValueError(
                f"Global batch size {global_batch_size} is not divisible by shard count {shard_options.shard_count}."
            )
        _refuse_filters(ds)
        self._ds: MapDataset[Any] = ds
        self._global_batch_size = global_batch_size
        self._shard_options = shard_options
        self._read_options = read_options or ReadOptions()
        self._multiprocessing_options = multiprocessing_options
        self._global_next_index = 0
        self._iterator: DatasetIterator[Any] | None = None

    def _running(self) -> DatasetIterator[Any]:
        self._assert_not_closed()
        if self._iterator is None:
            shard = self._shard_options
            # Only whole global batches, so that each host has as many.
            end = len(self._ds) - (len(self._ds) - self._global_next_index) % self._global_batch_size
            mine = self._ds[self._global_next_index + shard.shard_index : end : shard.shard_count]
            ds = mine.batch(self._global_batch_size // shard.shard_count, drop_remainder=True)
            stream = ds.to_iter_dataset(self._read_options)
            if self._multiprocessing_options is not None:
                stream = stream.mp_prefetch(self._multiprocessing_options)
            self._iterator = stream.__iter__()
        return self._iterator

    def __next__(self) -> Any:
        batch = next(self._running())
        self._global_next_index += self._global_batch_size
        return batch

    def get_state(self) -> dict[str, Any]:
        return {"global_next_index": self._global_next_index}

    def set_state(self, state: dict[str, Any]) -> None:
        if self._iterator is not None:
            self._iterator.close()
            self._iterator = None
        self._global_next_index = state["global_next_index"]

    def start_prefetch(self) -> None:
        self._running().start_prefetch()

    def close(self) -> None:
        super().close()
        if self._iterator is not None:
            self._iterator.close()
            self._iterator = None
