"""Reads a Hugging Face dataset that was shuffled and selected by `datasets`, without a Python object per row."""

import tempfile

import datasets
import gristmill as gm

with tempfile.TemporaryDirectory() as folder:
    whole = datasets.Dataset.from_dict({"ids": [list(range(n % 7 + 1)) for n in range(1000)], "label": list(range(1000))})

    # In memory or mapped from the cache, with the rows and order of `shuffle`, `select` and `filter`.
    chosen = whole.shuffle(seed=1).select(range(200))
    rows = gm.MapDataset.arrow(chosen, columns=["ids"])
    ds = rows.to_iter_dataset().window_pack(length={"ids": 16}).batch(8)
    print(f"{len(rows)} rows, {ds.element_spec['ids']}")

    # Reading a folder of `save_to_disk` does not need `datasets`. Workers receive the path only.
    whole.save_to_disk(f"{folder}/whole")
    saved = gm.MapDataset.arrow(f"{folder}/whole", columns="label").shuffle(seed=1).to_iter_dataset().batch(250)
    print(f"{sum(len(batch['label']) for batch in saved)} rows from the folder")

    # A streaming dataset is a stream here too.
    streamed = gm.IterDataset.source(whole.to_iterable_dataset()).map(lambda row: row["label"]).take(3)
    print(f"streamed: {list(streamed)}")
