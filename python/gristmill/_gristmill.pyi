# Written by `python/stub.py` from `python/skeleton.pyi` and the extension, and not by hand.

from builtins import slice as _slice
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import GenericAlias, TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, final, overload

import numpy as np
from typing_extensions import TypeVar

from gristmill._hosts import Guard
from gristmill._options import MpOptions

__version__: str
# Whether it was built for speed: figures of other builds say nothing.
__optimised__: bool

# What a dataset yields: `gm.MapDataset[int]`. Where it is not said it may be anything.
_T_co = TypeVar("_T_co", covariant=True, default=Any)
_T = TypeVar("_T")
_U = TypeVar("_U")
_R = TypeVar("_R")
_In_contra = TypeVar("_In_contra", contravariant=True)
_Out_co = TypeVar("_Out_co", covariant=True)

def cli(arguments: Sequence[str], interpreter: str) -> int:
    """Runs a command line, and returns the exit code.

    Args:
        arguments: The program's name and the arguments, as in `sys.argv`.
        interpreter: The path of the Python interpreter of workers.
    """

def index_shuffle(index: int, max_index: int, seed: int, rounds: int) -> int:
    """Returns the place of `index` in Grain's permutation of `0..=max_index`.

    Args:
        index: From 0 to `max_index`.
        max_index: The highest index.
        seed: From 0 to 2^32 - 1.
        rounds: Rounds of the cipher; Grain takes 4.

    Raises:
        ValueError: `index` is above `max_index`.
    """

# Where paths are taken: files, folders, globs and URLs.
_Path: TypeAlias = str | PathLike[str]
_Paths: TypeAlias = _Path | Sequence[_Path]

class _Source(Protocol[_Out_co]):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> _Out_co: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class _HuggingFace(Protocol):
    """A `datasets.Dataset`."""
    @property
    def data(self) -> Any: ...
    @property
    def features(self) -> Any: ...

