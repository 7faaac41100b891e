"""Elements that fail after hosts have planned their rows: padding, where that is chosen, and an error elsewhere."""

from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

RECORDS = 400
BATCH = 12


def tokens(x: int, bad: set[int]) -> dict[str, Any]:
    if x in bad:
        raise gm.BadRecord(f"{x} is damaged")
    return {"t": np.full(1 + x % 9, x + 1, np.int32), "x": np.int64(x)}


def failing(bad: set[int]) -> Any:
    """A function whose elements fail once they are `bad`, and which has one name before and after."""

    def make(x: int) -> dict[str, Any]:
        return tokens(x, bad)

    make.gristmill_fingerprint = "tokens"  # type: ignore[attr-defined]
    return make


def packed(bad: set[int]) -> gm.IterDataset[Any]:
    ds = gm.MapDataset.range(RECORDS).shuffle(1).map(failing(bad)).to_iter_dataset()
    return ds.window_pack(length={"t": 16}, window=64, meta_features=["x"]).batch(BATCH, drop_remainder=True)


def masked(bad: set[int]) -> gm.IterDataset[Any]:
    ds = gm.MapDataset.range(RECORDS).map(lambda x: {"x": tokens(x, bad)["x"]})
    return ds.to_iter_dataset().batch(BATCH, remainder="pad", pad_value=-1)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("hosts", [1, 3])
def test_cells_of_elements_that_fail_are_padding(tmp_path: Path, threads: int, hosts: int) -> None:
    bad: set[int] = set()
    ds = packed(bad)
    ds.make_keys(tmp_path)
    whole = list(ds.loader())
    bad.update(range(5, RECORDS, 31))
    failed = 0
    for index in range(hosts):
        chosen = {"part": (index, hosts), "keys": tmp_path, "threads": threads}
        with ds.loader(**chosen, on_failed_element="pad") as loader:
            own = list(loader)
            report = loader.report()
        each = BATCH // hosts
        for mine, theirs in zip(own, whole, strict=True):
            mine_of = slice(each * index, each * (index + 1))
            t, ids = theirs["t"][mine_of], theirs["t_segment_ids"][mine_of]
            fails = np.isin(t - 1, list(bad)) & (ids > 0)
            failed += len(np.unique(t[fails]))
            for name in ["t", "t_segment_ids", "t_positions"]:
                np.testing.assert_array_equal(mine[name], np.where(fails, 0, theirs[name][mine_of]))
            listed = [[None if int(x) in bad else int(x) for x in row] for row in theirs["x"][mine_of]]
            assert [[None if x is None else int(x) for x in row] for row in mine["x"]] == listed
        assert " failed and became padding: " in str(report) and " is damaged" in str(report)
    assert 5 < failed <= len(bad)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_row_that_fails_has_a_mask_of_0(threads: int) -> None:
    bad = {3, 70, 71, 399}
    with masked(bad).loader(part=(0, 1), threads=threads, on_failed_element="pad", failed_element_limit=4) as loader:
        batches = list(loader)
    x, mask = (np.concatenate([batch[name] for batch in batches])[:RECORDS] for name in ["x", "batch_mask"])
    assert sorted(np.flatnonzero(~mask)) == sorted(bad)
    np.testing.assert_array_equal(x, np.where(mask, np.arange(RECORDS), -1))


def test_what_may_not_become_padding_is_an_error(tmp_path: Path) -> None:
    bad: set[int] = set()
    ds = packed(bad)
    ds.make_keys(tmp_path)
    bad.update(range(0, RECORDS, 20))
    with pytest.raises(gm.BadRecord, match="is damaged"):
        list(ds.loader(part=(0, 1), keys=tmp_path))
    with pytest.raises(gm.BadRecord) as failed:
        list(ds.loader(part=(0, 1), keys=tmp_path, on_failed_element="pad", failed_element_limit=2))
    assert "2 failed elements became padding before it" in "".join([str(failed.value), *getattr(failed.value, "__notes__", [])])
    # Without a plan nothing is changed.
    with pytest.raises(gm.BadRecord):
        list(ds.loader(part=(0, 1), on_failed_element="pad"))
    with pytest.raises(gm.ConfigError, match="`batch` does not mark its rows of padding"):
        gm.MapDataset.range(9).to_iter_dataset().batch(3).loader(part=(0, 1), on_failed_element="pad")
    with pytest.raises(gm.ConfigError, match="`failed_element_limit` needs"):
        ds.loader(failed_element_limit=2)
    with pytest.raises(gm.ConfigError, match="on_failed_element: "):
        ds.loader(on_failed_element="drop")  # type: ignore[arg-type]


def test_other_exceptions_are_raised(tmp_path: Path) -> None:
    bad: set[int] = set()

    def fails(x: int) -> dict[str, Any]:
        if x in bad:
            raise RuntimeError("a bug")
        return tokens(x, bad)

    fails.gristmill_fingerprint = "fails"  # type: ignore[attr-defined]
    ds = gm.MapDataset.range(RECORDS).map(fails).to_iter_dataset().window_pack(length={"t": 16}, window=64).batch(4)
    ds.make_keys(tmp_path)
    bad.add(50)
    with pytest.raises(RuntimeError, match="a bug"):
        list(ds.loader(part=(0, 1), keys=tmp_path, on_failed_element="pad"))


def test_rows_are_dealt_by_the_plan_as_by_what_they_hold(tmp_path: Path) -> None:
    made: list[int] = []

    def counted(x: int) -> dict[str, Any]:
        made.append(x)
        return tokens(x, set())

    ds = gm.MapDataset.range(RECORDS).shuffle(1).map(counted).to_iter_dataset()
    ds = ds.window_pack(length={"t": 16}, window=64).batch(BATCH, drop_remainder=True)
    ds.make_keys(tmp_path)
    deal = gm.Deal.balanced(gm.Cost.attention(8), micro_steps=2)
    for index in range(3):
        held = list(ds.loader(part=(index, 3), deal=deal))
        made.clear()
        with ds.loader(part=(index, 3), deal=deal, keys=tmp_path) as loader:
            planned = list(loader)
            assert "plans all rows from keys" in str(loader.report())
        assert len(made) < RECORDS / 2
        for mine, theirs in zip(planned, held, strict=True):
            for name, rows in theirs.items():
                np.testing.assert_array_equal(mine[name], rows)
