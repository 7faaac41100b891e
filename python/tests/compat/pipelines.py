"""Random pipelines of whatever `grain` is imported, printed as JSON: run by `test_side_by_side.py`, once for each library.

`pipelines.py SHIM|WHEEL COUNT [FILE]`: WHEEL is a folder with Grain in it. The shim evaluates some of them by workers. FILE is
what Grain printed; with it each pass of the shim begins at states that Grain wrote, and what is left of it is printed.
"""

import json
import random
import sys
from typing import Any

import numpy as np

which, count = sys.argv[1], int(sys.argv[2])
written = [json.loads(line) for line in open(sys.argv[3])] if len(sys.argv) > 3 else []
if which == "SHIM":
    import gristmill.compat.grain

    gristmill.compat.grain.install()
else:
    sys.path.insert(0, which)
try:
    import grain
    from grain import experimental
except ImportError as error:
    print(f"Grain cannot be imported: {error}", file=sys.stderr)
    sys.exit(77)


class Copies(experimental.FlatMapTransform):
    max_fan_out = 4

    def flat_map(self, element: Any) -> list[Any]:
        return [element] * (number(element) % 4)


def number(element: Any) -> int:
    """A number that depends on all of an element."""
    return int(sum(np.asarray(leaf).sum() for leaf in leaves(element)))


def leaves(element: Any) -> list[Any]:
    if isinstance(element, dict):
        return [leaf for part in element.values() for leaf in leaves(part)]
    if isinstance(element, (list, tuple)):
        return [leaf for part in element for leaf in leaves(part)]
    return [element]


def shown(element: Any) -> Any:
    if isinstance(element, dict):
        return {key: shown(part) for key, part in element.items()}
    if isinstance(element, (list, tuple)):
        return [type(element).__name__, *map(shown, element)]
    if isinstance(element, (np.ndarray, np.generic)):
        return [str(element.dtype), element.tolist()]
    return element


def with_index(index: int, element: Any) -> tuple[int, Any]:
    return int(index), element


def maps(rng: random.Random, depth: int = 0) -> Any:
    """A dataset of random access, of numbers or trees of them."""
    kind = rng.choice(["range", "source", "mix", "concatenate", "zip"] if depth < 2 else ["range", "source"])
    if kind == "range":
        ds = grain.MapDataset.range(rng.randrange(3), rng.randrange(8, 40), rng.choice([1, 1, 2]))
    elif kind == "source":
        ds = grain.MapDataset.source([{"x": i, "y": np.arange(2) + i} for i in range(rng.randrange(2, 30))])
    elif kind == "zip":
        ds = maps(rng, depth + 1)
        ds = experimental.ZipMapDataset([ds, ds.map(number)])
    else:
        parts = [maps(rng, depth + 1) for _ in range(rng.randrange(1, 4))]
        if kind == "mix":
            weights = rng.choice([None, [rng.uniform(0.2, 3.0) for _ in parts]])
            ds = grain.MapDataset.mix(parts, weights)
        else:
            ds = grain.MapDataset.concatenate(parts)
    if rng.random() < 0.5:
        ds = ds.seed(rng.randrange(1 << 32))
    for _ in range(rng.randrange(4)):
        ds = map_stage(rng, ds)
    return ds if len(ds) < 500 else ds[:500]


def map_stage(rng: random.Random, ds: Any) -> Any:
    kind = rng.choice(["shuffle", "slice", "repeat", "map", "with_index", "random", "again"])
    if len(ds) == 0 or len(ds) > 300:
        return ds
    if kind == "shuffle":
        return ds.shuffle(seed=rng.randrange(1 << 32))
    if kind == "slice":
        start = rng.randrange(len(ds))
        return ds[start :: rng.randrange(1, 4)]
    if kind == "repeat":
        return ds.repeat(rng.randrange(1, 4), reseed_each_epoch=rng.random() < 0.7)
    if kind == "map":
        return ds.map(lambda x: {"of": x})
    if kind == "with_index":
        return ds.map_with_index(with_index)
    if kind == "random":
        return ds.random_map(lambda x, r: (x, int(r.integers(1000)), r.random()), seed=rng.randrange(1 << 32))
    return ds.seed(rng.randrange(100)).map(lambda x: x).shuffle()


