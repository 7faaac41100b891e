"""Mixes whose weights change, count tokens, or outlive their datasets."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

Document = dict[str, Any]


def numbers(start: int, count: int) -> gm.MapDataset[int]:
    return gm.MapDataset.range(start, start + count)


def documents(start: int, count: int, tokens: int) -> gm.IterDataset[Document]:
    """Documents of 1 to `tokens` tokens."""

    def document(x: int) -> Document:
        return {"id": x, "tokens": np.zeros(1 + x % tokens, np.int32)}

    return gm.MapDataset.range(start, start + count).map(document).to_iter_dataset()


def ids(ds: Iterable[Document]) -> list[int]:
    return [int(element["id"]) for element in ds]


ENTRIES: list[tuple[int, dict[str, float]]] = [(0, {"web": 1.0}), (4, {"web": 1, "math": 3}), (12, {"math": 1})]
EXPECTED = [0, 1, 2, 3, 100, 4, 101, 102, 103, 5, 104, 105, 106, 107]


def test_weights_change_in_both_worlds() -> None:
    maps = {"web": numbers(0, 9), "math": numbers(100, 8)}
    for weights in gm.schedule(ENTRIES), ENTRIES, gm.schedule([(0, [1, 0]), (4, [1, 3]), (12, [0, 1])]):
        mixed = gm.MapDataset.mix(maps, weights)
        assert len(mixed) == len(EXPECTED)
        assert sorted(mixed) == sorted(EXPECTED)
        streams = {name: ds.to_iter_dataset() for name, ds in maps.items()}
        assert list(gm.IterDataset.mix(streams, weights)) == list(mixed)
    assert list(mixed)[:4] == [0, 1, 2, 3] and list(mixed)[12:] == [106, 107]


def test_positions_may_be_steps() -> None:
    maps = [numbers(0, 50), numbers(100, 50)]
    steps = gm.schedule([(0, [1, 0]), (2, [0, 1])], over=1, batch_size=4)
    assert list(gm.MapDataset.mix(maps, steps)[:16]) == [*range(8), 8, 9, 100, 101, 102, 103, 104, 105]
    assert pickle.loads(pickle.dumps(steps)) == steps


def test_tokens_are_counted() -> None:
    streams = {"long": documents(0, 300, 40), "short": documents(1000, 9000, 3)}
    mixed = gm.IterDataset.mix(streams, by="tokens")
    taken, longest = {True: 0, False: 0}, 40
    for element in mixed.limit(2000):
        taken[element["id"] < 1000] += len(element["tokens"])
        assert abs(taken[True] - taken[False]) <= 2 * longest
    # By documents, each stream has half of the documents.
    by_documents = [len(element["tokens"]) for element in gm.IterDataset.mix(streams).limit(500)]
    assert sum(by_documents[::2]) > 8 * sum(by_documents[1::2])


def test_every_executor_and_every_resume_has_one_order() -> None:
    weights = gm.schedule([(0, {"a": 2, "b": 1, "c": 0.1}), (300, {"b": 1, "c": 1})], over=100)
    streams = {"a": documents(0, 60, 7), "b": documents(1000, 50, 5), "c": documents(2000, 40, 9)}
    mixed = gm.IterDataset.mix(streams, weights, by="tokens", at_end="redistribute", budget={"a": 1e2})
    expected = ids(mixed)
    assert len(expected) > 100 and sum(1 + x % 7 for x in expected if x < 1000) in range(100, 107)
    assert ids(mixed.loader(threads=2)) == expected
    assert ids(mixed.mp_prefetch(2)) == expected
    for at in 0, 17, 80, len(expected):
        it = iter(mixed)
        assert [int(next(it)["id"]) for _ in range(at)] == expected[:at]
        resumed = mixed.loader(threads=1)
        resumed.set_state(json.loads(json.dumps(it.get_state())))
        assert ids(resumed) == expected[at:]


def test_hosts_that_plan_by_keys_have_the_rows_of_one_host(tmp_path: Path) -> None:
    Path(tmp_path, "a.jsonl").write_text("".join(json.dumps({"text": "x" * (1 + i % 17)}) + "\n" for i in range(400)))
    Path(tmp_path, "b.jsonl").write_text("".join(json.dumps({"text": "y" * (1 + i % 5)}) + "\n" for i in range(600)))

    def tokens(name: str) -> gm.IterDataset[Any]:
        ds = gm.MapDataset.jsonl(tmp_path / f"{name}.jsonl").shuffle(seed=1)
        return ds.map(lambda e: {"ids": np.frombuffer(e["text"].encode(), np.uint8).astype(np.int32)}).to_iter_dataset()

    weights = gm.schedule([(0, [1, 1]), (700, [1, 4])], over=300)
    mixed = gm.IterDataset.mix([tokens("a"), tokens("b")], weights, by="tokens", column="ids")
    ds = mixed.window_pack(length={"ids": 32}).batch(12, drop_remainder=True)
    whole = [batch["ids"] for batch in ds]
    assert len(whole) > 3
    ds.make_keys(tmp_path / "keys")
    for rank in range(3):
        with ds.loader(part=(rank, 3), keys=tmp_path / "keys") as batches:
            own = [batch["ids"] for batch in batches]
            assert "plans all rows from keys" in " ".join(str(batches.report()).split())
        assert all(np.array_equal(a, b[4 * rank : 4 * rank + 4]) for a, b in zip(own, whole, strict=True))


def test_a_state_restores_under_a_longer_schedule() -> None:
    streams = {"web": documents(0, 400, 7), "math": documents(1000, 400, 5)}

    def mixed(*later: tuple[int, dict[str, float]]) -> gm.IterDataset[Document]:
        weights = gm.schedule([(0, {"web": 0.7, "math": 0.3}), *later])
        return gm.IterDataset.mix(streams, weights, by="tokens")

    it = iter(mixed())
    before = [int(next(it)["id"]) for _ in range(100)]
    state = it.get_state()
    assert state["state"]["progress"]["schedule"] == ["0: [0.7, 0.3]"]
    position = state["state"]["index"]
    changed = mixed((position + 50, {"web": 0.2, "math": 0.8}))
    assert ids(changed)[:100] == before
    resumed = iter(changed)
    resumed.set_state(state)
    assert before + ids(resumed) == ids(changed)
    with pytest.raises(gm.StateError, match=r"entry 1 of the schedule was nothing and is `50: \[0.1, 0.9\]`"):
        iter(mixed((50, {"web": 0.1, "math": 0.9}))).set_state(state)


def test_datasets_end() -> None:
    streams = {"a": numbers(0, 2).to_iter_dataset(), "b": numbers(10, 5).to_iter_dataset()}
    assert list(gm.IterDataset.mix(streams)) == [0, 10, 1, 11]
    assert list(gm.IterDataset.mix(streams, at_end="redistribute")) == [0, 10, 1, 11, 12, 13, 14]
    assert list(gm.IterDataset.mix(streams, at_end="redistribute", budget={"b": 3})) == [0, 10, 1, 11, 12]
    repeated = iter(gm.IterDataset.mix(streams, at_end="repeat"))
    assert [next(repeated) for _ in range(12)] == [0, 10, 1, 11, 0, 12, 1, 13, 0, 14, 1, 10]
    assert repeated.get_state()["state"]["progress"]["epochs"] == [2, 1]
    assert list(gm.MapDataset.mix([numbers(0, 2), numbers(10, 3)], at_end="repeat")[:8]) == [0, 10, 1, 11, 0, 12, 1, 10]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"weights": {"wbe": 1.0, "math": 1.0}}, "no part of the mix is named `wbe`"),
        ({"weights": [1.0]}, "1 weights for 2 parts"),
        ({"weights": [1.0, -1.0]}, "mix weight -1 of component 1"),
        ({"weights": gm.schedule([(0, [1, 1]), (9, [1, float("nan")])])}, "nan|number"),
        ({"weights": gm.schedule([(0, [1, 1]), (9, [1, -2])])}, "entry 1 of the schedule has weight -2 for component 1"),
        ({"weights": gm.schedule([(0, [1, 1]), (9, [0, 0])])}, "has no weight above 0"),
        ({"weights": gm.schedule([(0, [1, 1]), (9, [1, 2]), (9, [2, 1])])}, "entry 2 of the schedule begins at 9"),
        ({"weights": gm.schedule([(5, [1, 1])])}, "must be at position 0"),
        ({"weights": gm.schedule([(0, [1, 1]), (9, [1, 2, 3])])}, "3 weights for 2 parts"),
        ({"weights": gm.schedule([(0, [1, 1])], batch_size=0)}, "batch_size: is 0, and must be at least 1"),
        ({"at_end": "restart"}, "`restart` is none of stop, repeat, redistribute"),
        ({"by": "token"}, "`token` is none of elements, tokens"),
        ({"budget": {"web": 0}}, "is 0, and must be at least 1"),
        ({"budget": {"wbe": 5}}, "no part of the mix is named `wbe`"),
    ],
)
def test_an_impossible_mix_is_refused(arguments: dict[str, Any], words: str) -> None:
    streams = {"web": numbers(0, 3).to_iter_dataset(), "math": numbers(10, 3).to_iter_dataset()}
    with pytest.raises(gm.ConfigError, match=words):
        gm.IterDataset.mix(streams, **arguments)


def test_what_is_wrong_is_named_with_the_remedy() -> None:
    with pytest.raises(gm.ConfigError, match="did you mean `math`"):
        gm.MapDataset.mix({"web": numbers(0, 3), "math": numbers(9, 3)}, {"web": 1, "maths": 1})
    with pytest.raises(gm.ConfigError, match=r"`IterDataset.mix`"):
        gm.MapDataset.mix([numbers(0, 3), numbers(9, 3)], at_end="redistribute")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="weights are a list of numbers"):
        gm.MapDataset.mix([numbers(0, 3)], "much")
    with pytest.raises(TypeError, match="entry 1 of a schedule"):
        gm.schedule([(0, [1]), (3,)])  # type: ignore[list-item]
    streams = [numbers(0, 3).to_iter_dataset(), numbers(10, 3).to_iter_dataset()]
    with pytest.raises(gm.Error, match="dicts of arrays"):
        list(gm.IterDataset.mix(streams, by="tokens"))
    with pytest.raises(gm.DataError, match="tokens"):
        list(gm.IterDataset.mix([stream.map(lambda x: {"x": np.zeros(x)}) for stream in streams], by="tokens"))
