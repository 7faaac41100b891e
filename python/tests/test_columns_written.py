"""Files of columns that a sink writes, read by pyarrow, by Hugging Face's datasets, and as they were."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import plain

import gristmill as gm

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")


def element(i: int) -> dict[str, Any]:
    return {
        "id": np.uint16(i),
        "text": f"ß {i}",
        "raw": bytes([i, 0, 255]),
        "ids": np.arange(i % 4, dtype=np.int32),
        "features": np.full((i % 3, 4), i, np.float32),
        "half": np.full((2, 3), i / 2, np.float16),
        "flags": np.array([i % 2 == 0, True]),
        "tags": ["a"] * (i % 3),
        "meta": {"score": np.float64(i) / 3, "none": None if i % 2 else "x"},
    }


ROWS = [element(i) for i in range(100)]


def write(folder: Path, format: Any, **options: Any) -> None:
    with gm.sink(folder, format, shard_records=40, group=16, **options) as sink:
        for row in ROWS:
            sink.write(row)


def assert_same(read: Any, want: Any) -> None:
    if isinstance(want, dict):
        assert list(read) == list(want)
        for name in want:
            assert_same(read[name], want[name])
    elif isinstance(want, np.ndarray | np.generic):
        assert read.dtype == want.dtype and read.shape == want.shape and np.array_equal(read, want)
    else:
        assert read == want


def assert_read_back(ds: gm.MapDataset) -> None:
    assert len(ds) == len(ROWS)
    for read, want in zip(ds, ROWS, strict=True):
        assert_same(read, want)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd:3", "lz4", "gzip:6", "brotli:5"])
def test_parquet(tmp_path: Path, compression: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write(tmp_path, "parquet", compression=compression, byte_stream_split=compression == "zstd:3")
    files = sorted(tmp_path.glob("*.parquet"))
    read = [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]
    assert len(files) == 3 and read == plain(ROWS)
    first = parquet.ParquetFile(files[0])
    assert first.metadata.num_row_groups == 3 and first.metadata.row_group(0).column(0).has_offset_index
    schema = first.schema_arrow
    assert schema.field("id").type == pa.uint16() and schema.field("ids").type == pa.list_(pa.int32())
    assert schema.field("features").type.value_type.list_size == 4
    columns = [first.metadata.row_group(0).column(i) for i in range(first.metadata.num_columns)]
    split = ["BYTE_STREAM_SPLIT" in column.encodings for column in columns if column.path_in_schema.startswith("features")]
    assert split == [compression == "zstd:3"]
    assert_read_back(gm.MapDataset.parquet(files))


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd:3"])
def test_arrow(tmp_path: Path, compression: str) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    write(tmp_path, "arrow", compression=compression)
    files = sorted(tmp_path.glob("*.arrow"))
    assert [row for file in files for row in pa.ipc.open_file(file).read_all().to_pylist()] == plain(ROWS)
    assert feather.read_table(files[0]).to_pylist() == plain(ROWS[:40])
    assert_read_back(gm.MapDataset.arrow(files))


def test_hugging_face(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install datasets")
    write(tmp_path / "set", "hugging_face")
    read = datasets.load_from_disk(str(tmp_path / "set"))
    assert read.features["ids"].feature.dtype == "int32" and read[:] == datasets.Dataset.from_list(plain(ROWS))[:]
    assert_read_back(gm.MapDataset.arrow(tmp_path / "set"))
    read.shuffle(seed=1).save_to_disk(str(tmp_path / "again"))
    assert [int(row["id"]) for row in gm.MapDataset.arrow(tmp_path / "again")] == read.shuffle(seed=1)["id"][:]
