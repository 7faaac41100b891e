"""LitData: folders of its own chunks, and its loader's worker processes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from litdata import StreamingDataLoader, StreamingDataset, optimize
from protocol import DOCUMENTS, RECORDS, Batches, Data, concatenated, decoded, encoder, serve, stacked


def written(folder: str, function: Any, inputs: list[Any]) -> str:
    """The folder, written when it is first asked for: outside of what is measured."""
    if not Path(folder, "index.json").exists():
        optimize(fn=function, inputs=inputs, output_dir=folder, chunk_bytes="16MB", num_workers=1)
    return folder


def texts(file: str) -> Any:
    for line in open(file):
        yield json.loads(line)["text"]


def images(file: str) -> Any:
    for row in np.load(file):
        yield {"id": int(row[:8].view(np.int64)[0]), "image": row[8:].tobytes()}


def tokens(data: Data, workers: int) -> Batches:
    folder = written(data.path("litdata-text"), texts, data.text)
    encode = encoder(data.tokenizer, workers)
    loader = StreamingDataLoader(StreamingDataset(folder), batch_size=DOCUMENTS, num_workers=workers, collate_fn=encode)
    return stacked(concatenated(ids for some in loader for ids in some))


def records(data: Data, workers: int) -> Batches:
    folder = written(data.path("litdata"), images, data.files("npy/*.npy"))
    ds = StreamingDataset(folder, shuffle=True, seed=1)
    collate = lambda some: decoded([one["id"] for one in some], [one["image"] for one in some])  # noqa: E731
    return iter(StreamingDataLoader(ds, batch_size=RECORDS, num_workers=workers, collate_fn=collate))


if __name__ == "__main__":
    serve("litdata", {"tokens": tokens, "records-litdata": records})
