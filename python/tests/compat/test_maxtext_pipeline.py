"""MaxText's own input pipeline reads the same over Grain and over the package of its name, and goes on from Orbax's checkpoints."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compat.differences import RULES

PROGRAM = Path(__file__).parent / "maxtext_pipeline.py"
KEYS = [f"{name}{part}" for name in ("inputs", "targets") for part in ("", "_position", "_segmentation")]


class Run:
    """The program over one library, beside the other: what it prints goes to files, so that none waits for a reader."""

    def __init__(self, library: str, folder: Path, *which: str) -> None:
        self._out, self._said = folder.with_suffix(".out"), folder.with_suffix(".said")
        with self._out.open("w") as out, self._said.open("w") as said:
            command = [sys.executable, str(PROGRAM), library, os.environ["MAXTEXT_WHEEL"], str(folder), *which]
            self._process = subprocess.Popen(command, stdout=out, stderr=said)

    def cases(self) -> dict[str, dict[str, Any]]:
        self._process.wait(timeout=600)
        said = self._said.read_text()
        assert self._process.returncode == 0, said[-4000:]
        # MaxText prints what it does to the same place.
        found = [json.loads(line) for line in self._out.read_text().splitlines() if line.startswith("{")]
        return {one["name"]: one for one in found}


Cases = dict[str, dict[str, Any]]


def require(*folders: str) -> None:
    for name in folders:
        if name not in os.environ:
            pytest.skip(f"set {name} to a folder that it was installed into: pip install --no-deps --target")
    missing = "MaxText's path needs it: pip install"
    for package in ("jax", "array_record", "google.protobuf", "orbax.checkpoint.experimental.v1", "pyarrow", "tfrecord"):
        pytest.importorskip(package, reason=f"{missing} {package}")


def of_both(folder: Path, *which: str) -> tuple[Cases, Cases]:
    """The cases over `gristmill.compat` and over Grain."""
    require("GRAIN_WHEEL", "MAXTEXT_WHEEL")
    runs = Run("SHIM", folder / "shim", *which), Run(os.environ["GRAIN_WHEEL"], folder / "grain", *which)
    return runs[0].cases(), runs[1].cases()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cases, Cases]:
    return of_both(tmp_path_factory.mktemp("maxtext"))


def test_batches_are_those_of_grain(both: tuple[Cases, Cases]) -> None:
    ours, theirs = both
    assert ours.keys() == theirs.keys() and len(ours) == 23
    equal = [name for name in ours if ours[name]["batches"] == theirs[name]["batches"]]
    assert "data does not depend on workers" in RULES
    assert [name for name in ours if name not in equal] == ["workers"]
    assert ours["workers"]["batches"] == ours["padded"]["batches"] == theirs["padded"]["batches"]
    # More than are read before the state is taken.
    assert all(len(one["batches"]) > 3 for one in ours.values())


def test_saved_runs_go_on_and_end_without_a_word(both: tuple[Cases, Cases]) -> None:
    ours, _ = both
    assert [name for name, one in ours.items() if not (one["goes_on"] and one["ends"])] == []


def test_the_drop_in_for_maxtext_resumes_and_serves_hosts(tmp_path: Path) -> None:
    require("MAXTEXT_WHEEL")
    command = [sys.executable, str(PROGRAM.with_name("maxtext_own.py")), os.environ["MAXTEXT_WHEEL"], str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(run.stdout.splitlines()[-1])
    first = found.pop("first")
    assert len(first) == 3
    assert all(sorted(batch) == KEYS and all(value[:2] == ["<i4", [4, 64]] for value in batch.values()) for batch in first)
    assert found == {"goes_on": True, "evaluations": [81, 81], "hosts": True}


@pytest.mark.weekly
def test_every_configuration_that_maxtext_offers(tmp_path: Path) -> None:
    """All pairs of source, objective and packing; those that fail over Grain are not offered."""
    ours, theirs = of_both(tmp_path, "all")
    offered = [name for name, one in theirs.items() if "batches" in one]
    assert ours.keys() == theirs.keys() and len(offered) >= 319
    assert [name for name in offered if ours[name].get("batches") != theirs[name]["batches"]] == []
    assert [name for name in offered if not (ours[name]["goes_on"] and ours[name]["ends"])] == []
