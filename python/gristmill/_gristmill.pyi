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
    """Runs the command that `arguments` say, the first of which is the program's name, and returns the exit code.

    Args:
        arguments: As in `sys.argv`.
        interpreter: The path of the Python that workers are started with.
    """

def index_shuffle(index: int, max_index: int, seed: int, rounds: int) -> int:
    """Says where Grain's permutation of `0..=max_index` sends `index`.

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
# Names of columns.
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

@final
class MapDataset(Generic[_T_co]):
    """A dataset of random access: `ds[i]`, `len(ds)`, shuffled and sharded by index, evaluated in any order."""

    @staticmethod
    def range(start: int, stop: int | None = None, step: int = 1) -> MapDataset[int]:
        """Counts whole numbers, as Python's `range`.

        Args:
            start: The first number; the end where it is given alone, and then the first is 0.
            stop: The end, which is not reached.
            step: From one number to the next; not 0.

        Raises:
            ConfigError: `step` is 0.
        """

    @staticmethod
    def source(source: _Source[_T]) -> MapDataset[_T]:
        """Reads the records of anything with `__len__` and `__getitem__`; index `i` reads record `i % len(source)`.

        A source that also has `__getitems__` is given lists of indices, as many as are read at a time, and returns as
        many records; where that raises, they are read one by one. An array that the source keeps a reference to, or of
        which the record is a view, is copied, unless it is read-only.

        Args:
            source: Lists, arrays, datasets of others; it is asked from several threads if the loader has some.

        Raises:
            TypeError: It has no `__getitem__` or no length.
        """

    @staticmethod
    def computed(source: _Source[_T | None], *, dense: bool = False) -> MapDataset[_T]:
        """Asks anything with `__len__` and `__getitem__` for the element of each index; `None` where there is none.

        Unlike a `source` it is asked for indices of later epochs as they are.

        Args:
            source: What computes the elements; its length is that of one epoch.
            dense: Promises an element for each index.

        Raises:
            TypeError: It has no `__getitem__` or no length.
        """

    @staticmethod
    def jsonl(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        repeated_names: Literal["last", "error"] = "last",
        index_cache: _Path | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the records of JSON Lines files: dicts of arrays, numbers, text and lists.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.jsonl`) or URLs of any of these; one or a
                list.
            columns: The columns to read, all of them by default.
            repeated_names: What becomes of a record in which an object has a name twice, among the columns that are
                read: the last value stands, and the report counts such records, or it is a bad record.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def arrow(
        paths: _Paths | _ArrowStream | _ArrowArray | _HuggingFace,
        *,
        columns: _Names | None = None,
        cache_bytes: int | str | None = None,
        hive_partitioning: bool | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the rows of Arrow's files, or of a table in memory: dicts of arrays, numbers, text and lists.

        Files are those of Arrow IPC (Feather) and its streams, and folders that `datasets.save_to_disk` wrote. A table
        is anything that exports itself through Arrow's C interface, as those of pyarrow, Polars, DuckDB and pandas do.
        A `datasets.Dataset` is read as it is, with what `shuffle`, `select` and `filter` made of it; its table alone
        (`dataset.data`) does not know of that, and is refused.

        Lists of numbers, also those of fixed size, are views: of the table's memory, or of files that are not
        compressed.

        Args:
            paths: Files, folders, globs or URLs, one or a list; or the table.
            columns: The columns to read, all of them by default.
            cache_bytes: Bytes, or text such as `"512MiB"`, of decompressed batches that are kept. Only of files.
            hive_partitioning: Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them: by
                default the folders between a folder of `paths` and its files, if true all folders of a path, if false
                none.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
            TypeError: It is neither paths nor a table; the message says how to make it one.
        """

    @staticmethod
    def lines(
        paths: _Paths,
        *,
        column: str = "text",
        blank_lines: bool = False,
        index_cache: _Path | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the lines of text files: dicts with one `column` of text, without line ends.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.txt`) or URLs of any of these; one or a
                list.
            column: The name of the column of text.
            blank_lines: Whether lines of nothing but white space are records, too; only of files that are not
                compressed.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

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
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the records of CSV files that are not compressed: dicts of numbers and text, a field for each column.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.csv`) or URLs of any of these; one or a
                list.
            columns: The columns to read, all of them by default.
            delimiter: One character; found in the first records if it is not given.
            quote: The character around fields that hold delimiters, `"` by default; empty text for none.
            header: Whether the first record of each file names the columns; so it does by default, unless `names` are
                given.
            names: The names of the columns, if the files do not have them.
            types: Types of columns: `"str"`, `"bool"`, `"int64"`, `"float32"` and so on. Those of others are inferred.
            nulls: Fields that stand for `None`.
            infer_rows: Records by which the types of columns are inferred.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def parquet(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        row_groups: Mapping[str, str | float] | None = None,
        cache_bytes: int | str | None = None,
        hive_partitioning: bool | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the rows of Parquet files: dicts of arrays, numbers, text, lists and dicts.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.parquet`) or URLs of any of these; one or
                a list.
            columns: The columns to read, all of them by default. `"meta.url"` is one field of a struct.
            row_groups: Leaves out the row groups that cannot hold such a row, by their statistics:
                `{"column": "id", "min": 3, "max": 9}`, or `equals`. A `filter` drops the other rows of those that are
                read.
            cache_bytes: Memory for decoded row groups that are kept. In bytes, or as text such as `"512MiB"`.
                `"256MiB"` by default.
            hive_partitioning: Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them: by
                default the folders between a folder of `paths` and its files, if true all folders of a path, if false
                none.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def array_record(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        cache_bytes: int | str | None = None,
        recover: bool = False,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[Any]:
        """Reads the records of ArrayRecord files.

        Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.array_record`) or URLs of any of these;
                one or a list.
            field: The name under which the bytes of a record are put into a dict, which native stages take; plain
                `bytes` by default.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            cache_bytes: Memory for decoded chunks, if chunks hold several records. In bytes, or as text such as
                `"512MiB"`. `"256MiB"` by default.
            recover: Read a file that was cut off up to its last whole chunk. The loss is logged.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def tfrecord(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        index_cache: _Path | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[Any]:
        """Reads the records of TFRecord files that are not compressed.

        Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tfrecord`) or URLs of any of these; one or
                a list.
            field: The name under which the bytes of a record are put into a dict, which native stages take; plain
                `bytes` by default.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def bagz(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        interleaved: bool = False,
        compressed: bool | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[Any]:
        """Reads the records of Bagz files.

        Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.
        `x@4.bagz` names four files.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.bagz`) or URLs of any of these; one or a
                list.
            field: The name under which the bytes of a record are put into a dict, which native stages take; plain
                `bytes` by default.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            interleaved: Whether the records were dealt out to the files in turn.
            compressed: Whether records are frames of zstd; by default, the name of the file decides.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def megatron(
        paths: _Paths,
        *,
        by: Literal["sequence", "document"] = "sequence",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the token ids of Megatron's indexed datasets.

        Dicts of `tokens`, views of the file in the number type that it states, and of `mode` where there are modes.

        Args:
            paths: Datasets, each by its `.idx`, its `.bin` or what these names share; one or a list.
            by: Contents of a record.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def webdataset(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        decode: bool = False,
        url: bool = False,
        index_cache: _Path | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the samples of WebDataset's tar shards that are not compressed: dicts of `__key__` and a field for each
        extension.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tar`) or URLs of any of these; one or a
                list.
            columns: The extensions to read, all of them by default.
            decode: Decode fields by their extension: text, numbers, what JSON holds, arrays of `.npy`, images (`uint8`,
                height × width × channels). Without it they are bytes.
            url: Add the path of the shard as the column `__url__`.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def mds(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        images: bool = True,
        check_hashes: bool = False,
        cache_bytes: int | str | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the samples of MDS folders, as MosaicML's streaming has them: dicts of arrays, numbers, text and bytes.

        Args:
            paths: Folders or their URLs; one or a list.
            columns: The columns to read, all of them by default.
            images: Decode JPEG and PNG to arrays (`uint8`, height × width × channels); else they are bytes.
            check_hashes: Hold each shard against the hash that its index has of it.
            cache_bytes: Memory for decompressed shards that are kept. In bytes, or as text such as `"512MiB"`.
                `"512MiB"` by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def npy(
        paths: _Paths,
        *,
        field: str = "data",
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the rows of `.npy` files along their first dimension: dicts of one array, a view of the file.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.npy`) or URLs of any of these; one or a
                list. All have one type and one shape of a row.
            field: The name of the column.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def npz(
        paths: _Paths,
        *,
        rows: bool = False,
        cache_bytes: int | str | None = None,
        max_bytes: int | str | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the arrays of `.npz` archives: dicts, one for each archive, or one for each row of its arrays.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.npz`) or URLs of any of these; one or a
                list.
            rows: A record for each row, along the first dimension that all arrays of an archive share.
            cache_bytes: Memory for decompressed archives that are kept; only with `rows=True`. In bytes, or as text
                such as `"512MiB"`. `"256MiB"` by default.
            max_bytes: Memory that the arrays of an archive may become when inflated; 64 times its file by default, and
                256 MiB at least. In bytes, or as text such as `"512MiB"`.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def safetensors(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        rows: bool = False,
        float8_as_u8: bool = False,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads the tensors of safetensors files: dicts, one for each file, or one for each row of its tensors.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.safetensors`) or URLs of any of these; one
                or a list.
            columns: The tensors to read, all of them by default.
            rows: A record for each row, along the first dimension that all tensors of a file share.
            float8_as_u8: Read tensors of 8-bit floats as their bytes (`uint8`); else they are of `ml_dtypes`' types.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def crops(
        paths: _Paths,
        *,
        seq_len: int,
        layout: _Layout = "detect",
        with_next: bool = False,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads files of token ids, one crop after the other: dicts of `tokens`.

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
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def random_crops(
        paths: _Paths,
        *,
        seq_len: int,
        seed: int,
        layout: _Layout = "detect",
        with_next: bool = False,
        epoch: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> MapDataset[dict[str, Any]]:
        """Reads files of token ids, crops that start anywhere: dicts of `tokens`.

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
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def mix(datasets: Sequence[MapDataset[_T]], weights: Sequence[float] | None = None) -> MapDataset[_T]:
        """Takes elements of several datasets in proportion to the weights, in Grain's order.

        It ends where one of them would have to give more than it has.

        Args:
            datasets: The datasets.
            weights: A number for each part, all alike by default.

        Raises:
            ConfigError: There are other numbers of weights than of datasets, or one is not above 0.
        """

    @staticmethod
    def concatenate(datasets: Sequence[MapDataset[_T]]) -> MapDataset[_T]:
        """Puts one dataset behind the other.

        Args:
            datasets: The datasets.

        Raises:
            ConfigError: There is none.
        """

    @staticmethod
    def zip(datasets: Sequence[MapDataset[Any]]) -> MapDataset[tuple[Any, ...]]:
        """Makes tuples of the elements of datasets of one length.

        Args:
            datasets: The datasets.

        Raises:
            ConfigError: There is none, or their lengths differ.
        """

    @staticmethod
    def select_from_datasets(datasets: Sequence[MapDataset[_T]], selection_map: _SelectionMap) -> MapDataset[_T]:
        """Takes elements of several datasets in an order of one's own.

        Args:
            datasets: The datasets.
            selection_map: `selection_map[i]` is the number of a dataset and an index in it. It is asked for all of its
                length at once.

        Raises:
            ValueError: It has no entry.
        """

    def seed(self, seed: int) -> MapDataset[_T_co]:
        """Sets the seed from which random stages behind it derive theirs, unless they are given their own.

        Args:
            seed: From 0 to 2^32 - 1.

        Raises:
            OverflowError: It is none of these numbers.
        """

    def shuffle(self, seed: int | None = None) -> MapDataset[_T_co]:
        """Puts the elements in a random order, another in every epoch, in constant memory; Grain's order.

        A slice of it has other elements in each epoch. For training and validation sets, use `split` before it.

        Args:
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: There is no seed: neither here nor in front of it.
        """

    def window_shuffle(self, window_size: int, seed: int | None = None) -> MapDataset[_T_co]:
        """Puts the elements of each window in a random order; the windows stay where they are.

        Args:
            window_size: Elements in a window.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: The window is empty, or there is no seed.
        """

    def block_shuffle(
        self, window_blocks: int, seed: int | None = None, *, block_size: int | None = None
    ) -> MapDataset[_T_co]:
        """Puts the blocks of the source in a random order, another in every epoch, and then the elements of each window of blocks.

        For sources that fetch or decode many records together, as row groups of Parquet on an object store: each block is read
        once per epoch, and the blocks of two windows are held at most.

        Args:
            window_blocks: Blocks whose elements are shuffled together. The elements of at most two windows are in
                memory.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.
            block_size: Elements of a block; by default the row groups of Parquet, record batches of Arrow, chunks of
                ArrayRecord or shards of MDS.

        Raises:
            ConfigError: The window is empty, the blocks are not known, the source's cache has no room for the
                window (the text names the largest that has), or there is no seed.
        """

    def slice(self, slice: _slice) -> MapDataset[_T_co]:
        """Takes the elements of a slice: `ds.slice(slice(1, None, 2))` is `ds[1::2]`.

        A slice of a shuffled dataset has other elements in each epoch: `split` makes parts that share none.

        Args:
            slice: A slice of Python's.

        Raises:
            ConfigError: Its step is 0.
        """

    @overload
    def split(
        self, sizes: Sequence[float], take: None = None, *, seed: int = 0, shuffle: bool = True
    ) -> list[MapDataset[_T_co]]: ...
    @overload
    def split(self, sizes: Sequence[float], take: int, *, seed: int = 0, shuffle: bool = True) -> MapDataset[_T_co]:
        """Divides the elements into parts that share none in any epoch: `train, validation = ds.split([0.9, 0.1])`.

        A part has its elements in every epoch. Shuffle and repeat parts, and not the dataset before them. Every epoch of a
        part reads the first epoch of the stages before it: put `random_map` after it.

        Args:
            sizes: The sizes of all parts: fractions, which are below 1, or counts of elements.
            take: The index of the part to return; by default, a list of all parts is returned.
            seed: The seed by which elements are drawn for parts, from 0 to 2^32 - 1. The `seed` of the pipeline does
                not change it.
            shuffle: Whether elements are drawn at random; else the first part is the first elements, and so on.

        Raises:
            ConfigError: Sizes are 0 or below, fractions and counts, or more than there is; a part is empty or not listed; the
                dataset never ends.
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
            indices: Indices from 0 on; one may come several times.

        Raises:
            ConfigError: An index is past the end.
        """

    def repeat(self, num_epochs: int | None = None, *, reseed_each_epoch: bool = True) -> MapDataset[_T_co]:
        """Makes several epochs one, or goes on without end.

        A slice of a shuffled dataset has other elements in each epoch: see `split`. A loader of such a repeat logs a warning.

        Args:
            num_epochs: How many epochs; without end by default.
            reseed_each_epoch: Whether each is shuffled anew.

        Raises:
            ConfigError: It is 0.
        """

    def map(self, transform: Callable[[_T_co], _U] | _Map[_T_co, _U]) -> MapDataset[_U]:
        """Applies a function to every element. What it returns is the element, `None` too.

        An array that the function keeps a reference to is copied, unless it is read-only; so are dicts, lists and
        byte arrays that it keeps. What nobody else refers to stays where it is.

        Args:
            transform: A function of an element, or an object with a method `map`.

        Raises:
            TypeError: It is neither.
        """

    def map_with_index(self, transform: Callable[[int, _T_co], _U] | _MapWithIndex[_T_co, _U]) -> MapDataset[_U]:
        """Applies a function to every element and its index, which goes on over the epochs.

        Args:
            transform: A function of the number and the element, or an object with a method `map_with_index`.

        Raises:
            TypeError: It is neither.
        """

    def random_map(
        self, transform: Callable[[_T_co, np.random.Generator], _U] | _RandomMap[_T_co, _U], *, seed: int | None = None
    ) -> MapDataset[_U]:
        """Applies a function to every element and random numbers that belong to its index; Grain's numbers.

        They are the same for any number of threads and workers, and after a resume. The generator is used again for the
        next element: do not keep it.

        Args:
            transform: A function of the element and a `numpy.random.Generator`, or an object with a method
                `random_map`.
            seed: The seed, from 0 to 2^32 - 1; by default one that is derived from the `seed` in front of it.

        Raises:
            ConfigError: There is no seed: neither here nor in front of it.
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
        """Keeps the elements of which a function, or natively a condition on a column, holds.

        The length stays: a dropped element leaves an empty slot, which is `None` for `ds[i]` and skipped by a stream.

        Args:
            transform: A function of an element that returns something true for those to keep, or an object with a
                method `filter`.
            column: The column that a native condition is about; of the conditions below those that are given must all
                hold.
            min_length: The least length: bytes of text, rows of an array.
            max_length: The greatest length: bytes of text, rows of an array.
            min: The least number.
            max: The greatest number.
            equals: The text itself.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
        """

    def flat_map(
        self, transform: Callable[[_T_co], Iterable[_U]] | _FlatMap[_T_co, _U], max_fan_out: int | None = None
    ) -> MapDataset[_U]:
        """Replaces every element by what a function makes of it, in `max_fan_out` slots; those that are not filled are
        empty.

        Args:
            transform: A function of an element that returns elements, or an object with a method `flat_map`.
            max_fan_out: The most elements that one becomes; an attribute of `transform` by default.

        Raises:
            TypeError: There is no `max_fan_out`.
            DataError: An element becomes more than that.
        """

    def slots(self) -> MapDataset[Any]:
        """Puts `None` in place of every empty slot, so that there is an element for each index, as `batch` needs."""

    def drop_none(self) -> MapDataset[_T_co]:
        """Makes empty slots of elements that are `None`."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: Callable[[list[Any]], Any] | None = None,
        *,
        remainder: Literal["keep", "drop"] | None = None,
    ) -> MapDataset[Any]:
        """Stacks consecutive elements into batches, by index.

        Batches have places of their own: any thread may make any of them. No batch reaches from one epoch into the
        next.

        Args:
            batch_size: Elements in a batch.
            drop_remainder: Leave out the last elements if they do not fill a batch; `remainder="drop"` by Grain's name.
            batch_fn: Makes the batch of a list of elements, in place of stacking them.
            remainder: What becomes of the last elements of an epoch if they do not fill a batch: they are a smaller one
                (`"keep"`, the default), or are left out. Batches that are filled up are those of a stream.

        Raises:
            ConfigError: `batch_size` is 0, or options contradict each other; an element may be missing (see `slots`).
            ValueError: Elements differ in structure or shape: the message says where.
        """

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
    ) -> MapDataset[dict[str, Any]]:
        """Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.

        One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the place of their
        text, which goes unless `keep_text` is true.

        Args:
            tokenizer: The path of the `tokenizer.json`.
            column: The column of text, which becomes `tokens`. One of `column` and `columns` is needed.
            columns: Several columns of text, which become `<column>_tokens` each.
            into: Other names for the columns of ids, in the order of the columns.
            keep_text: Whether the text stays in the element beside its ids, which else take its place.
            prepend_bos: A token before each text, by its name in the vocabulary or its id.
            append_eos: A token after each text, by its name or its id.
            max_len: Tokens per text at most, those two included; no limit by default.
            overflow: What becomes of longer texts: the beginning is kept, or it is an error.
            special_in_text: Whether a special token that is written out in a text becomes that token. By default it is
                text like any other.
            engine: The fast engine, the compatible engine, or the fast engine if both agree.

        Raises:
            ConfigError: There is no such column or token, or the file is no tokenizer.
            IoError: The file cannot be read.
        """

    def parse_example(self, features: bool | _Features = True, *, column: str = "record") -> MapDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.Example` that each of them is.

        Elements are `bytes`, or dicts in which `column` holds them, whose place the features take.

        Args:
            features: `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids": "int64"}` declares them. A dtype
                is `int64`, `float32`, `bytes` or `str`; without a shape the number of values varies. `True` infers
                them: numbers as arrays of one dimension, one string as `bytes`, several as a list.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A record is no `Example`, or lacks a feature.
        """

    def parse_sequence_example(
        self, *, context: _Features | None = None, sequences: _Features | None = None, column: str = "record"
    ) -> MapDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.SequenceExample` that each of them is.

        Without both declarations everything is inferred.

        Args:
            context: Features of the whole, as `parse_example` declares them.
            sequences: Features of each step. Those with a shape become arrays of shape `[time, …]`, others lists with
                an array for each step; one that may be missing says `"allow_missing": True`.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A record is no `SequenceExample`, or lacks a feature.
        """

    def select_columns(self, columns: _Names) -> MapDataset[dict[str, Any]]:
        """Keeps only these columns, in this order.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
        """

    def drop_columns(self, columns: _Names) -> MapDataset[dict[str, Any]]:
        """Keeps all but these columns.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
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

        Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within each row; `batch` stacks
        it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the B·T cells of the batch, which
        `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

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
            ConfigError: An argument is impossible, or none is given.
            DataError: There are no segment ids, a column has the name of one that is added, or a row has more segments
                than `max_segments`.
        """

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> MapDataset[dict[str, Any]]:
        """Gives columns other names: `rename(text="document")`.

        Args:
            names: Old names and the new ones, for names that are no words of Python.
            more: The same as keyword arguments.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
        """

    def to_iter_dataset(self) -> IterDataset[_T_co]:
        """Makes a stream of one epoch; empty slots are skipped."""

    def to_iter(
        self,
        *,
        on_bad_record: Literal["error", "skip"] = "error",
        bad_record_limit: int | None = None,
        consecutive_bad_record_limit: int | None = None,
        warn: float | None = None,
        **thresholds: float | None,
    ) -> IterDataset[_T_co]:
        """Makes a stream of one epoch, and says what becomes of bad records and when filters drop too much.

        Args:
            on_bad_record: `"skip"` passes over records that sources and native stages cannot use, and counts them in
                the report and the state.
            bad_record_limit: The most that are skipped in all; no limit by default.
            consecutive_bad_record_limit: The most that are skipped in a row; no limit by default.
            warn: The share of 1000 elements that filters may drop before a warning is logged. `0.9` by default.
            thresholds: `raise`, which Python can only pass as `**{"raise": 0.99}`: the share from which on it is an
                error.

        Raises:
            ConfigError: A limit is given where nothing is skipped.
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
    ) -> IterDataset[_T_co]:
        """Has everything in front of this evaluated by worker processes, under a budget of memory; the elements stay
        the same.

        Native pipelines take one process with threads; Python functions go to several, by value if they are of a script
        or a notebook. What comes behind this runs here.

        Args:
            options: `MpOptions`, Grain's, or a number of workers; the fields of `MpOptions` may be given here one by
                one.
            worker_init_fn: Called once in each worker that runs Python functions, with its number and how many there
                are.
            num_workers: Worker processes; 0 evaluates on threads of this process. By default one with a thread for
                every core where all stages are native, else one for every core at the start, and as many as pay then.
            workers: The same under another name.
            per_worker_buffer_size: Elements, or batches, kept ready for each worker.
            max_workers: Begin with one process, and let tuning find out whether up to so many pay.
            threads_per_worker: Threads that evaluate in each worker. Where neither this nor a number of workers is given,
                there are more where functions wait and let others have the interpreter meanwhile: then several threads
                call them at once, as with Grain's read threads; 1 rules that out.
            ram_budget: Bytes, or text such as `"2GiB"`, that shared memory and the private memory of all workers take
                together at most; a quarter of what is available.
            worker_heap: Bytes of private memory of each worker; see `MpOptions`.
            max_element: Bytes that one element or batch may have; a quarter of the shared memory.
            deadline: Seconds that a range of elements may take before its worker counts as hanging; `None` for ever.
            retries: How many workers a range may kill before the element that does it is sought.
            on_poison: What becomes of an element that kills every worker: it ends the run, or is left out and counted
                in the report.
            tune: Whether the number of threads at work, and how far they work ahead, follow what the consumer needs.

        Raises:
            ConfigError: The options contradict each other, or do not fit into the budget.
        """

    def loader(
        self,
        *,
        threads: int | Literal["auto"] = 0,
        buffer: int = 2,
        writable: bool = False,
        accept_changes: bool = False,
        workers: bool = True,
        part: Part | tuple[int, int] | str | None = None,
        deal: Literal["even", "lanes"] | Deal = "even",
        guard: Guard = "auto",
        guard_timeout: float = 600.0,
        keys: str | PathLike[str] | None = None,
        record_keys: bool = False,
        on_failed_element: Literal["error", "pad"] = "error",
        failed_element_limit: int | None = None,
        metrics: str | int | None = None,
        record: _Path | None = None,
        trace: _Path | None = None,
        top: bool = False,
    ) -> DatasetIterator[_T_co]:
        """Starts a pass over one epoch.

        Args:
            threads: Threads for the elementwise part, beside one for the rest. With 0 everything runs when it is asked
                for. With `"auto"` there is one for each core at first, and their number and how far they are ahead follow
                what the loop needs: up to 256 if elements mostly wait for a disk or a network. Functions that hold the
                interpreter's lock while they compute gain by `mp_prefetch` instead. The elements are the same.
            buffer: Elements or batches that are kept ready ahead of the consumer, where there are threads.
            writable: Hand out native arrays that may be written to: as they are where nobody else views their memory,
                else as a copy. Arrays that Python functions made are handed on as they are.
            accept_changes: Accept a state of another pipeline in `set_state`: a file was withdrawn, or an argument has changed. Positions are taken
                as they are; the change is logged, and stands in the report and in all later states under `accepted_changes`. Stages
                after `to_iter` that hold positions must be as before.
            workers: Whether `mp_prefetch` has processes started. Without them this process evaluates everything: to
                look at a few elements, or at the state.
            part: Rows of every batch that are delivered here, where several hosts read one pipeline: `(3, 64)` are those
                of the fourth of 64. `batch` makes global batches; states know nothing of parts, and any part goes on
                from the state of any other.
            deal: Which rows are whose: those that follow one another, those of the same lanes, by an index, or a `Deal` that balances what rows cost. Batches are
                the same. Where rows are planned by keys and packed, the plan says what they cost; else each host evaluates all rows.
            guard: How hosts are compared, so that one with other files, another pipeline or a function with randomness of its own
                is an error on all of them: before the first batch, every 128 batches and at the end. With `"auto"` by the
                store of JAX or PyTorch, if the part is of `gm.jax.part_for` or `gm.torch.part` and there are several processes; else not.
                A folder that all hosts see serves as well, `(folder, host, hosts)` where the part does not say which host
                this is, and an object with `begin(part)`, `post(round, statement)` and `read(round)`. `None` compares nothing.
            guard_timeout: Seconds after which a host that has said nothing is an error.
            keys: The folder of key files, which `make_keys` or `gristmill index --keys` has written: by them a host plans which
                elements the rows of all hosts are made of, and evaluates those of its own alone.
            record_keys: Whether key files that are not there yet are written while everything is evaluated: without a part, or by the host
                that has the first row. The next start plans by them.
            on_failed_element: What becomes of an element that fails after rows were planned of it, by keys or by indices: with
                `"pad"` it is padding where it would be, counted and named in the report, and the plan stays what it is. Where all
                elements are evaluated it changes nothing.
            failed_element_limit: The most that become padding; no limit by default.
            metrics: Where `GET /metrics` is answered with the figures of the pass while it lives, as OpenMetrics text for Prometheus:
                `"127.0.0.1:9464"`, or a port alone, which nobody but this machine reaches; 0 is a free one, which
                `metrics_address` tells. Other users of this machine are answered with `"everybody@"` in front.
            record: A file in which the pass is recorded while it runs, which `Report.from_record` and `gristmill report` read back, also
                where the process was killed. A recording that is there is kept as `NAME.1.ENDING`.
            trace: A file to which the pass is written as a trace for Perfetto and Chrome, compressed if it ends in `.gz`.
            top: Let people of this user on this machine look at the pass with `gristmill top`. `GRISTMILL_TOP=1` in the environment does
                the same for every pass.

        Returns:
            The pass: an iterator, and a context manager that closes it.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            WorkerError: Worker processes cannot be started.
        """

    def explain(self, *, threads: int = 0, buffer: int = 2) -> Explanation:
        """Explains the pipeline: its stages, which of them run in parallel, what they hold in memory, what comes out.

        The first elements are read for it, in this process.

        Args:
            threads: The threads of the `loader` whose memory is estimated.
            buffer: Its buffer.
        """

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of the first element, which is read for it: a tree like it.

        Arrays are `ArraySpec`s, anything else is its type. A list or tuple of things that are alike is one with a
        single entry.

        Raises:
            ConfigError: The dataset has no element.
        """

    def apply(self, transform: Callable[[MapDataset[_T_co]], _R]) -> _R:
        """Calls a function with this dataset and returns what it makes of it, so that stages of one's own stand in a
        chain.

        Args:
            transform: A function of a dataset.
        """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> DatasetIterator[_T_co]:
        """Starts a pass without threads: `loader()`."""

    def __len__(self) -> int:
        """Says how many elements, or slots, one epoch has."""

    @overload
    def __getitem__(self, index: int, /) -> _T_co | Any: ...
    @overload
    def __getitem__(self, index: _slice, /) -> MapDataset[_T_co]:
        """Reads the element at an index, which is `None` for an empty slot, or takes a slice. An index past the end is one of the next epoch.

        Args:
            index: An index, from the end if it is negative, or a slice.

        Raises:
            IndexError: A negative index is before the first element.
        """

@final
class IterDataset(Generic[_T_co]):
    """A stream: read in order, small in state. Who evaluates it is chosen last, by `loader`, and changes no element."""

    @staticmethod
    def from_file(path: _Path) -> IterDataset[dict[str, Any]]:
        """Builds the pipeline of a file in YAML, TOML or JSON.

        Args:
            path: The file; paths in it start at its folder.

        Raises:
            ConfigError: Something in it is not understood: the message names line and key.
            IoError: A file cannot be opened or read.
        """

    @staticmethod
    def jsonl(
        paths: _Paths,
        *,
        columns: _Names | None = None,
        repeated_names: Literal["last", "error"] = "last",
        index_cache: _Path | None = None,
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the records of JSON Lines files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams:
        dicts of arrays, numbers, text and lists.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.jsonl`) or URLs of any of these; one or a
                list.
            columns: The columns to read, all of them by default.
            repeated_names: What becomes of a record in which an object has a name twice, among the columns that are
                read: the last value stands, and the report counts such records, or it is a bad record.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def lines(
        paths: _Paths,
        *,
        column: str = "text",
        blank_lines: bool = False,
        index_cache: _Path | None = None,
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the lines of text files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams: dicts
        with one `column` of text, without line ends.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.txt`) or URLs of any of these; one or a
                list.
            column: The name of the column of text.
            blank_lines: Whether lines of nothing but white space are records, too; only of files that are not
                compressed.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

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
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the records of CSV files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams: dicts
        of numbers and text, a field for each column.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.csv`) or URLs of any of these; one or a
                list.
            columns: The columns to read, all of them by default.
            delimiter: One character; found in the first records if it is not given.
            quote: The character around fields that hold delimiters, `"` by default; empty text for none.
            header: Whether the first record of each file names the columns; so it does by default, unless `names` are
                given.
            names: The names of the columns, if the files do not have them.
            types: Types of columns: `"str"`, `"bool"`, `"int64"`, `"float32"` and so on. Those of others are inferred.
            nulls: Fields that stand for `None`.
            infer_rows: Records by which the types of columns are inferred.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def tfrecord(
        paths: _Paths,
        *,
        field: str | None = None,
        examples: bool | _Features | None = None,
        sequence_examples: bool | _Sequences | None = None,
        index_cache: _Path | None = None,
        lanes: int | None = None,
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[Any]:
        """Reads the records of TFRecord files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams.

        Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tfrecord`) or URLs of any of these; one or
                a list.
            field: The name under which the bytes of a record are put into a dict, which native stages take; plain
                `bytes` by default.
            examples: Parse records as `tf.train.Example`s: `True`, or features as `parse_example` declares them.
            sequence_examples: Parse records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
                `parse_sequence_example` declares them.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
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
        on_bad_shard: Literal["error", "skip"] | None = None,
    ) -> IterDataset[dict[str, Any]]:
        """Reads the samples of WebDataset's tar shards in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as
        streams: dicts of `__key__` and a field for each extension.

        Args:
            paths: Files, folders, globs, ranges of shards (`train-{000..127}.tar`) or URLs of any of these; one or a
                list.
            columns: The extensions to read, all of them by default.
            decode: Decode fields by their extension: text, numbers, what JSON holds, arrays of `.npy`, images (`uint8`,
                height × width × channels). Without it they are bytes.
            url: Add the path of the shard as the column `__url__`.
            index_cache: Place of the positions of the records: `"beside"` the file, `"off"`, or a folder. `"beside"` by
                default.
            lanes: How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo
                `lanes`; it is part of the data's order. One stream by default.
            on_bad_shard: Policy for a shard that cannot be opened: `"error"` ends the run, `"skip"` leaves the shard
                out and logs a warning. By default, the policy for bad records of `to_iter` in a pipeline file, or
                `"error"`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            IoError: A file cannot be opened or read.
            DataError: A record is damaged; raised where the record is read.
        """

    @staticmethod
    def source(source: Iterable[_T], *, epochs: int | None = None) -> IterDataset[_T]:
        """Takes a stream written in Python: each `iter(source)` starts a pass.

        A pass with `get_state` and `set_state` is restored by them: its state is what JSON can hold. Without them it is
        read again up to the element that comes next. An array that the stream keeps a reference to is copied, unless it
        is read-only.

        Args:
            source: An iterable that can be iterated over anew.
            epochs: Number of epochs of a stream with `set_epoch`, such as a shuffled `IterableDataset` of Hugging Face:
                `set_epoch(0)`, `set_epoch(1)`, … is called before each. By default the source is read once, and `repeat`
                reads it in the same order each time.

        Raises:
            TypeError: It is none, or `epochs` is given and it has no `set_epoch`.
            ValueError: `epochs` is 0.
        """

    @staticmethod
    def zip(datasets: Sequence[IterDataset[Any]], *, strict: bool = True) -> IterDataset[tuple[Any, ...]]:
        """Makes tuples of one element of each of several streams.

        Args:
            datasets: The streams.
            strict: Whether it is an error if one part ends before the others; else it ends with the shortest.

        Raises:
            DataError: One ended before the others.
        """

    @staticmethod
    def mix(datasets: Sequence[IterDataset[_T]], weights: Sequence[float] | None = None) -> IterDataset[_T]:
        """Takes elements of several streams in proportion to the weights, until one ends; in Grain's order.

        Args:
            datasets: The streams.
            weights: A number for each part, all alike by default.

        Raises:
            ConfigError: There are other numbers of weights than of streams, or one is not above 0.
        """

    @staticmethod
    def interleave(
        datasets: Sequence[IterDataset[_T]] | MapDataset[IterDataset[_T]], cycle_length: int
    ) -> IterDataset[_T]:
        """Takes one element of each of `cycle_length` streams in turn; one that ends makes room for the next.

        Args:
            datasets: A list of streams, or a `MapDataset` whose elements are streams, made when their turn comes.
            cycle_length: Streams that are open at a time.

        Raises:
            ConfigError: `cycle_length` is 0.
        """

    def seed(self, seed: int) -> IterDataset[_T_co]:
        """Sets the seed from which random stages behind it derive theirs, unless they are given their own.

        Args:
            seed: From 0 to 2^32 - 1.

        Raises:
            OverflowError: It is none of these numbers.
        """

    def window_shuffle(self, window_size: int, seed: int | None = None) -> IterDataset[_T_co]:
        """Puts the elements of each window of the stream in a random order; Grain's order.

        A window is held in memory, and read again at a resume.

        Args:
            window_size: Elements in a window; the last may be smaller.
            seed: The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

        Raises:
            ConfigError: The window is empty, or there is no seed.
        """

    def repeat(self, num_epochs: int | None = None) -> IterDataset[_T_co]:
        """Gives the whole stream several times, or without end; every epoch is the same.

        Args:
            num_epochs: How many epochs; without end by default.

        Raises:
            ConfigError: It is 0.
        """

    def limit(self, count: int) -> IterDataset[_T_co]:
        """Ends behind the first `count` elements.

        Args:
            count: How many elements.

        Raises:
            ConfigError: It is 0.
        """

    def take(self, count: int) -> IterDataset[_T_co]:
        """Ends behind the first `count` elements: `limit` by the name that other libraries have for it.

        Args:
            count: How many elements.

        Raises:
            ConfigError: It is 0.
        """

    def skip(self, count: int) -> IterDataset[_T_co]:
        """Leaves out the first `count` elements.

        They are evaluated, once in each pass. In front of `to_iter_dataset` a slice, `ds[count:]`, leaves them out at
        no cost.

        Args:
            count: How many elements; 0 for none.

        Raises:
            OverflowError: It is below 0.
        """

    @overload
    def enumerate(self, start: int = 0, *, column: None = None) -> IterDataset[tuple[int, _T_co]]: ...
    @overload
    def enumerate(self, start: int = 0, *, column: str) -> IterDataset[dict[str, Any]]:
        """Puts its number in this stream beside each element, also behind a resume.

        Args:
            start: The first number.
            column: Where the number goes, in elements that are dicts; without it an element becomes a tuple of the
                number and the element.

        Raises:
            DataError: There is a column of that name already.
        """

    def skip_bad_records(self, limit: int | None = None, consecutive: int | None = None) -> IterDataset[_T_co]:
        """Leaves out records that the stages before it cannot use.

        They are counted in the report and in the state, and the first few are logged. It goes behind a stream of files,
        or behind the last stage that looks at each element on its own; in front of stages that join elements.

        Args:
            limit: The most that are left out in all; no limit by default.
            consecutive: The most that are left out in a row; no limit by default.

        Raises:
            DataError: There were more of them, raised where it happens.
        """

    def cache(self) -> IterDataset[_T_co]:
        """Keeps every element in memory for the next epoch of a `repeat` behind it."""

    def map(self, transform: Callable[[_T_co], _U] | _Map[_T_co, _U]) -> IterDataset[_U]:
        """Applies a function to every element. What it returns is the element, `None` too.

        An array that the function keeps a reference to is copied, unless it is read-only; so are dicts, lists and
        byte arrays that it keeps. What nobody else refers to stays where it is.

        One thread iterates over a stream without random access; all threads of the loader apply the function.

        Args:
            transform: A function of an element, or an object with a method `map`.

        Raises:
            TypeError: It is neither.
        """

    def map_with_index(self, transform: Callable[[int, _T_co], _U] | _MapWithIndex[_T_co, _U]) -> IterDataset[_U]:
        """Applies a function to every element and its number in this stream, from 0 on.

        Args:
            transform: A function of the number and the element, or an object with a method `map_with_index`.

        Raises:
            TypeError: It is neither.
        """

    def random_map(
        self, transform: Callable[[_T_co, np.random.Generator], _U] | _RandomMap[_T_co, _U], *, seed: int | None = None
    ) -> IterDataset[_U]:
        """Applies a function to every element and random numbers that belong to its place in this stream; Grain's
        numbers.

        They are the same for any number of threads and workers, and after a resume. The generator is used again for the
        next element: do not keep it.

        Args:
            transform: A function of the element and a `numpy.random.Generator`, or an object with a method
                `random_map`.
            seed: The seed, from 0 to 2^32 - 1; by default one that is derived from the `seed` in front of it.

        Raises:
            ConfigError: There is no seed: neither here nor in front of it.
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
        """Keeps the elements of which a function, or natively a condition on a column, holds.

        Filters straight behind a dataset of random access are watched together, with the thresholds that were given
        last; what they count is part of the state.

        Args:
            transform: A function of an element that returns something true for those to keep, or an object with a
                method `filter`.
            column: The column that a native condition is about; of the conditions below those that are given must all
                hold.
            min_length: The least length: bytes of text, rows of an array.
            max_length: The greatest length: bytes of text, rows of an array.
            min: The least number.
            max: The greatest number.
            equals: The text itself.
            warn: The share of 1000 elements in a row from which on `logging` hears of it under the name `gristmill`, at
                most once a minute; `None` for never. Only with a function.
            thresholds: `raise`, which Python can only pass as `**{"raise": 0.99}`: the share from which on it is an
                error, no share by default. Only with a function.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: More elements were dropped than the threshold `raise` allows.
        """

    def flat_map(self, transform: Callable[[_T_co], Iterable[_U]] | _FlatMap[_T_co, _U]) -> IterDataset[_U]:
        """Replaces every element by what a function makes of it: none, one or many.

        Args:
            transform: A function of an element that returns elements, or an object with a method `flat_map`.
        """

    def drop_none(self) -> IterDataset[_T_co]:
        """Leaves out elements that are `None`."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: Callable[[list[Any]], Any] | None = None,
        *,
        remainder: _Remainder | None = None,
        pad_value: float | None = None,
        mask: str | None = None,
    ) -> IterDataset[Any]:
        """Stacks consecutive elements into batches.

        The leaves of dicts, lists, tuples and dataclasses gain a dimension, as NumPy arrays; text of native sources
        becomes a list.

        Args:
            batch_size: Elements in a batch.
            drop_remainder: Leave out the last elements if they do not fill a batch; `remainder="drop"` by Grain's name.
            batch_fn: Makes the batch of a list of elements, in place of stacking them.
            remainder: What becomes of the last elements if they do not fill a batch: they are a smaller one (`"keep"`,
                the default), are left out, or are filled up to `batch_size`. With `"pad"` every batch has a column of
                truth values that says which rows are real; elements are dicts of arrays then.
            pad_value: The number in every padded array, 0 by default; only with `remainder="pad"`.
            mask: The name of the column of truth values, `batch_mask` by default.

        Raises:
            ConfigError: `batch_size` is 0, or options contradict each other.
            ValueError: Elements differ in structure or shape: the message says where.
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
    ) -> IterDataset[dict[str, Any]]:
        """Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.

        One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the place of their
        text, which goes unless `keep_text` is true.

        Args:
            tokenizer: The path of the `tokenizer.json`.
            column: The column of text, which becomes `tokens`. One of `column` and `columns` is needed.
            columns: Several columns of text, which become `<column>_tokens` each.
            into: Other names for the columns of ids, in the order of the columns.
            keep_text: Whether the text stays in the element beside its ids, which else take its place.
            prepend_bos: A token before each text, by its name in the vocabulary or its id.
            append_eos: A token after each text, by its name or its id.
            max_len: Tokens per text at most, those two included; no limit by default.
            overflow: What becomes of longer texts: the beginning is kept, they are cut into several elements, or it is
                an error.
            special_in_text: Whether a special token that is written out in a text becomes that token. By default it is
                text like any other.
            engine: The fast engine, the compatible engine, or the fast engine if both agree.

        Raises:
            ConfigError: There is no such column or token, or the file is no tokenizer.
            IoError: The file cannot be read.
        """

    def parse_example(
        self, features: bool | _Features = True, *, column: str = "record"
    ) -> IterDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.Example` that each of them is.

        Elements are `bytes`, or dicts in which `column` holds them, whose place the features take.

        Args:
            features: `{"label": {"dtype": "int64", "shape": [], "default": 0}, "ids": "int64"}` declares them. A dtype
                is `int64`, `float32`, `bytes` or `str`; without a shape the number of values varies. `True` infers
                them: numbers as arrays of one dimension, one string as `bytes`, several as a list.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A record is no `Example`, or lacks a feature.
        """

    def parse_sequence_example(
        self, *, context: _Features | None = None, sequences: _Features | None = None, column: str = "record"
    ) -> IterDataset[dict[str, Any]]:
        """Turns records of bytes into the features of the `tf.train.SequenceExample` that each of them is.

        Without both declarations everything is inferred.

        Args:
            context: Features of the whole, as `parse_example` declares them.
            sequences: Features of each step. Those with a shape become arrays of shape `[time, …]`, others lists with
                an array for each step; one that may be missing says `"allow_missing": True`.
            column: The column that holds the bytes; `record` by default.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A record is no `SequenceExample`, or lacks a feature.
        """

    def select_columns(self, columns: _Names) -> IterDataset[dict[str, Any]]:
        """Keeps only these columns, in this order.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
        """

    def drop_columns(self, columns: _Names) -> IterDataset[dict[str, Any]]:
        """Keeps all but these columns.

        Args:
            columns: A name, or a list of names.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
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

        Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within each row; `batch` stacks
        it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the B·T cells of the batch, which
        `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

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
            ConfigError: An argument is impossible, or none is given.
            DataError: There are no segment ids, a column has the name of one that is added, or a row has more segments
                than `max_segments`.
        """

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> IterDataset[dict[str, Any]]:
        """Gives columns other names: `rename(text="document")`.

        Args:
            names: Old names and the new ones, for names that are no words of Python.
            more: The same as keyword arguments.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
        """

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
    ) -> IterDataset[dict[str, Any]]:
        """Packs sequences into rows, each into the first of `num_packing_bins` that has room; Grain's rows.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            num_packing_bins: Rows that are filled at a time: they come out together, when an element fits into none of
                them.
            seed: The seed of the order in which the rows of a group come out.
            shuffle_bins: Whether they come out in a random order. Without it the last rows of each group hold the most
                padding.
            shuffle_bins_group_by_feature: A column by whose mean rows stay apart when they are shuffled: with the
                number of the epoch, epochs do.
            max_sequences_per_bin: The most sequences in a row; no limit by default.
            over_long: What becomes of a sequence that is longer than a row: it is an error, is split, or is left out
                and counted.
            padding: Numbers for the cells without a token, by column; 0 by default.
            align: Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A sequence is longer than a row, or an array is not like that of the first element.
        """

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
    ) -> IterDataset[dict[str, Any]]:
        """Packs sequences into rows, each into the fullest of `num_packing_bins` that has room; Grain's rows.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            num_packing_bins: Rows that are filled at a time: they come out together, when an element fits into none of
                them.
            seed: The seed of the order in which the rows of a group come out.
            shuffle_bins: Whether they come out in a random order. Without it the last rows of each group hold the most
                padding.
            shuffle_bins_group_by_feature: A column by whose mean rows stay apart when they are shuffled: with the
                number of the epoch, epochs do.
            max_sequences_per_bin: The most sequences in a row; no limit by default.
            over_long: What becomes of a sequence that is longer than a row: it is an error, is split, or is left out
                and counted.
            padding: Numbers for the cells without a token, by column; 0 by default.
            align: Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A sequence is longer than a row, or an array is not like that of the first element.
        """

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
    ) -> IterDataset[dict[str, Any]]:
        """Packs sequences into rows that are filled from a window of them, almost completely.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            window: Sequences that are looked ahead, which are held in memory. `1024` by default.
            max_sequences_per_bin: The most sequences in a row; no limit by default.
            over_long: What becomes of a sequence that is longer than a row: it is an error, is split, or is left out
                and counted.
            padding: Numbers for the cells without a token, by column; 0 by default.
            align: Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A sequence is longer than a row, or an array is not like that of the first element.
        """

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
    ) -> IterDataset[dict[str, Any]]:
        """Puts sequences one behind the other and cuts them into rows; Grain's rows.

        Args:
            length: The columns to pack, and the cells of a row that each has: `{"tokens": 1024}`. A row has the
                columns, and of each `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
            split_full_length_features: Whether a sequence that fills a row alone is cut like any other, or becomes a
                separate row.
            positions: Start of the positions of a sequence that continues in the next row: at 0, or after the last
                position.
            bos_handling: Whether the first token of every sequence, and of every piece that continues one, is replaced.
            bos_features: The columns in which the first token is replaced.
            bos_token_id: The token that takes its place.
            padding: Numbers for the cells without a token, by column; 0 by default.
            meta_features: Columns without segment ids and positions. Of those that are not in `length` a row has the
                list of its sequences' values. Columns that are named neither here nor in `length` are left out, and a
                warning names them once.
            names: The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`,
                `inputs_position` and `targets`.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: A sequence is longer than a row, or an array is not like that of the first element.
        """

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
    ) -> IterDataset[dict[str, Any]]:
        """Makes batches of sequences of nearly one length, padded to the length of their bucket.

        Args:
            features: The columns to pad; the longest column of an element gives its length.
            boundaries: The lengths of the buckets, rising.
            batch: Elements in a batch: a number, `{"per_bucket": [64, 32]}`, or `{"tokens": 32768}` for the number with
                at most that many cells.
            padding: Numbers for the cells after the end of a sequence, by column; 0 by default.
            window: The most elements that are held. When the oldest would have to wait longer, its batch comes out
                short. `8192` by default.
            remainder: What becomes of batches that are not full: they come out as they are, are left out, or are filled
                up with rows of padding.
            drop_over_long: Whether elements longer than the last boundary are left out and counted; else they are an
                error.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            DataError: An element is longer than the last boundary.
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
    ) -> IterDataset[_T_co]:
        """Has everything in front of this evaluated by worker processes, under a budget of memory; the elements stay
        the same.

        Native pipelines take one process with threads; Python functions go to several, by value if they are of a script
        or a notebook. What comes behind this runs here; but functions and filters straight behind compressed files that are
        read as `lanes` belong to those, and run where they are read.

        A stream without random access is iterated over here, in order. Workers apply the functions of its `map`,
        `map_with_index`, `random_map` and `filter` to chunks of elements that they are sent, unless a call takes less than
        20 µs; `flat_map` runs here.

        Args:
            options: `MpOptions`, Grain's, or a number of workers; the fields of `MpOptions` may be given here one by
                one.
            worker_init_fn: Called once in each worker that runs Python functions, with its number and how many there
                are.
            num_workers: Worker processes; 0 evaluates on threads of this process. By default one with a thread for
                every core where all stages are native, else one for every core at the start, and as many as pay then.
            workers: The same under another name.
            per_worker_buffer_size: Elements, or batches, kept ready for each worker.
            max_workers: Begin with one process, and let tuning find out whether up to so many pay.
            threads_per_worker: Threads that evaluate in each worker. Where neither this nor a number of workers is given,
                there are more where functions wait and let others have the interpreter meanwhile: then several threads
                call them at once, as with Grain's read threads; 1 rules that out.
            ram_budget: Bytes, or text such as `"2GiB"`, that shared memory and the private memory of all workers take
                together at most; a quarter of what is available.
            worker_heap: Bytes of private memory of each worker; see `MpOptions`.
            max_element: Bytes that one element or batch may have; a quarter of the shared memory.
            deadline: Seconds that a range of elements may take before its worker counts as hanging; `None` for ever.
            retries: How many workers a range may kill before the element that does it is sought.
            on_poison: What becomes of an element that kills every worker: it ends the run, or is left out and counted
                in the report.
            tune: Whether the number of threads at work, and how far they work ahead, follow what the consumer needs.

        Raises:
            ConfigError: The options contradict each other, or do not fit into the budget.
        """

    def loader(
        self,
        *,
        threads: int | Literal["auto"] = 0,
        buffer: int = 2,
        writable: bool = False,
        accept_changes: bool = False,
        workers: bool = True,
        part: Part | tuple[int, int] | str | None = None,
        deal: Literal["even", "lanes"] | Deal = "even",
        guard: Guard = "auto",
        guard_timeout: float = 600.0,
        keys: str | PathLike[str] | None = None,
        record_keys: bool = False,
        on_failed_element: Literal["error", "pad"] = "error",
        failed_element_limit: int | None = None,
        metrics: str | int | None = None,
        record: _Path | None = None,
        trace: _Path | None = None,
        top: bool = False,
    ) -> DatasetIterator[_T_co]:
        """Starts a pass.

        Args:
            threads: Threads for the elementwise part, beside one for the rest. With 0 everything runs when it is asked
                for. With `"auto"` there is one for each core at first, and their number and how far they are ahead follow
                what the loop needs: up to 256 if elements mostly wait for a disk or a network. Functions that hold the
                interpreter's lock while they compute gain by `mp_prefetch` instead. The elements are the same.
            buffer: Elements or batches that are kept ready ahead of the consumer, where there are threads.
            writable: Hand out native arrays that may be written to: as they are where nobody else views their memory,
                else as a copy. Arrays that Python functions made are handed on as they are.
            accept_changes: Accept a state of another pipeline in `set_state`: a file was withdrawn, or an argument has changed. Positions are taken
                as they are; the change is logged, and stands in the report and in all later states under `accepted_changes`. Stages
                after `to_iter` that hold positions must be as before.
            workers: Whether `mp_prefetch` has processes started. Without them this process evaluates everything: to
                look at a few elements, or at the state.
            part: Rows of every batch that are delivered here, where several hosts read one pipeline: `(3, 64)` are those
                of the fourth of 64. `batch` makes global batches; states know nothing of parts, and any part goes on
                from the state of any other.
            deal: Which rows are whose: those that follow one another, those of the same lanes, by an index, or a `Deal` that balances what rows cost. Batches are
                the same. Where rows are planned by keys and packed, the plan says what they cost; else each host evaluates all rows.
            guard: How hosts are compared, so that one with other files, another pipeline or a function with randomness of its own
                is an error on all of them: before the first batch, every 128 batches and at the end. With `"auto"` by the
                store of JAX or PyTorch, if the part is of `gm.jax.part_for` or `gm.torch.part` and there are several processes; else not.
                A folder that all hosts see serves as well, `(folder, host, hosts)` where the part does not say which host
                this is, and an object with `begin(part)`, `post(round, statement)` and `read(round)`. `None` compares nothing.
            guard_timeout: Seconds after which a host that has said nothing is an error.
            keys: The folder of key files, which `make_keys` or `gristmill index --keys` has written: by them a host plans which
                elements the rows of all hosts are made of, and evaluates those of its own alone.
            record_keys: Whether key files that are not there yet are written while everything is evaluated: without a part, or by the host
                that has the first row. The next start plans by them.
            on_failed_element: What becomes of an element that fails after rows were planned of it, by keys or by indices: with
                `"pad"` it is padding where it would be, counted and named in the report, and the plan stays what it is. Where all
                elements are evaluated it changes nothing.
            failed_element_limit: The most that become padding; no limit by default.
            metrics: Where `GET /metrics` is answered with the figures of the pass while it lives, as OpenMetrics text for Prometheus:
                `"127.0.0.1:9464"`, or a port alone, which nobody but this machine reaches; 0 is a free one, which
                `metrics_address` tells. Other users of this machine are answered with `"everybody@"` in front.
            record: A file in which the pass is recorded while it runs, which `Report.from_record` and `gristmill report` read back, also
                where the process was killed. A recording that is there is kept as `NAME.1.ENDING`.
            trace: A file to which the pass is written as a trace for Perfetto and Chrome, compressed if it ends in `.gz`.
            top: Let people of this user on this machine look at the pass with `gristmill top`. `GRISTMILL_TOP=1` in the environment does
                the same for every pass.

        Returns:
            The pass: an iterator, and a context manager that closes it.

        Raises:
            ConfigError: An argument is impossible, or a column is not there.
            WorkerError: Worker processes cannot be started.
        """

    def make_keys(self, folder: str | PathLike[str]) -> list[dict[str, Any]]:
        """Makes the keys by which several hosts plan this pipeline: what filters keep, and how long elements are.

        Each record is evaluated once, by all cores. Keys that are there are not made again; where it was interrupted, it goes on.

        Args:
            folder: The folder for the key files, one for each source.

        Returns:
            Of each source `file`, `source`, `records`, `elements`, `bytes`, and `was_there`.

        Raises:
            ConfigError: Keys would not help: indices alone say which rows are whose, or a stage decides by more than keys.
        """

    def explain(self, *, threads: int = 0, buffer: int = 2) -> Explanation:
        """Explains the pipeline: its stages, which of them run in parallel, what they hold in memory, what comes out.

        The first elements are read for it, in this process.

        Args:
            threads: The threads of the `loader` whose memory is estimated.
            buffer: Its buffer.
        """

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of the first element, which is read for it: a tree like it.

        Arrays are `ArraySpec`s, anything else is its type. A list or tuple of things that are alike is one with a
        single entry.

        Raises:
            ConfigError: The dataset has no element.
        """

    def apply(self, transform: Callable[[IterDataset[_T_co]], _R]) -> _R:
        """Calls a function with this dataset and returns what it makes of it, so that stages of one's own stand in a
        chain.

        Args:
            transform: A function of a dataset.
        """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> DatasetIterator[_T_co]:
        """Starts a pass without threads: `loader()`."""

@final
class Part:
    """Rows of every global batch that one consumer takes: an equal share, or rows that are listed.

    Consumers that compute on the same rows, such as tensor- and pipeline-parallel peers, have the same part.
    """

    def __new__(cls, index: int, count: int) -> Part:
        """Share `index` of `count` equal ones.

        Args:
            index: This one of them, from 0 on.
            count: How many they are.

        Raises:
            ConfigError: There is no such share.
        """

    @staticmethod
    def listed(rows: Sequence[int], global_batch: int) -> Part:
        """Rows of these numbers, in this order: what the devices of one process hold of a sharded array.

        Args:
            rows: The numbers.
            global_batch: Rows of every global batch.

        Raises:
            ConfigError: There are none, or one that such a batch does not have.
        """

    def rows(self, global_batch: int) -> list[int]:
        """The numbers of its rows in a global batch.

        Args:
            global_batch: Rows of the batch.

        Raises:
            ConfigError: They do not divide, or the part was listed for another number.
        """

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...


@final
class Cost:
    """Cost of a row of a batch: `per_token` for each of its tokens, and `per_square` times the squared lengths of its
    sequences.

    Lengths are read from the column that `segments` or `lengths` names, else from the first one whose name ends in
    `segment_ids` or `segmentation`: what packing writes. The report says which it is. Padding costs nothing, and only
    ratios matter, so the unit is free.
    """

    def __new__(
        cls,
        per_token: int,
        per_square: int = 0,
        window: int | None = None,
        segments: str | None = None,
        lengths: str | None = None,
    ) -> Cost:
        """The cost with these factors.

        Args:
            per_token: Cost of a token.
            per_square: Cost of a squared length.
            window: How many tokens a token sees to a side, itself among them; of a longer sequence, the square is 2 ·
                length · window - window².
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
        """The cost of a layer of a transformer, in `d_model` floating-point operations of its forward pass: 24 · `d_model`
        a token, and 2 times the squared lengths, or 4 times where attention is not causal.

        Args:
            d_model: The width of the model.
            window: How many tokens a token sees to a side, itself among them; all of its sequence by default.
            causal: Whether a token sees those up to itself alone.
            segments: A column of segment ids, as for `Cost`.
            lengths: A column of lengths, as for `Cost`.

        Raises:
            ConfigError: Both columns are given.
        """

    @staticmethod
    def column(name: str) -> Cost:
        """The cost that stands in a column, one integer a row: patches of images, frames of sound.

        Args:
            name: The column.
        """

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...


@final
class Deal:
    """How the rows of every global batch are dealt among equal parts, by what they cost.

    The batch is the same however its rows are dealt, and so is the state.
    """

    @staticmethod
    def balanced(cost: Cost, micro_steps: int = 1) -> Deal:
        """Rows that take all ranks equally long: heavy rows in the first micro-steps, light ones in the last, and in each of them
        as evenly over ranks as it goes.

        Args:
            cost: The cost of a row.
            micro_steps: Steps into which each rank cuts its rows, one behind the other.
        """

    @staticmethod
    def shadow(cost: Cost, micro_steps: int = 1) -> Deal:
        """Rows that follow one another, while the report says what a balanced deal would save.

        Args:
            cost: The cost of a row.
            micro_steps: Steps into which each rank cuts its rows, one behind the other.
        """

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...


@final
class DatasetIterator(Iterator[_T_co], Generic[_T_co]):
    """A pass over a dataset, which knows where it is and where its time went.

    After an exception it ends; its state is then that before the element that failed.
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def get_state(self) -> dict[str, Any]:
        """Says where the consumer is, whatever was read ahead: positions, which JSON can hold."""

    def set_state(self, state: Mapping[str, Any] | str | bytes) -> None:
        """Goes to where a state was taken.

        Args:
            state: What `get_state` returned, or its JSON.

        Raises:
            StateError: It is of another pipeline, or no state: the message names the first stage that differs.
        """

    def start_prefetch(self) -> None:
        """Begins to read ahead, before the first `next`.

        With threads a pass has begun when it was started, and without them nobody could: there is nothing to do, and it
        can be said of any pass.
        """

    def repart(self, part: Part | tuple[int, int] | str) -> None:
        """Delivers the rows of another part from the next batch on, without a restart: where hosts have come or gone.

        Args:
            part: The part, as for `loader`.

        Raises:
            ConfigError: There is no such part; the present one stays.
        """

    def back(self, count: int = 1) -> None:
        """Gives the last batches back: they are delivered again, after a step that was not committed.

        Args:
            count: How many; 2 at most, of those since the start or a `set_state`.

        Raises:
            StateError: There are not so many.
        """

    @property
    def part(self) -> Part | None:
        """The part of every batch that is delivered, from the next batch on; `None` where all of it is."""

    @property
    def rows(self) -> list[int] | None:
        """Numbers of the rows of its global batch that the last batch is; `None` before it, and without a part."""

    def save(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Saves the state by Orbax's protocol of objects that save themselves: see `gristmill.orbax`.

        Args:
            directory: Where to, as Orbax says it.
        """

    def load(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Goes to a state that `save` wrote.

        Args:
            directory: Where it is, as Orbax says it.

        Raises:
            StateError: It is not there, or of another pipeline.
        """

    def report(self) -> Report:
        """Says where the time went so far."""

    @property
    def metrics_address(self) -> str | None:
        """The address at which `GET /metrics` is answered, such as `127.0.0.1:9464`, if `loader(metrics=…)` asked for it."""

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

    @staticmethod
    def from_record(path: _Path) -> Report:
        """Reads what `loader(record=…)` or `gristmill run --record` has written, also of a run that was killed or still goes on: the report
        is as of the last time that it was written.

        Args:
            path: The recording.

        Raises:
            DataError: It is no recording, or damaged; the error says at which byte.
            IoError: It cannot be read.
        """

    def _repr_html_(self) -> str: ...
    def to_html(self, path: _Path | None = None) -> str:
        """Gives a page of HTML that needs nothing else: what happened when, and why the consumer waited.

        Args:
            path: A file to write it to as well.
        """
    def to_svg(self) -> str:
        """Gives the ribbon of that page by itself: a picture of what happened when, or nothing where nothing was delivered."""

    def as_dict(self) -> dict[str, Any]:
        """Gives every number of the report."""

    def metrics(self) -> dict[str, float]:
        """Gives figures under flat names that stay, for dashboards: see `gristmill.metrics`. Notes whose names are the same once they are flat are added up."""

@final
class Explanation:
    """A pipeline, explained: `str` gives the text for people, `as_dict` the same as values."""

    def _repr_html_(self) -> str: ...
    def as_dict(self) -> dict[str, Any]:
        """Gives stages, memory in bytes, fingerprint and the spec of the first element."""

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

    All shards have the same columns, in formats that have columns: those of the first 1,024 records, or 8 MiB of them.

    Args:
        folder: The folder, or its URL.
        format: The format of the shards: `jsonl`, `parquet`, `array_record`, `tfrecord`, `arrow`, `hugging_face`,
            `webdataset`, `mds`, `npy`, `safetensors`, `tokens` or `megatron`.
        compression: `none`, `zstd:LEVEL`, `gzip:LEVEL`, `brotli:QUALITY`, `lz4` or `snappy`, as far as the format has
            it.
        shard_bytes: A shard ends behind the record with which its values have so many bytes in memory; 256 MiB by
            default.
        shard_records: A shard ends behind so many records; no limit by default.
        group: Records that are encoded together, in formats that have such a thing.
        prefix: The beginning of the names of shards, `prefix-00000`, …; `shard` by default.
        threads: Threads that encode and compress, each a shard at a time; all cores by default.
        memory: Bytes of elements that wait at most; 1 GiB by default.
        resume: Continue a folder that holds shards behind them; without it, such a folder is refused.
        column: The column of token ids that is written, for token files.
        token_type: The type of ids in token files.
        bare: Write token files without a header.
        byte_stream_split: Split floats by bytes, for Parquet of activations and features, which takes a tenth less room
            so.
        schema: Declares some or all columns: `{"score": "float64", "ids": "int32[_]", "tags": {"list": "text"}}` for
            Parquet, Arrow and Hugging Face, `{"score": "float64", "image": "jpeg"}` in the encodings of MDS,
            `{"x": "float32[2, 3]"}` for NumPy and safetensors. Numbers of a declared column may come as another type:
            whole ones have to fit, others are rounded.
        sequences: The columns that are sequences in TFRecord and ArrayRecord: records are `tf.train.SequenceExample`s
            then, with a step for each item of a list or row of an array.

    Raises:
        ConfigError: Options or the folder do not fit.
        StateError: The folder was begun with other options.
    """

@final
class Sink:
    """A folder of shards that elements are written into: at once, unless memory is used up; see `sink`.

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
        """Writes an element.

        Arrays are copied, unless they are read-only views of the memory of another object, as those of JAX are:
        then that object is kept, and nothing may write to its memory.

        Args:
            element: A dict of arrays, numbers, text and bytes.
            state: What JSON can hold, or a function that returns it. That of the last record of a shard is kept: see
                `Sink.state`.

        Raises:
            DataError: This or an earlier element cannot be written: the message says which record.
            IoError: The folder cannot be written to.
        """

    def write_batch(self, batch: Mapping[str, Any]) -> None:
        """Writes each row of a batch.

        Args:
            batch: A dict of arrays; those of a row lack their leading dimension.

        Raises:
            DataError: This or an earlier element cannot be written: the message says which record.
            IoError: The folder cannot be written to.
        """

    def write_all(self, elements: Iterable[Mapping[str, Any]]) -> None:
        """Writes all elements of an iterator.

        Args:
            elements: The elements. An iterator with `get_state` and `set_state`, as a loader is, goes on where the
                folder ends.

        Raises:
            DataError: This or an earlier element cannot be written: the message says which record.
            IoError: The folder cannot be written to.
            ValueError: The folder holds records, and nothing says where in these elements they end.
        """

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
        """Gives every number of the report; `wait_share` is the share of the time that writing waited for memory."""

@final
class Metrics:
    """How well a device was used: `str` gives the text for people, `as_dict` the numbers.

    Shares are of the time that counts, from 0 to 1. `utilisation` is AU as MLPerf Storage's benchmark computes it,
    `stall` the share for which the device stood still, `input_bound_share` the share that the loop spent in `next`,
    with the words of TensorFlow's profiler for it in `input_bound`: `not`, `moderately` (from 5 %) or `highly` (from
    20 %).
    """

    @staticmethod
    def of(
        steps: Sequence[tuple[float, float, float, float, int]], wall: float, exclude_first: int = 1
    ) -> Metrics | None:
        """Computes what the steps of a loop say.

        Args:
            steps: Of each step: when its batch was asked for and arrived, when the device could begin and was done, all
                in seconds since the start of the loop, and how many samples it had.
            wall: Seconds that the loop took.
            exclude_first: Steps at the start that do not count.

        Returns:
            The metrics; `None` if no step is left without the excluded ones.

        Raises:
            ValueError: A time is negative.
        """

    @property
    def verdict(self) -> str:
        """What they mean, in a sentence."""

    def beside(self, resident: Metrics) -> Metrics:
        """Adds `au_synth`, the speed as a share of that of another loop.

        Args:
            resident: The metrics of the same loop over one batch that stays in memory.
        """

    def _repr_html_(self) -> str: ...
    def as_dict(self) -> dict[str, Any]:
        """Gives every number."""

@final
class TfRecordReader:
    """Reads the records of one TFRecord file, compressed or not, and goes to any of them by its byte."""

    def __new__(cls, path: _Path) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def seek(self, byte: int) -> None:
        """Goes to a record.

        Args:
            byte: Where it begins, in what is decompressed.

        Raises:
            ValueError: None begins there.
        """

    def tell(self) -> int:
        """Says where the next record begins, in what is decompressed."""

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
