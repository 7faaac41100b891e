from builtins import slice as _slice
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, final, overload

import numpy as np

from gristmill._options import MpOptions

__version__: str

def cli(arguments: Sequence[str], interpreter: str) -> int:
    """Runs the command that `arguments` say, the first of which is the program's name, and returns the exit code."""

def index_shuffle(index: int, max_index: int, seed: int, rounds: int) -> int:
    """Where Grain's permutation of `0..=max_index` sends `index`."""

_Path: TypeAlias = str | PathLike[str]
_Paths: TypeAlias = _Path | Sequence[_Path]
_Names: TypeAlias = str | Sequence[str]
_Lengths: TypeAlias = Mapping[str, int]
_Padding: TypeAlias = Mapping[str, float]
_Remainder: TypeAlias = Literal["keep", "drop", "pad"]
_OverLong: TypeAlias = Literal["error", "split", "drop"]
_OutputNames: TypeAlias = Literal["grain", "maxtext"]
_Layout: TypeAlias = Literal["detect", "llm_c", "u16", "u32"]
_FeatureType: TypeAlias = Literal["int64", "float32", "bytes", "str"]
_Features: TypeAlias = Mapping[str, _FeatureType | Mapping[str, Any]]
_Sequences: TypeAlias = Mapping[Literal["context", "sequences"], _Features]

