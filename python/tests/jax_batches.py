"""Batches that are sent to JAX's devices, and the meshes of those."""

from typing import Any

import gristmill as gm
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")


def batches(rows: int = 23, size: int = 4) -> gm.IterDataset:
    """Dicts of an array, a tuple in a dict, and scalars."""
    ds = gm.MapDataset.range(rows).seed(3).shuffle()
    ds = ds.map(lambda x: {"x": np.full(3, x, np.float32), "in": {"pair": (np.int32(x), x * 2)}})
    return ds.to_iter_dataset().batch(size)


def shown(tree: Any) -> list[Any]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), np.asarray(leaf).tolist()) for path, leaf in paths]


def mesh(*shape: int) -> Any:
    names = ("data", "model")[: len(shape)]
    devices = jax.devices("cpu")
    if len(devices) < 4:
        pytest.skip("needs 4 devices: JAX was imported before XLA_FLAGS could ask for them")
    return jax.sharding.Mesh(np.array(devices[: np.prod(shape)]).reshape(shape), names)


def over(mesh: Any, *spec: Any) -> Any:
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
