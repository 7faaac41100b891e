"""Orders of Megatron-Core, MosaicML Streaming and OLMo-core: held against the originals on 100,000 samples, and pinned."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gristmill as gm

COUNT = 100_000


def write_documents(prefix: Path, lengths: npt.NDArray[np.int64], seed: int) -> None:
    """Writes an indexed data set with the writer of Megatron-Core, so that documents are its documents."""
    builder = pytest.importorskip("megatron.core.datasets.indexed_dataset").IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
    rng = np.random.default_rng(seed)
    for length in lengths.tolist():
        builder.add_document(rng.integers(0, 65_000, length, dtype=np.uint16), [length])
    builder.finalize(f"{prefix}.idx")


class Tokenizer:
    """The attributes of a tokenizer that `GPTDataset` reads."""

    unique_identifiers = {"class": "Tokenizer"}
    vocab_size = 65_000
    pad = -1
    eod = 64_999


def megatron_core(prefixes: list[str], weights: list[float] | None, samples: int, split: str, cache: Path) -> list[Any]:
    """Returns the texts of the samples of the training split that Megatron-Core builds, and keeps the order in `cache`."""
    gpt: Any = pytest.importorskip("megatron.core.datasets.gpt_dataset")
    builder: Any = pytest.importorskip("megatron.core.datasets.blended_megatron_dataset_builder")
    config = gpt.GPTDatasetConfig(
        random_seed=7,
        sequence_length=16,
        blend=(prefixes, weights),
        split=split,
        tokenizer=Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        mid_level_dataset_surplus=0.005,
        path_to_cache=str(cache),
    )
    distributed: Any = pytest.importorskip("torch.distributed")
    # A blend is kept by the first process of a group.
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        built = builder.BlendedMegatronDatasetBuilder(gpt.GPTDataset, [samples, 1, 1], lambda: True, config).build()[0]
    finally:
        distributed.destroy_process_group()

    def text(index: int) -> Any:
        of = built
        if weights is not None:
            of, index = built.datasets[built.dataset_index[index]], built.dataset_sample_index[index]
        return getattr(of, "_query_document_sample_shuffle_indices")(index)[0]

    return [text(index) for index in range(len(built))]


@pytest.mark.parametrize("weights", [None, [0.3, 0.6, 0.1]])
def test_samples_are_those_of_megatron_core(weights: list[float] | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    prefixes = [str(tmp_path / name) for name in ("a", "b", "c")][: 1 if weights is None else 3]
    for seed, prefix in enumerate(prefixes):
        write_documents(Path(prefix), rng.integers(0, 300, 4000), seed)
    cache = tmp_path / "cache"
    theirs = megatron_core(prefixes, weights, COUNT, "969,30,1", cache)
    ds = gm.orders.megatron(prefixes, weights, seq_length=16, samples=COUNT, seed=7, split="969,30,1")
    mapped = gm.orders.megatron(prefixes, weights, seq_length=16, samples=COUNT, seed=7, split="969,30,1", cache=cache)
    assert len(ds) == len(mapped) == len(theirs) >= COUNT
    at = 0
    for batch, other in zip(ds.to_iter_dataset().batch(1000), mapped.to_iter_dataset().batch(1000)):
        assert np.array_equal(batch["tokens"], theirs[at : at + 1000]), at
        assert np.array_equal(batch["tokens"], other["tokens"]), at
        at += len(batch["tokens"])
    assert at == len(theirs)
    # Megatron's order is read, not another: a changed list changes the samples.
    for path in cache.glob("*-GPTDataset-train-shuffle_index.npy"):
        np.save(path, np.load(path)[::-1])
    changed = gm.orders.megatron(prefixes, weights, seq_length=16, samples=COUNT, seed=7, split="969,30,1", cache=cache)
    assert not np.array_equal(changed[0]["tokens"], ds[0]["tokens"])
    consumed = gm.orders.megatron(prefixes, weights, seq_length=16, samples=COUNT, seed=7, split="969,30,1", consumed_samples=77_777)
    assert np.array_equal(consumed[0]["tokens"], theirs[77_777]) and len(consumed) == len(theirs) - 77_777


def numbered(folder: Path, counts: list[int]) -> list[Path]:
    """Writes samples numbered from 0 on, in folders of shards with at most 700 samples."""
    folders, start = [], 0
    for number, count in enumerate(counts):
        folders.append(folder / f"mds{number}")
        with gm.sink(folders[-1], "mds", shard_records=700) as sink:
            for sample in range(start, start + count):
                sink.write({"n": sample})
        start += count
    return folders


def order_of(ds: gm.MapDataset[dict[str, Any]]) -> npt.NDArray[np.int64]:
    return np.concatenate([batch["n"] for batch in ds.to_iter_dataset().batch(4096)])


ALGORITHMS = ["py1e", "py1s", "py1br", "py2s", "naive", None]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return numbered(tmp_path_factory.mktemp("shards"), [60_123, 39_900])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_orders_are_those_of_streaming(algorithm: Any, shards: list[Path]) -> None:
    pytest.importorskip("streaming", reason="needs mosaicml-streaming")
    from streaming.base.partition import get_partitions  # type: ignore[import-untyped, unused-ignore]
    from streaming.base.shuffle import get_shuffle  # type: ignore[import-untyped, unused-ignore]

    sizes = np.array([size for folder in shards for size in getattr(gm.orders, "_shard_sizes")(folder)])
    count, canonical, nodes, ranks, workers, batch, done, epoch = int(sizes.sum()), 8, 2, 4, 3, 16, 1281, 3
    ids = get_partitions("relaxed", count, canonical, nodes, ranks, workers, batch, done, nodes)
    if algorithm is not None:
        shuffle = get_shuffle(algorithm, sizes, canonical, 11, epoch, 3000)
        ids = np.where(ids == -1, -1, shuffle[ids])
    # Steps in the order of the loaders of all ranks: the workers of a rank take turns.
    steps = ids.transpose(3, 2, 4, 1, 0).reshape(-1, batch * ranks * nodes)
    ds = gm.orders.mosaicml(
        shards, shuffle_algo=algorithm, shuffle_seed=11, shuffle_block_size=3000, nodes=nodes, epoch=epoch,
        state={"epoch": epoch, "sample_in_epoch": done, "num_canonical_nodes": canonical, "shuffle_seed": 11},
    )  # fmt: skip
    ours = order_of(ds)
    whole = len(ours) // steps.shape[1]
    assert len(ours) > COUNT - done and whole > 700
    assert np.array_equal(ours[: whole * steps.shape[1]].reshape(whole, -1), steps[:whole])


def test_orders_are_those_of_olmo_core(tmp_path: Path) -> None:
    pytest.importorskip("olmo_core", reason="needs ai2-olmo-core")
    from olmo_core.data import NumpyFSLDataset  # type: ignore[import-not-found, unused-ignore]
    from olmo_core.data.collator import DataCollator  # type: ignore[import-not-found, unused-ignore]
    from olmo_core.data.data_loader import NumpyFSLDataLoader  # type: ignore[import-not-found, unused-ignore]

    paths = write_ids(tmp_path, [900_003, 700_001])
    for chunk_size in (1, 4):
        dataset = NumpyFSLDataset(*paths, sequence_length=16, pad_token_id=0, eos_token_id=1, vocab_size=65_000)
        collator = DataCollator(pad_token_id=0)
        loader = NumpyFSLDataLoader(
            dataset, collator=collator, global_batch_size=16 * 48, work_dir=tmp_path / str(chunk_size), seed=5,
            chunk_size=chunk_size, num_threads=0,
        )  # fmt: skip
        loader.reshuffle(epoch=2, in_memory=True)
        ds = gm.orders.olmo(paths, sequence_length=16, global_batch_size=16 * 48, seed=5, epoch=2, chunk_size=chunk_size)
        assert len(ds) == loader.total_size > 99_000
        theirs = getattr(loader, "_get_local_instance_indices")(loader.get_global_indices())
        expected = np.concatenate([np.memmap(path, np.uint16)[: 16 * (size // 16)].reshape(-1, 16) for path, size in zip(paths, [900_003, 700_001])])
        at = 0
        for batch in ds.to_iter_dataset().batch(1000):
            assert np.array_equal(batch["tokens"], expected[theirs[at : at + 1000]])
            at += 1000
        first = dataset[int(theirs[0])]["input_ids"].numpy()
        assert np.array_equal(ds[0]["tokens"], first)
        loader.batches_processed, loader.tokens_processed = 100, 100 * 16 * 48
        resumed = gm.orders.olmo(paths, sequence_length=16, global_batch_size=16 * 48, chunk_size=chunk_size, state=loader.state_dict())
        following = getattr(loader, "_get_local_instance_indices")(loader.get_global_indices())
        assert np.array_equal(resumed[0]["tokens"], expected[following[0]]) and len(resumed) == len(following)


def write_ids(folder: Path, sizes: list[int]) -> list[str]:
    rng = np.random.default_rng(3)
    paths = [str(folder / f"{number}.npy") for number in range(len(sizes))]
    for path, size in zip(paths, sizes):
        rng.integers(0, 65_000, size, dtype=np.uint16).tofile(path)
    return paths


def folded(numbers: Any) -> int:
    value = 0
    for number in np.asarray(numbers).reshape(-1).tolist():
        value = (value * 31 + number) % (1 << 64)
    return value


# mosaicml-streaming 0.13.0: `get_partitions` of one node, and `get_shuffle(…, num_canonical_nodes=4, seed=11, epoch=3, block_size=900)`.
STREAMING: dict[Any, Any] = {
    "py1e": (3308, [1974, 2652, 3050, 429, 1916, 2693, 2971, 503], 10662809847398790519),
    "py1s": (3308, [2363, 2690, 3026, 383, 1952, 2699, 3285, 165], 17631755733582388695),
    "py1br": (3308, [2220, 2839, 1542, 179, 2267, 2777, 3214, 210], 3640750111990084194),
    "py2s": (3308, [2347, 1397, 3165, 1677, 2114, 922, 2623, 1415], 384908697396633149),
    "naive": (3308, [914, 1701, 2676, 2159, 3146, 2212, 2336, 1709], 2111994977560829574),
    None: (3308, [0, 826, 1652, 2478, 1, 827, 1653, 2479], 17957433108918453821),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_orders_of_streaming_are_pinned(algorithm: Any, tmp_path: Path) -> None:
    folders = numbered(tmp_path, [1903, 1402])
    ds = gm.orders.mosaicml(folders, shuffle_algo=algorithm, shuffle_seed=11, num_canonical_nodes=4, epoch=3, shuffle_block_size=900)
    order = order_of(ds)
    assert (len(order), order[:8].tolist(), folded(order)) == STREAMING[algorithm]


# ai2-olmo-core 3.0.0: `NumpyFSLDataLoader` with a seed of 5 in epoch 2.
OLMO: dict[int, Any] = {
    1: (736, [9643, 21734, 49073, 43956], 16957251768749126381),
    4: (736, [10401, 6232, 60397, 27406], 1376897684555812381),
}


@pytest.mark.parametrize("chunk_size", [1, 4])
def test_orders_of_olmo_core_are_pinned(chunk_size: int, tmp_path: Path) -> None:
    paths = write_ids(tmp_path, [2003, 1001])
    ds = gm.orders.olmo(paths, sequence_length=4, global_batch_size=64, seed=5, epoch=2, chunk_size=chunk_size)
    ids = [element["tokens"].tolist() for element in ds]
    assert (len(ids), [row[0] for row in ids[:4]], folded(ids)) == OLMO[chunk_size]


def test_a_pass_in_an_order_resumes_and_is_evaluated_by_workers(tmp_path: Path) -> None:
    with gm.sink(tmp_path, "megatron", token_type="uint16") as sink:
        for document in range(500):
            sink.write({"tokens": np.arange(document % 40, dtype=np.uint16)})

    def batches(workers: int = 0) -> gm.IterDataset[Any]:
        ds = gm.orders.megatron(tmp_path, [1.0], seq_length=16, samples=3000, consumed_samples=100).to_iter_dataset().batch(32)
        return ds.mp_prefetch(gm.MpOptions(num_workers=workers)) if workers else ds

    expected = [batch["tokens"] for batch in batches()]
    assert len(expected) == 91
    assert np.array_equal(np.concatenate(expected), np.concatenate([batch["tokens"] for batch in batches(2)]))
    loader = iter(batches())
    taken = [next(loader)["tokens"] for _ in range(40)]
    state = loader.get_state()
    resumed = iter(batches(2))
    resumed.set_state(state)
    assert np.array_equal(np.concatenate(expected), np.concatenate([*taken, *(batch["tokens"] for batch in resumed)]))


def test_impossible_orders_are_refused(tmp_path: Path) -> None:
    folders = numbered(tmp_path, [30])
    with pytest.raises(gm.ConfigError, match="num_canonical_nodes is 31, for 1 nodes and 30 samples"):
        gm.orders.mosaicml(folders, num_canonical_nodes=31)
    with pytest.raises(gm.ConfigError, match="num_canonical_nodes is 3, for 2 nodes"):
        gm.orders.mosaicml(folders, num_canonical_nodes=3, nodes=2)
    with pytest.raises(gm.ConfigError, match="shuffle_algo is 'py9'"):
        gm.orders.mosaicml(folders, shuffle_algo="py9")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match=f"nowhere{os.sep}index.json does not exist"):
        gm.orders.mosaicml("nowhere")
    with pytest.raises(gm.ConfigError, match="weights need a number of samples"):
        gm.orders.megatron(tmp_path, [1.0], seq_length=8)
    state = {"dataset_type": "vsl"}
    with pytest.raises(gm.ConfigError, match="the state is of a dataset of type vsl"):
        gm.orders.olmo("a.npy", sequence_length=8, global_batch_size=64, state=state)
