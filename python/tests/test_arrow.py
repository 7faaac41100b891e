"""Arrow's C interface, out and in, without copies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")


def address(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def table(batch: Any) -> Any:
    return pa.record_batch(gm.arrow.RecordBatch(batch))


def test_numbers_are_viewed(npy: Path) -> None:
    batch = next(iter(gm.MapDataset.npy(npy).to_iter_dataset().batch(8)))
    made = table(batch)
    assert made.num_rows == 8 and made.schema.field("data").type == pa.list_(pa.field("item", pa.float32(), False), 4)
    assert made["data"].values.buffers()[1].address == address(batch["data"])
    assert made["data"].to_pylist() == batch["data"].tolist()


def test_memory_lives_as_long_as_the_record_batch(npy: Path) -> None:
    columns = [table(batch)["data"] for batch in gm.MapDataset.npy(npy).to_iter_dataset().batch(8)]
    numbers = [number for column in columns for row in column.to_pylist() for number in row]
    assert numbers == list(range(160))


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_every_type_and_its_way_back(dtype: str) -> None:
    batch = {"x": np.arange(24).astype(dtype).reshape(4, 3, 2), "flat": np.arange(4).astype(dtype)}
    rows = gm.MapDataset.arrow(gm.arrow.RecordBatch(batch))
    assert len(rows) == 4
    for at, row in enumerate(rows):
        assert row["x"].dtype == dtype and row["x"].tolist() == batch["x"][at].tolist()
        assert row["flat"] == at


def test_columns_of_other_kinds() -> None:
    batch = {
        "text": ["a", None, "ß"],
        "raw": [b"\0", b"", None],
        "ragged": [np.arange(n, dtype=np.int32) for n in (2, 0, 3)],
        "truth": np.array([True, False, True]),
        "tree": {"n": np.arange(3)},
        "none": [None, None, None],
    }
    assert table(batch).to_pylist() == [
        {"text": "a", "raw": b"\0", "ragged": [0, 1], "truth": True, "tree": {"n": 0}, "none": None},
        {"text": None, "raw": b"", "ragged": [], "truth": False, "tree": {"n": 1}, "none": None},
        {"text": "ß", "raw": None, "ragged": [0, 1, 2], "truth": True, "tree": {"n": 2}, "none": None},
    ]


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        ({"x": np.arange(3), "y": np.arange(4)}, 'column "y" has 4 rows, and column "x" has 3'),
        ({"x": np.float32(1)}, 'array is no column: it has no rows, in column "x"'),
        ({"x": "text"}, "text is no column"),
        ({"x": ["a", b"b"]}, 'one entry of a column is a bytes, and others are not, in column "x"'),
        ({"x": [np.arange(2), np.arange(2.0)]}, "one entry of a column is a array"),
    ],
)
def test_what_is_no_record_batch(batch: Any, told: str) -> None:
    with pytest.raises(gm.DataError, match=told):
        gm.arrow.RecordBatch(batch)


def test_a_stream_of_batches(npy: Path) -> None:
    ds = gm.MapDataset.npy(npy).shuffle(1).to_iter_dataset().batch(16)
    stream = gm.arrow.RecordBatchStream(ds)
    made = pa.table(stream)
    assert [len(chunk) for chunk in made["data"].chunks] == [16, 16, 8]
    assert made["data"].to_pylist() == [row.tolist() for batch in ds for row in batch["data"]]
    with pytest.raises(RuntimeError, match="read already"):
        pa.table(stream)
    with pytest.raises(ValueError, match="no columns"):
        pa.table(gm.arrow.RecordBatchStream([]))


def test_a_stream_whose_columns_change_ends() -> None:
    with pytest.raises(Exception, match="the first batch had"):
        pa.table(gm.arrow.RecordBatchStream([{"x": np.arange(3)}, {"x": np.arange(3.0)}]))

    def failing() -> Any:
        yield {"x": np.arange(3)}
        raise KeyError("late")

    with pytest.raises(Exception, match="KeyError: 'late'"):
        pa.table(gm.arrow.RecordBatchStream(failing()))


def test_rows_of_a_table_are_views() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 3)
    ragged = pa.array([[1, 2], [], [3], None], pa.list_(pa.int64()))
    whole = pa.table({"v": vectors, "r": ragged, "s": ["a", "b", None, "d"], "n": pa.array([1, 2, 3, 4], pa.int16())})
    rows = gm.MapDataset.arrow(whole)
    start = vectors.values.buffers()[1].address
    assert [address(row["v"]) - start for row in rows] == [0, 12, 24, 36]
    assert [row["v"].tolist() for row in rows] == whole["v"].to_pylist()
    assert address(rows[2]["r"]) == ragged.values.buffers()[1].address + 16
    assert [None if row["r"] is None else row["r"].tolist() for row in rows] == [[1, 2], [], [3], None]
    assert [row["s"] for row in rows] == ["a", "b", None, "d"] and rows[3]["n"] == 4


def test_parts_of_tables_and_several_chunks() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40)), 2)
    chunks = pa.chunked_array([vectors.slice(3, 4), vectors.slice(0, 0), vectors.slice(10, 5)])
    rows = gm.MapDataset.arrow(pa.table({"v": chunks}))
    assert [row["v"].tolist() for row in rows] == chunks.to_pylist()
    batch = pa.record_batch({"v": vectors}).slice(5, 3)
    assert [row["v"].tolist() for row in gm.MapDataset.arrow(batch)] == batch["v"].to_pylist()


def test_a_table_goes_through_a_pipeline_and_resumes() -> None:
    whole = pa.table({"n": list(range(20)), "unused": ["x"] * 20})
    ds = gm.MapDataset.arrow(whole).shuffle(3).select_columns("n").to_iter_dataset().batch(4)
    it = ds.loader(threads=1)
    first = next(it)["n"].tolist()
    state = it.get_state()
    rest = [batch["n"].tolist() for batch in it]
    assert sorted(first + [n for batch in rest for n in batch]) == list(range(20))
    again = ds.loader()
    again.set_state(state)
    assert [batch["n"].tolist() for batch in again] == rest
    with pytest.raises(gm.StateError, match="arrow.19 rows of n Int64"):
        gm.MapDataset.arrow(whole.slice(1)).shuffle(3).select_columns("n").to_iter_dataset().batch(4).loader().set_state(state)


def test_columns_of_a_table_are_packed_after_stages_of_names() -> None:
    sequences = [list(range(n)) for n in (3, 5, 0, 7, 2, 9, 4)] * 200
    whole = pa.table({"ids": pa.array(sequences, pa.list_(pa.int32())), "unused": ["x"] * len(sequences)})

    def rows(ds: gm.MapDataset[Any]) -> list[Any]:
        packed = ds.shuffle(1).to_iter_dataset().window_pack(length={"tokens": 16}, window=8)
        return [{name: column.tolist() for name, column in row.items()} for row in packed]

    expected = rows(gm.MapDataset.source([{"tokens": np.array(ids, np.int32)} for ids in sequences]))
    assert rows(gm.MapDataset.arrow(whole, columns=["ids"]).rename(ids="tokens")) == expected
    assert rows(gm.MapDataset.arrow(whole).rename(ids="tokens").drop_columns("unused")) == expected


def test_what_is_no_table() -> None:
    with pytest.raises(TypeError, match="needs a table with `__arrow_c_stream__`.*gm.MapDataset.source"):
        gm.MapDataset.arrow([1, 2])  # type: ignore[arg-type, list-item]
    with pytest.raises(TypeError, match="pyarrow.Table.from_batches"):
        gm.MapDataset.arrow(pa.table({"n": [1]}).to_batches())
    with pytest.raises(TypeError, match="pyarrow.table"):
        gm.MapDataset.arrow({"n": [1]})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes `columns`, and no `cache_bytes`"):
        gm.MapDataset.arrow(pa.table({"n": [1]}), cache_bytes=1)
    with pytest.raises(TypeError, match="no record batch"):
        gm.MapDataset.arrow(pa.array([1, 2]))
    with pytest.raises(gm.UnsupportedError, match="is of type"):
        gm.MapDataset.arrow(pa.table({"u": pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])}))


def ints(*values: int, dtype: str = "i4") -> Any:
    """A buffer of integers."""
    return pa.py_buffer(np.array(values, dtype).tobytes())


def batch_of(array: Any) -> Any:
    return pa.RecordBatch.from_arrays([array], names=["c"])


def written_over(array: Any, before: tuple[int, ...], after: tuple[int, ...], dtype: str = "i4") -> Any:
    """A column as pyarrow reads it from a file in which integers have been overwritten. Reading checks no values."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema([("c", array.type)])) as writer:
        writer.write_batch(batch_of(array))
    file, pattern = sink.getvalue().to_pybytes(), np.array(before, dtype).tobytes()
    assert file.count(pattern) == 1
    return pa.ipc.open_file(pa.BufferReader(file.replace(pattern, np.array(after, dtype).tobytes()))).get_batch(0)


