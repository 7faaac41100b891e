"""Streams against plain Python."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import gristmill as gm
import pytest


def stream(stop: int) -> gm.IterDataset:
    return gm.MapDataset.range(stop).to_iter_dataset()


def test_elementwise_stages() -> None:
    ds = stream(10).filter(lambda x: x % 2).map(lambda x: -x)
    assert list(ds) == [-1, -3, -5, -7, -9]
    assert list(stream(4).flat_map(lambda x: [x] * x)) == [1, 2, 2, 3, 3, 3]
    assert list(stream(4).flat_map(range)) == [0, 0, 1, 0, 1, 2]


def test_an_index_counts_what_arrives() -> None:
    assert list(stream(6).filter(lambda x: x % 2).map_with_index(lambda i, x: (i, x))) == [(0, 1), (1, 3), (2, 5)]


def test_limits_and_epochs() -> None:
    assert list(stream(9).limit(2).repeat(2)) == [0, 1, 0, 1]
    assert list(stream(2).repeat().limit(5)) == [0, 1, 0, 1, 0]


def test_a_scan_carries_a_state_that_checkpoints_hold() -> None:
    def mean(state: dict[str, int], x: int) -> tuple[dict[str, int], float]:
        state = {"sum": state["sum"] + x, "count": state["count"] + 1}
        return state, state["sum"] / state["count"]

    ds = stream(6).scan(mean, {"sum": 0, "count": 0})
    expected = [0, 0.5, 1, 1.5, 2, 2.5]
    assert list(ds) == expected == list(ds.loader(threads=2))
    it = iter(ds)
    assert [next(it), next(it)] == expected[:2]
    state = it.get_state()
    assert state["state"]["value"] == {"sum": 1, "count": 2}
    rest = iter(ds)
    rest.set_state(state)
    assert list(rest) == expected[2:]
    with pytest.raises(TypeError, match=r"must return \(state, element\), and returned 3"):
        list(stream(4).scan(lambda _, x: x + 3, None))
    with pytest.raises(TypeError, match="JSON"):
        list(stream(4).scan(lambda _, x: ({x}, x), None))


def test_a_cache_calls_a_function_once() -> None:
    calls: list[int] = []
    ds = stream(3).map(lambda x: calls.append(x) or {"x": x}).cache().repeat(3)
    assert [e["x"] for e in ds] == [0, 1, 2] * 3
    assert calls == [0, 1, 2]


def test_random_numbers_belong_to_the_place() -> None:
    ds = stream(20).random_map(lambda x, rng: (x, rng.integers(1 << 40)), seed=7)
    everything = list(ds)
    assert everything == list(ds)
    same = gm.MapDataset.range(20).random_map(lambda x, rng: (x, rng.integers(1 << 40)), seed=7)
    assert everything == list(same)


def test_streams_combine() -> None:
    a, b = stream(4), gm.MapDataset.range(10, 14).to_iter_dataset()
    assert list(gm.IterDataset.interleave([a, b], 2)) == [0, 10, 1, 11, 2, 12, 3, 13]
    assert list(gm.IterDataset.mix([a, b], [2, 1])) == [0, 1, 10, 2, 3, 11]


def test_a_window_is_shuffled_in_place() -> None:
    shuffled = list(stream(9).window_shuffle(3, 42))
    assert [sorted(shuffled[i : i + 3]) for i in (0, 3, 6)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert shuffled != list(range(9))


def test_compressed_files_are_streams(jsonl: Path) -> None:
    packed = jsonl.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(jsonl.read_bytes()))
    assert [int(e["n"]) for e in gm.IterDataset.jsonl(packed)] == list(range(20))
    with pytest.raises(gm.ConfigError, match="no random access") as caught:
        gm.MapDataset.jsonl(packed)
    assert "IterDataset" in (caught.value.help or "")


def test_a_pipeline_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("source: {range: 9}\nstages: [filter: {column: index, min: 7}]\n")
    assert [int(e["index"]) for e in gm.IterDataset.from_file(path)] == [7, 8]


def test_bad_records_are_skipped_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"n": 1}\n{"n": oops}\n{"n": 3}\n')
    ds = gm.MapDataset.jsonl(path, index_cache="off")
    assert [int(e["n"]) for e in ds.to_iter(on_bad_record="skip")] == [1, 3]
    with pytest.raises(gm.DataError, match="bad.jsonl: line 2"):
        list(ds)


def test_bad_records_of_a_stream_are_skipped_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}\n{"n": oops}\n{\n{"n": 3}\n'))
    ds = gm.IterDataset.jsonl(path)
    assert [int(e["n"]) for e in ds.skip_bad_records(consecutive=2)] == [1, 3]
    assert [int(e["n"]) for e in ds.map(dict).skip_bad_records()] == [1, 3]
    assert [int(e["n"]) for e in gm.MapDataset.range(3).map(lambda n: {"n": n}).to_iter_dataset().skip_bad_records()] == [0, 1, 2]
    it = iter(ds.skip_bad_records(2))
    assert int(next(it)["n"]) == 1
    again = iter(ds.skip_bad_records(2))
    again.set_state(it.get_state())
    assert [int(e["n"]) for e in again] == [3]
    with pytest.raises(gm.DataError, match="1 bad records in a row were skipped before it"):
        list(ds.skip_bad_records(consecutive=1))


def test_an_iterator_closes() -> None:
    with stream(5).loader() as it:
        assert next(it) == 0
    it.close()
    with pytest.raises(ValueError, match="closed"):
        next(it)


def test_the_report_knows_the_stages() -> None:
    it = stream(50).map(lambda x: x).batch(5).loader()
    assert sum(1 for _ in it) == 10
    report = it.report()
    assert [stage["name"] for stage in report.as_dict()["stages"]] == ["range", "map", "to_iter", "batch"]
    assert report.as_dict()["delivered"] == 10
    assert "VERDICT" in str(report)


class Epochs:
    """A stream whose order is that of its epoch, as a shuffled stream of Hugging Face."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        yield from range(10 * self.epoch, 10 * self.epoch + 3)


def test_set_epoch_is_called_before_each_epoch() -> None:
    def epochs(count: int) -> gm.IterDataset:
        return gm.IterDataset.source(Epochs(), epochs=count)

    expected = [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert list(epochs(3)) == expected
    assert list(gm.IterDataset.source(Epochs()).repeat(2)) == [0, 1, 2] * 2
    for threads in (0, 2):
        for stop in range(10):
            it, other = epochs(3).loader(threads=threads), epochs(3).loader(threads=threads)
            assert [next(it) for _ in range(stop)] == expected[:stop]
            other.set_state(it.get_state())
            assert list(other) == expected[stop:]
    assert repr(epochs(3)) != repr(epochs(2))


def test_a_pass_sets_its_epoch_before_its_first_element() -> None:
    ds = gm.IterDataset.source(Epochs(), epochs=2)
    first = ds.loader()
    assert list(ds) == [0, 1, 2, 10, 11, 12]
    assert list(first) == [0, 1, 2, 10, 11, 12]


def test_epochs_need_set_epoch_and_fit_the_state() -> None:
    with pytest.raises(TypeError, match="has none: `repeat` reads it several times"):
        gm.IterDataset.source([1, 2], epochs=2)
    with pytest.raises(ValueError, match="epochs is 0, and must be 1 or more"):
        gm.IterDataset.source(Epochs(), epochs=0)
    it = gm.IterDataset.source(Epochs(), epochs=2).loader()
    state = it.get_state()
    with pytest.raises(gm.StateError):
        gm.IterDataset.source(Epochs()).loader().set_state(state)
