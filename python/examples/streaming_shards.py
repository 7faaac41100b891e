"""Compressed shards without random access: several are read at a time, and a resume continues at the saved position."""

import gzip
import json
import tempfile
from pathlib import Path

import gristmill as gm


def shards(folder: Path) -> None:
    """Writes eight shards."""
    for shard in range(8):
        lines = (json.dumps({"id": 100 * shard + line}) + "\n" for line in range(100))
        (folder / f"part-{shard:05}.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))


def stream(folder: Path, host: int, hosts: int) -> gm.IterDataset:
    """Returns the shards of a host, `hosts` apart, four read at a time and shuffled within a window."""
    mine = sorted(folder.glob("*.jsonl.gz"))[host::hosts]
    return gm.IterDataset.jsonl(mine, lanes=4).seed(1).window_shuffle(64).batch(50)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    shards(folder)
    for host in range(2):
        ds = stream(folder, host, 2)
        with ds.loader(threads=2) as batches:
            first = [next(batches) for _ in range(3)]
            state = json.dumps(batches.get_state())
        # Possibly another process, here with another number of threads.
        with ds.loader(threads=4) as batches:
            batches.set_state(state)
            rest = list(batches)
        ids = sorted(int(id) for batch in first + rest for id in batch["id"])
        print(f"host {host}: {len(first)} + {len(rest)} batches, {len(set(ids))} of {len(ids)} records are different ones")
