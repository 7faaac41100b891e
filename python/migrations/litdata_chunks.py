"""Chunks of LitData's, written once as shards that are read natively: `python litdata_chunks.py FOLDER`."""

import sys
from pathlib import Path

import gristmill as gm
import litdata


def main(folder):
    chunks = litdata.StreamingDataset(str(folder / "chunks"), shuffle=False)
    with gm.sink(folder / "shards", "parquet", resume=True) as sink:
        for index in range(sink.records, len(chunks)):
            sink.write(chunks[index])
    print(sink.finish())
    for record in gm.MapDataset.parquet(folder / "shards"):
        print("in order", record["number"], record["text"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
