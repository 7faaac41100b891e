"""Trains a next-byte model with JAX and resumes where it stopped: `python jax_train.py CHECKPOINT STEPS`.

The text is this program. If it is stopped after any step and restarted, its losses equal an uninterrupted run.
"""

import json
import sys
from pathlib import Path
from typing import Any

import gristmill as gm
import jax
import jax.numpy as jnp
import numpy as np

SEQ_LEN, BATCH = 32, 8


def batches() -> gm.IterDataset:
    """Returns an endless stream of packed lines in rows of equal shape, reshuffled in every epoch."""
    lines = gm.MapDataset.lines(__file__, index_cache="off").shuffle(seed=1).repeat()
    ids = lines.map(lambda line: {"bytes": np.frombuffer(line["text"].encode() + b"\n", np.uint8)})
    packed = ids.to_iter_dataset().concat_then_split_pack(length={"bytes": SEQ_LEN})
    return packed.select_columns(["bytes", "bytes_segment_ids"]).batch(BATCH, drop_remainder=True)


def loss(weights: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
    ids, segments = batch["bytes"], batch["bytes_segment_ids"]
    guess = jax.nn.log_softmax(weights[ids[:, :-1]])
    told = jnp.take_along_axis(guess, ids[:, 1:, None].astype(jnp.int32), axis=-1)[..., 0]
    same = (segments[:, :-1] == segments[:, 1:]) & (segments[:, 1:] > 0)
    return -jnp.sum(told * same) / jnp.sum(same)


@jax.jit
def step(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(weights, batch)
    return weights - 5.0 * gradient, value


def main(checkpoint: Path, steps: int) -> None:
    weights, done = jnp.zeros((256, 256)), 0
    with gm.jax.device_put(batches().loader(threads=2)) as data:
        if checkpoint.exists():
            saved: dict[str, Any] = dict(np.load(checkpoint))
            weights, done = jnp.asarray(saved["weights"]), int(saved["done"])
            data.set_state(str(saved["data"]))
        for done, batch in zip(range(done + 1, steps + 1), data):
            weights, value = step(weights, batch)
            print(f"step {done} loss {value:.4f}")
        with checkpoint.open("wb") as file:
            np.savez(file, weights=weights, done=done, data=json.dumps(data.get_state()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
