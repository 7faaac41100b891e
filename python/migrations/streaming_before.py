"""MosaicML's StreamingDataset over MDS shards: `python streaming_before.py FOLDER`."""

import sys
from pathlib import Path

from streaming import StreamingDataLoader, StreamingDataset


def main(folder):
    for shuffle in (False, True):
        dataset = StreamingDataset(local=str(folder / "mds"), shuffle=shuffle, shuffle_seed=1, batch_size=8)
        for batch in StreamingDataLoader(dataset, batch_size=8):
            for number, text in zip(batch["number"].tolist(), batch["text"]):
                print("shuffled" if shuffle else "in order", len(batch["text"]), number, text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
