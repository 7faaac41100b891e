"""One of several processes of a training job: `python jax_parts.py ADDRESS PROCESS COUNT STATE STEPS`.

It goes on from the state in the file `STATE`, if there is one, for so many steps or to the end. The first process saves the state of all, and
prints what the step saw of each batch, in JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import jax
import numpy as np

from parts_pipeline import BATCH, pipeline


def main(address: str, process: int, count: int, state: Path, steps: int) -> None:
    jax.distributed.initialize(address, num_processes=count, process_id=process, initialization_timeout=60)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))

    @jax.jit
    def step(batch: Any) -> Any:
        """Sums over all rows of all processes, and one in which each row has a weight of its own."""
        weights = jax.numpy.arange(1, BATCH + 1)
        return batch["ids"].sum(), (batch["ids"].sum(axis=1) * weights).sum()

    loader = pipeline().loader(threads=1, part=gm.jax.part_for(rows, BATCH))
    batches = gm.jax.device_put(loader, rows, global_batch=BATCH)
    if state.exists():
        batches.set_state(state.read_text())
    seen = [[int(number) for number in step(batch)] for _, batch in zip(range(steps), batches, strict=False)]
    if process == 0:
        state.write_text(json.dumps(batches.get_state()))
        print(json.dumps(seen), flush=True)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
