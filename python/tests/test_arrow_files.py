"""Arrow's files, streams and folders, held against pyarrow and Hugging Face's datasets; columns and row groups of Parquet."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import plain

import gristmill as gm

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")

ROWS = [
    {
        "id": i,
        "text": None if i % 7 == 3 else "ß" * (i % 5),
        "ids": [i, i + 1, i + 2][: i % 4],
        "vector": [float(i), 0.5, -1.0],
        "tags": ["a", "b"][: i % 3],
        "meta": {"url": f"u{i}", "n": None if i % 2 else i},
        "flag": i % 2 == 0,
    }
    for i in range(50)
]
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "text": pa.string(),
        "ids": pa.list_(pa.int32()),
        "vector": pa.list_(pa.float32(), 3),
        "tags": pa.large_list(pa.string_view()),
        "meta": pa.struct({"url": pa.string(), "n": pa.int16()}),
        "flag": pa.bool_(),
    }
)


def write(path: Path, kind: str, compression: str | None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with make(path, SCHEMA, options=options) as writer:
        for first in range(0, len(ROWS), 20):
            writer.write_batch(pa.RecordBatch.from_pylist(ROWS[first : first + 20], schema=SCHEMA))


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_files_and_streams(tmp_path: Path, kind: str, compression: str | None) -> None:
    path = tmp_path / "a.arrow"
    write(path, kind, compression)
    ds = gm.MapDataset.arrow(path)
    assert plain(list(ds)) == ROWS
    assert ds[9]["ids"].dtype == np.int32 and ds[9]["vector"].shape == (3,)
    some = gm.MapDataset.arrow(paths=[str(path), path], columns=["flag", "id"])
    assert len(some) == 50 and list(some[49]) == ["flag", "id"]
    shuffled = list(gm.MapDataset.arrow(path).shuffle(seed=1).select_columns("id").to_iter_dataset().batch(10))
    with ds.shuffle(seed=1).select_columns("id").to_iter_dataset().batch(10).mp_prefetch(num_workers=1).loader() as loader:
        assert plain(list(loader)) == plain(shuffled)


def test_dictionaries_that_grow_or_are_replaced(tmp_path: Path) -> None:
    path, texts = tmp_path / "a.arrow", [["a", "b"], ["a", "b", "c"], ["z"], ["y", "z"]]
    schema = pa.schema({"d": pa.dictionary(pa.int8(), pa.string())})
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(path, schema, options=options) as writer:
        for batch in texts:
            writer.write_batch(pa.record_batch([pa.array(batch).dictionary_encode().cast(schema[0].type)], schema))
    ds = gm.MapDataset.arrow(path)
    assert [ds[i]["d"] for i in reversed(range(len(ds)))] == [text for batch in texts for text in batch][::-1]


def test_feather(tmp_path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    feather.write_feather(table, tmp_path / "b.feather", compression="zstd")
    assert plain(list(gm.MapDataset.arrow(tmp_path))) == ROWS
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(gm.UnsupportedError, match=r"old\.feather.*version 1 of Feather"):
        gm.MapDataset.arrow(tmp_path / "old.feather")


def test_folders_of_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install datasets")
    rows = [{name: value for name, value in row.items() if name != "vector"} for row in ROWS]
    whole = datasets.Dataset.from_list(rows)
    whole.save_to_disk(str(tmp_path / "set"), num_shards=3)
    assert plain(list(gm.MapDataset.arrow(tmp_path / "set"))) == rows
    # What was chosen and ordered is what was saved.
    whole.select([5, 3, 4]).save_to_disk(str(tmp_path / "some"))
    assert [row["id"] for row in gm.MapDataset.arrow(tmp_path / "some")] == [5, 3, 4]
    datasets.DatasetDict(train=whole, test=whole).save_to_disk(str(tmp_path / "splits"))
    with pytest.raises(gm.ConfigError, match="splits of one") as caught:
        gm.MapDataset.arrow(tmp_path / "splits")
    assert str(tmp_path / "splits" / "test") in str(caught.value.__notes__ if hasattr(caught.value, "__notes__") else caught.value)
    assert len(gm.MapDataset.arrow(tmp_path / "splits" / "test")) == 50


def test_arrays_of_shapes(tmp_path: Path) -> None:
    arrays = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(arrays)
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema({"x": tensors.type})) as writer:
        writer.write_batch(pa.record_batch({"x": tensors}))
    assert [row["x"].shape for row in gm.MapDataset.arrow(tmp_path / "a.arrow")] == [(3, 4)] * 2
    assert np.array_equal([row["x"] for row in gm.MapDataset.arrow(tmp_path / "a.arrow")], arrays)
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install datasets")
    features = datasets.Features(x=datasets.Array3D((2, 3, 4), "int16"), ragged=datasets.Array2D((None, 2), "int32"))
    rows = [{"x": (arrays + i).astype("i2"), "ragged": np.full((i, 2), i, "i4")} for i in range(5)]
    datasets.Dataset.from_list(rows, features=features).save_to_disk(str(tmp_path / "set"))
    read = list(gm.MapDataset.arrow(tmp_path / "set"))
    for row, want in zip(read, rows, strict=True):
        assert all(row[name].dtype == want[name].dtype and np.array_equal(row[name], want[name]) for name in want)


def test_fields_and_row_groups_of_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    parquet.write_table(table, path, row_group_size=10)
    assert plain(list(gm.MapDataset.parquet(path))) == ROWS
    ds = gm.MapDataset.parquet(path, columns=["id", "meta.url"], row_groups={"column": "id", "min": 12, "max": 25})
    assert plain(list(ds)) == [{"id": i, "meta": {"url": f"u{i}"}} for i in range(10, 30)]
    assert plain(list(ds)) == [row for row in parquet.ParquetFile(path).read(columns=["id", "meta.url"]).to_pylist() if 10 <= row["id"] < 30]
    exact = ds.filter(column="id", min=12, max=25)
    assert [row["id"] for row in exact.to_iter_dataset()] == list(range(12, 26))
    assert len(gm.MapDataset.parquet(path, row_groups={"column": "id", "min": 1e9})) == 0
    with pytest.raises(gm.ConfigError, match="needs a condition"):
        gm.MapDataset.parquet(path, row_groups={"column": "id"})


COLUMNS: dict[str, Any] = {
    "text": lambda n: pa.array(["x" * (i % 9) for i in range(n)]),
    "long text": lambda n: pa.array(["é" * (i % 9) for i in range(n)], pa.large_string()),
    "bytes": lambda n: pa.array([b"x" * (i % 9) for i in range(n)]),
    "lists": lambda n: pa.array([list(range(i % 9)) for i in range(n)], pa.list_(pa.int64())),
    "lists of text": lambda n: pa.array([["a", "bc"][: i % 3] for i in range(n)]),
    "views": lambda n: pa.array(["x" * (i % 30) for i in range(n)], pa.string_view()),
    "dictionary": lambda n: pa.array([f"word {i % 40}" for i in range(n)]).dictionary_encode(),
    "structs": lambda n: pa.array([{"a": "x" * (i % 9), "b": [i]} for i in range(n)]),
    "maps": lambda n: pa.array([[("k", i)] * (i % 3) for i in range(n)], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("garbage", [0x7F, 0xFF, 0x01, None])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_file_that_is_overwritten_during_a_pass_ends_nothing(tmp_path: Path, column: str, garbage: int | None) -> None:
    """Rows may be anything or an error then: the process goes on, and reads nothing outside of the file."""
    path = tmp_path / "x.arrow"
    table = pa.table({"c": COLUMNS[column](500)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=250)
    rows = gm.MapDataset.arrow(path)
    assert len(str(rows[0])) > 0 and len(str(rows[260])) > 0
    # Both batches are open, and the file keeps its size.
    with path.open("r+b") as file:
        file.seek(8)
        size = path.stat().st_size - 8
        file.write(np.random.default_rng(1).bytes(size) if garbage is None else bytes([garbage]) * size)
    read = 0
    for at in range(500):
        try:
            read += len(str(rows[at]))
        except gm.DataError:
            pass
    assert read < 100 * path.stat().st_size
