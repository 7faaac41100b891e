"""WebDataset: tar shards in order with a shuffle buffer, and the worker processes of PyTorch's DataLoader."""

from typing import Any

import numpy as np
import webdataset as wds
from protocol import RECORDS, ROWS, Batches, Data, concatenated, decoded, encoder, grouped, serve

SHUFFLED = 4096


def tokens(data: Data, workers: int) -> Batches:
    def rows(samples: Any) -> Any:
        encode = encoder(data.tokenizer, workers)
        texts = grouped(sample["txt"].decode() for sample in samples)
        return concatenated(ids for some in texts for ids in encode(some))

    ds = wds.WebDataset(data.files("tar-text/*.tar"), shardshuffle=False).compose(rows)
    return iter(wds.WebLoader(ds, batch_size=ROWS, num_workers=workers, collate_fn=np.stack))


def images(samples: list[dict[str, Any]]) -> Any:
    return decoded([int(one["id"]) for one in samples], [one["image"] for one in samples])


def records(data: Data, workers: int) -> Batches:
    ds = wds.WebDataset(data.files("tar/*.tar"), shardshuffle=False).shuffle(SHUFFLED)
    return iter(wds.WebLoader(ds, batch_size=RECORDS, num_workers=workers, collate_fn=images))


if __name__ == "__main__":
    serve("webdataset", {"tokens": tokens, "records-tar": records})
