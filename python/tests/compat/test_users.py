"""What large trainers do with Grain, on the package of its name."""

import contextlib
import json
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import gristmill as gm
import gristmill.compat.grain as grain
import numpy as np
import pytest
from formats import framed
from gristmill.compat.grain import _tfrecord


def after(it: Any, count: int) -> list[Any]:
    return [next(it) for _ in range(count)]


class Doubled(grain.IterDataset[int]):
    """A stage of the user's own, with the state of its parent inside its own."""

    def __init__(self, parent: grain.IterDataset[int]) -> None:
        super().__init__(parent)

    def __iter__(self) -> "DoubledIterator":
        return DoubledIterator(self._parent.__iter__())


class DoubledIterator(grain.DatasetIterator[int]):
    def __init__(self, parent: grain.DatasetIterator[int]) -> None:
        super().__init__([parent])
        self.given = 0

    def __next__(self) -> int:
        self.given += 1
        return 2 * next(self._parent)

    def get_state(self) -> dict[str, Any]:
        return {"parent": self._parent.get_state(), "given": self.given}

    def set_state(self, state: dict[str, Any]) -> None:
        self._parent.set_state(state["parent"])
        self.given = state["given"]


class Reversed(grain.MapDataset[int]):
    """A stage of random access of the user's own."""

    def __len__(self) -> int:
        return len(self._parent)

    def __getitem__(self, index: Any) -> Any:
        epoch, at = divmod(index, len(self))
        return self._parent[epoch * len(self) + len(self) - 1 - at]


def test_stages_of_the_users_own_between_ours() -> None:
    ds = Doubled(Reversed(grain.MapDataset.range(9)).to_iter_dataset().filter(lambda x: x != 4)).map(lambda x: x + 1)
    batches = ds.batch(3)
    assert [b.tolist() for b in batches] == [[17, 15, 13], [11, 7, 5], [3, 1]]
    grain.experimental.assert_equal_output_after_checkpoint(batches)
    it = Doubled(grain.MapDataset.range(9).to_iter_dataset()).__iter__()
    after(it, 2)
    assert it.get_state() == {"parent": {"next_index": 2}, "given": 2}


def parts(weights: dict[str, float]) -> grain.IterDataset[Any]:
    named = {name: grain.MapDataset.range(100).map(partial(lambda n, x: (n, x), name)).to_iter_dataset() for name in weights}
    return grain.IterDataset.mix(named, weights)


def test_a_mix_goes_on_with_other_weights_and_parts() -> None:
    it = parts({"a": 1, "b": 1}).__iter__()
    assert after(it, 4) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    state = json.loads(json.dumps(it.get_state()))
    assert state["parents"] == {"a": {"next_index": 2}, "b": {"next_index": 2}}
    resumed = parts({"c": 3, "b": 1}).__iter__()
    resumed.set_state(state)
    seen = after(resumed, 8)
    assert [x for name, x in seen if name == "b"] == [2, 3]
    assert [x for name, x in seen if name == "c"] == [0, 1, 2, 3, 4, 5]
    grain.experimental.assert_equal_output_after_checkpoint(parts({"a": 1, "b": 2}).batch(7))


def test_weights_belong_to_names() -> None:
    one, other = (grain.MapDataset.range(40).map(lambda _, n=n: n).to_iter_dataset() for n in "ab")
    first = list(grain.IterDataset.mix({"a": one, "b": other}, {"b": 9, "a": 1}))[:20]
    assert first.count("b") == 18
    # As Grain has them where JAX is installed, in whatever order they were given.
    assert list(grain.IterDataset.mix({"b": other, "a": one}))[:3] == ["a", "b", "a"]
    with pytest.raises(ValueError, match="weights"):
        grain.IterDataset.mix({"a": one, "b": other}, {"a": 1})


def test_the_last_batch_is_padded() -> None:
    pad = partial(grain.experimental.batch_and_pad, batch_size=4, pad_value=-1)
    source: list[Any] = [{"x": np.full(2, i)} for i in range(6)]
    batches = list(grain.MapDataset.source(source).to_iter_dataset().batch(4, batch_fn=pad))
    assert [b["x"].shape for b in batches] == [(4, 2), (4, 2)]
    assert batches[1]["x"].tolist() == [[4, 4], [5, 5], [-1, -1], [-1, -1]]


