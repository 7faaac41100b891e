"""Files of records of bytes, held against the readers and writers of those who made the formats."""

from pathlib import Path
from typing import Any

import pytest

import gristmill as gm

RECORDS = [bytes([i % 251]) * (i * 37 % 3000) for i in range(200)]


@pytest.fixture(params=["group_size:1,uncompressed", "group_size:1,zstd:3", "group_size:7,brotli:5", "group_size:64,snappy"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    module: Any = pytest.importorskip("array_record.python.array_record_module")
    path = tmp_path / "a.array_record"
    writer = module.ArrayRecordWriter(str(path), request.param)
    for record in RECORDS:
        writer.write(record)
    writer.close()
    return path


def test_array_record_yields_bytes(written: Path) -> None:
    ds = gm.MapDataset.array_record(str(written))
    assert len(ds) == len(RECORDS)
    assert ds[3] == RECORDS[3] and isinstance(ds[3], bytes)
    assert list(ds) == RECORDS


def test_array_record_order_does_not_depend_on_who_reads(written: Path) -> None:
    ds = gm.MapDataset.array_record(str(written)).shuffle(seed=3)
    inline = list(ds.to_iter_dataset())
    assert sorted(inline) == sorted(RECORDS) and inline != RECORDS
    with ds.to_iter_dataset().loader(threads=2) as loader:
        assert list(loader) == inline
    with ds.map(len).to_iter_dataset().mp_prefetch(num_workers=1).loader() as loader:
        assert list(loader) == [len(record) for record in inline]


def test_array_record_with_a_field_takes_native_stages(written: Path) -> None:
    ds = gm.MapDataset.array_record(str(written), field="image")
    assert ds[5] == {"image": RECORDS[5]}
    assert ds.rename({"image": "x"})[5] == {"x": RECORDS[5]}


def test_damage_names_file_and_record(written: Path) -> None:
    damaged = bytearray(written.read_bytes())
    damaged[70] ^= 1
    written.write_bytes(damaged)
    with pytest.raises(gm.DataError, match="a.array_record: record [0-9]+: byte 64: "):
        list(gm.MapDataset.array_record(written))
