"""What differs from Grain on purpose, each rule of the table on both sides. Grain's is run where its wheel is."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compat.differences import RULES

PROGRAM = Path(__file__).parent / "both_sides.py"


def side(library: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(PROGRAM), library], capture_output=True, text=True, timeout=300)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


OURS: dict[str, Any] = {
    "data does not depend on workers": [[0, 1, 2], [3, 4, 5], [6, 7]],
    "no record of a shard is lost": [9, 8],
    "pieces have random numbers": [True, True],
    "a full row takes no sequence of no cells": [0, 0, 3, 0, 6],
    "a sequence of no cells has no beginning": [7, 5, 5, 7, 0, 0, 0, 0],
    "a short last window is shuffled": list(range(10)),
    "every length is permuted": 65537,
    "cut tokens come once": [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [100, 101, 102, 103, 104, 105]],
    "every host has as many batches": [2, 2],
    "streams are elastic": [[[5, 7], [13, 15]]] * 2,
    "no index is behind 2^64": "refused",
    "negative indices count from the end": True,
    "a batch has the byte order of the machine": ["=i4", "=i4"],
    "errors are of one family": "ValueError",
    "ends are no places": "refused",
}


def test_every_rule_is_shown() -> None:
    assert OURS.keys() == RULES.keys()
    assert side("SHIM") == OURS


def test_grain_is_as_the_rules_say() -> None:
    if "GRAIN_WHEEL" not in os.environ:
        pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
    theirs = side(os.environ["GRAIN_WHEEL"])
    assert theirs.keys() == RULES.keys()
    assert [name for name in RULES if theirs[name] == OURS[name]] == []
