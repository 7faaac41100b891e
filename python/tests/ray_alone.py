"""Programs with a Ray cluster of their own, in a network of their own, of which nothing is left when they end."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

#: Where these programs lie.
FOLDER = Path(__file__).parent
#: Marks tests that need Ray.
NEEDS_RAY = [
    pytest.mark.ray,
    # Clusters take minutes to start on a busy machine, and serve all tests of a file.
    pytest.mark.timeout(3100),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install ray==2.60.0"),
]
_RUN = 'ip link set lo up && "$@"; exit $?'
#: A network in which Ray finds no other address than that of this machine, and processes that all end with the first; as much of that as
#: may be had here.
_WAYS = (
    ["unshare", "-Urnmpf", "--kill-child", "--mount-proc", "sh", "-c", _RUN, "sh"],
    ["unshare", "-Urnm", "sh", "-c", _RUN, "sh"],
)


@cache
def alone() -> list[str]:
    """What stands in front of a command, so that it runs alone; nothing where that is not allowed."""
    return next((way for way in _WAYS if succeeds([*way, "true"])), [])


def succeeds(command: list[str]) -> bool:
    """Whether a command ends well."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def run_alone(program: Path, *arguments: object, timeout: float) -> str:
    """What a program prints, which must end well. Its folder of Ray's is its own: Ray would find clusters there that others left behind."""
    # Sockets are in it, whose paths may not be long.
    with tempfile.TemporaryDirectory(prefix="gr", ignore_cleanup_errors=True) as folder:
        env = {**os.environ, "RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
        command = [*alone(), sys.executable, str(program), *map(str, arguments)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


def came_of(program: str, file: Path, *, timeout: float) -> dict[str, Any]:
    """What a program of this folder wrote to `file`."""
    run_alone(FOLDER / program, file, timeout=timeout)
    came: dict[str, Any] = json.loads(file.read_text())
    return came
