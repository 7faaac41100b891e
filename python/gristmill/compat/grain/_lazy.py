"""Deferred imports: the modules of stages import the dataset classes, whose methods make these stages."""

from importlib import import_module
from typing import Any


def make(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Calls `name` of a module of this package with the arguments."""
    return getattr(import_module(f"gristmill.compat.grain.{module}"), name)(*args, **kwargs)
