"""Iterators of the package in Orbax's checkpoints, of both interfaces, as programs of Grain's save them; and Grain's in ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Saves with one library, restores with another: `program.py SHIM|WHEEL save|load FOLDER`.
PROGRAM = """
import sys
from pathlib import Path
import orbax.checkpoint as ocp
from orbax.checkpoint.experimental import v1

library, what, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
if library == "SHIM":
    import gristmill.compat.grain

    gristmill.compat.grain.install()
else:
    sys.path.insert(0, library)
import grain


def dataset():
    return iter(grain.MapDataset.range(20).shuffle(seed=3).to_iter_dataset(grain.ReadOptions(0, 0)).batch(2))


def loader():
    sampler = grain.samplers.IndexSampler(20, shuffle=True, seed=3, num_epochs=1)
    return iter(grain.DataLoader(data_source=grain.sources.RangeDataSource(0, 20, 1), sampler=sampler))


for make in (dataset, loader):
    everything, newer, older = [str(x) for x in make()], folder / f"{make.__name__}-1", folder / f"{make.__name__}-0"
    if what == "save":
        it = make()
        for _ in range(3):
            next(it)
        v1.save_checkpointables(newer, {"data": it})
        with ocp.CheckpointManager(older) as manager:
            manager.save(5, args=ocp.args.Composite(data=grain.checkpoint.CheckpointSave(it)))
        continue
    it = make()
    v1.load_checkpointables(newer, {"data": it})
    assert [str(x) for x in it] == everything[3:], (make, "newer")
    it = make()
    with ocp.CheckpointManager(older) as manager:
        manager.restore(5, args=ocp.args.Composite(data=grain.python.PyGrainCheckpointRestore(it)))
    assert [str(x) for x in it] == everything[3:], (make, "older")
"""


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("library", ["SHIM", "GRAIN"])
def test_what_was_saved_goes_on(library: str, tmp_path: Path) -> None:
    pytest.importorskip("orbax.checkpoint.experimental.v1", reason="Orbax is not installed: pip install orbax-checkpoint")
    if library == "GRAIN":
        if "GRAIN_WHEEL" not in os.environ:
            pytest.skip("set GRAIN_WHEEL to a folder that grain 0.2.18 was installed into: pip install --target")
        library = os.environ["GRAIN_WHEEL"]
    run(library, "save", str(tmp_path))
    run("SHIM", "load", str(tmp_path))
