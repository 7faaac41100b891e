"""One of three processes of `jax.distributed`, of which the last reads something else: `python jax_guard.py ADDRESS PROCESS WHAT`.

What it was told in the end, and after how many batches, is its last line, in JSON.
"""

import json
import os
import sys
from typing import Any

import gristmill as gm
import jax
import numpy as np

ADDRESS, PROCESS, WHAT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ODD = PROCESS == 2

jax.distributed.initialize(ADDRESS, num_processes=3, process_id=PROCESS, initialization_timeout=60)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))


def changed(x: int) -> dict[str, Any]:
    """On one process, from some element on, it depends on what no other has."""
    random = ODD and WHAT == "random" and x > 2000
    return {"x": np.full(3, x + (os.getpid() if random else 0))}


def run(guard: Any) -> list[Any]:
    ds = gm.MapDataset.range(9000).shuffle(5 if ODD and WHAT == "seed" else 4).map(changed)
    ds = ds.to_iter_dataset().filter(lambda e: e["x"][0] % 2 == 0).batch(6, drop_remainder=True)
    loader = ds.loader(threads=PROCESS, part=gm.jax.part_for(rows, 6), guard=guard, guard_timeout=60)
    seen = 0
    try:
        for _ in loader:
            seen += 1
        return ["", seen]
    except gm.Error as error:
        return [f"{type(error).__name__}: {error}", seen]


told = run("auto")
if WHAT == "same":
    # Another pass; and one that begins anew on all.
    told = [told, run("auto"), run(None)]
print(json.dumps(told), flush=True)
