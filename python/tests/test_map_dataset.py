"""Datasets of random access against plain Python."""

import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest


def test_a_range_is_pythons() -> None:
    assert list(gm.MapDataset.range(5)) == list(range(5))
    assert list(gm.MapDataset.range(7, 1, -2)) == list(range(7, 1, -2))
    assert all(type(x) is int for x in gm.MapDataset.range(3))


def test_indices_go_on_over_the_epochs_and_count_from_the_end() -> None:
    ds = gm.MapDataset.range(5).map(lambda x: x * 10)
    assert (len(ds), ds[0], ds[4], ds[6], ds[-1]) == (5, 0, 40, 10, 40)
    with pytest.raises(IndexError, match="index -6 of a dataset of 5 elements"):
        ds[-6]


@pytest.mark.parametrize("cut", [slice(2, 4), slice(-3, None), slice(None, None, -4), slice(1, 90, 3), slice(5, 2)])
def test_slices_are_pythons(cut: slice) -> None:
    assert list(gm.MapDataset.range(10)[cut]) == list(range(10))[cut]
    assert list(gm.MapDataset.range(10).slice(cut)) == list(range(10))[cut]


def test_blocks_are_shuffled_and_their_elements_window_by_window() -> None:
    ds = gm.MapDataset.range(30).block_shuffle(2, 5, block_size=3)
    order = list(ds)
    assert sorted(order) == list(range(30)) and order == [ds[i] for i in range(30)]
    windows = [{x // 3 for x in order[at : at + 6]} for at in range(0, 30, 6)]
    assert all(len(blocks) == 2 for blocks in windows)
    assert [x % 30 for x in (ds[i] for i in range(30, 60))] != order
    with pytest.raises(gm.ConfigError, match="give it a block_size"):
        list(gm.MapDataset.range(30).block_shuffle(2, 5))


def test_anything_with_a_length_and_items_is_a_source() -> None:
    class Squares:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            return index * index

    assert list(gm.MapDataset.source(Squares())) == [0, 1, 4, 9]
    assert list(gm.MapDataset.source(["a", "b"]).repeat(2)) == ["a", "b", "a", "b"]
    rows = list(gm.MapDataset.source(np.eye(2)))
    assert [row.tolist() for row in rows] == [[1, 0], [0, 1]]
    with pytest.raises(TypeError, match="`__len__` and `__getitem__`"):
        gm.MapDataset.source(3)  # type: ignore[arg-type]


def test_a_filter_leaves_empty_slots_that_a_stream_skips() -> None:
    ds = gm.MapDataset.range(6).filter(lambda x: x % 3 == 0)
    assert (len(ds), [ds[i] for i in range(6)], list(ds)) == (6, [0, None, None, 3, None, None], [0, 3])


def test_an_empty_slot_may_be_an_element() -> None:
    ds = gm.MapDataset.range(5).filter(lambda x: x % 2 == 0)
    assert list(ds.slots()) == [0, None, 2, None, 4]
    assert list(ds.slots().batch(2, batch_fn=list)) == [[0, None], [2, None], [4]]
    with pytest.raises(gm.ConfigError, match="may drop"):
        ds.batch(2)
    # Where no slot is empty there is nothing to do.
    assert repr(gm.MapDataset.range(5).slots()) == repr(gm.MapDataset.range(5))


def test_what_a_function_returns_is_the_element() -> None:
    values: list[Any] = [None, True, 1, 1.5, "text", b"bytes", {"a": 1}, (1, 2), [1], 1 << 80, object()]
    out = list(gm.MapDataset.range(len(values)).map(lambda i: values[i]))
    assert out == values
    assert [type(x) for x in out] == [type(x) for x in values]


def test_an_index_goes_on_where_epochs_begin() -> None:
    ds = gm.MapDataset.range(5, 7).repeat(2).map_with_index(lambda i, x: (i, x))
    assert list(ds) == [(0, 5), (1, 6), (2, 5), (3, 6)]


def test_epochs_differ_unless_told_otherwise() -> None:
    epochs = list(gm.MapDataset.range(10).shuffle(1).repeat(2))
    assert sorted(epochs[:10]) == sorted(epochs[10:]) and epochs[:10] != epochs[10:]
    same = list(gm.MapDataset.range(10).shuffle(1).repeat(2, reseed_each_epoch=False))
    assert same[:10] == same[10:] == epochs[:10]
    assert len(gm.MapDataset.range(10).repeat()) == sys.maxsize


def test_datasets_combine() -> None:
    a, b = gm.MapDataset.range(3), gm.MapDataset.range(10, 13).map(lambda x: str(x))
    assert list(gm.MapDataset.concatenate([a, b])) == [0, 1, 2, "10", "11", "12"]
    assert list(gm.MapDataset.zip([a, b])) == [(0, "10"), (1, "11"), (2, "12")]
    assert list(gm.MapDataset.mix([a, b])) == [0, "10", 1, "11", 2, "12"]
    order = [(1, 0), (0, 2), (1, 2)]
    assert list(gm.MapDataset.select_from_datasets([a, b], order)) == ["10", 2, "12"]
    assert list(gm.MapDataset.range(9).select_indices([7, 0, 7])) == [7, 0, 7]
    with pytest.raises(gm.ConfigError):
        gm.MapDataset.zip([a, gm.MapDataset.range(4)])


def test_shards_together_are_the_dataset() -> None:
    ds = gm.MapDataset.range(11).shuffle(3)
    shards = [list(ds.shard(index, 3)) for index in range(3)]
    assert [shards[i % 3][i // 3] for i in range(11)] == list(ds)


def test_transforms_may_be_classes() -> None:
    class Double:
        def map(self, x: int) -> int:
            return 2 * x

    class Odd:
        def filter(self, x: int) -> bool:
            return x % 2 == 1

    class Noise:
        def random_map(self, x: int, rng: np.random.Generator) -> float:
            return x + rng.random()

    assert list(gm.MapDataset.range(4).filter(Odd()).map(Double())) == [2, 6]
    noise = list(gm.MapDataset.range(4).random_map(Noise(), seed=1))
    assert [int(x) for x in noise] == [0, 1, 2, 3] and noise == list(gm.MapDataset.range(4).random_map(Noise(), seed=1))
    with pytest.raises(TypeError, match="an object with a method `map`, got "):
        gm.MapDataset.range(4).map(Odd())  # type: ignore[arg-type]


def test_records_of_files(jsonl: Path, npy: Path) -> None:
    ds = gm.MapDataset.jsonl(jsonl, index_cache="off")
    assert len(ds) == 20
    assert (int(ds[3]["n"]), ds[3]["text"], ds[3]["ids"].tolist()) == (3, "xxx", [0, 1, 2, 3])
    assert list(gm.MapDataset.jsonl([jsonl], columns=["text"], index_cache="off")[2]) == ["text"]
    assert gm.MapDataset.lines(paths=str(jsonl), index_cache="off")[0]["text"].startswith('{"n": 0')
    assert gm.MapDataset.npy(npy)[1]["data"].tolist() == [4, 5, 6, 7]


def test_repr_names_the_last_stage() -> None:
    assert repr(gm.MapDataset.range(3).shuffle(2)) == "<gristmill.MapDataset range(0, 3, 1) → shuffle(seed=2)>"


def test_parts_of_a_split_share_no_element_in_any_epoch() -> None:
    shuffled = gm.MapDataset.range(1000).seed(1).shuffle()
    train, validation = shuffled.split([0.9, 0.1])
    assert (len(train), len(validation)) == (900, 100)
    seen = set(train.shuffle(seed=3).repeat(10))
    assert len(seen) == 900 and not seen & set(validation.repeat(10))
    assert list(shuffled.split([0.9, 0.1], 1)) == list(validation) != list(shuffled.split([0.9, 0.1], 1, seed=1))
    assert [list(part) for part in gm.MapDataset.range(5).split([2, 3], shuffle=False)] == [[0, 1], [2, 3, 4]]
    with pytest.raises(gm.ConfigError, match="the parts have 6 elements, but the dataset has 5"):
        gm.MapDataset.range(5).split([2, 4])


def test_parts_of_a_split_go_to_workers() -> None:
    train, validation = gm.MapDataset.range(100).split([0.9, 0.1])
    for part in (train, validation):
        assert list(part.to_iter_dataset().mp_prefetch(num_workers=1)) == list(part)


def test_a_repeated_slice_of_a_shuffle_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    shuffled = gm.MapDataset.range(100).shuffle(seed=1)
    train, other = shuffled[:90].repeat(), shuffled.split([0.9, 0.1])[0].shuffle(seed=2).repeat()
    next(iter(other))
    assert not caplog.records
    next(iter(train))
    assert len(caplog.records) == 1
    assert "repeat (stage 3): it repeats a slice of a shuffled dataset" in caplog.text
    assert "`split` before `shuffle`" in str(train.to_iter_dataset().explain())
