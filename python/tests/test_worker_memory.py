"""Memory of workers that the consumer still holds: waited for, collected, copied out, and counted; never waited for without end."""

import gc
from typing import Any

import gristmill as gm
import numpy as np
import pytest

COUNT = 60
# 10 MiB of shared memory beside the worker, one of them the reserve.
WORKERS: dict[str, Any] = {"num_workers": 1, "ram_budget": "276MiB", "worker_heap": "192MiB", "max_element": "1MiB"}


TOLD = "views hold all of 10 MiB of shared memory, so elements are copied: keep fewer, or raise `ram_budget`"


def numbers() -> gm.IterDataset:
    """800 KiB each."""
    ds = gm.MapDataset.range(COUNT).map(lambda x: {"x": np.full(200 << 10, x, np.int32)})
    return ds.to_iter_dataset().mp_prefetch(**WORKERS)


def copies(it: Any) -> int:
    workers = it.report().as_dict()["workers"]
    assert workers["slab_high_water_bytes"] <= workers["slab_bytes"] <= 10 << 20
    assert (f" · {workers['copies']} parts copied" in str(it.report())) == (workers["copies"] > 0)
    return int(workers["copies"])


@pytest.mark.parametrize("collects", [True, False])
def test_what_only_a_collection_gives_back_is_collected(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # As JAX has it, which lets go of what it is done with when it is called next, or when Python collects.
    done: list[Any] = []
    asked: list[Any] = []

    def collect(*generation: int) -> int:
        asked.append(generation)
        if collects:
            done.clear()
        return 0

    monkeypatch.setattr(gc, "collect", collect)
    with numbers().loader(buffer=1) as it:
        for x, batch in enumerate(it):
            assert int(batch["x"][-1]) == x
            done.append(batch)
        copied = copies(it)
    # If the machine is busy, elements may be copied before the loop asks for them.
    assert set(asked) == {(0,)} if collects else set(asked) <= {(0,)}
    # Where the machine is busy with other things, one or another may be copied all the same.
    assert copied < 10 if collects else copied > 20


@pytest.mark.parametrize("keeps", [True, False])
def test_jax_may_keep_as_much_as_it_likes(keeps: bool, caplog: pytest.LogCaptureFixture) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
    kept: list[Any] = []
    step = jax.jit(lambda x: x.max())
    jax.block_until_ready(step(np.zeros(200 << 10, np.int32)))
    with gm.jax.device_put(numbers(), buffer=1) as batches:
        greatest = []
        for batch in batches:
            greatest.append(step(batch["x"]))
            kept += [batch] if keeps else []
        copied = copies(batches)
    assert [int(one) for one in greatest] == list(range(COUNT))
    assert all(np.all(np.asarray(batch["x"]) == x) for x, batch in enumerate(kept))
    assert 20 < copied < COUNT if keeps else copied < 10
    told = [record.message for record in caplog.records if "elements are copied" in record.message]
    assert told == [TOLD] * (copied > 0)
