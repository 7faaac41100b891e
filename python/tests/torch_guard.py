"""One of three processes over gloo, of which the last reads something else: `python torch_guard.py FOLDER PORT PROCESS`.

For each case it prints a line of JSON: the error in the end, if any, and the number of batches before it.
"""

import json
import os
import sys
from typing import Any

import gristmill as gm
import numpy as np
import torch.distributed as dist

FOLDER, PORT, RANK = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ODD = RANK == 2


def meet(case: str) -> None:
    """Starts the process group of a case."""
    if case == "store":
        # As processes of several machines meet.
        store = dist.TCPStore("127.0.0.1", PORT, 3, RANK == 0)
        dist.init_process_group("gloo", store=store, rank=RANK, world_size=3)
    else:
        dist.init_process_group("gloo", init_method=f"file://{FOLDER}/{case}", rank=RANK, world_size=3)


def read(case: str) -> tuple[str, int]:
    """Reads the data set of a case."""

    def changed(x: int) -> dict[str, Any]:
        """On one process, from some element on, it depends on what no other has."""
        random = ODD and case in ("random", "store") and x > 2000
        return {"x": np.full(3, x + (os.getpid() if random else 0))}

    ds = gm.MapDataset.range(9000).shuffle(5 if ODD and case == "seed" else 4).map(changed)
    stream = ds.to_iter_dataset().filter(lambda e: e["x"][0] % 2 == 0).batch(6, drop_remainder=True)
    timeout = 5 if case == "silent" else 60
    batches = iter(gm.torch.IterableDataset(stream, threads=RANK, part=gm.torch.part(), guard_timeout=timeout))
    seen, told = 0, ""
    try:
        for _ in batches:
            seen += 1
            if case == "silent" and ODD and seen == 100:
                break
    except gm.Error as error:
        told = f"{type(error).__name__}: {error}"
    # The others wait for a host that still has its pass.
    dist.barrier()
    return told, seen


for case in ("same", "seed", "random", "silent", "store"):
    meet(case)
    print(json.dumps([case, *read(case)]), flush=True)
    dist.destroy_process_group()
