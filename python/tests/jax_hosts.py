"""One of two processes of a training job, on two devices of its own: `python jax_hosts.py ADDRESS PROCESS 2 SCENE...`.

Each scene prints a line: its name and what the process saw, in JSON.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import gristmill as gm
import jax
import numpy as np
from jax_scenes import begin, run

begin()
HOST = jax.process_index()
MESH = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
ROWS = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec("data"))


def numbers(length: int) -> gm.MapDataset:
    """This process's share of 1 to `length`."""
    ds = gm.MapDataset.range(1, length + 1).map(lambda x: {"x": np.float32(x), "y": np.full(2, x, np.int32)})
    return ds.shard(*gm.jax.shard_for(ROWS, 4))


def uneven(first: int, second: int) -> gm.IterDataset:
    """So many batches on each process."""
    batches = (first, second)[HOST]
    return numbers(100).filter(lambda element: element["x"] <= 4 * batches).to_iter_dataset().batch(2)


traced: list[Any] = []


@jax.jit
def step(batch: Any) -> Any:
    """Sums over all rows of all processes, which wait for each other in it."""
    traced.append(batch["x"].shape)
    weights = batch.get("weights", 1.0)
    return (batch["x"] * weights).sum(), (batch["y"].sum(axis=1) * weights).sum(), jax.numpy.sum(weights)


def steps(batches: Iterator[Any]) -> list[list[float]]:
    return [[float(number) for number in step(batch)] for batch in batches]


def told(pass_over: Callable[[], Any]) -> Any:
    """What comes of it, or what it raises."""
    try:
        return pass_over()
    except (gm.Error, KeyError) as refused:
        return f"{type(refused).__name__}: {refused}"


def put(ds: Any, **settings: Any) -> Any:
    return gm.jax.device_put(ds, ROWS, global_batch=4, **settings)


def drop() -> Any:
    ds = numbers(21).to_iter_dataset().batch(2)
    seen = {"all": steps(put(ds, end="drop", max_steps=gm.jax.steps_for(21, 4)))}
    late = put(ds, end="drop", max_steps=6, buffer=1)
    seen["one by one"] = [told(lambda: steps([next(late)])) for _ in range(6)][-2:]
    return {**seen, "no number": told(lambda: put(ds, end="drop"))}


def agree() -> Any:
    seen: dict[str, Any] = {f"depth {depth}": steps(put(uneven(3, 5), depth=depth)) for depth in (0, 2, 9)}
    seen["nothing"] = steps(put(uneven(0, 2), end="agree"))
    seen["at most"] = len(steps(put(uneven(3, 5), max_steps=2)))
    stopped = put(uneven(4, 3), end="agree")
    next(stopped), next(stopped)
    resumed = put(uneven(4, 3), end="agree")
    resumed.set_state(json.dumps(stopped.get_state()))
    seen["resumed"] = steps(resumed)
    seen["again"] = [len(steps(resumed)), resumed.get_state()["delivered"]]
    return seen


def parts() -> Any:
    """One pipeline on all processes, that makes global batches; nothing in it says who reads them."""
    ds = gm.MapDataset.range(1, 41).shuffle(7).map(lambda x: {"x": np.float32(x), "y": np.full(2, x, np.int32)})
    ds = ds.filter(lambda element: element["x"] % 5 != 0).to_iter_dataset().window_shuffle(6, 1).batch(4)
    part = gm.jax.part_for(ROWS, 4)
    batches = gm.jax.device_put(ds.loader(part=part), ROWS, global_batch=4)
    first = [next(batches) for _ in range(3)]
    state = batches.get_state()
    model = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2).T, ("data", "model"))
    shared = jax.sharding.NamedSharding(model, jax.sharding.PartitionSpec("data"))
    apart = jax.sharding.Mesh(np.array(jax.devices())[[0, 2, 1, 3]], ("data",))
    crossed = jax.sharding.NamedSharding(apart, jax.sharding.PartitionSpec("data"))
    return {
        "part": repr(part),
        "peers": repr(gm.jax.part_for(shared, 4)),
        "crossed": gm.jax.part_for(crossed, 8).rows(8),
        "state": state,
        "sums": steps(iter(first)) + steps(batches),
    }


def listed() -> Any:
    """Rows that lie with processes in another order than their own, and parts that list them in any."""
    ds = gm.MapDataset.range(48).shuffle(7).map(lambda x: {"x": np.float32(x), "y": np.full(2, x, np.int32)})
    ds = ds.filter(lambda element: element["x"] % 5 != 0).to_iter_dataset().batch(8, drop_remainder=True)

    def over(places: list[int]) -> jax.sharding.NamedSharding:
        mesh = jax.sharding.Mesh(np.array(jax.devices())[places], ("data",))
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))

    def lies(sharding: Any, part: gm.Part | None, rows: int = 8) -> Any:
        """The first row of each shard of every batch, and what is in it; and a sum over all processes."""
        # What is tested is where rows lie: hosts that are given other parts on purpose are not to be stopped before.
        batches = ds.batch(1).loader() if part is None else ds.loader(part=part, guard=None)
        sent = list(gm.jax.device_put(batches, sharding, global_batch=rows, end="agree"))
        shards = [[(shard.index[0].start or 0, shard.data[:, 0].tolist()) for shard in local(batch, "y")] for batch in sent]
        return shards, [step(batch)[0].item() for batch in sent]

    crossed = over([0, 2, 1, 3])
    held = gm.jax.part_for(crossed, 8)
    rows = held.rows(8)
    wrong = [held, gm.Part(1, 2)][HOST]
    model = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2).T, ("data", "model"))
    both = jax.sharding.NamedSharding(model, jax.sharding.PartitionSpec("data"))
    tree = {"x": jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec()), "y": crossed}
    return {
        "rows": rows,
        "crossed": lies(crossed, held),
        "reversed": lies(crossed, gm.Part.listed(rows[::-1], 8)),
        "all": lies(crossed, gm.Part(0, 1)),
        "uneven": [gm.jax.part_for(over([0, 1, 2, 3][:3]), 6).rows(6), gm.jax.part_for(over([1, 0, 3]), 6).rows(6)],
        "peers": lies(both, gm.jax.part_for(both, 8)),
        "everywhere": told(lambda: lies(tree, held)),
        "of others": told(lambda: lies(crossed, wrong)),
        "of nobody": told(lambda: lies(crossed, None)),
    }