#: Batches that pyarrow makes, or reads from files, with buffers that contradict each other.
DAMAGED: dict[str, Callable[[], Any]] = {
    "text beyond its bytes": lambda: written_over(pa.array(["hello", "you"]), (0, 5, 8), (0, 5, 1 << 24)),
    "falling offsets of text": lambda: written_over(pa.array(["hello", "you", "!"]), (0, 5, 8, 9), (0, 5, 3, 9)),
    "a negative offset of text": lambda: batch_of(pa.Array.from_buffers(pa.string(), 3, [None, ints(0, -5000, 5, 5), pa.py_buffer(b"hello")])),
    "text that is no UTF-8": lambda: batch_of(pa.Array.from_buffers(pa.string(), 1, [None, ints(0, 2), pa.py_buffer(b"\xff\xfe")])),
    "long text beyond its bytes": lambda: written_over(pa.array(["hello", "you"], pa.large_string()), (0, 5, 8), (0, 5, 1 << 40), "i8"),
    "bytes beyond the buffer": lambda: written_over(pa.array([b"hello", b"you"]), (0, 5, 8), (0, 5, 1 << 30)),
    "lists beyond their numbers": lambda: written_over(pa.array([[1.5, 2.5, 3.5], [4.5]]), (0, 3, 4), (0, 3, 1 << 24)),
    "a negative offset of lists": lambda: written_over(pa.array([[1.5], [2.5, 3.5], [4.5]]), (0, 1, 3, 4), (0, -9, 3, 4)),
    "keys of a dictionary": lambda: batch_of(pa.DictionaryArray.from_arrays(pa.array([0, 5_000_000], pa.int32()), pa.array(["a", "b"]), safe=False)),
    "views beyond their buffer": lambda: batch_of(pa.Array.from_buffers(pa.string_view(), 1, [None, ints(100, 0, 0, 1 << 20), pa.py_buffer(b"x" * 10)])),
    "views of no buffer": lambda: batch_of(pa.Array.from_buffers(pa.string_view(), 1, [None, ints(100, 0, 77, 0), pa.py_buffer(b"x" * 200)])),
}


