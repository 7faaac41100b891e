"""Orders of other frameworks, bit for bit: datasets that continue a run of Megatron-Core, MosaicML Streaming or OLMo-core.

Imported on first use of `gristmill.orders`. No function writes an index to a file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill._errors import ConfigError
from gristmill._gristmill import MapDataset

__all__ = ["megatron", "mosaicml", "olmo"]

_Path: TypeAlias = str | os.PathLike[str]
_Indices: TypeAlias = npt.NDArray[np.int64]
#: First sample and end of a run of samples of a shard.
_Span: TypeAlias = tuple[int, int]


def megatron(
    prefixes: _Path | Sequence[_Path],
    weights: Sequence[float] | None = None,
    *,
    seq_length: int,
    samples: int | None = None,
    seed: int = 1234,
    split: str | Sequence[float] = "1",
    part: Literal["train", "valid", "test"] = "train",
    consumed_samples: int = 0,
    with_next: bool = True,
    cache: _Path | None = None,
) -> MapDataset[dict[str, Any]]:
    """Reads indexed datasets in the order of Megatron-Core's `GPTDataset` and `BlendedDataset`.

    Element `i` is a dict of `tokens`: the `seq_length + 1` ids of sample `consumed_samples + i`. Megatron's `tokens` are
    all ids but the last, and its `labels` are all ids but the first. The dataset is `MapDataset.megatron_samples` with
    Megatron's names of arguments. It is equal to Megatron-Core 0.16.1 on x86-64.

    Args:
        prefixes: Prefixes of the data sets, as in `--data-path`.
        weights: Weight of each data set, as in `--data-path`. By default, the number of its samples.
        seq_length: Number of tokens in a sample, `--seq-length`.
        samples: Number of samples of the whole run: `--train-iters` times `--global-batch-size`, or `--train-samples`.
            By default, every data set is read once.
        seed: Seed of the run, `--seed`.
        split: Proportions of sequences for training, validation and tests, `--split`, such as `"969,30,1"`. By default,
            all sequences are for training.
        part: Part of the sequences to read.
        consumed_samples: Number of samples that the run has consumed, as in its checkpoint.
        with_next: Whether samples extend to the next token: `add_extra_token_to_sequence`.
        cache: Folder in which Megatron-Core keeps its orders, `--data-cache-path`. An order of this data set is mapped, and
            the first sample is read at once. By default, orders are computed.

    Raises:
        ConfigError: An argument is invalid, or `weights` are given without `samples`.
        DataError: A file is damaged.
    """
    parts = [float(number) for number in re.findall(r"[.0-9]+", split)] if isinstance(split, str) else list(split)
    given = None if weights is None else list(weights)
    ds = MapDataset.megatron_samples(
        prefixes,
        seq_len=seq_length,
        seed=seed,
        samples=samples,
        weights=given,
        split=parts,
        part=part,
        with_next=with_next,
        cache=cache,
    )
    return ds.slice(slice(consumed_samples, None)) if consumed_samples else ds


def olmo(
    paths: _Path | Sequence[_Path],
    *,
    sequence_length: int,
    global_batch_size: int,
    seed: int = 0,
    epoch: int = 1,
    layout: Literal["u16", "u32"] = "u16",
    chunk_size: int = 1,
    state: Mapping[str, Any] | None = None,
) -> MapDataset[dict[str, Any]]:
    """Reads an epoch of files of token ids in the order of OLMo-core's `NumpyFSLDataset` and `NumpyFSLDataLoader`.

    Elements are dicts of `tokens`: the `input_ids` of an instance. Batches of `global_batch_size // sequence_length`
    elements are OLMo-core's global batches. Rank `r` of `n` has every `n`th element of a batch, from `r` on. The dataset
    is equal to OLMo-core 3.0.0.

    Args:
        paths: Paths of the arrays of token ids, in the order of OLMo-core's configuration.
        sequence_length: Number of tokens in an instance.
        global_batch_size: Number of tokens in a global batch. An epoch has whole batches only.
        seed: Seed of the data loader.
        epoch: Number of the epoch, from 1.
        layout: Type of the stored ids.
        chunk_size: Number of consecutive instances that are shuffled together.
        state: State of OLMo-core's data loader, whose `seed`, `epoch` and `tokens_processed` replace the arguments. The
            dataset begins with the next batch.

    Raises:
        ConfigError: An argument is invalid.
        DataError: A file is damaged.
    """
    done = 0
    if state is not None:
        kind, longest = state.get("dataset_type", "fsl"), state.get("max_target_sequence_length")
        if kind != "fsl" or longest not in (None, sequence_length):
            raise ConfigError(f"the state is of a dataset of type {kind} with max_target_sequence_length={longest}")
        seed, epoch = state["seed"], state["epoch"] or epoch
        done = state["tokens_processed"] // global_batch_size
    if global_batch_size < sequence_length or chunk_size < 1:
        raise ConfigError(f"global_batch_size is {global_batch_size}, sequence_length {sequence_length}, chunk_size {chunk_size}")
    crops = MapDataset.crops(paths, layout=layout, seq_len=sequence_length)
    order = np.arange(len(crops) // chunk_size, dtype=np.uint32)
    np.random.Generator(np.random.PCG64(seed + epoch)).shuffle(order)
    chunks = order.astype(np.int64)[:, None] * chunk_size + np.arange(chunk_size)
    batch = global_batch_size // sequence_length
    end = len(crops) // batch * batch
    return _selected(crops, chunks.reshape(-1)[:end][done * batch :])


def mosaicml(
    paths: _Path | Sequence[_Path],
    *,
    shuffle_algo: Literal["py1e", "py1s", "py1br", "py2s", "naive"] | None = "py1e",
    shuffle_seed: int = 9176,
    shuffle_block_size: int | None = None,
    num_canonical_nodes: int | None = None,
    nodes: int = 1,
    epoch: int = 0,
    state: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
) -> MapDataset[dict[str, Any]]:
    """Reads an epoch of MDS folders in the order of MosaicML's `StreamingDataset`.

    Batches of consecutive elements are the global batches of Streaming. Node `k` of `n` has every `n`th element, from `k`
    on, and rank `r` of `m` ranks of a node has every `m`th of these. The order is that of streams without `proportion`,
    `repeat` or `choose`, and is equal to Streaming 0.13.0.

    Args:
        paths: Local folders, in the order of the streams.
        shuffle_algo: Algorithm of the shuffle; `None` for `shuffle=False`.
        shuffle_seed: Seed of the run.
        shuffle_block_size: Size of blocks for `py1e` and `py1br`. By default, `max(4_000_000 // num_canonical_nodes,
            1 << 18)`.
        num_canonical_nodes: Number of canonical nodes, a multiple of `nodes`. By default, the value of Streaming for
            `nodes`: `64 * nodes` for `py1s` and `py2s`, and `nodes` for all others.
        nodes: Number of nodes of the run, which rounds `sample_in_epoch`.
        epoch: Number of the epoch, from 0.
        state: State of `StreamingDataset.state_dict`, whose values replace the arguments. The dataset begins with the
            next sample.
        columns: Columns to read. By default, all columns.

    Raises:
        ConfigError: An argument is invalid, or a folder is not local.
        DataError: A file is damaged.
    """
    done = 0
    if state is not None:
        epoch, done, shuffle_seed = state["epoch"], state["sample_in_epoch"], state["shuffle_seed"]
        num_canonical_nodes = state["num_canonical_nodes"]
    canonical = num_canonical_nodes or (64 * nodes if shuffle_algo in ("py1s", "py2s") else nodes)
    folders = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    sizes = [size for folder in folders for size in _shard_sizes(folder)]
    count = sum(sizes)
    if canonical % nodes or count < canonical:
        raise ConfigError(f"num_canonical_nodes is {canonical}, for {nodes} nodes and {count} samples")
    # Each canonical node has its samples, and all take turns. A node with fewer samples repeats the last.
    starts = np.arange(canonical) * count // canonical
    ends = np.arange(1, canonical + 1) * count // canonical
    turns = np.arange(-(-count // canonical))[:, None]
    order = np.minimum(starts + turns, ends - 1).reshape(-1)[done - done % nodes :]
    if shuffle_algo is not None:
        block_size = shuffle_block_size or max(4_000_000 // canonical, 1 << 18)
        order = _shuffled(shuffle_algo, sizes, canonical, shuffle_seed, epoch, block_size)[order]
    return _selected(MapDataset.mds(folders, columns=columns), order)


def _selected(ds: MapDataset[dict[str, Any]], indices: npt.NDArray[Any]) -> MapDataset[dict[str, Any]]:
    """Selects indices from an array that cannot change later."""
    order = np.ascontiguousarray(indices, dtype=np.uint64)
    order.flags.writeable = False
    return ds.select_indices(order)  # type: ignore[arg-type]


def _shard_sizes(folder: _Path) -> list[int]:
    """Returns the number of samples of each shard."""
    place = os.path.join(os.fspath(folder), "index.json")
    try:
        with open(place, encoding="utf-8") as file:
            return [int(shard["samples"]) for shard in json.load(file)["shards"]]
    except FileNotFoundError:
        raise ConfigError(f"{place} does not exist, and folders in stores are not supported here") from None


def _shuffled(algorithm: str, sizes: list[int], nodes: int, seed: int, epoch: int, block_size: int) -> _Indices:
    """Returns the sample at each place of an epoch, in the order of Streaming's `get_shuffle`."""
    of_epoch = np.random.default_rng(seed + epoch)
    if algorithm == "naive":
        return of_epoch.permutation(sum(sizes))
    of_run = np.random.default_rng(seed)
    ends = np.cumsum(sizes).tolist()
    spans: list[_Span] = [(end - size, end) for end, size in zip(ends, sizes)]
    of_run.shuffle(spans)
    if algorithm == "py2s":
        # Each shard is shuffled before shards are divided among nodes. A span then names places of `samples`.
        samples = np.concatenate([_permuted(of_run, span) for span in spans])
        lengths = [end - start for start, end in spans]
        places = [(stop - length, stop) for stop, length in zip(np.cumsum(lengths).tolist(), lengths)]
        parts: list[_Indices] = []
        for part in _divided(places, nodes):
            of_epoch.shuffle(part)
            for start, end in part:
                piece = samples[start:end].copy()
                of_epoch.shuffle(piece)
                parts.append(piece)
        return np.concatenate(parts)
    divided = _divided(spans, nodes)
    for part in divided:
        of_epoch.shuffle(part)
    if algorithm == "py1s":
        return np.concatenate([_permuted(of_epoch, span) for part in divided for span in part])
    if algorithm == "py1br":
        staggers = of_epoch.integers(0, int(0.75 * block_size), (nodes,)).tolist()
        return np.concatenate([_in_blocks(of_epoch, part, block_size, stagger) for part, stagger in zip(divided, staggers)])
    if algorithm == "py1e":
        return np.concatenate([_spread(of_epoch, part, block_size) for part in divided])
    raise ConfigError(f"shuffle_algo is {algorithm!r}, and must be one of py1e, py1s, py1br, py2s, naive")


