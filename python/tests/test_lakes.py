"""Files of several tools and times as one data set: columns by name and types that hold all, held against pyarrow."""

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from formats import plain

import gristmill as gm

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install pyarrow")

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def write(path: Path, table: Any) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


def shards(folder: Path, ending: str, *arrays: Any) -> list[Path]:
    return [write(folder / f"{at}.{ending}", pa.table({"x": array})) for at, array in enumerate(arrays)]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_numbers_are_widened_as_pyarrow_widens_them(tmp_path: Path, ending: str) -> None:
    source = getattr(gm.MapDataset, ending)
    for a in INTS + FLOATS:
        for b in INTS + FLOATS:
            files = shards(tmp_path, ending, pa.array([1, None, 2], a), pa.array([3], b))
            schemas = [pa.schema({"x": a}), pa.schema({"x": b})]
            both = pa.unify_schemas(schemas, promote_options="permissive").field("x").type.to_pandas_dtype()
            rows = list(source(files))
            assert [row["x"] for row in rows] == [1, None, 2, 3]
            assert {row["x"].dtype for row in rows if row["x"] is not None} == {both().dtype}, (a, b)


def test_columns_go_by_name_and_missing_ones_are_null(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", pa.table({"id": [1], "text": ["a"]}))
    write(tmp_path / "b.parquet", pa.table({"text": ["b"], "lang": ["en"], "id": pa.array([2], "int32")}))
    ds = gm.MapDataset.parquet(tmp_path)
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in "ab"]
    assert plain(list(ds)) == pa.concat_tables(tables, promote_options="permissive").to_pylist()
    assert plain(list(gm.MapDataset.parquet(tmp_path, columns=["lang", "text"]))) == [
        {"lang": None, "text": "a"},
        {"lang": "en", "text": "b"},
    ]
    (batch,) = ds.to_iter_dataset().batch(2)
    assert plain(batch) == {"id": [1, 2], "text": ["a", "b"], "lang": [None, "en"]}
    with pytest.raises(gm.ConfigError, match="no column `langs`; there are id, text, lang"):
        gm.MapDataset.parquet(tmp_path, columns=["langs"])


def test_a_column_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    intervals = pa.array([pa.scalar((1, 2, 3), pa.month_day_nano_interval())])
    for at, name in enumerate(["a.arrow", "b.arrow"]):
        write(tmp_path / name, pa.table({"iv": intervals, "id": [at]}))
    assert plain(list(gm.MapDataset.arrow(tmp_path, columns=["id"]))) == [{"id": 0}, {"id": 1}]
    with pytest.raises(gm.UnsupportedError, match='a.arrow: column "iv" is of type Interval'):
        gm.MapDataset.arrow(tmp_path)


