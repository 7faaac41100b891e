"""Samples of WebDataset's shards and of MDS folders, beside the libraries that made these formats, where they are installed.

`python python/benches/shards.py [-n SAMPLES] [-r ROUNDS]`, with an optimised build of the package: `maturin develop --profile dist`.
A sample has 1 KiB of bytes, a text of 200 letters and a number; files are in the page cache. Everything takes turns in one
process; a figure is samples per second of CPU time, the median over the rounds.
"""

import argparse
import contextlib
import io
import json
import random
import statistics
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
from measure import per_cpu_second

SHARDS = 8


def count(samples: Iterable[Any]) -> int:
    """Reads everything; how many samples there were."""
    return sum(1 for _ in samples)


def sample(i: int) -> dict[str, bytes]:
    """The files of a sample, by extension."""
    return {"bin": bytes([i % 251]) * 1024, "cls": str(i % 10).encode(), "txt": b"oat " * 50}


def archives(folder: Path, samples: int) -> list[str]:
    """Shards of WebDataset."""
    paths = [folder / f"{shard:05}.tar" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(shard, samples, SHARDS):
                for extension, data in sample(i).items():
                    member = tarfile.TarInfo(f"{i:08}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return [str(path) for path in paths]


class ByNumber:
    """Samples of an MDS folder in another order, by the format's own reader of one shard."""

    def __init__(self, root: Path) -> None:
        from streaming.base.format import reader_from_json

        shards = json.loads((root / "index.json").read_text())["shards"]
        readers = [reader_from_json(str(root), "", shard) for shard in shards]
        self.order = [(reader, i) for reader in readers for i in range(len(reader))]
        random.Random(1).shuffle(self.order)

    def __iter__(self) -> Iterator[Any]:
        return (reader[i] for reader, i in self.order)


def candidates(folder: Path, samples: int) -> dict[str, Callable[[], int]]:
    """What is measured, by name."""
    paths = archives(folder, samples)
    tar = gm.MapDataset.webdataset(paths, index_cache="off")
    decoded = gm.MapDataset.webdataset(paths, index_cache="off", decode=True)
    rows: dict[str, Callable[[], int]] = {
        "webdataset: gristmill, in order": lambda: count(tar.to_iter_dataset()),
        "webdataset: gristmill, shuffled": lambda: count(tar.shuffle(1).to_iter_dataset()),
        "webdataset: gristmill, shuffled, decoded": lambda: count(decoded.shuffle(1).to_iter_dataset()),
    }
    with contextlib.suppress(ImportError):
        import webdataset

        read = lambda: webdataset.WebDataset(paths, shardshuffle=False)  # noqa: E731
        rows["webdataset: its own reader, in order"] = lambda: count(read())
        rows["webdataset: its own reader, in order, decoded"] = lambda: count(read().decode())
    with contextlib.suppress(ImportError):
        import streaming

        columns = {"bin": "bytes", "cls": "int", "txt": "str"}
        for name, options in {"plain": {}, "zstd": {"compression": "zstd:3"}}.items():
            root = folder / name
            with streaming.MDSWriter(out=str(root), columns=columns, **options) as writer:
                for i in range(samples):
                    files = sample(i)
                    writer.write({"bin": files["bin"], "cls": i, "txt": files["txt"].decode()})
            mds = gm.MapDataset.mds(root)
            rows[f"mds, {name}: gristmill, in order"] = lambda mds=mds: count(mds.to_iter_dataset())
            rows[f"mds, {name}: gristmill, shuffled"] = lambda mds=mds: count(mds.shuffle(1).to_iter_dataset())
            if name == "plain":
                rows["mds, plain: its own reader, shuffled"] = lambda read=ByNumber(root): count(read)
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", "--samples", type=int, default=20_000)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = candidates(Path(folder), options.samples)
        rates: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, run in rows.items():
                rates[name].append(per_cpu_second(run))
    for name, measured in rates.items():
        print(f"{name:48} {statistics.median(measured) / 1e3:8.1f} k/s")
    for other in ("webdataset", "mds"):
        if not any(name.startswith(other) and "its own" in name for name in rates):
            print(f"{other}: its own reader is not installed")


if __name__ == "__main__":
    main()
