"""Packs documents into rows of fixed length for a language model: `python llm_packing.py [FILE.jsonl]`.

The rows have segment ids and positions, from which attention masks are made. 0 is padding.
"""

import json
import sys
import tempfile
from pathlib import Path

import gristmill as gm
import numpy as np

SEQ_LEN, BATCH = 128, 8


def tokens(document: dict[str, str]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """Uses bytes as tokens. `.tokenise(tokenizer="…/tokenizer.json")` tokenises natively with a real vocabulary."""
    return {"tokens": np.frombuffer(document["text"].encode(), np.uint8).astype(np.int32)}


def rows(path: Path) -> gm.IterDataset:
    documents = gm.MapDataset.jsonl(path, columns=["text"], index_cache="off").shuffle(seed=42).map(tokens)
    packed = documents.to_iter_dataset().window_pack(length={"tokens": SEQ_LEN}, over_long="split", names="maxtext")
    return packed.batch(BATCH)


def sample(folder: str) -> Path:
    """Writes documents of very different lengths."""
    path, rng = Path(folder) / "documents.jsonl", np.random.default_rng(0)
    lengths = rng.lognormal(4, 1, size=500).astype(int) + 1
    path.write_text("".join(json.dumps({"text": "a" * int(length)}) + "\n" for length in lengths))
    return path


def main(path: Path) -> None:
    real = cells = 0
    with rows(path).loader(threads=2) as batches:
        for batch in batches:
            real += int((batch["inputs_segmentation"] > 0).sum())
            cells += batch["inputs"].size
        print(f"{real} tokens, {real / cells:.1%} of all cells are real")
        print(batches.report())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else sample(folder))
