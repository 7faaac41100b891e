"""Shards written in the background."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm


def read(folder: Path) -> list[dict[str, Any]]:
    return [dict(e) for e in gm.MapDataset.jsonl(str(folder))]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def element(i: int) -> dict[str, Any]:
    return {"i": i, "x": np.arange(i % 5, dtype=np.float64), "text": f"number {i}"}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with gm.sink(tmp_path / "a", "jsonl", shard_records=30, compression="none") as sink:
        for i in range(100):
            sink.write(element(i))
        assert sink.records == 100
        assert not sink.complete
    report = sink.finish()
    assert report.as_dict()["shards"] == 4
    assert report.as_dict()["wait_share"] >= 0
    assert "VERDICT" in str(report)
    back = read(tmp_path / "a")
    assert [e["text"] for e in back] == [f"number {i}" for i in range(100)]
    assert all(np.array_equal(e["x"], element(i)["x"]) for i, e in enumerate(back))
    with pytest.raises(gm.ConfigError, match="closed"):
        sink.write(element(0))


def test_rows_of_batches(tmp_path: Path) -> None:
    batch = {"x": np.arange(12, dtype=np.int32).reshape(3, 2, 2), "name": ["a", "b", "c"]}
    with gm.sink(tmp_path) as sink:
        sink.write_batch(batch)
    rows = [json.loads(line) for line in (tmp_path / "shard-00000.jsonl").read_text().splitlines()]
    assert rows[2] == {"x": [[8, 9], [10, 11]], "name": "c"}


def test_what_may_still_change_is_copied(tmp_path: Path) -> None:
    own = np.arange(1000)
    own.flags.writeable = False
    reused = np.zeros(3, np.int64)
    view = reused[:]
    view.flags.writeable = False
    kept = np.frombuffer(np.arange(1000).tobytes(), np.int64)
    with gm.sink(tmp_path, threads=1) as sink:
        for step in range(50):
            reused[:] = step
            sink.write({"reused": reused, "view": view, "own": own[step : step + 2], "kept": kept[step : step + 2]})
            sink.write({"reused": reused, "view": view, "own": own.reshape(10, 100).T[step, :2], "kept": kept[:2]})
        # The memory of an array ends with either.
        own.resize(3, refcheck=False)
        del own, kept
    for at, row in enumerate(read(tmp_path)):
        step = at // 2
        assert row["reused"].tolist() == row["view"].tolist() == [step] * 3
        assert row["own"].tolist() == ([step, 100 + step] if at % 2 else [step, step + 1])
        assert row["kept"].tolist() == ([0, 1] if at % 2 else [step, step + 1])


@pytest.mark.parametrize("change", ["resize", "set"])
def test_an_array_that_loses_its_memory_is_written_as_it_was(tmp_path: Path, change: str) -> None:
    array = np.arange(1 << 16)
    array.flags.writeable = False
    with gm.sink(tmp_path) as sink:
        sink.write({"x": array})
        if change == "resize":
            array.resize(10, refcheck=False)
        else:
            array.__setstate__(np.zeros(3).__reduce__()[2])
    assert np.array_equal(read(tmp_path)[0]["x"], np.arange(1 << 16))


def test_a_job_goes_on_where_the_folder_ends(tmp_path: Path) -> None:
    def job(folder: Path, stop: int, n: int = 300) -> None:
        with gm.sink(folder, shard_records=25, resume=True) as sink:
            assert sink.state == (None if sink.records == 0 else {"next": sink.records})
            for i in range(sink.records, n):
                if i - sink.records > stop or i == stop:
                    raise KeyboardInterrupt
                sink.write(element(i), state=lambda i=i: {"next": i + 1})

    job(tmp_path / "whole", 1000)
    for stop in (10, 77, 201):
        with pytest.raises(KeyboardInterrupt):
            job(tmp_path / "stopped", stop)
    job(tmp_path / "stopped", 1000)
    whole, stopped = files(tmp_path / "whole"), files(tmp_path / "stopped")
    assert whole == stopped
    with gm.sink(tmp_path / "whole", shard_records=25, resume=True) as sink:
        assert sink.complete
        assert sink.records == 300


def test_a_pipeline_goes_on_where_the_folder_ends(tmp_path: Path) -> None:
    numbers = gm.MapDataset.range(500).shuffle(seed=3).map(lambda i: element(int(i)))

    def run(folder: Path, stop: int | None) -> None:
        with numbers.to_iter_dataset().loader(threads=2) as elements, gm.sink(folder, shard_records=40, resume=True) as sink:
            if stop is None:
                sink.write_all(elements)
                return
            sink.write_all(Stops(elements, stop))

    class Stops:
        def __init__(self, elements: Any, after: int) -> None:
            self.elements, self.after = elements, after
            self.get_state, self.set_state = elements.get_state, elements.set_state

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            self.after -= 1
            if self.after < 0:
                raise KeyboardInterrupt
            return next(self.elements)

    run(tmp_path / "whole", None)
    for stop in (10, 90, 170):
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "stopped", stop)
    run(tmp_path / "stopped", None)
    assert files(tmp_path / "whole") == files(tmp_path / "stopped")
    with gm.sink(tmp_path / "plain", shard_records=2) as sink:
        sink.write_all(element(i) for i in range(4))
        sink.stop()
    with (
        gm.sink(tmp_path / "plain", shard_records=2, resume=True) as sink,
        pytest.raises(ValueError, match="their end among these elements is unknown"),
    ):
        sink.write_all(element(i) for i in range(6))


def test_errors_are_those_of_the_package(tmp_path: Path) -> None:
    with pytest.raises(gm.ConfigError, match="is not a format that can be written"):
        gm.sink(tmp_path, "xml")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="has no compression snappy"):
        gm.sink(tmp_path, compression="snappy")
    with pytest.raises(gm.DataError, match="record 1"), gm.sink(tmp_path / "a") as sink:
        sink.write({"x": 1.0})
        sink.write({"x": float("nan")})
        sink.finish()
    with pytest.raises(gm.ConfigError, match="resume"):
        with gm.sink(tmp_path / "b") as sink:
            sink.write({"x": 1})
        gm.sink(tmp_path / "b")


def test_pyarrow_reads_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    feather = pytest.importorskip("pyarrow.feather")
    rows = [{"i": i, "x": np.full((2, 3), i / 7, np.float32), "text": f"number {i}"} for i in range(100)]
    for format, read in [("parquet", parquet.read_table), ("arrow", feather.read_table)]:
        with gm.sink(tmp_path / format, format, shard_records=40, compression="zstd:1", byte_stream_split=True) as sink:
            for row in rows:
                sink.write(row)
        shards = sorted((tmp_path / format).glob("shard-*"))
        assert len(shards) == 3
        read_rows = [row for shard in shards for row in read(shard).to_pylist()]
        assert [row["text"] for row in read_rows] == [row["text"] for row in rows]
        assert all(np.array_equal(np.array(a["x"], np.float32), b["x"]) for a, b in zip(read_rows, rows, strict=True))


RECORDS = [bytes([i]) * i for i in range(100)]


def written(folder: Path, format: Any) -> list[str]:
    with gm.sink(folder, format, shard_records=40) as sink:
        for record in RECORDS:
            sink.write({"record": record})
    return [str(path) for path in sorted(folder.glob("shard-*"))]


def test_array_record_reads_records(tmp_path: Path) -> None:
    module: Any = pytest.importorskip("array_record.python.array_record_module")
    readers = [module.ArrayRecordReader(path) for path in written(tmp_path, "array_record")]
    assert [record for reader in readers for record in reader.read_all()] == RECORDS


def test_tfrecord_reads_records(tmp_path: Path) -> None:
    reader: Any = pytest.importorskip("tfrecord.reader")
    assert [bytes(r) for path in written(tmp_path, "tfrecord") for r in reader.tfrecord_iterator(path)] == RECORDS


def test_sequences_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [{"id": i, "frames": [f"{i} {j}".encode() for j in range(i)], "ids": np.arange(2 * i).reshape(i, 2)} for i in range(4)]
    with gm.sink(tmp_path / "a", "tfrecord", sequences=["frames", "ids"]) as sink:
        sink.write_all(rows)
    read = list(gm.MapDataset.tfrecord(tmp_path / "a", sequence_examples=True))
    assert [row["id"].tolist() for row in read] == [[i] for i in range(4)]
    assert [[bytes(step) for step in row["frames"]] for row in read] == [row["frames"] for row in rows]
    assert all(np.array_equal(np.stack(row["ids"]), rows[i]["ids"]) for i, row in enumerate(read) if i > 0)
    with pytest.raises(gm.ConfigError, match="jsonl has no sequences"):
        gm.sink(tmp_path / "b", "jsonl", sequences=["frames"])


def test_hugging_face_loads_the_folder(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    with gm.sink(tmp_path / "set", "hugging_face", shard_records=30) as sink:
        for i in range(100):
            sink.write({"i": i, "text": f"number {i}"})
    loaded = datasets.load_from_disk(str(tmp_path / "set"))
    assert (len(loaded), loaded[99]) == (100, {"i": 99, "text": "number 99"})


def test_all_shards_have_the_same_columns(tmp_path: Path) -> None:
    papers = [{"score": None if i < 5 else i / 2, "i": i} for i in range(3000)]
    for format in ["parquet", "arrow"]:
        with gm.sink(tmp_path / format, format, shard_records=2, compression="none") as sink:
            for paper in papers[:20]:
                sink.write(paper)
        manifest = json.loads((tmp_path / format / "manifest.json").read_text())
        assert manifest["schema"] == [{"name": "score", "type": "float64"}, {"name": "i", "type": "int64"}]
    with pytest.raises(gm.DataError, match="record 2000: column score: a number of int64") as error:
        with gm.sink(tmp_path / "wrong", "parquet", shard_records=1000) as sink:
            for i, paper in enumerate(papers):
                sink.write({**paper, "score": 7} if i == 2000 else paper)
    assert "schema" in str(error.value) or any("schema" in note for note in getattr(error.value, "__notes__", []))
    with gm.sink(tmp_path / "declared", "parquet", shard_records=1000, schema={"score": "float32"}) as sink:
        for i, paper in enumerate(papers):
            sink.write({**paper, "score": 7} if i == 2000 else paper)
    back = gm.MapDataset.parquet(str(tmp_path / "declared"))
    assert back[2000]["score"] == 7
    assert back[2001]["score"].dtype == np.float32
    with pytest.raises(gm.ConfigError, match="is no type of the format"):
        gm.sink(tmp_path / "x", "parquet", schema={"score": "number"})
    with pytest.raises(gm.ConfigError, match="has no columns whose types are declared"):
        gm.sink(tmp_path / "y", "jsonl", schema={"score": "float64"})


def test_hugging_face_restores_the_features(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows: list[dict[str, Any]] = [
        {
            "z": np.int32(i),
            "ids": np.arange(i % 3, dtype=np.int64),
            "grid": np.full((2, 3), i, np.float32),
            "names": ["a"] * (i % 2),
            "deep": [{"b": b"x", "k": 1.5}],
            "tree": {"y": "text", "a": True},
            "late": None if i < 50 else "now",
        }
        for i in range(100)
    ]
    with gm.sink(tmp_path / "set", "hugging_face", shard_records=30) as sink:
        for row in rows:
            sink.write(row)
    info = json.loads((tmp_path / "set" / "dataset_info.json").read_text())
    loaded = datasets.load_from_disk(str(tmp_path / "set"))
    assert loaded.features == datasets.Features.from_dict(info["features"])
    assert list(loaded.features) == list(rows[0])
    assert str(loaded.features["z"].dtype) == "int32"
    assert str(loaded.features["late"].dtype) == "string"
    assert loaded.features.arrow_schema.types == loaded.data.schema.types
    last = loaded[99]
    assert (last["z"], last["grid"], last["deep"], last["tree"]) == (
        99,
        [[99.0] * 3] * 2,
        [{"b": b"x", "k": 1.5}],
        {"y": "text", "a": True},
    )
    datasets.DatasetDict(train=loaded, test=loaded.select(range(7))).save_to_disk(str(tmp_path / "splits"))
    assert len(gm.MapDataset.arrow(tmp_path / "splits" / "test")) == 7
    with pytest.raises(gm.ConfigError, match="the splits of one") as error:
        gm.MapDataset.arrow(tmp_path / "splits")
    told = str(error.value) + "".join(getattr(error.value, "__notes__", []))
    assert str(tmp_path / "splits" / "train") in told


def test_lz4_is_read_and_written_as_others_do(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with gm.sink(tmp_path / "a", "jsonl", compression="lz4") as sink:
        for i in range(1000):
            sink.write({"i": i})
    with pa.input_stream(str(tmp_path / "a" / "shard-00000.jsonl.lz4"), compression="lz4") as stream:
        text = stream.read()
    assert [json.loads(line)["i"] for line in text.splitlines()] == list(range(1000))
    with pa.output_stream(str(tmp_path / "b.jsonl.lz4"), compression="lz4") as stream:
        stream.write(text)
    assert [element["i"] for element in gm.IterDataset.jsonl(str(tmp_path / "b.jsonl.lz4"))] == list(range(1000))
