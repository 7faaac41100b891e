"""Trains a small language model with JAX: `python train_jax.py DATA TOKENIZER --steps 100`, and again to resume."""

import pickle
from typing import Any

import gristmill as gm
import jax
import jax.numpy as jnp
import numpy as np
from data import SEQ_LEN, options, show, split, vocabulary
from jax.example_libraries.optimizers import adam, pack_optimizer_state, unpack_optimizer_state

WIDTH, EVERY = 64, 20


def weights(size: int) -> dict[str, jax.Array]:
    shapes = {"tokens": (size, WIDTH), "positions": (SEQ_LEN, WIDTH)} | dict.fromkeys(("query", "key", "value", "mix"), (WIDTH, WIDTH))
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return {name: jax.random.normal(key, shape) * 0.1 for key, (name, shape) in zip(keys, shapes.items())}


def loss(w: dict[str, jax.Array], batch: dict[str, jax.Array]) -> jax.Array:
    """One layer of attention within each document, and the mean loss of its next tokens."""
    x = w["tokens"][batch["tokens"]] + w["positions"][batch["tokens_positions"]]
    segments = batch["tokens_segment_ids"]
    same = (segments[:, :, None] == segments[:, None, :]) & jnp.tri(SEQ_LEN, dtype=bool)
    scores = (x @ w["query"]) @ (x @ w["key"]).swapaxes(1, 2) / WIDTH**0.5
    x = x + jax.nn.gelu(jax.nn.softmax(jnp.where(same, scores, -1e9)) @ (x @ w["value"])) @ w["mix"]
    labels, guess = batch["labels"], jax.nn.log_softmax(x @ w["tokens"].T)
    told = jnp.take_along_axis(guess, jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    return -jnp.sum(told * (labels >= 0)) / jnp.sum(labels >= 0)


def main() -> None:
    args = options()
    training, validation = split(args.data, args.tokenizer)
    init, update, params = adam(3e-3)
    measure = jax.jit(loss)

    @jax.jit
    def advance(n: int, state: Any, batch: dict[str, jax.Array]) -> tuple[Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(params(state), batch)
        return update(n, gradient, state), value

    state, done = init(weights(vocabulary(args.tokenizer))), 0
    with gm.jax.device_put(training.loader(threads=2)) as batches:
        if args.checkpoint.exists():
            saved = pickle.loads(args.checkpoint.read_bytes())
            state, done = pack_optimizer_state(saved["model"]), saved["step"]
            batches.set_state(saved["data"])
        for done, batch in zip(range(done + 1, args.steps + 1), batches):
            state, value = advance(done, state, batch)
            held_out = [float(measure(params(state), other)) for other in validation] if done % EVERY == 0 else []
            show(done, float(value), np.asarray(batch["tokens"]), held_out)
        saved = {"model": jax.device_get(unpack_optimizer_state(state)), "step": done, "data": batches.get_state()}
        args.checkpoint.write_bytes(pickle.dumps(saved))


if __name__ == "__main__":
    main()
