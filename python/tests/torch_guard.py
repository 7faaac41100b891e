"""One of three processes over gloo, of which the last reads something else: `python torch_guard.py FILE PROCESS WHAT`.

Its last line is what it was told in the end, and after how many batches, in JSON.
"""

import json
import os
import sys
from typing import Any

import gristmill as gm
import numpy as np
import torch.distributed as dist

FILE, RANK, WHAT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ODD = RANK == 2

if WHAT == "store":
    # As processes of several machines meet.
    store = dist.TCPStore("127.0.0.1", int(FILE), 3, RANK == 0)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=3)
else:
    dist.init_process_group("gloo", init_method=f"file://{FILE}", rank=RANK, world_size=3)


def changed(x: int) -> dict[str, Any]:
    """On one process, from some element on, it depends on what no other has."""
    random = ODD and WHAT in ("random", "store") and x > 2000
    return {"x": np.full(3, x + (os.getpid() if random else 0))}


ds = gm.MapDataset.range(9000).shuffle(5 if ODD and WHAT == "seed" else 4).map(changed)
ds = ds.to_iter_dataset().filter(lambda e: e["x"][0] % 2 == 0).batch(6, drop_remainder=True)
batches = iter(gm.torch.IterableDataset(ds, threads=RANK, part=gm.torch.part(), guard_timeout=5 if WHAT == "silent" else 60))
seen = 0
try:
    for _ in batches:
        seen += 1
        if WHAT == "silent" and ODD and seen == 100:
            break
    told = ""
except gm.Error as error:
    told = f"{type(error).__name__}: {error}"
print(json.dumps([told, seen]), flush=True)
dist.barrier()
dist.destroy_process_group()