def test_types_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    files = shards(tmp_path, "parquet", pa.array([1]), pa.array(["a"]))
    with pytest.raises(gm.DataError, match=r"1\.parquet: column \"x\" is of type Utf8, in .*0\.parquet it is Int64") as caught:
        gm.MapDataset.parquet(files)
    assert any("choose the other columns" in note for note in caught.value.__notes__)
    # Zones give instants, times without a zone do not.
    files = shards(tmp_path, "parquet", pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC")))
    with pytest.raises(gm.DataError, match="Timestamp"):
        gm.MapDataset.parquet(files)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_folders_give_columns(tmp_path: Path, ending: str) -> None:
    source = getattr(gm.MapDataset, ending)
    lake = tmp_path / "year=1999" / "lake"
    for date, part, rows in [("2024-01-01", "1", [1, 2]), ("2024-01-02", "10", [3]), ("2024-01-02", "__HIVE_DEFAULT_PARTITION__", [4])]:
        folder = lake / f"date={date}" / f"part={part}"
        folder.mkdir(parents=True)
        # A column that a folder gives is not read of the file.
        write(folder / f"0.{ending}", pa.table({"part": ["?"] * len(rows), "id": rows}))
    (lake / "_SUCCESS").touch()
    (lake / "_temporary").mkdir()
    write(lake / "_temporary" / f"0.{ending}", pa.table({"id": [9]}))
    rows = [
        {"id": 1, "date": "2024-01-01", "part": 1},
        {"id": 2, "date": "2024-01-01", "part": 1},
        {"id": 3, "date": "2024-01-02", "part": 10},
        {"id": 4, "date": "2024-01-02", "part": None},
    ]
    assert plain(list(source(lake))) == rows
    assert plain(list(source(lake, columns=["part", "id"]))) == [{"part": row["part"], "id": row["id"]} for row in rows]
    assert plain(list(source(lake, columns=["date"])))[2:] == [{"date": "2024-01-02"}] * 2
    assert plain(list(source(lake, hive_partitioning=True)))[0] == {"id": 1, "year": 1999, "date": "2024-01-01", "part": 1}
    assert plain(list(source(lake, hive_partitioning=False)))[0] == {"part": "?", "id": 1}
    # Names of files and globs mean the files alone.
    files = f"{lake}/date=*/*/*.{ending}"
    assert plain(list(source(files)))[0] == {"part": "?", "id": 1}
    assert plain(list(source(files, hive_partitioning=True)))[3] == {"id": 4, "year": 1999, "date": "2024-01-02", "part": None}
    with pytest.raises(gm.ConfigError, match="no column `dat`; there are part, id, date"):
        source(lake, columns=["dat"])
    if ending == "parquet":
        with pytest.raises(gm.ConfigError, match='folders give column "part"'):
            gm.MapDataset.parquet(lake, row_groups={"column": "part", "min": 2})
    # Values of folders are in the fingerprint, which names files without their folders.
    before = source(lake).explain()
    (lake / "date=2024-01-01").rename(lake / "date=2023-01-01")
    assert source(lake).explain() != before


def test_batches_do_not_depend_on_the_record_that_comes_first(tmp_path: Path) -> None:
    for lines in (['{"x": null}', '{"x": 1}'], ['{"x": 1}', '{"x": 0.5}'], ['{"x": "a"}', '{"x": 1}']):
        for ordered in (lines, lines[::-1]):
            (tmp_path / "a.jsonl").write_text("\n".join(ordered))
            with pytest.raises(gm.DataError, match="element 0 and 1 of the batch differ: x"):
                list(gm.MapDataset.jsonl(tmp_path / "a.jsonl").to_iter_dataset().batch(2))
    for ordered in ('{"x": 1}\n{}\n', '{}\n{"x": 1}\n'):
        (tmp_path / "a.jsonl").write_text(ordered)
        with pytest.raises(gm.DataError, match=r"x \(int64\[\]\) is in one and not in another"):
            list(gm.MapDataset.jsonl(tmp_path / "a.jsonl").to_iter_dataset().batch(2))
    # The order of names in an object is none.
    (tmp_path / "a.jsonl").write_text('{"x": 1, "y": "a"}\n{"y": "b", "x": 2}\n')
    (batch,) = gm.MapDataset.jsonl(tmp_path / "a.jsonl").to_iter_dataset().batch(2)
    assert plain(batch) == {"x": [1, 2], "y": ["a", "b"]}


def test_convert_keeps_types_or_names_them(tmp_path: Path) -> None:
    decimal = pa.array(["1.5"]).cast(pa.decimal128(5, 2))
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    when = pa.array([1], pa.timestamp("us"))
    table = pa.table({"id": [1], "when": when, "price": decimal, "kind": pa.array(["a"]).dictionary_encode(), "v": vectors})
    write(tmp_path / "a.parquet", table)
    command = [Path(sysconfig.get_path("scripts")) / "gristmill", "convert", "a.parquet", "--to", "parquet", "--out"]
    done = subprocess.run([*command, "b"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert "Utf8) is written as Utf8" in done.stderr
    assert done.stderr.count("column ") == 1
    kept = pq.read_table(tmp_path / "b" / "shard-00000.parquet")
    assert kept.column_names == table.column_names
    assert [kept.schema.field(name).type for name in ("when", "price")] == [pa.timestamp("us"), pa.decimal128(5, 2)]
    assert pa.types.is_fixed_size_list(kept.schema.field("v").type)
    assert kept.to_pylist() == table.to_pylist()
    command[4] = "jsonl"
    done = subprocess.run([*command, "e"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    for line in [
        "column when: Timestamp(µs) is written as int64, microseconds since 1970",
        "column price: Decimal128(5, 2) is written as text",
        "Utf8) is written as Utf8",
        "is written as a list of any size",
    ]:
        assert line in done.stderr
    assert "column id" not in done.stderr
    command[4] = "parquet"
    some = [*command, "c", "--columns", "id"]
    assert "column" not in subprocess.run(some, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True).stderr
    # A column that cannot be read may be left out.
    intervals = pa.array([pa.scalar((1, 2, 3), pa.month_day_nano_interval())])
    write(tmp_path / "i.arrow", pa.table({"iv": intervals, "id": [7]}))
    command[2] = "i.arrow"
    subprocess.run([*command, "d", "--columns", "id"], cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert plain(list(gm.MapDataset.parquet(tmp_path / "d"))) == [{"id": 7}]


def test_the_command_reads_lakes_and_obeys_a_layout(tmp_path: Path) -> None:
    for part in ("a", "b"):
        folder = tmp_path / "lake" / f"part={part}"
        folder.mkdir(parents=True)
        write(folder / "0.parquet", pa.table({"id": [1]}))
    (tmp_path / "ids.dat").write_bytes(bytes(40))
    command = Path(sysconfig.get_path("scripts")) / "gristmill"

    def inspect(*arguments: str) -> Any:
        done = subprocess.run([command, "inspect", "--json", *arguments], cwd=tmp_path, capture_output=True, timeout=120, check=True)
        return json.loads(done.stdout)

    assert inspect("lake")["first"] == [{"id": 1, "part": "a"}, {"id": 1, "part": "b"}]
    told = inspect("--layout", "u16", "ids.dat")
    assert told["format"] == "tokens" and told["tokens"] == 20
