"""Packed text over several processes with JAX: `python jax_hosts.py` starts two of them here.

On a cluster each host runs `python jax_hosts.py ADDRESS COUNT INDEX`, with the address of the first one and a free port.
"""

import socket
import subprocess
import sys

import gristmill as gm
import jax
import jax.numpy as jnp
import numpy as np

SEQ_LEN, ROWS = 64, 4


@jax.jit
def loss(bias: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
    """The mean over all targets of all processes. Padding and ends of documents have none."""
    guess = jax.nn.log_softmax(bias[batch["inputs"]])
    told = jnp.take_along_axis(guess, batch["targets"][..., None], axis=-1)[..., 0]
    counts = batch["targets_segmentation"] > 0
    return -jnp.sum(told * counts) / jnp.sum(counts)


def train() -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    by_row = jax.NamedSharding(mesh, jax.P("data"))
    everywhere = jax.NamedSharding(mesh, jax.P())
    index, count = gm.jax.shard_for(by_row)
    lines = gm.MapDataset.lines(__file__, index_cache="off").shuffle(seed=1).repeat(20).shard(index, count)
    ids = lines.map(lambda line: {"ids": np.frombuffer(line["text"].encode() + b"\n", np.uint8).astype(np.int32)})
    packed = ids.to_iter_dataset().first_fit_pack(length={"ids": SEQ_LEN}, num_packing_bins=8, over_long="split")
    rows = packed.map(gm.jax.maxtext_keys()).batch(ROWS, drop_remainder=True)
    bias, value, steps = jax.device_put(np.zeros((256, 256), np.float32), everywhere), 0.0, 0
    # How many rows come of its documents no process knows before: they agree on the end.
    with gm.jax.device_put(rows.loader(threads=1), by_row, global_batch=count * ROWS, end="agree") as batches:
        for batch in batches:
            value, gradient = jax.value_and_grad(loss)(bias, batch)
            bias, steps = bias - 5.0 * gradient, steps + 1
    print(f"process {jax.process_index()} of {jax.process_count()}: {steps} steps, loss {float(value):.4f}")


def main(arguments: list[str]) -> None:
    if not arguments:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        commands = [[sys.executable, __file__, address, "2", str(index)] for index in range(2)]
        running = [subprocess.Popen(command) for command in commands]
        sys.exit(max(process.wait() for process in running))
    jax.distributed.initialize(arguments[0], int(arguments[1]), int(arguments[2]))
    train()


if __name__ == "__main__":
    main(sys.argv[1:])
