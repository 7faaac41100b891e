"""Epochs with states: which batches come, in whatever way a trainer cuts, saves and restores."""

import io
import json
from itertools import islice
from typing import Any

import gristmill as gm
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch, which is large")

EPOCH = 5


def batches() -> gm.MapDataset[Any]:
    return gm.MapDataset.range(20).shuffle(seed=3).map(lambda n: {"n": np.int64(n)}).batch(4)


def loader(**options: Any) -> Any:
    return gm.torch.StatefulLoader(batches(), **options)


def stream(**options: Any) -> Any:
    """As many batches in each epoch, of a pass that ends with it."""
    return gm.torch.StatefulLoader(batches().to_iter_dataset(), **options)


def shown(taken: Any) -> list[list[int]]:
    return [batch["n"].tolist() for batch in taken]


def expected(count: int) -> list[list[int]]:
    return shown(islice(batches().repeat(), count))


def restored(state: Any, **options: Any) -> Any:
    again = loader(**options)
    again.load_state_dict(json.loads(json.dumps(state)))
    return again


@pytest.mark.parametrize("threads", [0, 2])
def test_epochs_are_those_of_a_repeated_dataset(threads: int) -> None:
    epochs = loader(threads=threads)
    assert len(epochs) == EPOCH
    taken = [shown(epochs) for _ in range(3)]
    assert sum(taken, []) == expected(3 * EPOCH)
    assert taken[0] != taken[1] and sorted(sum(taken[0], [])) == sorted(sum(taken[1], [])) == list(range(20))


def test_batches_are_tensors() -> None:
    batch = next(iter(loader()))
    assert batch["n"].dtype == torch.int64 and batch["n"].shape == (4,)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_state_of_every_step_goes_on_in_its_epoch(threads: int) -> None:
    whole = expected(4 * EPOCH)
    epochs = loader(threads=threads)
    assert shown(restored(epochs.state_dict())) == whole[:EPOCH]
    done = 0
    for _ in range(2):
        for _ in epochs:
            done += 1
            again = restored(epochs.state_dict(), threads=threads)
            assert again.state_dict() == epochs.state_dict()
            # The rest of the epoch, or the next one where nothing is left of it.
            rest = -done % EPOCH or EPOCH
            assert shown(again) == whole[done : done + rest]
            assert shown(again) == whole[done + rest : done + rest + EPOCH]
        assert shown(restored(epochs.state_dict())) == whole[done : done + EPOCH]


def test_chains_of_resumes_lose_and_repeat_nothing() -> None:
    taken: list[list[int]] = []
    state = loader().state_dict()
    for count in (1, 3, 2, 5, 4, 1, 6):
        again = restored(state)
        while count > 0:
            part = shown(islice(again, count))
            taken += part
            count -= len(part)
        state = again.state_dict()
    assert taken == expected(22)


def test_a_loop_that_is_left_is_followed_by_the_next_batches() -> None:
    epochs = loader()
    taken = shown(islice(epochs, 2)) + shown(epochs) + shown(epochs)
    assert taken == expected(2 + 2 * EPOCH)


def test_an_iterator_that_nobody_asked_anything_takes_nothing() -> None:
    epochs = loader()
    iter(epochs)
    assert shown(iter(epochs)) == expected(EPOCH)


def test_the_older_of_two_loops_is_told() -> None:
    epochs = loader()
    older = iter(epochs)
    next(older)
    next(iter(epochs))
    with pytest.raises(gm.ConfigError, match="a newer loop goes over this loader"):
        next(older)


def test_a_length_cuts_a_stream_without_end() -> None:
    endless = batches().repeat().to_iter_dataset()
    epochs = gm.torch.StatefulLoader(endless, length=3)
    assert len(epochs) == 3
    assert shown(epochs) + shown(epochs) == expected(6)
    assert shown(restored(epochs.state_dict(), length=3)) == expected(9)[6:]
    assert [len(shown(gm.torch.StatefulLoader(batches(), length=2))) for _ in range(2)] == [2, 2]


def test_a_pass_that_ends_is_followed_by_another_one() -> None:
    one = expected(EPOCH)
    for options in ({}, {"length": EPOCH}, {"length": EPOCH + 1}):
        epochs = stream(**options)
        assert [shown(epochs) for _ in range(3)] == [one] * 3
    with pytest.raises(TypeError, match=r"StatefulLoader\(ds, length=…\)"):
        len(stream())


def test_no_epoch_is_empty_behind_a_state_of_the_last_batch() -> None:
    one = expected(EPOCH)
    epochs = stream()
    states = [epochs.state_dict() for _ in epochs]
    for done, state in enumerate([*states, epochs.state_dict()], 1):
        again = stream()
        again.load_state_dict(state)
        assert shown(again) == (one[done:] or one)
        assert shown(again) == one


def test_data_without_a_batch() -> None:
    with pytest.raises(gm.ConfigError, match="it repeats an empty dataset"):
        gm.torch.StatefulLoader(gm.MapDataset.range(0))
    with pytest.raises(gm.ConfigError, match="an epoch of 0 batches"):
        loader(length=0)
    assert list(gm.torch.StatefulLoader(gm.MapDataset.range(0).to_iter_dataset())) == []


def test_states_of_others_are_refused() -> None:
    with pytest.raises(gm.StateError, match=r"not a state of gristmill.torch.StatefulLoader: it has \['a'\]"):
        loader().load_state_dict({"a": 1})
    with pytest.raises(gm.StateError, match="not a state of gristmill.torch.StatefulLoader"):
        loader().load_state_dict(gm.torch.IterableDataset(batches()).state_dict())
    running = loader()
    next(iter(running))
    other = gm.torch.StatefulLoader(batches().batch(2))
    other.load_state_dict(running.state_dict())
    with pytest.raises(gm.StateError):
        next(iter(other))


def test_files_of_torch_and_of_its_distributed_checkpoints_hold_states(tmp_path: Any) -> None:
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    epochs = loader()
    taken = shown(islice(epochs, 7 - EPOCH))
    file = io.BytesIO()
    torch.save(epochs.state_dict(), file)
    checkpoint.save({"data": epochs}, checkpoint_id=tmp_path / "dcp", no_dist=True)
    file.seek(0)
    again = loader()
    again.load_state_dict(torch.load(file, weights_only=True))
    rest = expected(EPOCH)[len(taken) :]
    assert shown(again) == rest
    again = loader()
    checkpoint.load({"data": again}, checkpoint_id=tmp_path / "dcp", no_dist=True)
    assert shown(again) == rest


def test_parts_of_one_state() -> None:
    whole = expected(EPOCH)
    both = [loader(part=(part, 2)) for part in range(2)]
    first = [shown(islice(one, 2)) for one in both]
    assert [a + b for a, b in zip(*first, strict=True)] == whole[:2]
    assert both[0].state_dict() == both[1].state_dict()
    assert shown(restored(both[1].state_dict())) == whole[2:]


def test_the_report_is_of_the_pass_that_runs() -> None:
    epochs = loader(threads=1)
    with pytest.raises(gm.ConfigError, match="no pass is running"):
        epochs.report()
    for _ in epochs:
        pass
    assert "map" in str(epochs.report())
    epochs.close()
    assert shown(epochs) == expected(2 * EPOCH)[EPOCH:]
