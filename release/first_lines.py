"""The first lines of a stranger, in an empty environment: text to packed batches, and back to a position."""

import json
import pathlib
import time

start = time.perf_counter()
import gristmill as gm

imported = time.perf_counter() - start

import numpy as np

corpus = pathlib.Path("first.jsonl")
corpus.write_text("".join(json.dumps({"ids": list(range(n % 50 + 1))}) + "\n" for n in range(1000)))

ds = (
    gm.MapDataset.jsonl(str(corpus))
    .map(lambda record: {"ids": np.asarray(record["ids"], dtype=np.int32)})
    .shuffle(seed=42)
    .to_iter_dataset()
    .window_pack(length={"ids": 128})
    .batch(8)
)


with ds.loader(threads=2) as batches:
    first = next(batches)
    state = batches.get_state()
    second = next(batches)
    batches.set_state(state)
    again = next(batches)
assert first["ids"].shape == (8, 128), first["ids"].shape
assert (second["ids"] == again["ids"]).all()
print(f"gristmill {gm.__version__}: imported in {imported * 1e3:.0f} ms, packed, and resumed")
