"""A program for Grain: `python grain_before.py FOLDER`."""

import json
import sys
from pathlib import Path

import grain
import numpy as np


class Documents:
    def __init__(self, path):
        self.lines = path.read_text().splitlines()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return json.loads(self.lines[index])


def tokens(record):
    return {"tokens": np.frombuffer(record["text"].encode(), np.uint8).astype(np.int32)}


def main(folder):
    ds = grain.MapDataset.source(Documents(folder / "documents.jsonl"))
    ds = ds.seed(7).shuffle().map(tokens).to_iter_dataset()
    ds = grain.experimental.FirstFitPackIterDataset(ds, length_struct={"tokens": 256}, num_packing_bins=8)
    for batch in ds.batch(8):
        for row, segments in zip(batch["tokens"], batch["tokens_segment_ids"]):
            print("in order", len(batch["tokens"]), segments.max(), row.tobytes().hex()[:64])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
