"""Packed fine-tuning with TRL's SFTTrainer: `python trl_sft.py MODEL FILE.jsonl FOLDER STEPS`, with `huggingface_trainer.py` beside it.

The file has columns `prompt` and `completion`. If it is stopped after any step and restarted, its steps equal an uninterrupted run.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import torch
from datasets import Dataset
from huggingface_trainer import ResumableTrainer
from transformers import AutoTokenizer
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

IGNORED = -100


def rows(files: str, tokenizer: Any, length: int) -> gm.IterDataset[Any]:
    """Rows of whole conversations. Only completions have labels."""
    documents = gm.MapDataset.jsonl(files, columns=["prompt", "completion"]).shuffle(seed=0).repeat()
    encoding = tokenizer.backend_tokenizer
    prompts = documents.tokenise(tokenizer=encoding, column="prompt", into=["prompt"])
    turns = prompts.tokenise(tokenizer=encoding, column="completion", into=["completion"], append_eos=tokenizer.eos_token)
    # A document's first token has no label: it would be predicted from the document before it.
    ids = turns.concatenate_columns(["prompt", "completion"], into="input_ids", labels="labels")
    lengths = {"input_ids": length, "labels": length}
    return ids.to_iter_dataset().window_pack(length=lengths, padding={"labels": IGNORED}, over_long="drop")


class Batches(gm.torch.StatefulLoader):
    """Batches with the names of Hugging Face. Models find the documents of a row by `position_ids`."""

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in super().__iter__():
            names = {"input_ids": "input_ids", "labels": "labels", "position_ids": "input_ids_positions"}
            yield {name: batch[column].long() for name, column in names.items()}


class PackedTrainer(ResumableTrainer, SFTTrainer):
    """SFTTrainer whose batches come from a `StatefulLoader`, whose position is in every checkpoint."""

    def __init__(self, *, args: Any, **options: Any) -> None:
        args.dataset_kwargs, args.ignore_data_skip = {"skip_prepare_dataset": True}, True
        # SFTTrainer requires a data set, and reads none of it.
        unread = Dataset.from_dict({"input_ids": [[0]], "labels": [[0]]})
        super().__init__(args=args, train_dataset=unread, **options)


def main(model: Any, tokenizer: Any, files: str, folder: Path, steps: int, **options: Any) -> PackedTrainer:
    arguments = SFTConfig(output_dir=str(folder), max_steps=steps, save_steps=1, report_to="none", **options)
    part = gm.torch.part() if torch.distributed.is_initialized() else None
    loader = Batches(rows(files, tokenizer, arguments.max_length or 1024).batch(8), threads=2, part=part)
    trainer = PackedTrainer(model=model, args=arguments, processing_class=tokenizer, loader=loader)
    trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))
    return trainer


if __name__ == "__main__":
    name, files, folder, steps = sys.argv[1:]
    main(name, AutoTokenizer.from_pretrained(name), files, Path(folder), int(steps))
