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
        # So many elements are read, where there is no end.
        self.most: int | None = None
        # Whether it is not evaluated by workers.
        self.is_alone = False

    def with_workers(self, made: Any, count: int) -> Any:
        """The same pipeline, evaluated by workers."""
        if self.is_alone:
            return made
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
    return int(sum(len(leaf) if isinstance(leaf, str) else np.asarray(leaf).sum() for leaf in leaves(element)))


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


def listed(values: Any) -> dict[str, Any]:
    """A batch that is no stack."""
    return {"all": tuple(values)}


def seed_of(rng: random.Random) -> int:
    return rng.randrange(1 << 32)


# ------------------------------------------------------------------------------------------------ random access


def dataset(grain: Any, rng: random.Random, found: Found, depth: int = 0) -> tuple[Any, bool]:
    """A dataset of random access, of numbers or trees of them, and whether it may have empty slots."""
    ex, holes = grain.experimental, False
    kinds = ["range", "source", "mix", "concatenate", "select", "zip"] if depth < 2 else ["range", "source"]
    kind = rng.choice(kinds)
    if kind == "range":
        bounds = rng.randrange(3), rng.randrange(8, 40), rng.choice([1, 1, 2])
        ds = grain.MapDataset.range(*rng.choice([bounds, bounds[1:2], (bounds[1], bounds[0], -bounds[2])]))
    elif kind == "source":
        count = rng.randrange(2, 30)
        ds = grain.MapDataset.source(
            rng.choice(
                [
                    [{"x": i, "y": np.arange(2) + i} for i in range(count)],
                    np.arange(3 * count, dtype=np.int16).reshape(count, 3),
                    grain.sources.RangeDataSource(count, 0, -1),
                    [(i, [np.float32(i) / 4, {"deep": bool(i % 2)}]) for i in range(count)],
                ]
            )
        )
    elif kind == "zip":
        ds, holes = dataset(grain, rng, found, depth + 1)
        ds, holes = ex.ZipMapDataset([ds, ds.map(sometimes)]), False
    else:
        made = [dataset(grain, rng, found, depth + 1) for _ in range(rng.randrange(1, 4))]
        parts, holes = [ds for ds, _ in made], any(holes for _, holes in made)
        if kind == "mix":
            ds = grain.MapDataset.mix(parts, weights(rng, len(parts)))
        elif kind == "concatenate":
            ds = grain.MapDataset.concatenate(parts)
        else:
            ds = grain.MapDataset.select_from_datasets(parts, selection(grain, rng, parts))
    if rng.random() < 0.5:
        ds = ds.seed(seed_of(rng))
    for _ in range(rng.randrange(4)):
        ds, holes = map_stage(grain, rng, ds, holes)
    return (ds if len(ds) < 300 else ds[:300]), holes


def weights(rng: random.Random, count: int) -> Any:
    kind = rng.choice(["none", "some", "some", "whole", "far apart", "alike", "zero", "too few"])
    if kind == "none":
        return None
    if kind == "whole":
        return [rng.randrange(1, 9) for _ in range(count)]
    if kind == "far apart":
        return [rng.choice([0.001, 1, 700.0]) for _ in range(count)]
    if kind == "alike":
        return [rng.choice([1.0, 1.0049, 1.01]) for _ in range(count)]
    some = [rng.uniform(0.2, 3.0) for _ in range(count)]
    # Both refuse them.
    if kind == "zero" and rng.random() < 0.2:
        return [0.0, *some[1:]]
    return some


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


def transforms(grain: Any, rng: random.Random) -> list[Any]:
    """Transforms that are classes, as `apply` takes them, and whether one of them may drop elements."""

    class Pair(grain.transforms.Map):
        def map(self, element: Any) -> Any:
            return (element, "pair")

    class Some(grain.transforms.Filter):
        def filter(self, element: Any) -> bool:
            return is_kept(element)

    class At(grain.transforms.MapWithIndex):
        def map_with_index(self, index: int, element: Any) -> Any:
            return [int(index), element]

    class Drawn(grain.transforms.RandomMap):
        def random_map(self, element: Any, rng: np.random.Generator) -> Any:
            return drawn(element, rng)

    return [kind() for kind in rng.sample([Pair, Some, At, Drawn], rng.randrange(1, 4))]


