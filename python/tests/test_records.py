"""Files of records of bytes, held against the readers and writers of those who made the formats."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import framed

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


@pytest.mark.parametrize("compression", ["none", "zstd:3", "brotli:5", "snappy"])
@pytest.mark.parametrize("group", [1, 7, 1000])
def test_the_official_reader_reads_what_is_written(tmp_path: Path, compression: str, group: int) -> None:
    module: Any = pytest.importorskip("array_record.python.array_record_module")
    lengths = [0, 1, 300_000] + [i * 37 % 3000 for i in range(500)]
    records = [bytes([i % 251]) * length for i, length in enumerate(lengths)]
    with gm.sink(tmp_path, "array_record", compression=compression, group=group) as sink:
        for record in records:
            sink.write({"record": record})
    (path,) = tmp_path.glob("*.array_record")
    reader = module.ArrayRecordReader(str(path))
    assert reader.num_records() == len(records)
    assert reader.read_all() == records
    assert f"group_size:{group}," in reader.writer_options_string()


def test_the_official_reader_reads_many_records(tmp_path: Path) -> None:
    module: Any = pytest.importorskip("array_record.python.array_record_module")
    with gm.sink(tmp_path, "array_record", group=10) as sink:
        for i in range(70_000):
            sink.write({"record": b"%d" % i})
    (path,) = tmp_path.glob("*.array_record")
    reader = module.ArrayRecordReader(str(path))
    assert reader.num_records() == 70_000 and reader.read([69_999, 0, 12_345]) == [b"69999", b"0", b"12345"]


@pytest.mark.parametrize("options", ["group_size:16,transpose:true,uncompressed", "group_size:64,transpose,zstd:3"])
def test_transposed_chunks_are_read(tmp_path: Path, options: str) -> None:
    module: Any = pytest.importorskip("array_record.python.array_record_module")
    # Messages, which are taken apart, and bytes that are none.
    records = [b"\x08%c\x12\x03oat" % (i % 100) for i in range(100)] + RECORDS
    writer = module.ArrayRecordWriter(str(tmp_path / "a.array_record"), options)
    for record in records:
        writer.write(record)
    writer.close()
    assert list(gm.MapDataset.array_record(tmp_path)) == records


def test_a_cut_file_is_recovered_where_that_is_asked_for(written: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole[: len(whole) // 2 - 7])
    with pytest.raises(gm.DataError, match="multiple of 65536"):
        gm.MapDataset.array_record(written)
    found = list(gm.MapDataset.array_record(written, recover=True))
    assert any("chunks were found without the index" in record.getMessage() for record in caplog.records)
    assert found and found == RECORDS[: len(found)]


def test_damage_names_file_and_record(written: Path) -> None:
    damaged = bytearray(written.read_bytes())
    damaged[70] ^= 1
    written.write_bytes(damaged)
    with pytest.raises(gm.DataError, match="a.array_record: record [0-9]+: byte 64: "):
        list(gm.MapDataset.array_record(written))


def test_tfrecord_yields_bytes_by_number_and_in_order(tmp_path: Path) -> None:
    records = [bytes([i]) * (5 * i) for i in range(40)]
    content = b"".join(map(framed, records))
    plain, packed = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    ds = gm.MapDataset.tfrecord(plain)
    assert ds[7] == records[7] and isinstance(ds[7], bytes)
    assert sorted(ds.shuffle(seed=1)) == sorted(records)
    assert list(gm.IterDataset.tfrecord([plain, packed])) == records + records
    assert next(iter(gm.IterDataset.tfrecord(packed, field="x"))) == {"x": b""}
    with pytest.raises(gm.Error, match="compressed with gzip|a stream"):
        gm.MapDataset.tfrecord(packed)


def test_tfrecord_stream_goes_on_from_a_state(tmp_path: Path) -> None:
    records = [bytes([i]) * 3 for i in range(9)]
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(b"".join(map(framed, records))))
    ds = gm.IterDataset.tfrecord(tmp_path)
    first = iter(ds)
    assert [next(first) for _ in range(4)] == records[:4]
    second = iter(ds)
    second.set_state(first.get_state())
    assert list(second) == records[4:]


def example(features: dict[str, Any]) -> bytes:
    """A `tf.train.Example`, by the package `tfrecord`."""
    module: Any = pytest.importorskip("tfrecord.writer")
    record: bytes = module.TFRecordWriter.serialize_tf_example(features)
    return record


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    rows = [
        example({"id": (i, "int"), "text": (f"row {i}".encode(), "byte"), "x": ([float(j) for j in range(i)], "float")})
        for i in range(5)
    ]
    path.write_bytes(b"".join(map(framed, rows)))
    return path


def test_examples_are_inferred(examples: Path) -> None:
    ds = gm.MapDataset.tfrecord(examples, examples=True)
    element = ds[3]
    assert list(element) == ["id", "text", "x"] and element["text"] == b"row 3"
    assert element["id"].dtype == np.int64 and element["id"].tolist() == [3]
    assert element["x"].dtype == np.float32 and element["x"].tolist() == [0.0, 1.0, 2.0]
    packed = examples.with_suffix(".tfrecord.gz")
    packed.write_bytes(gzip.compress(examples.read_bytes()))
    assert [int(e["id"][0]) for e in gm.IterDataset.tfrecord(packed, examples=True)] == [0, 1, 2, 3, 4]
    assert isinstance(gm.MapDataset.tfrecord(examples, examples=False)[0], bytes)


def test_examples_are_declared(examples: Path) -> None:
    features: Any = {"id": {"dtype": "int64", "shape": []}, "text": {"dtype": "str", "shape": []}, "x": "float32"}
    declared = gm.MapDataset.tfrecord(examples, examples=features)
    parsed = gm.MapDataset.tfrecord(examples).parse_example(features)
    streamed = gm.IterDataset.tfrecord(examples).parse_example(features)
    for ds in (declared, parsed, streamed):
        rows = list(ds)
        assert [row["text"] for row in rows] == [f"row {i}" for i in range(5)]
        assert [row["id"].shape for row in rows] == [()] * 5 and [len(row["x"]) for row in rows] == list(range(5))
    named = gm.MapDataset.tfrecord(examples, field="raw").parse_example({"id": "int64"}, column="raw")
    assert named[2]["id"].tolist() == [2]
    three: Any = {"x": {"dtype": "float32", "shape": [3]}}
    ds = gm.MapDataset.tfrecord(examples, examples=three)
    assert ds[3]["x"].shape == (3,)
    with pytest.raises(gm.DataError, match=r'a.tfrecord: record 2: feature "x": 2 values, where float32\[3\] needs 3'):
        ds[2]
    zero: Any = {"y": {"dtype": "int64", "shape": [2], "default": 7}}
    assert gm.MapDataset.tfrecord(examples, examples=zero)[0]["y"].tolist() == [7, 7]
    with pytest.raises(gm.ConfigError, match="int32"):
        gm.MapDataset.tfrecord(examples, examples={"id": "int32"})  # type: ignore[dict-item]


def test_sequence_examples(tmp_path: Path) -> None:
    module: Any = pytest.importorskip("tfrecord.writer")
    context = {"id": (7, "int")}
    steps = {"ids": ([[1, 2], [3, 4], [5, 6]], "int")}
    record = module.TFRecordWriter.serialize_tf_sequence_example(context, steps)
    (tmp_path / "a.tfrecord").write_bytes(framed(record))
    inferred = gm.MapDataset.tfrecord(tmp_path, sequence_examples=True)[0]
    assert inferred["id"].tolist() == [7] and [step.tolist() for step in inferred["ids"]] == [[1, 2], [3, 4], [5, 6]]
    sequences: Any = {"ids": {"dtype": "int64", "shape": [2]}}
    ds = gm.MapDataset.tfrecord(tmp_path)
    assert ds.parse_sequence_example(sequences=sequences)[0]["ids"].shape == (3, 2)


@pytest.mark.parametrize("compression", ["none", "gzip:6"])
def test_another_reader_reads_tfrecords_and_examples(tmp_path: Path, compression: str) -> None:
    package: Any = pytest.importorskip("tfrecord")
    rows = [{"ids": np.arange(i, dtype=np.int64), "x": np.float32([i, -i]), "text": f"row {i}"} for i in range(50)]
    with gm.sink(tmp_path, "tfrecord", compression=compression) as sink:
        for row in rows:
            sink.write(row)
    (path,) = tmp_path.glob("*.tfrecord*")
    kind = None if compression == "none" else "gzip"
    loader = package.reader.tfrecord_loader(str(path), None, compression_type=kind)
    for row, read in zip(rows, loader, strict=True):
        assert bytes(read["text"]).decode() == row["text"] and np.array_equal(read["x"], row["x"])
        assert np.array_equal(np.atleast_1d(read["ids"]) if row["ids"].size else [], row["ids"])
    assert [e["text"] for e in gm.IterDataset.tfrecord(path, examples={"text": {"dtype": "str", "shape": []}})] == [
        row["text"] for row in rows
    ]


TENSORFLOW = """
import sys
import tensorflow as tf
def ints(*values): return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
def texts(*values): return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
steps = {
    "ids": tf.train.FeatureList(feature=[ints(1, 2), ints(3, 4)]),
    "words": tf.train.FeatureList(feature=[texts(b"oat"), texts(b"rye")]),
}
sequence = tf.train.SequenceExample(
    context=tf.train.Features(feature={"id": ints(7)}), feature_lists=tf.train.FeatureLists(feature_list=steps)
)
for name, compression in [("plain.tfrecord", ""), ("gzip.tfrecord.gz", "GZIP")]:
    with tf.io.TFRecordWriter(sys.argv[1] + "/" + name, compression) as writer:
        for _ in range(3):
            writer.write(sequence.SerializeToString())
"""


def test_what_tensorflow_writes_is_read(tmp_path: Path) -> None:
    # In a process of its own: it and `tfrecord` register messages of the same names.
    python = os.environ.get("GRISTMILL_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import tensorflow"], capture_output=True, timeout=300, check=False).returncode:
        pytest.skip("tensorflow is not installed: pip install tensorflow-cpu")
    subprocess.run([python, "-c", TENSORFLOW, str(tmp_path)], check=True)
    declared: Any = {"ids": {"dtype": "int64", "shape": [2]}, "words": {"dtype": "str", "shape": []}}
    plain = gm.MapDataset.tfrecord(tmp_path / "plain.tfrecord")
    ds = plain.parse_sequence_example(sequences=declared)
    assert len(ds) == 3 and ds[2]["ids"].tolist() == [[1, 2], [3, 4]] and list(ds[2]["words"]) == ["oat", "rye"]
    assert list(gm.IterDataset.tfrecord(tmp_path / "gzip.tfrecord.gz")) == list(plain)
