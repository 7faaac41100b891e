"""What goes wrong is said in Grain's words, and what the core knows of it stays beside them."""

import gc
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import gristmill.compat.grain as grain
import pytest

@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    """A traceback holds a pass, and that its worker processes."""
    yield
    gc.collect()


NUMBERS = grain.MapDataset.range(2000).to_iter_dataset()
WORKER = grain.MultiprocessingOptions(num_workers=1)


class DropAll(grain.transforms.Filter):
    def filter(self, element: int) -> bool:
        return False


def failing(ds: Any, kind: type[Exception]) -> Exception:
    with pytest.raises(kind) as caught:
        list(ds)
    return caught.value


def test_a_filter_is_named() -> None:
    options = grain.experimental.DatasetOptions(filter_raise_threshold_ratio=0.9)
    for ds in (NUMBERS.filter(DropAll()), NUMBERS.mp_prefetch(WORKER).filter(DropAll())):
        error = failing(grain.experimental.WithOptionsIterDataset(ds, options), ValueError)
        words = "Transformation FilterDatasetIterator(transform=DropAll) skipped 100.00 % of the last seen 1000 elements."
        assert str(error) == words and isinstance(error, gm.DataError)
        assert "100.0 % of the last 1000 elements were dropped, the limit is 90.0 %" in "\n".join(error.__notes__)


def test_a_warning_is_in_both_words(caplog: pytest.LogCaptureFixture) -> None:
    assert list(NUMBERS.filter(DropAll())) == []
    said = caplog.records[0].getMessage()
    assert said.startswith("Transformation FilterDatasetIterator(transform=DropAll) skipped 100.00 %")
    assert "(gristmill: a filter drops nearly everything" in said


def test_a_filter_has_thresholds_wherever_the_options_stand() -> None:
    options = grain.experimental.DatasetOptions(filter_raise_threshold_ratio=0.9)
    before = grain.experimental.WithOptionsIterDataset(NUMBERS.batch(1), options).filter(DropAll())
    failing(before, gm.DataError)


def test_streams_of_different_lengths() -> None:
    short = grain.MapDataset.range(3).to_iter_dataset()
    long = grain.MapDataset.range(4).to_iter_dataset()
    texts = {
        "ZipIterDataset argument 2 is shorter than argument 1": [long, short],
        "ZipIterDataset argument 3 is shorter than arguments 1-2": [long, long, short],
        "ZipIterDataset argument 2 is longer than argument 1": [short, long],
        "ZipIterDataset argument 4 is longer than arguments 1-3": [short, short, short, long],
    }
    for text, streams in texts.items():
        assert str(failing(grain.experimental.ZipIterDataset(streams), ValueError)) == text


def test_a_function_that_ends_its_program() -> None:
    error = failing(NUMBERS.map(lambda _: sys.exit(3)).mp_prefetch(WORKER), RuntimeError)
    assert "terminated unexpectedly with exit code 3" in str(error)


class Secret:
    def __getstate__(self) -> Any:
        raise ValueError("secrets do not leave")


def test_what_cannot_be_sent_is_a_dataset() -> None:
    secret = Secret()
    ds = NUMBERS.map(lambda x: x).map(lambda x: x if secret else x).map(str).mp_prefetch(WORKER)
    error = failing(ds, ValueError)
    assert "secrets do not leave" in str(error)
    (named,) = [note for note in error.__notes__ if note.startswith("Dataset: ")]
    assert named.startswith("Dataset: MapIterDataset(transform=<lambda>") and named.endswith("cannot be pickled!")


@pytest.fixture
def setting() -> Iterator[Any]:
    yield lambda mode: grain.config.update("py_traceback_filtering", mode)
    grain.config.update("py_traceback_filtering", "auto")


def fails(x: int) -> int:
    raise LookupError(x)


@pytest.mark.parametrize("mode", ["off", "tracebackhide", "quiet_remove_frames", "remove_frames"])
def test_frames_of_the_package_may_be_hidden(mode: str, setting: Any) -> None:
    setting(mode)
    error = failing(NUMBERS.map(fails).mp_prefetch(WORKER), LookupError)
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].name == "fails"
    ours = [frame for frame in frames if Path(frame.filename).name == "_iterator.py"]
    assert len(ours) == (0 if mode.endswith("remove_frames") else 1)
    if mode == "remove_frames":
        assert error.__cause__ is not None
        assert "_iterator.py" in str(traceback.extract_tb(error.__cause__.__traceback__))
    if mode == "quiet_remove_frames":
        assert any("py_traceback_filtering" in note for note in error.__notes__)


def test_a_state_starts_no_workers() -> None:
    # A function that no other process can have.
    secret = Secret()
    ds = NUMBERS.map(lambda x: x if secret else x).mp_prefetch(WORKER)
    it = ds.__iter__()
    assert it.get_state() == {"next_index": 0}
    it.set_state({"next_index": 5})
    assert it.get_state() == {"next_index": 5}
    with pytest.raises(IndexError, match="out of range"):
        it.set_state({"next_index": 2001})
    with pytest.raises(gm.ConfigError):
        next(it)


def test_a_state_given_before_the_workers_start_is_where_they_do() -> None:
    ds = NUMBERS.map(lambda x: -x).mp_prefetch(WORKER)
    with ds.__iter__() as it:
        it.set_state({"next_index": 1995})
        assert list(it) == [-1995, -1996, -1997, -1998, -1999]
