"""Compiles a step for TPUs that are not there, for the batches of a pipeline: `python jax_tpu.py TOPOLOGY`, with libtpu.

Its last line is, in JSON, how many layouts the batches have together, and what the compiled step says of its arguments.
"""

import json
import sys
from typing import Any

import gristmill as gm
import jax
import numpy as np
from jax.experimental import topologies

topology = topologies.get_topology_desc(sys.argv[1], platform="tpu")
mesh = topologies.make_mesh(topology, (len(topology.devices),), ("data",))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))

# Text of any length, packed, with a last batch that would be short.
ds = gm.MapDataset.range(999).seed(1).random_map(lambda x, rng: {"ids": np.full(rng.integers(1, 2000), x, np.int32)})
ds = ds.to_iter_dataset().first_fit_pack(length={"ids": 1024}, num_packing_bins=16, over_long="split")
batches = ds.map(gm.jax.maxtext_keys()).batch(32, drop_remainder=True)
specs = {tuple((name, array.shape, str(array.dtype)) for name, array in batch.items()) for batch in batches}


def loss(batch: dict[str, Any]) -> Any:
    return (batch["targets"] * (batch["targets_segmentation"] > 0)).sum() + batch["inputs_position"].sum()


arguments = {name: jax.ShapeDtypeStruct(shape, dtype, sharding=rows) for name, shape, dtype in next(iter(specs))}
compiled = jax.jit(loss).lower(arguments).compile()
print(json.dumps({"specs": len(specs), "layout": compiled.as_text().split("entry_computation_layout=")[1].split("\n")[0]}))
