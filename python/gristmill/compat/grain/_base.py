"""Specs of elements, options of pipelines, and protocols of sources."""

import abc
import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class ShapeDtypeStructProtocol(Protocol):
    """An object with a shape and a dtype."""

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the dimensions; `None` for a dimension of variable size."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the numbers."""
        ...


@dataclasses.dataclass(slots=True, frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of a leaf."""

    shape: tuple[int | None, ...]
    dtype: DTypeLike


@runtime_checkable
class RandomAccessDataSource(Protocol[T_co]):
    """A source for `MapDataset.source`."""

    def __len__(self) -> int:
        """Returns the number of records."""
        ...

    def __getitem__(self, index: int) -> T_co:
        """Returns record `index`."""
        ...


@runtime_checkable
class SupportsBatchedReadRandomAccessDataSource(RandomAccessDataSource[T_co], Protocol[T_co]):
    """A source that also reads several records at once."""

    def _getitems(self, indices: Sequence[int]) -> Sequence[T_co]: ...


class DatasetSelectionMap(abc.ABC):
    """A custom order for `MapDataset.select_from_datasets`."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """Returns the number of elements in an epoch."""

    @abc.abstractmethod
    def __getitem__(self, index: int) -> tuple[int, int]:
        """Returns the index of a dataset and an index in that dataset."""


@enum.unique
class ExecutionTrackingMode(enum.Enum):
    """Whether `get_execution_summary` is enabled. Times are always measured: `report()` returns them."""

    DISABLED = 0
    STAGE_TIMING = 1


@runtime_checkable
class SupportsSharedMemoryOutput(Protocol):
    """A stage or function that can write its output into shared memory."""

    def enable_shared_memory_output(self) -> None:
        """Writes the output into shared memory from now on."""
        ...


class _Unset:
    """A default value, which any given value overrides."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _unset(value: Any) -> Callable[[], Any]:
    return lambda: _Unset(value)


@dataclasses.dataclass(kw_only=True, frozen=True)
class DatasetOptions:
    """Options of a whole pipeline. The last setting of each field wins."""

    filter_warn_threshold_ratio: float | None = dataclasses.field(default_factory=_unset(0.9))
    filter_raise_threshold_ratio: float | None = dataclasses.field(default_factory=_unset(None))
    execution_tracking_mode: ExecutionTrackingMode = dataclasses.field(
        default_factory=_unset(ExecutionTrackingMode.DISABLED)
    )
    min_shm_size: int = dataclasses.field(default_factory=_unset(0))
    _given: frozenset[str] = dataclasses.field(default=frozenset(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: set[str] = set()
        for field in dataclasses.fields(self):
            value: Any = getattr(self, field.name)
            if isinstance(value, _Unset):
                object.__setattr__(self, field.name, value.value)
            elif field.init:
                given.add(field.name)
        object.__setattr__(self, "_given", frozenset(given))

    def merge(self, other: "DatasetOptions | None") -> "DatasetOptions":
        """Returns the options of both; fields set in `self` win over `other`."""
        if other is None:
            return self
        fields = {name: getattr(other, name) for name in other._given}
        fields.update({name: getattr(self, name) for name in self._given})
        return DatasetOptions(**fields)


@dataclasses.dataclass(kw_only=True, frozen=True, slots=True)
class MultiprocessingContext:
    """The worker that an iterator belongs to: its index and the number of workers."""

    process_index: int = 0
    process_count: int = 1


@dataclasses.dataclass(kw_only=True)
class IteratorContext:
    """State shared by the iterators of a pipeline in Grain, for programs with custom iterators."""

    dataset_options: DatasetOptions = dataclasses.field(default_factory=DatasetOptions)
    mp_context: MultiprocessingContext = dataclasses.field(default_factory=MultiprocessingContext)
    is_dataloader_pipeline: bool = False

    def merge(self, other: "IteratorContext") -> None:
        """Adds the options of `other` that are not set here."""
        if self.mp_context != other.mp_context:
            raise ValueError(
                f"Cannot merge contexts from different worker processes: {self.mp_context} vs {other.mp_context}."
            )
        self.dataset_options = self.dataset_options.merge(other.dataset_options)
        self.is_dataloader_pipeline = self.is_dataloader_pipeline or other.is_dataloader_pipeline


def spec_of(element: Any) -> Any:
    """Returns the spec of a leaf."""
    if isinstance(element, ShapeDtypeStructProtocol):
        return ShapeDtypeStruct(shape=tuple(element.shape), dtype=np.dtype(element.dtype))
    if isinstance(element, bool):
        return ShapeDtypeStruct(shape=(), dtype=np.dtype(np.bool_))
    if isinstance(element, int):
        return ShapeDtypeStruct(shape=(), dtype=np.dtype(np.int64))
    if isinstance(element, float):
        return ShapeDtypeStruct(shape=(), dtype=np.dtype(np.float64))
    return ShapeDtypeStruct(shape=(), dtype=cast("DTypeLike", type(element)))
