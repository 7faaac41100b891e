"""Runs the tests in Grain's wheel against `gristmill.compat.grain`: a pytest plugin.

The test modules come from the wheel; all their imports from Grain come from the shim. Modules of the wheel that only
tests need are loaded from the wheel under their own names. `not_passed.txt` lists every case that does not pass, with
its reason. The run fails if an unlisted case fails, or if a listed case passes, unless its reason allows passing by
chance.
"""

import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cloudpickle
import pytest

import gristmill.compat.grain

# Functions of this module are also pickled by value for workers.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

WHEEL = Path(os.environ["GRAIN_WHEEL"])
NOT_PASSED = Path(__file__).parent / "not_passed.txt"
# Modules that tests import but the shim does not provide: the core measures each run and provides the report.
ABSENT = (
    "grain.proto",
    "grain.proto.execution_summary_pb2",
    "grain._src.python.dataset.stats",
)
# Test code of the wheel in modules whose names do not end in `_test`.
HELPERS = (
    "grain._src.core.pytest",
    "grain._src.python.dataset.transformations.testing_util",
)


class _Absent(importlib.abc.Loader):
    """A loader that makes an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = self.missing  # type: ignore[method-assign]

    @staticmethod
    def missing(name: str) -> Any:
        raise AttributeError(f"the shim has no {name}")


class _TestCode(importlib.abc.MetaPathFinder):
    """A finder of the test code in the wheel."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname in ABSENT:
            return importlib.util.spec_from_loader(fullname, _Absent(), is_package=True)
        if not (fullname in HELPERS or fullname.startswith("grain.") and fullname.endswith("_test")):
            return None
        return importlib.util.spec_from_file_location(fullname, WHEEL.joinpath(*fullname.split(".")).with_suffix(".py"))


def find_grain() -> None:
    """Makes imports of Grain load the shim, except for test code."""
    gristmill.compat.grain.install()
    sys.meta_path.insert(0, _TestCode())


def pytest_configure(config: pytest.Config) -> None:
    find_grain()
    # `multiprocessing` needs a main file for the child processes of tests; a process of pytest-xdist has none.
    vars(sys.modules["__main__"]).setdefault("__file__", str(Path(__file__).with_name("run.py")))
    from absl import flags

    # Tests check whether JAX has been imported.
    with contextlib.suppress(ImportError):
        importlib.import_module("jax")

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["oracle"])


# Tests that wait half a minute for prefetching. They get a faster clock.
WAITING = "test_start_prefetch"
HASTE = 6


def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and item.name.startswith(WAITING) and hasattr(item.module, "time"):
        item.module.time = SimpleNamespace(time=lambda: HASTE * time.time(), sleep=time.sleep)


def pytest_runtest_call(item: pytest.Item) -> None:
    from absl import flags

    # Tests search for data files beside Grain's modules, which are the shim's modules here.
    if "test_srcdir" in flags.FLAGS:
        flags.FLAGS["test_srcdir"].parse(str(WHEEL / "grain" / "_src" / "python"))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and isinstance(getattr(item.module, "time", None), SimpleNamespace):
        item.module.time = time


def case(nodeid: str) -> str:
    """Returns the case as `slice_test.py::Class::name`, independent of the wheel's folder."""
    file, _, name = nodeid.partition("::")
    return f"{Path(file).name}::{name}"


def listed() -> Iterator[tuple[str, str]]:
    """Yields the cases that do not pass, each with the reason in the comment above it."""
    reason = ""
    for line in NOT_PASSED.read_text().splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line.strip():
            yield line.strip(), reason


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Workers cannot import modules that a test runner has made, so functions are pickled by value.
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        cloudpickle.register_pickle_by_value(module)
    reasons = dict(listed())
    files = {case(item.nodeid).partition("::")[0] for item in items}
    found = {case(item.nodeid) for item in items}
    gone = [name for name in reasons if name.partition("::")[0] in files and name not in found]
    if gone and not any("::" in argument for argument in sys.argv):
        raise pytest.UsageError(f"{NOT_PASSED.name} has cases that are not there: {gone}")
    for item in items:
        reason = reasons.get(case(item.nodeid))
        if reason is not None:
            strict, run = not reason.startswith("by chance"), not reason.startswith("hangs")
            item.add_marker(pytest.mark.xfail(reason=reason, strict=strict, run=run))
