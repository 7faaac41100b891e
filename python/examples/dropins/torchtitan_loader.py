"""A loader for torchtitan: packed rows of JSON Lines in place of its `HuggingFaceTextDataLoader`.

In a configuration: `dataloader=PackedTextLoader.Config(dataset_path="corpus/*.jsonl", tokenizer_json="tokenizer.json")`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gristmill as gm
import torch
from torchtitan.components.dataloader import BaseDataLoader

# Equals torchtitan.components.loss.IGNORE_INDEX, whose module imports the dependencies of the models.
IGNORED = -100


class PackedTextLoader(BaseDataLoader):
    """Rows of documents packed without padding between them, with labels that do not cross documents.

    The state is global: all ranks save an equal state, and any number of ranks can restore it.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        tokenizer_json: str = "tokenizer.json"
        """The tokenizer in Hugging Face's format. Tokenisation runs without Python."""

        seed: int = 42
        threads: int = 2

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        seq_len: int,
        local_batch_size: int,
        **others: Any,
    ) -> None:
        files = config.dataset_path or config.dataset
        documents = gm.MapDataset.jsonl(files, columns=["text"]).shuffle(seed=config.seed).repeat()
        ids = documents.tokenise(tokenizer=config.tokenizer_json, column="text").to_iter_dataset()
        # A row has one extra token, so that each input has a label.
        rows = ids.concat_then_split_pack(length={"tokens": seq_len + 1}).batch(local_batch_size * dp_world_size)
        self.loader = gm.torch.StatefulLoader(rows, threads=config.threads, part=(dp_rank, dp_world_size))

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        for batch in self.loader:
            tokens, segments = batch["tokens"].long(), batch["tokens_segment_ids"]
            is_last = segments[:, 1:] != segments[:, :-1]
            inputs = {"input": tokens[:, :-1], "positions": batch["tokens_positions"][:, :-1].long()}
            yield inputs, tokens[:, 1:].masked_fill(is_last, IGNORED)

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if state_dict:
            self.loader.load_state_dict(state_dict)
