"""How fast files of records are read, beside the readers of those who made the formats, in one run.

`python python/benches/records.py [FOLDER]`: records for each second of CPU time that all threads took together, files in the page cache.
Official readers that are not installed (`array_record`, `tensorflow` or `tensorflow-cpu`) are left out.
FOLDER has room for 3 GB; a temporary one is made without it.
"""

import importlib
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gristmill as gm
from measure import per_cpu_second, table

KIB = 1024
Work = Callable[[], float]


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed and left out", file=sys.stderr)
        return None


array_record: Any = installed("array_record.python.array_record_module")
array_record_source: Any = installed("array_record.python.array_record_data_source")
tensorflow: Any = installed("tensorflow")


def words(rng: random.Random, size: int) -> bytes:
    """Text of which zstd leaves about a half."""
    return bytes(rng.choices(b"etaoin shrdlu cmfwyp", k=size))


def count(elements: Iterable[Any]) -> float:
    return float(sum(1 for _ in elements))


def best(work: Work, rounds: int = 3) -> float:
    """The best of a few rounds, after one that warms up."""
    work()
    return max(per_cpu_second(work) for _ in range(rounds))


def chunks(order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (order[at : at + size] for at in range(0, len(order), size))


def rows(title: str, cases: Sequence[tuple[str, dict[str, tuple[Work, int]]]]) -> None:
    """A table of the cases, each of them by several readers: what one yields, and by how much that is multiplied."""
    columns = list(dict.fromkeys(name for _, readers in cases for name in readers))
    lines: list[tuple[str, dict[str, str]]] = []
    for name, readers in cases:
        cells = {of: f"{best(reader[0]) * reader[1]:,.0f}" for of, reader in readers.items()}
        lines.append((name, cells))
    print(table([title, *columns], lines), "\n", sep="")


def array_records(folder: Path) -> None:
    cases: list[tuple[str, dict[str, tuple[Work, int]]]] = []
    rng = random.Random(1)
    records = [words(rng, KIB) for _ in range(1000)]
    for compression in ("uncompressed", "zstd:3"):
        for length in (1_000, 30_000, 1_000_000):
            path = str(folder / f"{compression[:4]}-{length}.array_record")
            writer = array_record.ArrayRecordWriter(path, f"group_size:1,{compression}")
            for at in range(length):
                writer.write(records[at % 1000])
            writer.close()
            ours, theirs = gm.MapDataset.array_record(path), array_record_source.ArrayRecordDataSource(path)
            order = rng.choices(range(length), k=30_000)
            few = order[:3_000]
            cases.append(
                (
                    f"{compression}, {length:,} records",
                    {
                        "gristmill, a stream": (lambda ds=ours, order=order: count(ds.select_indices(order)), 1),
                        "gristmill, ds[i]": (lambda ds=ours, order=order: count(ds[at] for at in order), 1),
                        "array_record, ds[i]": (lambda ds=theirs, few=few: count(ds[at] for at in few), 1),
                        "array_record, 1,000 at a time": (
                            lambda ds=theirs, order=order: sum(count(ds.__getitems__(part)) for part in chunks(order, 1000)),
                            1,
                        ),
                    },
                )
            )
    rows("ArrayRecord, 1 KiB, shuffled, records/s", cases)


def write_tfrecords(path: Path, records: Iterable[bytes]) -> str:
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def tf_records(folder: Path) -> None:
    cases: list[tuple[str, dict[str, tuple[Work, int]]]] = []
    rng = random.Random(2)
    for size in (KIB, 16 * KIB, 1024 * KIB):
        some = [words(rng, size) for _ in range(64)]
        path = write_tfrecords(folder / f"{size}.tfrecord", (some[at % 64] for at in range(256 * 1024 * KIB // size)))

        def by_tensorflow(path: str = path, size: int = size) -> float:
            batches = tensorflow.data.TFRecordDataset(path).batch(max(1, 1024 * KIB // size)).as_numpy_iterator()
            return float(sum(len(batch) for batch in batches))

        cases.append(
            (
                f"{size // KIB} KiB",
                {
                    "gristmill": (lambda path=path: count(gm.IterDataset.tfrecord(path)), size // KIB),
                    "tensorflow, batches of 1 MiB": (by_tensorflow, size // KIB),
                },
            )
        )
    rows("TFRecord, in order, KiB/s", cases)


def examples(folder: Path) -> None:
    train, rng = tensorflow.train, random.Random(3)

    def example(at: int) -> bytes:
        features = {
            "label": train.Feature(int64_list=train.Int64List(value=[at])),
            "tokens": train.Feature(int64_list=train.Int64List(value=rng.choices(range(50_000), k=256))),
            "embedding": train.Feature(float_list=train.FloatList(value=[rng.random() for _ in range(64)])),
            "text": train.Feature(bytes_list=train.BytesList(value=[words(rng, 200)])),
        }
        made: bytes = train.Example(features=train.Features(feature=features)).SerializeToString()
        return made

    some = [example(at) for at in range(1000)]
    path = write_tfrecords(folder / "examples.tfrecord", (some[at % 1000] for at in range(20_480)))
    fixed = tensorflow.io.FixedLenFeature
    theirs = {
        "label": fixed([], tensorflow.int64),
        "tokens": fixed([256], tensorflow.int64),
        "embedding": fixed([64], tensorflow.float32),
        "text": fixed([], tensorflow.string),
    }
    ours: Any = {
        "label": {"dtype": "int64", "shape": []},
        "tokens": {"dtype": "int64", "shape": [256]},
        "embedding": {"dtype": "float32", "shape": [64]},
        "text": {"dtype": "bytes", "shape": []},
    }

    def single() -> float:
        ds = tensorflow.data.TFRecordDataset(path)
        return count(ds.map(lambda record: tensorflow.io.parse_single_example(record, theirs)).as_numpy_iterator())

    def batched() -> float:
        ds = tensorflow.data.TFRecordDataset(path).batch(256)
        ds = ds.map(lambda record: tensorflow.io.parse_example(record, theirs))
        return float(sum(len(batch["label"]) for batch in ds.as_numpy_iterator()))

    declared, inferred = gm.MapDataset.tfrecord(path, examples=ours), gm.MapDataset.tfrecord(path, examples=True)
    cases: list[tuple[str, dict[str, tuple[Work, int]]]] = [
        (
            "one by one",
            {
                "gristmill": (lambda: count(declared), 1),
                "gristmill, inferred": (lambda: count(inferred), 1),
                "tensorflow": (single, 1),
            },
        ),
        (
            "batches of 256",
            {
                "gristmill": (lambda: count(declared.to_iter_dataset().batch(256)), 256),
                "tensorflow": (batched, 1),
            },
        ),
    ]
    rows("tf.train.Example of 4 features, 1 KiB, examples/s", cases)


def main(folder: Path) -> None:
    if array_record is not None:
        array_records(folder)
    if tensorflow is not None:
        tf_records(folder)
        examples(folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
