"""Files whose bytes lie as they are, held against the readers and writers of those who made the formats."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm

RECORDS = [bytes([i % 251]) * (i * 37 % 3000) for i in range(100)]


def bagz_file(path: Path, records: list[bytes], separate: bool = False) -> None:
    bagz: Any = pytest.importorskip("bagz")
    placement = bagz.LimitsPlacement.SEPARATE if separate else bagz.LimitsPlacement.TAIL
    with bagz.Writer(path, bagz.Writer.Options(limits_placement=placement)) as writer:
        for record in records:
            writer.write(record)


@pytest.mark.parametrize("name", ["a.bagz", "a.bag"])
@pytest.mark.parametrize("separate", [False, True])
def test_bagz_yields_what_was_written(name: str, separate: bool, tmp_path: Path) -> None:
    bagz_file(tmp_path / name, RECORDS, separate)
    ds = gm.MapDataset.bagz(tmp_path / name)
    assert list(ds) == RECORDS and isinstance(ds[3], bytes)
    assert gm.MapDataset.bagz(tmp_path, field="x")[5] == {"x": RECORDS[5]}
    assert sorted(ds.shuffle(seed=1)) == sorted(RECORDS)


@pytest.mark.parametrize("interleaved", [False, True])
def test_bagz_numbers_shards_as_its_own_reader_does(interleaved: bool, tmp_path: Path) -> None:
    bagz: Any = pytest.importorskip("bagz")
    for shard, records in enumerate([RECORDS[:34], RECORDS[34:67], RECORDS[67:]]):
        bagz_file(tmp_path / f"a-{shard:05}-of-00003.bagz", records)
    layout = bagz.ShardingLayout.INTERLEAVED if interleaved else bagz.ShardingLayout.CONCATENATED
    theirs = bagz.Reader(f"{tmp_path}/a@3.bagz", bagz.Reader.Options(sharding_layout=layout))
    for name in ["a@3.bagz", "a@*.bagz"]:
        assert list(gm.MapDataset.bagz(tmp_path / name, interleaved=interleaved)) == list(theirs)


def test_csv_is_read_as_pyarrow_reads_it(tmp_path: Path) -> None:
    csv: Any = pytest.importorskip("pyarrow.csv")
    text = 'id,score,"a name",ok\n1,0.5,"oat, or\n""rye""",true\n2,,wheat,false\n-3,1e3,,true\n'
    (tmp_path / "a.csv").write_text(text)
    options = csv.ParseOptions(newlines_in_values=True)
    theirs = csv.read_csv(tmp_path / "a.csv", parse_options=options).to_pylist()
    ours = list(gm.MapDataset.csv(tmp_path / "a.csv"))
    assert [{name: getattr(value, "item", lambda value=value: value)() for name, value in row.items()} for row in ours] == theirs


def test_csv_columns_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("1\tx\n2\tNA\n")
    ds = gm.MapDataset.csv(path, names=["n", "t"], types={"n": "uint8"}, nulls="NA", columns=["t", "n"])
    assert list(ds[1]) == ["t", "n"] and ds[1]["t"] is None and ds[1]["n"] == 2
    assert ds[0]["n"].dtype == np.uint8
    with pytest.raises(gm.DataError, match="line 2: byte 4: column 't'|line 2: byte 6: column \"t\""):
        gm.MapDataset.csv(path, names=["n", "t"], types={"t": "int8"})[1]
    with pytest.raises(gm.ConfigError, match="no type"):
        gm.MapDataset.csv(path, types={"t": "integer"})


def test_csv_streams_have_states(tmp_path: Path) -> None:
    rows = "".join(f'{i},"line\n{i}"\n' for i in range(10))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"n,t\n") + gzip.compress(rows.encode()))
    ds = gm.IterDataset.csv(tmp_path)
    first = iter(ds)
    assert [next(first)["t"] for _ in range(4)] == [f"line\n{i}" for i in range(4)]
    second = iter(ds)
    second.set_state(first.get_state())
    assert [int(row["n"]) for row in second] == list(range(4, 10))


