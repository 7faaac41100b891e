"""A pass that goes on with another number of hosts."""

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
    """This host's elements of every global batch, by their indices."""

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
        """This host's batches from element `index` of all hosts' on."""
        dataset, shard = self._dataset, self._dataset.shard_options
        # Only whole global batches, so that each host has as many.
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
    """Its pass for the stages behind it: a source is a stream, and no iterator."""

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
    """This host's part of every global batch. The state is the same on every host, and any number of hosts that divides the batch goes on
    from it.

    Of a `MapDataset` a host has every `shard_count`-th element, and the state is one number, as in Grain: the elements that all of them have
    read. Of a stream, which Grain does not take, and of a `MapDataset` with a filter, every host runs the pipeline as one alone
    would and takes its rows of each batch of `global_batch_size`, rows that follow one another: packed, filtered, mixed and
    shuffled streams are elastic, too. The state is that of the stream then. `read_options` are for a `MapDataset`.

    It is a dataset and its own only pass, as in Grain: stages may stand behind it, and it may be read as it is.
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
        """The batches, evaluated by worker processes if that was asked for."""
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
        """The elements that all hosts have read."""
        return self._pass.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken, on any number of hosts."""
        self._pass.set_state(state)

    def start_prefetch(self) -> None:
        """Begins to read ahead."""
        self._pass.start_prefetch()

    def close(self) -> None:
        """Ends what reads ahead."""
        self._pass.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    async def save(self, directory: Any) -> Awaitable[None]:
        """Takes the state now, and writes it into a folder of a checkpoint of Orbax when what this returns is awaited."""
        return await orbax.save(self._pass, directory)

    async def load(self, directory: Any) -> Awaitable[None]:
        """Goes to the state that `save` wrote, when what this returns is awaited."""
        return await orbax.load(self._pass, directory)
