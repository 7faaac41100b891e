"""A dataset of Hugging Face, shuffled and selected there, read here without a Python object for each row."""

import tempfile

import datasets
import gristmill as gm

with tempfile.TemporaryDirectory() as folder:
    whole = datasets.Dataset.from_dict({"ids": [list(range(n % 7 + 1)) for n in range(1000)], "label": list(range(1000))})

    # In memory or mapped from the cache: with the rows that `shuffle`, `select` and `filter` left, in their order.
    chosen = whole.shuffle(seed=1).select(range(200))
    rows = gm.MapDataset.arrow(chosen, columns=["ids"])
    ds = rows.to_iter_dataset().window_pack(length={"ids": 16}).batch(8)
    print(f"{len(rows)} rows, {ds.element_spec['ids']}")

    # A folder that `save_to_disk` wrote needs no `datasets` to be read, and goes to workers by its path.
    whole.save_to_disk(f"{folder}/whole")
    saved = gm.MapDataset.arrow(f"{folder}/whole", columns="label").shuffle(seed=1).to_iter_dataset().batch(250)
    print(f"{sum(len(batch['label']) for batch in saved)} rows from the folder")

    # What only streams there is a stream here.
    streamed = gm.IterDataset.source(whole.to_iterable_dataset()).map(lambda row: row["label"]).take(3)
    print(f"streamed: {list(streamed)}")