def stream_stage(rng: random.Random, ds: Any) -> tuple[Any, bool]:
    """A stage behind a stream, and whether the state of both libraries has the same fields."""
    kinds = ["map", "filter", "batch", "random", "index", "limit", "window", "flat", "repeat", "zip", "mix", "interleave"]
    kind = rng.choice(kinds)
    if kind == "zip":
        return experimental.ZipIterDataset([ds, ds.map(number)]), True
    if kind == "mix":
        weights = [rng.uniform(0.2, 3.0) for _ in range(2)]
        return grain.IterDataset.mix([ds, ds.map(lambda x: (x,))], weights), True
    if kind == "interleave":
        parts = [ds, experimental.LimitIterDataset(ds, rng.randrange(1, 9)), ds.map(number)]
        return experimental.InterleaveIterDataset(parts, cycle_length=rng.randrange(1, 4)), False
    if kind == "map":
        return ds.map(lambda x: [x]), True
    if kind == "filter":
        return ds.filter(lambda x: number(x) % 3 != 1), True
    if kind == "random":
        return ds.random_map(lambda x, r: (x, int(r.integers(50))), seed=rng.randrange(1 << 32)), False
    if kind == "index":
        return ds.map_with_index(with_index), False
    if kind == "limit":
        return experimental.LimitIterDataset(ds, rng.randrange(1, 60)), False
    if kind == "window":
        size, seed = rng.randrange(1, 20), rng.randrange(1 << 32)
        return experimental.WindowShuffleIterDataset(ds, window_size=size, seed=seed), False
    if kind == "flat":
        return experimental.FlatMapIterDataset(ds, Copies()), False
    if kind == "repeat":
        return experimental.RepeatIterDataset(ds, 2), False
    # Elements of several shapes cannot be stacked: what they add up to can.
    return ds.map(number).batch(rng.randrange(1, 7), drop_remainder=rng.random() < 0.3), True


def packed(rng: random.Random, ds: Any) -> Any:
    lengths = {"a": rng.randrange(5, 30), "b": rng.randrange(4, 20)}

    def sequences(x: Any) -> dict[str, Any]:
        n = number(x)
        return {"a": np.full(n % 5 + 1, n), "b": np.full(n % 4 + 1, -n, np.float32)}

    kind = rng.choice([experimental.FirstFitPackIterDataset, experimental.BestFitPackIterDataset])
    return kind(ds.map(sequences), length_struct=lengths, num_packing_bins=rng.randrange(1, 9), seed=rng.randrange(100))


def run(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    ds = maps(rng)
    length = len(ds)
    far = [shown(ds[i]) for i in range(length, length + 5)] if length else []
    stream: Any = ds.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
    same, packs = True, False
    for _ in range(rng.randrange(4)):
        stream, alike = stream_stage(rng, stream)
        same = same and alike
    if rng.random() < 0.3:
        stream, same, packs = packed(rng, stream), False, True
    if written:
        return {"packs": packs, "rest": [] if packs else list(resumed(stream, written[seed]))}
    if which == "SHIM" and seed % 6 == 0:
        stream = stream.mp_prefetch(grain.MultiprocessingOptions(num_workers=1 + seed % 3))
    iterator = stream.__iter__()
    # What Grain writes goes through JSON, as on its way to a disk.
    elements, states = [], [json.loads(json.dumps(iterator.get_state()))]
    try:
        for element in iterator:
            elements.append(shown(element))
            states.append(json.loads(json.dumps(iterator.get_state())))
    except Exception as error:
        # An endless repeat of nothing: which kind of error is each library's own.
        return {"error": bool(error)}
    return {"length": length, "far": far, "elements": elements, "states": states, "same": same}


def resumed(stream: Any, theirs: dict[str, Any]) -> Any:
    """What a pass yields behind some of the states that Grain wrote, with the number of elements before."""
    for done in range(0, len(theirs.get("states", ())), 7):
        state = theirs["states"][done]
        iterator = stream.__iter__()
        try:
            iterator.set_state(state)
        except ValueError as refused:
            # Where all of a window or all pieces of an element are given out, Grain stays there, and here it is no place.
            assert "window" in str(refused) or "given out" in str(refused), refused
            yield done, None
        else:
            yield done, [shown(element) for element in iterator]


for seed in range(count):
    print(json.dumps(run(seed)))
