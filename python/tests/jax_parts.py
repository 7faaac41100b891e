"""One of several processes of a training job: `python jax_parts.py ADDRESS PROCESS COUNT STATE STEPS [FOLDER]`.

With a folder it trains on the pipeline that `docs/hosts.md` shows, over the corpora there. It goes on from the state in the
file `STATE`, if there is one, for so many steps or to the end. The first process saves the state of all, and prints what
the step saw of each batch, in JSON.
"""

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import jax
import numpy as np

from parts_pipeline import BATCH, pipeline, shown


def main(address: str, process: int, count: int, state: Path, steps: int, folder: str | None = None) -> None:
    jax.distributed.initialize(address, num_processes=count, process_id=process, initialization_timeout=60)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))

    if folder:
        os.chdir(folder)
    ds, size, name = (shown(), 384, "tokens") if folder else (pipeline(), BATCH, "ids")

    @jax.jit
    def step(batch: Any) -> Any:
        """Sums over all rows of all processes, and one in which each row has a weight of its own."""
        weights = jax.numpy.arange(1, size + 1)
        return batch[name].sum(), (batch[name].sum(axis=1) * weights).sum()

    loader = ds.loader(threads=1, part=gm.jax.part_for(rows, size))
    batches = gm.jax.device_put(loader, rows, global_batch=size)
    if state.exists():
        batches.set_state(state.read_text())
    seen = [[int(number) for number in step(batch)] for batch in islice(batches, steps)]
    # The last steps were not committed: they come again.
    again = min(2, len(seen))
    batches.back(again)
    assert [[int(number) for number in step(batch)] for batch in islice(batches, again)] == seen[-again:]
    if process == 0:
        state.write_text(json.dumps(batches.get_state()))
        print(json.dumps(seen), flush=True)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]), *sys.argv[6:])
