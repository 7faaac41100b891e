"""Modules that are imported when they are needed: those of stages need the classes that have methods for them."""

from importlib import import_module
from typing import Any


def make(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """What `name` of a module of this package makes."""
    return getattr(import_module(f"gristmill.compat.grain.{module}"), name)(*args, **kwargs)