@pytest.mark.parametrize("form", ["table", "batch", "reader"])
@pytest.mark.parametrize("what", DAMAGED)
def test_damage_in_a_table_is_an_error(what: str, form: str) -> None:
    batch = DAMAGED[what]()
    table = pa.Table.from_batches([batch])
    given = {"table": table, "batch": batch, "reader": table.to_reader()}[form]
    with pytest.raises(gm.DataError, match="the Arrow table is damaged|a dictionary key has no value"):
        list(gm.MapDataset.arrow(given))


def test_damage_in_one_batch_is_no_error_of_another() -> None:
    good = batch_of(pa.array(["a", "b"]))
    bad = DAMAGED["a negative offset of text"]()
    rows = gm.MapDataset.arrow(pa.Table.from_batches([good, bad]))
    assert [rows[0], rows[1]] == [{"c": "a"}, {"c": "b"}]
    with pytest.raises(gm.DataError, match="the Arrow table is damaged"):
        rows[2]


class Unfit:
    """A schema beside an array of another type."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        schema, _ = pa.record_batch({"c": pa.array([[1, 2]])}).__arrow_c_array__()
        _, array = pa.record_batch({"c": pa.array([1])}).__arrow_c_array__()
        return schema, array


def test_an_array_that_does_not_fit_its_schema_is_an_error() -> None:
    with pytest.raises(gm.DataError, match="the Arrow table is damaged"):
        list(gm.MapDataset.arrow(Unfit()))


def test_some_columns_of_a_table() -> None:
    table = pa.table({"n": [1, 2], "t": ["a", "b"], "x": [0.5, 1.5]})
    assert [list(row) for row in gm.MapDataset.arrow(table, columns=["x", "n"])] == [["x", "n"]] * 2
    with pytest.raises(gm.ConfigError, match="no column `y`"):
        gm.MapDataset.arrow(table, columns="y")[0]


def test_a_frame_of_pandas() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    frame = pd.DataFrame({"n": [1, 2], "x": [0.5, 1.5]})
    assert [(int(row["n"]), float(row["x"])) for row in gm.MapDataset.arrow(frame)] == [(1, 0.5), (2, 1.5)]


def test_a_query_of_polars_is_to_be_run_first() -> None:
    query = type("LazyFrame", (), {"collect": lambda self: None, "__module__": "polars.lazyframe.frame"})
    with pytest.raises(TypeError, match="polars.lazyframe.frame.LazyFrame: it is a query that has not run: pass .collect"):
        gm.MapDataset.arrow(query())


class TestHuggingFace:
    """Datasets of Hugging Face, with what they make of their rows."""

    @pytest.fixture
    def whole(self) -> Any:
        datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install datasets")
        return datasets.Dataset.from_dict({"n": list(range(100)), "t": [f"text {n}" for n in range(100)]})

    def test_rows_come_in_the_order_of_the_dataset(self, whole: Any) -> None:
        for made in (whole, whole.shuffle(seed=3), whole.select([5, 3, 3]), whole.filter(lambda row: row["n"] % 7 == 0)):
            ds = gm.MapDataset.arrow(made)
            assert len(ds) == len(made)
            assert [(row["n"], row["t"]) for row in ds] == [(row["n"], row["t"]) for row in made]
        some = gm.MapDataset.arrow(whole.shuffle(seed=3).select(range(4)), columns=["n"])
        assert [dict(row) for row in some] == [{"n": n} for n in whole.shuffle(seed=3)["n"][:4]]

    def test_workers_read_the_same_rows(self, whole: Any) -> None:
        ds = gm.MapDataset.arrow(whole.shuffle(seed=3)).map(lambda row: row["n"] + 1).to_iter_dataset()
        assert list(ds.mp_prefetch(num_workers=1)) == list(ds) == [n + 1 for n in whole.shuffle(seed=3)["n"]]

    def test_what_is_no_dataset_with_rows_is_refused_with_a_hint(self, whole: Any) -> None:
        import datasets

        with pytest.raises(TypeError, match="one dataset for each split: pass one of .'train', 'test'."):
            gm.MapDataset.arrow(datasets.DatasetDict(train=whole, test=whole))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="gm.IterDataset.source"):
            gm.MapDataset.arrow(whole.to_iterable_dataset())
        with pytest.raises(TypeError, match="pass the dataset itself"):
            gm.MapDataset.arrow(whole.shuffle(seed=3).data)
        assert [row["n"] for row in gm.IterDataset.source(whole.to_iterable_dataset()).take(2)] == [0, 1]
