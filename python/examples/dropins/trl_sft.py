"""Packed fine-tuning with TRL's SFTTrainer: `python trl_sft.py MODEL FILE.jsonl FOLDER STEPS`, with `huggingface_trainer.py` beside it.

The file has columns `prompt` and `completion`. If it is stopped after any step and restarted, its steps equal an uninterrupted run.
`python trl_sft.py MODEL FILE.jsonl` prints the CPU time of a token in an epoch of packed rows, of SFTTrainer's own preparation and of `rows`.
"""

import sys
import time
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


def rows(files: str, tokenizer: Any, length: int, epochs: int | None = None) -> gm.IterDataset[Any]:
    """Rows of whole conversations. Only completions have labels."""
    documents = gm.MapDataset.jsonl(files, columns=["prompt", "completion"]).shuffle(seed=0).repeat(epochs)
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


def compare(model: Any, tokenizer: Any, files: str, **options: Any) -> None:
    """Prints the CPU time of each token of packed rows in nanoseconds."""
    start = time.process_time()
    arguments = SFTConfig(output_dir=".", packing=True, report_to="none", **options)
    theirs: Any = SFTTrainer(model, arguments, train_dataset=Dataset.from_json(files), processing_class=tokenizer).train_dataset
    tokens = sum(len(row["input_ids"]) for row in theirs)
    middle = time.process_time()
    ours = sum(int((row["input_ids_segment_ids"] > 0).sum()) for row in rows(files, tokenizer, arguments.max_length or 1024, 1))
    end = time.process_time()
    print(f"SFTTrainer: {(middle - start) / tokens * 1e9:.0f} ns per token, rows: {(end - middle) / ours * 1e9:.0f} ns per token")


if __name__ == "__main__":
    name, files, *run = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(name)
    if run:
        main(name, tokenizer, files, Path(run[0]), int(run[1]))
    else:
        compare(name, tokenizer, files)
