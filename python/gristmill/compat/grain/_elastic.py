"""A pass that can resume with a different number of hosts."""

from collections.abc import Awaitable
from typing import Any, Self

import gristmill as gm
from gristmill import orbax
from gristmill.compat.grain import _functions
from gristmill.compat.grain._dataset import IterDataset, MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._iterator import CoreIterator
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._sharding import ShardOptions


def _has_filter(ds: Any) -> bool:
    return isinstance(ds, _functions.FilterMapDataset) or any(_has_filter(parent) for parent in ds.parents)


class _IndexPass(DatasetIterator[Any]):
    """This host's elements of every global batch, selected by index."""

    def __init__(self, dataset: "ElasticIterator", elements: MapDataset[Any]) -> None:
        super().__init__()
        self._dataset = dataset
        self._elements = elements
        self._global_next_index = 0
        self._iterator: DatasetIterator[Any] | None = None

    def _running(self) -> DatasetIterator[Any]:
        self._assert_not_closed()
        if self._iterator is None:
            self._iterator = self._from(self._global_next_index).__iter__()
        return self._iterator

    def _from(self, index: int) -> IterDataset[Any]:
        """Returns this host's batches from global element `index` on."""
        dataset, shard = self._dataset, self._dataset.shard_options
        # Whole global batches only, so that all hosts have an equal number.
        end = len(self._elements) - (len(self._elements) - index) % dataset.global_batch_size
        mine = self._elements[index + shard.shard_index : end : shard.shard_count]
        batches = mine.batch(dataset.global_batch_size // shard.shard_count, drop_remainder=True)
        return dataset.ahead(batches.to_iter_dataset(dataset.read_options))

    def __next__(self) -> Any:
        batch = next(self._running())
        self._global_next_index += self._dataset.global_batch_size
        return batch

    def get_state(self) -> dict[str, Any]:
        return {"global_next_index": self._global_next_index}

    def set_state(self, state: dict[str, Any]) -> None:
        self._end()
        self._global_next_index = state["global_next_index"]

    def start_prefetch(self) -> None:
        self._running().start_prefetch()

    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        if self._iterator is not None:
            self._iterator.close()
            self._iterator = None


class _Stream:
    """The pass as a source for later stages: a source must be iterable and must not be an iterator."""

    def __init__(self, dataset: "ElasticIterator") -> None:
        self._dataset = dataset

    def __iter__(self) -> DatasetIterator[Any]:
        return self._dataset.__iter__()


class _PartPass(CoreIterator):
    """This host's rows of the global batches of a stream."""

    def __init__(self, batches: IterDataset[Any], shard: ShardOptions) -> None:
        super().__init__(batches)
        self._part = gm.Part(shard.shard_index, shard.shard_count)


class ElasticIterator(IterDataset[Any]):
    """This host's rows of every global batch. All hosts have equal states, which any number of hosts that divides the
    batch size can restore.

    For a `MapDataset`, a host reads every `shard_count`-th element. The state is the number of elements read by all
    hosts, as in Grain. `read_options` apply to a `MapDataset` only.

    For a stream, which Grain does not accept, and for a `MapDataset` with a filter, every host runs the whole pipeline.
    It takes consecutive rows of each batch of `global_batch_size`, so packed, filtered, mixed and shuffled streams are
    elastic too. The state is then the state of the stream.

    As in Grain, the object is a dataset and its only pass: it can be iterated, or be followed by other stages.
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
        if not isinstance(ds, (MapDataset, IterDataset)):
            raise ValueError(f"ElasticIterator takes a MapDataset or an IterDataset, got {type(ds).__name__}")
        if global_batch_size % shard_options.shard_count:
            raise ValueError(
                f"Global batch size {global_batch_size} is not divisible by shard count {shard_options.shard_count}."
            )
        self.global_batch_size = global_batch_size
        self.shard_options = shard_options
        self.read_options = read_options or ReadOptions()
        self._multiprocessing_options = multiprocessing_options
        self._pass = self._started(ds)

    def _started(self, ds: MapDataset[Any] | IterDataset[Any]) -> DatasetIterator[Any]:
        if isinstance(ds, MapDataset) and not _has_filter(ds):
            return _IndexPass(self, ds)
        stream = ds.to_iter_dataset(self.read_options) if isinstance(ds, MapDataset) else ds
        batches = stream.batch(self.global_batch_size, drop_remainder=True)
        return _PartPass(self.ahead(batches), self.shard_options)

    def ahead(self, batches: IterDataset[Any]) -> IterDataset[Any]:
        """Returns the batches, evaluated by worker processes if the options request it."""
        options = self._multiprocessing_options
        return batches if options is None else batches.mp_prefetch(options)

    def __iter__(self) -> DatasetIterator[Any]:
        return self._pass

    def _core(self, plan: Plan) -> gm.IterDataset:
        del plan
        return gm.IterDataset.source(_Stream(self))

    def __next__(self) -> Any:
        return next(self._pass)

    def get_state(self) -> dict[str, Any]:
        """Returns the position over all hosts."""
        return self._pass.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to a position, taken with any number of hosts."""
        self._pass.set_state(state)

    def start_prefetch(self) -> None:
        """Starts to prefetch."""
        self._pass.start_prefetch()

    def close(self) -> None:
        """Stops prefetching and ends the pass."""
        self._pass.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    async def save(self, directory: Any) -> Awaitable[None]:
        """Takes the state now, and writes it to a folder of an Orbax checkpoint once the awaitable is awaited."""
        return await orbax.save(self._pass, directory)

    async def load(self, directory: Any) -> Awaitable[None]:
        """Restores the state that `save` wrote, once the returned awaitable is awaited."""
        return await orbax.load(self._pass, directory)
