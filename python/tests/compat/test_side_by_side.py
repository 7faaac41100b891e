"""Random pipelines yield the same in Grain and in the package of its name: elements, later epochs, and states."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "pipelines.py"
COUNT = 160


def pipelines(library: str, *more: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(PROGRAM), library, str(COUNT), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def theirs() -> list[dict[str, Any]]:
    if "GRAIN_WHEEL" not in os.environ:
        pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
    return pipelines(os.environ["GRAIN_WHEEL"])


def test_random_pipelines_yield_the_same(theirs: list[dict[str, Any]]) -> None:
    ours = pipelines("SHIM")
    assert len(ours) == len(theirs) == COUNT
    for seed, (actual, expected) in enumerate(zip(ours, theirs, strict=True)):
        if not expected.get("same"):
            actual, expected = ({**one, "states": None} for one in (actual, expected))
        assert actual == expected, f"pipeline {seed}"
    assert sum(len(one.get("elements", ())) for one in ours) > 10 * COUNT
    assert sum(len(one["states"]) for one in theirs if one.get("same")) > COUNT


def test_a_pass_goes_on_where_grain_stopped(theirs: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "grain.jsonl"
    file.write_text("\n".join(map(json.dumps, theirs)))
    restored = refused = 0
    for seed, (ours, one) in enumerate(zip(pipelines("SHIM", str(file)), theirs, strict=True)):
        for done, rest in ours["rest"]:
            if rest is None:
                refused += 1
                continue
            assert rest == one["elements"][done:], f"pipeline {seed}, behind element {done}"
            restored += not one["same"]
    # Not only states that are the same in both.
    assert restored > COUNT and refused < restored / 4
