"""Trains with PyTorch and resumes where it stopped: `python torch_train.py CHECKPOINT STEPS`.

If it is stopped after any step and restarted, its losses equal an uninterrupted run.
"""

import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import torch  # pyright: ignore[reportMissingImports]


def example(_: int, rng: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    """Returns a point of a line with noise."""
    x = rng.uniform(-1, 1, size=1).astype(np.float32)
    return {"x": x, "y": 3 * x - 1 + rng.normal(size=1).astype(np.float32) / 10}


def batches() -> gm.torch.IterableDataset:
    points = gm.MapDataset.range(1000).seed(1).shuffle().repeat().random_map(example)
    return gm.torch.IterableDataset(points.to_iter_dataset().batch(32), threads=2)


def main(checkpoint: Path, steps: int) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
    data, done = batches(), 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        data.load_state_dict(saved["data"])
        done = saved["done"]
    loader = torch.utils.data.DataLoader(data, batch_size=None, pin_memory=torch.cuda.is_available())
    for done, batch in zip(range(done + 1, steps + 1), loader):
        loss = torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(f"step {done} loss {loss.item():.5f}")
    torch.save({"model": model.state_dict(), "data": data.state_dict(), "done": done}, checkpoint)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
