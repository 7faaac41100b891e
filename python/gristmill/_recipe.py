"""Recipes of datasets: each dataset records the method call that made it, so that a worker can repeat the calls.

A recipe is a list of steps that contains each ancestor of a dataset once. If all stages are native, the arguments are
plain values and the list is written without pickle.
"""

from __future__ import annotations

import os

from gristmill import _gristmill
from gristmill._gristmill import IterDataset, MapDataset
from gristmill._tokenizers import adapted

# `typing` is not imported: a native worker starts in half the time without it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias, TypeGuard

    Dataset: TypeAlias = MapDataset | IterDataset
    #: A class, its method and the encoded arguments, which refer to earlier steps by number.
    Step: TypeAlias = tuple[str, str, Any, Any]

_DATASETS = (MapDataset, IterDataset)
# Docstrings of stages that pipeline files have, too. Their methods have none.
_DOCS: dict[str, str] = getattr(_gristmill, "_docs")
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))


def _is_dataset(value: object) -> TypeGuard[Dataset]:
    return isinstance(value, _DATASETS)


def record(owner: type[Any]) -> None:
    """Wraps every public method of `owner` so that the datasets it returns record the call."""
    for name, member in list(vars(owner).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, staticmethod):
            setattr(owner, name, staticmethod(_noted(owner, name, member.__func__)))
        elif callable(member):
            setattr(owner, name, _noted(owner, name, member))
    # Recorded inside, so that recipes have the contents in place of an object.
    setattr(owner, "tokenise", adapted(getattr(owner, "tokenise")))


