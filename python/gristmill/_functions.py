"""Fingerprints of Python functions, equal in all processes, from their code and the values it uses.

A fingerprint is a hash of the bytecode, constants, defaults, closure, and the globals and module attributes that the
code names. Functions among these values are hashed recursively. Libraries count by version. Other objects count by
type only; a sample of records compares their contents.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dis import get_instructions
from functools import partial
from hashlib import blake2b
from importlib import import_module
from itertools import islice, pairwise
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from gristmill._gristmill import IterDataset
from gristmill._recipe import datasets_in, recipe

#: `IterDataset` methods, besides `*_pack`, that combine many elements. Functions after them have no fingerprint.
_OF_MANY = frozenset(("batch", "length_buckets", "rebatch"))
#: Attribute by which an object supplies its own fingerprint.
_OWN_NAME = "gristmill_fingerprint"


def named(dataset: Any) -> str:
    """Returns the fingerprint of the functions of `dataset` before its rows or batches; empty if there are none."""
    functions: list[Any] = []
    _gather(dataset, functions)
    return _Digest().of(functions) if functions else ""


def _gather(dataset: Any, functions: list[Any]) -> bool:
    """Appends the functions called before rows or batches, sources first. Returns whether later stages may add more."""
    owner, method, args, kwargs = recipe(dataset)
    arguments = [*args, *kwargs.values()]
    parents = list(datasets_in(arguments))
    # A list, not a generator: `all` would stop at the first false result.
    if not all([_gather(parent, functions) for parent in parents]):
        return False
    if owner == IterDataset.__name__ and (method in _OF_MANY or method.endswith("_pack")):
        return False
    functions.extend(value for value in arguments if _is_function(value))
    return True


#: Methods of sources and of transforms that are written as classes.
_METHODS = ("map", "map_with_index", "random_map", "filter", "flat_map", "__getitem__")


def _is_function(value: Any) -> bool:
    return callable(value) or (_is_of_user(type(value).__module__) and any(hasattr(value, name) for name in _METHODS))


_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_of_user(module: Any) -> bool:
    """Returns whether a module belongs to the program and not to a library."""
    found = sys.modules.get(module) if isinstance(module, str) else None
    if found is None:
        return True
    file = getattr(found, "__file__", None)
    # An editable install keeps this package outside the library folders.
    is_library = found.__name__.partition(".")[0] == __package__ or file is None or file.startswith(_LIBRARIES)
    return found.__name__ == "__main__" or not is_library


#: Limits: items that count at each end of a longer list, and depth of nested objects.
_ITEMS, _DEPTH = 5000, 200


#: Class attributes that do not affect behaviour.
_NO_BEHAVIOUR = frozenset(("__doc__", "__module__", "__firstlineno__", "__qualname__"))


def _is(value: Any, *kinds: type[Any]) -> bool:
    """Calls `isinstance` without narrowing the type for checkers."""
    return isinstance(value, kinds)


def _kind(value: Any) -> type[Any]:
    kind: type[Any] = value.__class__
    return kind


class _Digest:
    """A hash of values that visits each object once."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._seen: dict[int, int] = {}
        # Keeps the objects alive, so that no other object gets the same id.
        self._kept: list[Any] = []
        self._depth = 0

    def of(self, value: Any) -> str:
        self._add(value)
        return self._hash.hexdigest()

    def _say(self, *words: object) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogatepass")
            self._hash.update(len(data).to_bytes(8, "little") + data)

    def _add(self, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)) or value is Ellipsis:
            self._say(type(value).__name__, value if isinstance(value, bytes) else repr(value))
            return
        if id(value) in self._seen:
            self._say("again", self._seen[id(value)])
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        self._depth += 1
        if self._depth <= _DEPTH:
            self._add_by_kind(value)
        self._depth -= 1

    def _add_by_kind(self, value: Any) -> None:
        own = getattr(value, _OWN_NAME, None)
        if isinstance(own, str):
            self._say("named", own)
        elif isinstance(value, CodeType):
            self._add_code(value)
        elif isinstance(value, FunctionType):
            self._add_function(value)
        elif isinstance(value, MethodType):
            self._add_all("method", (value.__func__, value.__self__))
        elif isinstance(value, partial):
            self._add_all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, BuiltinFunctionType):
            of = value.__self__
            self._add_all(f"builtin {value.__module__}.{value.__qualname__}", () if isinstance(of, (ModuleType, type)) else (of,))
        elif not _is(value, type) and _is(getattr(value, "__wrapped__", None), FunctionType):
            # The wrapper's own state, such as the cache of `functools.cache`, does not affect behaviour.
            self._add_all("wrapped", (_kind(value), value.__wrapped__))
        elif isinstance(value, ModuleType):
            self._add_library(value.__name__)
        elif _is(value, type):
            self._add_type(value)
        elif _is(value, list, tuple):
            items = value if len(value) <= 2 * _ITEMS else [*value[:_ITEMS], *value[-_ITEMS:]]
            self._add_all(f"{type(value).__name__} of {len(value)}", items)
        elif _is(value, set, frozenset):
            self._say("set", *sorted(_Digest().of(item) for item in value))
        elif _is(value, Mapping):
            self._say("mapping", len(value))
            for key, item in islice(value.items(), 2 * _ITEMS):
                self._add(key)
                self._add(item)
        elif type(value).__module__ == "numpy" and hasattr(value, "tobytes") and not value.dtype.hasobject:
            self._say("numpy", value.dtype.str, value.shape, value.tobytes())
        else:
            self._add_object(value)

    def _add_all(self, kind: str, values: Iterable[Any]) -> None:
        self._say(kind)
        for value in values:
            self._add(value)

    def _add_code(self, code: CodeType) -> None:
        self._say("code", code.co_code, code.co_exceptiontable, code.co_argcount, code.co_kwonlyargcount, *code.co_names)
        self._add_all("constants", code.co_consts)

    def _add_function(self, function: FunctionType) -> None:
        self._add_all("function", (function.__code__, function.__defaults__, function.__kwdefaults__))
        codes = list(_codes(function.__code__))
        changed = _changed(codes)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            # A cell may be empty.
            with suppress(ValueError):
                if name not in changed:
                    self._add_all(name, (cell.cell_contents,))
        names = sorted({name for code in codes for name in code.co_names})
        used = {name: function.__globals__[name] for name in names if name in function.__globals__}
        used |= {name: module for code in codes for name, module in _imported(code)}
        for name in _changed(codes):
            used.pop(name, None)
        for name, value in used.items():
            self._say("global", name)
            if isinstance(value, ModuleType) and _is_of_user(value.__name__):
                for attribute in names:
                    if attribute in vars(value):
                        self._say("attribute", attribute)
                        self._add(vars(value)[attribute])
            else:
                self._add(value)

    def _add_type(self, kind: type) -> None:
        if not _is_of_user(kind.__module__):
            self._add_library(kind.__module__, kind.__qualname__)
            return
        self._add_all(f"type {kind.__qualname__}", kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            of: Any = member
            if _is(of, staticmethod, classmethod):
                of = of.__func__
            if _is(of, property):
                self._add_all(name, (of.fget,))
            elif _is(of, FunctionType, int, float, str, bytes, tuple, list, dict) and name not in _NO_BEHAVIOUR:
                self._add_all(name, (of,))

    def _add_object(self, value: Any) -> None:
        kind = _kind(value)
        self._say("object")
        self._add(kind)
        if _is_of_user(kind.__module__):
            for name, held in sorted(getattr(value, "__dict__", {}).items()):
                self._add_all(name, (held,))
            for name in _slots(kind):
                self._add_all(name, (getattr(value, name, None),))

    def _add_library(self, module: str, *more: str) -> None:
        top = sys.modules.get(module.partition(".")[0])
        self._say("library", module, getattr(top, "__version__", ""), *more)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields the code of a function and the code nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


#: Methods that mutate their object.
_CHANGES = frozenset(("add", "append", "appendleft", "clear", "extend", "put", "setdefault", "update"))


def _changed(codes: Iterable[CodeType]) -> frozenset[str]:
    """Returns the outer variables that a function mutates, as in `seen.append(…)`. They do not count as behaviour."""
    return frozenset(
        loaded.argval
        for code in codes
        for loaded, method in pairwise(get_instructions(code))
        if loaded.opname in ("LOAD_DEREF", "LOAD_GLOBAL") and method.argval in _CHANGES and method.opname in ("LOAD_METHOD", "LOAD_ATTR")
    )


def _imported(code: CodeType) -> Iterator[tuple[str, ModuleType]]:
    """Yields the modules that a function imports in its body."""
    for instruction in get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            # A failing import fails again when the function is called.
            with suppress(Exception):
                yield instruction.argval, import_module(instruction.argval)


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        yield from (name for name in ((slots,) if isinstance(slots, str) else slots) if name not in ("__dict__", "__weakref__"))
