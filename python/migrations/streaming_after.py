"""The same shards on gristmill: `python streaming_after.py FOLDER`."""

import sys
from pathlib import Path

import gristmill as gm


def main(folder):
    samples = gm.MapDataset.mds(folder / "mds")  # or "s3://bucket/mds", with `cache_dir` for blocks on a disk
    for shuffle in (False, True):
        ds = samples.shuffle(seed=1) if shuffle else samples
        with ds.to_iter_dataset().batch(8).loader(threads=2) as batches:
            for batch in batches:
                for number, text in zip(batch["number"].tolist(), batch["text"]):
                    print("shuffled" if shuffle else "in order", len(batch["text"]), number, text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
