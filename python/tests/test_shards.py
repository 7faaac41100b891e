"""Data sets of shards, held against the readers and writers of those who made the formats."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


SAMPLES: list[dict[str, Any]] = [
    {
        "__key__": f"a/{i:04}",
        "cls": i,
        "json": {"id": i, "words": ["oat"] * (i % 3)},
        "npy": np.arange(i, dtype=np.float32),
        "txt": "rye " * i,
    }
    for i in range(20)
]


def encoded(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample as it lies in a shard."""
    return {
        "__key__": sample["__key__"],
        "cls": str(sample["cls"]).encode(),
        "json": json.dumps(sample["json"]).encode(),
        "npy": npy(sample["npy"]),
        "txt": sample["txt"].encode(),
    }


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """As the standard library writes one."""
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for sample in map(encoded, SAMPLES):
            for name in ["cls", "json", "npy", "txt"]:
                info = tarfile.TarInfo(f"{sample['__key__']}.{name}")
                info.size = len(sample[name])
                tar.addfile(info, io.BytesIO(sample[name]))
    return path


def equal(read: dict[str, Any], sample: dict[str, Any]) -> bool:
    assert list(read) == list(sample)
    assert [list(word) for word in read["json"].items()] != [] and read["json"]["id"] == sample["json"]["id"]
    return bool(
        read["txt"] == sample["txt"]
        and read["cls"] == sample["cls"]
        and read["npy"].dtype == np.float32
        and np.array_equal(read["npy"], sample["npy"])
    )


def test_webdataset_yields_bytes_or_what_they_hold(shard: Path) -> None:
    ds = gm.MapDataset.webdataset(shard)
    assert len(ds) == 20
    assert ds[3] == encoded(SAMPLES[3])
    decoded = gm.MapDataset.webdataset(shard, decode=True)
    assert all(equal(read, sample) for read, sample in zip(decoded, SAMPLES, strict=True))
    some = gm.MapDataset.webdataset([str(shard)], columns=["txt", "__url__"], url=True)
    assert some[2] == {"txt": b"rye rye ", "__url__": str(shard)}


def test_compressed_shards_are_streams(shard: Path) -> None:
    import gzip

    packed = shard.with_name("a.tar.gz")
    packed.write_bytes(gzip.compress(shard.read_bytes()))
    ds = gm.IterDataset.webdataset(packed)
    assert list(ds) == [encoded(sample) for sample in SAMPLES]
    with ds.loader() as loader:
        first = [next(loader) for _ in range(7)]
        state = loader.get_state()
    with ds.loader() as loader:
        loader.set_state(state)
        assert first + list(loader) == list(ds)
    with pytest.raises(gm.ConfigError, match="no random access"):
        gm.MapDataset.webdataset(packed)


def test_what_webdataset_writes_is_what_it_reads(tmp_path: Path) -> None:
    wds: Any = pytest.importorskip("webdataset")
    path = tmp_path / "b.tar"
    with wds.TarWriter(str(path)) as writer:
        for sample in SAMPLES:
            writer.write(sample)
    theirs = list(wds.WebDataset(str(path), shardshuffle=False))
    ours = list(gm.MapDataset.webdataset(path, url=True))
    assert [{**sample, "__url__": str(path)} for sample in ours] == [
        {name: value for name, value in sample.items() if name != "__local_path__"} for sample in theirs
    ]
    decoded = gm.MapDataset.webdataset(path, decode=True)
    assert all(equal(read, sample) for read, sample in zip(decoded, SAMPLES, strict=True))


def test_images_are_arrays(tmp_path: Path) -> None:
    image: Any = pytest.importorskip("PIL.Image")
    pixels = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    out = io.BytesIO()
    image.fromarray(pixels).save(out, format="PNG")
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("x.png")
        info.size = len(out.getvalue())
        tar.addfile(info, io.BytesIO(out.getvalue()))
    assert np.array_equal(gm.MapDataset.webdataset(path, decode=True)[0]["png"], pixels)


def test_a_cut_shard_is_an_error(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:5000])
    with pytest.raises(gm.DataError, match="a.tar: record [0-9]+: byte [0-9]+: "):
        gm.MapDataset.webdataset(shard)
    with pytest.raises(gm.DataError, match="a.tar: record [0-9]+: byte [0-9]+: "):
        list(gm.IterDataset.webdataset(shard))


