"""Runs the tests that Grain's wheel ships against `gristmill.compat.grain`: a plugin for pytest.

The test modules come from the wheel, everything that they import from Grain comes from the shim. Modules of the wheel that
only its tests need are loaded from it under their own names. Every case that does not pass stands in `not_passed.txt` with
its reason; the run fails for one that does not stand there, and for one that stands there and passes, unless it does so by
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

# Functions of this module, too, go to workers by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

WHEEL = Path(os.environ["GRAIN_WHEEL"])
NOT_PASSED = Path(__file__).parent / "not_passed.txt"
# Modules that tests import for what the shim has no part of: a run is measured by the core, and its report is the core's.
ABSENT = (
    "grain.proto",
    "grain.proto.execution_summary_pb2",
    "grain._src.python.dataset.stats",
)
# Modules of the wheel that are test code, though their names do not end in `_test`.
HELPERS = (
    "grain._src.core.pytest",
    "grain._src.python.dataset.transformations.testing_util",
)


class _Absent(importlib.abc.Loader):
    """Makes an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = self.missing  # type: ignore[method-assign]

    @staticmethod
    def missing(name: str) -> Any:
        raise AttributeError(f"the shim has no {name}")


class _TestCode(importlib.abc.MetaPathFinder):
    """Finds in the wheel what is test code."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname in ABSENT:
            return importlib.util.spec_from_loader(fullname, _Absent(), is_package=True)
        if not (fullname in HELPERS or fullname.startswith("grain.") and fullname.endswith("_test")):
            return None
        return importlib.util.spec_from_file_location(fullname, WHEEL.joinpath(*fullname.split(".")).with_suffix(".py"))


def find_grain() -> None:
    """From now on Grain is the shim, but for its test code."""
    gristmill.compat.grain.install()
    sys.meta_path.insert(0, _TestCode())


def pytest_configure(config: pytest.Config) -> None:
    find_grain()
    # A process of pytest-xdist has no program that processes of its tests could load, as `multiprocessing` wants it.
    vars(sys.modules["__main__"]).setdefault("__file__", str(Path(__file__).with_name("run.py")))
    from absl import flags

    # Tests look at whether it is there.
    with contextlib.suppress(ImportError):
        importlib.import_module("jax")

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["oracle"])


# Tests that wait for half a minute, so that what is read ahead is there, by a clock of ours.
WAITING = "test_start_prefetch"
HASTE = 6


def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and item.name.startswith(WAITING) and hasattr(item.module, "time"):
        item.module.time = SimpleNamespace(time=lambda: HASTE * time.time(), sleep=time.sleep)


def pytest_runtest_call(item: pytest.Item) -> None:
    from absl import flags

    # Tests look for their files beside Grain's modules, which are the shim's here.
    if "test_srcdir" in flags.FLAGS:
        flags.FLAGS["test_srcdir"].parse(str(WHEEL / "grain" / "_src" / "python"))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and isinstance(getattr(item.module, "time", None), SimpleNamespace):
        item.module.time = time


def case(nodeid: str) -> str:
    """`slice_test.py::Class::name`, wherever the wheel lies."""
    file, _, name = nodeid.partition("::")
    return f"{Path(file).name}::{name}"


def listed() -> Iterator[tuple[str, str]]:
    """Cases that do not pass, each with the reason that stands above it."""
    reason = ""
    for line in NOT_PASSED.read_text().splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line.strip():
            yield line.strip(), reason


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Workers do not find modules that a test runner has made: their functions are sent to them.
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
