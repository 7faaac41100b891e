"""Functions reach worker processes, wherever they lie and whichever module they are of."""

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import gristmill as gm
import pytest

WORKERS: dict[str, Any] = {"ram_budget": "1GiB", "worker_heap": "192MiB", "num_workers": 1}

SOURCE = """
BASE = 7

def plus(x):
    return x + BASE

class Adder:
    def __init__(self, n):
        self.n = n
    def __call__(self, x):
        return plus(x) + self.n
    def method(self, x):
        return self(x)
"""


@pytest.fixture
def nowhere() -> Iterator[Any]:
    """A module that is in no file: another process cannot import it."""
    module = ModuleType("module_of_no_file")
    exec(SOURCE, module.__dict__)
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


class Holder:
    """Holds a function where nobody sees it."""

    def __init__(self, held: Any) -> None:
        self.inside = [{"held": held}]

    def __call__(self, x: int) -> int:
        function: Callable[[int], int] = self.inside[0]["held"]
        return function(x)


def closure(module: Any) -> Callable[[int], int]:
    return lambda x: int(module.plus(x))


#: Ways to hold what is in a module.
HELD: dict[str, Callable[[Any], Callable[[int], int]]] = {
    "function": lambda module: module.plus,
    "object": lambda module: module.Adder(0),
    "bound method": lambda module: module.Adder(0).method,
    "partial": lambda module: functools.partial(functools.partial(module.plus)),
    "held by an object": lambda module: Holder(module.plus),
    "held twice": lambda module: Holder(functools.partial(Holder(module.Adder(0).method))),
    "the module itself": closure,
}


@pytest.mark.parametrize("held", HELD)
def test_what_no_other_process_can_import_goes_by_value(held: str, nowhere: Any) -> None:
    found = list(gm.MapDataset.range(3).map(HELD[held](nowhere)).mp_prefetch(**WORKERS))
    assert found == [7, 8, 9]
    assert nowhere.__name__ not in cloudpickle.list_registry_pickle_by_value()


def test_what_is_by_value_already_stays_so(nowhere: Any) -> None:
    cloudpickle.register_pickle_by_value(nowhere)
    try:
        assert list(gm.MapDataset.range(2).map(nowhere.plus).mp_prefetch(**WORKERS)) == [7, 8]
        assert nowhere.__name__ in cloudpickle.list_registry_pickle_by_value()
    finally:
        cloudpickle.unregister_pickle_by_value(nowhere)


def test_what_can_be_imported_goes_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_the_script.py").write_text("COUNT = 1\ndef number(x):\n    return x + COUNT\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = __import__("beside_the_script")
    # By value it would come with the number that is here now.
    module.COUNT = 100
    found = gm.MapDataset.range(2).map(Holder(functools.partial(module.number))).mp_prefetch(**WORKERS)
    assert list(found) == [1, 2]
