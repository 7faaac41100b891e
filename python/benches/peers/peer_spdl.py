"""SPDL: a pipeline of functions on threads, which is why its tokenizer and NumPy can run beside each other."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from protocol import RECORDS, Batches, Data, concatenated, encoder, grouped, serve, split, stacked
from spdl.pipeline import PipelineBuilder


def piped(source: Iterable[Any], function: Any, workers: int) -> Batches:
    """The function's results in the order of the source."""
    threads = max(workers, 1)
    stages = PipelineBuilder().add_source(source).pipe(function, concurrency=threads, output_order="input").add_sink(4)
    pipeline = stages.build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline


def tokens(data: Data, workers: int) -> Batches:
    # Threads of the pipeline take the place of the tokenizer's own.
    encode = encoder(data.tokenizer, max(workers, 1))

    def ids(lines: list[str]) -> Any:
        return np.concatenate(encode([json.loads(line)["text"] for line in lines]))

    lines = (line for file in data.text for line in open(file))
    return stacked(concatenated(piped(grouped(lines), ids, workers)))


def records(data: Data, workers: int) -> Batches:
    files = [np.load(file, mmap_mode="r") for file in data.files("npy/*.npy")]
    starts = np.cumsum([0, *map(len, files)])
    order = np.random.default_rng(1).permutation(int(starts[-1]))

    def rows(indices: Any) -> Any:
        numbers = np.searchsorted(starts, indices, side="right") - 1
        made = np.empty((len(indices), files[0].shape[1]), np.uint8)
        for number in np.unique(numbers):
            here = numbers == number
            made[here] = files[number][indices[here] - starts[number]]
        return split(made)

    return piped(np.split(order, range(RECORDS, len(order), RECORDS)), rows, workers)


if __name__ == "__main__":
    serve("spdl", {"tokens": tokens, "records-npy": records})
