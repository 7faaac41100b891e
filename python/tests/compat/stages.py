"""What random pipelines are made of: the same calls of Grain's interface for the same random numbers, in either library."""

import random
from typing import Any

import numpy as np


class Found:
    """What there is to know of a pipeline besides its elements."""

    def __init__(self) -> None:
        # Names of `differences.py`.
        self.rules: set[str] = set()
        # Elements of later epochs, by their indices.
        self.far: list[Any] = []
        # Whether the states of both libraries have the same fields.
        self.same = True
        self.loader: dict[str, Any] | None = None
        self.grain: Any = None

    def with_workers(self, made: Any, count: int) -> Any:
        """The same pipeline, evaluated by workers."""
        if self.loader is not None:
            return self.grain.DataLoader(**self.loader, worker_count=count)
        return made.mp_prefetch(self.grain.MultiprocessingOptions(num_workers=count))


def kind_of(error: Exception) -> str:
    """Which built-in error it is."""
    kinds = (ValueError, TypeError, IndexError, NotImplementedError)
    return next((kind.__name__ for kind in kinds if isinstance(error, kind)), "Exception")


def leaves(element: Any) -> list[Any]:
    if isinstance(element, dict):
        return [leaf for part in element.values() for leaf in leaves(part)]
    if isinstance(element, (list, tuple)):
        return [leaf for part in element for leaf in leaves(part)]
    return [] if element is None else [element]


def number(element: Any) -> int:
    """A number that depends on all of an element."""
    return int(sum(np.asarray(leaf).sum() for leaf in leaves(element)))


def shown(element: Any) -> Any:
    if isinstance(element, dict):
        return {key: shown(part) for key, part in element.items()}
    if isinstance(element, (list, tuple)):
        return [type(element).__name__, *map(shown, element)]
    if isinstance(element, np.ndarray) and element.dtype == object:
        return ["object", *map(shown, element)]
    if isinstance(element, (np.ndarray, np.generic)):
        return [element.dtype.str, element.tolist()]
    return element


def with_index(index: int, element: Any) -> tuple[int, Any]:
    return int(index), element


def drawn(element: Any, rng: np.random.Generator) -> tuple[Any, int, float]:
    return element, int(rng.integers(1000)), rng.random()


def sometimes(element: Any) -> Any:
    return None if number(element) % 5 == 2 else element


def is_kept(element: Any) -> bool:
    return number(element) % 3 != 1


def seed_of(rng: random.Random) -> int:
    return rng.randrange(1 << 32)


# ------------------------------------------------------------------------------------------------ random access


def dataset(grain: Any, rng: random.Random, found: Found, depth: int = 0) -> tuple[Any, bool]:
    """A dataset of random access, of numbers or trees of them, and whether it may have empty slots."""
    ex, holes = grain.experimental, False
    kinds = ["range", "source", "mix", "concatenate", "select", "zip"] if depth < 2 else ["range", "source"]
    kind = rng.choice(kinds)
    if kind == "range":
        ds = grain.MapDataset.range(rng.randrange(3), rng.randrange(8, 40), rng.choice([1, 1, 2]))
    elif kind == "source":
        ds = grain.MapDataset.source([{"x": i, "y": np.arange(2) + i} for i in range(rng.randrange(2, 30))])
    elif kind == "zip":
        ds, holes = dataset(grain, rng, found, depth + 1)
        ds, holes = ex.ZipMapDataset([ds, ds.map(sometimes)]), False
    else:
        made = [dataset(grain, rng, found, depth + 1) for _ in range(rng.randrange(1, 4))]
        parts, holes = [ds for ds, _ in made], any(holes for _, holes in made)
        if kind == "mix":
            ds = grain.MapDataset.mix(parts, rng.choice([None, [rng.uniform(0.2, 3.0) for _ in parts]]))
        elif kind == "concatenate":
            ds = grain.MapDataset.concatenate(parts)
        else:
            ds = grain.MapDataset.select_from_datasets(parts, selection(grain, rng, parts))
    if rng.random() < 0.5:
        ds = ds.seed(seed_of(rng))
    for _ in range(rng.randrange(4)):
        ds, holes = map_stage(grain, rng, ds, holes)
    return (ds if len(ds) < 300 else ds[:300]), holes


def selection(grain: Any, rng: random.Random, parts: list[Any]) -> Any:
    order = [(at, rng.randrange(len(parts[at]))) for at in (rng.randrange(len(parts)) for _ in range(12)) if len(parts[at])]

    class Order(grain.transforms.DatasetSelectionMap):
        def __len__(self) -> int:
            return len(order)

        def __getitem__(self, index: int) -> tuple[int, int]:
            return order[index % len(order)]

    return Order()


def copies(grain: Any, most: int) -> Any:
    """A transform that makes several elements of one."""

    class Copies(grain.experimental.FlatMapTransform):
        max_fan_out = most

        def flat_map(self, element: Any) -> list[Any]:
            return [(element, at) for at in range(number(element) % (most + 1))]

    return Copies()


