"""MosaicML Streaming: MDS folders, and the worker processes of PyTorch's DataLoader."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from protocol import DOCUMENTS, RECORDS, ROWS, Batches, Data, concatenated, decoded, encoder, grouped, serve
from streaming import StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader


class Rows(StreamingDataset):
    """Rows of concatenated documents; the dataset gives each worker its share."""

    def __init__(self, data: Data, workers: int) -> None:
        super().__init__(local=data.path("mds-text"), shuffle=False, batch_size=DOCUMENTS)
        self.tokenizer, self.workers = data.tokenizer, workers

    def __iter__(self) -> Iterator[Any]:
        encode = encoder(self.tokenizer, self.workers)
        texts = grouped(sample["text"] for sample in super().__iter__())
        return concatenated(ids for some in texts for ids in encode(some))


def tokens(data: Data, workers: int) -> Batches:
    clean_stale_shared_memory()
    return iter(DataLoader(Rows(data, workers), batch_size=ROWS, num_workers=workers, collate_fn=np.stack))


def images(samples: list[dict[str, Any]]) -> Any:
    return decoded([one["id"] for one in samples], [one["image"] for one in samples])


def records(data: Data, workers: int) -> Batches:
    clean_stale_shared_memory()
    ds = StreamingDataset(local=data.path("mds"), shuffle=True, shuffle_seed=1, batch_size=RECORDS)
    return iter(DataLoader(ds, batch_size=RECORDS, num_workers=workers, collate_fn=images))


if __name__ == "__main__":
    serve("mosaicml-streaming", {"tokens": tokens, "records-mds": records})
