"""The same on gristmill, from the data that the chunks were made of: `python litdata_after.py FOLDER`."""

import sys
from pathlib import Path

import gristmill as gm


def main(folder):
    documents = gm.MapDataset.jsonl(folder / "documents.jsonl")
    for shuffle in (False, True):
        ds = documents.shuffle(seed=1) if shuffle else documents
        with ds.to_iter_dataset().batch(8).loader(threads=2) as batches:
            for batch in batches:
                for number, text in zip(batch["number"].tolist(), batch["text"]):
                    print("shuffled" if shuffle else "in order", len(batch["text"]), number, text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
