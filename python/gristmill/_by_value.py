"""Python functions on their way to worker processes: by name where they can be imported there, else by value."""

import contextlib
import sys
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from gristmill._errors import ConfigError


def pickled(everything: Any, values: Sequence[tuple[str, Any]]) -> bytes:
    """The pickle of `everything`, in which the `values` are what the user has given, and to which method.

    It is one pickle, so that what functions share stays shared.
    """
    try:
        cloudpickle: Any = import_module("cloudpickle")
    except ImportError:
        raise ConfigError("Python functions go to worker processes by cloudpickle: pip install cloudpickle") from None
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    modules = {name for _, value in values for name in _modules_of(value)}
    with _by_value(cloudpickle, [sys.modules[name] for name in sorted(modules) if not _importable(name)]):
        try:
            return dumps(everything)
        except Exception as error:
            raise _unpicklable(values, dumps, error) from error


def _modules_of(value: Any) -> set[str]:
    """The modules in which the code of `value` was written."""
    function = getattr(value, "__func__", value)
    owners: list[Any] = [function, type(value), getattr(value, "__self__", None), getattr(function, "func", None)]
    names = {getattr(owner, "__module__", None) for owner in owners}
    return {name for name in names if isinstance(name, str) and name in sys.modules and name != "__main__"}


def _importable(name: str) -> bool:
    """Whether another process finds the module: not one that a test runner or a notebook has made."""
    path: Any = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = _found(".".join(parts[:end]), path)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return True


def _found(name: str, path: Any) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, None) if find else None
        if spec is not None:
            return spec
    return None


@contextlib.contextmanager
def _by_value(cloudpickle: Any, modules: Sequence[ModuleType]) -> Generator[None]:
    known = cloudpickle.list_registry_pickle_by_value()
    ours = [module for module in modules if module.__name__ not in known]
    for module in ours:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in ours:
            cloudpickle.unregister_pickle_by_value(module)


def _unpicklable(values: Sequence[tuple[str, Any]], dumps: Callable[[Any], bytes], error: Exception) -> ConfigError:
    help = "make what it holds inside the function, or hand it over as a path or plain values"
    for method, value in values:
        try:
            dumps(value)
        except Exception as its:
            refused = ConfigError(f"{method}: {value!r} cannot be sent to worker processes: {its}")
            break
    else:
        refused = ConfigError(f"the pipeline cannot be sent to worker processes: {error}")
    refused.help = help
    refused.add_note(f"help: {help}")
    return refused
