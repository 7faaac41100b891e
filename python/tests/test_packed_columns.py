"""Columns of packed rows: sequences as attention kernels take them, labels as losses take them."""

from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import pytest

# Lengths that leave padding in rows of 16.
DOCUMENTS = [list(range(100 * n + 1, 100 * n + 2 + n % 7)) for n in range(40)]


def packed() -> gm.IterDataset[dict[str, Any]]:
    ds = gm.MapDataset.source(DOCUMENTS).map(lambda tokens: {"tokens": np.array(tokens, np.int32)})
    return ds.to_iter_dataset().first_fit_pack(length={"tokens": 16}, num_packing_bins=4)


def sequences(positions: np.ndarray[Any, Any]) -> list[int]:
    """What `prepare_fa_kwargs_from_position_ids` of transformers makes of positions: a sequence begins at each least position."""
    flat = positions.reshape(-1)
    return [*np.flatnonzero(flat == flat.min()).tolist(), len(flat)]


def test_padding_is_one_sequence_if_its_positions_restart() -> None:
    plain = next(iter(packed().batch(4)))
    padding = int((plain["tokens_segment_ids"] == 0).sum())
    bounds = sequences(plain["tokens_positions"])
    runs = sum(1 for row in plain["tokens_segment_ids"] if (row == 0).any())
    assert padding > runs > 0
    made = next(iter(packed().batch(4).packed_columns(padding_positions="restart", cu_seqlens=True)))
    assert sequences(made["tokens_positions"]) == made["cu_seqlens"].tolist()
    assert len(made["cu_seqlens"]) == len(bounds) - padding + runs
    assert int(made["max_seqlen"]) == np.diff(made["cu_seqlens"]).max()
    joined = next(iter(packed().batch(4).packed_columns(padding_positions="continue", cu_seqlens=True)))
    assert sequences(joined["tokens_positions"]) == joined["cu_seqlens"].tolist()
    assert len(joined["cu_seqlens"]) == len(bounds) - padding
    assert made["cu_seqlens"].dtype == made["max_seqlen"].dtype == np.int32


@pytest.mark.parametrize("positions", ["restart", "continue"])
def test_transformers_finds_these_sequences(positions: Any) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")
    reason = "transformers is not installed: pip install transformers"
    attention: Any = pytest.importorskip("transformers.modeling_flash_attention_utils", reason=reason)
    for made in packed().batch(4).packed_columns(padding_positions=positions, cu_seqlens=True):
        found = attention.prepare_fa_kwargs_from_position_ids(torch.from_numpy(made["tokens_positions"]))
        assert found[0][0].tolist() == made["cu_seqlens"].tolist() and int(found[1][0]) == made["max_seqlen"]


def test_labels_are_those_of_one_document() -> None:
    seen = []
    for batch in packed().packed_columns(labels="shifted").batch(4):
        assert batch["labels"].dtype == np.int64 and batch["labels"].shape == batch["tokens"].shape
        for tokens, ids, labels in zip(batch["tokens"], batch["tokens_segment_ids"], batch["labels"], strict=True):
            assert (labels[ids == 0] == -100).all()
            for segment in range(1, ids.max() + 1):
                assert labels[ids == segment].tolist() == [*tokens[ids == segment][1:].tolist(), -100]
                seen.append(tokens[ids == segment].tolist())
    assert sorted(seen) == sorted(DOCUMENTS)
    for batch in packed().batch(4).packed_columns(labels="unshifted"):
        # A model that shifts compares the label of the next token.
        shifted = batch["labels"][:, 1:]
        same = batch["tokens_segment_ids"][:, 1:] == batch["tokens_segment_ids"][:, :-1]
        real = same & (batch["tokens_segment_ids"][:, 1:] > 0)
        assert (shifted[real] == batch["tokens"][:, 1:][real]).all() and (shifted[~real] == -100).all()
        assert (batch["labels"][:, 0] == -100).all()


