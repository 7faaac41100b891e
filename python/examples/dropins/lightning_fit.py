"""Trains with Lightning and resumes in the middle of an epoch: `python lightning_fit.py FOLDER STEPS`.

If it is stopped after any step and restarted, its printed steps equal an uninterrupted run.
"""

import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


def example(n: int, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.uniform(-1, 1, size=1).astype(np.float32)
    return {"n": n, "x": x, "y": 3 * x - 1}


class Points(lightning.LightningDataModule):
    """A data module whose position is part of Lightning's checkpoints."""

    def setup(self, stage: str) -> None:
        ds = gm.MapDataset.range(80).seed(1).shuffle().random_map(example).batch(8)
        assert self.trainer is not None
        part = gm.Part(self.trainer.global_rank, self.trainer.world_size)
        self.loader = gm.torch.StatefulLoader(ds, threads=2, part=part)

    def train_dataloader(self) -> gm.torch.StatefulLoader:
        return self.loader

    # Lightning restores a loader's state only in the middle of an epoch, but a data module's state always.
    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loader.load_state_dict(state_dict)


class Line(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.line(batch["x"]), batch["y"])
        print(f"step {self.global_step + 1} of {batch['n'].tolist()} loss {loss.item():.5f}")
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.2)


def main(folder: Path, steps: int) -> None:
    lightning.seed_everything(0, verbose=False)
    saving = ModelCheckpoint(folder, save_last=True, every_n_train_steps=1)
    trainer = lightning.Trainer(accelerator="cpu", devices=1, max_steps=steps, callbacks=[saving], logger=False, enable_progress_bar=False)
    # A checkpoint of Lightning: gristmill needs no further argument.
    trainer.fit(Line(), datamodule=Points(), ckpt_path="last")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
