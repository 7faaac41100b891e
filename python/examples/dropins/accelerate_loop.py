"""Trains with Accelerate: `torchrun --nproc-per-node=2 accelerate_loop.py FOLDER STEPS`, or `python` for one process.

If it is stopped after any step and restarted with any number of processes, its steps equal an uninterrupted run.
"""

import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, send_to_device


def example(n: int, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.uniform(-1, 1, size=1).astype(np.float32)
    return {"n": n, "x": x, "y": 3 * x - 1}


def main(folder: Path, steps: int) -> None:
    accelerator = Accelerator(cpu=True)
    accelerator.print(f"processes: {accelerator.num_processes}")
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
    # A batch is global. Each process takes its rows of it.
    ds = gm.MapDataset.range(80).seed(1).shuffle().random_map(example).batch(8)
    part = gm.torch.part() if torch.distributed.is_initialized() else None
    loader = gm.torch.StatefulLoader(ds, threads=2, part=part)
    # `prepare` returns the loader unchanged. `save_state` saves registered objects, once for all processes.
    model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
    accelerator.register_for_checkpointing(loader)

    last, done = folder / "last", 0
    if last.exists():
        accelerator.load_state(str(last))
        done = int((last / "done").read_text())
    while done < steps:
        for batch in loader:
            batch = send_to_device(batch, accelerator.device)
            loss = torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])
            optimiser.zero_grad()
            accelerator.backward(loss)
            optimiser.step()
            done += 1
            rows = gather_object(batch["n"].tolist())
            accelerator.print(f"step {done} of {rows} weight {accelerator.unwrap_model(model).weight.item():.4f}")
            if done == steps:
                break
    accelerator.save_state(str(last))
    if accelerator.is_main_process:
        (last / "done").write_text(str(done))
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
