"""States of iterators in checkpoints of Orbax: a file `process_{index}-of-{count}.json` for each process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gristmill import orbax
from gristmill.compat.grain._sharding import get_process_index_and_count


def _file(directory: Any) -> Any:
    index, count = get_process_index_and_count()
    folder: Any = directory if hasattr(directory, "__truediv__") else Path(directory)
    return folder / f"process_{index}-of-{count}.json"


def _text(state: Any) -> str:
    return state.decode() if isinstance(state, bytes) else json.dumps(state, indent=4)


async def _awaited(directory: Any) -> Any:
    """The folder, which Orbax may still be making."""
    waits: Callable[[], Any] | None = getattr(directory, "await_creation", None)
    return directory if waits is None else await waits()


async def save_state(iterator: Any, directory: Any) -> None:
    """Writes the state of `iterator`."""
    _file(await _awaited(directory)).write_text(_text(iterator.get_state()))


async def load_state(iterator: Any, directory: Any) -> None:
    """Restores `iterator` from what `save_state` wrote."""
    iterator.set_state(json.loads(_file(directory).read_text()))
    iterator.start_prefetch()


class CheckpointHandler(orbax.CheckpointHandler[Any]):
    """Saves and restores iterators of datasets and of `DataLoader`s, as Orbax asks of a handler."""

    def save(self, directory: Any, item: Any = None, args: Any = None) -> None:
        """Writes the state of `item`, or of what `args` hold."""
        _file(directory).write_text(_text((args.item if args is not None else item).get_state()))

    def restore(self, directory: Any, item: Any = None, args: Any = None) -> Any:
        """Restores the iterator in place, and returns it."""
        iterator = args.item if args is not None else item
        file = _file(directory)
        if not file.exists():
            raise ValueError(f"File {file} does not exist.")
        text: str = file.read_text()
        # A `DataLoader`'s state is bytes.
        binary = isinstance(iterator.get_state(), bytes)
        iterator.set_state(text.encode() if binary else json.loads(text))
        iterator.start_prefetch()
        return iterator

    def structure(self, directory: Any) -> Any:
        """Nothing: a state has no structure that Orbax must know."""
        return None

    def metadata(self, directory: Any) -> Any:
        """Nothing."""
        return None


class CheckpointSave:
    """What to save, as Orbax's `CheckpointArgs`."""

    def __init__(self, item: Any) -> None:
        self.item = item


class CheckpointRestore:
    """What to restore, as Orbax's `CheckpointArgs`."""

    def __init__(self, item: Any) -> None:
        self.item = item

