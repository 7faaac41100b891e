"""The same on gristmill, with a state and without worker processes: `python torch_after.py FOLDER`."""

import sys
from pathlib import Path

import gristmill as gm
import numpy as np


def tokens(record):
    return np.frombuffer(record["text"].encode(), np.uint8)


def pad(rows):
    padded = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for at, row in enumerate(rows):
        padded[at, : len(row)] = row
    return padded


def main(folder):
    documents = gm.MapDataset.jsonl(folder / "documents.jsonl", columns=["text"])
    for shuffle in (False, True):
        ds = documents.shuffle(seed=1) if shuffle else documents
        ds = ds.map(tokens).to_iter_dataset().batch(8, batch_fn=pad)
        with ds.loader(threads=2) as batches:  # or gm.torch.IterableDataset(ds, threads=2): tensors, for a DataLoader
            for batch in batches:
                for row in batch:
                    print("shuffled" if shuffle else "in order", len(batch), bytes(row[row > 0].tolist()).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
