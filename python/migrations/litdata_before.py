"""LitData's StreamingDataset over chunks that `optimize` writes: `python litdata_before.py FOLDER`."""

import json
import sys
from pathlib import Path

from litdata import StreamingDataLoader, StreamingDataset, optimize


def sample(line):
    return json.loads(line)


def main(folder):
    chunks = str(folder / "chunks")
    lines = (folder / "documents.jsonl").read_text().splitlines()
    optimize(fn=sample, inputs=lines, output_dir=chunks, num_workers=1, chunk_bytes="64KB")
    for shuffle in (False, True):
        dataset = StreamingDataset(chunks, shuffle=shuffle, seed=1)
        for batch in StreamingDataLoader(dataset, batch_size=8):
            for number, text in zip(batch["number"].tolist(), batch["text"]):
                print("shuffled" if shuffle else "in order", len(batch["text"]), number, text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
