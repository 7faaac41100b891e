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


def start(library: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), library, os.environ["MAXTEXT_WHEEL"], str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def cases(process: subprocess.Popen[str]) -> dict[str, dict[str, Any]]:
    out, said = process.communicate(timeout=600)
    assert process.returncode == 0, said[-4000:]
    assert "Traceback" not in said or "AssertionError: ()" in said, said[-4000:]
    # MaxText prints what it does to the same place.
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {one["name"]: one for one in found}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    for name in ("GRAIN_WHEEL", "MAXTEXT_WHEEL"):
        if name not in os.environ:
            pytest.skip(f"set {name} to a folder that it was installed into: pip install --no-deps --target")
    missing = "MaxText's path needs it: pip install"
    for package in ("jax", "array_record", "google.protobuf", "orbax.checkpoint.experimental.v1"):
        pytest.importorskip(package, reason=f"{missing} {package}")
    folder = tmp_path_factory.mktemp("maxtext")
    theirs, ours = start(os.environ["GRAIN_WHEEL"], folder / "grain"), start("SHIM", folder / "shim")
    return cases(ours), cases(theirs)


def test_batches_are_those_of_grain(both: tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]) -> None:
    ours, theirs = both
    assert ours.keys() == theirs.keys() and len(ours) == 10
    equal = [name for name in ours if ours[name]["batches"] == theirs[name]["batches"]]
    assert "data does not depend on workers" in RULES
    assert [name for name in ours if name not in equal] == ["workers"]
    assert ours["workers"]["batches"] == ours["padded"]["batches"] == theirs["padded"]["batches"]
    assert all(len(one["batches"]) > 5 for one in ours.values())


def test_saved_runs_go_on_and_end_without_a_word(both: tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]) -> None:
    ours, _ = both
    assert [name for name, one in ours.items() if not (one["goes_on"] and one["ends"])] == []
