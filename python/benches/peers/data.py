"""Writes the same text and the same records in the format of every peer: `python data.py FOLDER [--corpus FILE] [--mb MB] [--records COUNT]`.

Everything follows from the seed and the corpus. A folder that was written with the same options is left as it is.
"""

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np

SHARDS = 4
# Part of the documents on which the workload `unseen` warms up.
WARM = 0.3
PIXELS = 32 * 32 * 3


def documents(corpus: Path | None, mb: float, seed: int) -> Iterator[str]:
    """Texts of the corpus, each once, or made-up ones, until there are so many megabytes of them."""
    texts = made_up(seed) if corpus is None else (json.loads(line)["text"] for line in corpus.open(encoding="utf-8"))
    size = 0
    for text in texts:
        yield text
        size += len(text.encode())
        if size >= mb * 1e6:
            return


def made_up(seed: int) -> Iterator[str]:
    """Texts of words that come as often as those of a language do."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = np.array(["".join(rng.choice(letters, length)) for length in rng.integers(2, 11, 8000)])
    while True:
        ranks = np.minimum(rng.zipf(1.2, int(rng.lognormal(4.6, 0.8)) + 1), len(words)) - 1
        yield " ".join(words[ranks]) + "."


def shards(items: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Neighbours together."""
    size = -(-len(items) // SHARDS)
    return ((at, items[at * size : (at + 1) * size]) for at in range(SHARDS))


def write_unseen(folder: Path, texts: list[str]) -> None:
    """Two folders of different documents: the first to warm up, the second to measure."""
    warm = int(len(texts) * WARM)
    for name, some in {"warm": texts[:warm], "rest": texts[warm:]}.items():
        (folder / name).mkdir()
        write_text(folder / name, some)


def write_text(folder: Path, texts: list[str]) -> None:
    for at, some in shards(texts):
        (folder / f"{at:05}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in some))


def write(folder: Path, format: Any, elements: Iterable[dict[str, Any]], count: int, **options: Any) -> None:
    with gm.sink(folder, format, shard_records=-(-count // SHARDS), **options) as sink:
        sink.write_all(elements)


def write_records(folder: Path, count: int, seed: int) -> None:
    """Records of a number and an image, in each format that has a reader here."""
    rng = np.random.default_rng(seed)
    rows = np.empty((count, 8 + PIXELS), np.uint8)
    rows[:, :8] = np.arange(count, dtype=np.int64)[:, None].view(np.uint8)
    rows[:, 8:] = rng.integers(0, 256, (count, PIXELS), dtype=np.uint8)
    (folder / "npy").mkdir()
    for at, some in shards(list(range(count))):
        np.save(folder / "npy" / f"{at:05}.npy", rows[some[0] : some[-1] + 1])

    def elements(name: str, number: Any) -> Iterator[dict[str, Any]]:
        return ({"__key__": f"{at:08}", "id": number(at), name: row[8:].tobytes()} for at, row in enumerate(rows))

    def plain() -> Iterator[dict[str, Any]]:
        return ({"id": at, "image": row[8:].tobytes()} for at, row in enumerate(rows))

    write(folder / "tfrecord", "tfrecord", plain(), count)
    write(folder / "arrow", "hugging_face", plain(), count)
    write(folder / "mds", "mds", plain(), count)
    write(folder / "tar", "webdataset", elements("image", lambda at: str(at).encode()), count)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split(":")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--mb", type=float, default=16)
    parser.add_argument("--records", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unseen", action="store_true", help="only the JSON Lines of the workload `unseen`")
    options = parser.parse_args()
    asked = json.dumps({name: str(value) for name, value in vars(options).items()})
    done = options.folder / "made.json"
    if done.exists() and done.read_text() == asked:
        return
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    shutil.copy(options.tokenizer, options.folder / "tokenizer.json")
    texts = list(documents(options.corpus, options.mb, options.seed))
    write_unseen(options.folder, texts)
    if not options.unseen:
        write_all(options, texts)
    done.write_text(asked)


def write_all(options: argparse.Namespace, texts: list[str]) -> None:
    """Text and records in the format of every peer."""
    (options.folder / "text").mkdir()
    write_text(options.folder / "text", texts)
    write(options.folder / "mds-text", "mds", ({"text": text} for text in texts), len(texts))
    keyed = ({"__key__": f"{at:08}", "txt": text} for at, text in enumerate(texts))
    write(options.folder / "tar-text", "webdataset", keyed, len(texts))
    write_records(options.folder, options.records, options.seed)


if __name__ == "__main__":
    main()