COLUMNS = {"id": "int", "text": "str", "raw": "bytes", "numbers": "ndarray", "more": "json"}


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "text": "oat " * (i % 9),
            "raw": bytes([i % 251]) * (i % 40),
            "numbers": np.arange(1 + i % 5, dtype=np.int16).reshape(1, -1),
            "more": {"flag": i % 2 == 0, "none": None},
        }
        for i in range(count)
    ]


def assert_rows(read: Any, written: list[dict[str, Any]]) -> None:
    assert len(read) == len(written)
    for ours, theirs in zip(read, written, strict=True):
        assert ours["id"] == theirs["id"] and ours["text"] == theirs["text"] and ours["raw"] == theirs["raw"]
        assert np.array_equal(ours["numbers"], theirs["numbers"]) and ours["numbers"].dtype == np.int16
        assert bool(ours["more"]["flag"]) == theirs["more"]["flag"] and ours["more"]["none"] is None


@pytest.mark.parametrize("compression", [None, "zstd:3", "gz", "bz2", "br", "snappy"])
def test_what_streaming_writes_is_read(tmp_path: Path, compression: str | None) -> None:
    streaming: Any = pytest.importorskip("streaming")
    folder = tmp_path / "mds"
    options = dict(compression=compression, hashes=["sha1", "xxh3_64"], size_limit=4096)
    with streaming.MDSWriter(out=str(folder), columns=COLUMNS, **options) as writer:
        for row in rows(300):
            writer.write(row)
    ds = gm.MapDataset.mds(folder, check_hashes=True)
    assert_rows(ds, rows(300))
    shuffled = ds.shuffle(seed=1)
    assert sorted(row["id"] for row in shuffled) == list(range(300))
    assert gm.MapDataset.mds([folder, folder / "index.json"], columns=["text"])[7] == {"text": rows(8)[7]["text"]}


def test_webdataset_reads_what_a_sink_writes(tmp_path: Path) -> None:
    wds: Any = pytest.importorskip("webdataset")
    long = "folder/" * 30
    samples = [{**sample, "__key__": long + sample["__key__"]} for sample in SAMPLES]
    with gm.sink(tmp_path, "webdataset", shard_records=7, compression="none") as sink:
        sink.write_all(samples)
    paths = [str(path) for path in sorted(tmp_path.glob("*.tar"))]
    theirs = list(wds.WebDataset(paths, shardshuffle=False).decode())
    assert len(paths) == 3 and [sample["__key__"] for sample in theirs] == [sample["__key__"] for sample in samples]
    for read, sample in zip(theirs, samples, strict=True):
        assert (read["cls"], read["json"], read["txt"]) == (sample["cls"], sample["json"], sample["txt"])
        assert np.array_equal(read["npy"], sample["npy"])


@pytest.mark.parametrize("compression", ["none", "zstd", "gzip", "brotli", "snappy"])
def test_streaming_reads_what_a_sink_writes(tmp_path: Path, compression: str) -> None:
    pytest.importorskip("streaming")
    formats: Any = pytest.importorskip("streaming.base.format")
    codecs: Any = pytest.importorskip("streaming.base.compression")
    with gm.sink(tmp_path, "mds", shard_records=70, compression=compression) as sink:
        sink.write_all(rows(200))
    read = []
    for shard in json.loads((tmp_path / "index.json").read_text())["shards"]:
        if shard["zip_data"]:
            packed = (tmp_path / shard["zip_data"]["basename"]).read_bytes()
            raw = codecs.decompress(shard["compression"], packed)
            (tmp_path / shard["raw_data"]["basename"]).write_bytes(raw)
        reader = formats.reader_from_json(str(tmp_path), "", shard)
        read += [reader[i] for i in range(len(reader))]
    assert_rows(read, rows(200))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_streaming_datasets_are_made_of_what_a_sink_writes(tmp_path: Path, compression: str) -> None:
    streaming: Any = pytest.importorskip("streaming")
    with gm.sink(tmp_path / "written", "mds", shard_records=70, compression=compression) as sink:
        sink.write_all(rows(200))
    # As from a store: shards are fetched, held against their sizes, and decompressed by it.
    ds = streaming.StreamingDataset(
        remote=str(tmp_path / "written"), local=str(tmp_path / "fetched"), batch_size=1, shuffle=False
    )
    assert_rows([ds[i] for i in range(len(ds))], rows(200))
