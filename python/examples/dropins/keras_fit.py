"""Trains with Keras and resumes after the last saved step: `python keras_fit.py FOLDER STEPS`.

If it is stopped at any time and restarted, its printed steps equal an uninterrupted run.
"""

import json
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gristmill as gm
import keras
import numpy as np

STEPS_PER_EPOCH = 5


class Stream:
    """Batches for `fit`, which prefetches some, and the state after each batch that is not trained on yet."""

    def __init__(self, ds: gm.IterDataset) -> None:
        self.loader, self.states = ds.loader(threads=2), deque[dict[str, Any]]()

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.loader:
            self.states.append(self.loader.get_state())
            yield batch["x"], batch["y"]


class KeepTraining(keras.callbacks.Callback):
    """Saves model and position together after each epoch of `fit`, in a folder that gets its name when complete."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        super().__init__()
        self.folder, self.stream, self.state = folder, stream, dict[str, Any]()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state = self.stream.states.popleft()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        half = self.folder / "half"
        half.mkdir(parents=True, exist_ok=True)
        trained: Any = self.model
        trained.save(half / "model.keras")
        (half / "data.json").write_text(json.dumps(self.state))
        half.rename(self.folder / f"epoch-{epoch + 1:06}")


class Tell(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        trained: Any = self.model
        print(f"step {int(trained.optimizer.iterations)} weight {trained.get_weights()[0].item():.5f}")


def example(_: int, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.uniform(-1, 1, size=1).astype(np.float32)
    return {"x": x, "y": 3 * x - 1}


def main(folder: Path, steps: int) -> None:
    keras.utils.set_random_seed(0)
    points = gm.MapDataset.range(1000).seed(1).shuffle().repeat().random_map(example)
    stream = Stream(points.to_iter_dataset().batch(8))
    saved = sorted(folder.glob("epoch-*"))
    if saved:
        model: Any = keras.models.load_model(saved[-1] / "model.keras")
        stream.loader.set_state((saved[-1] / "data.json").read_text())
    else:
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.SGD(0.2), loss="mse")
    callbacks = [KeepTraining(folder, stream), Tell()]
    epochs = steps // STEPS_PER_EPOCH
    model.fit(iter(stream), initial_epoch=len(saved), epochs=epochs, steps_per_epoch=STEPS_PER_EPOCH, callbacks=callbacks, verbose=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
