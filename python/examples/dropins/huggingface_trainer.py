"""Trains with Hugging Face's Trainer and resumes without rereading data: `python huggingface_trainer.py FOLDER STEPS`.

If it is stopped after any step and restarted, its printed steps equal an uninterrupted run.
"""

import json
import sys
from pathlib import Path
from typing import Any, cast

import gristmill as gm
import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

PLACE = "gristmill.json"


class ResumableTrainer(Trainer):
    """A trainer that reads its batches from a `StatefulLoader` and saves the loader's position in every checkpoint.

    It needs `ignore_data_skip=True`, because the restored loader is already at its position.
    """

    def __init__(self, *, loader: gm.torch.StatefulLoader, **options: Any) -> None:
        super().__init__(**options)
        self.loader = loader
        self.add_callback(SavePlace(loader))

    def get_train_dataloader(self) -> Any:
        return self.loader

    def train(self, resume_from_checkpoint: str | bool | None = None, *others: Any, **options: Any) -> Any:
        if resume_from_checkpoint is True:
            resume_from_checkpoint = cast("str | None", get_last_checkpoint(self.args.output_dir))
        if resume_from_checkpoint:
            self.loader.load_state_dict(json.loads(Path(resume_from_checkpoint, PLACE).read_text()))
        return super().train(resume_from_checkpoint, *others, **options)


class SavePlace(TrainerCallback):
    def __init__(self, loader: gm.torch.StatefulLoader) -> None:
        self.loader = loader

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        # The state is equal on all processes.
        if state.is_world_process_zero:
            Path(args.output_dir, f"checkpoint-{state.global_step}", PLACE).write_text(json.dumps(self.loader.state_dict()))


class Line(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def forward(self, n: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = torch.nn.functional.mse_loss(self.line(x), y)
        print(f"of {n.tolist()} loss {loss.item():.5f}")
        return {"loss": loss}


def example(n: int, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.uniform(-1, 1, size=1).astype(np.float32)
    return {"n": n, "x": x, "y": 3 * x - 1}


def main(folder: Path, steps: int) -> None:
    # Created before the loader: the arguments also join the processes of a launcher.
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        save_strategy="steps",
        save_steps=1,
        ignore_data_skip=True,
        lr_scheduler_type="constant",
        gradient_accumulation_steps=2,
        learning_rate=0.05,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    part = gm.torch.part() if torch.distributed.is_initialized() else None
    ds = gm.MapDataset.range(80).seed(1).shuffle().random_map(example).batch(8)
    loader = gm.torch.StatefulLoader(ds, threads=2, part=part)
    trainer = ResumableTrainer(model=Line(), args=arguments, loader=loader)
    trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))


if __name__ == "__main__":
    torch.manual_seed(0)
    main(Path(sys.argv[1]), int(sys.argv[2]))
