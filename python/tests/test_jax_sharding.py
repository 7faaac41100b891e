"""Batches that are sharded over JAX's devices: which rows lie where, and which shard a process loads."""

from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest
from jax_batches import batches, mesh, over, shown

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")


@pytest.mark.parametrize("where", ["device", "sharding"])
def test_batches_go_where_they_are_sent(where: str) -> None:
    device = mesh(4).devices[2]
    target = device if where == "device" else jax.sharding.SingleDeviceSharding(device)
    for batch in gm.jax.device_put(batches(), target):
        assert all(leaf.devices() == {device} for leaf in jax.tree_util.tree_leaves(batch))


def test_rows_are_sharded_over_the_devices() -> None:
    rows = over(mesh(4), "data")
    plain = list(batches(32, 8))
    for batch, whole in zip(gm.jax.device_put(batches(32, 8), rows), plain, strict=True):
        assert shown(batch) == shown(whole)
        for shard in batch["x"].addressable_shards:
            place = rows.mesh.devices.tolist().index(shard.device)
            assert np.array_equal(shard.data, whole["x"][2 * place : 2 * place + 2])


def test_rows_of_transposed_meshes_lie_where_their_numbers_say() -> None:
    plain = list(batches(32, 8))
    devices = np.array(jax.devices("cpu")[:4])
    for grid, axes in [(devices.reshape(2, 2).T, ("data", "model")), (devices[[2, 0, 3, 1]], "data"), (devices.reshape(2, 2).T, "model")]:
        names = ("data", "model") if grid.ndim == 2 else ("data",)
        sharding = over(jax.sharding.Mesh(grid, names), axes)
        part = gm.jax.part_for(sharding, 8)
        assert part == gm.Part(0, 1)
        sent = gm.jax.device_put(batches(32, 8).loader(part=part), sharding, global_batch=8)
        for batch, whole in zip(sent, plain, strict=True):
            for shard in batch["x"].addressable_shards:
                assert np.array_equal(shard.data, whole["x"][shard.index[0]]), sharding


@pytest.mark.parametrize(
    ("rows", "words"), [([], ""), ([3], "3"), ([0, 1, 4, 5], "0 to 1, 4 to 5"), ([5, 4, 6, 7], "5, 4, 6 to 7")]
)
def test_rows_are_named_by_ranges(rows: list[int], words: str) -> None:
    assert gm.jax._target.ranges(rows) == words


@pytest.mark.parametrize("numbers", [16, 24, 3])
def test_rows_on_a_cpu_are_shared_where_a_device_begins_at_64_bytes(tmp_path: Path, numbers: int) -> None:
    # Two rows of so many float32 for each of four devices.
    np.save(tmp_path / "rows.npy", np.arange(8 * numbers, dtype=np.float32).reshape(8, numbers))
    host = next(iter(gm.MapDataset.npy(tmp_path / "rows.npy").to_iter_dataset().batch(8)))
    begin = host["data"].__array_interface__["data"][0]
    assert begin % 64 == 0
    batch = next(gm.jax.device_put(gm.MapDataset.source([host]), over(mesh(4), "data")))
    places = mesh(4).devices.tolist()
    for shard in batch["data"].addressable_shards:
        at = begin + 8 * numbers * places.index(shard.device)
        assert (shard.data.unsafe_buffer_pointer() == at) == (at % 64 == 0)


def test_a_tree_of_shardings() -> None:
    both = mesh(2, 2)
    target = {"x": over(both, "data", "model"), "in": over(both)}
    ds = gm.MapDataset.range(8).map(lambda x: {"x": np.full(4, x, np.float32), "in": {"n": np.int32(x)}})
    batch = next(gm.jax.device_put(ds.to_iter_dataset().batch(4), target))
    assert batch["x"].sharding == target["x"] and batch["x"].addressable_shards[0].data.shape == (2, 2)
    assert batch["in"]["n"].is_fully_replicated


def test_rows_that_cannot_be_sharded_are_an_error_at_their_batch() -> None:
    sent = gm.jax.device_put(batches(23, 8), over(mesh(4), "data"))
    next(sent), next(sent)
    with pytest.raises(ValueError, match="evenly divide"):
        next(sent)


def test_one_process_loads_everything() -> None:
    assert gm.jax.shard_for(over(mesh(4), "data")) == (0, 1)
    assert gm.jax.shard_for(over(mesh(2, 2), None, "model"), 5) == (0, 1)
    assert gm.jax.shard_for(jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])) == (0, 1)
    with pytest.raises(gm.ConfigError, match="a global batch of 6 rows cannot be sharded"):
        gm.jax.shard_for(over(mesh(4), "data"), 6)
    with pytest.raises(gm.ConfigError, match="global_batch is 0, and must be 1 or more"):
        gm.jax.shard_for(over(mesh(4), "data"), 0)


@pytest.mark.parametrize(
    ("blocks", "shards"),
    [
        ({0: [(0, 2), (2, 4)], 1: [(4, 6), (6, 8)]}, [(0, 2), (1, 2)]),
        ({0: [(4, 8)], 1: [(0, 4)]}, [(1, 2), (0, 2)]),
        ({0: [(0, 4)], 1: [(0, 4)], 2: [(4, 8)], 3: [(4, 8)]}, [(0, 2), (0, 2), (1, 2), (1, 2)]),
        ({0: [(0, 8)], 1: [(0, 8)]}, [(0, 1), (0, 1)]),
    ],
)
def test_shards_follow_from_the_rows_of_the_devices(blocks: dict[int, Any], shards: list[Any]) -> None:
    held = {process: set(parts) for process, parts in blocks.items()}
    assert [gm.jax._shards.shard_of(process, 8, held) for process in held] == shards


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        ({0: [(0, 2), (4, 6)], 1: [(2, 4), (6, 8)]}, r"process 0 are not contiguous: .* \[\(0, 2\), \(4, 6\)\]"),
        ({0: [(0, 2), (2, 4), (4, 6)], 1: [(6, 8)]}, "uneven: process 1 holds rows 6 to 8 of 8, process 0 rows 0 to 6"),
        ({0: [(0, 4)], 1: [(2, 6)], 2: [(4, 8)]}, "uneven: process 1 holds rows 2 to 6"),
        ({1: [(0, 8)]}, r"process 0 has no device in the sharding, which has devices of processes \[1\]"),
    ],
)
def test_rows_that_are_no_shard_are_refused(blocks: dict[int, Any], says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says):
        gm.jax._shards.shard_of(0, 8, {process: set(parts) for process, parts in blocks.items()})
