"""One of three processes of `jax.distributed`, of which the last reads something else: `python jax_guard.py ADDRESS PROCESS 3 SCENE...`.

Each scene returns the error that ended a pass, and after how many batches.
"""

import os
from functools import partial
from typing import Any

import gristmill as gm
import jax
import numpy as np
from jax_scenes import PROCESS, begin, run

ODD = PROCESS == 2

begin()
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))


def changed(what: str, x: int) -> dict[str, Any]:
    """On one process, from some element on, it depends on what no other has."""
    random = ODD and what == "random" and x > 2000
    return {"x": np.full(3, x + (os.getpid() if random else 0))}


def read(what: str, guard: Any = "auto") -> list[Any]:
    ds = gm.MapDataset.range(9000).shuffle(5 if ODD and what == "seed" else 4).map(partial(changed, what))
    ds = ds.to_iter_dataset().filter(lambda e: e["x"][0] % 2 == 0).batch(6, drop_remainder=True)
    loader = ds.loader(threads=PROCESS, part=gm.jax.part_for(rows, 6), guard=guard, guard_timeout=60)
    seen = 0
    try:
        for _ in loader:
            seen += 1
        return ["", seen]
    except gm.Error as error:
        return [f"{type(error).__name__}: {error}", seen]


def same() -> Any:
    # Another pass; and one that begins anew on all.
    return [read("same"), read("same"), read("same", None)]


run({"same": same, "seed": lambda: read("seed"), "random": lambda: read("random")})
