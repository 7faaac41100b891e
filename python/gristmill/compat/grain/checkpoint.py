"""States of iterators in Orbax checkpoints: the contents of `gristmill.orbax` under Grain's names.

`CheckpointSave` and `CheckpointRestore` require Orbax, which is imported on their first use.
"""

from typing import TYPE_CHECKING, Any

from gristmill import orbax
from gristmill.orbax import CheckpointHandler as CheckpointHandler

if TYPE_CHECKING:
    from gristmill.orbax import CheckpointRestore as CheckpointRestore
    from gristmill.orbax import CheckpointSave as CheckpointSave


def __getattr__(name: str) -> Any:
    if name not in ("CheckpointSave", "CheckpointRestore"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(orbax, name)
    except ImportError as error:
        raise AttributeError(f"{name} needs Orbax: pip install orbax-checkpoint") from error
