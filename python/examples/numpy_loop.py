"""A plain loop over NumPy batches that stops and resumes: `python numpy_loop.py FOLDER STEPS`.

Run it twice with the same folder: the second run continues after the last element of the first.
"""

import json
import sys
from pathlib import Path

import gristmill as gm
import numpy as np


def batches(folder: Path) -> gm.IterDataset:
    """Returns rows of a file, reshuffled in every epoch, with noise by seed and position of the row."""
    rows = gm.MapDataset.npy(folder / "rows.npy").seed(1).shuffle().repeat()
    noisy = rows.random_map(lambda row, rng: {"x": row["data"] + rng.normal(size=4).astype(np.float32)})
    return noisy.to_iter_dataset().batch(16)


def main(folder: Path, steps: int) -> None:
    if not (folder / "rows.npy").exists():
        np.save(folder / "rows.npy", np.arange(400, dtype=np.float32).reshape(100, 4))
    saved = folder / "state.json"
    with batches(folder).loader(threads=2) as data:
        if saved.exists():
            data.set_state(saved.read_text())
        for step, batch in zip(range(steps), data):
            print(f"step {step} mean {batch['x'].mean():.4f}")
        saved.write_text(json.dumps(data.get_state()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
