"""Combination of datasets: by proportion, by a selection map, or by concatenation."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gristmill as gm
from gristmill.compat.grain import _states
from gristmill.compat.grain._base import DatasetSelectionMap
from gristmill.compat.grain._dataset import INFINITE, IterDataset, MapDataset
from gristmill.compat.grain._iterator import CoreIterator
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._stages import CoreIterDataset, CoreMapDataset

# Longest order that is stored as an array. Longer orders are evaluated on demand.
_WRITTEN_DOWN = 1 << 20


def _spec(parents: Sequence[Any]) -> Any:
    """Returns the spec of the first parent. As in Grain, the other parents need none, and are not compared."""
    return parents[0]._element_spec


class _Selected:
    """An order by a selection map that is too long to store."""

    def __init__(self, parents: Sequence[MapDataset[Any]], selection_map: DatasetSelectionMap) -> None:
        self._parents = parents
        self._map = selection_map

    def __len__(self) -> int:
        return len(self._map)

    def __getitem__(self, index: int) -> Any:
        epoch, index = divmod(index, len(self))
        dataset, index = self._map[index]
        parent = self._parents[dataset]
        return parent[index + epoch * len(parent)]


class MixedMapDataset(CoreMapDataset[Any]):
    """Elements of several datasets by proportion or by a selection map."""

    def __init__(
        self,
        parents: Sequence[MapDataset[Any]],
        proportions: Sequence[float] | None = None,
        selection_map: DatasetSelectionMap | None = None,
    ) -> None:
        super().__init__(parents)
        if proportions is not None and selection_map is not None:
            raise ValueError("`proportions` and `selection_map` exclude each other")
        if proportions is not None and len(proportions) != len(self.parents):
            raise ValueError(f"got {len(proportions)} weights for {len(self.parents)} datasets")
        if proportions is not None and any(weight <= 0 for weight in proportions):
            raise ValueError(f"weights must be positive, got {list(proportions)}")
        if selection_map is None and any(len(parent) == 0 for parent in self.parents):
            empty = [f"index {at} ({parent})" for at, parent in enumerate(self.parents) if len(parent) == 0]
            raise ValueError(
                f"All datasets must have positive length for mixing, but dataset(s) at {', '.join(empty)} have length 0."
            )
        self._proportions = proportions
        self._selection_map = selection_map

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        if self._selection_map is None:
            return gm.MapDataset.mix(parents, self._proportions)
        if len(self._selection_map) == 0:
            return gm.MapDataset.source(())
        if len(self._selection_map) > _WRITTEN_DOWN:
            return gm.MapDataset.computed(_Selected(self.parents, self._selection_map))
        return gm.MapDataset.select_from_datasets(parents, self._selection_map)

    def __len__(self) -> int:
        return super().__len__() if self._selection_map is None else len(self._selection_map)

    @property
    def _element_spec(self) -> Any:
        return _spec(self.parents)

    def __str__(self) -> str:
        return f"MixedMapDataset[{len(self.parents)} parents]"

    def __repr__(self) -> str:
        order: Any = self._selection_map
        if order is None:
            weights = self._proportions or [1] * len(self.parents)
            # The integer shares that correspond to the weights.
            shares = tuple(int(weight * 100 / min(weights)) if self._proportions else 1 for weight in weights)
            order = f"SelectionWithProportionsMap(proportions={shares}, length={len(self)})"
        return f"MixedMapDataset(parent_lengths={[len(parent) for parent in self.parents]}, selection_map={order})"


class ConcatenateMapDataset(CoreMapDataset[Any]):
    """Concatenated datasets, epoch by epoch."""

    def __init__(self, parents: Sequence[MapDataset[Any]]) -> None:
        super().__init__(parents)
        if any(len(parent) >= INFINITE for parent in self.parents):
            raise ValueError("Cannot concatenate infinite datasets")

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return gm.MapDataset.concatenate(parents)

    def __len__(self) -> int:
        return sum(len(parent) for parent in self.parents)

    @property
    def _element_spec(self) -> Any:
        return _spec(self.parents)

    def __str__(self) -> str:
        return f"ConcatenateMapDataset[{len(self.parents)} parents]"


class MixedIterDataset(CoreIterDataset[Any]):
    """Streams mixed by proportion, until any of them ends."""

    def __init__(
        self,
        parents: Sequence[IterDataset[Any]] | Mapping[str, IterDataset[Any]],
        proportions: Sequence[float] | Mapping[str, float] | None = None,
    ) -> None:
        self._names: list[str] | None = None
        if isinstance(parents, Mapping):
            named: Mapping[str, IterDataset[Any]] = parents
            # Sorted as JAX sorts trees in Grain, so the order of the given names has no effect.
            self._names = sorted(named)
            if isinstance(proportions, Mapping):
                if proportions.keys() != named.keys():
                    raise ValueError(f"weights are given for {list(proportions)}, and the datasets are {self._names}")
                proportions = [proportions[name] for name in self._names]
            elif proportions is not None:
                raise ValueError("weights of named datasets are named, too")
            parents = [named[name] for name in self._names]
        elif isinstance(proportions, Mapping):
            raise ValueError("weights have names, and the datasets have none")
        super().__init__(parents)
        weights = [1.0] * len(parents) if proportions is None else [float(weight) for weight in proportions]
        if len(weights) != len(parents):
            raise ValueError(f"got {len(weights)} weights for {len(parents)} datasets")
        if any(weight <= 0 for weight in weights):
            raise ValueError(f"weights must be positive, got {weights}")
        self._weights = weights

    def mix_core(self, plan: Plan) -> gm.IterDataset:
        """Returns the mix as a core dataset."""
        return gm.IterDataset.mix([parent._core(plan) for parent in self.parents], self._weights)

    def _build(self, plan: Plan) -> gm.IterDataset:
        # A state with names does not fit the core, so later stages read a named mix as a source.
        return self.mix_core(plan) if self._names is None else gm.IterDataset.source(self)

    def __iter__(self) -> Any:
        return super().__iter__() if self._names is None else _NamedMixIterator(self, self._names)

    def _core(self, plan: Plan) -> gm.IterDataset:
        return self._build(plan)

    @property
    def _element_spec(self) -> Any:
        return _spec(self.parents)

    def __str__(self) -> str:
        return f"MixedIterDataset([{len(self.parents)} datasets])"


class _NamedMixIterator(CoreIterator):
    """A pass over a named mix. Its state contains the names of the streams, so that the streams may change."""

    def __init__(self, dataset: MixedIterDataset, names: list[str]) -> None:
        self._names = names
        super().__init__(dataset)

    def _start(self, plan: Plan) -> gm.IterDataset:
        return cast(MixedIterDataset, self._dataset).mix_core(plan)

    def get_state(self) -> dict[str, Any]:
        state = super().get_state()
        return {**state, "parents": dict(zip(self._names, state["parents"], strict=True))}

    def set_state(self, state: dict[str, Any]) -> None:
        fresh = _states.to_grain(self._core_state())["parents"]
        known: Mapping[str, Any] = state["parents"]
        parents = [known.get(name, start) for name, start in zip(self._names, fresh, strict=True)]
        super().set_state({**state, "parents": parents})
