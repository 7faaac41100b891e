"""fastokens: Python's `json` reads the lines, a batch of documents is tokenised by one call, and NumPy joins the ids and cuts them."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import fastokens
import numpy as np
from protocol import END_OF_TEXT, MANY_DOCUMENTS, Batches, Data, cut, grouped, serve


@cache
def loaded(tokenizer: str) -> Any:
    return fastokens.Tokenizer.from_file(tokenizer)


def unseen(data: Data, workers: int) -> Batches:
    tokenizer = loaded(data.tokenizer)
    end = tokenizer.token_to_id(END_OF_TEXT)

    def ids() -> Iterator[np.ndarray[Any, Any]]:
        texts = (json.loads(line)["text"] for file in data.text for line in open(file, "rb"))
        for some in grouped(texts, MANY_DOCUMENTS):
            flat, offsets = tokenizer.encode_batch_flat(some, split_special_tokens=True)
            yield np.insert(np.frombuffer(flat, np.int32), np.frombuffer(offsets, np.uint64)[1:].astype(np.int64), end)

    return cut(ids())


if __name__ == "__main__":
    serve("fastokens", {"unseen": unseen})
