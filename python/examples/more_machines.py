"""Evaluates a pipeline on two nodes of a Ray cluster and removes one node: `python more_machines.py [--inline]`.

With and without `--inline` it prints the same digest. Both nodes run on this machine, in place of `ray start` on two.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np


def tokens(document: dict[str, str]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """Uses words as tokens."""
    return {"tokens": np.array([sum(word.encode()) % 32000 + 1 for word in document["text"].split()], np.int32)}


def batches(folder: str) -> gm.IterDataset:
    """Returns rows of 256 tokens, packed from documents of 1 to 400 words."""
    path = Path(folder) / "documents.jsonl"
    path.write_text("".join(json.dumps({"text": f"w{n} " * (n * 37 % 400 + 1)}) + "\n" for n in range(20000)))
    documents = gm.MapDataset.jsonl(path, columns=["text"], index_cache="off").shuffle(seed=42).map(tokens)
    return documents.to_iter_dataset().window_pack(length={"tokens": 256}, over_long="split").batch(8)


def digest(rows: Iterable[Any], at: int = -1, node: Any = None, cluster: Any = None) -> str:
    """Returns the digest of all rows. Removes `node` after batch `at`."""
    told = hashlib.sha256()
    for number, batch in enumerate(rows):
        told.update(batch["tokens"].tobytes())
        if number == at:
            cluster.remove_node(node, allow_graceful=False)
    return told.hexdigest()[:16]


def on_two_nodes(folder: str) -> str:
    import ray
    from ray.cluster_utils import Cluster

    common: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 100 << 20, "resources": {"input": 1}}
    cluster: Any = Cluster(initialize_head=True, head_node_args={**common, "node_ip_address": "127.0.0.1"})
    second = cluster.add_node(**common, node_ip_address="127.0.0.2")
    options: dict[str, Any] = {"ram_budget": "16MiB", "block": "256KiB", "resources": {"input": 1}}
    with gm.ray.loader(batches(folder), actors=2, address=cluster.address, **options) as rows:
        told = digest(rows, 800, second, cluster)
        print(rows.report().as_dict()["notes"])
    ray.shutdown()
    cluster.shutdown()
    return told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(digest(batches(folder).loader()) if "--inline" in sys.argv else on_two_nodes(folder))