def test_shapes_are_fixed_before_batch_and_after_it() -> None:
    before = list(packed().packed_columns(cu_seqlens=True, max_segments=18).batch(4))
    after = list(packed().batch(4).packed_columns(cu_seqlens=True, max_segments=70))
    for rows, batch in zip(before, after, strict=True):
        assert rows["cu_seqlens"].shape == (len(rows["tokens"]), 19) and rows["max_seqlen"].shape == (len(rows["tokens"]),)
        assert batch["cu_seqlens"].shape == (71,) and batch["cu_seqlens"][-1] == rows["tokens"].size
        flat = {row * 16 + bound for row, bounds in enumerate(rows["cu_seqlens"].tolist()) for bound in bounds}
        assert set(batch["cu_seqlens"].tolist()) == flat
        assert batch["max_seqlen"] == rows["max_seqlen"].max()
    with pytest.raises(gm.DataError, match="segments, but `max_segments` is 2"):
        list(packed().packed_columns(cu_seqlens=True, max_segments=2))


def test_parts_of_hosts_and_pipeline_files_have_these_columns(tmp_path: Path) -> None:
    ds = packed().packed_columns(labels="unshifted", cu_seqlens=True, max_segments=18).batch(4, drop_remainder=True)
    whole = list(ds)
    for part in range(2):
        for batch, rows in zip(whole, ds.loader(part=(part, 2), guard=None), strict=True):
            for name, column in rows.items():
                assert np.array_equal(column, batch[name][2 * part : 2 * part + 2]), name
    file = tmp_path / "packed.yaml"
    file.write_text(
        "source: {memory: {records: [{tokens: [1, 2, 3]}, {tokens: [4, 5]}]}}\n"
        "stages: [to_iter, {window_pack: {length: {tokens: 8}}}, {packed_columns: {labels: shifted, cu_seqlens: true}}]\n"
    )
    (row,) = gm.IterDataset.from_file(file)
    assert row["labels"].tolist() == [2, 3, -100, 5, -100, -100, -100, -100]
    assert row["cu_seqlens"].tolist() == [0, 3, 5, 8]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(gm.ConfigError, match="it changes no column"):
        packed().packed_columns()
    with pytest.raises(gm.DataError, match="no column `text_segment_ids`, which packing makes"):
        next(iter(packed().packed_columns("text", labels="shifted")))


def test_the_names_of_hugging_face_are_those_of_its_collator() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    # Documents of 4 tokens fill rows of 16.
    documents = [np.arange(4 * n, 4 * n + 4) for n in range(16)]
    ds = gm.MapDataset.source(documents).map(lambda tokens: {"tokens": tokens.astype(np.int32)})
    rows = ds.to_iter_dataset().concat_then_split_pack(length={"tokens": 16}).batch(4)
    made = next(iter(rows.packed_columns(names="hf")))
    collator = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_tensors="np")
    wanted = collator([{"input_ids": document.tolist()} for document in documents])
    assert set(made) == set(wanted)
    for name, value in wanted.items():
        assert np.array_equal(made[name], value), name
        if hasattr(value, "dtype"):
            assert (made[name].dtype, made[name].shape) == (value.dtype, value.shape), name


def test_torchtitan_and_thd_have_one_axis() -> None:
    titan = next(iter(packed().batch(4).packed_columns(names="torchtitan")))
    assert {name: (value.dtype, value.shape) for name, value in titan.items()} == {
        name: (np.int64, (64,)) for name in ("input", "positions", "labels")
    }
    thd = next(iter(packed().batch(4).packed_columns(names="thd", max_segments=40)))
    assert thd["cu_seqlens_q"].shape == thd["cu_seqlens_kv"].shape == (41,) and thd["tokens"].shape == (64,)
    unknown: Any = "maxtext"
    with pytest.raises(gm.ConfigError, match="`maxtext` is none of"):
        packed().packed_columns(names=unknown)