def test_npy_files_follow_each_other(tmp_path: Path) -> None:
    whole = np.arange(24, dtype=np.float32).reshape(6, 2, 2)
    np.save(tmp_path / "a.npy", whole[:4])
    np.save(tmp_path / "b.npy", np.asfortranarray(whole[4:]))
    assert np.array_equal(np.stack([row["data"] for row in gm.MapDataset.npy(tmp_path)]), whole)
    assert gm.MapDataset.npy(path=tmp_path / "b.npy", field="x")[1]["x"].tolist() == whole[5].tolist()
    np.save(tmp_path / "c.npy", whole.astype(np.float64))
    with pytest.raises(gm.DataError, match="c.npy: byte 0: the array is float64"):
        gm.MapDataset.npy([tmp_path / "a.npy", tmp_path / "c.npy"])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_archives_are_elements_or_rows(save: Any, tmp_path: Path) -> None:
    arrays = {"x": np.arange(6, dtype=np.int16).reshape(3, 2), "y": np.array([True, False, True])}
    save(tmp_path / "a.npz", **arrays)
    save(tmp_path / "b.npz", **{name: array[1:] for name, array in arrays.items()})
    whole = gm.MapDataset.npz(tmp_path)
    assert len(whole) == 2 and all(np.array_equal(whole[0][name], array) for name, array in arrays.items())
    rows = gm.MapDataset.npz(tmp_path, rows=True)
    assert len(rows) == 5 and rows[3]["x"].tolist() == [2, 3] and not rows[3]["y"]


def test_safetensors_are_elements_or_rows(tmp_path: Path) -> None:
    numpy: Any = pytest.importorskip("safetensors.numpy")
    tensors = {"x": np.arange(6, dtype=np.int16).reshape(3, 2), "y": np.array([0.5, 1.5, 2.5], np.float16)}
    numpy.save_file(tensors, tmp_path / "a.safetensors", metadata={"of": "a test"})
    whole = gm.MapDataset.safetensors(tmp_path)[0]
    assert all(np.array_equal(whole[name], tensor) and whole[name].dtype == tensor.dtype for name, tensor in tensors.items())
    rows = gm.MapDataset.safetensors(tmp_path / "a.safetensors", rows=True, columns=["y"])
    assert [float(row["y"]) for row in rows] == [0.5, 1.5, 2.5]
    with pytest.raises(gm.DataError, match='no column "z"'):
        gm.MapDataset.safetensors(tmp_path, columns="z")


def test_megatron_is_read_as_its_own_reader_does(tmp_path: Path) -> None:
    lengths, ids = [3, 0, 4], np.arange(7, dtype=np.uint16)
    (tmp_path / "a.bin").write_bytes(ids.tobytes())
    starts = [0, 6, 6]
    head = b"MMIDIDX\0\0" + np.uint64(1).tobytes() + b"\x08" + np.array([3, 3], np.uint64).tobytes()
    lists: list[np.ndarray[Any, Any]] = [np.array(lengths, np.int32), np.array(starts, np.int64), np.array([0, 1, 3], np.int64)]
    (tmp_path / "a.idx").write_bytes(head + b"".join(numbers.tobytes() for numbers in lists))
    ds = gm.MapDataset.megatron(tmp_path / "a")
    assert [row["tokens"].tolist() for row in ds] == [[0, 1, 2], [], [3, 4, 5, 6]]
    assert ds[0]["tokens"].dtype == np.uint16
    assert len(gm.MapDataset.megatron(tmp_path / "a.bin", by="document")) == 2
    assert gm.MapDataset.crops(tmp_path / "a", seq_len=3)[1]["tokens"].tolist() == [3, 4, 5]
    with pytest.raises(gm.ConfigError, match="no file"):
        gm.MapDataset.megatron(tmp_path / "b")


def test_megatron_reads_and_writes_the_same_files(tmp_path: Path) -> None:
    module: Any = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    documents = [[1, 2, 3], [60_000], [4] * 700]
    with gm.sink(tmp_path / "ours", "megatron", shard_records=2, token_type="uint16") as sink:
        sink.write_all({"tokens": np.array(ids, np.int32)} for ids in documents)
    prefixes = sorted(str(path.with_suffix("")) for path in (tmp_path / "ours").glob("*.idx"))
    # Their arrays are views, which end with their dataset.
    datasets = [module.IndexedDataset(prefix) for prefix in prefixes]
    read = [dataset[i] for dataset in datasets for i in range(len(dataset))]
    assert [ids.tolist() for ids in read] == documents and read[1].dtype == np.uint16

    builder = module.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=np.int32)
    torch: Any = pytest.importorskip("torch")
    for ids in documents:
        builder.add_document(torch.tensor(ids), [1, len(ids) - 1])
    builder.finalize(str(tmp_path / "theirs.idx"))
    ds = gm.MapDataset.megatron(tmp_path / "theirs", by="document")
    assert [row["tokens"].tolist() for row in ds] == documents and ds[0]["tokens"].dtype == np.int32


