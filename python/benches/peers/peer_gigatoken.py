"""gigatoken: its reader of JSON Lines and its tokenizer; NumPy joins the ids and cuts them."""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import gigatoken
import numpy as np
from protocol import END_OF_TEXT, Batches, Data, cut, serve


@cache
def loaded(tokenizer: str) -> Any:
    return gigatoken.Tokenizer(tokenizer)


def unseen(data: Data, workers: int) -> Batches:
    tokenizer = loaded(data.tokenizer)
    (end,) = tokenizer.encode(END_OF_TEXT)

    def ids() -> Iterator[np.ndarray[Any, Any]]:
        for file in data.text:
            found = tokenizer.encode_files(gigatoken.JsonlFileSource([file]), parallel=workers > 0)
            ends = np.asarray(found.layout.offsets.data)[1:]
            yield np.insert(np.asarray(found.layout.content.data), ends, end).view(np.int32)

    return cut(ids())


if __name__ == "__main__":
    os.environ.setdefault("RAYON_NUM_THREADS", str(os.cpu_count()))
    serve("gigatoken", {"unseen": unseen})
