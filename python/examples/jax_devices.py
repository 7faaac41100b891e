"""Shards batches over JAX devices: `python jax_devices.py`. Without accelerators it splits the CPU into four."""

import os

# Must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import gristmill as gm
import jax
import jax.numpy as jnp
import numpy as np

BATCH = 32


@jax.jit
def step(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Runs a step of least squares. The sums over rows cross the devices."""
    error = batch["x"] @ weights - batch["y"]
    return weights - 0.1 * batch["x"].T @ error / BATCH, jnp.mean(error**2)


def main() -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    by_row = jax.NamedSharding(mesh, jax.P("data"))
    everywhere = jax.NamedSharding(mesh, jax.P())

    def example(_: int, rng: np.random.Generator) -> dict[str, object]:
        x = rng.normal(size=3)
        return {"x": x.astype("f4"), "y": (x @ [1.0, -2.0, 3.0]).astype("f4")}

    index, count = gm.jax.shard_for(by_row, BATCH)
    rows = gm.MapDataset.range(BATCH * 50).seed(7).random_map(example).shard(index, count)
    ds = rows.to_iter_dataset().batch(BATCH // count, drop_remainder=True)
    weights, loss = jax.device_put(jnp.zeros(3), everywhere), jnp.inf
    with gm.jax.device_put(ds.loader(threads=2), by_row, global_batch=BATCH) as batches:
        for batch in batches:
            weights, loss = step(weights, batch)
    print(f"{jax.device_count()} devices, weights {[round(w) for w in weights.tolist()]}, loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
