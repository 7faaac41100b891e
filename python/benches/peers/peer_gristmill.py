"""gristmill: everything native; workers are threads. It reads the files of every peer but LitData's."""

from collections.abc import Callable
from typing import Any

import gristmill as gm
from gristmill import _gristmill
from protocol import END_OF_TEXT, RECORDS, ROWS, SEQ_LEN, UNSEEN_LEN, UNSEEN_ROWS, Batches, Data, Workload, decoded, serve, split


# Of the records in TFRecord.
FEATURES = {"id": {"dtype": "int64", "shape": []}, "image": {"dtype": "bytes", "shape": []}}

KEPT: list[gm.IterDataset[Any]] = []


def tokens(data: Data, workers: int) -> Batches:
    documents = gm.MapDataset.jsonl(data.text, columns=["text"])
    ids = documents.tokenise(tokenizer=data.tokenizer, column="text", append_eos=END_OF_TEXT).to_iter_dataset()
    packed = ids.concat_then_split_pack(length={"tokens": SEQ_LEN}, padding={"tokens": -1}).batch(ROWS)
    return (batch["tokens"] for batch in packed.loader(threads=workers))


def unseen(data: Data, workers: int) -> Batches:
    documents = gm.MapDataset.jsonl(data.text, columns=["text"])
    ids = documents.tokenise(tokenizer=data.tokenizer, column="text", append_eos=END_OF_TEXT).to_iter_dataset()
    packed = ids.concat_then_split_pack(length={"tokens": UNSEEN_LEN}, padding={"tokens": -1}).batch(UNSEEN_ROWS)
    # The tokenizer, with its caches, lives as long as a dataset that has it.
    KEPT.append(packed)
    return (batch["tokens"] for batch in packed.loader(threads=workers))


def mapped(data: Data, workers: int) -> Batches:
    rows = gm.MapDataset.npy(data.files("npy/*.npy")).shuffle(seed=1).to_iter_dataset().batch(RECORDS)
    return (split(batch["data"]) for batch in rows.loader(threads=workers))


def shuffled(source: Callable[[Data], gm.MapDataset[Any]]) -> Workload:
    """Records with a number and the bytes of an image, all shuffled."""

    def run(data: Data, workers: int) -> Batches:
        ds = source(data).shuffle(seed=1).to_iter_dataset().batch(RECORDS, batch_fn=of_elements)
        return ds.loader(threads=workers)

    return run


def of_elements(elements: list[dict[str, Any]]) -> dict[str, Any]:
    return decoded([int(one["id"]) for one in elements], [one["image"] for one in elements])


if __name__ == "__main__":
    serve(
        "gristmill",
        {
            "tokens": tokens,
            "unseen": unseen,
            "records-npy": mapped,
            "records-tfrecord": shuffled(lambda data: gm.MapDataset.tfrecord(data.path("tfrecord"), examples=FEATURES)),
            "records-arrow": shuffled(lambda data: gm.MapDataset.arrow(data.path("arrow"))),
            "records-mds": shuffled(lambda data: gm.MapDataset.mds(data.path("mds"))),
            "records-tar": shuffled(lambda data: gm.MapDataset.webdataset(data.path("tar"), columns=["id", "image"])),
        },
        lambda: "optimised" if _gristmill.__optimised__ else "not optimised",
    )
