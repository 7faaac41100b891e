"""What a peer's file says to the harness: it makes batches, and this measures them and prints one line of JSON.

    python peer_NAME.py WORKLOAD FOLDER [--workers N] [--check]

A file hands `serve` its packages and, for each workload, a function of the data and the number of workers that returns the batches of one pass.
Time and CPU time are counted from the first batch on, so that imports and the start of workers are no part of them, with the CPU time of all processes below.
"""

import argparse
import gc
import hashlib
import json
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SEQ_LEN, ROWS = 2048, 8
# Rows of the workload `unseen`, and a batch of them.
UNSEEN_LEN, UNSEEN_ROWS = 1024, 32
RECORDS, SHAPE = 256, (32, 32, 3)
# Documents that are tokenised by one call, where the peer does not say how many.
DOCUMENTS = 64
# Documents of a call whose result is a flat array.
MANY_DOCUMENTS = 512
END_OF_TEXT = "<|endoftext|>"
# Passes are repeated until a figure rests on so much time.
LEAST_S, MOST_PASSES = 1.0, 200


class Data(NamedTuple):
    """The folder that `data.py` wrote."""

    folder: Path
    # The folder of the JSON Lines: `text`, or `warm` and `rest`, which hold different documents.
    part: str = "text"

    @property
    def text(self) -> list[str]:
        """Shards of JSON Lines."""
        return sorted(map(str, self.folder.glob(f"{self.part}/*.jsonl")))

    @property
    def tokenizer(self) -> str:
        return str(self.folder / "tokenizer.json")

    def path(self, name: str) -> str:
        """A folder of one format."""
        return str(self.folder / name)

    def files(self, pattern: str) -> list[str]:
        return sorted(map(str, self.folder.glob(pattern)))


Batches = Iterable[Any]
Workload = Callable[[Data, int], Batches]


def cpu_seconds() -> float:
    """CPU time of this process and of all below it, those that have ended and those that have not."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + _running_children()


def _running_children() -> float:
    """CPU time of the processes below this one that have not ended, where there is a `/proc`."""
    children: dict[int, list[tuple[int, int]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append((int(stat.parent.name), sum(map(int, fields[11:15]))))
    ticks, waiting = 0, [os.getpid()]
    while waiting:
        for process, used in children.get(waiting.pop(), []):
            ticks += used
            waiting.append(process)
    return ticks / os.sysconf("SC_CLK_TCK")


def units(batch: Any) -> int:
    """Tokens of a batch of rows, or records of a batch of images."""
    return int(batch.size) if not isinstance(batch, dict) else len(batch["id"])


def measured(make: Callable[[], Batches]) -> dict[str, Any]:
    """Takes whole passes for a second at least, and counts from the first batch of each on."""
    total = {"units": 0, "wall_s": 0.0, "cpu_s": 0.0, "first_batch_s": 0.0, "passes": 0}
    while total["wall_s"] < LEAST_S and total["passes"] < MOST_PASSES:
        asked = time.perf_counter()
        running = iter(make())
        next(running)
        first, cpu, done = time.perf_counter(), cpu_seconds(), 0
        for batch in running:
            done += units(batch)
        wall, used = time.perf_counter() - first, cpu_seconds() - cpu
        total["first_batch_s"] = total["first_batch_s"] or first - asked
        total = {**total, "units": total["units"] + done, "wall_s": total["wall_s"] + wall, "cpu_s": total["cpu_s"] + used}
        total["passes"] += 1
        del running
        gc.collect()
    return total


def measured_unseen(make: Callable[[Data], Batches], data: Data) -> dict[str, Any]:
    """Warms up on other documents, and counts a single pass from its start on. Each document is read once."""
    for _ in make(data._replace(part="warm")):
        pass
    gc.collect()
    asked, cpu, first, done = time.perf_counter(), cpu_seconds(), 0.0, 0
    for batch in make(data):
        first = first or time.perf_counter()
        done += units(batch)
    wall, used = time.perf_counter() - asked, cpu_seconds() - cpu
    return {"units": done, "wall_s": wall, "cpu_s": used, "first_batch_s": first - asked, "passes": 1}


def checked(batches: Batches) -> dict[str, Any]:
    """Digests of a whole pass: of what it holds, in any order, and of the order."""
    total, order, bag = 0, hashlib.sha256(), 0
    counts = np.zeros(1 << 17, np.int64)
    for batch in batches:
        if isinstance(batch, dict):
            ids, images = np.asarray(batch["id"], np.int64), np.asarray(batch["image"], np.uint8).reshape(-1, *SHAPE)
            for one, image in zip(ids, images, strict=True):
                bag += int.from_bytes(hashlib.blake2b(one.tobytes() + image.tobytes(), digest_size=8).digest())
            order.update(ids.tobytes())
            total += len(ids)
        else:
            real = np.asarray(batch, np.int32).ravel()
            real = real[real >= 0]
            counts += np.bincount(real, minlength=len(counts))
            order.update(real.tobytes())
            total += len(real)
    if counts.any():
        bag = int.from_bytes(hashlib.blake2b(counts.tobytes(), digest_size=8).digest())
    return {"total": total, "bag": f"{bag % 2**64:016x}", "order": order.hexdigest()[:16]}


def encoder(tokenizer: str, workers: int) -> Callable[[Sequence[str]], list[np.ndarray[Any, Any]]]:
    """Encodes several documents at once with the tokenizers of Hugging Face, each with an end; by all cores where there are no workers."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if workers else "true"
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(tokenizer)
    end = made.token_to_id(END_OF_TEXT)

    def encode(texts: Sequence[str]) -> list[np.ndarray[Any, Any]]:
        return [np.array([*one.ids, end], np.int32) for one in made.encode_batch_fast(list(texts), add_special_tokens=False)]

    return encode


