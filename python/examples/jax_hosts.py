"""Packed text over several processes with JAX: `python jax_hosts.py` starts two processes on this machine.

On a cluster each host runs `python jax_hosts.py ADDRESS COUNT INDEX`, with the first host's address and a free port.
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
    """Returns the mean over the targets of all processes. Padding and ends of documents have no target."""
    guess = jax.nn.log_softmax(bias[batch["inputs"]])
    told = jnp.take_along_axis(guess, batch["targets"][..., None], axis=-1)[..., 0]
    counts = batch["targets_segmentation"] > 0
    return -jnp.sum(told * counts) / jnp.sum(counts)


def train() -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    by_row = jax.NamedSharding(mesh, jax.P("data"))
    everywhere = jax.NamedSharding(mesh, jax.P())
    lines = gm.MapDataset.lines(__file__, index_cache="off").shuffle(seed=1).repeat(20)
    ids = lines.map(lambda line: {"ids": np.frombuffer(line["text"].encode() + b"\n", np.uint8).astype(np.int32)})
    packed = ids.to_iter_dataset().first_fit_pack(length={"ids": SEQ_LEN}, num_packing_bins=8, over_long="split")
    batch = ROWS * jax.process_count()
    rows = packed.map(gm.jax.maxtext_keys()).batch(batch, drop_remainder=True)
    bias, value, steps = jax.device_put(np.zeros((256, 256), np.float32), everywhere), 0.0, 0
    # All processes make equal global batches. Each takes the rows that its devices hold.
    mine = rows.loader(threads=1, part=gm.jax.part_for(by_row, batch))
    with gm.jax.device_put(mine, by_row, global_batch=batch) as batches:
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
