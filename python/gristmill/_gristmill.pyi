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
from gristmill._schedule import Schedule

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

class _Encodes(Protocol):
    def encode(self, *args: Any, **kwargs: Any) -> Any: ...

# Tokenizers of other packages, and functions from text to ids.
_Tokenizer: TypeAlias = _Encodes | Callable[[str], Iterable[int]]

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
        """Reads the records of JSON Lines files. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a
        stream.

        Elements are dicts of arrays, numbers, text and lists.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.jsonl`) are expanded.
            repeated_names: Policy for records in which an object repeats a name: `"last"` keeps the last value and
                counts the record in the report, `"error"` makes it a bad record. Only the columns that are read are
                checked.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            columns: Columns to read. By default, all columns.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.json`) are expanded.
            columns: Columns to read. By default, all columns.
            repeated_names: Policy for records in which an object repeats a name: `"last"` keeps the last value and
                counts the record in the report, `"error"` makes it a bad record. Only the columns that are read are
                checked.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the lines of text files, without line ends. Compressed files (`.gz`, `.zst`, `.lz4`) are read
        as a stream.

        Elements are dicts with one column of text.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.txt`) are expanded.
            column: Name of the text column.
            blank_lines: Whether lines of only white space are records. Compressed files do not support this option.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the records of CSV files. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a stream.

        Elements are dicts of numbers and text, with an entry for each column.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.csv`) are expanded.
            delimiter: Character between fields. By default, it is detected from the first records.
            quote: Character around fields that contain delimiters or line ends; empty text for files without quotes. By
                default, `"`.
            header: Whether the first record of each file contains the column names. By default, true unless `names` is
                given.
            names: Names of all columns, instead of a header.
            columns: Columns to read. By default, all columns.
            nulls: Field values that are read as null. By default, empty fields are null, except in columns of text.
            infer_rows: Number of records from which column types are inferred.
            types: Types of columns by name: `str`, `bool`, `int64`, `float32` and so on. The types of other columns are
                inferred.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.parquet`) are expanded.
            cache_bytes: Memory for the cache of decoded row groups. In bytes, or as text such as `"512MiB"`.
            row_groups: Condition that selects row groups by their statistics, such as `{"column": "id", "min": 3,
                "max": 9}`. Row groups in which no row can meet all given limits are not read. A `filter` drops the
                other rows of the row groups that are read.
            columns: Columns to read; `meta.url` reads a single field of a struct. By default, all columns.
            hive_partitioning: Whether folders named `key=value` become columns, as in Hive, Spark and DuckDB. With
                `True`, all folders of a path become columns; with `False`, none. By default, only the folders between a
                folder of `paths` and its files become columns.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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

        Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.array_record`) are
                expanded.
            field: Name of the column for the bytes of a record. By default, `record` in pipeline files; in Python, the
                elements are `bytes`.
            examples: Features to parse from records of `tf.train.Example`, declared as in `parse_example`. With `True`,
                the features are inferred.
            sequence_examples: Features to parse from records of `tf.train.SequenceExample`: `context` and `sequences`,
                declared as in `parse_sequence_example`. With `True`, the features are inferred.
            cache_bytes: Memory for the cache of decoded chunks; used only if chunks contain several records. In bytes,
                or as text such as `"512MiB"`.
            recover: Whether to read the intact chunks of a file without a valid index, such as a truncated file. A
                warning reports the loss.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the records of TFRecord files. Compressed files (`.gz`, `.zlib`) are read as a stream.

        Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.tfrecord`) are
                expanded.
            field: Name of the column for the bytes of a record. By default, `record` in pipeline files; in Python, the
                elements are `bytes`.
            examples: Features to parse from records of `tf.train.Example`, declared as in `parse_example`. With `True`,
                the features are inferred.
            sequence_examples: Features to parse from records of `tf.train.SequenceExample`: `context` and `sequences`,
                declared as in `parse_sequence_example`. With `True`, the features are inferred.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the records of Bagz files. `x@4.bagz` stands for four files.

        Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.bagz`) are expanded.
            field: Name of the column for the bytes of a record. By default, `record` in pipeline files; in Python, the
                elements are `bytes`.
            examples: Features to parse from records of `tf.train.Example`, declared as in `parse_example`. With `True`,
                the features are inferred.
            sequence_examples: Features to parse from records of `tf.train.SequenceExample`: `context` and `sequences`,
                declared as in `parse_sequence_example`. With `True`, the features are inferred.
            interleaved: Whether records were distributed over the files in turn (round-robin). If false, the files
                follow one another.
            compressed: Whether each record is a zstd frame. By default, `.bagz` files are compressed and `.bag` files
                are not; for other names, the first record decides.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the samples of WebDataset tar shards: `__key__` and a column for each extension. Compressed
        shards are read as a stream.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.tar`) are expanded.
            decode: Whether to decode fields by their extension: text, numbers, JSON, arrays of `.npy` and images
                (`uint8`, height × width × channels). If false, fields are bytes.
            url: Whether to add the path of the shard as the column `__url__`.
            columns: Extensions to read. By default, all extensions.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the samples of MDS folders, the format of MosaicML Streaming.

        Elements are dicts of arrays, numbers, text and bytes.

        Args:
            paths: Paths or URLs of MDS folders.
            images: Whether to decode JPEG and PNG images to arrays (`uint8`, height × width × channels). If false,
                images are bytes.
            check_hashes: Whether to verify each shard against its hashes in `index.json`.
            cache_bytes: Memory for the cache of decompressed shards. In bytes, or as text such as `"512MiB"`.
            columns: Columns to read. By default, all columns.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
            path: Path of a single file, instead of `paths`.
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.npy`) are expanded. All
                files need equal dtypes and row shapes.
            field: Name of the column.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.npz`) are expanded.
            max_bytes: Maximum size of the arrays of an archive after decompression. By default, 64 times the file size,
                but at least 256 MiB. In bytes, or as text such as `"512MiB"`.
            rows: Whether each row is a record, along the first dimension that all arrays of an archive share. If false,
                each archive is a record.
            cache_bytes: Memory for the cache of decompressed archives; only with `rows=True`. In bytes, or as text such
                as `"512MiB"`.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.safetensors`) are
                expanded.
            rows: Whether each row is a record, along the first dimension that all tensors of a file share. If false,
                each file is a record.
            columns: Tensors to read. By default, all tensors.
            float8_as_u8: Whether to read tensors of 8-bit floats as bytes (`uint8`).
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
            paths: Paths of datasets. Each path is the `.idx` file, the `.bin` file, or their common prefix.
            by: Unit of a record: a `"sequence"`, or a `"document"`, which concatenates its sequences.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
        """

    @staticmethod
    def megatron_samples(
        prefixes: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        seq_len: int,
        seed: int = 1234,
        samples: int | None = None,
        weights: float | Sequence[float] | None = None,
        split: float | Sequence[float] | None = None,
        part: Literal["train", "valid", "test"] = "train",
        with_next: bool = True,
        cache: str | PathLike[str] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads training samples of Megatron's indexed datasets in the order of Megatron-Core.

        Element `i` is a dict of `tokens`: the ids of sample `i` of `GPTDataset`, or of `BlendedDataset` for
        several data sets.

        Args:
            prefixes: Prefixes of data sets: paths without `.idx` and `.bin`, as in `data_path`.
            seq_len: Number of tokens in a sample: `seq_length`.
            seed: Seed of the order, from 0 to 2^32 - 1.
            samples: Minimum number of samples: iterations times the global batch size. By default, every data set is
                read once.
            weights: Weight of each data set. By default, the number of its samples.
            split: Proportions of sequences for training, validation and tests. By default, all sequences are for
                training.
            part: Part of the sequences to read: `"train"`, `"valid"` or `"test"`.
            with_next: Whether to add the next token to each sample, which then has `seq_len + 1` ids:
                `add_extra_token_to_sequence`.
            cache: Folder in which Megatron-Core keeps its orders, `data_cache_path`. An order of this data set is
                mapped, and the first sample is read at once. By default, orders are computed.

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
        """Reads files of token ids: a record for each file, with all of its ids.

        Elements are dicts of `tokens`.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.bin`) are expanded.
            layout: Layout of the token ids: `"detect"`, `"llm_c"`, `"u16"` or `"u32"`. `"detect"` reads files that
                state the type of their ids, such as files with llm.c's header. `"llm_c"` requires that header. `"u16"`
                and `"u32"` also read bare little-endian ids of that type.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads consecutive crops from files of token ids.

        Elements are dicts of `tokens`.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.bin`) are expanded.
            seq_len: Number of tokens in a crop. The remaining tokens at the end of a file are dropped.
            layout: Layout of the token ids: `"detect"`, `"llm_c"`, `"u16"` or `"u32"`. `"detect"` reads files that
                state the type of their ids, such as files with llm.c's header. `"llm_c"` requires that header. `"u16"`
                and `"u32"` also read bare little-endian ids of that type.
            with_next: Whether to add the token after each crop, which then has `seq_len + 1` ids. Adjacent crops share
                this token.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads crops at random positions from files of token ids.

        Elements are dicts of `tokens`.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.bin`) are expanded.
            seq_len: Number of tokens in a crop.
            seed: Seed for the positions of crops, from 0 to 2^32 - 1.
            layout: Layout of the token ids: `"detect"`, `"llm_c"`, `"u16"` or `"u32"`. `"detect"` reads files that
                state the type of their ids, such as files with llm.c's header. `"llm_c"` requires that header. `"u16"`
                and `"u32"` also read bare little-endian ids of that type.
            with_next: Whether to add the token after each crop, which then has `seq_len + 1` ids.
            epoch: Number of crops in an epoch. By default, the dataset is infinite.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the rows of Arrow IPC (Feather) files and streams, and of folders written by
        `datasets.save_to_disk`.

        In Python, `paths` may be a table in memory: any object that exports itself through Arrow's C
        interface, such as tables of pyarrow, Polars, DuckDB and pandas. Only `columns` applies to a table.
        A `datasets.Dataset` is read with the results of its `shuffle`, `select` and `filter`; its table
        alone (`dataset.data`) lacks these, and is refused.

        Elements are dicts of arrays, numbers, text and lists. Lists of numbers are views of the table's
        memory, or of files that are not compressed.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.arrow`) are expanded.
            cache_bytes: Memory for the cache of decompressed record batches. In bytes, or as text such as `"512MiB"`.
            columns: Columns to read. By default, all columns.
            hive_partitioning: Whether folders named `key=value` become columns, as in Hive, Spark and DuckDB. With
                `True`, all folders of a path become columns; with `False`, none. By default, only the folders between a
                folder of `paths` and its files become columns.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged. The error is raised when the record is read.
            TypeError: The argument is neither paths nor a table. The message names the conversion.
        """

    @staticmethod
    def mix(
        datasets: Sequence[MapDataset[_T]] | Mapping[str, MapDataset[_T]],
        weights: Sequence[float] | Mapping[str, float] | Schedule | Sequence[Any] | None = None,
        *,
        at_end: Literal["stop", "repeat"] = "stop",
    ) -> MapDataset[_T]:
        """Takes elements of several datasets in proportion to weights, in Grain's order.

        The mix ends before the first index at which a dataset has too few elements. Weights count elements: only
        `IterDataset.mix` has `by="tokens"`, `budget` and `at_end="redistribute"`.

        Args:
            datasets: The datasets, in a list or by name.
            weights: A number for each dataset; all equal by default. Or weights that change at certain indices:
                `gm.schedule`, or its list of entries.
            at_end: What happens if a dataset ends. `"repeat"` makes the mix infinite: each dataset continues with its
                next epoch.

        Raises:
            ConfigError: The numbers of weights and datasets differ, a weight is not above 0, or a schedule is not in order.
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
        """Shuffles the elements in constant memory, with another order in every epoch. The order is Grain's.

        A slice of a shuffled dataset has other elements in each epoch. For training and validation sets,
        use `split` before `shuffle`.

        Args:
            seed: Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.

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
        """Shuffles the blocks of the source, then the elements within each window of blocks, with another
        order in every epoch.

        The stage is for sources that fetch or decode many records together, such as row groups of Parquet
        in an object store. Each block is read once per epoch. At most two windows of blocks are in memory.

        Args:
            window_blocks: Number of blocks in a window. The elements of a window are shuffled together, and at most two
                windows are in memory.
            seed: Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.
            block_size: Number of elements in a block. By default, blocks are the row groups of Parquet, record batches
                of Arrow, chunks of ArrayRecord or shards of MDS.

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
            seed: The seed that assigns elements to parts, from 0 to 2^32 - 1. The `seed` of the pipeline does not
                change it.
            shuffle: Whether elements are drawn at random. If false, the first part has the first elements, and so on.

        Raises:
            ConfigError: A size is 0 or less, fractions and numbers are mixed, the sizes exceed the dataset, a part is
                empty or not listed, or the dataset has no end.
        """

    def shard(self, index: int, count: int) -> MapDataset[_T_co]:
        """Takes every `count`-th element from `index` on: the shard of host `index` of `count` hosts.

        Args:
            index: Index of the shard, from 0.
            count: Number of shards.

        Raises:
            ConfigError: There is no such shard.
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
        """Sets the seed from which later random stages without a `seed` argument derive their seeds.

        Args:
            seed: Seed, from 0 to 2^32 - 1.

        Raises:
            ConfigError: The seed is not from 0 to 2^32 - 1.
        """

    def window_shuffle(self, window_size: int, seed: int | None = None) -> MapDataset[_T_co]:
        """Shuffles the elements within each window. The order of the windows does not change.

        A stream holds a window in memory, and reads the window again after a resume.

        Args:
            window_size: Number of elements in a window. A stream holds a window in memory.
            seed: Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.

        Raises:
            ConfigError: The window is empty, or there is no seed, neither here nor in a `seed` before the
                stage.
        """

    def repeat(self, num_epochs: int | None = None, *, reseed_each_epoch: bool = True) -> MapDataset[_T_co]:
        """Repeats the dataset for several epochs, or without end. Before `to_iter`, shuffles differ between
        epochs; after it, all epochs are equal.

        A slice of a shuffled dataset has other elements in each epoch: see `split`. A loader logs a warning
        for such a repeat.

        Args:
            num_epochs: Number of epochs. By default, the dataset is infinite.
            reseed_each_epoch: Whether each epoch has a new random order and new random numbers; only before `to_iter`.
                If false, each epoch repeats the first.

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
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the last `seed` stage before it.

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
            min_length: Minimum length, in bytes of text or rows of an array.
            max_length: Maximum length, in bytes of text or rows of an array.
            min: Minimum value, inclusive.
            max: Maximum value, inclusive.
            equals: Text that the value must equal.

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
            batch_size: Number of elements in a batch.
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
        max_workers: int | None = None,
        threads_per_worker: int | None = None,
        ram_budget: int | str | None = None,
        deadline: float | None = 300.0,
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
        process. Functions and filters that directly follow a compressed source with `lanes` run in the
        workers, too.

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
            max_workers: Maximum number of worker processes if it is tuned. The run starts with one process.
            threads_per_worker: Threads of each worker process. By default, a pipeline with Python functions starts with
                one thread. If the number of workers is not given either, more threads follow if the functions wait and
                release the interpreter's lock. Several threads then call a function at once, as Grain's read threads
                do; 1 prevents that.
            ram_budget: Maximum of shared memory and private memory of all workers together, a quarter of the available
                memory by default. It does not limit shared memory that functions map themselves, such as `mmap.mmap(-1,
                n)`, nor processes that they start, each of which may have the private memory of a worker. A warning
                reports an excess. It does not include what this process holds: the elements of a batch, a window or
                rows that are being packed.
            deadline: Seconds after which a worker process counts as hanging; `None` sets no limit. The start of a
                worker is not included. It may take 20 s, and once 5 s more if the process that forks workers does not
                answer.
            worker_heap: Private memory of each worker process [default: half of the budget, divided by the workers].
                The default is at least 192 MiB if workers call Python functions, and 64 MiB otherwise.
            max_element: Maximum size of an element or batch in shared memory [default: a quarter of the shared memory].
            retries: Worker processes that a range of elements may kill before the element that does so is searched.
            on_poison: What to do with an element that kills every worker process: `"error"` ends the run, `"skip"`
                leaves it out and counts it.
            tune: Whether the numbers of active threads and of prefetched elements follow the needs of the consumer.

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
        edits: str | PathLike[str] | Mapping[str, int | Mapping[str, float] | str | Sequence[str] | PathLike[str] | Mapping[str, str | int] | Sequence[Mapping[str, str | int]] | Literal["refill"]] | Sequence[Mapping[str, int | Mapping[str, float] | str | Sequence[str] | PathLike[str] | Mapping[str, str | int] | Sequence[Mapping[str, str | int]] | Literal["refill"]]] | None = None,
        top: bool = False,
        record: str | PathLike[str] | None = None,
        trace: str | PathLike[str] | None = None,
        ledger: str | PathLike[str] | None = None,
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
            edits: Changes of the batches, each from a batch on: a file in YAML or JSON, or a list. `[{at: 70100, skip:
                400}]` leaves out 400 batches at batch 70,100. `{"at": 160000, "mix": {"web": 0.7, "books": 0.3},
                "over": 2000}` changes the weights of a mix of streams, `remove` its parts, `global_batch` the batch
                size, and `exclude` leaves out records. An edit changes no batch before it, so edits may be appended to
                the file during the run; they apply after the next resume. All hosts need equal edits.
            top: Whether `gristmill top` may look at the run. GRISTMILL_TOP=1 in the environment does the same.
            record: Recording of the run, a file for `gristmill report`. A recording of a run that was killed is read as
                well. An earlier recording is kept as NAME.1.ENDING.
            trace: Trace of the run, a file for ui.perfetto.dev and chrome://tracing. It is compressed if its name ends
                in .gz.
            ledger: Run log, a file for `gristmill which`, `when`, `audit` and `replay`. Each start, resume and 1,000
                batches add a line with the position and a checksum. The host of the first part writes it. An existing
                log is extended.

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
        """Keeps only the given columns, in the given order.

        Args:
            columns: Name of a column, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def drop_columns(self, columns: str | Sequence[str]) -> MapDataset[dict[str, Any]]:
        """Drops the given columns.

        Args:
            columns: Name of a column, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> MapDataset[dict[str, Any]]:
        """Renames columns, from old names to new names: `{"text": "document"}`.

        In Python, names can also be keyword arguments: `rename(text="document")`.

        Args:
            names: Entries whose names cannot be keywords.
            more: Entries by name.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def concatenate_columns(
        self,
        columns: str | Sequence[str],
        *,
        into: str = "tokens",
        mask: str | None = None,
        labels: str | None = None,
        trained: str | Sequence[str] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Concatenates columns of an element, such as a prompt and its completion, as one column.

        The concatenated column replaces the columns. With `mask` or `labels`, the loss can be limited to
        the columns in `trained`.

        Args:
            columns: Columns to concatenate, in this order: arrays of one dtype.
            into: Name of the concatenated column.
            mask: Name of a column to add, which contains 1 for each cell of a column in `trained`, and 0 for other
                cells (`int32`).
            labels: Name of a column to add, which contains each cell of a column in `trained`, and -100 for other cells
                and for the first cell (`int64`).
            trained: Columns that are trained on. By default, the last of `columns`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A column is not an array, or differs from the first column in its dtype or the shape
                of its cells.
        """

    def parse_example(
        self,
        features: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        *,
        column: str | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Parses each record of bytes as a `tf.train.Example`, and returns its features.

        Elements are `bytes`, or dicts with the bytes in `column`, which the features replace. A dtype is
        `int64`, `float32`, `bytes` or `str`. A feature without a shape has any number of values.

        Args:
            features: Features to parse, such as `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids":
                "int64"}`. By default, or with `True`, the features are inferred: numbers become one-dimensional arrays,
                a single string becomes bytes, and several strings become a list.
            column: Column that contains the bytes. By default, `record`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is not an `Example`, or lacks a feature.
        """

    def parse_sequence_example(
        self,
        *,
        context: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequences: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        column: str | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Parses each record of bytes as a `tf.train.SequenceExample`, and returns its features. Without
        `context` and `sequences`, all features are inferred.

        Args:
            context: Features of the context, declared as in `parse_example`.
            sequences: Features of each step. A feature with a shape becomes an array of shape `[time, …]`, any other
                feature a list with an array for each step. With `{"allow_missing": True}`, records may lack the
                feature.
            column: Column that contains the bytes. By default, `record`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is not a `SequenceExample`, or lacks a feature.
        """

    def tokenise(
        self,
        *,
        tokenizer: str | PathLike[str] | _Tokenizer,
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
        """Encodes columns of text as columns of token ids (`int32`, one-dimensional) with a tokenizer.

        A single `column` becomes `tokens`; each of several `columns` becomes `<column>_tokens`. The ids
        replace their text, unless `keep_text` is true. `overflow="chunk"` needs a stream.

        Args:
            tokenizer: Path of the tokenizer: a `tokenizer.json`, a `.tiktoken` file of a known encoding, or a
                SentencePiece model. Also the contents of a `tokenizer.json`, or a `data:;base64,` URL.
            overflow: Policy for texts longer than `max_len`: `"truncate"` keeps the beginning, `"chunk"` splits the
                text into several elements, `"error"` rejects the text.
            column: Text column, which becomes `tokens`. Either `column` or `columns` is required.
            columns: Text columns, each of which becomes `<column>_tokens`.
            into: Names for the columns of ids, in the order of the text columns.
            prepend_bos: Token to add before each text, by name or id.
            append_eos: Token to add after each text, by name or id.
            max_len: Maximum number of tokens per text, including added tokens. By default, no limit.
            keep_text: Whether to keep the text columns. If false, the ids replace the text.
            special_in_text: Whether a special token that is written out in a text becomes that token. If false, it is
                encoded as plain text.
            engine: Tokenizer engine: `"fast"`, `"compat"`, or `"auto"`, which uses the fast engine if both engines
                agree.

        Raises:
            ConfigError: A column or a token does not exist, or the file is not a tokenizer.
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
        names: Literal["grain", "hf", "torchtitan", "thd"] = "grain",
    ) -> MapDataset[dict[str, Any]]:
        """Adds labels, `cu_seqlens` and positions of padding to packed rows or batches, by the names of a
        trainer if asked.

        Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within
        each row; `batch` stacks it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the
        B·T cells of the batch, as `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

        Args:
            feature: Packed column. Its segment ids and positions must be columns, too.
            padding_positions: Positions of padding: `"zero"`, `"restart"` or `"continue"`. `"zero"` sets all of them to
                0, as packing does. `"restart"` counts from 0 in each run of padding. `"continue"` counts on after the
                preceding segment.
            labels: Labels to add as the column `labels` (int64, in the shape of the tokens). With `"unshifted"`, the
                label of a token is the token itself, for models that shift labels, such as Hugging Face's. With
                `"shifted"`, the label is the next token. The label is -100 in padding, and at the first (`"unshifted"`)
                or last (`"shifted"`) token of a segment. By default, no labels are added.
            cu_seqlens: Whether to add the columns `cu_seqlens` and `max_seqlen` (int32). `cu_seqlens` contains the
                start of each segment in the flattened rows, then the number of cells. `max_seqlen` is the length of the
                longest segment. A run of padding is a segment; with `padding_positions="continue"`, padding belongs to
                the preceding segment.
            max_segments: Fixed number of segments in `cu_seqlens`, filled up with segments of length 0. By default, no
                segments are added, and rows with different numbers of segments cannot be stacked.
            names: Names, dtypes and shapes of a trainer, after `batch`: `"hf"` (Hugging Face's Trainer, TRL),
                `"torchtitan"` or `"thd"` (Megatron Core, Transformer Engine). The rows become a single sequence, with
                the labels and segment bounds that the trainer expects.

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
        """Reads the records of JSON Lines files. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a
        stream.

        Elements are dicts of arrays, numbers, text and lists.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.jsonl`) are expanded.
            repeated_names: Policy for records in which an object repeats a name: `"last"` keeps the last value and
                counts the record in the report, `"error"` makes it a bad record. Only the columns that are read are
                checked.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            columns: Columns to read. By default, all columns.
            lanes: Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from
                the lanes in turn, so the number determines the order of records. By default, all files form a single
                stream.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the lines of text files, without line ends. Compressed files (`.gz`, `.zst`, `.lz4`) are read
        as a stream.

        Elements are dicts with one column of text.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.txt`) are expanded.
            column: Name of the text column.
            blank_lines: Whether lines of only white space are records. Compressed files do not support this option.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            lanes: Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from
                the lanes in turn, so the number determines the order of records. By default, all files form a single
                stream.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the records of CSV files. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a stream.

        Elements are dicts of numbers and text, with an entry for each column.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.csv`) are expanded.
            delimiter: Character between fields. By default, it is detected from the first records.
            quote: Character around fields that contain delimiters or line ends; empty text for files without quotes. By
                default, `"`.
            header: Whether the first record of each file contains the column names. By default, true unless `names` is
                given.
            names: Names of all columns, instead of a header.
            columns: Columns to read. By default, all columns.
            nulls: Field values that are read as null. By default, empty fields are null, except in columns of text.
            infer_rows: Number of records from which column types are inferred.
            types: Types of columns by name: `str`, `bool`, `int64`, `float32` and so on. The types of other columns are
                inferred.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            lanes: Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from
                the lanes in turn, so the number determines the order of records. By default, all files form a single
                stream.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the records of TFRecord files. Compressed files (`.gz`, `.zlib`) are read as a stream.

        Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.tfrecord`) are
                expanded.
            field: Name of the column for the bytes of a record. By default, `record` in pipeline files; in Python, the
                elements are `bytes`.
            examples: Features to parse from records of `tf.train.Example`, declared as in `parse_example`. With `True`,
                the features are inferred.
            sequence_examples: Features to parse from records of `tf.train.SequenceExample`: `context` and `sequences`,
                declared as in `parse_sequence_example`. With `True`, the features are inferred.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            lanes: Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from
                the lanes in turn, so the number determines the order of records. By default, all files form a single
                stream.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
        """Reads the samples of WebDataset tar shards: `__key__` and a column for each extension. Compressed
        shards are read as a stream.

        Args:
            paths: Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.tar`) are expanded.
            decode: Whether to decode fields by their extension: text, numbers, JSON, arrays of `.npy` and images
                (`uint8`, height × width × channels). If false, fields are bytes.
            url: Whether to add the path of the shard as the column `__url__`.
            columns: Extensions to read. By default, all extensions.
            index_cache: Cache for the index of record positions: `"beside"` the data files, `"off"`, or the path of a
                folder.
            lanes: Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from
                the lanes in turn, so the number determines the order of records. By default, all files form a single
                stream.
            on_bad_shard: Policy for shards that cannot be opened: `"error"` ends the run, `"skip"` skips the shard and
                logs a warning. By default, `"error"`, unless a pipeline file sets a policy for bad records.

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
    def mix(
        datasets: Sequence[IterDataset[_T]] | Mapping[str, IterDataset[_T]],
        weights: Sequence[float] | Mapping[str, float] | Schedule | Sequence[Any] | None = None,
        *,
        by: Literal["elements", "tokens"] = "elements",
        column: str = "tokens",
        at_end: Literal["stop", "repeat", "redistribute"] = "stop",
        budget: Mapping[str, float] | None = None,
    ) -> IterDataset[_T]:
        """Takes elements of several streams in proportion to weights, in Grain's order.

        With `by="tokens"`, the next element is of the stream that is furthest below its share of all tokens. A stream
        exceeds its share by at most its last element.

        Args:
            datasets: The streams, in a list or by name.
            weights: A number for each stream; all equal by default. Or weights that change at certain positions:
                `gm.schedule`, or its list of entries.
            by: Unit of weights, positions and budgets.
            column: Column whose length is the number of tokens of an element.
            at_end: What happens if a stream ends: the mix ends, the stream starts again, or its weight is divided among
                the others.
            budget: Elements or tokens after which a stream ends, by name, or by its number as text. The element that
                reaches the limit is delivered.

        Raises:
            ConfigError: The numbers of weights and streams differ, a weight is not above 0, a name is unknown, or a schedule is
                not in order.
            DataError: An element has no column `column`, or a stream to repeat has no elements.
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
        """Ends after the first `count` elements.

        Args:
            count: Number of elements to keep.

        Raises:
            ConfigError: `count` is 0.
        """

    def take(self, count: int) -> IterDataset[_T_co]:
        """Ends after the first `count` elements, as `limit` does.

        Args:
            count: Number of elements to keep.

        Raises:
            ConfigError: `count` is 0.
        """

    def skip(self, count: int) -> IterDataset[_T_co]:
        """Skips the first `count` elements.

        The skipped elements are evaluated once in each pass. Before `to_iter_dataset`, the slice
        `ds[count:]` skips elements at no cost.

        Args:
            count: Number of elements to skip; 0 skips none.

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
        """Skips records that the stages before it cannot use. Directly after random access, it begins the
        stream.

        Skipped records are counted in the report and in the state. The first few are logged. Use the stage
        directly after a stream of files, or after the last elementwise stage, and before stages that join
        elements.

        Args:
            limit: Maximum number of skipped records. By default, no limit.
            consecutive: Maximum number of consecutive skipped records. By default, no limit.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: More records than a limit were skipped. The error is raised during the pass.
        """

    def cache(self) -> IterDataset[_T_co]:
        """Keeps all elements in memory for the later epochs of a subsequent `repeat`.
        ConfigError: An argument is invalid, or a column does not exist.
        """

    def rebatch(self, batch_size: int, *, remainder: Literal["keep", "drop"] = "keep") -> IterDataset[Any]:
        """Regroups the rows of batches into batches of `batch_size` rows. Rows from a single batch are not
        copied.

        Args:
            batch_size: Number of rows in a batch.
            remainder: Policy for the last rows if they do not fill a batch: `"keep"` delivers a smaller batch, `"drop"`
                drops the rows.

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

    def which(self, log: str | PathLike[str], step: int, *, keys: str | PathLike[str] | None = None) -> dict[str, Any]:
        """Returns the records of a batch of a logged run, as `gristmill which` prints them. Plans at most 1,000 batches.

        Args:
            log: The run log, which `loader(ledger=…)` writes.
            step: The number of the global batch, from 0.
            keys: The folder of key files. Without keys, records are evaluated if necessary.

        Returns:
            A dict with `step`, `planned_from`, and `rows` as in `DatasetIterator.lineage`.
        """

    def audit(self, log: str | PathLike[str], *, keys: str | PathLike[str] | None = None) -> dict[str, int]:
        """Plans a logged run again and compares it with its log, as `gristmill audit` does.

        Args:
            log: The run log, which `loader(ledger=…)` writes.
            keys: The folder of key files. Without keys, records are evaluated if necessary.

        Returns:
            The numbers of planned `batches`, and of compared `positions` and `digests`.
        """

    def seed(self, seed: int) -> IterDataset[_T_co]:
        """Sets the seed from which later random stages without a `seed` argument derive their seeds.

        Args:
            seed: Seed, from 0 to 2^32 - 1.

        Raises:
            ConfigError: The seed is not from 0 to 2^32 - 1.
        """

    def window_shuffle(self, window_size: int, seed: int | None = None) -> IterDataset[_T_co]:
        """Shuffles the elements within each window. The order of the windows does not change.

        A stream holds a window in memory, and reads the window again after a resume.

        Args:
            window_size: Number of elements in a window. A stream holds a window in memory.
            seed: Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.

        Raises:
            ConfigError: The window is empty, or there is no seed, neither here nor in a `seed` before the
                stage.
        """

    def repeat(self, num_epochs: int | None = None) -> IterDataset[_T_co]:
        """Repeats the whole stream. Every epoch has equal elements.

        Args:
            num_epochs: Number of epochs; endless by default.

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
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the last `seed` stage before it.

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
            min_length: Minimum length, in bytes of text or rows of an array.
            max_length: Maximum length, in bytes of text or rows of an array.
            min: Minimum value, inclusive.
            max: Maximum value, inclusive.
            equals: Text that the value must equal.
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
            batch_size: Number of elements in a batch.
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
        max_workers: int | None = None,
        threads_per_worker: int | None = None,
        ram_budget: int | str | None = None,
        deadline: float | None = 300.0,
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
        process. Functions and filters that directly follow a compressed source with `lanes` run in the
        workers, too.

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
            max_workers: Maximum number of worker processes if it is tuned. The run starts with one process.
            threads_per_worker: Threads of each worker process. By default, a pipeline with Python functions starts with
                one thread. If the number of workers is not given either, more threads follow if the functions wait and
                release the interpreter's lock. Several threads then call a function at once, as Grain's read threads
                do; 1 prevents that.
            ram_budget: Maximum of shared memory and private memory of all workers together, a quarter of the available
                memory by default. It does not limit shared memory that functions map themselves, such as `mmap.mmap(-1,
                n)`, nor processes that they start, each of which may have the private memory of a worker. A warning
                reports an excess. It does not include what this process holds: the elements of a batch, a window or
                rows that are being packed.
            deadline: Seconds after which a worker process counts as hanging; `None` sets no limit. The start of a
                worker is not included. It may take 20 s, and once 5 s more if the process that forks workers does not
                answer.
            worker_heap: Private memory of each worker process [default: half of the budget, divided by the workers].
                The default is at least 192 MiB if workers call Python functions, and 64 MiB otherwise.
            max_element: Maximum size of an element or batch in shared memory [default: a quarter of the shared memory].
            retries: Worker processes that a range of elements may kill before the element that does so is searched.
            on_poison: What to do with an element that kills every worker process: `"error"` ends the run, `"skip"`
                leaves it out and counts it.
            tune: Whether the numbers of active threads and of prefetched elements follow the needs of the consumer.

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
        edits: str | PathLike[str] | Mapping[str, int | Mapping[str, float] | str | Sequence[str] | PathLike[str] | Mapping[str, str | int] | Sequence[Mapping[str, str | int]] | Literal["refill"]] | Sequence[Mapping[str, int | Mapping[str, float] | str | Sequence[str] | PathLike[str] | Mapping[str, str | int] | Sequence[Mapping[str, str | int]] | Literal["refill"]]] | None = None,
        top: bool = False,
        record: str | PathLike[str] | None = None,
        trace: str | PathLike[str] | None = None,
        ledger: str | PathLike[str] | None = None,
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
            edits: Changes of the batches, each from a batch on: a file in YAML or JSON, or a list. `[{at: 70100, skip:
                400}]` leaves out 400 batches at batch 70,100. `{"at": 160000, "mix": {"web": 0.7, "books": 0.3},
                "over": 2000}` changes the weights of a mix of streams, `remove` its parts, `global_batch` the batch
                size, and `exclude` leaves out records. An edit changes no batch before it, so edits may be appended to
                the file during the run; they apply after the next resume. All hosts need equal edits.
            top: Whether `gristmill top` may look at the run. GRISTMILL_TOP=1 in the environment does the same.
            record: Recording of the run, a file for `gristmill report`. A recording of a run that was killed is read as
                well. An earlier recording is kept as NAME.1.ENDING.
            trace: Trace of the run, a file for ui.perfetto.dev and chrome://tracing. It is compressed if its name ends
                in .gz.
            ledger: Run log, a file for `gristmill which`, `when`, `audit` and `replay`. Each start, resume and 1,000
                batches add a line with the position and a checksum. The host of the first part writes it. An existing
                log is extended.

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
        """Keeps only the given columns, in the given order.

        Args:
            columns: Name of a column, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def drop_columns(self, columns: str | Sequence[str]) -> IterDataset[dict[str, Any]]:
        """Drops the given columns.

        Args:
            columns: Name of a column, or a list of names.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> IterDataset[dict[str, Any]]:
        """Renames columns, from old names to new names: `{"text": "document"}`.

        In Python, names can also be keyword arguments: `rename(text="document")`.

        Args:
            names: Entries whose names cannot be keywords.
            more: Entries by name.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
        """

    def concatenate_columns(
        self,
        columns: str | Sequence[str],
        *,
        into: str = "tokens",
        mask: str | None = None,
        labels: str | None = None,
        trained: str | Sequence[str] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Concatenates columns of an element, such as a prompt and its completion, as one column.

        The concatenated column replaces the columns. With `mask` or `labels`, the loss can be limited to
        the columns in `trained`.

        Args:
            columns: Columns to concatenate, in this order: arrays of one dtype.
            into: Name of the concatenated column.
            mask: Name of a column to add, which contains 1 for each cell of a column in `trained`, and 0 for other
                cells (`int32`).
            labels: Name of a column to add, which contains each cell of a column in `trained`, and -100 for other cells
                and for the first cell (`int64`).
            trained: Columns that are trained on. By default, the last of `columns`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A column is not an array, or differs from the first column in its dtype or the shape
                of its cells.
        """

    def parse_example(
        self,
        features: bool | Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        *,
        column: str | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Parses each record of bytes as a `tf.train.Example`, and returns its features.

        Elements are `bytes`, or dicts with the bytes in `column`, which the features replace. A dtype is
        `int64`, `float32`, `bytes` or `str`. A feature without a shape has any number of values.

        Args:
            features: Features to parse, such as `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids":
                "int64"}`. By default, or with `True`, the features are inferred: numbers become one-dimensional arrays,
                a single string becomes bytes, and several strings become a list.
            column: Column that contains the bytes. By default, `record`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is not an `Example`, or lacks a feature.
        """

    def parse_sequence_example(
        self,
        *,
        context: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        sequences: Mapping[str, Literal["int64", "float32", "bytes", "str"] | Mapping[str, Any]] | None = None,
        column: str | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Parses each record of bytes as a `tf.train.SequenceExample`, and returns its features. Without
        `context` and `sequences`, all features are inferred.

        Args:
            context: Features of the context, declared as in `parse_example`.
            sequences: Features of each step. A feature with a shape becomes an array of shape `[time, …]`, any other
                feature a list with an array for each step. With `{"allow_missing": True}`, records may lack the
                feature.
            column: Column that contains the bytes. By default, `record`.

        Raises:
            ConfigError: An argument is invalid, or a column does not exist.
            DataError: A record is not a `SequenceExample`, or lacks a feature.
        """

    def tokenise(
        self,
        *,
        tokenizer: str | PathLike[str] | _Tokenizer,
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
        """Encodes columns of text as columns of token ids (`int32`, one-dimensional) with a tokenizer.

        A single `column` becomes `tokens`; each of several `columns` becomes `<column>_tokens`. The ids
        replace their text, unless `keep_text` is true. `overflow="chunk"` needs a stream.

        Args:
            tokenizer: Path of the tokenizer: a `tokenizer.json`, a `.tiktoken` file of a known encoding, or a
                SentencePiece model. Also the contents of a `tokenizer.json`, or a `data:;base64,` URL.
            overflow: Policy for texts longer than `max_len`: `"truncate"` keeps the beginning, `"chunk"` splits the
                text into several elements, `"error"` rejects the text.
            column: Text column, which becomes `tokens`. Either `column` or `columns` is required.
            columns: Text columns, each of which becomes `<column>_tokens`.
            into: Names for the columns of ids, in the order of the text columns.
            prepend_bos: Token to add before each text, by name or id.
            append_eos: Token to add after each text, by name or id.
            max_len: Maximum number of tokens per text, including added tokens. By default, no limit.
            keep_text: Whether to keep the text columns. If false, the ids replace the text.
            special_in_text: Whether a special token that is written out in a text becomes that token. If false, it is
                encoded as plain text.
            engine: Tokenizer engine: `"fast"`, `"compat"`, or `"auto"`, which uses the fast engine if both engines
                agree.

        Raises:
            ConfigError: A column or a token does not exist, or the file is not a tokenizer.
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
        """Packs each sequence into the first of `num_packing_bins` rows that has room. The result equals
        Grain's.

        Args:
            length: Columns to pack, each with its number of cells in a row: `{"tokens": 1024}`. A row contains each
                column, its `_segment_ids` (1, 2, …; 0 is padding) and its `_positions` (from 0 in each segment).
            num_packing_bins: Number of rows to fill at a time. These rows form a group, which is delivered when an
                element fits into none of them.
            padding: Values of padding cells, by column. By default, 0.
            meta_features: Columns without segment ids and positions. If a column is not in `length`, a row contains a
                list of the values of its sequences. Columns in neither `meta_features` nor `length` are dropped, with a
                single warning.
            names: Names of the output columns: `"grain"`, or `"maxtext"` for `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            align: Alignment in cells, by column. Sequences start at multiples of this number, and gaps have segment id
                0.
            shuffle_bins: Whether the rows of a group are delivered in random order. If false, the last rows of each
                group have the most padding.
            seed: Seed for the order of rows within a group.
            shuffle_bins_group_by_feature: Column whose mean groups the rows: only rows with equal means are shuffled
                together. With a column of epoch numbers, epochs stay separate.
            max_sequences_per_bin: Maximum number of sequences in a row. By default, no limit.
            over_long: Policy for sequences longer than a row: `"error"` rejects the sequence, `"split"` splits it into
                pieces, `"drop"` drops and counts it.

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
        """Packs each sequence into the fullest of `num_packing_bins` rows that has room. The result equals
        Grain's.

        Args:
            length: Columns to pack, each with its number of cells in a row: `{"tokens": 1024}`. A row contains each
                column, its `_segment_ids` (1, 2, …; 0 is padding) and its `_positions` (from 0 in each segment).
            num_packing_bins: Number of rows to fill at a time. These rows form a group, which is delivered when an
                element fits into none of them.
            padding: Values of padding cells, by column. By default, 0.
            meta_features: Columns without segment ids and positions. If a column is not in `length`, a row contains a
                list of the values of its sequences. Columns in neither `meta_features` nor `length` are dropped, with a
                single warning.
            names: Names of the output columns: `"grain"`, or `"maxtext"` for `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            align: Alignment in cells, by column. Sequences start at multiples of this number, and gaps have segment id
                0.
            shuffle_bins: Whether the rows of a group are delivered in random order. If false, the last rows of each
                group have the most padding.
            seed: Seed for the order of rows within a group.
            shuffle_bins_group_by_feature: Column whose mean groups the rows: only rows with equal means are shuffled
                together. With a column of epoch numbers, epochs stay separate.
            max_sequences_per_bin: Maximum number of sequences in a row. By default, no limit.
            over_long: Policy for sequences longer than a row: `"error"` rejects the sequence, `"split"` splits it into
                pieces, `"drop"` drops and counts it.

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
        """Packs sequences into rows, choosing from a window of sequences to leave almost no padding.

        Args:
            length: Columns to pack, each with its number of cells in a row: `{"tokens": 1024}`. A row contains each
                column, its `_segment_ids` (1, 2, …; 0 is padding) and its `_positions` (from 0 in each segment).
            padding: Values of padding cells, by column. By default, 0.
            meta_features: Columns without segment ids and positions. If a column is not in `length`, a row contains a
                list of the values of its sequences. Columns in neither `meta_features` nor `length` are dropped, with a
                single warning.
            names: Names of the output columns: `"grain"`, or `"maxtext"` for `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            align: Alignment in cells, by column. Sequences start at multiples of this number, and gaps have segment id
                0.
            over_long: Policy for sequences longer than a row: `"error"` rejects the sequence, `"split"` splits it into
                pieces, `"drop"` drops and counts it.
            window: Number of sequences to look ahead, which are held in memory.
            max_sequences_per_bin: Maximum number of sequences in a row. By default, no limit.

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
        """Concatenates sequences and splits them into rows. The result equals Grain's.

        Args:
            length: Columns to pack, each with its number of cells in a row: `{"tokens": 1024}`. A row contains each
                column, its `_segment_ids` (1, 2, …; 0 is padding) and its `_positions` (from 0 in each segment).
            padding: Values of padding cells, by column. By default, 0.
            meta_features: Columns without segment ids and positions. If a column is not in `length`, a row contains a
                list of the values of its sequences. Columns in neither `meta_features` nor `length` are dropped, with a
                single warning.
            names: Names of the output columns: `"grain"`, or `"maxtext"` for `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.
            split_full_length_features: Whether a sequence that fills a row alone is split like any other. If false, it
                becomes a separate row.
            bos_features: Columns in which first tokens are replaced.
            positions: Positions of a sequence that continues in the next row: `"restart"` begins again at 0,
                `"continue"` follows the last position.
            bos_handling: Policy for first tokens: `"do_nothing"` keeps them, `"replace_first_token_with_bos"` replaces
                them with `bos_token_id`. Pieces that continue a sequence in the next row have first tokens, too.
            bos_token_id: Token that replaces first tokens.

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
        """Batches sequences of similar length, padded to the length of their bucket.

        Args:
            features: Columns to pad. The length of an element is the length of its longest column.
            boundaries: Lengths of the buckets, in ascending order.
            batch: Number of elements in a batch: a number, `{"per_bucket": [64, 32]}` for each bucket, or `{"tokens":
                32768}` to limit the cells of a batch.
            padding: Values of padding cells, by column. By default, 0.
            window: Maximum number of elements to hold. If the window is full, the batch of the oldest element is
                delivered short.
            remainder: Policy for batches that are not full: `"keep"` delivers a smaller batch, `"drop"` drops the
                elements, `"pad"` fills the batch with rows of padding.
            drop_over_long: Whether elements longer than the last boundary are dropped and counted. If false, they are
                an error.

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
        names: Literal["grain", "hf", "torchtitan", "thd"] = "grain",
    ) -> IterDataset[dict[str, Any]]:
        """Adds labels, `cu_seqlens` and positions of padding to packed rows or batches, by the names of a
        trainer if asked.

        Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within
        each row; `batch` stacks it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the
        B·T cells of the batch, as `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

        Args:
            feature: Packed column. Its segment ids and positions must be columns, too.
            padding_positions: Positions of padding: `"zero"`, `"restart"` or `"continue"`. `"zero"` sets all of them to
                0, as packing does. `"restart"` counts from 0 in each run of padding. `"continue"` counts on after the
                preceding segment.
            labels: Labels to add as the column `labels` (int64, in the shape of the tokens). With `"unshifted"`, the
                label of a token is the token itself, for models that shift labels, such as Hugging Face's. With
                `"shifted"`, the label is the next token. The label is -100 in padding, and at the first (`"unshifted"`)
                or last (`"shifted"`) token of a segment. By default, no labels are added.
            cu_seqlens: Whether to add the columns `cu_seqlens` and `max_seqlen` (int32). `cu_seqlens` contains the
                start of each segment in the flattened rows, then the number of cells. `max_seqlen` is the length of the
                longest segment. A run of padding is a segment; with `padding_positions="continue"`, padding belongs to
                the preceding segment.
            max_segments: Fixed number of segments in `cu_seqlens`, filled up with segments of length 0. By default, no
                segments are added, and rows with different numbers of segments cannot be stacked.
            names: Names, dtypes and shapes of a trainer, after `batch`: `"hf"` (Hugging Face's Trainer, TRL),
                `"torchtitan"` or `"thd"` (Megatron Core, Transformer Engine). The rows become a single sequence, with
                the labels and segment bounds that the trainer expects.

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

    def edit(
        self,
        *,
        at: int | None = None,
        skip: int | None = None,
        mix: Mapping[str, float] | None = None,
        over: int | None = None,
        remove: str | Sequence[str] | None = None,
        global_batch: int | None = None,
        exclude: str | Sequence[Mapping[str, str | int]] | None = None,
    ) -> int:
        """Changes the run from a batch on, while it continues: an entry of `edits`.

        All hosts call `edit` with equal arguments after equally many batches. States, the report and the run log contain
        the edit. A run that resumes needs the edit in its `edits`.

        Args:
            at: Number of the first batch that changes. By default, the first batch that can change.
            skip: Number of batches to leave out.
            mix: Weights of the parts of a mix of streams, by their names.
            over: Number of batches of a linear transition to the weights of `mix`.
            remove: Names of parts to remove from a mix of streams.
            global_batch: Number of rows of each batch.
            exclude: Records to leave out: a file with the output of `gristmill which`, or a list such as `[{"file":
                "a.jsonl", "record": 1183}]`.

        Returns:
            The number of the first batch that changes.

        Raises:
            ConfigError: The edit fits no stage, or its batch has begun. The run continues unchanged.
        """

    @property
    def part(self) -> Part | None:
        """The part of every batch that is delivered, from the next batch on; `None` without a part."""

    @property
    def rows(self) -> list[int] | None:
        """Numbers of the rows of the last batch in its global batch; `None` before the first batch, and without a part."""

    def lineage(self) -> list[dict[str, Any]]:
        """Returns the records from which the rows of the last element were made, of this host's part.

        The element is planned again from the state before it. Records without keys are evaluated again if rows depend on
        lengths or on dropped elements.

        Returns:
            A dict for each row, with its number in the global batch, `row`, and its `segments`. A segment has `source` and
            `stage`, the name and number of the source; `index`, the number of the record in the source; `file` and `record`,
            the file and the number of the record there; `bytes`, the bytes of the record in the file; `epoch`; `piece`,
            the number of the element among those of the record; and, for packed rows, `tokens` and `cells`: the cells of
            the element in the row, and the cells of the row that they fill. Ranges are `[start, end]`.

        Raises:
            StateError: No element was delivered since the start or the last move.
            ConfigError: The records are unknown. The message names the stage.
        """

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
        """Adds `relative_speed`: the speed as a share of the speed of another loop.

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
