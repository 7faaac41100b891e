"""Both ways for JAX to reach a device: a client of its own, and a plugin behind PJRT's C API, as TPUs and GPUs have."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="JAX is not installed: pip install jax")

FOLDER = Path(__file__).parent
LIBRARY = "pjrt_c_api_cpu_plugin.so"


def environment(client: str) -> dict[str, str]:
    if client == "own":
        return dict(os.environ, JAX_PLATFORMS="cpu")
    return dict(os.environ, JAX_PLATFORMS="gmcpu,cpu", PJRT_NAMES_AND_LIBRARY_PATHS=f"gmcpu:{plugin()}")


def plugin() -> str:
    """The library of XLA's plugin for the CPU: of the tests of the Rust crate, or installed."""
    given = [path for path in os.environ.get("GRISTMILL_PJRT_PLUGIN", "").split(":") if LIBRARY in path]
    spec = find_spec("lammps_jax_pjrt_cpu")
    if not given and spec is not None and spec.origin is not None:
        given = [str(Path(spec.origin).with_name(LIBRARY))]
    if not given:
        pytest.skip("no PJRT plugin for the CPU: pip install --no-deps lammps-jax-pjrt-cpu==0.11.2, or GRISTMILL_PJRT_PLUGIN")
    return given[0]


@pytest.mark.parametrize("client", ["own", "plugin"])
def test_memory_is_not_written_to_before_a_batch_has_been_read(client: str) -> None:
    command = [sys.executable, str(FOLDER / "jax_race.py")]
    run: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run(command, env=environment(client), **run)
    assert done.returncode == 0, done.stderr
    wrong = json.loads(done.stdout.splitlines()[-1])
    assert wrong.pop("own") == (client == "own")
    # A race that nobody can lose proves nothing.
    assert wrong.pop("without waiting") > 0
    assert wrong == {"shared": 0, "copied": 0, "from a worker": 0}


def test_batches_through_the_plugin() -> None:
    """What holds for JAX's own client, in `test_jax.py`, of all that runs in this process."""
    elsewhere = "not process and not example and not imported and not without_jax"
    command = [sys.executable, "-m", "pytest", "-k", elsewhere, str(FOLDER / "test_jax.py"), "-p", "no:cacheprovider"]
    run: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 240, "check": False}
    done = subprocess.run(command, env=environment("plugin"), cwd=FOLDER.parents[1], **run)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2"])
def test_a_step_compiles_once_for_tpus_that_are_not_there(topology: str) -> None:
    if not os.environ.get("GRISTMILL_TEST_TPU"):
        pytest.skip("set GRISTMILL_TEST_TPU where libtpu is installed, which is large: pip install libtpu")
    spec = find_spec("libtpu")
    assert spec is not None and spec.origin is not None, "GRISTMILL_TEST_TPU is set, and there is no libtpu"
    # What it would ask a machine of Google's for, and wait.
    machine = {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_HOSTNAMES": "localhost"}
    machine |= {"TPU_WORKER_ID": "0", "TPU_LIBRARY_PATH": str(Path(spec.origin).with_name("libtpu.so"))}
    run: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 240, "check": False}
    command = [sys.executable, str(FOLDER / "jax_tpu.py"), topology]
    done = subprocess.run(command, env=dict(os.environ, JAX_PLATFORMS="tpu,cpu", **machine), **run)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    # 32 rows over 4 devices: 8 each, which fill tiles of 8 by 128.
    assert told["specs"] == 1 and told["layout"].count("s32[8,1024]{1,0:T(8,128)}") == 3
