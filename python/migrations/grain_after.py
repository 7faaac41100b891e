"""The same with gristmill's own names, in the same order: `python grain_after.py FOLDER`."""

import sys
from pathlib import Path

import gristmill as gm
import numpy as np


def tokens(record):
    return {"tokens": np.frombuffer(record["text"].encode(), np.uint8).astype(np.int32)}


def main(folder):
    ds = gm.MapDataset.jsonl(folder / "documents.jsonl", columns=["text"])
    ds = ds.seed(7).shuffle().map(tokens).to_iter_dataset()
    ds = ds.first_fit_pack(length={"tokens": 256}, num_packing_bins=8)
    with ds.batch(8).loader(threads=2) as batches:
        for batch in batches:
            for row, segments in zip(batch["tokens"], batch["tokens_segment_ids"]):
                print("in order", len(batch["tokens"]), segments.max(), row.tobytes().hex()[:64])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
