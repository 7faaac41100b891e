"""The six keys of MaxText: those of hand-made rows, and those that the packing itself makes."""

import pickle
from typing import Any

import gristmill as gm
import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed: pip install jax")

SIX = ["inputs", "inputs_segmentation", "inputs_position", "targets", "targets_segmentation", "targets_position"]


def rows(**columns: Any) -> dict[str, Any]:
    return {name: np.array(values, np.int32) for name, values in columns.items()}


# Two sequences and padding; one that fills its row; one of a single token, and nothing else.
BATCH = rows(
    tokens=[[5, 6, 7, 8, 9, 0], [1, 2, 3, 4, 5, 6], [7, 0, 0, 0, 0, 0]],
    tokens_segment_ids=[[1, 1, 1, 2, 2, 0], [1] * 6, [1, 0, 0, 0, 0, 0]],
    tokens_positions=[[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5], [0] * 6],
)
TARGETS = rows(
    targets=[[6, 7, 0, 9, 0, 0], [2, 3, 4, 5, 6, 0], [0] * 6],
    targets_segmentation=[[1, 1, 0, 2, 0, 0], [1, 1, 1, 1, 1, 0], [0] * 6],
    targets_position=[[0, 1, 0, 0, 0, 0], [0, 1, 2, 3, 4, 0], [0] * 6],
)


def check(made: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {name: made[name].tolist() for name in expected} == {name: array.tolist() for name, array in expected.items()}
    assert all(made[name].dtype == np.int32 for name in SIX)


def test_hand_made_rows() -> None:
    made = gm.jax.maxtext_keys()(BATCH)
    assert list(made) == SIX
    assert all(made[name] is BATCH[old] for name, old in zip(SIX, BATCH, strict=False))
    check(made, TARGETS)


def test_padding_and_ids_that_do_not_count() -> None:
    padded = np.where(TARGETS["targets_segmentation"] == 0, -1, TARGETS["targets"])
    check(gm.jax.maxtext_keys("tokens", padding=-1)(BATCH), {**TARGETS, "targets": padded})
    made = gm.jax.maxtext_keys(ignored_ids=[7, 3])(BATCH)
    segmentation = rows(targets_segmentation=[[1, 0, 0, 2, 0, 0], [1, 0, 1, 1, 1, 0], [0] * 6])
    check(made, {**TARGETS, **segmentation})


def test_a_row_is_a_batch_without_its_first_axis() -> None:
    for row in range(3):
        made = gm.jax.maxtext_keys()({name: array[row] for name, array in BATCH.items()})
        check(made, {name: array[row] for name, array in TARGETS.items()})


def test_names_without_a_feature_and_columns_beside_it() -> None:
    names = dict(zip(BATCH, ["tokens", "segment_ids", "positions"], strict=True))
    made = gm.jax.maxtext_keys()({**{names[name]: array for name, array in BATCH.items()}, "id": 3})
    assert list(made) == [*SIX, "id"]
    check(made, TARGETS)


@pytest.mark.parametrize("workers", [None, 1])
def test_it_makes_what_packing_makes_by_itself(workers: int | None) -> None:
    def packed(names: Any) -> gm.IterDataset:
        ds = gm.MapDataset.range(300).seed(4).random_map(
            lambda x, rng: {"ids": rng.integers(1, 99, rng.integers(1, 14)).astype(np.int32), "n": x}
        )
        ds = ds.select_columns(["ids"]).to_iter_dataset()
        return ds.first_fit_pack(length={"ids": 16}, num_packing_bins=5, names=names).batch(4)

    ds = packed("grain").map(gm.jax.maxtext_keys())
    if workers is not None:
        ds = ds.mp_prefetch(num_workers=workers, ram_budget="1GiB")
    pairs = list(zip(ds, packed("maxtext"), strict=True))
    assert len(pairs) > 20
    for made, native in pairs:
        assert list(made) == SIX
        assert all(np.array_equal(made[name], native[name]) for name in SIX)
        assert all(made[name].dtype == native[name].dtype for name in SIX)


def test_workers_make_them_without_jax() -> None:
    function = gm.jax.maxtext_keys("tokens")
    assert b"jax" not in pickle.dumps(function)
    assert pickle.loads(pickle.dumps(function)) == function


@pytest.mark.parametrize(
    ("feature", "batch", "says"),
    [
        (None, {"x": 1}, r"a batch of \['x'\] has no packed feature"),
        (None, {**BATCH, "b": 0, "b_segment_ids": 0, "b_positions": 0}, r"several packed features, \['tokens', 'b'\]"),
        ("ids", BATCH, r"has no 'ids' with segment ids and positions"),
        (None, {**BATCH, "tokens_positions": np.zeros((3, 5))}, r"have shapes \(3, 6\), \(3, 6\) and \(3, 5\)"),
        (None, {**BATCH, "targets": 1}, "the batch has 'targets' already"),
    ],
)
def test_what_cannot_be_renamed_is_refused(feature: str | None, batch: dict[str, Any], says: str) -> None:
    with pytest.raises(gm.DataError, match=says):
        gm.jax.maxtext_keys(feature)(batch)