def map_stage(grain: Any, rng: random.Random, ds: Any, holes: bool) -> tuple[Any, bool]:
    kinds = ["shuffle", "slice", "repeat", "map", "with_index", "random", "again", "filter", "drop", "batch", "flat", "window"]
    kind = rng.choice(kinds)
    if len(ds) == 0 or len(ds) > 150:
        return ds, holes
    if kind == "shuffle":
        return ds.shuffle(seed=seed_of(rng)), holes
    if kind == "slice":
        start = rng.randrange(len(ds))
        return ds[start :: rng.randrange(1, 4)], holes
    if kind == "repeat":
        return ds.repeat(rng.randrange(1, 4), reseed_each_epoch=rng.random() < 0.7), holes
    if kind == "map":
        return ds.map(lambda x: {"of": x}), holes
    if kind == "with_index":
        return ds.map_with_index(with_index), holes
    if kind == "random":
        return ds.random_map(drawn, seed=seed_of(rng)), holes
    if kind == "again":
        return ds.seed(rng.randrange(100)).map(lambda x: x).shuffle(), holes
    if kind == "filter":
        return ds.filter(is_kept), True
    if kind == "drop":
        return ds.map(sometimes), True
    if kind == "flat":
        return grain.experimental.FlatMapMapDataset(ds, copies(grain, rng.randrange(1, 4))), True
    if kind == "window":
        # Where the last window is short, Grain reads behind the end.
        sizes = [size for size in range(1, 20) if len(ds) % size == 0]
        return grain.experimental.WindowShuffleMapDataset(ds, window_size=rng.choice(sizes), seed=seed_of(rng)), holes
    return (ds, holes) if holes else (ds.map(number).batch(rng.randrange(1, 5), drop_remainder=rng.random() < 0.3), False)


# ------------------------------------------------------------------------------------------------ streams


def stream(grain: Any, rng: random.Random, found: Found) -> Any:
    found.grain = grain
    ds, _ = dataset(grain, rng, found)
    length = len(ds)
    found.far = [shown(ds[i]) for i in range(length, length + 5)] if length else []
    out = ds.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
    for _ in range(rng.randrange(5)):
        out = stream_stage(grain, rng, out, found)
    return packed(grain, rng, out, found) if rng.random() < 0.4 else out


# Stages whose states have the same fields in both libraries.
SAME_STATES = ("map", "filter", "batch", "zip", "mix", "pad", "options")


def stream_stage(grain: Any, rng: random.Random, ds: Any, found: Found) -> Any:
    ex = grain.experimental
    others = ["random", "index", "limit", "window", "flat", "repeat", "interleave", "rebatch", "cache", "ahead", "default"]
    kind = rng.choice([*SAME_STATES, *others])
    found.same = found.same and kind in SAME_STATES
    if kind == "zip":
        return ex.ZipIterDataset([ds, ds.map(number)])
    if kind == "mix":
        return grain.IterDataset.mix([ds, ds.map(lambda x: (x,))], [rng.uniform(0.2, 3.0) for _ in range(2)])
    if kind == "interleave":
        parts = [ds, ex.LimitIterDataset(ds, rng.randrange(1, 9)), ds.map(number)]
        return ex.InterleaveIterDataset(parts, cycle_length=rng.randrange(1, 4))
    if kind == "map":
        return ds.map(lambda x: [x])
    if kind == "filter":
        return ds.filter(is_kept)
    if kind == "random":
        return ds.random_map(drawn, seed=seed_of(rng))
    if kind == "default":
        # Its seed is one that stands somewhere in front of it; where there is none both refuse.
        return ds.seed(rng.randrange(9)).random_map(drawn) if rng.random() < 0.7 else ds.random_map(drawn)
    if kind == "index":
        return ds.map_with_index(with_index)
    if kind == "limit":
        return ex.LimitIterDataset(ds, rng.randrange(1, 60))
    if kind == "window":
        return ex.WindowShuffleIterDataset(ds, window_size=rng.randrange(1, 20), seed=seed_of(rng))
    if kind == "flat":
        return ex.FlatMapIterDataset(ds, copies(grain, rng.randrange(1, 4)))
    if kind == "repeat":
        return ex.RepeatIterDataset(ds, 2)
    if kind == "cache":
        return ex.RepeatIterDataset(ex.CacheIterDataset(ds), 2)
    if kind == "ahead":
        return ex.ThreadPrefetchIterDataset(ds, prefetch_buffer_size=rng.randrange(3))
    if kind == "options":
        return ex.WithOptionsIterDataset(ds, ex.DatasetOptions(filter_warn_threshold_ratio=rng.random()))
    # Elements of several shapes cannot be stacked: what they add up to can.
    size, drop = rng.randrange(1, 7), rng.random() < 0.3
    numbers = ds.map(lambda x: {"n": number(x), "pair": np.full(2, number(x))})
    if kind == "pad":
        return numbers.batch(size, batch_fn=lambda values: ex.batch_and_pad(values, batch_size=size, pad_value=-1))
    if kind == "rebatch":
        return ex.RebatchIterDataset(numbers.batch(size), rng.randrange(1, 7), drop_remainder=drop)
    return numbers.batch(size, drop_remainder=drop)