# Read with random access, in stages of their own.
MAP_STAGES = (
    *("shuffle", "slice", "repeat", "map", "with_index", "random", "again", "filter", "drop", "batch", "flat", "window"),
    *("apply", "batch_fn", "pipe"),
)


def part_of(rng: random.Random, ds: Any) -> Any:
    """A slice, which may count from the end or backwards, or be empty."""
    bound = [None, *range(-len(ds) - 2, len(ds) + 3)]
    return ds[rng.choice(bound) : rng.choice(bound) : rng.choice([None, 1, 2, 3, -1, -2])]


def map_stage(grain: Any, rng: random.Random, ds: Any, holes: bool) -> tuple[Any, bool]:
    kind = rng.choice(MAP_STAGES)
    if len(ds) == 0 or len(ds) > 150:
        return ds, holes
    if kind == "shuffle":
        return ds.shuffle(seed=seed_of(rng)), holes
    if kind == "slice":
        start = rng.randrange(len(ds))
        return (part_of(rng, ds) if rng.random() < 0.3 else ds[start :: rng.randrange(1, 4)]), holes
    if kind == "apply":
        # Random numbers need a seed that stands in front of them; where there is none both refuse.
        return ds.seed(seed_of(rng)).apply(transforms(grain, rng)), True
    if kind == "pipe":
        return ds.pipe(lambda ds, n: ds.map(lambda x: (n, x)), rng.randrange(9)), holes
    if kind == "batch_fn":
        return ds.batch(rng.randrange(1, 5), drop_remainder=rng.random() < 0.3, batch_fn=listed), holes
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


def elastic(grain: Any, rng: random.Random, found: Found) -> Any:
    """One host's part of global batches."""
    found.grain, found.is_alone = grain, True
    ds, holes = dataset(grain, rng, found, 2)
    ds = grain.MapDataset.range(rng.randrange(1, 40)) if holes else ds.map(number)
    hosts = rng.choice([1, 2, 3])
    batch = hosts * rng.randrange(1, 5)
    if hosts > 1 and len(ds) % batch:
        found.rules.add("every host has as many batches")
    shard = grain.sharding.ShardOptions(rng.randrange(hosts), hosts)
    made = grain.experimental.ElasticIterator(ds, batch, shard, read_options=grain.ReadOptions(0, 0))
    return made.map(lambda x: [x]) if rng.random() < 0.3 else made


# ------------------------------------------------------------------------------------------------ streams


def stream(grain: Any, rng: random.Random, found: Found) -> Any:
    found.grain = grain
    ds, _ = dataset(grain, rng, found)
    length = len(ds)
    far = [*range(length, length + 5), 17 * length + 1, (1 << 20) + 3]
    found.far = [shown(ds[i]) for i in far] if length else []
    if 0 < length < 200 and rng.random() < 0.1:
        # Without end, but for a slice of it.
        first = rng.randrange(1 << rng.choice([3, 20]))
        ds = ds.repeat(reseed_each_epoch=rng.random() < 0.7)[first : first + rng.randrange(1, 60) : rng.randrange(1, 3)]
    threads = rng.choice([0, 0, 0, 2])
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 * threads)
    out = ds.to_iter_dataset(options, allow_nones=rng.random() < 0.1)
    for _ in range(rng.randrange(5)):
        out = stream_stage(grain, rng, out, found)
    return packed(grain, rng, out, found) if rng.random() < 0.4 else out


# Stages whose states have the same fields in both libraries.
SAME_STATES = ("map", "filter", "batch", "zip", "mix", "pad", "options", "listed", "uneven")


