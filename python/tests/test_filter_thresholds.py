"""A filter that drops nearly everything says so, and fails where it was told to."""

import logging
from collections.abc import Callable
from typing import Any

import gristmill as gm
import numpy as np
import pytest

NUMBERS = gm.MapDataset.range(4000)
RAISE: dict[str, float | None] = {"raise": 0.95}


def one_thousand(x: Any) -> bool:
    """False of a whole window of numbers, one by one or in ones."""
    return not 2000 <= np.max(x) < 3000


# Straight behind random access, where its elements are evaluated, and behind a stage that has a position.
STREAMS: dict[str, Callable[[], gm.IterDataset]] = {
    "in front": lambda: NUMBERS.to_iter_dataset(),
    "behind": lambda: NUMBERS.to_iter_dataset().limit(4000),
    "behind batches": lambda: NUMBERS.to_iter_dataset().batch(1),
    "interleaved": lambda: gm.IterDataset.interleave([NUMBERS.to_iter_dataset()], cycle_length=1),
    "of workers": lambda: NUMBERS.to_iter_dataset().mp_prefetch(num_workers=1, ram_budget="128MiB"),
}


@pytest.mark.parametrize("where", STREAMS)
def test_it_fails_at_the_end_of_the_window(where: str) -> None:
    ds = STREAMS[where]().filter(one_thousand, **RAISE)
    with iter(ds) as it:
        given = [np.max(next(it)) for _ in range(2000)]
        assert given == list(range(2000))
        with pytest.raises(gm.DataError, match="100.0 % of the last 1000 elements were dropped, the limit is 95.0 %"):
            next(it)


@pytest.mark.parametrize("where", ["in front", "behind"])
def test_a_resumed_pass_fails_at_the_same_place(where: str) -> None:
    ds = STREAMS[where]().filter(lambda x: x < 2500 or x == 3999, **RAISE)
    first = iter(ds)
    for _ in range(2400):
        next(first)
    resumed = iter(ds)
    resumed.set_state(first.get_state())
    for it in (first, resumed):
        assert [next(it) for _ in range(100)] == list(range(2400, 2500))
        with pytest.raises(gm.DataError):
            next(it)


@pytest.mark.parametrize("where", STREAMS)
def test_it_warns(where: str, caplog: pytest.LogCaptureFixture) -> None:
    assert len(list(STREAMS[where]().filter(one_thousand))) == 3000
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gristmill", logging.WARNING)
    assert "a filter drops nearly everything: 100.0 % of the last 1000" in record.getMessage()


def test_thresholds_may_be_none(caplog: pytest.LogCaptureFixture) -> None:
    assert len(list(STREAMS["behind"]().filter(one_thousand, warn=None, **{"raise": None}))) == 3000
    assert not caplog.records


def test_impossible_thresholds_are_refused() -> None:
    with pytest.raises(gm.ConfigError, match="raise threshold is 1.5"):
        STREAMS["behind"]().filter(one_thousand, **{"raise": 1.5})
    condition: Any = {"column": "text", "min_length": 1, "warn": 0.5}
    with pytest.raises(TypeError, match="to_iter"):
        STREAMS["behind"]().filter(**condition)


def test_a_skipped_record_is_a_warning(caplog: pytest.LogCaptureFixture, tmp_path: Any) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\nnot json\n{"a": 3}\n')
    assert len(list(gm.MapDataset.jsonl(path).to_iter(on_bad_record="skip"))) == 2
    assert any("bad record skipped" in record.getMessage() for record in caplog.records)