def packed(grain: Any, rng: random.Random, ds: Any, found: Found) -> Any:
    found.same = False
    lengths = {"a": rng.randrange(5, 30), "b": rng.randrange(4, 20)}
    least = rng.randrange(2)

    def sequences(x: Any) -> dict[str, Any]:
        n = abs(number(x))
        return {"a": np.full(n % 5 + least, n % 1000), "b": np.full(n % 4 + least, -(n % 99), np.float32), "m": n % 7}

    ds = ds.map(sequences)
    if rng.random() < 0.3:
        return cut(grain, rng, ds.map(lambda x: {"a": x["a"]}), lengths["a"], least, found)
    kind = rng.choice(["FirstFitPackIterDataset", "BestFitPackIterDataset"])
    options: dict[str, Any] = {"num_packing_bins": rng.randrange(1, 9), "seed": rng.randrange(100)}
    if rng.random() < 0.3:
        options["shuffle_bins"] = False
    elif rng.random() < 0.3:
        options["shuffle_bins_group_by_feature"] = "a"
    if rng.random() < 0.3:
        options["pack_alignment_struct"] = {"a": rng.randrange(1, 9), "b": rng.randrange(1, 5)}
    if rng.random() < 0.3:
        options["padding_struct"] = {"a": -1, "b": 0.5}
    if rng.random() < 0.3:
        options["max_sequences_per_bin"] = rng.randrange(1, 4)
        if kind == "BestFitPackIterDataset" and not least:
            found.rules.add("a full row takes no sequence of no cells")
    if rng.random() < 0.4:
        options["meta_features"] = ["m"]
    else:
        ds = ds.map(lambda x: {"a": x["a"], "b": x["b"]})
    return getattr(grain.experimental, kind)(ds, length_struct=lengths, **options)


def cut(grain: Any, rng: random.Random, ds: Any, length: int, least: int, found: Found) -> Any:
    options: dict[str, Any] = {"split_full_length_features": rng.random() < 0.5}
    if rng.random() < 0.4:
        handling = grain.experimental.BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS
        options.update(bos_handling=handling, bos_token_id=7, bos_features=rng.choice([(), ("a",)]))
    if not least and options.get("bos_features"):
        found.rules.add("a sequence of no cells has no beginning")
    return grain.experimental.ConcatThenSplitIterDataset(ds, length_struct={"a": length}, **options)


# ------------------------------------------------------------------------------------------------ loaders


def operations(grain: Any, rng: random.Random, found: Found) -> list[Any]:
    kinds = grain.transforms

    class Pair(kinds.Map):
        def map(self, element: Any) -> Any:
            return (element, 1)

    class Some(kinds.Filter):
        def filter(self, element: Any) -> bool:
            return is_kept(element)

    class Random(kinds.RandomMap):
        def random_map(self, element: Any, rng: np.random.Generator) -> Any:
            return (number(element), int(rng.integers(1000)))

    out: list[Any] = []
    is_flat = False
    for _ in range(rng.randrange(4)):
        kind = rng.choice(["map", "filter", "random", "flat"])
        if kind == "random" and is_flat:
            found.rules.add("pieces have random numbers")
        is_flat = is_flat or kind == "flat"
        out.append({"map": Pair, "filter": Some, "random": Random}[kind]() if kind != "flat" else copies(grain, 3))
    if rng.random() < 0.4:

        class Number(kinds.Map):
            def map(self, element: Any) -> Any:
                return {"n": number(element)}

        out += [Number(), kinds.Batch(rng.randrange(1, 5), drop_remainder=rng.random() < 0.5)]
    return out


def loader(grain: Any, rng: random.Random, found: Found) -> Any:
    found.grain, found.same = grain, False
    records, drops = rng.randrange(3, 30), rng.random() < 0.5
    count = rng.choice([1, 1, 2, 3])
    shard = grain.sharding.ShardOptions(rng.randrange(count), count, drop_remainder=drops)
    if rng.random() < 0.3:
        sampler, total = grain.samplers.SequentialSampler(records, shard, seed=rng.randrange(99)), records
    else:
        epochs = rng.randrange(1, 4)
        sampler = grain.samplers.IndexSampler(
            records, shard, shuffle=rng.random() < 0.7, num_epochs=epochs, seed=rng.randrange(99)
        )
        total = epochs * records
    if total % count and not drops:
        found.rules.add("no record of a shard is lost")
    found.loader = {
        "data_source": [{"x": i} for i in range(records)],
        "sampler": sampler,
        "operations": operations(grain, rng, found),
        "shard_options": shard,
        "read_options": grain.ReadOptions(num_threads=0, prefetch_buffer_size=0),
    }
    return grain.DataLoader(**found.loader, worker_count=0)
