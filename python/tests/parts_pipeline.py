"""Pipelines of several processes: three sources, mixed, filtered and packed, in global batches."""

import json
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]

# One, two, three, four and six processes divide it.
BATCH = 12


def pipeline() -> gm.IterDataset:
    def sequence(x: int) -> dict[str, np.ndarray]:
        return {"ids": np.full(x % 5 + 1, x, np.int32)}

    parts = [gm.MapDataset.range(start, 1000, 3).shuffle(start) for start in (1, 2, 3)]
    mixed = gm.MapDataset.mix(parts, weights=[3, 2, 1]).filter(lambda x: x % 7 != 0).map(sequence)
    return mixed.to_iter_dataset().window_pack(length={"ids": 8}, window=32).batch(BATCH, drop_remainder=True)


def shown() -> gm.IterDataset:
    """That which `docs/hosts.md` shows, with shorter rows, over the corpora in this folder."""
    blocks = (text.split("```")[0] for text in (REPOSITORY / "python" / "docs" / "hosts.md").read_text().split("```python\n")[1:])
    lines = next(text for text in blocks if "host.repart" in text).split("host =")[0]
    assert "1024" in lines
    names: dict[str, Any] = {"gm": gm}
    exec(lines.replace("1024", "64"), names)
    return names["ds"]


def write_corpora(folder: Path) -> None:
    """The corpora that the page names, and the tokenizer."""
    words = "the mill wheel turns slowly after rain and the miller counts every sack of flour twice".split()
    for number, name in enumerate(("web", "books", "code")):
        (folder / name).mkdir()
        texts = (" ".join(words[(x * number + at) % 16] for at in range(x * 37 % 150)) for x in range(2000))
        (folder / name / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (folder / "gpt2.tokenizer.json").write_text((REPOSITORY / "src/demo/tokenizer.json").read_text())
