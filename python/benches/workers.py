"""What worker processes cost from Python: starting them, handing batches over, and a text pipeline.

    python python/benches/workers.py [--tokenizer tokenizer.json] [--mb 64]
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np


def best(measure: Callable[[], float], times: int = 5) -> float:
    return min(measure() for _ in range(times))


def first_batch(ds: gm.IterDataset) -> float:
    start = time.perf_counter()
    with ds.loader() as it:
        next(it)
        return time.perf_counter() - start


def starts() -> None:
    numbers = gm.MapDataset.range(1 << 30).shuffle(seed=1)
    cases: dict[str, gm.IterDataset] = {
        "native, in process": numbers.to_iter_dataset().batch(256),
        "native, one worker": numbers.to_iter_dataset().batch(256).mp_prefetch(),
        "Python, one worker": numbers.map(lambda x: x + 1).to_iter_dataset().batch(256).mp_prefetch(num_workers=1),
        "Python, two workers": numbers.map(lambda x: x + 1).to_iter_dataset().batch(256).mp_prefetch(num_workers=2),
        "with NumPy, two": numbers.map(lambda x: np.full(4, x)).to_iter_dataset().batch(256).mp_prefetch(num_workers=2),
    }
    for name, ds in cases.items():
        print(f"first batch, {name:20} {1e3 * best(lambda ds=ds: first_batch(ds)):8.1f} ms")


def memcpy(mib: int = 16) -> float:
    source, target = np.ones(mib << 20, np.uint8), np.empty(mib << 20, np.uint8)

    def once() -> float:
        start = time.perf_counter()
        np.copyto(target, source)
        return time.perf_counter() - start

    return (mib << 20) / best(once, 20) / 1e9


def handed_over(ds: gm.IterDataset, count: int) -> float:
    with ds.loader() as it:
        # The first ones touch memory that nobody has touched.
        total = sum(next(it)["x"].nbytes * 0 for _ in range(40))
        start = time.perf_counter()
        for _ in range(count):
            total += next(it)["x"].nbytes
        return total / (time.perf_counter() - start) / 1e9


def hand_over(folder: Path) -> None:
    print(f"memcpy of 16 MiB {memcpy():22.1f} GB/s")
    rows = np.zeros((1024, 64 << 10), np.uint8)
    np.save(folder / "rows.npy", rows)
    native = gm.MapDataset.npy(folder / "rows.npy", field="x").repeat().to_iter_dataset().batch(256)
    print(f"16 MiB batches, native worker {handed_over(native.mp_prefetch(), 300):9.1f} GB/s")
    batch = np.zeros(16 << 20, np.uint8)
    python = gm.MapDataset.range(1 << 30).map(lambda _: {"x": batch}).to_iter_dataset()
    for workers in (1, 2):
        told = handed_over(python.mp_prefetch(num_workers=workers), 300)
        print(f"16 MiB batches, {workers} Python worker{'s' if workers > 1 else ' '}{told:9.1f} GB/s")


def cpu() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def text(folder: Path, tokenizer: str, mb: int) -> None:
    rng = np.random.default_rng(1)
    vocabulary = [f"{word:x}".translate(str.maketrans("0123456789abcdef", "etaoinshrdlucmfw")) for word in range(5000)]
    with (folder / "corpus.jsonl").open("w") as file:
        written = 0
        while written < mb << 20:
            line = json.dumps({"text": " ".join(vocabulary[word] for word in rng.integers(0, 5000, 200))})
            written += file.write(line + "\n")
    ds = gm.MapDataset.jsonl(folder / "corpus.jsonl").shuffle(seed=1).tokenise(tokenizer=tokenizer, column="text")
    packed = ds.to_iter_dataset().window_pack(length={"tokens": 1024}).batch(16)
    for name, run in {"in process": packed, "one native worker": packed.mp_prefetch()}.items():
        before, start, tokens = cpu(), time.perf_counter(), 0
        with run.loader() as it:
            for batch in it:
                tokens += int((batch["tokens_segment_ids"] > 0).sum())
        wall, used = time.perf_counter() - start, cpu() - before
        print(f"tokens, {name:18} {tokens / used / 1e6:7.1f} M per CPU second, {tokens / wall / 1e6:6.1f} M/s")


def main() -> None:
    parser: Any = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer")
    parser.add_argument("--mb", type=int, default=64)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        starts()
        hand_over(Path(folder))
        if arguments.tokenizer:
            text(Path(folder), arguments.tokenizer, arguments.mb)


if __name__ == "__main__":
    main()
