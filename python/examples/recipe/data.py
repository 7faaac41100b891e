"""Text from Hugging Face as packed batches of tokens, with a validation set that is never trained on."""

import argparse
import zlib
from pathlib import Path
from typing import Any

import datasets
import gristmill as gm
from tokenizers import Tokenizer

SEQ_LEN, BATCH = 128, 8


def texts(data: str) -> gm.MapDataset:
    """Opens the column `text` of a data set on the hub, or of JSON Lines files on this machine."""
    local = Path(data).suffix == ".jsonl"
    loaded = datasets.load_dataset("json", data_files=data, split="train") if local else datasets.load_dataset(data, split="train")
    return gm.MapDataset.arrow(loaded, columns=["text"])


def rows(documents: gm.MapDataset, tokenizer: str) -> gm.IterDataset:
    """Packs documents into rows. `labels` holds the next token of the document, or -100 if there is none."""
    tokens = documents.tokenise(tokenizer=tokenizer, column="text").to_iter_dataset()
    packed = tokens.window_pack(length={"tokens": SEQ_LEN}, over_long="split")
    return packed.packed_columns(labels="shifted").batch(BATCH, drop_remainder=True)


def split(data: str, tokenizer: str) -> tuple[gm.IterDataset, gm.IterDataset]:
    """Returns endless training batches, and validation batches of other documents."""
    training, validation = texts(data).split([0.95, 0.05])
    return rows(training.shuffle(seed=1).repeat(), tokenizer), rows(validation, tokenizer).take(8)


def vocabulary(tokenizer: str) -> int:
    """Returns the number of token ids."""
    return Tokenizer.from_file(tokenizer).get_vocab_size()


def options() -> argparse.Namespace:
    """Parses the options that both programs have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a data set on the hub, such as roneneldan/TinyStories, or FILE.jsonl")
    parser.add_argument("tokenizer", help="a tokenizer.json")
    parser.add_argument("--checkpoint", type=Path, default=Path("recipe.checkpoint"))
    parser.add_argument("--steps", type=int, default=200, help="the step after which the program stops")
    return parser.parse_args()


def show(step: int, loss: float, tokens: Any, validation: list[float]) -> None:
    """Prints one step: its loss, a checksum of its tokens and, if measured, the mean loss of the validation set."""
    print(f"step {step} loss {loss:.4f} tokens {zlib.crc32(tokens.tobytes()):08x}", end="")
    print(f" validation {sum(validation) / len(validation):.4f}" if validation else "", flush=True)
