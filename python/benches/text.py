"""JSONL to GPT-2 ids to packed batches, all native, in process and in a worker."""

import json
from pathlib import Path

import gristmill as gm
import numpy as np
from measure import per_cpu_second

Row = tuple[str, dict[str, str]]


def corpus(path: Path, mb: int) -> None:
    """So many megabytes of words that are made of few letters, a few hundred a document."""
    rng = np.random.default_rng(1)
    letters = str.maketrans("0123456789abcdef", "etaoinshrdlucmfw")
    vocabulary = [f"{word:x}".translate(letters) for word in range(5000)]
    with path.open("w") as file:
        written = 0
        while written < mb << 20:
            line = json.dumps({"text": " ".join(vocabulary[word] for word in rng.integers(0, 5000, 200))})
            written += file.write(line + "\n")


def real_tokens(ds: gm.IterDataset) -> int:
    """All that are no padding, of a whole pass."""
    with ds.loader() as it:
        return sum(int((batch["tokens_segment_ids"] > 0).sum()) for batch in it)


def text(folder: Path, tokenizer: str, mb: int) -> list[Row]:
    """Real tokens for each second of CPU time."""
    corpus(folder / "corpus.jsonl", mb)
    ds = gm.MapDataset.jsonl(folder / "corpus.jsonl").shuffle(seed=1).tokenise(tokenizer=tokenizer, column="text")
    packed = ds.to_iter_dataset().window_pack(length={"tokens": 1024}).batch(16)
    runs = {"in process": packed, "a native worker": packed.mp_prefetch()}
    rates = {name: per_cpu_second(lambda run=run: real_tokens(run)) for name, run in runs.items()}
    return [
        (f"tokens, JSONL to packed batches, {name}", {"asked": "≥ 25 M/s", "gristmill": f"{rate / 1e6:.1f} M/s"})
        for name, rate in rates.items()
    ]
