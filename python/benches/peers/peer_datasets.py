"""Datasets of Hugging Face: streamed JSON and mapped Arrow, in batches, and the worker processes of PyTorch's DataLoader."""

from collections.abc import Iterator
from typing import Any

import datasets
import numpy as np
from protocol import DOCUMENTS, RECORDS, ROWS, Batches, Data, concatenated, decoded, encoder, serve
from torch.utils.data import DataLoader, IterableDataset

datasets.disable_progress_bars()


class Rows(IterableDataset[Any]):
    """Rows of concatenated documents; the stream gives each worker its share of the files."""

    def __init__(self, data: Data, workers: int) -> None:
        self.data, self.workers = data, workers

    def __iter__(self) -> Iterator[Any]:
        encode = encoder(self.data.tokenizer, self.workers)
        lines = datasets.load_dataset("json", data_files=self.data.text, split="train", streaming=True)
        ids = lines.map(lambda some: {"ids": encode(some["text"])}, batched=True, batch_size=DOCUMENTS, remove_columns=lines.column_names)
        return concatenated(np.asarray(row["ids"], np.int32) for row in ids)


def tokens(data: Data, workers: int) -> Batches:
    return iter(DataLoader(Rows(data, workers), batch_size=ROWS, num_workers=workers, collate_fn=np.stack))


def images(some: dict[str, Any]) -> Any:
    return decoded(some["id"], some["image"])


def records(data: Data, workers: int) -> Batches:
    rows = datasets.load_from_disk(data.path("arrow")).shuffle(seed=1)
    if not workers:
        return map(images, rows.iter(RECORDS))
    # A sampler of batches asks for 256 rows at a time, as its documentation says.
    from torch.utils.data import BatchSampler, SequentialSampler

    sampler = BatchSampler(SequentialSampler(rows), RECORDS, drop_last=False)
    return iter(DataLoader(rows, sampler=sampler, batch_size=None, num_workers=workers, collate_fn=images))


if __name__ == "__main__":
    serve("datasets", {"tokens": tokens, "records-arrow": records})