class _Source(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class _Computed(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any | None: ...

class _SelectionMap(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[int, int]: ...

class _WorkerOptions(Protocol):
    @property
    def num_workers(self) -> int: ...

class _Map(Protocol):
    def map(self, element: Any, /) -> Any: ...

class _MapWithIndex(Protocol):
    def map_with_index(self, index: int, element: Any, /) -> Any: ...

class _RandomMap(Protocol):
    def random_map(self, element: Any, rng: np.random.Generator, /) -> Any: ...

class _Filter(Protocol):
    def filter(self, element: Any, /) -> object: ...

class _FlatMap(Protocol):
    def flat_map(self, element: Any, /) -> Iterable[Any]: ...

@final
class MapDataset:
    """A dataset of random access: `ds[i]`, `len(ds)`, shuffled and sharded by index, evaluated in any order."""

    @staticmethod
    def range(start: int, stop: int | None = None, step: int = 1) -> MapDataset:
        """Whole numbers, as Python's `range`."""

    @staticmethod
    def source(source: _Source) -> MapDataset:
        """The records of anything with `__len__` and `__getitem__`; index `i` reads record `i % len(source)`.

        A source that also has `__getitems__` is given lists of indices, as many as are read at a time, and returns as many
        records; where that raises, they are read one by one.
        """

    @staticmethod
    def computed(source: _Computed, *, dense: bool = False) -> MapDataset:
        """What anything with `__len__` and `__getitem__` computes for an index; `None` where there is no element.

        Unlike a `source` it is asked for indices of later epochs as they are. `dense` promises an element for each index.
        """

    @staticmethod
    def jsonl(
        paths: _Paths, *, columns: _Names | None = None, index_cache: _Path | None = None
    ) -> MapDataset:
        """Records of JSON Lines files, globs or folders: dicts of arrays and text.

        `index_cache` says where the positions of the lines are kept: "beside" the file, "off" or a folder.
        """

    @staticmethod
    @overload
    def arrow(table: _ArrowStream | _ArrowArray) -> MapDataset:
        """Rows of a table that exports itself through Arrow's C interface: pyarrow's, Polars', DuckDB's.

        Lists of numbers, also those of fixed size, are views of the table's memory.
        """

    @staticmethod
    @overload
    def arrow(paths: _Paths, *, columns: _Names | None = None, cache_bytes: int | None = None) -> MapDataset:
        """Rows of Arrow's IPC files and streams, Feather files, and folders that `datasets.save_to_disk` wrote.

        Lists of numbers, also those of fixed size, are views of files that are not compressed.
        """

    @staticmethod
    def lines(
        paths: _Paths, *, column: str = "text", blank_lines: bool = False, index_cache: _Path | None = None
    ) -> MapDataset:
        """Lines of text files, each a dict with one `column`."""

    @staticmethod
    def csv(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        delimiter: str | None = None,
        quote: str = '"',
        header: bool | None = None,
        names: _Names | None = None,
        types: Mapping[str, str] | None = None,
        nulls: _Names | None = None,
        infer_rows: int = 1000,
        index_cache: _Path | None = None,
    ) -> MapDataset:
        """Records of CSV files that are not compressed: dicts of numbers and text, a field a column.

        The first record of each file names the columns, unless `names` are given or `header` is false. `types` declares columns
        as "str", "bool", "int64", "float32" and so on; those of others are what their first `infer_rows` fields are. `delimiter`
        is found if it is not given; no quote is one if `quote` is "". `nulls` are the fields that are `None`.
        """

    @staticmethod
    def parquet(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        row_groups: Mapping[str, str | float] | None = None,
        cache_bytes: int | None = None,
    ) -> MapDataset:
        """Rows of Parquet files: dicts of arrays and text.

        `columns=["meta.url"]` reads one field of a struct. `row_groups={"column": "id", "min": 3, "max": 9}`, or with `equals`,
        leaves out the row groups that cannot hold such a row; a `filter` drops the other rows of those that can.
        """

    @staticmethod
    def array_record(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        cache_bytes: int | None = None,
        recover: bool = False,
    ) -> MapDataset:
        """Records of ArrayRecord files: `bytes`, or, if `field` names it, dicts of one field, which native stages take.

        With `examples` or `sequence_examples`, dicts of the features: see `parse_example` and `parse_sequence_example`.
        `cache_bytes` bounds what is kept of decoded chunks, where chunks hold several records. With `recover` files that
        were cut are read as far as their chunks are whole, and what was lost is logged.
        """

    @staticmethod
    def tfrecord(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        index_cache: _Path | None = None,
    ) -> MapDataset:
        """Records of TFRecord files that are not compressed: `bytes`, or dicts of one field if `field` names it.

        With `examples` or `sequence_examples`, dicts of the features: see `parse_example` and `parse_sequence_example`.
        `index_cache` says where the positions of the records are kept: "beside" the file, "off" or a folder.
        """

    @staticmethod
    def bagz(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        interleaved: bool = False,
    ) -> MapDataset:
        """Records of Bagz files: `bytes`, or, if `field` names it, dicts of one field, which native stages take.

        With `examples` or `sequence_examples`, dicts of the features: see `parse_example` and `parse_sequence_example`.
        `x@4.bagz` names four files. `interleaved` says that records were dealt out to the files in turn.
        """

    @staticmethod
    def megatron(paths: _Paths, *, by: Literal["sequence", "document"] = "sequence") -> MapDataset:
        """Token ids of Megatron's indexed datasets, each named by its `.idx`, its `.bin` or what these names share.

        Dicts of `tokens`, views of the file in the number type that it states, and of `mode` where there are modes.
        """

    @staticmethod
    def webdataset(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        decode: bool = False,
        url: bool = False,
        index_cache: _Path | None = None,
    ) -> MapDataset:
        """Samples of WebDataset's tar shards that are not compressed: dicts of `__key__` and a field for each extension.

        Fields are `bytes`, or, with `decode`, text, numbers, what JSON holds, and arrays of `.npy` and images
        (`uint8`, height × width × channels). `url` adds the path of the shard as `__url__`.
        """

    @staticmethod
    def mds(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        images: bool = True,
        check_hashes: bool = False,
        cache_bytes: int | None = None,
    ) -> MapDataset:
        """Samples of MDS folders, as MosaicML's streaming has them: dicts of arrays, text and bytes.

        Images of JPEG and PNG become arrays (height × width × channels), unless `images` is false. `cache_bytes` bounds
        what is kept of decompressed shards.
        """

    @overload
    @staticmethod
    def npy(*, path: _Path, field: str = "data") -> MapDataset: ...
    @overload
    @staticmethod
    def npy(paths: _Paths, *, field: str = "data") -> MapDataset:
        """Rows of `.npy` files along their first dimension: views of the files, of one type and shape."""

    @staticmethod
    def npz(paths: _Paths, *, rows: bool = False, cache_bytes: int | None = None) -> MapDataset:
        """Arrays of `.npz` archives: dicts, one for each archive, or, if `rows` are asked for, one for each row of its arrays.

        `cache_bytes` bounds what is kept of archives that are compressed, where rows are read.
        """

    @staticmethod
    def safetensors(
        paths: _Paths, *, columns: _Names | None = None, rows: bool = False, float8_as_u8: bool = False
    ) -> MapDataset:
        """Tensors of safetensors files: dicts, one for each file, or, if `rows` are asked for, one for each row of its tensors."""

    @staticmethod
    def crops(
        paths: _Paths, *, seq_len: int, layout: _Layout = "detect", with_next: bool = False
    ) -> MapDataset:
        """Files of token ids, one crop of `seq_len` after the other."""

    @staticmethod
    def random_crops(
        paths: _Paths,
        *,
        seq_len: int,
        seed: int,
        layout: _Layout = "detect",
        with_next: bool = False,
        epoch: int | None = None,
    ) -> MapDataset:
        """Files of token ids, crops of `seq_len` that start anywhere, without end unless `epoch` says how many."""

    @staticmethod
    def mix(datasets: Sequence[MapDataset], weights: Sequence[float] | None = None) -> MapDataset:
        """Elements of several datasets in proportion to the weights, in Grain's order."""

    @staticmethod
    def concatenate(datasets: Sequence[MapDataset]) -> MapDataset:
        """One dataset behind the other."""

    @staticmethod
    def zip(datasets: Sequence[MapDataset]) -> MapDataset:
        """Tuples of the elements of datasets of one length."""

    @staticmethod
    def select_from_datasets(datasets: Sequence[MapDataset], selection_map: _SelectionMap) -> MapDataset:
        """Elements of several datasets in an order of one's own: `selection_map[i]` is a dataset and an index in it."""

    def seed(self, seed: int) -> MapDataset:
        """The seed from which random stages behind it derive theirs, unless given their own."""

    def shuffle(self, seed: int | None = None) -> MapDataset:
        """Random order, another in every epoch, in constant memory; Grain's order."""

    def window_shuffle(self, window_size: int, seed: int | None = None) -> MapDataset:
        """Random order within windows, which stay where they are."""

    def slice(self, slice: _slice) -> MapDataset:
        """The elements of a slice: `ds.slice(slice(1, None, 2))` is `ds[1::2]`."""

    def shard(self, index: int, count: int) -> MapDataset:
        """Every `count`-th element from `index` on: the part of one host of `count`."""

    def select_indices(self, indices: Sequence[int]) -> MapDataset:
        """The elements at these indices, in that order."""

    def repeat(self, num_epochs: int | None = None, *, reseed_each_epoch: bool = True) -> MapDataset:
        """Several epochs as one, or epochs without end; each is shuffled anew unless told otherwise."""

    def map(self, transform: Callable[[Any], Any] | _Map) -> MapDataset:
        """Applies a function to every element. What it returns is the element, `None` too."""

    def map_with_index(self, transform: Callable[[int, Any], Any] | _MapWithIndex) -> MapDataset:
        """Applies a function to every index, which goes on over the epochs, and its element."""

    def random_map(
        self, transform: Callable[[Any, np.random.Generator], Any] | _RandomMap, *, seed: int | None = None
    ) -> MapDataset:
        """Applies a function to every element and random numbers that belong to its index; Grain's numbers.

        The generator is used again for the next element: do not keep it.
        """

    @overload
    def filter(self, transform: Callable[[Any], object] | _Filter, /) -> MapDataset: ...
    @overload
    def filter(
        self,
        *,
        column: str,
        min_length: int | None = None,
        max_length: int | None = None,
        min: float | None = None,
        max: float | None = None,
        equals: str | None = None,
    ) -> MapDataset:
        """Keeps the elements of which a function, or natively a condition on a column, holds.

        The length stays: a dropped element leaves an empty slot, which is `None` for `ds[i]` and skipped by a stream.
        """

    def flat_map(
        self, transform: Callable[[Any], Iterable[Any]] | _FlatMap, max_fan_out: int | None = None
    ) -> MapDataset:
        """Replaces every element by what a function makes of it, in `max_fan_out` slots; what is not filled is empty.

        `max_fan_out` may be an attribute of `transform`. More elements than slots are an error.
        """

    def slots(self) -> MapDataset:
        """`None` in place of every empty slot, so that there is an element for each index, as `batch` needs."""

    def drop_none(self) -> MapDataset:
        """Empty slots in place of elements that are `None`."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: Callable[[list[Any]], Any] | None = None,
    ) -> MapDataset:
        """Stacks consecutive elements; no batch reaches from one epoch into the next."""

    def tokenise(
        self,
        *,
        tokenizer: _Path,
        column: str | None = None,
        columns: _Names | None = None,
        into: _Names | None = None,
        keep_text: bool = False,
        prepend_bos: str | int | None = None,
        append_eos: str | int | None = None,
        max_len: int | None = None,
        overflow: Literal["truncate", "error"] = "truncate",
        special_in_text: bool = False,
        engine: Literal["auto", "fast", "compat"] = "auto",
    ) -> MapDataset:
        """Text to token ids, by a `tokenizer.json`."""

    def parse_example(self, features: bool | _Features = True, *, column: str = "record") -> MapDataset:
        """Records of bytes as the features of the `tf.train.Example` that each of them is.

        `features` declares them: `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids": "int64"}`. A dtype is
        "int64", "float32", "bytes" or "str"; without a shape the number of values varies. `True` infers them: numbers as
        arrays of one dimension, one string as `bytes`, several as a list.

        Elements are `bytes`, or dicts in which `column` holds them, whose place the features take.
        """

    def parse_sequence_example(
        self, *, context: _Features | None = None, sequences: _Features | None = None, column: str = "record"
    ) -> MapDataset:
        """Records of bytes as the features of the `tf.train.SequenceExample` that each of them is.

        Features of `sequences` with a shape are arrays of shape `[time, …]`, others lists with an array for each step; those
        that may be missing say `"allow_missing": True`. Without both declarations everything is inferred.
        """

    def select_columns(self, columns: _Names) -> MapDataset:
        """Only these columns."""

    def drop_columns(self, columns: _Names) -> MapDataset:
        """All but these columns."""

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> MapDataset:
        """Other names for columns: `rename(text="document")`."""

    def to_iter_dataset(self) -> IterDataset:
        """One epoch as a stream, empty slots skipped."""

    def to_iter(
        self,
        *,
        on_bad_record: Literal["error", "skip"] = "error",
        bad_record_limit: int | None = None,
        consecutive_bad_record_limit: int | None = None,
        warn: float | None = None,
        **thresholds: float | None,
    ) -> IterDataset:
        """One epoch as a stream, saying what becomes of bad records.

        `warn` and `raise` (which Python can only pass as `**{"raise": 0.99}`) are the shares that filters may drop.
        """

    def mp_prefetch(
        self,
        options: MpOptions | int | _WorkerOptions | None = None,
        worker_init_fn: Callable[[int, int], object] | None = None,
        *,
        num_workers: int | None = None,
        workers: int | Literal["auto"] = "auto",
        per_worker_buffer_size: int = 1,
        max_workers: int | None = None,
        threads_per_worker: int | None = None,
        ram_budget: int | str | None = None,
        worker_heap: int | str | None = None,
        max_element: int | str | None = None,
        deadline: float | None = 300.0,
        retries: int = 3,
        on_poison: Literal["error", "skip"] = "error",
        tune: bool = True,
    ) -> IterDataset:
        """Has everything in front of this evaluated by worker processes, under a RAM budget; the elements stay the same.

        See `MpOptions`, whose fields may be given here one by one. Native pipelines take one process with threads; Python
        functions go to several, by value if they are of a script or a notebook. What comes behind this runs here.
        `worker_init_fn` is called once in each worker that runs Python functions, with its number and how many there are.
        """

    def loader(
        self, *, threads: int = 0, buffer: int = 2, writable: bool = False, workers: bool = True
    ) -> DatasetIterator:
        """Starts a pass over one epoch; see `IterDataset.loader`."""

    def __iter__(self) -> DatasetIterator: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Any: ...
    @overload
    def __getitem__(self, index: _slice, /) -> MapDataset: ...

@final
class IterDataset:
    """A stream: read in order, small in state. Who evaluates it is chosen last, by `loader`, and changes no element."""

    @staticmethod
    def from_file(path: _Path) -> IterDataset:
        """The pipeline of a file in YAML, TOML or JSON."""

    @staticmethod
    def jsonl(
        paths: _Paths, *, columns: _Names | None = None, index_cache: _Path | None = None, lanes: int | None = None
    ) -> IterDataset:
        """Records of JSON Lines files in order; `.gz`, `.zst` and `.lz4` are read as streams, as many at a time as `lanes`."""

    @staticmethod
    def lines(
        paths: _Paths,
        *,
        column: str = "text",
        blank_lines: bool = False,
        index_cache: _Path | None = None,
        lanes: int | None = None,
    ) -> IterDataset:
        """Lines of text files in order; `.gz`, `.zst` and `.lz4` are read as streams, as many at a time as `lanes`."""

    @staticmethod
    def csv(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        delimiter: str | None = None,
        quote: str = '"',
        header: bool | None = None,
        names: _Names | None = None,
        types: Mapping[str, str] | None = None,
        nulls: _Names | None = None,
        infer_rows: int = 1000,
        index_cache: _Path | None = None,
        lanes: int | None = None,
    ) -> IterDataset:
        """Records of CSV files in order; `.gz`, `.zst` and `.lz4` are read as streams, as many at a time as `lanes`."""

    @staticmethod
    def tfrecord(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        index_cache: _Path | None = None,
        lanes: int | None = None,
    ) -> IterDataset:
        """Records of TFRecord files in order, `bytes`, or dicts of one field if `field` names it.

        With `examples` or `sequence_examples`, dicts of the features: see `parse_example` and `parse_sequence_example`.
        Compressed ones are read as streams, as many at a time as `lanes`.
        """

    @staticmethod
    def webdataset(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        decode: bool = False,
        url: bool = False,
        index_cache: _Path | None = None,
        lanes: int | None = None,
    ) -> IterDataset:
        """Samples of WebDataset's tar shards in order; compressed ones are read as streams, as many at a time as `lanes`."""

    @staticmethod
    def source(source: Iterable[Any]) -> IterDataset:
        """A stream written in Python: each `iter(source)` starts a pass.

        A pass with `get_state` and `set_state` is restored by them: its state is what JSON can hold. Without them it is
        read again up to the element that comes next.
        """

    @staticmethod
    def zip(datasets: Sequence[IterDataset], *, strict: bool = True) -> IterDataset:
        """Tuples of one element of each; unless `strict`, it ends with the shortest, which is an error otherwise."""

    @staticmethod
    def mix(datasets: Sequence[IterDataset], weights: Sequence[float] | None = None) -> IterDataset:
        """Elements of several streams in proportion to the weights, until one ends; in Grain's order."""

    @staticmethod
    def interleave(datasets: Sequence[IterDataset] | MapDataset, cycle_length: int) -> IterDataset:
        """One element of each of `cycle_length` streams in turn; one that ends makes room for the next.

        The streams are a list, or the elements of a `MapDataset`, made when their turn comes.
        """

    def seed(self, seed: int) -> IterDataset:
        """The seed from which random stages behind it derive theirs, unless given their own."""

    def window_shuffle(self, window_size: int, seed: int | None = None) -> IterDataset:
        """Random order within windows of the stream; Grain's order."""

    def repeat(self, num_epochs: int | None = None) -> IterDataset:
        """The whole stream several times, or without end; every epoch is the same."""

    def limit(self, count: int) -> IterDataset:
        """The first `count` elements."""

    def skip_bad_records(self, limit: int | None = None, consecutive: int | None = None) -> IterDataset:
        """Leaves out records that the stages before it cannot use, up to `limit` in all and `consecutive` in a row.

        They are counted in the report and in the state, and the first few are logged. Behind a stream of files, or the last
        stage that looks at each element on its own; in front of stages that join elements.
        """

    def cache(self) -> IterDataset:
        """Keeps every element in memory for the next epoch of a `repeat` behind it."""

    def map(self, transform: Callable[[Any], Any] | _Map) -> IterDataset:
        """Applies a function to every element. What it returns is the element, `None` too."""

    def map_with_index(self, transform: Callable[[int, Any], Any] | _MapWithIndex) -> IterDataset:
        """Applies a function to every element and its number in this stream."""

    def random_map(
        self, transform: Callable[[Any, np.random.Generator], Any] | _RandomMap, *, seed: int | None = None
    ) -> IterDataset:
        """Applies a function to every element and random numbers that belong to its place; Grain's numbers.

        The generator is used again for the next element: do not keep it.
        """

    @overload
    def filter(
        self, transform: Callable[[Any], object] | _Filter, /, *, warn: float | None = 0.9, **thresholds: float | None
    ) -> IterDataset: ...
    @overload
    def filter(
        self,
        *,
        column: str,
        min_length: int | None = None,
        max_length: int | None = None,
        min: float | None = None,
        max: float | None = None,
        equals: str | None = None,
    ) -> IterDataset:
        """Keeps the elements of which a function, or natively a condition on a column, holds.

        Where a filter drops the share `warn` of 1000 elements in a row, `logging` hears of it under the name `gristmill`, at
        most once a minute. `raise` (which Python can only pass as `**{"raise": 0.99}`) is the share from which on it is a
        `DataError`; the count is part of the state. `None` is no threshold. Filters straight behind a dataset of random access
        are watched together, with the thresholds that were given last.
        """

    def drop_none(self) -> IterDataset:
        """All elements but those that are `None`."""

    def flat_map(self, transform: Callable[[Any], Iterable[Any]] | _FlatMap) -> IterDataset:
        """Replaces every element by what a function makes of it: none, one or many."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: Callable[[list[Any]], Any] | None = None,
    ) -> IterDataset:
        """Stacks consecutive elements; the last batch may be smaller.

        The leaves of dicts, lists, tuples and dataclasses gain a dimension, as NumPy arrays; text of native sources
        becomes a list.
        """

    def rebatch(self, batch_size: int, *, remainder: Literal["keep", "drop"] = "keep") -> IterDataset:
        """Cuts batches anew into so many rows; what lies within one batch is not copied."""

    def tokenise(
        self,
        *,
        tokenizer: _Path,
        column: str | None = None,
        columns: _Names | None = None,
        into: _Names | None = None,
        keep_text: bool = False,
        prepend_bos: str | int | None = None,
        append_eos: str | int | None = None,
        max_len: int | None = None,
        overflow: Literal["truncate", "chunk", "error"] = "truncate",
        special_in_text: bool = False,
        engine: Literal["auto", "fast", "compat"] = "auto",
    ) -> IterDataset:
        """Text to token ids, by a `tokenizer.json`."""

    def parse_example(self, features: bool | _Features = True, *, column: str = "record") -> IterDataset:
        """Records of bytes as the features of the `tf.train.Example` that each of them is.

        `features` declares them: `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids": "int64"}`. A dtype is
        "int64", "float32", "bytes" or "str"; without a shape the number of values varies. `True` infers them: numbers as
        arrays of one dimension, one string as `bytes`, several as a list.

        Elements are `bytes`, or dicts in which `column` holds them, whose place the features take.
        """

    def parse_sequence_example(
        self, *, context: _Features | None = None, sequences: _Features | None = None, column: str = "record"
    ) -> IterDataset:
        """Records of bytes as the features of the `tf.train.SequenceExample` that each of them is.

        Features of `sequences` with a shape are arrays of shape `[time, …]`, others lists with an array for each step; those
        that may be missing say `"allow_missing": True`. Without both declarations everything is inferred.
        """

    def select_columns(self, columns: _Names) -> IterDataset:
        """Only these columns."""

    def drop_columns(self, columns: _Names) -> IterDataset:
        """All but these columns."""

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> IterDataset:
        """Other names for columns: `rename(text="document")`."""

    def first_fit_pack(
        self,
        *,
        length: _Lengths,
        num_packing_bins: int,
        seed: int = 0,
        shuffle_bins: bool = True,
        shuffle_bins_group_by_feature: str | None = None,
        max_sequences_per_bin: int | None = None,
        over_long: _OverLong = "error",
        padding: _Padding | None = None,
        align: _Lengths | None = None,
        meta_features: _Names | None = None,
        names: _OutputNames = "grain",
    ) -> IterDataset:
        """Sequences into rows, each into the first of `num_packing_bins` that has room."""

    def best_fit_pack(
        self,
        *,
        length: _Lengths,
        num_packing_bins: int,
        seed: int = 0,
        shuffle_bins: bool = True,
        shuffle_bins_group_by_feature: str | None = None,
        max_sequences_per_bin: int | None = None,
        over_long: _OverLong = "error",
        padding: _Padding | None = None,
        align: _Lengths | None = None,
        meta_features: _Names | None = None,
        names: _OutputNames = "grain",
    ) -> IterDataset:
        """Sequences into rows, each into the fullest of `num_packing_bins` that has room."""

    def window_pack(
        self,
        *,
        length: _Lengths,
        window: int | None = None,
        max_sequences_per_bin: int | None = None,
        over_long: _OverLong = "error",
        padding: _Padding | None = None,
        align: _Lengths | None = None,
        meta_features: _Names | None = None,
        names: _OutputNames = "grain",
    ) -> IterDataset:
        """Sequences into rows, chosen from a window of them."""

    def concat_then_split_pack(
        self,
        *,
        length: _Lengths,
        split_full_length_features: bool = True,
        positions: Literal["restart", "continue"] = "restart",
        bos_handling: Literal["do_nothing", "replace_first_token_with_bos"] = "do_nothing",
        bos_features: _Names | None = None,
        bos_token_id: int | None = None,
        padding: _Padding | None = None,
        meta_features: _Names | None = None,
        names: _OutputNames = "grain",
    ) -> IterDataset:
        """Sequences one behind the other, cut into rows."""

    def length_buckets(
        self,
        *,
        features: _Names,
        boundaries: Sequence[int],
        batch: int | Mapping[str, int | Sequence[int]],
        padding: _Padding | None = None,
        window: int | None = None,
        remainder: _Remainder = "keep",
        drop_over_long: bool = False,
    ) -> IterDataset:
        """Batches of sequences of nearly one length."""

    def mp_prefetch(
        self,
        options: MpOptions | int | _WorkerOptions | None = None,
        worker_init_fn: Callable[[int, int], object] | None = None,
        *,
        num_workers: int | None = None,
        workers: int | Literal["auto"] = "auto",
        per_worker_buffer_size: int = 1,
        max_workers: int | None = None,
        threads_per_worker: int | None = None,
        ram_budget: int | str | None = None,
        worker_heap: int | str | None = None,
        max_element: int | str | None = None,
        deadline: float | None = 300.0,
        retries: int = 3,
        on_poison: Literal["error", "skip"] = "error",
        tune: bool = True,
    ) -> IterDataset:
        """Has everything in front of this evaluated by worker processes, under a RAM budget; the elements stay the same.

        See `MpOptions`, whose fields may be given here one by one. Native pipelines take one process with threads; Python
        functions go to several, by value if they are of a script or a notebook. What comes behind this runs here.
        `worker_init_fn` is called once in each worker that runs Python functions, with its number and how many there are.
        """

    def loader(
        self, *, threads: int = 0, buffer: int = 2, writable: bool = False, workers: bool = True
    ) -> DatasetIterator:
        """Starts a pass.

        With `threads`, the elementwise part runs on so many threads and the rest on one more, `buffer` packets ahead of the
        consumer; without, everything runs when it is asked for. The elements are the same.

        With `writable`, native arrays come as ones that may be written to: as they are where nobody else views their
        memory, else as a copy. Arrays that Python functions made are handed on as they are.

        Without `workers`, this process evaluates what `mp_prefetch` would have worker processes evaluate: to look at a few
        elements, or at the state.
        """

    def __iter__(self) -> DatasetIterator: ...

@final
class DatasetIterator(Iterator[Any]):
    """A pass over a dataset, which knows where it is and where its time went.

    After an exception it ends; its state is then that before the element that failed.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def get_state(self) -> dict[str, Any]:
        """Where the consumer is, whatever was read ahead: positions, which JSON can hold."""

    def set_state(self, state: Mapping[str, Any] | str | bytes) -> None:
        """Goes to where `state` was taken: what `get_state` returned, or its JSON."""

    def start_prefetch(self) -> None:
        """Begins to read ahead, before the first `next`.

        With threads a pass has begun when it was started, and without them nobody could: there is nothing to do, and it
        can be said of any pass.
        """

    def save(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Orbax's protocol of objects that save themselves: see `gristmill.orbax`."""

    def load(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """The way back."""

    def report(self) -> Report:
        """Where the time went so far."""

    def close(self) -> None:
        """Ends the threads and lets go of everything that was read ahead."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...

@final
class Report:
    """Where the time of a run went: `str` gives the text for people, `as_dict` the numbers."""

    def _repr_html_(self) -> str: ...
    def as_dict(self) -> dict[str, Any]:
        """Every number of the report."""

_SinkFormat: TypeAlias = Literal["jsonl", "parquet", "array_record", "tfrecord", "arrow", "hugging_face", "webdataset", "mds", "npy", "safetensors", "tokens", "megatron"]

def sink(
    folder: _Path,
    format: _SinkFormat = "jsonl",
    *,
    compression: str | None = None,
    shard_bytes: int | None = None,
    shard_records: int | None = None,
    group: int | None = None,
    prefix: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    resume: bool = False,
    column: str | None = None,
    token_type: Literal["uint16", "uint32"] | None = None,
    bare: bool = False,
    byte_stream_split: bool = False,
    schema: dict[str, Any] | None = None,
    sequences: Sequence[str] | None = None,
) -> Sink:
    """Opens a folder, which is made if it is not there, to write shards of a format into.

    A shard ends behind the record with which its values have `shard_bytes` bytes in memory (256 MiB), or that is its
    `shard_records`th; it is named `prefix-00000`, … (`shard`). `compression` is `none`, `zstd:LEVEL`, `gzip:LEVEL`, `brotli:QUALITY`,
    `lz4` or `snappy`, as far as the format has it. `threads` (all cores) encode and compress, each a shard at a time, while at
    most `memory` bytes of elements (1 GiB) wait. `group` records are encoded together, in formats that have such a thing. With `resume`
    a folder that holds shards is continued behind them; without, it is refused. `column`, `token_type` and `bare` are for token files;
    `byte_stream_split` is for Parquet of activations and features, which takes a tenth less room so. `sequences` names the columns that
    are sequences in TFRecord and ArrayRecord: records are `tf.train.SequenceExample`s then, with a step for each item of a list or
    row of an array.

    All shards have the same columns, in formats that have columns: those of the first 1,024 records, or 8 MiB of them. `schema`
    declares some or all of them: `{"score": "float64", "ids": "int32[_]", "tags": {"list": "text"}}` for Parquet, Arrow and
    Hugging Face, `{"score": "float64", "image": "jpeg"}` in the encodings of MDS, `{"x": "float32[2, 3]"}` for NumPy and
    safetensors. Numbers of a declared column may come as another type: whole ones have to fit, others are rounded.

    Raises `ConfigError` for options and folders that do not fit, `StateError` for a folder that was begun with other options.
    """

@final
class Sink:
    """Writes elements into shards of a folder: at once, unless memory is used up; see `sink`.

    A context manager: leaving it finishes; where an exception is on its way, it stops behind the last whole shard.
    """

    @property
    def records(self) -> int:
        """Records so far, with those that were there already: a job that is resumed goes on with this one."""

    @property
    def state(self) -> Any:
        """The state that was given with the last record that was there already, or `None`."""

    @property
    def complete(self) -> bool:
        """Whether everything was there already."""

    def write(self, element: Mapping[str, Any], *, state: Any = None) -> None:
        """Writes an element: a dict of arrays, numbers, text and bytes.

        Arrays are copied, unless they are read-only, as those of JAX are: then they are kept, and nothing may write to their memory
        (`array.flags.writeable = False` says so). `state`, what JSON can hold or a function that returns it, is kept with the last
        record of a shard: see `Sink.state`.

        Raises what went wrong with this or an earlier element, such as `DataError` with the number of the record.
        """

    def write_batch(self, batch: Mapping[str, Any]) -> None:
        """Writes each row of a batch: its arrays without their leading dimension."""

    def write_all(self, elements: Iterable[Mapping[str, Any]]) -> None:
        """Writes all elements of an iterator; one with `get_state` and `set_state`, as a loader is, goes on where the folder ends."""

    def finish(self) -> SinkReport:
        """Writes what is left, waits until all is on the disk, and says that there is nothing to come."""

    def stop(self) -> SinkReport:
        """Waits until the shards that are whole are on the disk, and leaves it at that."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class SinkReport:
    """What a sink did: `str` gives the text for people, `as_dict` the numbers."""

    def as_dict(self) -> dict[str, Any]:
        """Every number of the report; `wait_share` is the share of the time that writing waited for memory."""

@final
class Metrics:
    """How well a device was used: `str` gives the text for people, `as_dict` the numbers.

    Shares are of the time that counts, from 0 to 1. `utilisation` is AU as MLPerf Storage's benchmark computes it, `stall` the
    share for which the device stood still, `input_bound_share` the share that the loop spent in `next`, with the words of
    TensorFlow's profiler for it in `input_bound`: `not`, `moderately` (from 5 %) or `highly` (from 20 %).
    """

    @staticmethod
    def of(
        steps: Sequence[tuple[float, float, float, float, int]], wall: float, exclude_first: int = 1
    ) -> Metrics | None:
        """What the steps of a loop say that took `wall` seconds; `None` if none is left without the excluded ones.

        Of each step: when its batch was asked for and arrived, when the device could begin and was done, all in seconds since
        the start of the loop, and how many samples it had.
        """

    @property
    def verdict(self) -> str:
        """What they mean, in a sentence."""

    def beside(self, resident: Metrics) -> Metrics:
        """The same with `au_synth`, the speed as a share of that of `resident`: a loop over one batch that stays in memory."""

    def as_dict(self) -> dict[str, Any]:
        """Every number."""

@final
class TfRecordReader:
    """Reads the records of one TFRecord file, compressed or not, and goes to any of them by its byte."""

    def __new__(cls, path: _Path) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def seek(self, byte: int) -> None:
        """Goes to the record that begins at `byte`, of what is decompressed; ValueError if none begins there."""

    def tell(self) -> int:
        """Where the next record begins, in what is decompressed."""

@final
class Lease:
    """The memory of an array, lent read-only to a consumer of DLPack that never writes to it, as JAX never does.

    It is the array's own where that is gristmill's, and else a copy. A consumer that asks for version 1.0 of the protocol
    is told that the memory is read-only; one that does not could not be told. Whoever lets go of it needs no interpreter.
    """

    def __new__(cls, array: np.ndarray[Any, Any]) -> Self: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...

@final
class RecordBatch:
    """A batch as Arrow's record batch: its columns view the memory of the arrays wherever that is gristmill's own.

    Truth values, text, bytes and lists of different lengths are copied, as Arrow lays them out in another way; arrays of
    more dimensions become lists of fixed size.
    """

    def __new__(cls, batch: Mapping[str, Any]) -> Self: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __len__(self) -> int: ...

@final
class RecordBatchStream:
    """Batches as Arrow's stream of record batches, which can be read once.

    The first of them says what columns there are. They are made when they are asked for.
    """

    def __new__(cls, batches: Iterable[Mapping[str, Any]]) -> Self: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