def test_files_are_opened_when_their_turn_comes() -> None:
    opened: list[int] = []

    def file(k: int) -> grain.IterDataset[Any]:
        opened.append(k)
        return grain.MapDataset.range(10 * k, 10 * k + 3).to_iter_dataset()

    # Without end, as a trainer has it.
    files = grain.MapDataset.range(4).repeat().map(file)
    ds = grain.experimental.InterleaveIterDataset(files, cycle_length=2)
    it = ds.__iter__()
    assert after(it, 7) == [0, 10, 1, 11, 2, 12, 20]
    assert opened == [0, 1, 2]
    rest = after(it, 9)
    resumed = ds.__iter__()
    fresh = ds.__iter__()
    after(fresh, 7)
    resumed.set_state(json.loads(json.dumps(fresh.get_state())))
    assert after(resumed, 9) == rest


def test_windows_are_shuffled_and_restored() -> None:
    ds = grain.experimental.WindowShuffleIterDataset(
        grain.MapDataset.range(20).to_iter_dataset(), window_size=8, seed=3
    )
    elements = list(ds)
    assert [sorted(elements[i : i + 8]) for i in (0, 8, 16)] == [list(range(8)), list(range(8, 16)), list(range(16, 20))]
    it = ds.__iter__()
    after(it, 11)
    assert it.get_state()["window_index"] == 1
    grain.experimental.assert_equal_output_after_checkpoint(ds)


def write_tfrecord(path: Path, records: list[bytes]) -> None:
    path.write_bytes(b"".join(map(framed, records)))


class Reader(_tfrecord._TFRecordReader):
    """A reader of the user's own."""

    def __next__(self) -> bytes:
        return super().__next__().upper()


class OwnIterator(_tfrecord._TFRecordDatasetIterator):
    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self._reader = Reader(path)


class OwnRecords(grain.experimental.TFRecordIterDataset):
    def __iter__(self) -> grain.DatasetIterator[bytes]:
        return OwnIterator(self._path)


def test_tfrecords_and_readers_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write_tfrecord(path, [b"one", b"", b"three"])
    assert list(grain.experimental.TFRecordIterDataset(str(path))) == [b"one", b"", b"three"]
    grain.experimental.assert_equal_output_after_checkpoint(grain.experimental.TFRecordIterDataset(path))
    own = OwnRecords(str(path)).map(len).batch(2)
    assert list(OwnRecords(str(path))) == [b"ONE", b"", b"THREE"]
    grain.experimental.assert_equal_output_after_checkpoint(own)
    with Reader(path) as reader:
        assert reader.tell() == 0 and next(reader) == b"ONE" and reader.tell() == 19
        reader.seek(35)
        assert next(reader) == b"THREE" and list(reader) == []
        with pytest.raises(ValueError, match="no record begins at byte 36"):
            reader.seek(36)
    data = path.read_bytes()
    path.write_bytes(data[:-6])
    with pytest.raises(ValueError, match="record 2: byte 35: the file ends inside of a record of 5 bytes"):
        list(grain.experimental.TFRecordIterDataset(path))
    path.write_bytes(b"\x05" + data[1:])
    with pytest.raises(ValueError, match="checksum"):
        list(grain.experimental.TFRecordIterDataset(path))


