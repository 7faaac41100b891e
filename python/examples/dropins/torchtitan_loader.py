"""A loader for torchtitan: packed rows of JSON Lines in place of its Hugging Face and Grain loaders.

In a configuration: `dataloader=PackedTextLoader.Config(dataset_path="corpus/*.jsonl")`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gristmill as gm
import torch

try:  # torchtitan from August 2026 on, whose loaders are Grain's
    from torchtitan.components.data.loader import BaseDataLoader
except ImportError:
    from torchtitan.components.dataloader import BaseDataLoader

# Equals torchtitan.components.loss.IGNORE_INDEX, whose module imports the dependencies of the models.
IGNORED = -100


class PackedTextLoader(BaseDataLoader):  # pyright: ignore[reportGeneralTypeIssues]
    """Rows of documents packed without padding between them, with labels that do not cross documents.

    The state is global: all ranks save an equal state, and any number of ranks can restore it.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):  # pyright: ignore[reportGeneralTypeIssues]
        dataset_path: str = "corpus/*.jsonl"
        """JSON Lines with a column `text`: a path, a glob or a URL."""

        tokenizer_json: str | None = None
        """Path of a tokenizer, in place of the trainer's."""

        accept_changes: bool = False
        """Whether to resume if the global batch differs, as it does on another number of ranks with equal batches."""

        seed: int = 42
        threads: int = 2

    def __init__(self, config: Config, *, dp_world_size: int, dp_rank: int, tokenizer: Any = None, **sizes: Any) -> None:
        # The trainer gives the cells of a rank's batch in one row, or formerly rows and their length.
        self.is_flat = "num_tokens_per_batch" in sizes
        length = sizes["num_tokens_per_batch"] if self.is_flat else sizes["seq_len"]
        rows = 1 if self.is_flat else sizes["local_batch_size"]
        documents = gm.MapDataset.jsonl(config.dataset_path, columns=["text"]).shuffle(seed=config.seed).repeat()
        # The Rust tokenizer of the trainer's, so that threads run without Python.
        ids = documents.tokenise(
            tokenizer=config.tokenizer_json or tokenizer.tokenizer,
            column="text",
            prepend_bos=getattr(tokenizer, "bos_id", None),
            append_eos=getattr(tokenizer, "eos_id", None),
        )
        # A row has one extra token, so that each input has a label.
        packed = ids.to_iter_dataset().concat_then_split_pack(length={"tokens": length + 1}).batch(rows * dp_world_size)
        part = (dp_rank, dp_world_size)
        self.loader = gm.torch.StatefulLoader(packed, threads=config.threads, part=part, accept_changes=config.accept_changes)

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        for batch in self.loader:
            tokens, segments = batch["tokens"].long(), batch["tokens_segment_ids"]
            is_last = segments[:, 1:] != segments[:, :-1]
            labels = tokens[:, 1:].masked_fill(is_last, IGNORED)
            inputs = {"input": tokens[:, :-1], "positions": batch["tokens_positions"][:, :-1].long()}
            if self.is_flat:
                inputs, labels = {name: value.flatten() for name, value in inputs.items()}, labels.flatten()
            yield inputs, labels

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if state_dict:
            self.loader.load_state_dict(state_dict)
