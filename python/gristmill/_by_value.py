"""Pickling of Python functions for worker processes: by name if the worker can import them, else by value."""

import io
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any

from gristmill._errors import ConfigError

#: Guards cloudpickle's registry of modules to pickle by value, which all threads share.
_one_at_a_time = threading.Lock()


def _renew() -> None:
    """Replaces the lock after a fork: no thread of the child would release it."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def pickled(everything: Any, values: Sequence[tuple[str, Any]], prefix: bytes = b"") -> bytes:
    """Returns `prefix` followed by the pickle of `everything`.

    `values` are the user's arguments, each with the name of the method that received it, for the error message. One
    pickle holds them all, so that objects which functions share stay shared.
    """

    def dumps(modules: "_Modules", value: Any) -> bytes:
        file = io.BytesIO()
        file.write(prefix)
        modules.dump(value, file)
        return file.getvalue()

    with _modules() as modules:
        try:
            return dumps(modules, everything)
        except Exception as error:
            raise _unpicklable(values, partial(dumps, modules), error) from error


def largest(values: Sequence[tuple[str, Any]]) -> str:
    """Returns a message that names the value with the largest pickle, and its size."""
    with _modules() as modules:
        sizes: list[tuple[int, str]] = []
        for method, value in values:
            counter = _Counter()
            modules.dump(value, counter)
            sizes.append((counter.count, f"{method}: {_name(value)}"))
    size, name = max(sizes)
    return f"{name} carries {size / (1 << 20):.0f} MiB"


def _name(value: Any) -> str:
    """Returns the name of a function and its file and line, or the type of any other object."""
    code = getattr(value, "__code__", None)
    name = getattr(value, "__qualname__", None) or f"an object of type {type(value).__qualname__}"
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


class _Counter:
    """A file that counts the bytes written to it and discards them."""

    count = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


@contextmanager
def _modules() -> "Generator[_Modules]":
    """Collects the modules that are met during pickling. Unregisters them at the end."""
    try:
        cloudpickle: Any = import_module("cloudpickle")
    except ImportError:
        raise ConfigError("cloudpickle is not installed; worker processes need it for Python functions: `pip install cloudpickle`") from None
    with _one_at_a_time:
        modules = _Modules(cloudpickle)
        try:
            yield modules
        finally:
            modules.forget()


class _Modules:
    """The modules that are met during pickling. A module that other processes cannot import is pickled by value."""

    def __init__(self, cloudpickle: Any) -> None:
        self._cloudpickle = cloudpickle
        self._met: set[str] = set()
        self._by_value: list[ModuleType] = []

    def dump(self, value: Any, file: Any) -> None:
        pickler = self._cloudpickle.CloudPickler(file)
        reduce: Callable[[Any], Any] = pickler.reducer_override

        def meet_and_reduce(value: Any) -> Any:
            # Called for every object in the pickle, at any depth.
            if isinstance(value, (FunctionType, type)):
                self._meet(value.__module__)
            elif isinstance(value, ModuleType):
                self._meet(value.__name__)
            elif isinstance(value, CodeType):
                return _with_its_file(value, pickler.dispatch_table)
            reduced = reduce(value)
            return _with_its_place(value, reduced) if isinstance(value, type) else reduced

        pickler.reducer_override = meet_and_reduce
        pickler.dump(value)

    def _meet(self, name: Any) -> None:
        if not isinstance(name, str) or name in self._met:
            return
        self._met.add(name)
        module = sys.modules.get(name)
        # cloudpickle pickles the contents of `__main__` by value in any case.
        if module is None or name == "__main__" or _importable(name):
            return
        if name not in self._cloudpickle.list_registry_pickle_by_value():
            self._cloudpickle.register_pickle_by_value(module)
            self._by_value.append(module)

    def forget(self) -> None:
        for module in self._by_value:
            self._cloudpickle.unregister_pickle_by_value(module)


#: The file name that cloudpickle, since version 3.1.3, writes into code objects.
_NO_FILE = "<dynamic-code>"


def _with_its_file(code: CodeType, reducers: Any) -> Any:
    """Reduces code like cloudpickle but keeps its file name, so that worker tracebacks show the user's source lines."""
    make, parts = reducers[CodeType](code)
    return make, tuple(code.co_filename if part == _NO_FILE else part for part in parts)


def _with_its_place(kind: type, reduced: Any) -> Any:
    """Adds the qualified name, which cloudpickle omits, to the reduced form of a class. Stages are named by it."""
    # A class that is pickled by name has no state. Otherwise the third item is the state: (attributes, slots).
    if reduced is not NotImplemented and not isinstance(reduced, str) and len(reduced) > 2:
        reduced[2][0]["__qualname__"] = kind.__qualname__
    return reduced


def _importable(name: str) -> bool:
    """Returns whether another process can find the module. It cannot find modules made by test runners or notebooks."""
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


def _unpicklable(values: Sequence[tuple[str, Any]], dumps: Callable[[Any], bytes], error: Exception) -> ConfigError:
    help = "create this object inside the function, or pass a path or plain values"
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
