"""What several tests need: files of a few records, and vectors made by Grain itself. And how tests are spread over processes."""

import datetime
import gc
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Read when JAX is imported, which is later: several devices to shard over, where there is but a CPU.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

REPOSITORY = Path(__file__).resolve().parents[2]
# Files whose tests compare shares of time: they run alone.
MEASURING = {"test_report.py", "test_why.py"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests of a file in one process if they share a fixture, such as a server or a cluster, which starts once."""
    for item in items:
        if item.path.name in MEASURING:
            item.add_marker(pytest.mark.alone)
        definitions = getattr(item, "_fixtureinfo").name2fixturedefs.values() if hasattr(item, "_fixtureinfo") else ()
        if any(fixture.scope != "function" and fixture.baseid for of_name in definitions for fixture in of_name):
            item.add_marker(pytest.mark.xdist_group(item.path.name))


class Flakes:
    """Lists tests that run again in the file GRISTMILL_FLAKES, each with the day."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # An outcome of pytest-rerunfailures.
        if report.outcome == "rerun" and "GRISTMILL_FLAKES" in os.environ:  # type: ignore[comparison-overlap]
            path = Path(os.environ["GRISTMILL_FLAKES"])
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{report.nodeid}\t{datetime.date.today()}\n")


def pytest_configure(config: pytest.Config) -> None:
    # Processes of pytest-xdist hand their reports to the first process.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Flakes())


@pytest.fixture
def own_heap() -> Iterator[None]:
    """Collections go through the objects of the test only, and not through the packages that other tests have imported."""
    gc.freeze()
    yield
    gc.collect()
    gc.unfreeze()


@pytest.fixture
def golden() -> Callable[[str], Any]:
    """Reads a file of vectors that lies beside the repository, or where GRISTMILL_GOLDEN says."""

    def read(name: str) -> Any:
        folder = Path(os.environ.get("GRISTMILL_GOLDEN", REPOSITORY.parent / "shared" / "golden"))
        if not (folder / name).exists():
            pytest.skip(f"no {folder / name}: set GRISTMILL_GOLDEN to the folder of Grain's vectors")
        return json.loads((folder / name).read_text())

    return read


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """Twenty records: a number, a text, and a list of its length."""
    path = tmp_path / "records.jsonl"
    records = [{"n": n, "text": "x" * (n % 5), "ids": list(range(n % 7 + 1))} for n in range(20)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    """Forty rows of four float32."""
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(160, dtype=np.float32).reshape(40, 4))
    return path
