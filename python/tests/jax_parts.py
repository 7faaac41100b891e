"""One of several processes of a training job: `python jax_parts.py ADDRESS PROCESS COUNT SCENE...`.

It trains in the folder of the corpora. The scene `shown` is the pipeline that `docs/hosts.md` shows, over them. A scene goes on from its state,
if there is one, for the steps that STEPS has for so many processes. The first process saves the state of all. A scene returns what the step saw
of each batch.
"""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import gristmill as gm
import jax
import numpy as np
from jax_scenes import COUNT, PROCESS, begin, run
from parts_pipeline import BATCH, pipeline, shown

begin()
ROWS = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("data",)), jax.sharding.PartitionSpec("data"))
#: How many steps each number of processes takes; one process goes to the end.
STEPS: dict[str, dict[int, int | None]] = {"pipeline": {4: 5, 2: 4, 3: 3, 1: None}, "shown": {4: 3, 2: 2, 3: 3, 1: None}}


def train(scene: str, ds: gm.IterDataset[Any], size: int, name: str) -> list[list[int]]:
    """Takes the steps of this number of processes, in batches of `size` rows with the column `name`."""
    state, steps = Path(f"{scene}.json"), STEPS[scene][COUNT]

    @jax.jit
    def step(batch: Any) -> Any:
        """Sums over all rows of all processes, and one in which each row has a weight of its own."""
        weights = jax.numpy.arange(1, size + 1)
        return batch[name].sum(), (batch[name].sum(axis=1) * weights).sum()

    loader = ds.loader(threads=1, part=gm.jax.part_for(ROWS, size))
    batches = gm.jax.device_put(loader, ROWS, global_batch=size)
    if state.exists():
        batches.set_state(state.read_text())
    seen = [[int(number) for number in step(batch)] for batch in islice(batches, steps)]
    # The last steps were not committed: they come again.
    again = min(2, len(seen))
    batches.back(again)
    assert [[int(number) for number in step(batch)] for batch in islice(batches, again)] == seen[-again:]
    if PROCESS == 0:
        state.write_text(json.dumps(batches.get_state()))
    return seen


run({"pipeline": lambda: train("pipeline", pipeline(), BATCH, "ids"), "shown": lambda: train("shown", shown(), 384, "tokens")})
