"""Prompts for reinforcement learning, in place of a `StatefulDataLoader`: `python rl_loop.py FOLDER STEPS`.

Like verl and SkyRL, the loop needs the loader's length, an iterator per epoch, and a state for `torch.save`.
"""

import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import torch

EPOCHS = 3


def prompt(n: int) -> dict[str, Any]:
    """Returns a question as ids, padded at the front, and the fields that the reward uses."""
    question = f"What is {n} and {n}?"
    ids = np.frombuffer(question.encode().rjust(24, b"\0"), np.uint8).astype(np.int64)
    return {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64), "ground_truth": str(2 * n), "index": n}


def loader() -> gm.torch.StatefulLoader:
    return gm.torch.StatefulLoader(gm.MapDataset.range(60).shuffle(seed=1).map(prompt).batch(6), threads=2)


def train(prompts: Any, folder: Path, steps: int) -> None:
    place, step = folder / "data.pt", 0
    if place.exists():
        step = int((folder / "latest_step").read_text())
        prompts.load_state_dict(torch.load(place, weights_only=False))
    for epoch in range(step // len(prompts), EPOCHS):
        for batch in prompts:
            step += 1
            print(f"epoch {epoch} step {step} of {batch['index'].tolist()}: {batch['ground_truth'][0]} is the first answer")
            torch.save(prompts.state_dict(), place)
            (folder / "latest_step").write_text(str(step))
            if step == steps:
                return


if __name__ == "__main__":
    train(loader(), Path(sys.argv[1]), int(sys.argv[2]))
