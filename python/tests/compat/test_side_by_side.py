"""Random pipelines yield the same in Grain and in the package of its name: elements, later epochs, and states."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "pipelines.py"
COUNT = 120


def pipelines(library: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(PROGRAM), library, str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_random_pipelines_yield_the_same() -> None:
    if "GRAIN_WHEEL" not in os.environ:
        pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
    ours, theirs = pipelines("SHIM"), pipelines(os.environ["GRAIN_WHEEL"])
    assert len(ours) == len(theirs) == COUNT
    for seed, (actual, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert actual == expected, f"pipeline {seed}"
    assert sum(len(one.get("elements", ())) for one in ours) > 10 * COUNT
    assert sum(len(one.get("states", ())) for one in ours) > COUNT
