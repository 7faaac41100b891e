"""Passes with a part whose batches are sent ahead: hosts come and go between two batches, and steps are given back."""

from typing import Any

import gristmill as gm
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")

BATCH = 12


def batches(length: int = 100) -> gm.IterDataset:
    ds = gm.MapDataset.range(length).shuffle(3).map(lambda x: {"x": np.int32(x)}).filter(lambda e: e["x"] % 7 != 0)
    return ds.to_iter_dataset().batch(BATCH, drop_remainder=True)


def rows(batch: Any) -> list[int]:
    return np.asarray(batch["x"]).tolist()


@pytest.mark.parametrize("buffer", [0, 2, 5])
@pytest.mark.parametrize("threads", [0, 2])
def test_hosts_come_and_go_and_give_steps_back(buffer: int, threads: int) -> None:
    whole = [rows(batch) for batch in batches()]
    assert len(whole) == 7
    with gm.jax.device_put(batches().loader(threads=threads, part=(0, 2)), buffer=buffer) as host:
        assert (rows(next(host)), rows(next(host)), host.part) == (whole[0][:6], whole[1][:6], gm.Part(0, 2))
        host.repart((2, 3))
        assert host.part == gm.Part(2, 3) and host.get_state()["delivered"] == 2
        with pytest.raises(gm.StateError, match="cannot go back 3 batches, only 2 are kept"):
            host.back(3)
        host.back()
        assert rows(next(host)) == whole[1][8:]
        assert [rows(next(host)) for _ in range(3)] == [batch[8:] for batch in whole[2:5]]
        host.back(2)
        assert host.get_state()["delivered"] == 3
        with pytest.raises(gm.ConfigError, match="there is no part 5/4"):
            host.repart((5, 4))
        host.back(0)
        # Those that are left take the rows of the one that was lost.
        host.repart("1/2")
        assert [rows(batch) for batch in host] == [batch[6:] for batch in whole[3:]]
        # Behind the end, too.
        host.back()
        host.repart(gm.Part.listed([11, 0], BATCH))
        assert [rows(batch) for batch in host] == [[whole[-1][11], whole[-1][0]]]
        host.repart((0, 1))
        assert list(host) == [] and host.get_state()["delivered"] == 7
    with pytest.raises(ValueError, match="is closed"):
        host.back()


def test_a_state_behind_steps_that_were_given_back_is_that_of_all_hosts() -> None:
    hosts = [gm.jax.device_put(batches().loader(threads=i, part=(i, 2))) for i in range(2)]
    for host in hosts:
        for _ in range(3):
            next(host)
        host.back(2)
    assert hosts[0].get_state() == hosts[1].get_state()
    plain = batches().loader()
    plain.set_state(hosts[1].get_state())
    whole = rows(next(plain))
    assert [rows(next(host)) for host in hosts] == [whole[:6], whole[6:]]


def test_padding_goes_on_where_steps_are_given_back() -> None:
    ds = gm.MapDataset.range(10).map(lambda x: {"x": np.int32(x)}).to_iter_dataset().batch(4)
    with gm.jax.device_put(ds, end="pad", global_batch=4, max_steps=5) as sent:
        seen = [(rows(batch), np.asarray(batch["weights"]).tolist()) for batch in sent]
        assert seen[2:] == [([8, 9, 0, 0], [1, 1, 0, 0]), *[([0] * 4, [0] * 4)] * 2]
        for count in (2, 1):
            sent.back(count)
            assert [(rows(batch), np.asarray(batch["weights"]).tolist()) for batch in sent] == seen[5 - count :]
    with gm.jax.device_put(ds.loader(part=(0, 1)), end="pad", global_batch=4, max_steps=4) as sent:
        first = [rows(next(sent)) for _ in range(3)]
        sent.repart((0, 1))
        assert [*first, *map(rows, sent)] == [rows for rows, _ in seen[:4]]
