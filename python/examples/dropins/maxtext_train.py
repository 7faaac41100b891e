"""MaxText's pre-training on gristmill's pipeline: `python maxtext_train.py CONFIG.yml dataset_type=grain grain_file_type=gristmill …`.

`grain_train_files` names JSON Lines with a column `text`, `tokenizer_path` a `tokenizer.json`, a `.tiktoken` file or a SentencePiece
model. MaxText saves the state of its input only with `dataset_type=grain`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gristmill as gm
import jax
from maxtext.input_pipeline import data_processing_utils
from maxtext.input_pipeline import input_pipeline_interface as pipeline
from maxtext.input_pipeline.multihost_dataloading import MultiHostDataLoadIterator

# Name or id of the token after each document.
EOS: str | int | None = "<|endoftext|>"


def rows(config: Any, files: str, seed: int, epochs: int | None) -> gm.IterDataset[Any]:
    """Packed rows with MaxText's six keys. Replace this function by a pipeline of your own."""
    documents = gm.MapDataset.jsonl(files, columns=["text"])
    if config.enable_data_shuffling:
        documents = documents.shuffle(seed=seed)
    ids = documents.repeat(epochs).tokenise(tokenizer=config.tokenizer_path, column="text", append_eos=EOS)
    length = {"tokens": config.max_target_length}
    return ids.to_iter_dataset().window_pack(length=length, over_long="split", names="maxtext")


@dataclass
class Batches:
    """The rows of a host in every global batch. Each pass starts from the beginning, as an evaluation expects."""

    ds: gm.IterDataset[Any]
    part: tuple[int, int]
    threads: int

    def __iter__(self) -> Iterator[Any]:
        return self.ds.loader(threads=self.threads, part=self.part)


def install() -> None:
    """Adds `grain_file_type: gristmill` to MaxText. Other types are read as before."""
    for split in ("train", "eval"):
        name = f"make_grain_{split}_iterator"
        setattr(pipeline, name, partial(iterator, split, getattr(pipeline, name)))


def iterator(split: str, theirs: Callable[..., Any], config: Any, mesh: Any, hosts: Sequence[int]) -> Any:
    if config.grain_file_type != "gristmill":
        return theirs(config, mesh, hosts)
    is_train = split == "train"
    files, pads = getattr(config, f"grain_{split}_files"), getattr(config, f"generate_padding_batch_{split}")
    ds = rows(config, files, config.data_shuffle_seed, config.num_epoch if is_train else 1)
    size = data_processing_utils.get_local_batch_size(config) * len(hosts)
    part = (hosts.index(jax.process_index()), len(hosts))
    batches = Batches(ds.batch(size, remainder="drop"), part, config.grain_num_threads)
    return MultiHostDataLoadIterator(batches, mesh, pads, config.expansion_factor_real_data)


if __name__ == "__main__":
    from absl import app
    from maxtext.trainers.pre_train import train as trainer

    install()
    app.run(trainer.main)
