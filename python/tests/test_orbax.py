"""States in Orbax's checkpoints, of the newer interface and the older one."""

import asyncio
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import pytest


def numbers() -> gm.IterDataset:
    return gm.MapDataset.range(40).seed(7).shuffle().map(lambda x: {"x": x}).to_iter_dataset().batch(4)


def shown(batches: Any) -> list[list[int]]:
    return [batch["x"].tolist() for batch in batches]


def on_jax() -> Any:
    pytest.importorskip("jax")
    return gm.jax.device_put(numbers())


ITERATORS: dict[str, Callable[[], Any]] = {
    "inline": lambda: numbers().loader(),
    "threads": lambda: numbers().loader(threads=2),
    "jax": on_jax,
}


async def twice(awaited: Any) -> None:
    await (await awaited)


@pytest.mark.parametrize("kind", ITERATORS)
def test_an_iterator_saves_itself(kind: str, tmp_path: Path) -> None:
    everything = shown(numbers())
    with ITERATORS[kind]() as batches:
        assert shown(islice(batches, 3)) == everything[:3]
        asyncio.run(twice(batches.save(tmp_path)))
    file = tmp_path / "process_0-of-1.json"
    assert json.loads(file.read_text())["delivered"] == 3
    with ITERATORS[kind]() as batches:
        asyncio.run(twice(batches.load(tmp_path)))
        assert shown(batches) == everything[3:]


def test_what_is_saved_is_the_state_of_that_moment(tmp_path: Path) -> None:
    batches = numbers().loader()
    next(batches)

    async def save() -> None:
        later = await batches.save(tmp_path)
        next(batches)
        await later

    asyncio.run(save())
    assert json.loads((tmp_path / "process_0-of-1.json").read_text())["delivered"] == 1


def test_a_state_of_other_processes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "process_0-of-4.json").write_text("{}")
    with pytest.raises(gm.StateError, match=r"does not exist; there are \['process_0-of-4.json'\]"):
        asyncio.run(twice(numbers().loader().load(tmp_path)))


def test_the_newer_interface(tmp_path: Path) -> None:
    missing = "no Orbax with this interface is installed: pip install orbax-checkpoint"
    ocp = pytest.importorskip("orbax.checkpoint.experimental.v1", reason=missing)
    everything = shown(numbers())
    batches = numbers().loader()
    assert shown(islice(batches, 5)) == everything[:5]
    ocp.save_checkpointables(tmp_path / "at_5", {"data": batches})
    resumed = numbers().loader()
    ocp.load_checkpointables(tmp_path / "at_5", {"data": resumed})
    assert shown(resumed) == everything[5:] == shown(batches)


def test_the_older_interface(tmp_path: Path) -> None:
    ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed: pip install orbax-checkpoint")
    everything = shown(numbers())
    batches = numbers().loader()
    assert shown(islice(batches, 5)) == everything[:5]
    with ocp.CheckpointManager(tmp_path) as manager:
        manager.save(5, args=ocp.args.Composite(data=gm.orbax.CheckpointSave(batches)))
        manager.wait_until_finished()
    # Some versions of Orbax put a file of their own beside it.
    assert "process_0-of-1.json" in [path.name for path in (tmp_path / "5" / "data").iterdir()]
    resumed = numbers().loader()
    with ocp.CheckpointManager(tmp_path) as manager:
        restored = manager.restore(5, args=ocp.args.Composite(data=gm.orbax.CheckpointRestore(resumed)))
    assert restored["data"] is resumed
    assert shown(resumed) == everything[5:]


@pytest.mark.parametrize("state", [b'{"at": 3}', '{"at": 3}', {"at": 3}])
def test_the_handler_takes_iterators_of_others(state: Any, tmp_path: Path) -> None:
    class Other:
        was: Any = None

        def get_state(self) -> Any:
            return state

        def set_state(self, given: Any) -> None:
            self.was = given

    handler = gm.orbax.CheckpointHandler[Other]()
    handler.save(tmp_path, Other())
    other = Other()
    assert handler.restore(tmp_path, other) is other
    assert other.was == state or json.loads(other.was) == json.loads(state)
    assert type(other.was) is type(state)
