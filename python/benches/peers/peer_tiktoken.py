"""tiktoken: Python's `json` reads the lines, a batch of documents is tokenised by one call, and NumPy joins the ids and cuts them."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tiktoken
from protocol import END_OF_TEXT, MANY_DOCUMENTS, Batches, Data, cut, grouped, serve

# GPT-2's split, as tiktoken has it, and the letters that its vocabulary has for bytes.
SPLIT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
PLAIN = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTERS = {chr(256 + at): byte for at, byte in enumerate(byte for byte in range(256) if byte not in PLAIN)}
BYTES = {**{chr(byte): byte for byte in PLAIN}, **LETTERS}


@cache
def loaded(tokenizer: str) -> tiktoken.Encoding:
    words = json.loads(Path(tokenizer).read_text())["model"]["vocab"]
    end = words.pop(END_OF_TEXT)
    ranks = {bytes(BYTES[letter] for letter in word): rank for word, rank in words.items()}
    return tiktoken.Encoding("file", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: end})


def unseen(data: Data, workers: int) -> Batches:
    tokenizer = loaded(data.tokenizer)
    end = [tokenizer.eot_token]

    def ids() -> Iterator[np.ndarray[Any, Any]]:
        texts = (json.loads(line)["text"] for file in data.text for line in open(file, "rb"))
        for some in grouped(texts, MANY_DOCUMENTS):
            found = tokenizer.encode_ordinary_batch(some, num_threads=max(workers, 1))
            yield np.fromiter(chain.from_iterable(chain(one, end) for one in found), np.int32)

    return cut(ids())


if __name__ == "__main__":
    serve("tiktoken", {"unseen": unseen})
