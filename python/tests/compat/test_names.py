"""Every public name of Grain's is there, but for those that stand here with their reason."""

import json
import os
import subprocess
import sys

import pytest

MODULES = [
    "",
    "checkpoint",
    "constants",
    "experimental",
    "multiprocessing",
    "python",
    "samplers",
    "sharding",
    "sources",
    "transforms",
    "proto.execution_summary_pb2",
    "_src.core.monitoring",
]
# What the module of metrics imports for itself.
ABSENT = {f"_src.core.monitoring.{name}" for name in ("annotations", "fast_monitoring", "monitoring_base")}

# Names of modules, of classes with their public methods: `program WHEEL|SHIM`.
PROGRAM = f"""
import importlib, inspect, json, sys
if sys.argv[1] == "SHIM":
    import gristmill.compat.grain
    gristmill.compat.grain.install()
else:
    sys.path.insert(0, sys.argv[1])
    # What the modules name that is there with Orbax.
    import orbax.checkpoint
found = {{}}
for name in {MODULES!r}:
    module = importlib.import_module("grain." + name if name else "grain")
    lazy = ["CheckpointSave", "CheckpointRestore", "PyGrainCheckpointSave", "PyGrainCheckpointRestore"]
    for key in [*vars(module), *lazy]:
        if key.startswith("_") or not hasattr(module, key):
            continue
        value = getattr(module, key)
        found[name + "." + key] = sorted(
            at for at in dir(value) if not at.startswith("_") and callable(getattr(value, at))
        ) if inspect.isclass(value) and value.__module__.startswith(("grain", "gristmill")) else []
print(json.dumps(found))
"""


def names(library: str) -> dict[str, list[str]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, library], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_all_names_of_grain_are_there() -> None:
    if "GRAIN_WHEEL" not in os.environ:
        pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
    pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed: pip install orbax-checkpoint")
    ours, theirs = names("SHIM"), names(os.environ["GRAIN_WHEEL"])
    assert len(theirs) > 130
    assert {name for name in theirs if name not in ours} == ABSENT
    # Ours are of an array of NumPy's too, and those of a class are not lost in it.
    missing = {f"{name}.{at}" for name, attributes in theirs.items() if name in ours for at in set(attributes) - set(ours[name])}
    assert missing == set()
