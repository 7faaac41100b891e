"""One of three processes of a training job over gloo: `python torch_hosts.py FILE PROCESS`.

One leaves after two steps and comes back two later. The last line of the first is what all of them took, in JSON.
"""

import json
import sys
from typing import Any

import gristmill as gm
import numpy as np
import torch.distributed as dist

from parts_pipeline import pipeline

FILE, RANK = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{FILE}", rank=RANK, world_size=3)
two = dist.new_group([0, 1])
taken: list[list[int]] = []


def steps(batches: Any, count: int, group: Any) -> None:
    """Trains so many steps with those in the group."""
    for _ in range(count):
        mine = next(batches)["ids"].tolist()
        rows: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(rows, mine, group=group)
        taken.append([row for part in rows for row in part])


batches = iter(gm.torch.IterableDataset(pipeline(), threads=RANK, part=gm.torch.part()))
steps(batches, 2, None)
if RANK < 2:
    batches.repart(gm.torch.part(two))
    steps(batches, 2, two)
    # A step that the others did not see done.
    next(batches)
    batches.back()
# The one that comes back gets the state of all.
shared = [batches.state_dict() if RANK == 0 else None]
dist.broadcast_object_list(shared, src=0)
if RANK == 2:
    batches = iter(gm.torch.IterableDataset(pipeline(), part=gm.torch.part()))
    batches.load_state_dict(shared[0])
batches.repart(gm.torch.part())
assert np.array_equal(json.loads(batches.state_dict()["state"])["delivered"], 4)
steps(batches, 3, None)
dist.barrier()
if RANK == 0:
    print(json.dumps(taken), flush=True)
dist.destroy_process_group()
