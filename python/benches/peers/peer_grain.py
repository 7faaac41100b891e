"""Grain: its packing by concatenation, and its worker processes."""

import json
import os
from typing import Any

import grain
import numpy as np
from protocol import RECORDS, ROWS, SEQ_LEN, Batches, Data, encoder, serve, split


class Lines:
    """Lines of JSON, by their places in the files."""

    def __init__(self, files: list[str]) -> None:
        self.files, self.places = files, list[tuple[int, int]]()
        for number, file in enumerate(files):
            with open(file, "rb") as lines:
                place = 0
                for line in lines:
                    self.places.append((number, place))
                    place += len(line)
        self.process, self.opened = 0, list[Any]()

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> str:
        if self.process != os.getpid():
            self.process, self.opened = os.getpid(), [open(file, "rb") for file in self.files]
        number, place = self.places[index]
        file = self.opened[number]
        file.seek(place)
        return json.loads(file.readline())["text"]


class Encode(grain.transforms.Map):
    def __init__(self, tokenizer: str, workers: int) -> None:
        self.tokenizer, self.workers, self.encode = tokenizer, workers, None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "encode": None}

    def map(self, element: str) -> dict[str, Any]:
        self.encode = self.encode or encoder(self.tokenizer, self.workers)
        return {"tokens": self.encode([element])[0]}


class Mapped:
    """Rows of mapped files."""

    def __init__(self, files: list[str]) -> None:
        self.names, self.files = files, [np.load(file, mmap_mode="r") for file in files]
        self.starts = np.cumsum([0, *map(len, self.files)])

    def __getstate__(self) -> list[str]:
        return self.names

    def __setstate__(self, names: list[str]) -> None:
        self.__init__(names)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, index: int) -> Any:
        file = int(np.searchsorted(self.starts, index, side="right")) - 1
        return np.array(self.files[file][index - self.starts[file]])


def workers_of(ds: Any, workers: int) -> Any:
    return ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else ds


def tokens(data: Data, workers: int) -> Batches:
    ids = grain.MapDataset.source(Lines(data.text)).map(Encode(data.tokenizer, workers))
    reading = grain.ReadOptions(num_threads=0 if workers else 2)
    rows = grain.experimental.ConcatThenSplitIterDataset(ids.to_iter_dataset(reading), length_struct={"tokens": SEQ_LEN})
    for batch in workers_of(rows.batch(ROWS), workers):
        # It fills up with 0.
        yield np.where(batch["tokens_segment_ids"] > 0, batch["tokens"], -1)


def records(data: Data, workers: int) -> Batches:
    rows = grain.MapDataset.source(Mapped(data.files("npy/*.npy"))).shuffle(seed=1)
    ds = rows.to_iter_dataset(grain.ReadOptions(num_threads=0 if workers else 2)).batch(RECORDS)
    return (split(batch) for batch in workers_of(ds, workers))


serve("grain", {"tokens": tokens, "records-npy": records})
