"""Native stages: behind native sources, behind Python functions, and what crosses between them."""

import json
import re
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def through_native(element: Any) -> Any:
    """The element after a native stage that does nothing to it."""
    return gm.MapDataset.source([element]).drop_columns("absent")[0]


@pytest.mark.parametrize("name", "bool uint8 int8 uint16 int16 float16 uint32 int32 float32 uint64 int64 float64".split())
def test_arrays_of_every_dtype_come_back(name: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(name)
    for given in (array, array.T, array[:, 1:], array[:0], array[1, 2]):
        back = through_native({"x": given})["x"]
        assert back.dtype == given.dtype and back.shape == given.shape
        assert np.array_equal(back, given)


def test_everything_else_comes_back_too() -> None:
    element = {"t": "text", "b": b"\0\xff", "none": None, "in": {"list": ["a", None], "empty": []}, "u": "é\U0001f600"}
    assert through_native(element) == element
    back = through_native({"i": 3, "f": 0.5, "y": True, "s": np.float32(2), "l": [1, 2], "m": [1, 0.5]})
    assert (back["i"], back["f"], back["y"], back["s"]) == (3, 0.5, True, 2.0)
    assert [back[k].dtype.name for k in "ifyslm"] == ["int64", "float64", "bool", "float32", "int64", "float64"]
    assert back["l"].tolist() == [1, 2] and back["m"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("element", "says"),
    [
        (5, "native stages take dicts of arrays and text, got int"),
        ({1: 2}, "the keys of an element are text, got int"),
        ({"z": 1j}, "native stages do not support complex, in field \"z\""),
        ({"a": {"z": np.zeros(2, complex)}}, "no arrays of dtype complex128, in field \"z\", in field \"a\""),
        ({"big": 1 << 70}, "exceeds int64"),
        ({"x": np.zeros(2, ">i4")}, "dtype >i4"),
    ],
)
def test_what_native_stages_cannot_hold_is_said(element: Any, says: str) -> None:
    with pytest.raises(gm.DataError, match=re.escape(says)):
        through_native(element)


def test_a_dict_that_holds_itself_is_an_error() -> None:
    element: dict[str, Any] = {}
    element["self"] = element
    with pytest.raises(gm.DataError, match="nested deeper than 64"):
        through_native(element)


def test_a_condition_on_a_column_needs_no_python(jsonl: Path) -> None:
    ds = gm.MapDataset.jsonl(jsonl, index_cache="off").filter(column="n", min=3, max=5)
    assert [int(e["n"]) for e in ds] == [3, 4, 5]
    with pytest.raises(gm.ConfigError, match="no column `m`; there are n, text, ids"):
        gm.MapDataset.jsonl(jsonl, index_cache="off").filter(column="m", min=3)


def test_columns(jsonl: Path) -> None:
    ds = gm.MapDataset.jsonl(jsonl, index_cache="off")
    assert list(ds.select_columns(["ids", "n"])[0]) == ["ids", "n"]
    assert list(ds.drop_columns("n").to_iter_dataset().rename(text="document").limit(1).loader().__next__()) == [
        "document",
        "ids",
    ]
    assert list(ds.rename({"n": "number"})[0]) == ["number", "text", "ids"]


def test_a_prompt_and_its_completion_are_concatenated() -> None:
    turns = [{"prompt": np.arange(n, dtype=np.int32), "completion": np.full(3, 9, np.int32), "id": n} for n in (2, 0)]
    ds = gm.MapDataset.source(turns)
    both = ["prompt", "completion"]
    joined = ds.concatenate_columns(both, into="input_ids", mask="completion_mask", labels="labels")
    assert list(joined[0]) == ["id", "input_ids", "completion_mask", "labels"]
    assert joined[0]["input_ids"].tolist() == [0, 1, 9, 9, 9] and joined[0]["input_ids"].dtype == np.int32
    # The column that TRL's `SFTTrainer` makes of a prompt and a completion.
    assert joined[0]["completion_mask"].tolist() == [0, 0, 1, 1, 1]
    assert [joined[at]["labels"].tolist() for at in (0, 1)] == [[-100, -100, 9, 9, 9], [-100, 9, 9]]
    stream = ds.to_iter_dataset().concatenate_columns(both, labels="labels", trained=["prompt"])
    assert [element["labels"].tolist() for element in stream] == [[-100, 1, -100, -100, -100], [-100, -100, -100]]
    assert list(next(iter(stream))) == ["id", "tokens", "labels"]
    with pytest.raises(gm.ConfigError, match="`trained` names `answer`, which is not in `columns`"):
        ds.concatenate_columns(both, mask="m", trained=["answer"])
    with pytest.raises(gm.ConfigError, match="`trained` requires `mask` or `labels`"):
        ds.concatenate_columns(both, trained=["prompt"])
    with pytest.raises(gm.ConfigError, match="`m` is the name of two new columns"):
        ds.concatenate_columns(both, mask="m", labels="m")
    with pytest.raises(gm.DataError, match="there is a column `id` already"):
        ds.concatenate_columns(both, into="id")[0]
    with pytest.raises(gm.DataError, match=r"`completion` is float64\[1\], but column `prompt` is int64\[1\]"):
        gm.MapDataset.source([{"prompt": np.arange(1), "completion": np.ones(1)}]).concatenate_columns(both)[0]


def test_building_calls_no_python_function() -> None:
    def never(_: Any) -> Any:
        raise AssertionError("called")

    ds = gm.MapDataset.range(9).map(never).drop_columns("x").to_iter_dataset().rename(a="b")
    ds.filter(never).first_fit_pack(length={"b": 4}, num_packing_bins=1).rebatch(2)
    gm.MapDataset.source([{"a": 1}]).filter(never).rename(a="b")


def test_packing_between_python_functions() -> None:
    ds = gm.MapDataset.range(1, 9).map(lambda x: {"ids": np.full(x % 3 + 1, x, np.int32)}).to_iter_dataset()
    packed = ds.concat_then_split_pack(length={"ids": 4}).map(lambda row: row["ids"])
    expected = np.concatenate([np.full(x % 3 + 1, x) for x in range(1, 9)])
    assert np.concatenate(list(packed))[: len(expected)].tolist() == expected.tolist()


def test_every_stage_of_a_pipeline_file_is_a_method() -> None:
    schema = json.loads((REPOSITORY / "python" / "gristmill" / "pipeline.schema.json").read_text())
    names = schema["$defs"]["stage"]["anyOf"][0]["properties"]
    assert len(names) > 15
    for name in names:
        assert hasattr(gm.MapDataset, name) or hasattr(gm.IterDataset, name), name


def test_token_files_are_named_first(tmp_path: Path) -> None:
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "ids.bin")
    crops = gm.MapDataset.crops(tmp_path / "ids.bin", seq_len=7, layout="u16")
    assert len(crops) == 14 and crops[2]["tokens"].tolist() == list(range(14, 21))
    anywhere = gm.MapDataset.random_crops([tmp_path / "ids.bin"], seq_len=7, seed=1, layout="u16")[5]["tokens"]
    assert (anywhere - anywhere[0]).tolist() == list(range(7))
