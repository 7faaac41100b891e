"""Functions say that a record is bad: it is left out and counted where that is asked for, whoever calls them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

WORKERS: dict[str, Any] = {"num_workers": 1, "ram_budget": "600MiB"}
HOW: dict[str, Callable[[gm.IterDataset], gm.DatasetIterator]] = {
    "inline": gm.IterDataset.loader,
    "threads": lambda ds: ds.loader(threads=2),
    "workers": lambda ds: ds.mp_prefetch(**WORKERS).loader(),
}
GOOD = [x for x in range(40) if x % 5 != 3]


def decode(x: int) -> int:
    if x % 5 == 3:
        raise gm.BadRecord(f"{x} is no image")
    return x


class Source:
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        return decode(index)


#: Where functions are called that say so.
CASES: dict[str, Callable[[], gm.IterDataset]] = {
    "map": lambda: gm.MapDataset.range(40).map(decode).to_iter(on_bad_record="skip"),
    "source": lambda: gm.MapDataset.source(Source()).to_iter(on_bad_record="skip"),
    "filter": lambda: gm.MapDataset.range(40).filter(lambda x: decode(x) >= 0).to_iter(on_bad_record="skip"),
    "map of a stream": lambda: gm.MapDataset.range(40).to_iter_dataset().map(decode).skip_bad_records(),
    "behind a shuffle": lambda: gm.MapDataset.range(40).to_iter_dataset().window_shuffle(1, 1).map(decode).skip_bad_records(),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("case", CASES)
def test_a_record_that_a_function_calls_bad_is_left_out_and_counted(case: str, how: str) -> None:
    with HOW[how](CASES[case]()) as it:
        first = [next(it) for _ in range(10)]
        state = it.get_state()
        assert first + list(it) == GOOD
        assert ["bad records skipped", 8] in it.report().as_dict()["notes"]
        it.set_state(state)
        assert list(it) == GOOD[10:]


@pytest.mark.parametrize("how", HOW)
def test_beyond_the_limit_it_is_raised_with_what_was_skipped(how: str) -> None:
    ds = gm.MapDataset.range(40).map(decode).to_iter(on_bad_record="skip", bad_record_limit=2)
    with HOW[how](ds) as it, pytest.raises(gm.BadRecord, match="13 is no image") as raised:
        list(it)
    assert any("element 13; 2 bad records were skipped before it" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("error", [gm.BadRecord, gm.DataError])
def test_without_a_policy_it_ends_the_run_as_it_was_raised(error: type[Exception]) -> None:
    def fails(x: int) -> int:
        raise error("spoiled")

    with pytest.raises(error, match="spoiled") as raised:
        list(gm.MapDataset.range(3).map(fails))
    assert any("stage 1 map, element 0" in note for note in raised.value.__notes__)
    assert list(gm.MapDataset.range(3).map(fails).to_iter(on_bad_record="skip")) == []


def test_other_exceptions_are_no_bad_records() -> None:
    ds = gm.MapDataset.range(3).map(lambda x: 1 // x).to_iter(on_bad_record="skip")
    with pytest.raises(ZeroDivisionError):
        list(ds)


def test_a_shard_that_cannot_be_opened_is_left_out_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, rows in [("a", 2), ("b", 3)]:
        with gm.sink(tmp_path / name, "safetensors") as sink:
            for row in range(rows):
                sink.write({"x": np.full(2, row, np.int64)})
        (tmp_path / name / "shard-00000.safetensors").rename(tmp_path / f"{name}.safetensors")
    (tmp_path / "a.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes()[:20])
    files = str(tmp_path / "*.safetensors")
    with pytest.raises(gm.DataError, match=r"a\.safetensors"):
        gm.MapDataset.safetensors(files, rows=True)
    assert len(gm.MapDataset.safetensors(files, rows=True, on_bad_shard="skip")) == 3
    assert "shard skipped" in caplog.text and "a.safetensors" in caplog.text
    with pytest.raises(gm.DataError, match="every shard is damaged"):
        gm.MapDataset.safetensors(str(tmp_path / "a.safetensors"), rows=True, on_bad_shard="skip")
