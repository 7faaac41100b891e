"""The same files on gristmill: `python tfdata_after.py FOLDER`."""

import sys
from pathlib import Path

import gristmill as gm
import numpy as np

FEATURES = {
    "number": {"dtype": "int64", "shape": []},
    "text": {"dtype": "bytes", "shape": []},
}


def main(folder):
    records = gm.MapDataset.tfrecord(folder / "tfrecord" / "*.tfrecord", examples=FEATURES)
    for shuffle in (False, True):
        ds = records.shuffle(seed=1) if shuffle else records  # of the whole, not of a buffer
        with ds.to_iter_dataset().batch(8).loader(threads="auto") as batches:
            for batch in batches:
                for number, text in zip(np.ravel(batch["number"]).tolist(), batch["text"]):
                    print("shuffled" if shuffle else "in order", len(batch["text"]), number, text.decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