def test_states_of_something_else_are_refused_by_a_stream_of_tfrecords(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write_tfrecord(path, [b"one"])
    it = iter(grain.experimental.TFRecordIterDataset(path))
    states: list[dict[str, Any]] = [{}, {"next_index": 1}, {"reader_offset": None}]
    for state in states:
        with pytest.raises(gm.StateError, match="reader_offset is None"):
            it.set_state(state)
    assert next(it) == b"one"


def test_threads_that_read_ahead_start_no_processes() -> None:
    ds = grain.MapDataset.range(5).map(lambda x: (x, os.getpid())).to_iter_dataset()
    ahead = grain.experimental.multithread_prefetch(ds, num_threads=2, buffer_size=1)
    assert list(ahead) == [(x, os.getpid()) for x in range(5)]
    with pytest.raises(ValueError, match="num_threads"):
        grain.experimental.multithread_prefetch(ds, num_threads=-1, buffer_size=1)


def test_a_sampler_of_the_users_own_needs_shard_options() -> None:
    class Backwards:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return grain.RecordMetadata(index=index, record_key=2 - index)

    with pytest.raises(ValueError, match="No shard options were provided"):
        grain.DataLoader(data_source=[1, 2, 3], sampler=Backwards())
    loader = grain.DataLoader(data_source=[1, 2, 3], sampler=Backwards(), shard_options=grain.sharding.NoSharding())
    assert list(loader) == [3, 2, 1]


def test_parquet_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    for k in range(2):
        table = arrow.table({"x": [10 * k + i for i in range(5)], "t": [f"row {i}" for i in range(5)]})
        parquet.write_table(table, tmp_path / f"{k}.parquet", row_group_size=2)
    one = grain.experimental.ParquetIterDataset(str(tmp_path / "0.parquet"))
    assert [row["x"] for row in one] == [0, 1, 2, 3, 4]
    grain.experimental.assert_equal_output_after_checkpoint(one)
    both = grain.experimental.ParquetIterDataset([str(tmp_path / f"{k}.parquet") for k in range(2)])
    assert [row["x"] for row in both] == [0, 10, 1, 11, 2, 12, 3, 13, 4, 14]


def test_an_interleave_is_divided_by_a_slice() -> None:
    files = [grain.MapDataset.range(10 * k, 10 * k + 2).to_iter_dataset() for k in range(5)]
    ds = grain.experimental.InterleaveIterDataset(files, cycle_length=4)
    ds.set_slice(slice(1, None, 3))
    assert list(ds) == [10, 40, 11, 41] and "2 datasets" in str(ds)


def test_shards_of_an_interleave_go_on_among_others() -> None:
    def passed(numbers: range, cycle: int) -> Any:
        files = [grain.MapDataset.range(10 * k, 10 * k + 4).to_iter_dataset() for k in numbers]
        return grain.experimental.InterleaveIterDataset(files, cycle_length=cycle).__iter__()

    even, odd, whole, restored = passed(range(0, 6, 2), 1), passed(range(1, 6, 2), 1), passed(range(6), 2), passed(range(6), 2)
    read = [*after(even, 3), *after(odd, 9)]
    states: list[Any] = [None] * 6
    states[0::2], states[1::2] = even.get_shard_states(), odd.get_shard_states()
    assert [state["exhausted"] for state in states] == [0, 1, 0, 1, 0, 0]
    whole.set_shard_states(json.loads(json.dumps(states)))
    rest = after(whole, 5)
    restored.set_state(json.loads(json.dumps(whole.get_state())))
    # What has ended is not read again where its turn would come.
    assert sorted([*read, *rest, *restored]) == [10 * k + at for k in range(6) for at in range(4)]


def test_a_pass_keeps_its_processes_and_iterators_when_it_is_set_to_a_state() -> None:
    opened: list[int] = []

    class Opened(grain.IterDataset[int]):
        def __iter__(self) -> Any:
            opened.append(1)
            return self._parent.__iter__()

    mixed = grain.IterDataset.mix([Opened(grain.MapDataset.range(9).to_iter_dataset())] * 2).__iter__()
    after(mixed, 3)
    state, count = mixed.get_state(), len(opened)
    rest = after(mixed, 4)
    mixed.set_state(state)
    assert after(mixed, 4) == rest and len(opened) == count


def test_grains_state_of_named_streams_inside_of_another_stage() -> None:
    named = grain.IterDataset.mix({"b": parts({"b": 1}), "a": parts({"a": 1})})
    ds = grain.experimental.ZipIterDataset([named, grain.MapDataset.range(50).to_iter_dataset()], strict=False)
    it = ds.__iter__()
    after(it, 3)
    state = it.get_state()
    assert state["parents"][0].keys() == {"parents", "index", "stop"}
    grain.experimental.assert_equal_output_after_checkpoint(ds)


def test_grains_state_of_a_later_epoch_of_streams_is_refused_where_it_is_not_right() -> None:
    def pipeline(epochs: int) -> grain.IterDataset:
        parts = [grain.MapDataset.range(3).to_iter_dataset(), grain.MapDataset.range(10, 15).to_iter_dataset()]
        return grain.experimental.RepeatIterDataset(grain.experimental.InterleaveIterDataset(parts, cycle_length=1), epochs)

    # As Grain 0.2.18 writes it behind the ninth element: the first stream is at its second element, and marked as ended.
    places = {"next_index_in_cycle": 0, "next_index_in_datasets": 1, "iterators_in_use_indices": [0]}
    inner = {**places, "iterators_in_use_states": [{"next_index": 1}], "exhausted": [1], "future_states": {}}
    iterator = iter(pipeline(2))
    with pytest.raises(ValueError, match="which streams have ended"):
        iterator.set_state({"parent": inner, "epoch": 1})
    # Ours say it right.
    done = [next(iterator) for _ in range(9)]
    state = json.loads(json.dumps(iterator.get_state()))
    again = iter(pipeline(2))
    again.set_state(state)
    assert [*done, *again] == list(pipeline(2))


def test_arrays_in_shared_memory_are_given_back_by_threads() -> None:
    kind = grain.multiprocessing.SharedMemoryArray
    kind.enable_async_del(max_outstanding_requests=1)
    try:
        names = []
        for _ in range(4):
            array = kind((2, 2), np.int32)
            array[:] = 7
            view = array[0]
            array.unlink_on_del()
            names.append(array.metadata.name)
            del array
            assert view.tolist() == [7, 7]
            del view
        assert kind._threads is not None
        kind._threads.shutdown()
    finally:
        kind._disable_async_del()
    for name in names:
        with pytest.raises(FileNotFoundError):
            shared_memory.SharedMemory(name=name)


def test_read_threads_have_numbers() -> None:
    class Source:
        def __len__(self) -> int:
            return 300

        def __getitem__(self, index: int) -> int:
            return int(threading.current_thread().name.split("_")[1])

    options = grain.ReadOptions(num_threads=3, prefetch_buffer_size=30)
    with grain.MapDataset.source(Source()).to_iter_dataset(options).__iter__() as it:
        assert set(it) <= {0, 1, 2}


def loader(workers: int = 0, operations: tuple[Any, ...] = ()) -> grain.DataLoader:
    # Made here, so that workers are given it by value: they do not find the module of a test.
    class Plus(grain.transforms.RandomMap):
        def random_map(self, element: int, rng: np.random.Generator) -> int:
            return element + int(rng.integers(1000))

    sampler = grain.samplers.IndexSampler(20, shuffle=True, seed=4, num_epochs=2)
    return grain.DataLoader(
        data_source=grain.sources.RangeDataSource(0, 20, 1),
        sampler=sampler,
        operations=[*operations, Plus(), grain.transforms.Batch(3)],
        worker_count=workers,
    )


def test_a_loader_is_the_same_for_any_worker_count() -> None:
    everything = [batch.tolist() for batch in loader()]
    assert len(everything) == 14
    for workers in (1, 3):
        it = iter(loader(workers))
        assert [b.tolist() for b in after(it, 5)] == everything[:5]
        state = it.get_state()
        assert isinstance(state, bytes)
        resumed = iter(loader(0))
        resumed.set_state(state)
        assert [b.tolist() for b in resumed] == everything[5:]


def test_a_loader_refuses_states_of_others() -> None:
    other = grain.DataLoader(data_source=list(range(9)), sampler=grain.samplers.SequentialSampler(9))
    with pytest.raises(ValueError, match="sampler in checkpoint"):
        iter(other).set_state(iter(loader()).get_state())


class Thrice(grain.experimental.FlatMapTransform):
    max_fan_out = 3

    def flat_map(self, element: int) -> list[int]:
        return [element] * 3


class Drawn(grain.transforms.RandomMap):
    def random_map(self, element: int, rng: np.random.Generator) -> int:
        return int(rng.integers(1 << 30))


def pieces(workers: int, sampler: Any = None) -> grain.DataLoader:
    return grain.DataLoader(
        data_source=list(range(6)),
        sampler=sampler or grain.samplers.IndexSampler(6, shuffle=True, seed=4, num_epochs=1),
        operations=[Drawn(), Thrice(), Drawn(), Thrice(), Drawn(), grain.transforms.Batch(4)],
        worker_count=workers,
        shard_options=grain.sharding.NoSharding(),
    )


def test_pieces_of_a_record_have_random_numbers_of_their_own() -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    everything = [batch.tolist() for batch in pieces(0)]
    assert len({number for batch in everything for number in batch}) == 54
    with contextlib.closing(iter(pieces(2))) as it:
        assert [batch.tolist() for batch in it] == everything
    grain.experimental.assert_equal_output_after_checkpoint(pieces(0))


def test_a_sampler_that_keeps_its_generators_draws_the_same_again() -> None:
    class Kept:
        def __init__(self) -> None:
            self.records = [grain.RecordMetadata(i, i, np.random.default_rng(i)) for i in range(6)]

        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> grain.RecordMetadata:
            return self.records[index]

        def __repr__(self) -> str:
            return "Kept()"

    grain.experimental.assert_equal_output_after_checkpoint(pieces(0, Kept()))


def test_a_zip_keeps_what_one_of_its_datasets_dropped() -> None:
    numbers = grain.MapDataset.range(4)
    zipped = grain.experimental.ZipMapDataset([numbers, numbers.filter(lambda x: x % 2 == 1)])
    assert list(zipped) == [(0, None), (1, 1), (2, None), (3, 3)]


def test_a_default_seed_is_not_looked_for_behind_an_interleave() -> None:
    seeded = grain.MapDataset.range(4).seed(1).to_iter_dataset()
    both = grain.experimental.InterleaveIterDataset([seeded, seeded], cycle_length=2)
    with pytest.raises(ValueError, match="requires a seed"):
        both.random_map(lambda x, rng: x)
    assert len(list(both.seed(2).random_map(lambda x, rng: x))) == 8


def test_what_packing_carries_along_comes_out_as_it_was() -> None:
    source: list[Any] = [{"a": np.arange(3), "n": 7, "t": ("x", None)}, {"a": np.arange(2), "n": np.int8(3), "t": "y"}]
    packed = grain.experimental.FirstFitPackIterDataset(
        grain.MapDataset.source(source).to_iter_dataset(),
        length_struct={"a": 5},
        num_packing_bins=1,
        meta_features=["n", "t"],
    )
    (row,) = packed
    assert [type(n) for n in row["n"]] == [int, np.int8] and row["t"] == [("x", None), "y"]


def test_beginnings_are_replaced_in_no_feature_where_none_is_named(caplog: pytest.LogCaptureFixture) -> None:
    ds = grain.MapDataset.source([{"a": np.arange(5, 9)}] * 2).to_iter_dataset()

    def cut(**options: Any) -> list[list[int]]:
        made = grain.experimental.ConcatThenSplitIterDataset(ds, length_struct={"a": 6}, **options)
        return [row["a"].tolist() for row in made]

    replace = grain.experimental.BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS
    assert cut(bos_handling=replace, bos_token_id=1) == cut()
    assert "replaces no token" in caplog.text
    assert cut(bos_handling=replace, bos_token_id=1, bos_features=["a"]) == [[1, 6, 7, 8, 1, 6], [1, 8, 0, 0, 0, 0]]
    for options in ({"bos_token_id": 1}, {"bos_handling": replace, "bos_features": ["a"]}):
        with pytest.raises(ValueError, match="bos_token_id"):
            cut(**options)


def test_what_has_no_parent_has_no_such_attribute() -> None:
    ds = grain.MapDataset.range(3)
    for one in (ds, ds.to_iter_dataset().__iter__(), grain.IterDataset.mix([ds.to_iter_dataset()] * 2)):
        assert not hasattr(one, "_parent")
    assert ds.to_iter_dataset()._parent is ds


def test_operations_without_a_state_are_run_again() -> None:
    def every_second(records: Iterator[Any]) -> Iterator[Any]:
        for at, record in enumerate(records):
            if at % 2:
                yield record

    grain.experimental.assert_equal_output_after_checkpoint(loader(operations=(every_second,)))


@pytest.mark.parametrize("make", [lambda: loader(), lambda: grain.MapDataset.range(9).to_iter_dataset().batch(2)])
def test_checkpoint_handlers_write_a_file_for_each_process(make: Any, tmp_path: Path) -> None:
    handler = grain.python.PyGrainCheckpointHandler()
    it = iter(make())
    after(it, 2)
    handler.save(tmp_path, it)
    assert [file.name for file in tmp_path.iterdir()] == ["process_0-of-1.json"]
    restored = handler.restore(tmp_path, iter(make()))
    assert [b.tolist() for b in restored] == [b.tolist() for b in it]
    with pytest.raises(ValueError, match="does not exist"):
        handler.restore(tmp_path / "nowhere", it)


def test_batches_may_be_written_to() -> None:
    first = next(iter(grain.MapDataset.range(6).to_iter_dataset().batch(3)))
    first += 1
    assert first.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["FirstFitPackIterDataset", "ConcatThenSplitIterDataset"])
