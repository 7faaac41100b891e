"""Grain: its packing by concatenation; workers are threads where it tokenises and processes where it does not, whichever was quicker."""

import json
import os
from typing import Any

import grain
import numpy as np
from protocol import RECORDS, ROWS, SEQ_LEN, Batches, Data, encoder, serve, split


class Lines:
    """Lines of JSON, by their places in the files."""

    def __init__(self, files: list[str]) -> None:
        self.files, self.places = files, list[tuple[int, int, int]]()
        for number, file in enumerate(files):
            with open(file, "rb") as lines:
                place = 0
                for line in lines:
                    self.places.append((number, place, len(line)))
                    place += len(line)
        self.process, self.opened = 0, list[Any]()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "process": 0, "opened": []}

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> str:
        if self.process != os.getpid():
            self.opened, self.process = [open(file, "rb") for file in self.files], os.getpid()
        number, place, size = self.places[index]
        return json.loads(os.pread(self.opened[number].fileno(), size, place))["text"]


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


def tokens(data: Data, workers: int) -> Batches:
    ids = grain.MapDataset.source(Lines(data.text)).map(Encode(data.tokenizer, workers))
    ordered = ids.to_iter_dataset(grain.ReadOptions(num_threads=workers))
    rows = grain.experimental.ConcatThenSplitIterDataset(ordered, length_struct={"tokens": SEQ_LEN})
    for batch in rows.batch(ROWS):
        # It fills up with 0.
        yield np.where(batch["tokens_segment_ids"] > 0, batch["tokens"], -1)


def records(data: Data, workers: int) -> Batches:
    # Batches of a MapDataset are quicker here than those of an IterDataset, and no threads than some.
    rows = grain.MapDataset.source(Mapped(data.files("npy/*.npy"))).shuffle(seed=1).batch(RECORDS)
    ds = rows.to_iter_dataset(grain.ReadOptions(num_threads=0))
    return map(split, ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else ds)


if __name__ == "__main__":
    serve("grain", {"tokens": tokens, "records-npy": records})
