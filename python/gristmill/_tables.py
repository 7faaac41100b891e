"""Access to tables that lack Arrow's C interface but contain or can become a table with it."""

from collections.abc import Mapping
from typing import Any


def taken(given: Any) -> tuple[Any, Any]:
    """Returns the table inside `given` and an array with the indices of its rows, or `None` for all rows in order.

    Raises `TypeError`, with a hint how to get a table.
    """
    libraries = {base.__module__.partition(".")[0] for base in _kind(given).__mro__}
    if "datasets" in libraries:
        return _of_hugging_face(given)
    if "polars" in libraries and hasattr(given, "collect"):
        raise _refused(given, "it is a query that has not run: pass .collect() of it")
    if _is(given, Mapping):
        raise _refused(given, "pyarrow.table(…) makes a table of a dict of columns")
    if _is(given, list, tuple) and any(hasattr(part, "__arrow_c_array__") for part in given):
        raise _refused(given, "pyarrow.Table.from_batches(…) makes a table of a list of record batches")
    if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        raise _refused(given, "gm.MapDataset.source(…) reads anything with `__len__` and `__getitem__`")
    raise _refused(given, None)


def _of_hugging_face(given: Any) -> tuple[Any, Any]:
    """Returns the table of a `datasets.Dataset`, and the rows left after `shuffle`, `select` and `filter`."""
    if _is(given, Mapping):
        raise _refused(given, f"it is one dataset for each split: pass one of {list(given)}")
    if not hasattr(given, "_indices"):
        if hasattr(given, "__iter__") and hasattr(given, "_ex_iterable"):
            raise _refused(given, "it has no random access: gm.IterDataset.source(…) reads it in order")
        raise _refused(given, "pass the dataset itself: which of the rows it has, and in which order, its table does not know")
    indices = given._indices
    return given.data.table, None if indices is None else indices.column(0).to_numpy()


def _refused(given: Any, hint: str | None) -> TypeError:
    kind = _kind(given)
    needs = "needs a table with `__arrow_c_stream__` or `__arrow_c_array__`, or paths"
    return TypeError(f"arrow() {needs}, got {kind.__module__}.{kind.__qualname__}" + (f": {hint}" if hint else ""))


def _kind(given: Any) -> type[Any]:
    kind: type[Any] = given.__class__
    return kind


def _is(given: Any, *kinds: type[Any]) -> bool:
    return isinstance(given, kinds)
