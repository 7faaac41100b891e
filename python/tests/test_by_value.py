"""Functions reach worker processes, wherever they lie and whichever module they are of."""

import functools
import subprocess
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


def test_classes_go_to_workers_wherever_they_are_defined() -> None:
    class Squares:
        def __len__(self) -> int:
            return 20

        def __getitem__(self, index: int) -> int:
            return index * index

    class Outer:
        class Inner(Squares):
            pass

    class Stream:
        def __iter__(self) -> Iterator[int]:
            return iter(range(20))

    def batches(ds: gm.IterDataset[Any]) -> list[list[int]]:
        with ds.batch(5).mp_prefetch(**WORKERS).loader() as it:
            found = [batch.tolist() for batch in it]
            assert it.report().as_dict()["workers"]["replaced"] == 0
        return found

    for kind in (Squares, Outer.Inner):
        ds = gm.MapDataset.source(kind()).map(lambda x: x + 1).to_iter_dataset()
        assert batches(ds) == [[i * i + 1 for i in range(first, first + 5)] for first in range(0, 20, 5)]
    stream = gm.IterDataset.source(Stream()).map(lambda x: x + 1)
    assert batches(stream) == [list(range(first + 1, first + 6)) for first in range(0, 20, 5)]


def test_classes_of_a_program_go_to_workers_through_grains_interface(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
from gristmill.compat import grain

def main():
    class Squares(grain.sources.RandomAccessDataSource):
        def __len__(self):
            return 20
        def __getitem__(self, index):
            return index * index

    class Plus(grain.transforms.Map):
        def map(self, x):
            return x + 1

    ds = grain.MapDataset.source(Squares()).map(Plus()).to_iter_dataset().batch(5)
    print([batch.tolist() for batch in ds.mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers=1))])

if __name__ == "__main__":
    main()
"""
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "[[1, 2, 5, 10, 17], [26, 37, 50, 65, 82], [101, 122, 145, 170, 197], [226, 257, 290, 325, 362]]\n", done.stderr
    assert "died" not in done.stderr