def _permuted(rng: np.random.Generator, span: _Span) -> _Indices:
    numbers = np.arange(*span)
    rng.shuffle(numbers)
    return numbers


def _divided(spans: list[_Span], nodes: int) -> list[list[_Span]]:
    """Divides spans among nodes with equal numbers of samples. A span at a border is cut."""
    total = sum(end - start for start, end in spans)
    taken = 0
    waiting: list[_Span] = spans[::-1]
    parts: list[list[_Span]] = []
    for node in range(nodes):
        stop = total * (node + 1) // nodes
        part: list[_Span] = []
        while waiting:
            start, end = waiting.pop()
            cut = min(end, start + stop - taken)
            if cut > start or start == end:
                part.append((start, cut))
                taken += cut - start
            if cut < end:
                waiting.append((cut, end))
                break
        parts.append(part)
    return parts


def _in_blocks(rng: np.random.Generator, part: list[_Span], block_size: int, stagger: int) -> _Indices:
    """Shuffles the samples of a node in blocks of random sizes."""
    samples = np.concatenate([np.arange(*span) for span in part])

    def blocks() -> Iterator[slice]:
        end = 0
        while end < len(samples):
            size = int(rng.integers(int(0.75 * block_size), int(1.25 * block_size)))
            start, stop = max(end - stagger, 0), min(end + size - stagger, len(samples))
            yield slice(start, stop)
            end += stop - start

    # All sizes are drawn before the first shuffle.
    for block in list(blocks()):
        rng.shuffle(samples[block])
    return samples


def _spread(rng: np.random.Generator, part: list[_Span], block_size: int) -> _Indices:
    """Spreads the samples of each shard of a node over a range that has the size of a block."""
    samples = np.concatenate([_permuted(rng, span) for span in part])
    places = np.arange(len(samples), dtype=np.float64)
    start = 0
    for size in (end - begin for begin, end in part):
        spread = max((int(rng.integers(int(0.75 * block_size), int(1.25 * block_size))) - size) / 2, 0)
        low, high = max(-spread, -start), min(spread, len(samples) - start - size)
        places[start : start + size] += rng.uniform(low=low, high=high, size=size)
        start += size
    return samples[np.argsort(places)]
