"""Arrays are views of native memory, and keep it for as long as they live."""

import gc
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest


def address(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def test_rows_of_a_file_are_views_of_its_mapping(npy: Path) -> None:
    ds = gm.MapDataset.npy(npy)
    first, third = ds[0]["data"], ds[2]["data"]
    assert address(third) - address(first) == 2 * first.nbytes
    assert address(first) == address(ds[0]["data"])


def test_views_cannot_be_written_to(npy: Path) -> None:
    row = gm.MapDataset.npy(npy)[0]["data"]
    assert not row.flags.writeable and not row.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1
    with pytest.raises(ValueError):
        row.flags.writeable = True


def test_a_batch_is_aligned_and_its_parts_are_views(npy: Path) -> None:
    batch = next(iter(gm.MapDataset.npy(npy).to_iter_dataset().batch(8)))["data"]
    assert batch.shape == (8, 4) and address(batch) % 64 == 0
    halves = [half["data"] for half in gm.MapDataset.npy(npy).to_iter_dataset().batch(8).rebatch(4)]
    assert address(halves[1]) - address(halves[0]) == halves[0].nbytes


def test_what_a_python_function_passes_on_is_not_copied(npy: Path) -> None:
    ds = gm.MapDataset.npy(npy)
    passed = ds.map(lambda e: {"row": e["data"], "tail": e["data"][2:]}).drop_columns("none")[5]
    assert address(passed["row"]) == address(ds[5]["data"])
    assert address(passed["tail"]) == address(ds[5]["data"]) + 8


def test_what_python_may_still_write_to_is_copied() -> None:
    mine = np.arange(4)
    ds = gm.MapDataset.source([{"x": mine}]).drop_columns("none")
    before = ds[0]["x"]
    mine[0] = 100
    assert before.tolist() == [0, 1, 2, 3]


def is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc/self/maps")
def test_memory_lives_as_long_as_the_last_view(npy: Path) -> None:
    it = iter(gm.MapDataset.npy(npy))
    whole = next(it)["data"]
    part = whole[1:3]
    del it, whole
    gc.collect()
    assert is_mapped(npy) and part.tolist() == [1, 2]
    del part
    gc.collect()
    assert not is_mapped(npy)


def test_elements_outlive_what_made_them() -> None:
    it = gm.MapDataset.range(100).map(lambda x: {"x": np.full(1000, x)}).to_iter_dataset().batch(10).loader(threads=2)
    batches = list(it)
    it.close()
    del it
    gc.collect()
    assert [int(batch["x"].mean() * 10) for batch in batches] == [10 * (10 * i) + 45 for i in range(10)]


def test_batches_may_be_asked_for_writable(npy: Path) -> None:
    it = gm.MapDataset.npy(npy).to_iter_dataset().batch(8).loader(writable=True)
    batch = next(it)["data"]
    assert batch.flags.writeable and address(batch) % 64 == 0
    batch[:] = 0
    assert next(it)["data"].sum() > 0
    assert gm.MapDataset.npy(npy)[1]["data"].tolist() == [4, 5, 6, 7]


def test_writable_arrays_are_copies_of_what_others_view(npy: Path) -> None:
    ds = gm.MapDataset.npy(npy)
    rows = list(ds.loader(writable=True))
    assert address(rows[0]["data"]) != address(ds[0]["data"])
    rows[0]["data"][:] = -1
    assert ds[0]["data"].tolist() == [0, 1, 2, 3]
    cached = ds.to_iter_dataset().batch(40).cache().repeat(2)
    first, second = (batch["data"] for batch in cached.loader(writable=True))
    first[:] = -1
    assert second[1].tolist() == [4, 5, 6, 7]


def test_small_writable_arrays_are_on_their_own(tmp_path: Path) -> None:
    np.save(tmp_path / "small.npy", np.arange(6, dtype=np.int16).reshape(3, 2))
    rows = [row["data"] for row in gm.MapDataset.npy(tmp_path / "small.npy").loader(writable=True)]
    rows[0] += 10
    assert [row.tolist() for row in rows] == [[10, 11], [2, 3], [4, 5]]


def test_what_may_be_written_to_is_copied_on_its_way_back(npy: Path) -> None:
    held = [batch["data"] for batch in gm.MapDataset.npy(npy).to_iter_dataset().batch(20).loader(writable=True)]
    taken = gm.MapDataset.source(held).map(lambda x: {"x": x}).drop_columns("none")[0]["x"]
    held[0][:] = -1
    assert taken[1].tolist() == [4, 5, 6, 7]