def test_packed_rows_may_be_written_to(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    sequences = [{"x": np.arange(n, dtype=np.int32), "m": n} for n in (3, 5, 2, 4)]
    bins = {"num_packing_bins": 2} if kind.startswith("FirstFit") else {}
    stream = grain.MapDataset.source(sequences).to_iter_dataset()
    stream = getattr(grain.experimental, kind)(stream.map(lambda e: {"x": e["x"]}), length_struct={"x": 8}, **bins)

    def plus_one(row: dict[str, Any]) -> Any:
        row["x"] += 1
        return {name: torch.from_numpy(value) for name, value in row.items()}

    with warnings.catch_warnings():
        # PyTorch warns of an array that is not writable.
        warnings.simplefilter("error")
        rows = list(stream.map(plus_one))
    plain = list(stream)
    assert all(value.flags.writeable for row in plain for value in row.values())
    assert [row["x"].tolist() for row in rows] == [(row["x"] + 1).tolist() for row in plain]


def test_a_slice_may_be_a_list_of_indices() -> None:
    numbers = grain.MapDataset.range(10).map_with_index(lambda index, x: (int(index), int(x)))
    chosen = numbers.slice([3, 1, 4, 1])
    assert list(chosen) == [(3, 3), (1, 1), (4, 4), (1, 1)]
    assert (len(chosen), chosen[5], str(chosen)) == (4, (11, 1), "ReindexMapDataset(indices=[3, 1, 4, 1], len=4)")
    assert list(chosen[1:3]) == [(1, 1), (4, 4)]
    assert [x for _, x in numbers.slice(grain.MapDataset.range(10)[::3])] == [0, 3, 6, 9]
    assert [x for _, x in numbers.slice(np.array([-1, 0]))] == [9, 0]
    assert list(numbers.slice([])) == []
    assert str(numbers.slice(range(10))) == "ReindexMapDataset(indices=[0, 1, ..., 8, 9], len=10)"
    stream = iter(chosen.to_iter_dataset())
    next(stream)
    state = stream.get_state()
    rest = list(stream)
    stream.set_state(state)
    assert list(stream) == rest
    for outside in ([10], [-11]):
        with pytest.raises(gm.ConfigError):
            numbers.slice(outside)[0]


def test_a_mix_has_the_spec_of_its_first_dataset() -> None:
    numbers, texts = grain.MapDataset.range(4), grain.MapDataset.range(4).map(str)
    spec = grain.experimental.get_element_spec(numbers)
    streams = [numbers.to_iter_dataset(), texts.to_iter_dataset()]
    for mixed in (
        grain.MapDataset.mix([numbers, texts]),
        grain.MapDataset.concatenate([numbers, texts]),
        grain.IterDataset.mix(streams),
    ):
        assert grain.experimental.get_element_spec(mixed) == spec


def test_collected_values_of_unequal_number_are_not_cut_by_a_batch() -> None:
    sequences = [{"x": np.ones(n, np.int32), "m": n} for n in (2, 2, 2, 5)]
    stream = grain.MapDataset.source(sequences).to_iter_dataset()
    rows = grain.experimental.FirstFitPackIterDataset(
        stream, length_struct={"x": 6}, num_packing_bins=2, meta_features=["m"], shuffle_bins=False
    )
    assert [row["m"] for row in rows] == [[2, 2, 2], [5]]
    with pytest.raises(ValueError, match="cannot stack 'm'"):
        next(iter(rows.batch(2)))


def test_records_are_packed_by_the_old_operation() -> None:
    operation = grain.experimental.PackAndBatchOperation({"a": 4}, 2)
    source = [{"a": [n] * n} for n in (3, 2, 1, 4, 1)]
    sampler = grain.samplers.SequentialSampler(5)
    (one, two) = grain.DataLoader(data_source=source, sampler=sampler, operations=[operation])
    assert one[0]["a"].tolist() == [[3, 3, 3, 1], [2, 2, 0, 0]]
    assert one[1]["a"].tolist() == [[1, 1, 1, 2], [1, 1, 0, 0]]
    assert two[0]["a"].tolist() == [[4, 4, 4, 4], [1, 0, 0, 0]]


def test_elements_are_sent_to_devices() -> None:
    jax = pytest.importorskip("jax")
    ds = grain.experimental.device_put(grain.MapDataset.range(8).to_iter_dataset().batch(4), jax.devices()[0])
    with ds.__iter__() as it:
        batches = list(it)
    assert [type(batch).__name__ for batch in batches] == ["ArrayImpl"] * 2
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
