"""Stages that change the order of elements: shuffle, slice, repeat, seed."""

from builtins import slice as _slice
from collections.abc import Sequence
from typing import Any

import gristmill as gm
from gristmill.compat.grain._dataset import INFINITE, IterDataset, MapDataset
from gristmill.compat.grain._seeds import numbers_of
from gristmill.compat.grain._stages import CoreIterDataset, CoreMapDataset, Counting, InStep, SameElements


class _SameElements(SameElements, CoreMapDataset[Any]):
    """A stage that yields elements of its parent unchanged."""


class _SameStream(SameElements, CoreIterDataset[Any]):
    """A stream stage that yields elements of its parent unchanged."""


class SeedMapDataset(_SameElements):
    """A seed for later stages, which search for it."""

    def __init__(self, parent: MapDataset[Any], *, seed: int) -> None:
        super().__init__(parent)
        self._seed_root = numbers_of(seed, "seed")

    def __len__(self) -> int:
        return len(self._parent)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return parents[0]

    def __str__(self) -> str:
        return f"WithSeedMapDataset(seed={self._seed_root})"


class SeedIterDataset(_SameStream, InStep[Any]):
    """A seed for later stages of a stream."""

    def __init__(self, parent: IterDataset[Any], *, seed: int) -> None:
        super().__init__(parent)
        self._seed_root = numbers_of(seed, "seed")

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core

    def __str__(self) -> str:
        return f"WithSeedIterDataset(seed={self._seed_root})"


class ShuffleMapDataset(_SameElements):
    """All elements in random order, different in every epoch."""

    def __init__(
        self, parent: MapDataset[Any], *, reshuffle_each_epoch: bool = True, seed: int | None = None
    ) -> None:
        super().__init__(parent)
        self._seed = numbers_of(self._default_seed if seed is None else seed, "shuffle")
        self._reshuffle_each_epoch = reshuffle_each_epoch
        if len(parent) >= INFINITE:
            raise ValueError(f"{parent} has no end, and cannot be shuffled as a whole: repeat it after the shuffle")

    def __len__(self) -> int:
        return len(self._parent)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        shuffled = parents[0].shuffle(self._seed)
        return shuffled if self._reshuffle_each_epoch else shuffled.repeat(reseed_each_epoch=False)


class WindowShuffleMapDataset(_SameElements):
    """Random order within windows.

    DIFFERENCE: a short last window is shuffled too, and no element is lost.
    """

    def __init__(self, parent: MapDataset[Any], *, window_size: int, seed: int | None = None) -> None:
        super().__init__(parent)
        self._window_size = window_size
        self._seed = numbers_of(self._default_seed if seed is None else seed, "WindowShuffleMapDataset")

    def __len__(self) -> int:
        return len(self._parent)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return parents[0].window_shuffle(self._window_size, self._seed)


class WindowShuffleIterDataset(_SameStream):
    """Random order within windows of a stream."""

    def __init__(self, parent: IterDataset[Any], *, window_size: int, seed: int | None = None) -> None:
        super().__init__(parent)
        if window_size <= 0:
            raise ValueError(f"`window_size` must be greater than 0, got {window_size}")
        self._window_size = window_size
        self._seed = numbers_of(self._default_seed if seed is None else seed, "WindowShuffleIterDataset")

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.window_shuffle(self._window_size, self._seed)

    def __str__(self) -> str:
        return f"WindowShuffleIterDataset(window_size={self._window_size})"


class SliceMapDataset(_SameElements):
    """A slice of every epoch."""

    def __init__(self, parent: MapDataset[Any], sl: _slice) -> None:
        super().__init__(parent)
        if not isinstance(sl, _slice):
            raise ValueError(f"sl is not a slice: {type(sl)}")
        self._start, self._stop, self._step = sl.indices(len(parent))
        self._length = len(range(self._start, self._stop, self._step))
        self._slice = sl

    def __len__(self) -> int:
        return self._length

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return parents[0].slice(self._slice)

    def __str__(self) -> str:
        return f"SliceMapDataset[{self._start}:{self._stop}:{self._step}]"


class ReindexMapDataset(_SameElements):
    """Elements at given indices of every epoch, as on Grain's main branch. The indices may be a `MapDataset`.

    DIFFERENCE: all indices are read when the first element is requested, and must be within one epoch of the parent.
    """

    def __init__(self, parent: MapDataset[Any], indices: Sequence[int] | MapDataset[Any]) -> None:
        super().__init__(parent)
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        length = len(self._parent)
        given: Any = self._indices
        indices = [int(given[at]) for at in range(len(self))]
        return parents[0].select_indices([index + length if -length <= index < 0 else index for index in indices])

    def __str__(self) -> str:
        indices, length = self._indices, len(self)
        shown = str(indices) if length <= 5 else f"[{indices[0]}, {indices[1]}, ..., {indices[-2]}, {indices[-1]}]"
        return f"ReindexMapDataset(indices={shown}, len={length})"


class RepeatMapDataset(_SameElements):
    """Several epochs as one."""

    def __init__(
        self, parent: MapDataset[Any], num_epochs: int | None = None, *, reseed_each_epoch: bool = True
    ) -> None:
        super().__init__(parent)
        if num_epochs is not None and num_epochs <= 0:
            raise ValueError(f"`num_epochs` must be positive, but got {num_epochs}.")
        if len(parent) >= INFINITE:
            raise ValueError(f"Repeating already infinite dataset {parent} does nothing.")
        self._num_epochs = num_epochs
        self._reseed_each_epoch = reseed_each_epoch
        endless = num_epochs is None or len(parent) * num_epochs >= INFINITE
        self._length = 0 if len(parent) == 0 else INFINITE if endless else len(parent) * (num_epochs or 0)

    def __len__(self) -> int:
        return self._length

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return parents[0].repeat(self._num_epochs, reseed_each_epoch=self._reseed_each_epoch)

    def __str__(self) -> str:
        return f"RepeatMapDataset(num_epochs={self._num_epochs})"


class RepeatIterDataset(_SameStream):
    """A stream repeated unchanged."""

    def __init__(self, parent: IterDataset[Any], num_epochs: int | None = None) -> None:
        super().__init__(parent)
        if num_epochs is not None and num_epochs <= 0:
            raise ValueError(f"`num_epochs` must be positive, but got {num_epochs}.")
        self._num_epochs = num_epochs

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.repeat(self._num_epochs)

    def __str__(self) -> str:
        return f"RepeatIterDataset(num_epochs={self._num_epochs})"


class LimitIterDataset(_SameStream, Counting[Any]):
    """The first `count` elements."""

    def __init__(self, parent: IterDataset[Any], count: int) -> None:
        super().__init__(parent)
        if count <= 0:
            raise ValueError(f"Count must be a positive integer. Got {count}")
        self._count = count

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.limit(self._count)

    def __str__(self) -> str:
        return f"LimitIterDataset(count={self._count})"


class CacheIterDataset(_SameStream):
    """A cache of every element in memory, for the next epochs."""

    def __init__(self, parent: IterDataset[Any]) -> None:
        super().__init__(parent)

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.cache()
