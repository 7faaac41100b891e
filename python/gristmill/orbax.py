"""Saves the state of a pass in Orbax checkpoints, beside the model.

Every iterator of gristmill supports Orbax's newer interface, `from orbax.checkpoint.experimental import v1 as ocp`,
which requires only the methods `save` and `load`: `ocp.save_checkpointables(path, {"model": params, "data": batches})`.
For the older interface use `CheckpointHandler`.

This module does not import Orbax. Only `CheckpointSave` and `CheckpointRestore`, for Orbax's `Checkpointer`, need it.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from gristmill import _errors


class Stateful(Protocol):
    """An object that can be saved: any iterator of gristmill, and others whose state is JSON, bytes or text."""

    def get_state(self) -> Any: ...
    def set_state(self, state: Any, /) -> None: ...


_Iterator = TypeVar("_Iterator", bound=Stateful)


def _process() -> tuple[int, int]:
    """Returns the `index` of this process and the `count` of the processes that train together."""
    jax = sys.modules.get("jax")
    return (0, 1) if jax is None else (jax.process_index(), jax.process_count())


def _file(directory: Any) -> Path:
    index, count = _process()
    # Orbax passes its own path class, which may refer to an object store.
    folder: Any = directory if hasattr(directory, "__truediv__") else Path(directory)
    file: Path = folder / f"process_{index}-of-{count}.json"
    return file


def _written(state: Any) -> str:
    """Formats a state as Grain does, so that tools and readers of either library can open it."""
    if isinstance(state, bytes):
        return state.decode()
    return state if isinstance(state, str) else json.dumps(state, indent=4)


def _read(directory: Any, like: Any) -> Any:
    """Returns the state in `directory`, converted to the type of `like`, a state of the same iterator."""
    file = _file(directory)
    try:
        text = file.read_text()
    except FileNotFoundError:
        there = sorted(path.name for path in file.parent.glob("process_*.json"))
        message = f"{file} does not exist; there are {there or 'none of its kind'}"
        help = "a state of as many processes as train now, or `load` of one file by `set_state`" if there else None
        raise _errors.make("state", message, help) from None
    return text.encode() if isinstance(like, bytes) else text if isinstance(like, str) else json.loads(text)


async def save(iterator: Stateful, directory: Any) -> Awaitable[None]:
    """Takes the state now and writes it when the returned awaitable is awaited, so that training can go on.

    Args:
        iterator: The pass.
        directory: A path, or the object that Orbax passes for a path. Each process writes its own file there.
    """
    text = _written(iterator.get_state())

    async def write() -> None:
        # Orbax makes the directory in the background and passes an object to wait for it.
        awaited = getattr(directory, "await_creation", None)
        folder = directory if awaited is None else await awaited()
        await asyncio.to_thread(_file(folder).write_text, text)

    return write()


async def load(iterator: Stateful, directory: Any) -> Awaitable[None]:
    """Restores the state that `save` wrote to `directory`, when the returned awaitable is awaited.

    Args:
        iterator: A pass over the same pipeline.
        directory: The path given to `save`.

    Raises:
        StateError: The directory has no state of this process.
    """

    async def read() -> None:
        iterator.set_state(await asyncio.to_thread(_read, directory, iterator.get_state()))

    return read()


class CheckpointHandler(Generic[_Iterator]):
    """A handler for Orbax's older interface: `Checkpointer(CheckpointHandler())`, or an item of a `CheckpointManager`.

    Each process writes `process_INDEX-of-COUNT.json`, as in Grain.
    """

    def save(self, directory: Any, item: _Iterator | None = None, args: Any = None) -> None:
        """Writes the state of `item`, or of the item in Orbax's `args`, to `directory`."""
        iterator = cast("Stateful", item if args is None else args.item)
        _file(directory).write_text(_written(iterator.get_state()))

    def restore(self, directory: Any, item: _Iterator | None = None, args: Any = None) -> _Iterator:
        """Restores `item`, or the item in `args`, from `directory`, starts its prefetch and returns it."""
        iterator = cast("_Iterator", item if args is None else args.item)
        iterator.set_state(_read(directory, iterator.get_state()))
        begin: Callable[[], None] | None = getattr(iterator, "start_prefetch", None)
        if begin is not None:
            begin()
        return iterator

    def structure(self, directory: Any) -> None:
        """Ignores `directory`: Orbax does not use the structure of a state."""

    def metadata(self, directory: Any) -> Mapping[str, Any]:
        """Returns the state saved in `directory`."""
        return {"state": json.loads(_file(directory).read_text())}

    def finalize(self, directory: Any) -> None:
        """Ignores `directory`: a saved state needs no finalization."""

    def close(self) -> None:
        """Does nothing: the handler holds no resources."""

    @classmethod
    def typestr(cls) -> str:
        """Returns the name by which Orbax records the handler of an item."""
        return f"{cls.__module__}.{cls.__qualname__}"


if TYPE_CHECKING:

    class CheckpointSave:
        """Arguments with which a `CheckpointManager` saves an iterator by this handler."""

        def __init__(self, item: Stateful) -> None:
            """Takes the iterator."""

    class CheckpointRestore:
        """Arguments with which a `CheckpointManager` restores an iterator by this handler."""

        def __init__(self, item: Stateful) -> None:
            """Takes the iterator."""

else:

    def __getattr__(name: str) -> Any:
        """Makes the argument classes of a `CheckpointManager` on first use: they derive from Orbax's classes."""
        if name not in ("CheckpointSave", "CheckpointRestore"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import orbax.checkpoint as ocp

        for made, for_save in (("CheckpointSave", True), ("CheckpointRestore", False)):
            fields = {"__module__": __name__, "__init__": _keep}
            kind = type(made, (ocp.args.CheckpointArgs,), fields)
            globals()[made] = ocp.args.register_with_handler(
                CheckpointHandler, for_save=for_save, for_restore=not for_save
            )(kind)
        return globals()[name]

    def _keep(self: Any, item: Stateful) -> None:
        self.item = item