def test_of_a_name_that_stands_twice_the_last_value_stands(tmp_path: Path) -> None:
    lines = ['{"a": 1, "b": [{"c": 0, "c": 1}], "a": 2}', '{"a": 3}', '{"b": 1, "a": 5, "b": 2}']
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_text("\n".join(lines))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for ds in (gm.MapDataset.jsonl(plain).to_iter_dataset(), gm.IterDataset.jsonl(packed)):
        with ds.loader() as loader:
            values = [int(record["a"]) for record in loader]
            notes = dict(loader.report().as_dict()["notes"])
        assert values == [json.loads(line)["a"] for line in lines]
        assert notes == {"records with a repeated name": 2}
    # Among the columns that are read.
    with gm.MapDataset.jsonl(plain, columns=["a"]).to_iter_dataset().loader() as loader:
        assert len(list(loader)) == 3
        assert dict(loader.report().as_dict()["notes"]) == {"records with a repeated name": 1}
    with pytest.raises(gm.DataError, match=r"line 1: .*the name \"c\" occurs twice"):
        gm.MapDataset.jsonl(plain, repeated_names="error")[0]
    for strict in (
        gm.MapDataset.jsonl(plain, repeated_names="error").to_iter(on_bad_record="skip"),
        gm.IterDataset.jsonl(packed, repeated_names="error").skip_bad_records(),
    ):
        assert [int(record["a"]) for record in strict] == [3]
    with pytest.raises(gm.ConfigError, match="`first` is none of last, error"):
        gm.MapDataset.jsonl(plain, repeated_names="first")  # type: ignore[arg-type]


def test_paths_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    name = tmp_path / "a\udcff.jsonl"
    name.write_text('{"x": 1}\n')
    for path in (name, str(name), [name]):
        with pytest.raises(ValueError, match=r"a\\udcff.jsonl' is not UTF-8"):
            gm.MapDataset.jsonl(path)
    with pytest.raises(gm.ConfigError, match="the name of the folder is not UTF-8"):
        gm.sink(tmp_path / "out\udcff")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'[{"x": 1}, {"x": 2}]', r"the source `json` reads files that hold an array"),
        (b'{\n  "x": 1\n}\n', r"jq -c \. FILE"),
        (b'{"x": NaN}\n', "NaN is no JSON.*write null"),
        (b'{"x": [1, -Infinity]}\n', "-?Infinity is no JSON"),
        (b"PAR1\x15\x04\x15", "is a Parquet file"),
        (b"\xfd7zXZ\x00\x00\x04", "is compressed with xz"),
        (b"BZh91AY&SY", "is compressed with bzip2"),
        ('{"x": 1}\n'.encode("utf-16"), "is text in UTF-16"),
    ],
)
def test_what_is_no_jsonl_says_what_it_is(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(gm.DataError) as error:
        list(gm.MapDataset.jsonl(tmp_path / "a.jsonl"))
    assert re.search(told, str(error.value)), error.value


def test_words_of_others_lead_to_ours() -> None:
    ds: Any = gm.MapDataset.range(3)
    with pytest.raises(AttributeError, match=r"tokenise\(column, tokenizer=…\)"):
        ds.tokenize
    with pytest.raises(TypeError, match=r"mp_prefetch\(num_workers=…\)"):
        ds.loader(num_workers=4)
    with pytest.raises(TypeError, match="buffer=…"):
        ds.loader(prefetch_factor=2)


def test_folders_of_shards_as_tfds_writes_them(tmp_path: Path) -> None:
    for shard in range(2):
        (tmp_path / f"my-train.jsonl-0000{shard}-of-00002").write_text(f'{{"x": {shard}}}\n')
    (tmp_path / "features.txt").write_text("no record")
    assert [row["x"] for row in gm.MapDataset.jsonl(tmp_path)] == [0, 1]


def test_a_folder_of_folders_is_walked(tmp_path: Path) -> None:
    for name in ["date=1/hour=2/a.jsonl", "date=1/_tmp/b.jsonl"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"x": 1}\n')
    assert [row["x"] for row in gm.MapDataset.jsonl(tmp_path)] == [1]
    with pytest.raises(OSError, match="no file in this directory ends with .npy"):
        gm.MapDataset.npy(tmp_path)

