"""Applies transforms that are written as classes."""

from collections.abc import Sequence
from typing import Any, cast

from gristmill.compat.grain import _transforms as kinds
from gristmill.compat.grain._dataset import MapDataset
from gristmill.compat.grain._lazy import make


def apply_transformations(ds: Any, transformations: Any) -> Any:
    """Returns `ds` with the transforms applied in order, each by its kind."""
    if not isinstance(transformations, (list, tuple)):
        transformations = [transformations]
    for transform in cast("Sequence[Any]", transformations):
        match transform:
            case kinds.Batch():
                ds = ds.batch(
                    transform.batch_size, drop_remainder=transform.drop_remainder, batch_fn=transform.batch_fn
                )
            case kinds.Map():
                ds = ds.map(transform)
            case kinds.RandomMap():
                ds = ds.random_map(transform)
            case kinds.MapWithIndex():
                ds = ds.map_with_index(transform)
            case kinds.Filter():
                ds = ds.filter(transform)
            case kinds.FlatMap():
                name = "FlatMapMapDataset" if isinstance(ds, MapDataset) else "FlatMapIterDataset"
                ds = make("_flatmap", name, ds, transform)
            case _:
                raise NotImplementedError(f"Transformation type: {transform} is not supported.")
    return ds


def get_element_spec(ds: Any) -> Any:
    """Returns the shapes and dtypes of the elements. Evaluates an element only if a stage does not declare its spec."""
    return ds._element_spec