def failing() -> Any:
    def bad(element: Any) -> Any:
        if HOST == 1 and element["x"] > 12:
            raise KeyError("thirteen")
        return element

    stream = put(numbers(40).map(bad).to_iter_dataset().batch(2), buffer=4)
    seen = {"before": steps([next(stream) for _ in range(3)]), "then": told(lambda: next(stream))}
    seen["after"] = len(steps(stream))
    # 18 elements are 10 on one process and 8 on the other by this cut: its last batch is short there alone.
    short = numbers(100).to_iter_dataset().limit((8, 7)[HOST]).batch(2)
    seen["short"] = told(lambda: steps(put(short)))
    return seen


def pad() -> Any:
    ds = numbers(21).to_iter_dataset().batch(2)
    settings: dict[str, Any] = {"end": "pad", "max_steps": gm.jax.steps_for(21, 4, "pad"), "pad_values": {"y": -7}}
    seen: dict[str, Any] = {"all": steps(put(ds, **settings)), "traced": len(traced)}
    settings["max_steps"] = 5
    whole = put(uneven(1, 4), **settings)
    seen["uneven"] = [np.asarray(shard.data).tolist() for batch in whole for shard in local(batch, "y")]
    for done in range(6):
        stopped, resumed = put(uneven(1, 4), **settings), put(uneven(1, 4), **settings)
        [next(stopped) for _ in range(done)]
        resumed.set_state(json.loads(json.dumps(stopped.get_state())))
        assert resumed.get_state() == stopped.get_state()
        seen[f"from {done}"] = [np.asarray(shard.data).tolist() for batch in resumed for shard in local(batch, "y")]
    seen["none"] = told(lambda: steps(put(uneven(0, 0), **settings)))
    return seen


def local(batch: Any, name: str) -> list[Any]:
    return sorted(batch[name].addressable_shards, key=lambda shard: shard.index[0].start)


def settings() -> Any:
    ds = numbers(40).to_iter_dataset().batch(2)
    seen = {
        "max_steps": told(lambda: next(put(ds, max_steps=5 + HOST))),
        "end": told(lambda: next(put(ds, end=("drop", "pad")[HOST], max_steps=3))),
        "buffer": told(lambda: next(put(ds, buffer=HOST))),
        "another buffer is no matter": len(steps(put(ds, buffer=HOST, end="drop", max_steps=3))),
    }
    begun = ds.loader()
    [next(begun) for _ in range(HOST)]
    return {**seen, "step": told(lambda: next(put(begun)))}


def memory() -> Any:
    """Whether the arrays of this process lie where its batch did."""
    made: list[int] = []

    def batch(_: int) -> dict[str, np.ndarray[Any, Any]]:
        # Nobody else has it: an array of a list might change, and would be copied.
        memory = np.zeros(2 * 64 * 8 + 64, np.uint8)
        host = memory[-memory.ctypes.data % 64 :][: 2 * 64 * 8].view(np.float32).reshape(16, 16)
        made.append(host.ctypes.data)
        return {"x": host}

    stream = gm.jax.device_put(gm.MapDataset.range(1).map(batch), ROWS, global_batch=32)
    at = [shard.data.unsafe_buffer_pointer() for shard in local(next(stream), "x")]
    return [address - made[0] for address in at]


def mixed() -> Any:
    """Columns over all processes, the same on all, and of one device."""
    everywhere = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec())
    target = {"x": ROWS, "same": everywhere, "own": (jax.local_devices()[1], everywhere)}
    batch = {"x": np.full((2, 3), HOST), "same": np.arange(3), "own": (np.full(4, HOST), 7)}
    sent = next(gm.jax.device_put(gm.MapDataset.source([batch]), target, global_batch=4))
    shapes = [list(leaf.shape) for leaf in jax.tree_util.tree_leaves(sent)]
    return shapes, [sent["own"][0].tolist(), sent["own"][0].devices() == {jax.local_devices()[1]}, int(sent["own"][1])]


def anew(scene: Callable[[], Any]) -> Callable[[], Any]:
    """A scene that finds nothing traced by scenes before it."""

    def run() -> Any:
        traced.clear()
        step.clear_cache()
        return scene()

    return run


SCENES = (drop, agree, parts, listed, failing, pad, settings, memory, mixed)
run({scene.__name__: anew(scene) for scene in SCENES})
