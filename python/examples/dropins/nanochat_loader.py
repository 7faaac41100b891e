"""Rows for nanochat that begin with BOS, packed by best fit, with an exact resume: `python nanochat_loader.py "FOLDER/*.parquet" TOKENIZER.pkl`.

In `scripts/base_train.py`, import `loader_with_state` in place of `tokenizing_distributed_data_loader_with_state_bos_bestfit`.
"""

import bisect
import importlib
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np

WAITING, REFILL = 1000, 128


class BestFit:
    """Fills rows by best fit, without padding. If no waiting document fits, a document is truncated.

    nanochat's loader discards the rest of a truncated document. With `keep`, the rest waits again and begins with BOS.
    """

    def __init__(self, texts: gm.MapDataset[Any], encoding: Any, cells: int, keep: bool, bos: str | int = "<|bos|>") -> None:
        self.documents = texts.repeat().tokenise(tokenizer=encoding, column="text", prepend_bos=bos)
        self.cells, self.keep = cells, keep

    def __iter__(self) -> "Rows":
        return Rows(self)


class Rows(Iterator[dict[str, Any]]):
    def __init__(self, fit: BestFit) -> None:
        self.documents, self.cells, self.keep, self.dropped = fit.documents, fit.cells, fit.keep, 0
        self.set_state({"next": 0, "waiting": []})

    def get_state(self) -> dict[str, Any]:
        # A resume reads the waiting documents again.
        return {"next": self.next, "waiting": [piece[1:] for piece in self.waiting]}

    def set_state(self, state: dict[str, Any]) -> None:
        self.next, self.ahead = state["next"], self.documents[state["next"] :].loader(threads=2)
        self.tokens = {number: self.documents[number]["tokens"] for number, _ in state["waiting"]}
        # Sorted by length, number and first token after BOS. The length includes BOS.
        self.waiting = [(len(self.tokens[number]) - start + 1, number, start) for number, start in state["waiting"]]

    def __next__(self) -> dict[str, Any]:
        row, at = np.empty(self.cells, np.int32), 0
        while at < self.cells:
            while len(self.waiting) < WAITING:
                for _ in range(REFILL):
                    tokens = self.tokens[self.next] = next(self.ahead)["tokens"]
                    bisect.insort(self.waiting, (len(tokens), self.next, 1))
                    self.next += 1
            space = self.cells - at
            fitting = bisect.bisect_left(self.waiting, (space + 1,))
            # The first of the longest documents that fit, or a document to cut.
            chosen = bisect.bisect_left(self.waiting, (self.waiting[fitting - 1][0],)) if fitting else -1 if self.keep else 0
            length, number, start = self.waiting.pop(chosen)
            tokens, taken = self.tokens.pop(number), min(length, space)
            row[at], row[at + 1 : at + taken] = tokens[0], tokens[start : start + taken - 1]
            at += taken
            self.dropped += 0 if self.keep else length - taken
            if self.keep and length > taken:
                self.tokens[number] = tokens
                bisect.insort(self.waiting, (length - taken + 1, number, start + taken - 1))
        return {"tokens": row, "document": self.next}


def loader_with_state(
    tokenizer: Any, B: int, T: int, split: str, *, device: Any = "cuda", resume_state_dict: Any = None, paths: Any = None, keep: bool = False
) -> Iterator[Any]:
    """Yields inputs and targets of shape [B, T], and the state before the batch, which nanochat saves before it trains on the batch."""
    paths = paths or importlib.import_module("nanochat.dataset").list_parquet_files()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    texts = gm.MapDataset.parquet(paths[:-1] if split == "train" else paths[-1:], columns=["text"])
    rows = gm.IterDataset.source(BestFit(texts, tokenizer.enc, T + 1, keep, tokenizer.get_bos_token_id())).batch(B * ranks)
    loader = gm.torch.StatefulLoader(rows, part=(rank, ranks), pin_memory="cuda" in str(device), accept_changes=True)
    state: Any = resume_state_dict or {"epoch": 1, "pq_idx": 0, "rg_idx": 0, "gristmill": loader.state_dict()}
    loader.load_state_dict(state["gristmill"])
    for batch in loader:
        tokens = batch["tokens"].to(device, non_blocking=True).long()
        yield tokens[:, :-1], tokens[:, 1:], state
        epoch, document = divmod(int(batch["document"][-1]), len(texts))
        # nanochat logs the first three entries.
        state = {"epoch": epoch + 1, "pq_idx": 0, "rg_idx": document, "gristmill": loader.state_dict()}


if __name__ == "__main__":
    encoding = pickle.loads(Path(sys.argv[2]).read_bytes())
    texts = gm.MapDataset.parquet(sys.argv[1], columns=["text"])
    for keep in (False, True):
        rows, kept = Rows(BestFit(texts, encoding, 2049, keep)), 0
        while rows.next < len(texts):
            kept += len(next(rows)["tokens"])
        print(f"keep={keep}: {kept / (kept + rows.dropped):.1%} of tokens kept")