def stream_stage(grain: Any, rng: random.Random, ds: Any, found: Found) -> Any:
    ex = grain.experimental
    others = ["random", "index", "limit", "window", "flat", "repeat", "interleave", "rebatch", "cache", "ahead", "default"]
    others += ["endless", "files", "window_default", "many", "apply", "named"]
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
        # Of any length.
        return ds.random_map(drawn, seed=rng.choice([seed_of(rng), rng.randrange(1 << 70)]))
    if kind == "apply":
        return ds.seed(seed_of(rng)).apply(transforms(grain, rng))
    if kind == "listed":
        return ds.batch(rng.randrange(1, 5), drop_remainder=rng.random() < 0.3, batch_fn=listed)
    if kind == "named":
        names = ["b", "a", "c"][: rng.randrange(1, 4)]
        shares = {name: rng.choice([0.3, 1, 2.5]) for name in sorted(names)}
        parts = {name: ds.map(lambda x, name=name: (name, x)) for name in names}
        return grain.IterDataset.mix(parts, rng.choice([None, shares]))
    if kind == "uneven":
        parts = [ds, ds.filter(is_kept), ds.map(number)]
        return ex.ZipIterDataset(rng.sample(parts, rng.randrange(1, 4)), strict=rng.random() < 0.3)
    if kind == "endless":
        # Of nothing it would never end.
        turns = ex.RepeatIterDataset(grain.MapDataset.range(rng.randrange(1, 9)).to_iter_dataset())
        return ex.ZipIterDataset([turns, ds], strict=False)
    if kind == "files":
        # Files that are listed, shuffled and repeated, each a stream.
        listed_files = grain.MapDataset.range(rng.randrange(1, 6)).shuffle(seed=rng.randrange(9)).repeat(rng.randrange(1, 3))
        made = listed_files.map(lambda k: grain.MapDataset.range(10 * k, 13 * k + 1).to_iter_dataset().map(lambda x: {"f": x}))
        out = ex.InterleaveIterDataset(made, cycle_length=rng.randrange(1, 9), iter_buffer_size=rng.randrange(1, 4))
        if rng.random() < 0.3:
            out.set_slice(slice(rng.randrange(2), None, 2))
        return out
    if kind == "window_default":
        return ex.WindowShuffleIterDataset(ds.seed(rng.randrange(9)), window_size=rng.randrange(1, 20), seed=rng.randrange(9))
    if kind == "many":
        parts = [grain.MapDataset.range(k, 3 * k + 2) for k in range(rng.randrange(1, 5))]
        return ex.InterleaveIterDataset(parts, cycle_length=rng.randrange(1, 6))
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

    wide, nested = rng.random() < 0.2, rng.random() < 0.2

    def sequences(x: Any) -> dict[str, Any]:
        n = abs(number(x))
        shape = (n % 4 + least, 2) if wide else n % 4 + least
        out = {"a": np.full(n % 5 + least, n % 1000), "b": np.full(shape, -(n % 99), np.float32), "m": n % 7}
        return {**out, "t": {"u": np.full(n % 3 + 1, n % 9), "v": {"w": np.int8(n % 11)}}} if nested else out

    ds = ds.map(sequences)
    if rng.random() < 0.3:
        return cut(grain, rng, ds, lengths["a"], least, found)
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
    options["meta_features"], struct = [], dict(lengths)
    if rng.random() < 0.4:
        options["meta_features"].append("m")
    if nested:
        # A tree is carried along with the sequence that it belongs to.
        options["meta_features"].append("t")
        struct["t"] = {"u": rng.randrange(20, 40), "v": {"w": rng.randrange(9, 20)}}
        # Grain's must have the same shape.
        options.pop("pack_alignment_struct", None), options.pop("padding_struct", None)
    if rng.random() < 0.2:
        options["meta_features"].append("b")
    packing = getattr(grain.experimental, kind)
    kept = [*struct, *options["meta_features"]]
    return packing(ds.map(lambda x: {name: x[name] for name in kept}), length_struct=struct, **options)


def cut(grain: Any, rng: random.Random, ds: Any, length: int, least: int, found: Found) -> Any:
    options: dict[str, Any] = {"split_full_length_features": rng.random() < 0.5}
    if rng.random() < 0.4:
        handling = grain.experimental.BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS
        options.update(bos_handling=handling, bos_token_id=7, bos_features=rng.choice([(), ("a",)]))
    if not least and options.get("bos_features"):
        found.rules.add("a sequence of no cells has no beginning")
    struct, kind = {"a": length}, rng.choice(["one", "one", "two", "meta"])
    if kind == "two":
        struct["b"] = rng.randrange(4, 20)
        found.rules.add("cut tokens come once")
    if kind == "meta":
        struct["b"], options["meta_features"] = length, ["b"]
        found.rules.add("cut tokens come once")
    return grain.experimental.ConcatThenSplitIterDataset(
        ds.map(lambda x: {name: x[name] for name in struct}), length_struct=struct, **options
    )
