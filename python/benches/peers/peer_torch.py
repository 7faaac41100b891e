"""PyTorch's DataLoader: datasets as its users write them, and its worker processes."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from protocol import DOCUMENTS, RECORDS, ROWS, Batches, Data, concatenated, encoder, grouped, serve, split
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Rows(IterableDataset[Any]):
    """Rows of concatenated documents; each worker takes its share of the lines."""

    def __init__(self, data: Data, workers: int) -> None:
        self.files, self.tokenizer, self.workers = data.text, data.tokenizer, workers

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        index, count = (worker.id, worker.num_workers) if worker else (0, 1)
        encode = encoder(self.tokenizer, self.workers)
        lines = (line for file in self.files for line in open(file))
        mine = (json.loads(line)["text"] for at, line in enumerate(lines) if at % count == index)
        return concatenated(ids for texts in grouped(mine, DOCUMENTS) for ids in encode(texts))


class Mapped(Dataset[Any]):
    """Rows of mapped files."""

    def __init__(self, data: Data) -> None:
        self.files = [np.load(file, mmap_mode="r") for file in data.files("npy/*.npy")]
        self.places = [(file, row) for file, array in enumerate(self.files) for row in range(len(array))]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Any:
        file, row = self.places[index]
        return torch.from_numpy(np.array(self.files[file][row]))


def tokens(data: Data, workers: int) -> Batches:
    loader = DataLoader(Rows(data, workers), batch_size=ROWS, num_workers=workers, collate_fn=np.stack)
    return iter(loader)


def records(data: Data, workers: int) -> Batches:
    generator = torch.Generator().manual_seed(1)
    loader = DataLoader(Mapped(data), batch_size=RECORDS, shuffle=True, num_workers=workers, generator=generator)
    return (split(batch.numpy()) for batch in loader)


if __name__ == "__main__":
    serve("torch", {"tokens": tokens, "records-npy": records})
