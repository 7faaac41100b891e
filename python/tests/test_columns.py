"""Batches that come straight out of columns are those of their rows, whoever makes them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COUNT = 500
SIZE = 32


def table() -> Any:
    numbers = np.arange(COUNT)
    return pa.table(
        {
            "id": pa.chunked_array([numbers[:123], numbers[123:]]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3 * COUNT, dtype=np.float32)), 3),
            "pair": pa.array([[i, -i] for i in range(COUNT)]),
            "text": pa.array([None if i % 5 == 1 else f"text {i}" for i in range(COUNT)]),
            "flag": pa.array([i % 3 == 0 for i in range(COUNT)]),
            "meta": pa.array([{"url": f"u{i}", "n": i} for i in range(COUNT)]),
        }
    )


def source(kind: str, folder: Path) -> gm.MapDataset:
    if kind == "table":
        return gm.MapDataset.arrow(table())
    if kind == "parquet":
        pq.write_table(table(), folder / "a.parquet", row_group_size=77)
        return gm.MapDataset.parquet(folder / "a.parquet")
    with pa.ipc.new_file(folder / "a.arrow", table().schema) as writer:
        writer.write_table(table(), max_chunksize=60)
    return gm.MapDataset.arrow(folder / "a.arrow")


def stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a batch of rows is, by hand."""
    whole = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: column(values) for name, values in whole.items()}


def column(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return stacked(values)
    return np.stack(values) if isinstance(values[0], np.ndarray | np.generic) else values


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, np.ndarray):
        return ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()
    return bool(ours == theirs)


@pytest.mark.parametrize("kind", ["table", "parquet", "arrow"])
def test_batches_are_those_of_rows(kind: str, tmp_path: Path) -> None:
    columns = ["meta", "vector", "pair", "flag", "text"]
    ds = source(kind, tmp_path).shuffle(seed=3)[20:].select_columns(columns).rename({"pair": "both"})
    rows = list(ds.to_iter_dataset())
    expected = [stacked(rows[first : first + SIZE]) for first in range(0, len(rows), SIZE)]
    assert list(expected[0]) == ["meta", "vector", "both", "flag", "text"]
    batches = ds.to_iter_dataset().batch(SIZE)
    passes = [batches, ds.batch(SIZE).to_iter_dataset(), batches.loader(threads=2), batches.mp_prefetch(num_workers=1)]
    for made in passes:
        assert all(same(ours, theirs) for ours, theirs in zip(made, expected, strict=True))


def test_what_does_not_stack_is_told_as_ever(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ragged": [[0] * (1 + i // 30) for i in range(40)]}), tmp_path / "a.parquet")
    batches = iter(gm.MapDataset.parquet(tmp_path).to_iter_dataset().batch(20))
    assert next(batches)["ragged"].shape == (20, 1)
    with pytest.raises(gm.DataError, match="batch: cannot stack 20 elements"):
        next(batches)
