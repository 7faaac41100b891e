"""Batches: what is stacked, and how."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import gristmill as gm
import numpy as np
import pytest


def batches(elements: list[Any], size: int, **options: Any) -> list[Any]:
    """The batches of both worlds, which must be the same."""
    ds = gm.MapDataset.source(elements)
    in_map, in_iter = list(ds.batch(size, **options)), list(ds.to_iter_dataset().batch(size, **options))
    assert repr(in_map) == repr(in_iter)
    return in_iter


def test_numbers_become_arrays() -> None:
    whole, rest = batches([1, 2, 3], 2)
    assert (whole.tolist(), whole.dtype, rest.tolist()) == ([1, 2], np.int64, [3])
    (floats,) = batches([0.5, 1.5], 2)
    assert (floats.tolist(), floats.dtype) == ([0.5, 1.5], np.float64)
    (mixed,) = batches([1, 1.5, True], 3)
    assert (mixed.tolist(), mixed.dtype) == ([1.0, 1.5, 1.0], np.float64)


def test_a_remainder_is_kept_or_dropped() -> None:
    assert [b.tolist() for b in batches([1, 2, 3], 2, drop_remainder=True)] == [[1, 2]]


def test_the_leaves_of_trees_gain_a_dimension() -> None:
    element = {"a": np.ones((2, 3), np.float32), "b": {"c": 1, "d": [2.0, (3, "x")]}}
    (batch,) = batches([element, element], 2)
    assert (batch["a"].shape, batch["a"].dtype) == ((2, 2, 3), np.float32)
    assert batch["b"]["c"].tolist() == [1, 1]
    assert type(batch["b"]["d"]) is list and type(batch["b"]["d"][1]) is tuple
    assert batch["b"]["d"][1][1].tolist() == ["x", "x"]


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Example:
    ids: Any
    weight: Any = 1.0


def test_classes_stay_what_they_are() -> None:
    (points,) = batches([Point(1, 2), Point(3, 4)], 2)
    assert type(points) is Point and points.y.tolist() == [2, 4]
    (examples,) = batches([Example(np.arange(2)), Example(np.arange(2))], 2)
    assert type(examples) is Example and examples.ids.shape == (2, 2)


def test_a_zip_is_batched_side_by_side() -> None:
    ds = gm.MapDataset.zip([gm.MapDataset.range(4), gm.MapDataset.range(4).map(lambda x: {"x": x / 2})])
    numbers, trees = next(iter(ds.batch(4)))
    assert numbers.tolist() == [0, 1, 2, 3] and trees["x"].tolist() == [0, 0.5, 1, 1.5]


def test_a_function_may_make_the_batch() -> None:
    assert batches([1, 2, 3], 2, batch_fn=sum) == [3, 3]
    assert batches([1, 2, 3], 2, batch_fn=list) == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("elements", "says"),
    [
        ([{"a": 1}, {"b": 1}], r"element 0 of the batch has \['a'\], element 1 has \['b'\]"),
        ([(1, 2), (1, 2, 3)], "has 2 parts, element 1 has 3"),
        ([[1], (1,)], "element 0 of the batch is list, element 1 tuple"),
        ([np.zeros(2), np.zeros(3)], r"cannot stack: element 0 of the batch has shape \(2,\), element 1 has \(3,\)"),
        ([{"a": (np.zeros(2), 1)}, {"a": (np.zeros((3, 1)), 1)}], r"'a/0': .* has shape \(2,\), element 1 has \(3, 1\)"),
    ],
)
def test_what_does_not_fit_together_is_said(elements: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        list(gm.MapDataset.source(elements).to_iter_dataset().batch(2))
    assert any("stage 2 batch" in note for note in caught.value.__notes__)


def test_impossible_batches_are_refused_at_once() -> None:
    with pytest.raises(gm.ConfigError):
        gm.MapDataset.range(3).to_iter_dataset().batch(0)
    with pytest.raises(gm.ConfigError):
        gm.MapDataset.range(3).filter(bool).batch(2)


@pytest.mark.parametrize("dtype", ["float32", ">f4", "uint8", "M8[s]", "S3", "complex64"])
def test_large_batches_of_python_s_begin_at_64_bytes(dtype: str) -> None:
    rows = [(np.arange(30_000).reshape(100, 300) + x).astype(dtype) for x in range(4)]
    for layout in (np.ascontiguousarray, np.asfortranarray):
        source = gm.MapDataset.source([{"x": layout(row)} for row in rows])
        for batch in source.batch(4):
            assert batch["x"].ctypes.data % 64 == 0
            assert batch["x"].dtype == rows[0].dtype and np.array_equal(batch["x"], np.stack(rows))
            assert batch["x"].flags.c_contiguous


def test_large_arrays_that_are_not_alike_are_stacked_as_numpy_does() -> None:
    short, long = np.zeros((100, 300), np.float32), np.ones((100, 300), np.float64)
    assert gm.MapDataset.source([short, long]).batch(2)[0].dtype == np.float64
    with pytest.raises(ValueError, match=r"has shape \(100, 300\), element 1 has \(99, 300\)"):
        gm.MapDataset.source([short, short[:99]]).batch(2)[0]


def test_workers_name_the_array_that_does_not_fit_as_well() -> None:
    rows = [{"x": 1, "ids": np.zeros(4)}, {"x": 2, "ids": np.zeros(5)}]
    ds = gm.MapDataset.source(rows).map(lambda row: row).to_iter_dataset().batch(2).mp_prefetch(num_workers=1)
    with pytest.raises(ValueError, match=r"cannot stack 'ids': element 0 .* shape \(4,\), element 1 has \(5,\)") as caught:
        next(iter(ds))
    assert any("pack, pad or bucket" in note for note in caught.value.__notes__)


def test_the_last_batch_may_be_filled_up_with_a_mask() -> None:
    rows = gm.MapDataset.range(5).map(lambda x: {"x": np.full(2, x, np.float32)}).to_iter_dataset()
    whole, last = rows.batch(3, remainder="pad", pad_value=-1, mask="real")
    assert whole["real"].tolist() == [True] * 3 and last["real"].tolist() == [True, True, False]
    assert last["x"].tolist() == [[3, 3], [4, 4], [-1, -1]]
    assert [len(batch["x"]) for batch in rows.batch(3, remainder="drop")] == [3]
    assert [len(batch["x"]) for batch in rows.batch(3, remainder="keep")] == [3, 2]


def test_a_native_batch_is_filled_up_as_that_of_a_pipeline_file(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"x": {x}}}\n' for x in range(3)))
    file = tmp_path / "pipeline.yaml"
    file.write_text("source: {jsonl: rows.jsonl}\nstages: [to_iter, batch: {batch_size: 2, remainder: pad}]\n")
    ds = gm.MapDataset.jsonl(tmp_path / "rows.jsonl").to_iter_dataset().batch(2, remainder="pad")
    for one, other in zip(ds, gm.IterDataset.from_file(file), strict=True):
        assert {name: array.tolist() for name, array in one.items()} == {k: v.tolist() for k, v in other.items()}
        assert "batch_mask" in one


def test_options_of_a_batch_that_contradict_each_other_are_refused() -> None:
    ds = gm.MapDataset.range(3).to_iter_dataset()
    with pytest.raises(gm.ConfigError, match="`drop_remainder` and `remainder: keep` contradict each other"):
        ds.batch(2, True, remainder="keep")
    with pytest.raises(gm.ConfigError, match="`pad_value` and `mask` belong to `remainder: pad`"):
        ds.batch(2, mask="real")
    with pytest.raises(gm.ConfigError, match="`batch_fn` fills up no batch"):
        ds.batch(2, batch_fn=list, remainder="pad")
    with pytest.raises(gm.ConfigError, match="must be `keep`, `drop` or `pad`"):
        ds.batch(2, remainder="wrap")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="batch after to_iter_dataset"):
        gm.MapDataset.range(3).batch(2, remainder="pad")  # type: ignore[arg-type]