class _SelectionMap(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[int, int]: ...

class _WorkerOptions(Protocol):
    @property
    def num_workers(self) -> int: ...

class _Map(Protocol[_In_contra, _Out_co]):
    def map(self, element: _In_contra, /) -> _Out_co: ...

class _MapWithIndex(Protocol[_In_contra, _Out_co]):
    def map_with_index(self, index: int, element: _In_contra, /) -> _Out_co: ...

class _RandomMap(Protocol[_In_contra, _Out_co]):
    def random_map(self, element: _In_contra, rng: np.random.Generator, /) -> _Out_co: ...

class _Filter(Protocol[_In_contra]):
    def filter(self, element: _In_contra, /) -> object: ...

class _FlatMap(Protocol[_In_contra, _Out_co]):
    def flat_map(self, element: _In_contra, /) -> Iterable[_Out_co]: ...

class _Scan(Protocol[_In_contra, _Out_co]):
    def scan(self, state: Any, element: _In_contra, /) -> tuple[Any, _Out_co]: ...

@final
class MapDataset(Generic[_T_co]):
    """A dataset with random access: `ds[i]` and `len(ds)`. Elements are shuffled and sharded by index, and evaluated
    in any order.
    """

    @staticmethod
    def jsonl(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        repeated_names: Literal["last", "error"] = "last",
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        columns: str | Sequence[str] | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the records of JSON Lines files. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream.

        Elements are dicts of arrays, numbers, text and lists.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.jsonl`) or URLs of any of these; one or a
                list.
            repeated_names: What becomes of a record in which an object has a name twice, among the columns that are
                read: the last value stands, and the report counts such records, or it is a bad record.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            columns: The columns to read, all of them by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def json(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        columns: str | Sequence[str] | None = None,
        repeated_names: Literal["last", "error"] = "last",
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the records of JSON files, each an array of objects (`[{…}, {…}]`).

        Elements are dicts of arrays, numbers, text and lists.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.json`) or URLs of any of these; one or a
                list.
            columns: The columns to read, all of them by default.
            repeated_names: What becomes of a record in which an object has a name twice, among the columns that are
                read: the last value stands, and the report counts such records, or it is a bad record.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def lines(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        column: str = "text",
        blank_lines: bool = False,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the lines of text files, without line ends. Compressed files (`.gz`, `.zst`, `.lz4`) are a
        stream.

        Elements are dicts with one column of text.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.txt`) or URLs of any of these; one or a
                list.
            column: The name of the column of text.
            blank_lines: Whether lines of nothing but white space are records, too; only of files that are not
                compressed.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def csv(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        delimiter: str | None = None,
        quote: str | None = None,
        header: bool | None = None,
        names: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        nulls: str | Sequence[str] | None = None,
        infer_rows: int = 1000,
        types: Mapping[str, str] | None = None,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the records of CSV files. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream.

        Elements are dicts of numbers and text, with an entry for each column.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.csv`) or URLs of any of these; one or a
                list.
            delimiter: One character; found in the first records if it is not given.
            quote: The character around fields that hold delimiters, `"` by default; empty text for none.
            header: Whether the first record of each file names the columns; so it does by default, unless `names` are
                given.
            names: The names of the columns, if the files do not have them.
            columns: The columns to read, all of them by default.
            nulls: Fields that are read as null.
            infer_rows: Records by which the types of columns are inferred.
            types: Types of columns: `str`, `bool`, `int64`, `float32` and so on. The types of other columns are
                inferred.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def parquet(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        cache_bytes: int | str = "256MiB",
        row_groups: Mapping[str, str | float] | None = None,
        columns: str | Sequence[str] | None = None,
        hive_partitioning: bool | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the rows of Parquet files.

        Elements are dicts of arrays, numbers, text, lists and dicts.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.parquet`) or URLs of any of these; one or
                a list.
            cache_bytes: Memory for decoded row groups that are kept. In bytes, or as text such as `"512MiB"`.
            row_groups: Leaves out the row groups whose statistics exclude such a row: `{"column": "id", "min": 3,
                "max": 9}`, or `equals` in place of the limits. All given conditions must hold. A `filter` drops the
                other rows of the row groups that are read.
            columns: The columns to read, all of them by default; `meta.url` is one field of a struct.
            hive_partitioning: Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them: by
                default the folders between a folder of `paths` and its files, if true all folders of a path, if false
                none.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def array_record(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        field: str | None = None,
        examples: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequence_examples: bool | Mapping[str, Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]]] | None = None,
        cache_bytes: int | str = "256MiB",
        recover: bool = False,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[Any]:
        """Reads the records of ArrayRecord files.

        A record is `bytes` without `field`, `examples` and `sequence_examples`, and a dict with any of
        them.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.array_record`) or URLs of any of these;
                one or a list.
            field: The name of the column with the bytes of a record. By default, pipeline files get the column
                `record`, and Python gets `bytes`.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            cache_bytes: Memory for decoded chunks, if chunks hold several records. In bytes, or as text such as
                `"512MiB"`.
            recover: Read a file that was cut off up to its last whole chunk. The loss is logged.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def tfrecord(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        field: str | None = None,
        examples: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequence_examples: bool | Mapping[str, Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]]] | None = None,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[Any]:
        """Reads the records of TFRecord files. Compressed files (`.gz`, `.zlib`) are a stream.

        A record is `bytes` without `field`, `examples` and `sequence_examples`, and a dict with any of
        them.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tfrecord`) or URLs of any of these; one or
                a list.
            field: The name of the column with the bytes of a record. By default, pipeline files get the column
                `record`, and Python gets `bytes`.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def bagz(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        field: str | None = None,
        examples: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequence_examples: bool | Mapping[str, Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]]] | None = None,
        interleaved: bool = False,
        compressed: bool | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[Any]:
        """Reads the records of Bagz files; `x@4.bagz` names four files.

        A record is `bytes` without `field`, `examples` and `sequence_examples`, and a dict with any of
        them.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.bagz`) or URLs of any of these; one or a
                list.
            field: The name of the column with the bytes of a record. By default, pipeline files get the column
                `record`, and Python gets `bytes`.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            interleaved: Whether the records were dealt out to the files in turn.
            compressed: Whether records are frames of zstd; by default, the name of the file decides.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def webdataset(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        decode: bool = False,
        url: bool = False,
        columns: str | Sequence[str] | None = None,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the samples of WebDataset's tar shards: `__key__` and a column for each extension. Compressed
        shards are a stream.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tar`) or URLs of any of these; one or a
                list.
            decode: Decode fields by their extension: text, numbers, what JSON holds, arrays of `.npy`, images (`uint8`,
                height × width × channels). Without it they are bytes.
            url: Add the path of the shard as the column `__url__`.
            columns: The extensions to read, all of them by default.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def mds(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        images: bool = True,
        check_hashes: bool = False,
        cache_bytes: int | str = "512MiB",
        columns: str | Sequence[str] | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the samples of MDS folders, as MosaicML's streaming has them.

        Elements are dicts of arrays, numbers, text and bytes.

        Args:
            paths: Folders or their URLs; one or a list.
            images: Decode JPEG and PNG to arrays (`uint8`, height × width × channels); else they are bytes.
            check_hashes: Hold each shard against the hash that its index has of it.
            cache_bytes: Memory for decompressed shards that are kept. In bytes, or as text such as `"512MiB"`.
            columns: The columns to read, all of them by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def npy(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
        *,
        path: str | PathLike[str] | None = None,
        field: str = "data",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the rows of `.npy` files along their first dimension.

        Elements are dicts of one array, a view of the file.

        Args:
            path: A single file, in place of `paths`.
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.npy`) or URLs of any of these; one or a
                list. All have one type and one shape of a row.
            field: The name of the column.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def npz(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        max_bytes: int | str | None = None,
        rows: bool = False,
        cache_bytes: int | str = "256MiB",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the arrays of `.npz` archives: a record for each archive, or for each row of its arrays.

        Elements are dicts of arrays.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.npz`) or URLs of any of these; one or a
                list.
            max_bytes: Memory that the arrays of an archive may become when inflated; 64 times its file by default, and
                256 MiB at least. In bytes, or as text such as `"512MiB"`.
            rows: A record for each row, along the first dimension that all arrays of an archive share.
            cache_bytes: Memory for decompressed archives that are kept; only with `rows=True`. In bytes, or as text
                such as `"512MiB"`.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def safetensors(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        rows: bool = False,
        columns: str | Sequence[str] | None = None,
        float8_as_u8: bool = False,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the tensors of safetensors files: a record for each file, or for each row of its tensors.

        Elements are dicts of arrays. In Python, tensors of 8-bit floats have the types of `ml_dtypes`,
        unless `float8_as_u8` is true.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.safetensors`) or URLs of any of these; one
                or a list.
            rows: A record for each row, along the first dimension that all tensors of a file share.
            columns: The tensors to read, all of them by default.
            float8_as_u8: Read tensors of 8-bit floats as their bytes (`uint8`).
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def megatron(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        by: Literal["sequence", "document"] = "sequence",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the token ids of Megatron's indexed datasets.

        Elements are dicts of `tokens`, a view of the file in its integer type, and of `mode` if the dataset
        has modes.

        Args:
            paths: Datasets, each by its `.idx`, its `.bin` or what these names share; one or a list.
            by: Contents of a record.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def tokens(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        layout: Literal["detect", "llm_c", "u16", "u32"] = "detect",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads files of token ids: a record for each file, all of its ids.

        Elements are dicts of `tokens`.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.bin`) or URLs of any of these; one or a
                list.
            layout: Layout of the ids: as written by llm.c, or bare `"u16"` or `"u32"`, little-endian; recognised by
                default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def crops(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        seq_len: int,
        layout: Literal["detect", "llm_c", "u16", "u32"] = "detect",
        with_next: bool = False,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads files of token ids, one crop after the other.

        Elements are dicts of `tokens`.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.bin`) or URLs of any of these; one or a
                list.
            seq_len: Tokens in a crop; the rest at the end of a file is left out.
            layout: Layout of the ids: as written by llm.c, or bare `"u16"` or `"u32"`, little-endian; recognised by
                default.
            with_next: Add the token after each crop: `seq_len + 1` ids, of which neighbours share the last.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def random_crops(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        seq_len: int,
        seed: int,
        layout: Literal["detect", "llm_c", "u16", "u32"] = "detect",
        with_next: bool = False,
        epoch: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads files of token ids, crops that start anywhere.

        Elements are dicts of `tokens`.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.bin`) or URLs of any of these; one or a
                list.
            seq_len: Tokens in a crop.
            seed: The seed of their starts, from 0 to 2^32 - 1.
            layout: Layout of the ids: as written by llm.c, or bare `"u16"` or `"u32"`, little-endian; recognised by
                default.
            with_next: Add the token after each crop: `seq_len + 1` ids.
            epoch: How many crops an epoch has; without it there is no end.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def range(start: int, stop: int | None = None, step: int = 1) -> MapDataset[int]:
        """Counts integers, as Python's `range`.

        Args:
            start: The first number. If `start` is the only argument, it is the end, and the first number is 0.
            stop: The end, which is excluded.
            step: The difference of neighbours; not 0.

        Raises:
            ConfigError: `step` is 0.
        """

    @staticmethod
    def source(source: _Source[_T]) -> MapDataset[_T]:
        """Reads the records of an object with `__len__` and `__getitem__`. Index `i` reads record `i % len(source)`.

        A source with `__getitems__` receives a list of indices, and returns a record for each. If `__getitems__` raises
        an exception, the records are read individually. An array is copied if it is writable, and either the source
        keeps a reference to it or it is a view.

        Args:
            source: A list, an array or a dataset of another library. Threads of the loader call it concurrently.

        Raises:
            TypeError: The object has no `__getitem__` or no length.
        """

    @staticmethod
    def computed(source: _Source[_T | None], *, dense: bool = False) -> MapDataset[_T]:
        """Computes an element for each index by an object with `__len__` and `__getitem__`. `None` means that the index
        has no element.

        Unlike `source`, the object receives the indices of later epochs unchanged.

        Args:
            source: The object. Its length is the length of an epoch.
            dense: Promises an element for each index.

        Raises:
            TypeError: The object has no `__getitem__` or no length.
        """

    @staticmethod
    def arrow(
        paths: _Paths | _ArrowStream | _ArrowArray | _HuggingFace,
        *,
        cache_bytes: int | str = "256MiB",
        columns: str | Sequence[str] | None = None,
        hive_partitioning: bool | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the rows of files of Arrow IPC (Feather) and its streams, and of folders that
        `datasets.save_to_disk` wrote.

        In Python, `paths` may be a table in memory: any object that exports itself through Arrow's C
        interface, such as tables of pyarrow, Polars, DuckDB and pandas. Only `columns` applies to a table.
        A `datasets.Dataset` is read with the results of its `shuffle`, `select` and `filter`; its table
        alone (`dataset.data`) lacks these, and is refused.

        Elements are dicts of arrays, numbers, text and lists. Lists of numbers are views of the table's
        memory, or of files that are not compressed.

        Args:
            paths: Files, folders, globs or URLs; one or a list.
            cache_bytes: Memory for decompressed batches that are kept. In bytes, or as text such as `"512MiB"`.
            columns: The columns to read, all of them by default.
            hive_partitioning: Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them: by
                default the folders between a folder of `paths` and its files, if true all folders of a path, if false
                none.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
            TypeError: The argument is neither paths nor a table. The message names the conversion.
        """

    @staticmethod
    def mix(datasets: Sequence[MapDataset[_T]], weights: Sequence[float] | None = None) -> MapDataset[_T]:
        """Takes elements of several datasets in proportion to weights, in Grain's order.

        The mix ends before the first index at which a dataset has too few elements.

        Args:
            datasets: The datasets.
            weights: A number for each dataset; all equal by default.

        Raises:
            ConfigError: The numbers of weights and datasets differ, or a weight is not above 0.
        """

    @staticmethod
    def concatenate(datasets: Sequence[MapDataset[_T]]) -> MapDataset[_T]:
        """Concatenates datasets.

        Args:
            datasets: The datasets.

        Raises:
            ConfigError: The list is empty.
        """

    @staticmethod
    def zip(datasets: Sequence[MapDataset[Any]]) -> MapDataset[tuple[Any, ...]]:
        """Makes tuples of the elements of datasets with equal lengths.

        Args:
            datasets: The datasets.

        Raises:
            ConfigError: The list is empty, or lengths differ.
        """

    @staticmethod
    def select_from_datasets(datasets: Sequence[MapDataset[_T]], selection_map: _SelectionMap) -> MapDataset[_T]:
        """Takes elements of several datasets in a custom order.

        Args:
            datasets: The datasets.
            selection_map: `selection_map[i]` is the number of a dataset and an index in it. All entries are read at
                once.

        Raises:
            ValueError: The map is empty.
        """

    def shuffle(self, seed: int | None = None) -> MapDataset[_T_co]:
        """Puts the elements in a random order, another in every epoch, in constant memory; Grain's order.

        A slice of a shuffled dataset has other elements in each epoch. For training and validation sets,
        use `split` before `shuffle`.

        Args:
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: There is no seed, neither here nor in a `seed` before the stage.
        """

    def block_shuffle(
        self,
        window_blocks: int,
        seed: int | None = None,
        *,
        block_size: int | None = None,
    ) -> MapDataset[_T_co]:
        """Puts the blocks of the source in a random order, another in every epoch, and then the elements of
        each window of blocks.

        The stage is for sources that fetch or decode many records together, such as row groups of Parquet
        in an object store. Each block is read once per epoch. At most two windows of blocks are in memory.

        Args:
            window_blocks: Blocks whose elements are shuffled together. The elements of at most two windows are in
                memory.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.
            block_size: Elements of a block; by default the row groups of Parquet, record batches of Arrow, chunks of
                ArrayRecord or shards of MDS.

        Raises:
            ConfigError: The window is empty, the blocks are not known, the cache of the source has no room
                for the window (the message names the largest possible window), or there is no seed, neither
                here nor in a `seed` before the stage.
        """

    def slice(self, slice: _slice) -> MapDataset[_T_co]:
        """Takes the elements of a slice: `ds.slice(slice(1, None, 2))` is `ds[1::2]`.

        A slice of a shuffled dataset has other elements in each epoch. Parts of `split` share no elements.

        Args:
            slice: The slice.

        Raises:
            ConfigError: The step is 0.
        """

    @overload
    def split(
        self, sizes: Sequence[float], take: None = None, *, seed: int = 0, shuffle: bool = True
    ) -> list[MapDataset[_T_co]]: ...
    @overload
    def split(self, sizes: Sequence[float], take: int, *, seed: int = 0, shuffle: bool = True) -> MapDataset[_T_co]:
        """Divides the elements into parts that share no element in any epoch: `train, validation = ds.split([0.9, 0.1])`.

        A part has its elements in every epoch. Shuffle and repeat the parts, not the dataset before them. Every epoch
        of a part reads the first epoch of the stages before it, so use `random_map` after `split`.

        Args:
            sizes: The sizes of all parts: fractions, which are below 1, or numbers of elements.
            take: The index of the part to return; by default, a list of all parts is returned.
            seed: The seed by which elements are drawn for parts, from 0 to 2^32 - 1. The `seed` of the pipeline does
                not change it.
            shuffle: Whether elements are drawn at random. If false, the first part has the first elements, and so on.

        Raises:
            ConfigError: A size is 0 or less, fractions and numbers are mixed, the sizes exceed the dataset, a part is
                empty or not listed, or the dataset has no end.
        """

    def shard(self, index: int, count: int) -> MapDataset[_T_co]:
        """Takes every `count`-th element from `index` on: the part of one host of `count`.

        Args:
            index: Which part, from 0 on.
            count: How many parts there are.

        Raises:
            ConfigError: There is no such part.
        """

    def select_indices(self, indices: Sequence[int]) -> MapDataset[_T_co]:
        """Takes the elements at these indices, in that order.

        Args:
            indices: Indices from 0 on. Repeated indices are permitted.

        Raises:
            ConfigError: An index is past the end.
        """

    def slots(self) -> MapDataset[Any]:
        """Replaces empty slots by `None`, so that each index has an element, as `batch` requires."""

    def to_iter_dataset(self) -> IterDataset[_T_co]:
        """Makes a stream of one epoch. Empty slots are skipped."""

    def to_iter(
        self,
        *,
        on_bad_record: Literal["error", "skip"] = "error",
        bad_record_limit: int | None = None,
        consecutive_bad_record_limit: int | None = None,
        warn: float | None = None,
        **thresholds: float | None,
    ) -> IterDataset[_T_co]:
        """Makes a stream of one epoch, with a policy for bad records and thresholds for filters.

        Args:
            on_bad_record: `"skip"` skips records that sources and native stages cannot use, and counts them in the
                report and the state.
            bad_record_limit: The greatest number of skipped records; no limit by default.
            consecutive_bad_record_limit: The greatest number of consecutive skipped records; no limit by default.
            warn: The share of 1000 elements that filters may drop before a warning is logged; `0.9` by default.
            thresholds: `raise`, given as `**{"raise": 0.99}`: the share that is an error; no share by default.

        Raises:
            ConfigError: A limit is given, and records are not skipped.
        """

    def __len__(self) -> int:
        """Returns the number of elements, or slots, of one epoch."""

    @overload
    def __getitem__(self, index: int, /) -> _T_co | Any: ...
    @overload
    def __getitem__(self, index: _slice, /) -> MapDataset[_T_co]:
        """Reads the element at an index, or takes a slice. An empty slot is `None`. An index past the end is in a later epoch.

        Args:
            index: An index, from the end if it is negative, or a slice.

        Raises:
            IndexError: A negative index is before the first element.
        """

    def seed(self, seed: int) -> MapDataset[_T_co]:
        """Sets the seed from which random stages behind it derive theirs, unless they are given their own.

        Args:
            seed: From 0 to 2^32 - 1.

        Raises:
            ConfigError: The seed is not from 0 to 2^32 - 1.
        """

    def window_shuffle(self, window_size: int, seed: int | None = None) -> MapDataset[_T_co]:
        """Puts the elements of each window in a random order; the windows stay where they are.

        A stream holds a window in memory, and reads the window again after a resume.

        Args:
            window_size: Elements in a window; of a stream they are held in memory.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: The window is empty, or there is no seed, neither here nor in a `seed` before the
                stage.
        """

    def repeat(self, num_epochs: int | None = None, *, reseed_each_epoch: bool = True) -> MapDataset[_T_co]:
        """Makes several epochs one, or goes on without end. Before `to_iter` epochs differ, behind it they are
        the same.

        A slice of a shuffled dataset has other elements in each epoch: see `split`. A loader of such a
        repeat logs a warning.

        Args:
            num_epochs: How many epochs; without end by default.
            reseed_each_epoch: Whether each is shuffled anew; only before `to_iter`.

        Raises:
            ConfigError: `num_epochs` is 0.
        """

    def map(self, transform: Callable[[_T_co], _U] | _Map[_T_co, _U]) -> MapDataset[_U]:
        """Applies a function to every element. The returned value is the element, also if it is `None`.

        A writable array, dict, list or byte array is copied if the function keeps a reference to it. Other values stay
        in place.

        In a stream without random access, one thread iterates, and all threads of the loader apply the function.

        Args:
            transform: A function of an element, or an object with a method `map`.

        Raises:
            TypeError: The transform is neither.
        """

    def map_with_index(self, transform: Callable[[int, _T_co], _U] | _MapWithIndex[_T_co, _U]) -> MapDataset[_U]:
        """Applies a function to every element and its index. The index of a `MapDataset` continues over epochs. In a
        stream it counts from 0.

        Args:
            transform: A function of the index and the element, or an object with a method `map_with_index`.

        Raises:
            TypeError: The transform is neither.
        """

    def random_map(
        self,
        transform: Callable[[_T_co, np.random.Generator], _U] | _RandomMap[_T_co, _U],
        *,
        seed: int | None = None,
    ) -> MapDataset[_U]:
        """Applies a function to every element and random numbers; Grain's numbers.

        The numbers belong to the index of the element, or to its position in a stream. Threads, workers and a resume do
        not change them. The generator is used again for the next element: do not keep it.

        Args:
            transform: A function of the element and a `numpy.random.Generator`, or an object with a method
                `random_map`.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: There is no seed, neither here nor in a `seed` before the stage.
        """

    def filter(
        self,
        transform: Callable[[_T_co], object] | _Filter[_T_co] | None = None,
        /,
        *,
        column: str | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        min: float | None = None,
        max: float | None = None,
        equals: str | None = None,
    ) -> MapDataset[_T_co]:
        """Keeps the elements for which a function returns true, or for which a native condition on a column holds.

        The length does not change. A dropped element leaves an empty slot: `ds[i]` is `None`, and a stream skips the
        slot.

        Args:
            transform: A function of an element that returns a true value for elements to keep, or an object with a
                method `filter`.
            column: The column of the native condition. All given conditions must hold.
            min_length: The least length: bytes of text, rows of an array.
            max_length: The greatest length: bytes of text, rows of an array.
            min: The least number.
            max: The greatest number.
            equals: The exact text.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def flat_map(
        self,
        transform: Callable[[_T_co], Iterable[_U]] | _FlatMap[_T_co, _U],
        max_fan_out: int | None = None,
    ) -> MapDataset[_U]:
        """Replaces every element by the elements that a function returns, in `max_fan_out` slots. Slots without an element
        are empty.

        Args:
            transform: A function of an element that returns elements, or an object with a method `flat_map`.
            max_fan_out: The greatest number of elements for one element; by default, the attribute of `transform`.

        Raises:
            TypeError: There is no `max_fan_out`.
            DataError: The function returned more elements.
        """

    def drop_none(self) -> MapDataset[_T_co]:
        """Replaces elements that are `None` by empty slots."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: Callable[[list[Any]], Any] | None = None,
        *,
        remainder: Literal["keep", "drop"] | None = None,
    ) -> MapDataset[Any]:
        """Stacks consecutive elements into batches, by index.

        Batches have fixed indices, so any thread makes any batch. No batch has elements of two epochs.

        Args:
            batch_size: Elements in a batch.
            drop_remainder: Drops the last elements if they do not fill a batch, as `remainder="drop"` does. The name is
                Grain's.
            batch_fn: Makes the batch of a list of elements. Without it, elements are stacked.
            remainder: Policy for the last elements of an epoch if they do not fill a batch: `"keep"`, the default,
                makes a smaller batch; `"drop"` drops them. Only streams fill batches up.

        Raises:
            ConfigError: `batch_size` is 0, options contradict each other, or an element may be missing (see `slots`).
            ValueError: Elements differ in structure or shape. The message names the place.
        """

    def mp_prefetch(
        self,
        options: MpOptions | int | _WorkerOptions | None = None,
        worker_init_fn: Callable[[int, int], object] | None = None,
        *,
        num_workers: int | None = None,
        workers: int | Literal["auto"] = "auto",
        per_worker_buffer_size: int = 1,
        deadline: float | None = 300.0,
        max_workers: int = 1,
        threads_per_worker: int | None = None,
        ram_budget: int | str | None = None,
        worker_heap: int | str | None = None,
        max_element: int | str | None = None,
        retries: int = 3,
        on_poison: Literal["error", "skip"] = "error",
        tune: bool = True,
    ) -> IterDataset[_T_co]:
        """Evaluates all stages before it in worker processes, within a memory budget. The elements do not
        change.

        A native pipeline takes one process with threads. Python functions run in several processes;
        functions of a script or a notebook are sent by value. Stages after `mp_prefetch` run in this
        process. Functions and filters directly after compressed files that are read as `lanes` belong to
        the lanes and run in the workers.

        This process reads a stream without random access, in order. Workers apply the functions of its
        `map`, `map_with_index`, `random_map`, `filter` and `flat_map` to chunks of elements, unless a call
        takes less than 20 µs.

        Args:
            options: `MpOptions`, Grain's options, or a number of workers. Fields of `MpOptions` may also be given as
                keyword arguments.
            worker_init_fn: Called once in each worker process that runs Python functions, with its number and the
                number of workers.
            num_workers: Worker processes; 0 evaluates on threads of this process. By default, a native pipeline has one
                process with a thread for each core. Other pipelines start with a process for each core, and tuning
                finds the number.
            workers: Alias of `num_workers`.
            per_worker_buffer_size: Elements or batches kept ready for each worker process.
            deadline: Seconds after which a worker process counts as hanging; `None` sets no limit.
            max_workers: Maximum number of worker processes if it is tuned.
            threads_per_worker: Threads of each worker process.
            ram_budget: Memory of worker processes, such as 2GiB [default: a quarter of what is available]. It includes
                the memory that they share with this process. It does not include what this process holds: the elements
                of a batch, a window or rows that are being packed.
            worker_heap: Private memory of each worker process [default: half of the budget, divided by the workers].
            max_element: Maximum size of an element or batch in shared memory [default: a quarter of the shared memory].
            retries: Worker processes that a range of elements may kill before the element that does so is searched.
            on_poison: What to do with an element that kills every worker process: `"error"` ends the run, `"skip"`
                leaves it out and counts it.
            tune: Whether the number of active threads follows the needs of the consumer.

        Raises:
            ConfigError: The options contradict each other, or do not fit the budget.
        """

    def loader(
        self,
        *,
        threads: int | Literal["auto"] = 0,
        writable: bool = False,
        accept_changes: bool = False,
        workers: bool = True,
        part: Part | tuple[int, int] | str | None = None,
        deal: Literal["even", "lanes"] | Deal = "even",
        guard: Guard = "auto",
        keys: str | PathLike[str] | None = None,
        metrics: str | int | None = None,
        buffer: int = 2,
        timeout: float | None = None,
        record_keys: bool = False,
        guard_timeout: float = 600,
        on_failed_element: Literal["error", "pad"] = "error",
        failed_element_limit: int | None = None,
        top: bool = False,
        record: str | PathLike[str] | None = None,
        trace: str | PathLike[str] | None = None,
    ) -> DatasetIterator[_T_co]:
        """Starts a pass over one epoch.

        Args:
            threads: Threads for the elementwise stages, in addition to a thread for the other stages. 0 evaluates in
                the thread of the consumer. `"auto"` starts with a thread for each core and tunes their number and the
                number of prefetched elements. The limit is 256 threads, which suits elements that wait for a disk or a
                network. `mp_prefetch` suits Python functions that compute.
            writable: Return native arrays as writable. An array is copied if others view its memory. Arrays from Python
                functions are returned unchanged.
            accept_changes: Accept a state of another pipeline in `set_state`, for example after a file was withdrawn or
                an argument was changed. Positions are taken as they are. The change is logged, and appears in the
                report and in all later states as `accepted_changes`. Stages after `to_iter` that hold positions must be
                unchanged.
            workers: Whether `mp_prefetch` starts processes. With `False`, this process evaluates everything, for
                example to look at a few elements or at the state.
            part: Part of the rows of each batch to deliver, such as `(3, 64)` for the fourth of 64 hosts. By default,
                all rows. A state does not depend on the part, so any part can continue from it.
            deal: How rows are dealt among parts: consecutive rows, rows by the index of their lane, or a `Deal` that
                balances their costs. Costs follow from the plan if rows are planned by keys and packed. Otherwise each
                host evaluates all rows.
            guard: How hosts compare their data: before the first batch, every 128 batches and at the end. A host that
                reads other data, or another pipeline, stops all of them. `"auto"` uses the store of JAX or PyTorch if
                the part comes from `gm.jax.part_for` or `gm.torch.part` and there are several processes. Otherwise,
                give a folder that all hosts see, `(folder, host, hosts)` if the part does not determine the host, or an
                object with `begin(part)`, `post(round, statement)` and `read(round)`. `None` compares nothing.
            keys: Folder of key files, by which a host plans the rows of all hosts and evaluates only its own.
                `make_keys` and `gristmill index --keys` write them.
            metrics: Address at which `GET /metrics` returns the figures of the pass as OpenMetrics text for Prometheus,
                such as `"127.0.0.1:9464"`. A port alone is reached from this machine only; 0 takes a free port, which
                `metrics_address` returns. Other users of this machine are refused, unless the address begins with
                `"everybody@"`.
            buffer: Batches kept ready for the consumer.
            timeout: Seconds after which a wait for an element is an error [default: no limit]. It needs threads or
                worker processes.
            record_keys: Whether missing key files are written during the run, for the next start. It applies without a
                part, or on the host of the first part.
            guard_timeout: Seconds after which a silent host is an error.
            on_failed_element: What to do if an element fails after its row was planned: `"error"` ends the run, `"pad"`
                delivers padding and counts it.
            failed_element_limit: Maximum number of elements that become padding [default: no limit].
            top: Whether `gristmill top` may look at the run. GRISTMILL_TOP=1 in the environment does the same.
            record: Recording of the run, a file for `gristmill report`. A recording of a run that was killed is read as
                well. An earlier recording is kept as NAME.1.ENDING.
            trace: Trace of the run, a file for ui.perfetto.dev and chrome://tracing. It is compressed if its name ends
                in .gz.

        Returns:
            The pass: an iterator, and a context manager that closes it.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            WorkerError: Worker processes cannot be started.
        """

    def explain(self, *, threads: int = 0, buffer: int = 2) -> Explanation:
        """Explains the pipeline: its stages, their memory, the parallel stages, and the first element.

        This process reads the first elements.

        Args:
            threads: Threads of the `loader` whose memory is estimated.
            buffer: Buffer of that loader.
        """

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of the first element, as a tree with the structure of the element.

        Reads the first element.

        The spec of an array is an `ArraySpec`. The spec of another value is its type. A list or tuple of equal specs
        has one entry.

        Raises:
            ConfigError: The dataset has no element.
        """

    def apply(self, transform: Callable[[MapDataset[_T_co]], _R]) -> _R:
        """Calls a function with this dataset and returns its result, so that custom stages fit in a chain.

        Args:
            transform: A function of a dataset.
        """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> DatasetIterator[_T_co]:
        """Starts a pass without threads: `loader()`."""

    def select_columns(self, columns: str | Sequence[str]) -> MapDataset[dict[str, Any]]:
        """Keeps only these columns, in this order.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def drop_columns(self, columns: str | Sequence[str]) -> MapDataset[dict[str, Any]]:
        """Keeps all but these columns.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> MapDataset[dict[str, Any]]:
        """Gives columns other names: old names and the new, `{"text": "document"}`.

        In Python, names are keyword arguments, too: `rename(text="document")`.

        Args:
            names: Entries whose names cannot be keywords.
            more: Entries by name.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def parse_example(
        self,
        features: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        *,
        column: str | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.Example` that each of them is.

        Elements are `bytes`, or dicts with the bytes in `column`, whose place the features take. A dtype is
        `int64`, `float32`, `bytes` or `str`. A feature without a shape has any number of values.

        Args:
            features: `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids": "int64"}` declares features.
                `True`, which is the default, infers them: numbers as arrays of one dimension, one string as bytes,
                several as a list.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is no `Example`, or lacks a feature.
        """

    def parse_sequence_example(
        self,
        *,
        context: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequences: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        column: str | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.SequenceExample` that each of them is;
        without both declarations everything is inferred.

        Args:
            context: Features of the whole, as `parse_example` declares them.
            sequences: Features of each step. Features with a shape become arrays of shape `[time, …]`, others lists
                with an array for each step. A feature that a step may lack has `{"allow_missing": True}`.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is no `SequenceExample`, or lacks a feature.
        """

    def tokenise(
        self,
        *,
        tokenizer: str | PathLike[str],
        overflow: Literal["truncate", "chunk", "error"] = "truncate",
        column: str | None = None,
        columns: str | Sequence[str] | None = None,
        into: str | Sequence[str] | None = None,
        prepend_bos: str | int | None = None,
        append_eos: str | int | None = None,
        max_len: int | None = None,
        keep_text: bool = False,
        special_in_text: bool = False,
        engine: Literal["auto", "fast", "compat"] = "auto",
    ) -> MapDataset[dict[str, Any]]:
        """Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.

        One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the
        place of their text, unless `keep_text` is true. `overflow="chunk"` needs a stream.

        Args:
            tokenizer: The path of the `tokenizer.json`.
            overflow: What becomes of texts that are longer than `max_len`: the beginning is kept, they are cut into
                several elements, or it is an error.
            column: The column of text, which becomes `tokens`. One of `column` and `columns` is needed.
            columns: Several columns of text, which become `<column>_tokens` each.
            into: Other names for the columns of ids, in the order of the columns.
            prepend_bos: A token before each text, by its name in the vocabulary or its id.
            append_eos: A token after each text, by its name or its id.
            max_len: Tokens per text at most, those two included; no limit by default.
            keep_text: Whether the text stays in the element beside its ids, which else take its place.
            special_in_text: Whether a special token that is written out in a text becomes that token. By default it is
                text like any other.
            engine: The fast engine, the compatible engine, or the fast engine if both agree.

        Raises:
            ConfigError: A column or a token does not exist, or the file is no tokenizer.
            IoError: The tokenizer cannot be read.
        """

    def packed_columns(
        self,
        feature: str = "tokens",
        *,
        padding_positions: Literal["zero", "restart", "continue"] = "zero",
        labels: Literal["unshifted", "shifted"] | None = None,
        cu_seqlens: bool = False,
        max_segments: int | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Adds labels, `cu_seqlens` and positions of padding to packed rows, or to batches of them.

        Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within
        each row; `batch` stacks it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the
        B·T cells of the batch, as `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

        Args:
            feature: The packed column. Its segment ids and positions are columns, too.
            padding_positions: The positions of padding: `"zero"`, as packing writes them; `"restart"`, from 0 in each
                run of padding, like a segment; or `"continue"`, after the segment before it.
            labels: Adds `labels`, int64 and of the shape of the tokens. `"unshifted"`: the label of a token is the
                token itself, for models that shift, such as Hugging Face's. `"shifted"`: it is the next token. Padding
                has -100, and so has the first token of a segment if unshifted, the last if shifted.
            cu_seqlens: Adds `cu_seqlens`, int32: the place in the flattened rows at which each segment begins, and the
                number of cells. Adds `max_seqlen`, int32: the length of the longest segment. A run of padding is a
                segment; with `padding_positions="continue"`, padding belongs to the segment before it.
            max_segments: The fixed number of segments of `cu_seqlens`, some of length 0. By default there are no
                segments of length 0, and rows with different numbers of segments cannot be stacked.

        Raises:
            ConfigError: An argument is invalid, or no argument is given.
            DataError: There are no segment ids, a column has the name of an added column, or a row has more
                segments than `max_segments`.
        """

@final
class IterDataset(Generic[_T_co]):
    """A stream: its elements are read in order, and its state is small. `loader` chooses the executor, which changes
    no element.
    """

    @staticmethod
    def jsonl(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        repeated_names: Literal["last", "error"] = "last",
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        columns: str | Sequence[str] | None = None,
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the records of JSON Lines files. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream.

        Elements are dicts of arrays, numbers, text and lists.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.jsonl`) or URLs of any of these; one or a
                list.
            repeated_names: What becomes of a record in which an object has a name twice, among the columns that are
                read: the last value stands, and the report counts such records, or it is a bad record.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            columns: The columns to read, all of them by default.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def lines(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        column: str = "text",
        blank_lines: bool = False,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the lines of text files, without line ends. Compressed files (`.gz`, `.zst`, `.lz4`) are a
        stream.

        Elements are dicts with one column of text.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.txt`) or URLs of any of these; one or a
                list.
            column: The name of the column of text.
            blank_lines: Whether lines of nothing but white space are records, too; only of files that are not
                compressed.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def csv(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        delimiter: str | None = None,
        quote: str | None = None,
        header: bool | None = None,
        names: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        nulls: str | Sequence[str] | None = None,
        infer_rows: int = 1000,
        types: Mapping[str, str] | None = None,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the records of CSV files. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream.

        Elements are dicts of numbers and text, with an entry for each column.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.csv`) or URLs of any of these; one or a
                list.
            delimiter: One character; found in the first records if it is not given.
            quote: The character around fields that hold delimiters, `"` by default; empty text for none.
            header: Whether the first record of each file names the columns; so it does by default, unless `names` are
                given.
            names: The names of the columns, if the files do not have them.
            columns: The columns to read, all of them by default.
            nulls: Fields that are read as null.
            infer_rows: Records by which the types of columns are inferred.
            types: Types of columns: `str`, `bool`, `int64`, `float32` and so on. The types of other columns are
                inferred.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def tfrecord(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        field: str | None = None,
        examples: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequence_examples: bool | Mapping[str, Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]]] | None = None,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[Any]:
        """Reads the records of TFRecord files. Compressed files (`.gz`, `.zlib`) are a stream.

        A record is `bytes` without `field`, `examples` and `sequence_examples`, and a dict with any of
        them.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tfrecord`) or URLs of any of these; one or
                a list.
            field: The name of the column with the bytes of a record. By default, pipeline files get the column
                `record`, and Python gets `bytes`.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def webdataset(
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        decode: bool = False,
        url: bool = False,
        columns: str | Sequence[str] | None = None,
        index_cache: Literal["beside", "off"] | str | PathLike[str] = "beside",
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the samples of WebDataset's tar shards: `__key__` and a column for each extension. Compressed
        shards are a stream.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tar`) or URLs of any of these; one or a
                list.
            decode: Decode fields by their extension: text, numbers, what JSON holds, arrays of `.npy`, images (`uint8`,
                height × width × channels). Without it they are bytes.
            url: Add the path of the shard as the column `__url__`.
            columns: The extensions to read, all of them by default.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def from_file(path: str | PathLike[str]) -> IterDataset[dict[str, Any]]:
        """Builds the pipeline of a file in YAML, TOML or JSON.

        Args:
            path: The file. Relative paths in it start at its folder.

        Raises:
            ConfigError: The file is invalid. The message names line and key.
            IoError: A file cannot be opened or read.
        """

    @staticmethod
    def source(source: Iterable[_T], *, epochs: int | None = None) -> IterDataset[_T]:
        """Reads a stream written in Python. Each `iter(source)` starts a pass.

        If a pass has `get_state` and `set_state`, a resume uses them; the state is a value of JSON. Otherwise, a resume
        reads the stream again up to the next element. A writable array is copied if the stream keeps a reference to it.

        Args:
            source: An iterable that can be iterated over repeatedly.
            epochs: Number of epochs of a stream with `set_epoch`, such as a shuffled `IterableDataset` of Hugging Face:
                `set_epoch(0)`, `set_epoch(1)`, … is called before each. By default the source is read once, and
                `repeat` reads it in equal order each time.

        Raises:
            TypeError: The source is not iterable, or has no `set_epoch` although `epochs` is given.
            ValueError: `epochs` is 0.
        """

    @staticmethod
    def zip(datasets: Sequence[IterDataset[Any]], *, strict: bool = True) -> IterDataset[tuple[Any, ...]]:
        """Makes tuples of an element of each stream.

        Args:
            datasets: The streams.
            strict: Whether it is an error if a stream ends before the others. If false, the zip ends with the shortest
                stream.

        Raises:
            DataError: A stream ended before the others.
        """

    @staticmethod
    def mix(datasets: Sequence[IterDataset[_T]], weights: Sequence[float] | None = None) -> IterDataset[_T]:
        """Takes elements of several streams in proportion to weights, in Grain's order. The mix ends with the first stream
        that ends.

        Args:
            datasets: The streams.
            weights: A number for each stream; all equal by default.

        Raises:
            ConfigError: The numbers of weights and streams differ, or a weight is not above 0.
        """

    @staticmethod
    def interleave(
        datasets: Sequence[IterDataset[_T]] | MapDataset[IterDataset[_T]],
        cycle_length: int,
    ) -> IterDataset[_T]:
        """Takes an element of each of `cycle_length` streams in turn. The next stream replaces a stream that ended.

        Args:
            datasets: A list of streams, or a `MapDataset` whose elements are streams, made when they are opened.
            cycle_length: Number of open streams.

        Raises:
            ConfigError: `cycle_length` is 0.
        """

    def limit(self, count: int) -> IterDataset[_T_co]:
        """Ends behind the first `count` elements.

        Args:
            count: How many elements.

        Raises:
            ConfigError: `count` is 0.
        """

    def take(self, count: int) -> IterDataset[_T_co]:
        """Ends behind the first `count` elements, as `limit` does.

        Args:
            count: How many elements.

        Raises:
            ConfigError: `count` is 0.
        """

    def skip(self, count: int) -> IterDataset[_T_co]:
        """Leaves out the first `count` elements.

        The skipped elements are evaluated once in each pass. Before `to_iter_dataset`, the slice
        `ds[count:]` skips elements at no cost.

        Args:
            count: How many elements; 0 for none.

        Raises:
            ConfigError: `count` is negative.
        """

    @overload
    def enumerate(self, start: int = 0, *, column: None = None) -> IterDataset[tuple[int, _T_co]]: ...
    @overload
    def enumerate(self, start: int = 0, *, column: str) -> IterDataset[dict[str, Any]]:
        """Adds its number in the stream to each element. A resume continues the count.

        Args:
            start: The first number.
            column: The column for the number, in elements that are dicts. Without it, an element becomes a tuple of the
                number and the element.

        Raises:
            DataError: A column of this name exists.
        """

    def scan(
        self,
        transform: Callable[[Any, _T_co], tuple[Any, _U]] | _Scan[_T_co, _U],
        initial: Any,
    ) -> IterDataset[_U]:
        """Applies a function to a state and every element, in order.

        The state is part of the checkpoint, so it must be JSON: numbers, text, lists, dicts, `None`. A tuple becomes a
        list. Each pass starts with `initial`. The process that reads the stream calls the function.

        Args:
            transform: A function of the state and the element, which returns the next state and the new element. Or an
                object with a method `scan`.
            initial: The state at the start of a pass.

        Raises:
            TypeError: The transform is neither, or a state is not JSON.
        """

    def skip_bad_records(self, limit: int | None = None, consecutive: int | None = None) -> IterDataset[_T_co]:
        """Leaves out records that the stages before it cannot use; straight behind random access it begins the
        stream.

        Skipped records are counted in the report and in the state. The first few are logged. Use the stage
        directly after a stream of files, or after the last elementwise stage, and before stages that join
        elements.

        Args:
            limit: The most that are left out in all; no limit by default.
            consecutive: The most that are left out in a row; no limit by default.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: More records than a limit were skipped. The error is raised during the pass.
        """

    def cache(self) -> IterDataset[_T_co]:
        """Keeps every element in memory for the next epoch of a `repeat` behind it.
        ConfigError: An argument is invalid, or a column does not exist.
        """

    def rebatch(self, batch_size: int, *, remainder: Literal["keep", "drop"] = "keep") -> IterDataset[Any]:
        """Cuts batches anew into so many rows; what lies within one batch is not copied.

        Args:
            batch_size: Rows of a batch.
            remainder: What becomes of the last rows if they do not fill a batch: they are a smaller one, or are left
                out.

        Raises:
            ConfigError: `batch_size` is 0.
            DataError: Arrays of a batch differ in their number of rows.
        """

    def make_keys(self, folder: str | PathLike[str]) -> list[dict[str, Any]]:
        """Makes the keys by which several hosts plan this pipeline: the filters' results and the lengths of elements.

        Each record is evaluated once, on all cores. Existing keys are kept, and an interrupted run is continued.

        Args:
            folder: The folder for the key files, one for each source.

        Returns:
            A dict for each source: `file`, `source`, `records`, `elements`, `bytes`, and `was_there`.

        Raises:
            ConfigError: Keys are useless here: indices determine the rows of a host, or a stage depends on more than
                keys.
        """

    def seed(self, seed: int) -> IterDataset[_T_co]:
        """Sets the seed from which random stages behind it derive theirs, unless they are given their own.

        Args:
            seed: From 0 to 2^32 - 1.

        Raises:
            ConfigError: The seed is not from 0 to 2^32 - 1.
        """

    def window_shuffle(self, window_size: int, seed: int | None = None) -> IterDataset[_T_co]:
        """Puts the elements of each window in a random order; the windows stay where they are.

        A stream holds a window in memory, and reads the window again after a resume.

        Args:
            window_size: Elements in a window; of a stream they are held in memory.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: The window is empty, or there is no seed, neither here nor in a `seed` before the
                stage.
        """

    def repeat(self, num_epochs: int | None = None) -> IterDataset[_T_co]:
        """Repeats the whole stream. Every epoch has equal elements.

        Args:
            num_epochs: Number of epochs; without end by default.

        Raises:
            ConfigError: `num_epochs` is 0.
        """

    def map(self, transform: Callable[[_T_co], _U] | _Map[_T_co, _U]) -> IterDataset[_U]:
        """Applies a function to every element. The returned value is the element, also if it is `None`.

        A writable array, dict, list or byte array is copied if the function keeps a reference to it. Other values stay
        in place.

        In a stream without random access, one thread iterates, and all threads of the loader apply the function.

        Args:
            transform: A function of an element, or an object with a method `map`.

        Raises:
            TypeError: The transform is neither.
        """

    def map_with_index(self, transform: Callable[[int, _T_co], _U] | _MapWithIndex[_T_co, _U]) -> IterDataset[_U]:
        """Applies a function to every element and its index. The index of a `MapDataset` continues over epochs. In a
        stream it counts from 0.

        Args:
            transform: A function of the index and the element, or an object with a method `map_with_index`.

        Raises:
            TypeError: The transform is neither.
        """

    def random_map(
        self,
        transform: Callable[[_T_co, np.random.Generator], _U] | _RandomMap[_T_co, _U],
        *,
        seed: int | None = None,
    ) -> IterDataset[_U]:
        """Applies a function to every element and random numbers; Grain's numbers.

        The numbers belong to the index of the element, or to its position in a stream. Threads, workers and a resume do
        not change them. The generator is used again for the next element: do not keep it.

        Args:
            transform: A function of the element and a `numpy.random.Generator`, or an object with a method
                `random_map`.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: There is no seed, neither here nor in a `seed` before the stage.
        """

    def filter(
        self,
        transform: Callable[[_T_co], object] | _Filter[_T_co] | None = None,
        /,
        *,
        column: str | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        min: float | None = None,
        max: float | None = None,
        equals: str | None = None,
        warn: float | None = 0.9,
        **thresholds: float | None,
    ) -> IterDataset[_T_co]:
        """Keeps the elements for which a function returns true, or for which a native condition on a column holds.

        Filters directly after a dataset with random access share their thresholds: the last given thresholds apply to
        their joint count, which is part of the state.

        Args:
            transform: A function of an element that returns a true value for elements to keep, or an object with a
                method `filter`.
            column: The column of the native condition. All given conditions must hold.
            min_length: The least length: bytes of text, rows of an array.
            max_length: The greatest length: bytes of text, rows of an array.
            min: The least number.
            max: The greatest number.
            equals: The exact text.
            warn: The dropped share of 1000 consecutive elements that logs a warning under the name `gristmill`, at most
                once a minute; `None` for never. Only with a function.
            thresholds: `raise`, given as `**{"raise": 0.99}`: the share that is an error; no share by default. Only
                with a function.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A larger share of elements was dropped than `raise`.
        """

    def flat_map(self, transform: Callable[[_T_co], Iterable[_U]] | _FlatMap[_T_co, _U]) -> IterDataset[_U]:
        """Replaces every element by the elements that a function returns: none, one or many.

        Args:
            transform: A function of an element that returns elements, or an object with a method `flat_map`.
        """

    def drop_none(self) -> IterDataset[_T_co]:
        """Drops elements that are `None`."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: Callable[[list[Any]], Any] | None = None,
        *,
        remainder: Literal["keep", "drop", "pad"] | None = None,
        pad_value: float | None = None,
        mask: str | None = None,
    ) -> IterDataset[Any]:
        """Stacks consecutive elements into batches.

        The leaves of dicts, lists, tuples and dataclasses become NumPy arrays with an additional dimension. Text of
        native sources becomes a list.

        Args:
            batch_size: Elements in a batch.
            drop_remainder: Drops the last elements if they do not fill a batch, as `remainder="drop"` does. The name is
                Grain's.
            batch_fn: Makes the batch of a list of elements. Without it, elements are stacked.
            remainder: Policy for the last elements if they do not fill a batch: `"keep"`, the default, makes a smaller
                batch; `"drop"` drops them; `"pad"` fills the batch up to `batch_size`. With `"pad"`, elements are dicts
                of arrays, and every batch has a column of bools that is true in real rows.
            pad_value: The number in every padded array, 0 by default; only with `remainder="pad"`.
            mask: The name of the column of bools, `batch_mask` by default.

        Raises:
            ConfigError: `batch_size` is 0, or options contradict each other.
            ValueError: Elements differ in structure or shape. The message names the place.
        """

    def mp_prefetch(
        self,
        options: MpOptions | int | _WorkerOptions | None = None,
        worker_init_fn: Callable[[int, int], object] | None = None,
        *,
        num_workers: int | None = None,
        workers: int | Literal["auto"] = "auto",
        per_worker_buffer_size: int = 1,
        deadline: float | None = 300.0,
        max_workers: int = 1,
        threads_per_worker: int | None = None,
        ram_budget: int | str | None = None,
        worker_heap: int | str | None = None,
        max_element: int | str | None = None,
        retries: int = 3,
        on_poison: Literal["error", "skip"] = "error",
        tune: bool = True,
    ) -> IterDataset[_T_co]:
        """Evaluates all stages before it in worker processes, within a memory budget. The elements do not
        change.

        A native pipeline takes one process with threads. Python functions run in several processes;
        functions of a script or a notebook are sent by value. Stages after `mp_prefetch` run in this
        process. Functions and filters directly after compressed files that are read as `lanes` belong to
        the lanes and run in the workers.

        This process reads a stream without random access, in order. Workers apply the functions of its
        `map`, `map_with_index`, `random_map`, `filter` and `flat_map` to chunks of elements, unless a call
        takes less than 20 µs.

        Args:
            options: `MpOptions`, Grain's options, or a number of workers. Fields of `MpOptions` may also be given as
                keyword arguments.
            worker_init_fn: Called once in each worker process that runs Python functions, with its number and the
                number of workers.
            num_workers: Worker processes; 0 evaluates on threads of this process. By default, a native pipeline has one
                process with a thread for each core. Other pipelines start with a process for each core, and tuning
                finds the number.
            workers: Alias of `num_workers`.
            per_worker_buffer_size: Elements or batches kept ready for each worker process.
            deadline: Seconds after which a worker process counts as hanging; `None` sets no limit.
            max_workers: Maximum number of worker processes if it is tuned.
            threads_per_worker: Threads of each worker process.
            ram_budget: Memory of worker processes, such as 2GiB [default: a quarter of what is available]. It includes
                the memory that they share with this process. It does not include what this process holds: the elements
                of a batch, a window or rows that are being packed.
            worker_heap: Private memory of each worker process [default: half of the budget, divided by the workers].
            max_element: Maximum size of an element or batch in shared memory [default: a quarter of the shared memory].
            retries: Worker processes that a range of elements may kill before the element that does so is searched.
            on_poison: What to do with an element that kills every worker process: `"error"` ends the run, `"skip"`
                leaves it out and counts it.
            tune: Whether the number of active threads follows the needs of the consumer.

        Raises:
            ConfigError: The options contradict each other, or do not fit the budget.
        """

    def loader(
        self,
        *,
        threads: int | Literal["auto"] = 0,
        writable: bool = False,
        accept_changes: bool = False,
        workers: bool = True,
        part: Part | tuple[int, int] | str | None = None,
        deal: Literal["even", "lanes"] | Deal = "even",
        guard: Guard = "auto",
        keys: str | PathLike[str] | None = None,
        metrics: str | int | None = None,
        buffer: int = 2,
        timeout: float | None = None,
        record_keys: bool = False,
        guard_timeout: float = 600,
        on_failed_element: Literal["error", "pad"] = "error",
        failed_element_limit: int | None = None,
        top: bool = False,
        record: str | PathLike[str] | None = None,
        trace: str | PathLike[str] | None = None,
    ) -> DatasetIterator[_T_co]:
        """Starts a pass over one epoch.

        Args:
            threads: Threads for the elementwise stages, in addition to a thread for the other stages. 0 evaluates in
                the thread of the consumer. `"auto"` starts with a thread for each core and tunes their number and the
                number of prefetched elements. The limit is 256 threads, which suits elements that wait for a disk or a
                network. `mp_prefetch` suits Python functions that compute.
            writable: Return native arrays as writable. An array is copied if others view its memory. Arrays from Python
                functions are returned unchanged.
            accept_changes: Accept a state of another pipeline in `set_state`, for example after a file was withdrawn or
                an argument was changed. Positions are taken as they are. The change is logged, and appears in the
                report and in all later states as `accepted_changes`. Stages after `to_iter` that hold positions must be
                unchanged.
            workers: Whether `mp_prefetch` starts processes. With `False`, this process evaluates everything, for
                example to look at a few elements or at the state.
            part: Part of the rows of each batch to deliver, such as `(3, 64)` for the fourth of 64 hosts. By default,
                all rows. A state does not depend on the part, so any part can continue from it.
            deal: How rows are dealt among parts: consecutive rows, rows by the index of their lane, or a `Deal` that
                balances their costs. Costs follow from the plan if rows are planned by keys and packed. Otherwise each
                host evaluates all rows.
            guard: How hosts compare their data: before the first batch, every 128 batches and at the end. A host that
                reads other data, or another pipeline, stops all of them. `"auto"` uses the store of JAX or PyTorch if
                the part comes from `gm.jax.part_for` or `gm.torch.part` and there are several processes. Otherwise,
                give a folder that all hosts see, `(folder, host, hosts)` if the part does not determine the host, or an
                object with `begin(part)`, `post(round, statement)` and `read(round)`. `None` compares nothing.
            keys: Folder of key files, by which a host plans the rows of all hosts and evaluates only its own.
                `make_keys` and `gristmill index --keys` write them.
            metrics: Address at which `GET /metrics` returns the figures of the pass as OpenMetrics text for Prometheus,
                such as `"127.0.0.1:9464"`. A port alone is reached from this machine only; 0 takes a free port, which
                `metrics_address` returns. Other users of this machine are refused, unless the address begins with
                `"everybody@"`.
            buffer: Batches kept ready for the consumer.
            timeout: Seconds after which a wait for an element is an error [default: no limit]. It needs threads or
                worker processes.
            record_keys: Whether missing key files are written during the run, for the next start. It applies without a
                part, or on the host of the first part.
            guard_timeout: Seconds after which a silent host is an error.
            on_failed_element: What to do if an element fails after its row was planned: `"error"` ends the run, `"pad"`
                delivers padding and counts it.
            failed_element_limit: Maximum number of elements that become padding [default: no limit].
            top: Whether `gristmill top` may look at the run. GRISTMILL_TOP=1 in the environment does the same.
            record: Recording of the run, a file for `gristmill report`. A recording of a run that was killed is read as
                well. An earlier recording is kept as NAME.1.ENDING.
            trace: Trace of the run, a file for ui.perfetto.dev and chrome://tracing. It is compressed if its name ends
                in .gz.

        Returns:
            The pass: an iterator, and a context manager that closes it.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            WorkerError: Worker processes cannot be started.
        """

    def explain(self, *, threads: int = 0, buffer: int = 2) -> Explanation:
        """Explains the pipeline: its stages, their memory, the parallel stages, and the first element.

        This process reads the first elements.

        Args:
            threads: Threads of the `loader` whose memory is estimated.
            buffer: Buffer of that loader.
        """

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of the first element, as a tree with the structure of the element.

        Reads the first element.

        The spec of an array is an `ArraySpec`. The spec of another value is its type. A list or tuple of equal specs
        has one entry.

        Raises:
            ConfigError: The dataset has no element.
        """

    def apply(self, transform: Callable[[IterDataset[_T_co]], _R]) -> _R:
        """Calls a function with this dataset and returns its result, so that custom stages fit in a chain.

        Args:
            transform: A function of a dataset.
        """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> DatasetIterator[_T_co]:
        """Starts a pass without threads: `loader()`."""

    def select_columns(self, columns: str | Sequence[str]) -> IterDataset[dict[str, Any]]:
        """Keeps only these columns, in this order.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def drop_columns(self, columns: str | Sequence[str]) -> IterDataset[dict[str, Any]]:
        """Keeps all but these columns.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> IterDataset[dict[str, Any]]:
        """Gives columns other names: old names and the new, `{"text": "document"}`.

        In Python, names are keyword arguments, too: `rename(text="document")`.

        Args:
            names: Entries whose names cannot be keywords.
            more: Entries by name.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def parse_example(
        self,
        features: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        *,
        column: str | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.Example` that each of them is.

        Elements are `bytes`, or dicts with the bytes in `column`, whose place the features take. A dtype is
        `int64`, `float32`, `bytes` or `str`. A feature without a shape has any number of values.

        Args:
            features: `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids": "int64"}` declares features.
                `True`, which is the default, infers them: numbers as arrays of one dimension, one string as bytes,
                several as a list.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is no `Example`, or lacks a feature.
        """

    def parse_sequence_example(
        self,
        *,
        context: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequences: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        column: str | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.SequenceExample` that each of them is;
        without both declarations everything is inferred.

        Args:
            context: Features of the whole, as `parse_example` declares them.
            sequences: Features of each step. Features with a shape become arrays of shape `[time, …]`, others lists
                with an array for each step. A feature that a step may lack has `{"allow_missing": True}`.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is no `SequenceExample`, or lacks a feature.
        """

    def tokenise(
        self,
        *,
        tokenizer: str | PathLike[str],
        overflow: Literal["truncate", "chunk", "error"] = "truncate",
        column: str | None = None,
        columns: str | Sequence[str] | None = None,
        into: str | Sequence[str] | None = None,
        prepend_bos: str | int | None = None,
        append_eos: str | int | None = None,
        max_len: int | None = None,
        keep_text: bool = False,
        special_in_text: bool = False,
        engine: Literal["auto", "fast", "compat"] = "auto",
    ) -> IterDataset[dict[str, Any]]:
        """Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.

        One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the
        place of their text, unless `keep_text` is true. `overflow="chunk"` needs a stream.

        Args:
            tokenizer: The path of the `tokenizer.json`.
            overflow: What becomes of texts that are longer than `max_len`: the beginning is kept, they are cut into
                several elements, or it is an error.
            column: The column of text, which becomes `tokens`. One of `column` and `columns` is needed.
            columns: Several columns of text, which become `<column>_tokens` each.
            into: Other names for the columns of ids, in the order of the columns.
            prepend_bos: A token before each text, by its name in the vocabulary or its id.
            append_eos: A token after each text, by its name or its id.
            max_len: Tokens per text at most, those two included; no limit by default.
            keep_text: Whether the text stays in the element beside its ids, which else take its place.
            special_in_text: Whether a special token that is written out in a text becomes that token. By default it is
                text like any other.
            engine: The fast engine, the compatible engine, or the fast engine if both agree.

        Raises:
            ConfigError: A column or a token does not exist, or the file is no tokenizer.
            IoError: The tokenizer cannot be read.
        """

    def first_fit_pack(
        self,
        *,
        length: Mapping[str, int],
        num_packing_bins: int,
        padding: Mapping[str, float] | None = None,
        meta_features: str | Sequence[str] | None = None,
        names: Literal["grain", "maxtext"] = "grain",
        align: Mapping[str, int] | None = None,
        shuffle_bins: bool = True,
        seed: int = 0,
        shuffle_bins_group_by_feature: str | None = None,
        max_sequences_per_bin: int | None = None,
        over_long: Literal["error", "split", "drop"] = "error",
    ) -> IterDataset[dict[str, Any]]:
        """Packs sequences into rows, each into the first of `num_packing_bins` that has room; Grain's rows.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            num_packing_bins: Rows that are filled at a time: they come out together, when an element fits into none of
                them.
            padding: Numbers for the cells without a token, by column; 0 by default.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            align: Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
            shuffle_bins: Whether they come out in a random order. Without it the last rows of each group hold the most
                padding.
            seed: The seed of the order in which the rows of a group come out.
            shuffle_bins_group_by_feature: A column by whose mean rows stay apart when they are shuffled: with the
                number of the epoch, epochs do.
            max_sequences_per_bin: The most sequences in a row; no limit by default.
            over_long: What becomes of a sequence that is longer than a row: it is an error, is split, or is left out
                and counted.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A sequence is longer than a row, or an array differs from the first element's in type
                or shape.
        """

    def best_fit_pack(
        self,
        *,
        length: Mapping[str, int],
        num_packing_bins: int,
        padding: Mapping[str, float] | None = None,
        meta_features: str | Sequence[str] | None = None,
        names: Literal["grain", "maxtext"] = "grain",
        align: Mapping[str, int] | None = None,
        shuffle_bins: bool = True,
        seed: int = 0,
        shuffle_bins_group_by_feature: str | None = None,
        max_sequences_per_bin: int | None = None,
        over_long: Literal["error", "split", "drop"] = "error",
    ) -> IterDataset[dict[str, Any]]:
        """Packs sequences into rows, each into the fullest of `num_packing_bins` that has room; Grain's rows.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            num_packing_bins: Rows that are filled at a time: they come out together, when an element fits into none of
                them.
            padding: Numbers for the cells without a token, by column; 0 by default.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            align: Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
            shuffle_bins: Whether they come out in a random order. Without it the last rows of each group hold the most
                padding.
            seed: The seed of the order in which the rows of a group come out.
            shuffle_bins_group_by_feature: A column by whose mean rows stay apart when they are shuffled: with the
                number of the epoch, epochs do.
            max_sequences_per_bin: The most sequences in a row; no limit by default.
            over_long: What becomes of a sequence that is longer than a row: it is an error, is split, or is left out
                and counted.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A sequence is longer than a row, or an array differs from the first element's in type
                or shape.
        """

    def window_pack(
        self,
        *,
        length: Mapping[str, int],
        padding: Mapping[str, float] | None = None,
        meta_features: str | Sequence[str] | None = None,
        names: Literal["grain", "maxtext"] = "grain",
        align: Mapping[str, int] | None = None,
        over_long: Literal["error", "split", "drop"] = "error",
        window: int = 1024,
        max_sequences_per_bin: int | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Packs sequences into rows that are filled from a window of them, almost completely.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            padding: Numbers for the cells without a token, by column; 0 by default.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            align: Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
            over_long: What becomes of a sequence that is longer than a row: it is an error, is split, or is left out
                and counted.
            window: Sequences that are looked ahead, which are held in memory.
            max_sequences_per_bin: The most sequences in a row; no limit by default.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A sequence is longer than a row, or an array differs from the first element's in type
                or shape.
        """

    def concat_then_split_pack(
        self,
        *,
        length: Mapping[str, int],
        padding: Mapping[str, float] | None = None,
        meta_features: str | Sequence[str] | None = None,
        names: Literal["grain", "maxtext"] = "grain",
        split_full_length_features: bool = True,
        bos_features: str | Sequence[str] | None = None,
        positions: Literal["restart", "continue"] = "restart",
        bos_handling: Literal["do_nothing", "replace_first_token_with_bos"] = "do_nothing",
        bos_token_id: int | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Puts sequences one behind the other and cuts them into rows; Grain's rows.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            padding: Numbers for the cells without a token, by column; 0 by default.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            split_full_length_features: Whether a sequence that fills a row alone is cut like any other, or becomes a
                separate row.
            bos_features: The columns in which the first token is replaced.
            positions: Start of the positions of a sequence that continues in the next row: at 0, or after the last
                position.
            bos_handling: Whether the first token of every sequence, and of every piece that continues one, is replaced.
            bos_token_id: The token that takes its place.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A sequence is longer than a row, or an array differs from the first element's in type
                or shape.
        """

    def length_buckets(
        self,
        *,
        features: str | Sequence[str],
        boundaries: int | Sequence[int],
        batch: int | Mapping[str, int | Sequence[int]],
        padding: Mapping[str, float] | None = None,
        window: int = 8192,
        remainder: Literal["keep", "drop", "pad"] = "keep",
        drop_over_long: bool = False,
    ) -> IterDataset[dict[str, Any]]:
        """Makes batches of sequences of nearly one length, padded to the length of their bucket.

        Args:
            features: The columns to pad; the longest column of an element gives its length.
            boundaries: The lengths of the buckets, rising.
            batch: Elements in a batch: a number, `{"per_bucket": [64, 32]}`, or `{"tokens": 32768}` for the number with
                at most that many cells.
            padding: Numbers for the cells after the end of a sequence, by column; 0 by default.
            window: The most elements that are held. When the oldest would have to wait longer, its batch comes out
                short.
            remainder: What becomes of batches that are not full: they come out as they are, are left out, or are filled
                up with rows of padding.
            drop_over_long: Whether elements longer than the last boundary are left out and counted; else they are an
                error.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: An element is longer than the last boundary.
        """

    def packed_columns(
        self,
        feature: str = "tokens",
        *,
        padding_positions: Literal["zero", "restart", "continue"] = "zero",
        labels: Literal["unshifted", "shifted"] | None = None,
        cu_seqlens: bool = False,
        max_segments: int | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Adds labels, `cu_seqlens` and positions of padding to packed rows, or to batches of them.

        Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within
        each row; `batch` stacks it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the
        B·T cells of the batch, as `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

        Args:
            feature: The packed column. Its segment ids and positions are columns, too.
            padding_positions: The positions of padding: `"zero"`, as packing writes them; `"restart"`, from 0 in each
                run of padding, like a segment; or `"continue"`, after the segment before it.
            labels: Adds `labels`, int64 and of the shape of the tokens. `"unshifted"`: the label of a token is the
                token itself, for models that shift, such as Hugging Face's. `"shifted"`: it is the next token. Padding
                has -100, and so has the first token of a segment if unshifted, the last if shifted.
            cu_seqlens: Adds `cu_seqlens`, int32: the place in the flattened rows at which each segment begins, and the
                number of cells. Adds `max_seqlen`, int32: the length of the longest segment. A run of padding is a
                segment; with `padding_positions="continue"`, padding belongs to the segment before it.
            max_segments: The fixed number of segments of `cu_seqlens`, some of length 0. By default there are no
                segments of length 0, and rows with different numbers of segments cannot be stacked.

        Raises:
            ConfigError: An argument is invalid, or no argument is given.
            DataError: There are no segment ids, a column has the name of an added column, or a row has more
                segments than `max_segments`.
        """

@final
class Part:
    """Rows of every global batch that a consumer takes: an equal share, or listed rows.

    Consumers that compute on equal rows, such as tensor- and pipeline-parallel peers, have equal parts.
    """

    def __new__(cls, index: int, count: int) -> Part:
        """Makes share `index` of `count` equal shares.

        Args:
            index: The share, from 0 on.
            count: The number of shares.

        Raises:
            ConfigError: There is no such share.
        """

    @staticmethod
    def listed(rows: Sequence[int], global_batch: int) -> Part:
        """Takes rows by number, in this order: the rows of a sharded array that the devices of a process hold.

        Args:
            rows: The numbers.
            global_batch: Rows of every global batch.

        Raises:
            ConfigError: The list is empty, or a number is not below `global_batch`.
        """

    def rows(self, global_batch: int) -> list[int]:
        """Returns the numbers of its rows in a global batch.

        Args:
            global_batch: Rows of the batch.

        Raises:
            ConfigError: The batch is not divisible, or the part was listed for another size.
        """

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Cost:
    """Cost of a row of a batch: `per_token` for each token, and `per_square` times the sum of the squared lengths of
    its sequences.

    Lengths are read from the column `segments` or `lengths`. By default, they are read from the first column whose
    name ends in `segment_ids` or `segmentation`, which packing writes; the report names the column. Padding costs
    nothing. The unit is free, because only ratios matter.
    """

    def __new__(
        cls,
        per_token: int,
        per_square: int = 0,
        window: int | None = None,
        segments: str | None = None,
        lengths: str | None = None,
    ) -> Cost:
        """Makes a cost with these factors.

        Args:
            per_token: Cost of a token.
            per_square: Cost of a squared length.
            window: Number of tokens that a token attends to on a side, including itself. The square of a longer
                sequence is 2 · length · window - window².
            segments: A column of integers of shape `[rows, cells]`: sequences are runs of equal ids, and 0 is padding.
            lengths: A column of integers of shape `[rows]` or `[rows, sequences]`: lengths of sequences; 0 is none.

        Raises:
            ConfigError: Both columns are given.
        """

    @staticmethod
    def attention(
        d_model: int,
        *,
        window: int | None = None,
        causal: bool = True,
        segments: str | None = None,
        lengths: str | None = None,
    ) -> Cost:
        """Cost of a layer of a transformer, in `d_model` floating-point operations of its forward pass: 24 · `d_model` for
        each token, and 2 times the squared lengths with causal attention, 4 times without.

        Args:
            d_model: The width of the model.
            window: Number of tokens that a token attends to on a side, including itself; the whole sequence by default.
            causal: Whether a token attends only to itself and earlier tokens.
            segments: A column of segment ids, as for `Cost`.
            lengths: A column of lengths, as for `Cost`.

        Raises:
            ConfigError: Both columns are given.
        """

    @staticmethod
    def column(name: str) -> Cost:
        """Cost from a column with an integer for each row: patches of images, frames of sound.

        Args:
            name: The column.
        """

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Deal:
    """Assignment of the rows of every global batch to equal parts, by cost.

    The deal changes neither batches nor states.
    """

    @staticmethod
    def balanced(cost: Cost, micro_steps: int = 1) -> Deal:
        """Balances cost over ranks, in each micro-step as evenly as possible. Heavy rows are in the first micro-steps,
        light rows in the last.

        Args:
            cost: The cost of a row.
            micro_steps: Number of consecutive steps into which each rank cuts its rows.
        """

    @staticmethod
    def shadow(cost: Cost, micro_steps: int = 1) -> Deal:
        """Assigns consecutive rows, and reports the gain of a balanced deal.

        Args:
            cost: The cost of a row.
            micro_steps: Number of consecutive steps into which each rank cuts its rows.
        """

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class DatasetIterator(Iterator[_T_co], Generic[_T_co]):
    """A pass over a dataset, with its state and its report.

    An exception ends the pass. The state is then the state before the failed element.
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def get_state(self) -> dict[str, Any]:
        """Returns the position of the consumer as a value of JSON. Elements that were read ahead do not count."""

    def set_state(self, state: Mapping[str, Any] | str | bytes) -> None:
        """Moves the pass to a state.

        Args:
            state: The result of `get_state`, or its JSON.

        Raises:
            StateError: The state is invalid, or belongs to another pipeline. The message names the first stage that
                differs.
        """

    def start_prefetch(self) -> None:
        """Starts reading ahead, before the first `next`.

        A pass with threads reads ahead from its start, and a pass without threads cannot. The method exists for Grain's
        interface, and changes nothing.
        """

    def repart(self, part: Part | tuple[int, int] | str) -> None:
        """Delivers the rows of another part from the next batch on, without a restart: after hosts were added or removed.

        Args:
            part: The part, as for `loader`.

        Raises:
            ConfigError: There is no such part. The present part stays.
        """

    def back(self, count: int = 1) -> None:
        """Returns the last batches to the pass, which delivers them again: after a step that was not committed.

        Args:
            count: Number of batches, 1 or 2, of the batches since the start or a `set_state`.

        Raises:
            StateError: The pass has delivered fewer batches.
        """

    @property
    def part(self) -> Part | None:
        """The part of every batch that is delivered, from the next batch on; `None` without a part."""

    @property
    def rows(self) -> list[int] | None:
        """Numbers of the rows of the last batch in its global batch; `None` before the first batch, and without a part."""

    def save(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Saves the state by Orbax's protocol of stateful checkpointables: see `gristmill.orbax`.

        Args:
            directory: The directory, as Orbax gives it.
        """

    def load(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Moves the pass to a state that `save` wrote.

        Args:
            directory: The directory, as Orbax gives it.

        Raises:
            StateError: The state is missing, or belongs to another pipeline.
        """

    def report(self) -> Report:
        """Returns the report of the time so far."""

    @property
    def metrics_address(self) -> str | None:
        """The address of `GET /metrics`, such as `127.0.0.1:9464`, if `loader` has `metrics`."""

    def close(self) -> None:
        """Ends the threads and drops the elements that were read ahead."""

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
    """Report of the time of a run: `str` returns a text, `as_dict` its numbers."""

    @staticmethod
    def from_record(path: str | PathLike[str]) -> Report:
        """Reads a recording of `loader(record=…)` or `gristmill run --record`. The run may still go on, or may have been
        killed: the report is of the last time that it was written.

        Args:
            path: The recording.

        Raises:
            DataError: The file is no recording, or is damaged. The message names the byte.
            IoError: The file cannot be read.
        """

    def _repr_html_(self) -> str: ...
    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Returns a self-contained page of HTML: the events of the run, and the causes of the consumer's waits.

        Args:
            path: A file to write the page to.
        """

    def to_svg(self) -> str:
        """Returns the ribbon of the page: a picture of the run. It is empty if no element was delivered."""

    def as_dict(self) -> dict[str, Any]:
        """Returns every number of the report."""

    def metrics(self) -> dict[str, float]:
        """Returns figures under flat and stable names, for dashboards: see `gristmill.metrics`. Notes with equal flat
        names are added.
        """

@final
class Explanation:
    """Explanation of a pipeline: `str` returns a text, `as_dict` its values."""

    def _repr_html_(self) -> str: ...
    def as_dict(self) -> dict[str, Any]:
        """Returns stages, memory in bytes, fingerprint and the spec of the first element."""

_SinkFormat: TypeAlias = Literal[
    "jsonl",
    "parquet",
    "array_record",
    "tfrecord",
    "arrow",
    "hugging_face",
    "webdataset",
    "mds",
    "npy",
    "safetensors",
    "tokens",
    "megatron",
]

def sink(
    folder: str | PathLike[str],
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
    """Opens a folder, or makes it, to write shards of a format.

    In formats with columns, all shards have equal columns: those in the first 1,024 records, or in the first 8 MiB.

    Args:
        folder: The folder, or its URL.
        format: The format of the shards: `jsonl`, `parquet`, `array_record`, `tfrecord`, `arrow`, `hugging_face`,
            `webdataset`, `mds`, `npy`, `safetensors`, `tokens` or `megatron`.
        compression: `none`, `zstd:LEVEL`, `gzip:LEVEL`, `brotli:QUALITY`, `lz4` or `snappy`, if the format supports it.
        shard_bytes: Bytes of values in memory after which a shard ends; 256 MiB by default.
        shard_records: Records after which a shard ends; no limit by default.
        group: Records that are encoded together, in formats with groups.
        prefix: The beginning of the names of shards, `prefix-00000`, …; `shard` by default.
        threads: Threads that encode and compress, each a shard at a time; all cores by default.
        memory: Limit of bytes of elements that wait; 1 GiB by default.
        resume: Continues a folder with shards. Without it, such a folder is refused.
        column: The column of token ids, for token files.
        token_type: The type of ids in token files.
        bare: Writes token files without a header.
        byte_stream_split: Splits floats by bytes, for Parquet of activations and features, which makes such files a
            tenth smaller.
        schema: Declares some or all columns: `{"score": "float64", "ids": "int32[_]", "tags": {"list": "text"}}` for
            Parquet, Arrow and Hugging Face, `{"score": "float64", "image": "jpeg"}` in the encodings of MDS, `{"x":
            "float32[2, 3]"}` for NumPy and safetensors. Numbers of another type are converted: integers must fit,
            floats are rounded.
        sequences: The columns that are sequences in TFRecord and ArrayRecord. Records are `tf.train.SequenceExample`s
            then, with a step for each item of a list or row of an array.

    Raises:
        ConfigError: The options contradict each other or the folder.
        StateError: The folder was begun with other options.
    """

def store_options(
    *,
    cache_dir: str | PathLike[str] | None = None,
    cache_size: int | str | None = None,
    memory: int | str | None = None,
    requests: int | None = None,
    attempts: int | None = None,
    timeout: float | None = None,
    stall: float | None = None,
    connect_timeout: float | None = None,
) -> None:
    """Sets how this process and its workers read `s3://`, `gs://`, `az://` and `https://` from now on.

    No option changes an element. Options that are not given keep their values. The options are
    environment variables, `GRISTMILL_STORE_CACHE_DIR` and so on, which may also be set before the
    program starts.

    Args:
        cache_dir: Folder on a local disk for a cache of blocks. All processes of this user share it. Only this user can
            read the files, and a folder that other users may write to is refused. Objects without an ETag or a
            modification time are not cached.
        cache_size: Maximum size of the cache in that folder [default: 10GiB].
        memory: Memory for blocks of each process [default: 256MiB]. A worker process uses at most an eighth of its
            heap.
        requests: Concurrent requests [default: 64]. Large parts of objects are also limited to 64 MiB at a time. More
            requests raise that limit.
        attempts: Attempts per request [default: 10].
        timeout: Seconds per request, including all attempts and pauses [default: 180].
        stall: Seconds without progress before a request is retried [default: 20].
        connect_timeout: Seconds to connect to a server before the request is retried [default: 5].

    Raises:
        ConfigError: A value is invalid.
    """

@final
class Sink:
    """A folder of shards, into which elements are written: see `sink`. A write returns at once, unless the memory
    limit is reached.

    The sink is a context manager. Leaving it finishes the sink. After an exception, the sink stops at the last
    whole shard.
    """

    @property
    def records(self) -> int:
        """Number of records, including the records of earlier runs. A resumed job continues with this record."""

    @property
    def state(self) -> Any:
        """The state of the last record of earlier runs, or `None`."""

    @property
    def complete(self) -> bool:
        """Whether an earlier run has finished the folder."""

    def write(self, element: Mapping[str, Any], *, state: Any = None) -> None:
        """Writes an element.

        Writable arrays are copied. A read-only view of the memory of another object, such as an array of JAX, keeps the
        object, and nothing may write to its memory.

        Args:
            element: A dict of arrays, numbers, text and bytes.
            state: A value of JSON, or a function that returns it. The state of the last record of a shard is kept: see
                `Sink.state`.

        Raises:
            DataError: This or an earlier element cannot be written. The message names the record.
            IoError: The folder is not writable.
        """

    def write_batch(self, batch: Mapping[str, Any]) -> None:
        """Writes each row of a batch.

        Args:
            batch: A dict of arrays, whose first dimension is the row.

        Raises:
            DataError: This or an earlier element cannot be written. The message names the record.
            IoError: The folder is not writable.
        """

    def write_all(self, elements: Iterable[Mapping[str, Any]]) -> None:
        """Writes all elements of an iterator.

        Args:
            elements: The elements. An iterator with `get_state` and `set_state`, such as a loader, continues at the end
                of the folder.

        Raises:
            DataError: This or an earlier element cannot be written. The message names the record.
            IoError: The folder is not writable.
            ValueError: The folder has records, and their end in the elements is unknown.
        """

    def finish(self) -> SinkReport:
        """Writes the remaining elements, waits until the disk has all data, and marks the folder as complete."""

    def stop(self) -> SinkReport:
        """Waits until the disk has all whole shards, and ends the sink."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class SinkReport:
    """Report of a sink: `str` returns a text, `as_dict` its numbers."""

    def as_dict(self) -> dict[str, Any]:
        """Returns every number of the report. `wait_share` is the share of time in which writes waited for memory."""

@final
class Metrics:
    """Utilisation of a device: `str` returns a text, `as_dict` the numbers.

    Shares are of the counted time, from 0 to 1. `utilisation` is AU of MLPerf Storage's benchmark. `stall` is the
    share in which the device was idle. `input_bound_share` is the share of the loop in `next`, and `input_bound` is
    its class in TensorFlow's profiler: `not`, `moderately` (from 5 %) or `highly` (from 20 %).
    """

    @staticmethod
    def of(
        steps: Sequence[tuple[float, float, float, float, int]],
        wall: float,
        exclude_first: int = 1,
    ) -> Metrics | None:
        """Computes the metrics of the steps of a loop.

        Args:
            steps: For each step: the times at which its batch was requested and arrived, and at which the device could
                start and was done, in seconds since the start of the loop, and the number of samples.
            wall: Duration of the loop in seconds.
            exclude_first: Number of first steps that do not count.

        Returns:
            The metrics; `None` if no step is left without the excluded steps.

        Raises:
            ValueError: A time is negative.
        """

    @property
    def verdict(self) -> str:
        """The meaning of the metrics, in a sentence."""

    def beside(self, resident: Metrics) -> Metrics:
        """Adds `au_synth`: the speed as a share of the speed of another loop.

        Args:
            resident: The metrics of an equal loop over a batch that stays in memory.
        """

    def _repr_html_(self) -> str: ...
    def as_dict(self) -> dict[str, Any]:
        """Returns every number."""

@final
class TfRecordReader:
    """Reads the records of a TFRecord file, compressed or not, and seeks a record by its byte."""

    def __new__(cls, path: _Path) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def seek(self, byte: int) -> None:
        """Moves to a record.

        Args:
            byte: The offset of the record in the decompressed data.

        Raises:
            ValueError: No record begins at the offset.
        """

    def tell(self) -> int:
        """Returns the offset of the next record in the decompressed data."""

@final
class Lease:
    """The memory of an array, lent read-only to a consumer of DLPack that never writes to it, such as JAX.

    The memory of gristmill's arrays is shared, other arrays are copied. A consumer of version 1.0 of the protocol
    receives the read-only flag; older versions have no such flag. The memory is released without the interpreter.
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
    """A batch as Arrow's record batch. Its columns view the memory of gristmill's arrays.

    Bools, text, bytes and lists of different lengths are copied, because Arrow's layout differs. Arrays of more
    dimensions become lists of fixed size.
    """

    def __new__(cls, batch: Mapping[str, Any]) -> Self: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __len__(self) -> int: ...

@final
class RecordBatchStream:
    """Batches as Arrow's stream of record batches, which can be read once.

    The first batch determines the columns. Batches are made when they are requested.
    """

    def __new__(cls, batches: Iterable[Mapping[str, Any]]) -> Self: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
