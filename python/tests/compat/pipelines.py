"""Random pipelines of whatever `grain` is imported, printed as JSON: run by `test_side_by_side.py`, once for each library.

`pipelines.py SHIM|WHEEL COUNT`: WHEEL is a folder with Grain in it.
"""

import json
import random
import sys
from typing import Any

import numpy as np

which, count = sys.argv[1], int(sys.argv[2])
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
    kind = rng.choice(["map", "filter", "batch", "random", "index", "limit", "window", "flat", "repeat"])
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
    same = True
    for _ in range(rng.randrange(4)):
        stream, alike = stream_stage(rng, stream)
        same = same and alike
    if rng.random() < 0.3:
        stream, same = packed(rng, stream), False
    iterator = stream.__iter__()
    elements, states = [], [iterator.get_state()] if same else []
    try:
        for element in iterator:
            elements.append(shown(element))
            if same:
                states.append(iterator.get_state())
    except Exception as error:
        # An endless repeat of nothing: which kind of error is each library's own.
        return {"error": bool(error)}
    return {"length": length, "far": far, "elements": elements, "states": states}


for seed in range(count):
    print(json.dumps(run(seed)))
