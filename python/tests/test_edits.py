"""Edits of a run: from a list, from a file, and while the run continues."""

import pytest

import gristmill as gm


def mixed() -> gm.IterDataset:
    parts = {"web": gm.MapDataset.range(100), "books": gm.MapDataset.range(500, 600)}
    return gm.IterDataset.mix({name: part.to_iter_dataset() for name, part in parts.items()}).batch(2)


def rows(batches, count: int) -> list[list[int]]:
    return [next(batches).tolist() for _ in range(count)]


CHANGES = [{"at": 1, "mix": {"web": 1, "books": 3}}, {"at": 4, "remove": ["web"]}, {"at": 5, "global_batch": 3}]


@pytest.mark.parametrize("threads", [None, 2])
def test_an_edit_of_a_running_pass_is_an_edit_from_the_start(threads, tmp_path):
    options = {} if threads is None else {"threads": threads}
    whole = rows(mixed().loader(edits=CHANGES, **options), 8)
    assert [len(batch) for batch in whole] == [2] * 5 + [3] * 3
    assert all(row >= 500 for batch in whole[4:] for row in batch)
    with mixed().loader(**options) as batches:
        first = rows(batches, 1)
        assert batches.edit(mix={"web": 1, "books": 3}) == 1
        assert batches.edit(at=4, remove="web") == 4
        assert batches.edit(at=5, global_batch=3) == 5
        assert first + rows(batches, 5) == whole[:6]
        state = batches.get_state()
    assert state["edits"] == ["at 1: mix {books: 3.0, web: 1.0}", "at 4: remove web", "at 5: global_batch 3"]
    file = tmp_path / "edits.yaml"
    file.write_text("- {at: 1, mix: {web: 1, books: 3}}\n- {at: 4, remove: web}\n- {at: 5, global_batch: 3}\n")
    again = mixed().loader(edits=file, **options)
    again.set_state(state)
    assert rows(again, 2) == whole[6:]


def test_an_edit_that_cannot_apply_leaves_the_run():
    batches = mixed().loader()
    rows(batches, 2)
    with pytest.raises(gm.ConfigError, match="at batch 1, which has begun; the first batch that can change is 2"):
        batches.edit(at=1, skip=3)
    with pytest.raises(gm.ConfigError, match="fits no mix of the pipeline"):
        batches.edit(mix={"code": 1})
    with pytest.raises(gm.ConfigError, match="an edit without a change"):
        batches.edit()
    with pytest.raises(TypeError):
        batches.edit(skipped=3)
    assert rows(batches, 1) == [[2, 502]]


def test_records_of_a_batch_are_excluded_by_the_output_of_which(tmp_path):
    file = tmp_path / "part-0.jsonl"
    file.write_text("".join(f'{{"x": {number}}}\n' for number in range(40)))
    records = gm.MapDataset.jsonl(file)

    def batches(**options):
        return records.shuffle(seed=1).map(lambda record: int(record["x"])).to_iter_dataset().batch(4).loader(**options)

    plain = [batch.tolist() for batch in batches()]
    (tmp_path / "spike.txt").write_text(f"part-0.jsonl {plain[3][0]}\npart-0.jsonl {plain[5][2]}\n")
    edits = [{"at": 2, "exclude": str(tmp_path / "spike.txt"), "how": "refill"}]
    expected = [x for batch in plain[2:] for x in batch if x not in (plain[3][0], plain[5][2])]
    for threads in (None, 2):
        options = {} if threads is None else {"threads": threads}
        edited = [batch.tolist() for batch in batches(edits=edits, **options)]
        assert edited[:2] == plain[:2]
        assert [x for batch in edited[2:] for x in batch] == expected
    with batches(threads=2) as running:
        first = rows(running, 2)
        excluded = [{"file": "part-0.jsonl", "record": number} for number in (plain[3][0], plain[5][2])]
        assert running.edit(exclude=excluded) == 2
        assert first + [batch.tolist() for batch in running] == edited
    with pytest.raises(gm.ConfigError, match="no source of the pipeline has record 40 of part-0.jsonl"):
        batches(edits=[{"at": 2, "exclude": [{"file": "part-0.jsonl", "record": 40}]}])
    with pytest.raises(gm.ConfigError, match="`how` is an argument of `exclude`"):
        batches(edits=[{"at": 2, "skip": 1, "how": "refill"}])