def _noted(owner: type[Any], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            made = method(*args, **kwargs)
        except OverflowError as error:
            raise out_of_range(name, method, args, kwargs) or error from None
        if _is_dataset(made):
            getattr(made, "_record")((owner.__name__, name, args, kwargs))
        return made

    call.__name__, call.__qualname__, call.__doc__ = name, f"{owner.__name__}.{name}", method.__doc__ or _DOCS.get(name)
    # `inspect.signature` follows this attribute.
    setattr(call, "__wrapped__", method)
    return call


def in_range(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `function` so that an `OverflowError` names the number that is out of range."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OverflowError as error:
            raise out_of_range(function.__name__, function, args, kwargs) or error from None

    call.__name__, call.__qualname__, call.__doc__ = function.__name__, function.__qualname__, function.__doc__
    setattr(call, "__wrapped__", function)
    return call


def out_of_range(
    name: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    """Returns the error about the first out-of-range argument of `method`, or `None` if there is none."""
    from gristmill._errors import ConfigError

    for argument, value in (*zip(_names(method), args), *kwargs.items()):
        most = (1 << 32) - 1 if argument == "seed" else (1 << 63) - 1
        number = _misfit(value, most)
        if number is not None:
            # Arguments that are not seeds have several limits.
            limit = "must be 0 or more" if number < 0 else f"must be {most} or less" if argument == "seed" else "is too large"
            return ConfigError(f"{name}: {argument} is {number}, and {limit}")
    return None


def _names(method: Callable[..., Any]) -> list[str]:
    """Returns the names of the arguments of `method`, including `self`."""
    import inspect

    try:
        return list(inspect.signature(method).parameters)
    except ValueError:
        return []


def _misfit(value: Any, most: int) -> int | None:
    """Returns the first number in `value` that is negative or greater than `most`."""
    given: object = value
    if isinstance(given, (list, tuple)):
        return next((found for part in value if (found := _misfit(part, most)) is not None), None)
    if isinstance(given, dict):
        return _misfit(list(value.values()), most)
    if isinstance(given, slice):
        # Negative bounds of a slice count from the end.
        parts = (part for part in (value.start, value.stop, value.step) if isinstance(part, int))
        return next((part for part in parts if abs(part) > most), None)
    return given if isinstance(given, int) and not 0 <= given <= most else None


def recipe(dataset: Dataset) -> tuple[str, str, tuple[Any, ...], dict[str, Any]]:
    """Returns the class and the method that made `dataset`, and the arguments."""
    made: tuple[str, str, tuple[Any, ...], dict[str, Any]] | None = getattr(dataset, "_recipe")
    if made is None:
        raise TypeError(f"{dataset!r} has no record of the call that made it")
    return made


def datasets_in(arguments: Iterable[Any]) -> Iterator[Dataset]:
    """Yields the datasets among `arguments`."""
    for given in arguments:
        value: object = given
        kind = type(value)
        if _is_dataset(given):
            yield given
        elif kind is dict:
            yield from datasets_in(given.values())
        elif (kind is list or kind is tuple) and given and isinstance(given[0], (*_DATASETS, list, tuple, dict)):
            # Other lists hold no datasets and may be long, so they are not searched.
            yield from datasets_in(given)


def asks_for_workers(last: Dataset) -> bool:
    """Returns whether `last` or an ancestor of it was made by `mp_prefetch`."""
    waiting, seen = [last], {id(last)}
    while waiting:
        made = getattr(waiting.pop(), "_recipe")
        if made is not None:
            if made[1] == "mp_prefetch":
                return True
            parents = {id(parent): parent for parent in datasets_in((*made[2], *made[3].values()))}
            waiting += [parent for key, parent in parents.items() if key not in seen]
            seen |= parents.keys()
    return False


class Plan:
    """The steps that rebuild a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.steps: list[Step] = []
        #: Arguments that need an interpreter with its packages, each with the name of its method.
        self.foreign: list[tuple[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._add(dataset)

    def _add(self, last: Dataset) -> None:
        # Iterative: a pipeline may have more stages than Python's recursion limit.
        waiting = [last]
        while waiting:
            dataset = waiting[-1]
            owner, method, args, kwargs = recipe(dataset)
            missing = [parent for parent in datasets_in((*args, *kwargs.values())) if id(parent) not in self._numbers]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if id(dataset) in self._numbers:
                continue
            if method == "mp_prefetch":
                # Workers do not start workers, and the number of workers does not affect the data.
                args, kwargs = args[:1], {}
            if method == "source":
                # Elements are Python objects, whose conversion needs NumPy, also if the list holds plain values alone.
                self.foreign.append((method, (*args, *kwargs.values())))
            self._numbers[id(dataset)] = len(self.steps)
            self.steps.append((owner, method, self._encoded(method, args), self._encoded(method, kwargs)))

    def _encoded(self, method: str, value: Any) -> tuple[Any, ...]:
        """Returns the value as a pair: its kind and its contents."""
        given: object = value
        kind = type(given)
        if kind in _PLAIN:
            return ("is", value)
        if _is_dataset(value):
            return ("dataset", self._numbers[id(value)])
        if kind is list or kind is tuple:
            return (kind.__name__, [self._encoded(method, part) for part in value])
        if kind is dict and all(type(key) in _PLAIN for key in value):
            return ("dict", {key: self._encoded(method, part) for key, part in value.items()})
        if kind is slice:
            return ("slice", [self._encoded(method, part) for part in (value.start, value.stop, value.step)])
        if hasattr(kind, "__fspath__"):
            return ("is", _text_of(value))
        # NumPy scalars. NumPy arrays have `__index__` as well.
        if hasattr(kind, "__index__") and not hasattr(kind, "__len__"):
            return ("is", int(value))
        self.foreign.append((method, value))
        return ("is", value)


def rebuild(steps: list[Step]) -> Dataset:
    """Returns the dataset that the steps make."""
    owners: dict[str, type[Any]] = {"MapDataset": MapDataset, "IterDataset": IterDataset}
    made: list[Dataset] = []
    for owner, method, args, kwargs in steps:
        call: Callable[..., Dataset] = getattr(owners[owner], method)
        made.append(call(*_decoded(args, made), **_decoded(kwargs, made)))
    return made[-1]


def _decoded(encoded: tuple[Any, ...], made: list[Dataset]) -> Any:
    kind: str = encoded[0]
    value: Any = encoded[1]
    if kind == "is":
        return value
    if kind == "dataset":
        number: int = value
        return made[number]
    if kind == "dict":
        return _decoded_fields(value, made)
    parts: list[Any] = [_decoded(part, made) for part in value]
    if kind == "slice":
        return slice(*parts)
    return parts if kind == "list" else tuple(parts)


def _decoded_fields(fields: dict[Any, Any], made: list[Dataset]) -> dict[Any, Any]:
    return {key: _decoded(part, made) for key, part in fields.items()}


def _text_of(path: os.PathLike[str]) -> str:
    return os.fspath(path)


def reduce(dataset: Dataset) -> tuple[Callable[[list[Step]], Dataset], tuple[list[Step]]]:
    """Implements `__reduce__` of datasets."""
    return rebuild, (Plan(dataset).steps,)
