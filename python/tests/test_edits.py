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