def grouped(items: Iterable[Any], count: int = DOCUMENTS) -> Iterator[list[Any]]:
    """So many items at a time, and the rest."""
    group: list[Any] = []
    for item in items:
        group.append(item)
        if len(group) == count:
            yield group
            group = []
    if group:
        yield group


def concatenated(ids: Iterable[np.ndarray[Any, Any]]) -> Iterator[np.ndarray[Any, Any]]:
    """Rows of `SEQ_LEN` cut from all ids in a row: what users write for loaders that do not pack. The last row is filled up with -1."""
    waiting: list[np.ndarray[Any, Any]] = []
    count = 0
    for one in ids:
        waiting.append(one)
        count += len(one)
        if count >= SEQ_LEN:
            whole = np.concatenate(waiting)
            cut = count - count % SEQ_LEN
            yield from whole[:cut].reshape(-1, SEQ_LEN)
            waiting, count = [whole[cut:]], count - cut
    if count:
        yield np.pad(np.concatenate(waiting), (0, SEQ_LEN - count), constant_values=-1)


def cut(ids: Iterable[np.ndarray[Any, Any]]) -> Iterator[np.ndarray[Any, Any]]:
    """Batches of rows of `UNSEEN_LEN`, cut from large arrays of ids. The last row is filled up with -1."""
    rest, size = np.empty(0, np.int32), UNSEEN_ROWS * UNSEEN_LEN
    for some in ids:
        whole = np.concatenate([rest, some])
        batches = len(whole) // size
        yield from whole[: batches * size].reshape(-1, UNSEEN_ROWS, UNSEEN_LEN)
        rest = whole[batches * size :]
    if len(rest):
        yield np.pad(rest, (0, -len(rest) % UNSEEN_LEN), constant_values=-1).reshape(-1, UNSEEN_LEN)


def stacked(rows: Iterable[np.ndarray[Any, Any]]) -> Iterator[np.ndarray[Any, Any]]:
    """Batches of rows."""
    return (np.stack(group) for group in grouped(rows, ROWS))


def decoded(ids: Sequence[int], images: Sequence[bytes]) -> dict[str, np.ndarray[Any, Any]]:
    """A batch of records whose images are bytes."""
    return {"id": np.asarray(ids, np.int64), "image": np.frombuffer(b"".join(images), np.uint8).reshape(-1, *SHAPE)}


def split(rows: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """A batch of records whose rows are the bytes of a number and an image."""
    return {"id": rows[:, :8].copy().view(np.int64).ravel(), "image": rows[:, 8:].reshape(-1, *SHAPE)}


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"


def serve(package: str, workloads: dict[str, Workload], build: Callable[[], str] | None = None) -> None:
    """Runs one workload as the command line asks, and prints what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=sorted(workloads))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    data = Data(options.folder, "rest" if options.workload == "unseen" else "text")
    make = partial(workloads[options.workload], data, options.workers)
    if options.workload == "unseen" and not options.check:
        told = measured_unseen(lambda data: workloads["unseen"](data, options.workers), data)
    else:
        told = checked(make()) if options.check else measured(make)
    told |= {"package": package, "version": version(package), "build": build() if build else ""}
    print(json.dumps(told), flush=True)
