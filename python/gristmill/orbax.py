"""The state of a pass in Orbax's checkpoints, beside the model's.

Every iterator of gristmill saves itself with Orbax's newer interface, `from orbax.checkpoint.experimental import v1 as ocp`, where
an object with `save` and `load` is enough: `ocp.save_checkpointables(path, {"model": params, "data": batches})`. For the older one
there is `CheckpointHandler`.

Orbax itself is not needed to import this module, but for the `CheckpointSave` and `CheckpointRestore` of its `Checkpointer`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from gristmill import _errors


class Stateful(Protocol):
    """What can be saved: any iterator of gristmill, and of others whose states are JSON, bytes or text."""

    def get_state(self) -> Any: ...
    def set_state(self, state: Any, /) -> None: ...


_Iterator = TypeVar("_Iterator", bound=Stateful)


def _process() -> tuple[int, int]:
    """This process among those that train together: `index` of `count`."""
    jax = sys.modules.get("jax")
    return (0, 1) if jax is None else (jax.process_index(), jax.process_count())


def _file(directory: Any) -> Path:
    index, count = _process()
    # Orbax hands out paths of its own class, which may be of a store.
    folder: Any = directory if hasattr(directory, "__truediv__") else Path(directory)
    file: Path = folder / f"process_{index}-of-{count}.json"
    return file


def _written(state: Any) -> str:
    """As Grain writes its states, so that either can be read by eye and by the other's tools."""
    if isinstance(state, bytes):
        return state.decode()
    return state if isinstance(state, str) else json.dumps(state, indent=4)


def _read(directory: Any, like: Any) -> Any:
    """The state in `directory`, of the type of `like`: another state of the iterator that it is for."""
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
    """Takes the state now, and writes it when what this returns is awaited: training goes on meanwhile.

    Args:
        iterator: The pass.
        directory: A path, or what Orbax hands out for one, where each process writes a file of its own.
    """
    text = _written(iterator.get_state())

    async def write() -> None:
        # Orbax makes the directory in the background, and hands out what waits for it.
        awaited = getattr(directory, "await_creation", None)
        folder = directory if awaited is None else await awaited()
        await asyncio.to_thread(_file(folder).write_text, text)

    return write()


async def load(iterator: Stateful, directory: Any) -> Awaitable[None]:
    """Goes to the state that `save` wrote into `directory`, when what this returns is awaited.

    Args:
        iterator: The pass, of the same pipeline.
        directory: The path that it was saved to.

    Raises:
        StateError: There is no state of this process.
    """

    async def read() -> None:
        iterator.set_state(await asyncio.to_thread(_read, directory, iterator.get_state()))

    return read()


class CheckpointHandler(Generic[_Iterator]):
    """A handler of Orbax's older interface: `Checkpointer(CheckpointHandler())`, or one item of a `CheckpointManager`.

    It writes `process_INDEX-of-COUNT.json` for each process, as Grain's does.
    """

    def save(self, directory: Any, item: _Iterator | None = None, args: Any = None) -> None:
        """Writes the state of `item`, or of that of Orbax's `args`, into `directory`."""
        iterator = cast("Stateful", item if args is None else args.item)
        _file(directory).write_text(_written(iterator.get_state()))

    def restore(self, directory: Any, item: _Iterator | None = None, args: Any = None) -> _Iterator:
        """Sets `item`, or that of `args`, to the state in `directory`, has it begin to read ahead, and returns it."""
        iterator = cast("_Iterator", item if args is None else args.item)
        iterator.set_state(_read(directory, iterator.get_state()))
        begin: Callable[[], None] | None = getattr(iterator, "start_prefetch", None)
        if begin is not None:
            begin()
        return iterator

    def structure(self, directory: Any) -> None:
        """Says nothing of `directory`: a state has no structure that Orbax must know."""

    def metadata(self, directory: Any) -> Mapping[str, Any]:
        """Returns the state itself, as it was saved in `directory`."""
        return {"state": json.loads(_file(directory).read_text())}

    def finalize(self, directory: Any) -> None:
        """Does nothing more in `directory` when all processes have saved."""

    def close(self) -> None:
        """Holds nothing open."""

    @classmethod
    def typestr(cls) -> str:
        """The name under which Orbax notes who wrote an item."""
        return f"{cls.__module__}.{cls.__qualname__}"


if TYPE_CHECKING:

    class CheckpointSave:
        """What a `CheckpointManager` saves with this handler."""

        def __init__(self, item: Stateful) -> None:
            """The iterator."""

    class CheckpointRestore:
        """What a `CheckpointManager` restores with it."""

        def __init__(self, item: Stateful) -> None:
            """The iterator."""

else:

    def __getattr__(name: str) -> Any:
        """The arguments of a `CheckpointManager`, which have to be of Orbax's own classes: made when they are asked for."""
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
