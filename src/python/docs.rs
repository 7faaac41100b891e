//! Docstrings and signatures of the stub, `python/gristmill/_gristmill.pyi`: `docs!(Class.method)` is a docstring, and
//! `docs!(signature Class.method)` the same below the signature, in the form that Python parses. Written by
//! `python/docstrings.py`, and not by hand.

macro_rules! docs {
    (MapDataset) => {
        r#"A dataset of random access: `ds[i]`, `len(ds)`, shuffled and sharded by index, evaluated in any order."#
    };
    (IterDataset) => {
        r#"A stream: read in order, small in state. Who evaluates it is chosen last, by `loader`, and changes no element."#
    };
    (Part) => {
        r#"Rows of every global batch that one consumer takes: an equal share, or rows that are listed.

Consumers that compute on the same rows, such as tensor- and pipeline-parallel peers, have the same part."#
    };
    (Cost) => {
        r#"Cost of a row of a batch: `per_token` for each of its tokens, and `per_square` times the squared lengths of its
sequences.

Lengths are read from the column that `segments` or `lengths` names, else from the first one whose name ends in
`segment_ids` or `segmentation`: what packing writes. The report says which it is. Padding costs nothing, and only
ratios matter, so the unit is free."#
    };
    (Deal) => {
        r#"How the rows of every global batch are dealt among equal parts, by what they cost.

The batch is the same however its rows are dealt, and so is the state."#
    };
    (DatasetIterator) => {
        r#"A pass over a dataset, which knows where it is and where its time went.

After an exception it ends; its state is then that before the element that failed."#
    };
    (Report) => {
        r#"Where the time of a run went: `str` gives the text for people, `as_dict` the numbers."#
    };
    (Explanation) => {
        r#"A pipeline, explained: `str` gives the text for people, `as_dict` the same as values."#
    };
    (Sink) => {
        r#"A folder of shards that elements are written into: at once, unless memory is used up; see `sink`.

A context manager: leaving it finishes; where an exception is on its way, it stops behind the last whole shard."#
    };
    (SinkReport) => {
        r#"What a sink did: `str` gives the text for people, `as_dict` the numbers."#
    };
    (Metrics) => {
        r#"How well a device was used: `str` gives the text for people, `as_dict` the numbers.

Shares are of the time that counts, from 0 to 1. `utilisation` is AU as MLPerf Storage's benchmark computes it,
`stall` the share for which the device stood still, `input_bound_share` the share that the loop spent in `next`,
with the words of TensorFlow's profiler for it in `input_bound`: `not`, `moderately` (from 5 %) or `highly` (from
20 %)."#
    };
    (TfRecordReader) => {
        r#"Reads the records of one TFRecord file, compressed or not, and goes to any of them by its byte."#
    };
    (Lease) => {
        r#"The memory of an array, lent read-only to a consumer of DLPack that never writes to it, as JAX never does.

It is the array's own where that is gristmill's, and else a copy. A consumer that asks for version 1.0 of the protocol
is told that the memory is read-only; one that does not could not be told. Whoever lets go of it needs no interpreter."#
    };
    (RecordBatch) => {
        r#"A batch as Arrow's record batch: its columns view the memory of the arrays wherever that is gristmill's own.

Truth values, text, bytes and lists of different lengths are copied, as Arrow lays them out in another way; arrays of
more dimensions become lists of fixed size."#
    };
    (RecordBatchStream) => {
        r#"Batches as Arrow's stream of record batches, which can be read once.

The first of them says what columns there are. They are made when they are asked for."#
    };
    (cli) => {
        r#"Runs the command that `arguments` say, the first of which is the program's name, and returns the exit code.

Args:
    arguments (Sequence[str]): As in `sys.argv`.
    interpreter (str): The path of the Python that workers are started with."#
    };
    (signature cli) => {
        concat!(r#"cli(arguments, interpreter)"#, "\n--\n\n", docs!(cli))
    };
    (index_shuffle) => {
        r#"Says where Grain's permutation of `0..=max_index` sends `index`.

Args:
    index (int): From 0 to `max_index`.
    max_index (int): The highest index.
    seed (int): From 0 to 2^32 - 1.
    rounds (int): Rounds of the cipher; Grain takes 4.

Raises:
    ValueError: `index` is above `max_index`."#
    };
    (signature index_shuffle) => {
        concat!(r#"index_shuffle(index, max_index, seed, rounds)"#, "\n--\n\n", docs!(index_shuffle))
    };
    (MapDataset.range) => {
        r#"Counts whole numbers, as Python's `range`.

Args:
    start (int): The first number; the end where it is given alone, and then the first is 0.
    stop (int | None): The end, which is not reached.
    step (int): From one number to the next; not 0.

Raises:
    ConfigError: `step` is 0."#
    };
    (signature MapDataset.range) => {
        concat!(r#"range(start, stop=None, step=1)"#, "\n--\n\n", docs!(MapDataset.range))
    };
    (MapDataset.source) => {
        r#"Reads the records of anything with `__len__` and `__getitem__`; index `i` reads record `i % len(source)`.

A source that also has `__getitems__` is given lists of indices, as many as are read at a time, and returns as
many records; where that raises, they are read one by one. An array that the source keeps a reference to, or of
which the record is a view, is copied, unless it is read-only.

Args:
    source (Source): Lists, arrays, datasets of others; it is asked from several threads if the
        loader has some.

Raises:
    TypeError: It has no `__getitem__` or no length."#
    };
    (signature MapDataset.source) => {
        concat!(r#"source(source)"#, "\n--\n\n", docs!(MapDataset.source))
    };
    (MapDataset.computed) => {
        r#"Asks anything with `__len__` and `__getitem__` for the element of each index; `None` where there is none.

Unlike a `source` it is asked for indices of later epochs as they are.

Args:
    source (Source): What computes the elements; its length is that of one epoch.
    dense (bool): Promises an element for each index.

Raises:
    TypeError: It has no `__getitem__` or no length."#
    };
    (signature MapDataset.computed) => {
        concat!(r#"computed(source, *, dense=False)"#, "\n--\n\n", docs!(MapDataset.computed))
    };
    (MapDataset.jsonl) => {
        r#"Reads the records of JSON Lines files: dicts of arrays, numbers, text and lists.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.jsonl`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The columns to read, all of them by default.
    repeated_names (Literal['last', 'error']): What becomes of a record in which an object has a
        name twice, among the columns that are read: the last value stands, and the report counts
        such records, or it is a bad record.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.jsonl) => {
        concat!(r#"jsonl(paths, *, columns=None, repeated_names='last', index_cache=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.jsonl))
    };
    (MapDataset.arrow) => {
        r#"Reads the rows of Arrow's files, or of a table in memory: dicts of arrays, numbers, text and lists.

Files are those of Arrow IPC (Feather) and its streams, and folders that `datasets.save_to_disk` wrote. A table
is anything that exports itself through Arrow's C interface, as those of pyarrow, Polars, DuckDB and pandas do.
A `datasets.Dataset` is read as it is, with what `shuffle`, `select` and `filter` made of it; its table alone
(`dataset.data`) does not know of that, and is refused.

Lists of numbers, also those of fixed size, are views: of the table's memory, or of files that are not
compressed.

Args:
    paths (str | PathLike | Sequence[str | PathLike] | ArrowStream | ArrowArray | HuggingFace):
        Files, folders, globs or URLs, one or a list; or the table.
    columns (str | Sequence[str] | None): The columns to read, all of them by default.
    cache_bytes (int | str | None): Bytes, or text such as `"512MiB"`, of decompressed batches that
        are kept. Only of files.
    hive_partitioning (bool | None): Whether folders named `key=value` give columns, as Hive, Spark
        and DuckDB write them: by default the folders between a folder of `paths` and its files, if
        true all folders of a path, if false none.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read.
    TypeError: It is neither paths nor a table; the message says how to make it one."#
    };
    (signature MapDataset.arrow) => {
        concat!(r#"arrow(paths, *, columns=None, cache_bytes=None, hive_partitioning=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.arrow))
    };
    (MapDataset.lines) => {
        r#"Reads the lines of text files: dicts with one `column` of text, without line ends.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.txt`) or URLs of any of these; one or a list.
    column (str): The name of the column of text.
    blank_lines (bool): Whether lines of nothing but white space are records, too; only of files
        that are not compressed.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.lines) => {
        concat!(r#"lines(paths, *, column='text', blank_lines=False, index_cache=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.lines))
    };
    (MapDataset.csv) => {
        r#"Reads the records of CSV files that are not compressed: dicts of numbers and text, a field for each column.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.csv`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The columns to read, all of them by default.
    delimiter (str | None): One character; found in the first records if it is not given.
    quote (str): The character around fields that hold delimiters, `"` by default; empty text for
        none.
    header (bool | None): Whether the first record of each file names the columns; so it does by
        default, unless `names` are given.
    names (str | Sequence[str] | None): The names of the columns, if the files do not have them.
    types (Mapping[str, str] | None): Types of columns: `"str"`, `"bool"`, `"int64"`, `"float32"`
        and so on. Those of others are inferred.
    nulls (str | Sequence[str] | None): Fields that stand for `None`.
    infer_rows (int): Records by which the types of columns are inferred.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.csv) => {
        concat!(r#"csv(paths, *, columns=None, delimiter=None, quote='"', header=None, names=None, types=None, nulls=None, infer_rows=1000, index_cache=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.csv))
    };
    (MapDataset.parquet) => {
        r#"Reads the rows of Parquet files: dicts of arrays, numbers, text, lists and dicts.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.parquet`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The columns to read, all of them by default. `"meta.url"`
        is one field of a struct.
    row_groups (Mapping[str, str | float] | None): Leaves out the row groups that cannot hold such a
        row, by their statistics: `{"column": "id", "min": 3, "max": 9}`, or `equals`. A `filter`
        drops the other rows of those that are read.
    cache_bytes (int | str | None): Memory for decoded row groups that are kept. In bytes, or as
        text such as `"512MiB"`. `"256MiB"` by default.
    hive_partitioning (bool | None): Whether folders named `key=value` give columns, as Hive, Spark
        and DuckDB write them: by default the folders between a folder of `paths` and its files, if
        true all folders of a path, if false none.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.parquet) => {
        concat!(r#"parquet(paths, *, columns=None, row_groups=None, cache_bytes=None, hive_partitioning=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.parquet))
    };
    (MapDataset.array_record) => {
        r#"Reads the records of ArrayRecord files.

Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.array_record`) or URLs of any of these; one or a list.
    field (str | None): The name under which the bytes of a record are put into a dict, which native
        stages take; plain `bytes` by default.
    examples (bool | Mapping[str, str | Mapping[str, Any]] | None): Parse records as
        `tf.train.Example`s: `True`, or features as `parse_example` declares them.
    sequence_examples (bool | Mapping[str, Mapping[str, str | Mapping[str, Any]]] | None): Parse
        records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
        `parse_sequence_example` declares them.
    cache_bytes (int | str | None): Memory for decoded chunks, if chunks hold several records. In
        bytes, or as text such as `"512MiB"`. `"256MiB"` by default.
    recover (bool): Read a file that was cut off up to its last whole chunk. The loss is logged.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.array_record) => {
        concat!(r#"array_record(paths, *, field=None, examples=None, sequence_examples=None, cache_bytes=None, recover=False, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.array_record))
    };
    (MapDataset.tfrecord) => {
        r#"Reads the records of TFRecord files that are not compressed.

Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.tfrecord`) or URLs of any of these; one or a list.
    field (str | None): The name under which the bytes of a record are put into a dict, which native
        stages take; plain `bytes` by default.
    examples (bool | Mapping[str, str | Mapping[str, Any]] | None): Parse records as
        `tf.train.Example`s: `True`, or features as `parse_example` declares them.
    sequence_examples (bool | Mapping[str, Mapping[str, str | Mapping[str, Any]]] | None): Parse
        records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
        `parse_sequence_example` declares them.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.tfrecord) => {
        concat!(r#"tfrecord(paths, *, field=None, examples=None, sequence_examples=None, index_cache=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.tfrecord))
    };
    (MapDataset.bagz) => {
        r#"Reads the records of Bagz files.

Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.
`x@4.bagz` names four files.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.bagz`) or URLs of any of these; one or a list.
    field (str | None): The name under which the bytes of a record are put into a dict, which native
        stages take; plain `bytes` by default.
    examples (bool | Mapping[str, str | Mapping[str, Any]] | None): Parse records as
        `tf.train.Example`s: `True`, or features as `parse_example` declares them.
    sequence_examples (bool | Mapping[str, Mapping[str, str | Mapping[str, Any]]] | None): Parse
        records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
        `parse_sequence_example` declares them.
    interleaved (bool): Whether the records were dealt out to the files in turn.
    compressed (bool | None): Whether records are frames of zstd; by default, the name of the file
        decides.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.bagz) => {
        concat!(r#"bagz(paths, *, field=None, examples=None, sequence_examples=None, interleaved=False, compressed=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.bagz))
    };
    (MapDataset.megatron) => {
        r#"Reads the token ids of Megatron's indexed datasets.

Dicts of `tokens`, views of the file in the number type that it states, and of `mode` where there are modes.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Datasets, each by its `.idx`, its `.bin` or
        what these names share; one or a list.
    by (Literal['sequence', 'document']): Contents of a record.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.megatron) => {
        concat!(r#"megatron(paths, *, by='sequence', on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.megatron))
    };
    (MapDataset.webdataset) => {
        r#"Reads the samples of WebDataset's tar shards that are not compressed: dicts of `__key__` and a field for each
extension.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.tar`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The extensions to read, all of them by default.
    decode (bool): Decode fields by their extension: text, numbers, what JSON holds, arrays of
        `.npy`, images (`uint8`, height × width × channels). Without it they are bytes.
    url (bool): Add the path of the shard as the column `__url__`.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.webdataset) => {
        concat!(r#"webdataset(paths, *, columns=None, decode=False, url=False, index_cache=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.webdataset))
    };
    (MapDataset.mds) => {
        r#"Reads the samples of MDS folders, as MosaicML's streaming has them: dicts of arrays, numbers, text and bytes.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Folders or their URLs; one or a list.
    columns (str | Sequence[str] | None): The columns to read, all of them by default.
    images (bool): Decode JPEG and PNG to arrays (`uint8`, height × width × channels); else they are
        bytes.
    check_hashes (bool): Hold each shard against the hash that its index has of it.
    cache_bytes (int | str | None): Memory for decompressed shards that are kept. In bytes, or as
        text such as `"512MiB"`. `"512MiB"` by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.mds) => {
        concat!(r#"mds(paths, *, columns=None, images=True, check_hashes=False, cache_bytes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.mds))
    };
    (MapDataset.npy) => {
        r#"Reads the rows of `.npy` files along their first dimension: dicts of one array, a view of the file.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.npy`) or URLs of any of these; one or a list. All have one type and one
        shape of a row.
    field (str): The name of the column.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.npy) => {
        concat!(r#"npy(paths, *, field='data', on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.npy))
    };
    (MapDataset.npz) => {
        r#"Reads the arrays of `.npz` archives: dicts, one for each archive, or one for each row of its arrays.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.npz`) or URLs of any of these; one or a list.
    rows (bool): A record for each row, along the first dimension that all arrays of an archive
        share.
    cache_bytes (int | str | None): Memory for decompressed archives that are kept; only with
        `rows=True`. In bytes, or as text such as `"512MiB"`. `"256MiB"` by default.
    max_bytes (int | str | None): Memory that the arrays of an archive may become when inflated; 64
        times its file by default, and 256 MiB at least. In bytes, or as text such as `"512MiB"`.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.npz) => {
        concat!(r#"npz(paths, *, rows=False, cache_bytes=None, max_bytes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.npz))
    };
    (MapDataset.safetensors) => {
        r#"Reads the tensors of safetensors files: dicts, one for each file, or one for each row of its tensors.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.safetensors`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The tensors to read, all of them by default.
    rows (bool): A record for each row, along the first dimension that all tensors of a file share.
    float8_as_u8 (bool): Read tensors of 8-bit floats as their bytes (`uint8`); else they are of
        `ml_dtypes`' types.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.safetensors) => {
        concat!(r#"safetensors(paths, *, columns=None, rows=False, float8_as_u8=False, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.safetensors))
    };
    (MapDataset.crops) => {
        r#"Reads files of token ids, one crop after the other: dicts of `tokens`.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.bin`) or URLs of any of these; one or a list.
    seq_len (int): Tokens in a crop; the rest at the end of a file is left out.
    layout (Literal['detect', 'llm_c', 'u16', 'u32']): Layout of the ids: as written by llm.c, or
        bare `"u16"` or `"u32"`, little-endian; recognised by default.
    with_next (bool): Add the token after each crop: `seq_len + 1` ids, of which neighbours share
        the last.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.crops) => {
        concat!(r#"crops(paths, *, seq_len, layout='detect', with_next=False, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.crops))
    };
    (MapDataset.random_crops) => {
        r#"Reads files of token ids, crops that start anywhere: dicts of `tokens`.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.bin`) or URLs of any of these; one or a list.
    seq_len (int): Tokens in a crop.
    seed (int): The seed of their starts, from 0 to 2^32 - 1.
    layout (Literal['detect', 'llm_c', 'u16', 'u32']): Layout of the ids: as written by llm.c, or
        bare `"u16"` or `"u32"`, little-endian; recognised by default.
    with_next (bool): Add the token after each crop: `seq_len + 1` ids.
    epoch (int | None): How many crops an epoch has; without it there is no end.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature MapDataset.random_crops) => {
        concat!(r#"random_crops(paths, *, seq_len, seed, layout='detect', with_next=False, epoch=None, on_bad_shard=None)"#, "\n--\n\n", docs!(MapDataset.random_crops))
    };
    (MapDataset.mix) => {
        r#"Takes elements of several datasets in proportion to the weights, in Grain's order.

It ends where one of them would have to give more than it has.

Args:
    datasets (Sequence[MapDataset[Any]]): The datasets.
    weights (Sequence[float] | None): A number for each part, all alike by default.

Raises:
    ConfigError: There are other numbers of weights than of datasets, or one is not above 0."#
    };
    (signature MapDataset.mix) => {
        concat!(r#"mix(datasets, weights=None)"#, "\n--\n\n", docs!(MapDataset.mix))
    };
    (MapDataset.concatenate) => {
        r#"Puts one dataset behind the other.

Args:
    datasets (Sequence[MapDataset[Any]]): The datasets.

Raises:
    ConfigError: There is none."#
    };
    (signature MapDataset.concatenate) => {
        concat!(r#"concatenate(datasets)"#, "\n--\n\n", docs!(MapDataset.concatenate))
    };
    (MapDataset.zip) => {
        r#"Makes tuples of the elements of datasets of one length.

Args:
    datasets (Sequence[MapDataset[Any]]): The datasets.

Raises:
    ConfigError: There is none, or their lengths differ."#
    };
    (signature MapDataset.zip) => {
        concat!(r#"zip(datasets)"#, "\n--\n\n", docs!(MapDataset.zip))
    };
    (MapDataset.select_from_datasets) => {
        r#"Takes elements of several datasets in an order of one's own.

Args:
    datasets (Sequence[MapDataset[Any]]): The datasets.
    selection_map (SelectionMap): `selection_map[i]` is the number of a dataset and an index in it.
        It is asked for all of its length at once.

Raises:
    ValueError: It has no entry."#
    };
    (signature MapDataset.select_from_datasets) => {
        concat!(r#"select_from_datasets(datasets, selection_map)"#, "\n--\n\n", docs!(MapDataset.select_from_datasets))
    };
    (MapDataset.seed) => {
        r#"Sets the seed from which random stages behind it derive theirs, unless they are given their own.

Args:
    seed (int): From 0 to 2^32 - 1.

Raises:
    OverflowError: It is none of these numbers."#
    };
    (signature MapDataset.seed) => {
        concat!(r#"seed($self, seed)"#, "\n--\n\n", docs!(MapDataset.seed))
    };
    (MapDataset.shuffle) => {
        r#"Puts the elements in a random order, another in every epoch, in constant memory; Grain's order.

A slice of it has other elements in each epoch. For training and validation sets, use `split` before it.

Args:
    seed (int | None): The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed`
        before it.

Raises:
    ConfigError: There is no seed: neither here nor in front of it."#
    };
    (signature MapDataset.shuffle) => {
        concat!(r#"shuffle($self, seed=None)"#, "\n--\n\n", docs!(MapDataset.shuffle))
    };
    (MapDataset.window_shuffle) => {
        r#"Puts the elements of each window in a random order; the windows stay where they are.

Args:
    window_size (int): Elements in a window.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed`
        before it.

Raises:
    ConfigError: The window is empty, or there is no seed."#
    };
    (signature MapDataset.window_shuffle) => {
        concat!(r#"window_shuffle($self, window_size, seed=None)"#, "\n--\n\n", docs!(MapDataset.window_shuffle))
    };
    (MapDataset.block_shuffle) => {
        r#"Puts the blocks of the source in a random order, another in every epoch, and then the elements of each window of blocks.

For sources that fetch or decode many records together, as row groups of Parquet on an object store: each block is read
once per epoch, and the blocks of two windows are held at most.

Args:
    window_blocks (int): Blocks whose elements are shuffled together. The elements of at most two
        windows are in memory.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed`
        before it.
    block_size (int | None): Elements of a block; by default the row groups of Parquet, record
        batches of Arrow, chunks of ArrayRecord or shards of MDS.

Raises:
    ConfigError: The window is empty, the blocks are not known, the source's cache has no room for
        the window (the text names the largest that has), or there is no seed."#
    };
    (signature MapDataset.block_shuffle) => {
        concat!(r#"block_shuffle($self, window_blocks, seed=None, *, block_size=None)"#, "\n--\n\n", docs!(MapDataset.block_shuffle))
    };
    (MapDataset.slice) => {
        r#"Takes the elements of a slice: `ds.slice(slice(1, None, 2))` is `ds[1::2]`.

A slice of a shuffled dataset has other elements in each epoch: `split` makes parts that share none.

Args:
    slice (slice): A slice of Python's.

Raises:
    ConfigError: Its step is 0."#
    };
    (signature MapDataset.slice) => {
        concat!(r#"slice($self, slice)"#, "\n--\n\n", docs!(MapDataset.slice))
    };
    (MapDataset.split) => {
        r#"Divides the elements into parts that share none in any epoch: `train, validation = ds.split([0.9, 0.1])`.

A part has its elements in every epoch. Shuffle and repeat parts, and not the dataset before them. Every epoch of a
part reads the first epoch of the stages before it: put `random_map` after it.

Args:
    sizes (Sequence[float]): The sizes of all parts: fractions, which are below 1, or counts of
        elements.
    take (int): The index of the part to return; by default, a list of all parts is returned.
    seed (int): The seed by which elements are drawn for parts, from 0 to 2^32 - 1. The `seed` of
        the pipeline does not change it.
    shuffle (bool): Whether elements are drawn at random; else the first part is the first elements,
        and so on.

Raises:
    ConfigError: Sizes are 0 or below, fractions and counts, or more than there is; a part is empty
        or not listed; the dataset never ends."#
    };
    (signature MapDataset.split) => {
        concat!(r#"split($self, sizes, take=None, *, seed=0, shuffle=True)"#, "\n--\n\n", docs!(MapDataset.split))
    };
    (MapDataset.shard) => {
        r#"Takes every `count`-th element from `index` on: the part of one host of `count`.

Args:
    index (int): Which part, from 0 on.
    count (int): How many parts there are.

Raises:
    ConfigError: There is no such part."#
    };
    (signature MapDataset.shard) => {
        concat!(r#"shard($self, index, count)"#, "\n--\n\n", docs!(MapDataset.shard))
    };
    (MapDataset.select_indices) => {
        r#"Takes the elements at these indices, in that order.

Args:
    indices (Sequence[int]): Indices from 0 on; one may come several times.

Raises:
    ConfigError: An index is past the end."#
    };
    (signature MapDataset.select_indices) => {
        concat!(r#"select_indices($self, indices)"#, "\n--\n\n", docs!(MapDataset.select_indices))
    };
    (MapDataset.repeat) => {
        r#"Makes several epochs one, or goes on without end.

A slice of a shuffled dataset has other elements in each epoch: see `split`. A loader of such a repeat logs a warning.

Args:
    num_epochs (int | None): How many epochs; without end by default.
    reseed_each_epoch (bool): Whether each is shuffled anew.

Raises:
    ConfigError: It is 0."#
    };
    (signature MapDataset.repeat) => {
        concat!(r#"repeat($self, num_epochs=None, *, reseed_each_epoch=True)"#, "\n--\n\n", docs!(MapDataset.repeat))
    };
    (MapDataset.map) => {
        r#"Applies a function to every element. What it returns is the element, `None` too.

An array that the function keeps a reference to is copied, unless it is read-only; so are dicts, lists and
byte arrays that it keeps. What nobody else refers to stays where it is.

Args:
    transform (Callable[[Any], Any] | Map): A function of an element, or an object with a method
        `map`.

Raises:
    TypeError: It is neither."#
    };
    (signature MapDataset.map) => {
        concat!(r#"map($self, transform)"#, "\n--\n\n", docs!(MapDataset.map))
    };
    (MapDataset.map_with_index) => {
        r#"Applies a function to every element and its index, which goes on over the epochs.

Args:
    transform (Callable[[int, Any], Any] | MapWithIndex): A function of the number and the element,
        or an object with a method `map_with_index`.

Raises:
    TypeError: It is neither."#
    };
    (signature MapDataset.map_with_index) => {
        concat!(r#"map_with_index($self, transform)"#, "\n--\n\n", docs!(MapDataset.map_with_index))
    };
    (MapDataset.random_map) => {
        r#"Applies a function to every element and random numbers that belong to its index; Grain's numbers.

They are the same for any number of threads and workers, and after a resume. The generator is used again for the
next element: do not keep it.

Args:
    transform (Callable[[Any, np.random.Generator], Any] | RandomMap): A function of the element and
        a `numpy.random.Generator`, or an object with a method `random_map`.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default one that is derived from the `seed`
        in front of it.

Raises:
    ConfigError: There is no seed: neither here nor in front of it."#
    };
    (signature MapDataset.random_map) => {
        concat!(r#"random_map($self, transform, *, seed=None)"#, "\n--\n\n", docs!(MapDataset.random_map))
    };
    (MapDataset.filter) => {
        r#"Keeps the elements of which a function, or natively a condition on a column, holds.

The length stays: a dropped element leaves an empty slot, which is `None` for `ds[i]` and skipped by a stream.

Args:
    transform (Callable[[Any], object] | Filter | None): A function of an element that returns
        something true for those to keep, or an object with a method `filter`.
    column (str | None): The column that a native condition is about; of the conditions below those
        that are given must all hold.
    min_length (int | None): The least length: bytes of text, rows of an array.
    max_length (int | None): The greatest length: bytes of text, rows of an array.
    min (float | None): The least number.
    max (float | None): The greatest number.
    equals (str | None): The text itself.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature MapDataset.filter) => {
        concat!(r#"filter($self, transform=None, /, *, column=None, min_length=None, max_length=None, min=None, max=None, equals=None)"#, "\n--\n\n", docs!(MapDataset.filter))
    };
    (MapDataset.flat_map) => {
        r#"Replaces every element by what a function makes of it, in `max_fan_out` slots; those that are not filled are
empty.

Args:
    transform (Callable[[Any], Iterable[Any]] | FlatMap): A function of an element that returns
        elements, or an object with a method `flat_map`.
    max_fan_out (int | None): The most elements that one becomes; an attribute of `transform` by
        default.

Raises:
    TypeError: There is no `max_fan_out`.
    DataError: An element becomes more than that."#
    };
    (signature MapDataset.flat_map) => {
        concat!(r#"flat_map($self, transform, max_fan_out=None)"#, "\n--\n\n", docs!(MapDataset.flat_map))
    };
    (MapDataset.slots) => {
        r#"Puts `None` in place of every empty slot, so that there is an element for each index, as `batch` needs."#
    };
    (signature MapDataset.slots) => {
        concat!(r#"slots($self)"#, "\n--\n\n", docs!(MapDataset.slots))
    };
    (MapDataset.drop_none) => {
        r#"Makes empty slots of elements that are `None`."#
    };
    (signature MapDataset.drop_none) => {
        concat!(r#"drop_none($self)"#, "\n--\n\n", docs!(MapDataset.drop_none))
    };
    (MapDataset.batch) => {
        r#"Stacks consecutive elements into batches, by index.

Batches have places of their own: any thread may make any of them. No batch reaches from one epoch into the
next.

Args:
    batch_size (int): Elements in a batch.
    drop_remainder (bool): Leave out the last elements if they do not fill a batch;
        `remainder="drop"` by Grain's name.
    batch_fn (Callable[[list[Any]], Any] | None): Makes the batch of a list of elements, in place of
        stacking them.
    remainder (Literal['keep', 'drop'] | None): What becomes of the last elements of an epoch if
        they do not fill a batch: they are a smaller one (`"keep"`, the default), or are left out.
        Batches that are filled up are those of a stream.

Raises:
    ConfigError: `batch_size` is 0, or options contradict each other; an element may be missing (see
        `slots`).
    ValueError: Elements differ in structure or shape: the message says where."#
    };
    (signature MapDataset.batch) => {
        concat!(r#"batch($self, batch_size, drop_remainder=False, batch_fn=None, *, remainder=None)"#, "\n--\n\n", docs!(MapDataset.batch))
    };
    (MapDataset.tokenise) => {
        r#"Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.

One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the place of their
text, which goes unless `keep_text` is true.

Args:
    tokenizer (str | PathLike): The path of the `tokenizer.json`.
    column (str | None): The column of text, which becomes `tokens`. One of `column` and `columns`
        is needed.
    columns (str | Sequence[str] | None): Several columns of text, which become `<column>_tokens`
        each.
    into (str | Sequence[str] | None): Other names for the columns of ids, in the order of the
        columns.
    keep_text (bool): Whether the text stays in the element beside its ids, which else take its
        place.
    prepend_bos (str | int | None): A token before each text, by its name in the vocabulary or its
        id.
    append_eos (str | int | None): A token after each text, by its name or its id.
    max_len (int | None): Tokens per text at most, those two included; no limit by default.
    overflow (Literal['truncate', 'error']): What becomes of longer texts: the beginning is kept, or
        it is an error.
    special_in_text (bool): Whether a special token that is written out in a text becomes that
        token. By default it is text like any other.
    engine (Literal['auto', 'fast', 'compat']): The fast engine, the compatible engine, or the fast
        engine if both agree.

Raises:
    ConfigError: There is no such column or token, or the file is no tokenizer.
    IoError: The file cannot be read."#
    };
    (signature MapDataset.tokenise) => {
        concat!(r#"tokenise($self, *, tokenizer, column=None, columns=None, into=None, keep_text=False, prepend_bos=None, append_eos=None, max_len=None, overflow='truncate', special_in_text=False, engine='auto')"#, "\n--\n\n", docs!(MapDataset.tokenise))
    };
    (MapDataset.parse_example) => {
        r#"Turns records of bytes into the features of the `tf.train.Example` that each of them is.

Elements are `bytes`, or dicts in which `column` holds them, whose place the features take.

Args:
    features (bool | Mapping[str, str | Mapping[str, Any]]): `{"label": {"dtype": "int64", "shape":
        [], "default": 0}, "ids": "int64"}` declares them. A dtype is `int64`, `float32`, `bytes` or
        `str`; without a shape the number of values varies. `True` infers them: numbers as arrays of
        one dimension, one string as `bytes`, several as a list.
    column (str): The column that holds the bytes; `record` by default.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A record is no `Example`, or lacks a feature."#
    };
    (signature MapDataset.parse_example) => {
        concat!(r#"parse_example($self, features=True, *, column='record')"#, "\n--\n\n", docs!(MapDataset.parse_example))
    };
    (MapDataset.parse_sequence_example) => {
        r#"Turns records of bytes into the features of the `tf.train.SequenceExample` that each of them is.

Without both declarations everything is inferred.

Args:
    context (Mapping[str, str | Mapping[str, Any]] | None): Features of the whole, as
        `parse_example` declares them.
    sequences (Mapping[str, str | Mapping[str, Any]] | None): Features of each step. Those with a
        shape become arrays of shape `[time, …]`, others lists with an array for each step; one that
        may be missing says `"allow_missing": True`.
    column (str): The column that holds the bytes; `record` by default.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A record is no `SequenceExample`, or lacks a feature."#
    };
    (signature MapDataset.parse_sequence_example) => {
        concat!(r#"parse_sequence_example($self, *, context=None, sequences=None, column='record')"#, "\n--\n\n", docs!(MapDataset.parse_sequence_example))
    };
    (MapDataset.select_columns) => {
        r#"Keeps only these columns, in this order.

Args:
    columns (str | Sequence[str]): A name, or a list of names.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature MapDataset.select_columns) => {
        concat!(r#"select_columns($self, columns)"#, "\n--\n\n", docs!(MapDataset.select_columns))
    };
    (MapDataset.drop_columns) => {
        r#"Keeps all but these columns.

Args:
    columns (str | Sequence[str]): A name, or a list of names.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature MapDataset.drop_columns) => {
        concat!(r#"drop_columns($self, columns)"#, "\n--\n\n", docs!(MapDataset.drop_columns))
    };
    (MapDataset.packed_columns) => {
        r#"Adds labels, `cu_seqlens` and positions of padding to packed rows, or to batches of them.

Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within each row; `batch` stacks
it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the B·T cells of the batch, which
`flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

Args:
    feature (str): The packed column. Its segment ids and positions are columns, too.
    padding_positions (Literal['zero', 'restart', 'continue']): The positions of padding: `"zero"`,
        as packing writes them; `"restart"`, from 0 in each run of padding, like a segment; or
        `"continue"`, after the segment before it.
    labels (Literal['unshifted', 'shifted'] | None): Adds `labels`, int64 and of the shape of the
        tokens. `"unshifted"`: the label of a token is the token itself, for models that shift, such
        as Hugging Face's. `"shifted"`: it is the next token. Padding has -100, and so has the first
        token of a segment if unshifted, the last if shifted.
    cu_seqlens (bool): Adds `cu_seqlens`, int32: the place in the flattened rows at which each
        segment begins, and the number of cells. Adds `max_seqlen`, int32: the length of the longest
        segment. A run of padding is a segment; with `padding_positions="continue"`, padding belongs
        to the segment before it.
    max_segments (int | None): The fixed number of segments of `cu_seqlens`, some of length 0. By
        default there are no segments of length 0, and rows with different numbers of segments
        cannot be stacked.

Raises:
    ConfigError: An argument is impossible, or none is given.
    DataError: There are no segment ids, a column has the name of one that is added, or a row has
        more segments than `max_segments`."#
    };
    (signature MapDataset.packed_columns) => {
        concat!(r#"packed_columns($self, feature='tokens', *, padding_positions='zero', labels=None, cu_seqlens=False, max_segments=None)"#, "\n--\n\n", docs!(MapDataset.packed_columns))
    };
    (MapDataset.rename) => {
        r#"Gives columns other names: `rename(text="document")`.

Args:
    names (Mapping[str, str] | None): Old names and the new ones, for names that are no words of
        Python.
    more (str): The same as keyword arguments.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature MapDataset.rename) => {
        concat!(r#"rename($self, names=None, /, **more)"#, "\n--\n\n", docs!(MapDataset.rename))
    };
    (MapDataset.to_iter_dataset) => {
        r#"Makes a stream of one epoch; empty slots are skipped."#
    };
    (signature MapDataset.to_iter_dataset) => {
        concat!(r#"to_iter_dataset($self)"#, "\n--\n\n", docs!(MapDataset.to_iter_dataset))
    };
    (MapDataset.to_iter) => {
        r#"Makes a stream of one epoch, and says what becomes of bad records and when filters drop too much.

Args:
    on_bad_record (Literal['error', 'skip']): `"skip"` passes over records that sources and native
        stages cannot use, and counts them in the report and the state.
    bad_record_limit (int | None): The most that are skipped in all; no limit by default.
    consecutive_bad_record_limit (int | None): The most that are skipped in a row; no limit by
        default.
    warn (float | None): The share of 1000 elements that filters may drop before a warning is
        logged. `0.9` by default.
    thresholds (float | None): `raise`, which Python can only pass as `**{"raise": 0.99}`: the share
        from which on it is an error.

Raises:
    ConfigError: A limit is given where nothing is skipped."#
    };
    (signature MapDataset.to_iter) => {
        concat!(r#"to_iter($self, *, on_bad_record='error', bad_record_limit=None, consecutive_bad_record_limit=None, warn=None, **thresholds)"#, "\n--\n\n", docs!(MapDataset.to_iter))
    };
    (MapDataset.mp_prefetch) => {
        r#"Has everything in front of this evaluated by worker processes, under a budget of memory; the elements stay
the same.

Native pipelines take one process with threads; Python functions go to several, by value if they are of a script
or a notebook. What comes behind this runs here.

Args:
    options (MpOptions | int | WorkerOptions | None): `MpOptions`, Grain's, or a number of workers;
        the fields of `MpOptions` may be given here one by one.
    worker_init_fn (Callable[[int, int], object] | None): Called once in each worker that runs
        Python functions, with its number and how many there are.
    num_workers (int | None): Worker processes; 0 evaluates on threads of this process. By default
        one with a thread for every core where all stages are native, else one for every core at the
        start, and as many as pay then.
    workers (int | Literal['auto']): The same under another name.
    per_worker_buffer_size (int): Elements, or batches, kept ready for each worker.
    max_workers (int | None): Begin with one process, and let tuning find out whether up to so many
        pay.
    threads_per_worker (int | None): Threads that evaluate in each worker. Where neither this nor a
        number of workers is given, there are more where functions wait and let others have the
        interpreter meanwhile: then several threads call them at once, as with Grain's read threads;
        1 rules that out.
    ram_budget (int | str | None): Bytes, or text such as `"2GiB"`, that shared memory and the
        private memory of all workers take together at most; a quarter of what is available.
    worker_heap (int | str | None): Bytes of private memory of each worker; see `MpOptions`.
    max_element (int | str | None): Bytes that one element or batch may have; a quarter of the
        shared memory.
    deadline (float | None): Seconds that a range of elements may take before its worker counts as
        hanging; `None` for ever.
    retries (int): How many workers a range may kill before the element that does it is sought.
    on_poison (Literal['error', 'skip']): What becomes of an element that kills every worker: it
        ends the run, or is left out and counted in the report.
    tune (bool): Whether the number of threads at work, and how far they work ahead, follow what the
        consumer needs.

Raises:
    ConfigError: The options contradict each other, or do not fit into the budget."#
    };
    (signature MapDataset.mp_prefetch) => {
        concat!(r#"mp_prefetch($self, options=None, worker_init_fn=None, *, num_workers=None, workers='auto', per_worker_buffer_size=1, max_workers=None, threads_per_worker=None, ram_budget=None, worker_heap=None, max_element=None, deadline=300.0, retries=3, on_poison='error', tune=True)"#, "\n--\n\n", docs!(MapDataset.mp_prefetch))
    };
    (MapDataset.loader) => {
        r#"Starts a pass over one epoch.

Args:
    threads (int | Literal['auto']): Threads for the elementwise part, beside one for the rest. With
        0 everything runs when it is asked for. With `"auto"` there is one for each core at first,
        and their number and how far they are ahead follow what the loop needs: up to 256 if
        elements mostly wait for a disk or a network. Functions that hold the interpreter's lock
        while they compute gain by `mp_prefetch` instead. The elements are the same.
    buffer (int): Elements or batches that are kept ready ahead of the consumer, where there are
        threads.
    writable (bool): Hand out native arrays that may be written to: as they are where nobody else
        views their memory, else as a copy. Arrays that Python functions made are handed on as they
        are.
    accept_changes (bool): Accept a state of another pipeline in `set_state`: a file was withdrawn,
        or an argument has changed. Positions are taken as they are; the change is logged, and
        stands in the report and in all later states under `accepted_changes`. Stages after
        `to_iter` that hold positions must be as before.
    workers (bool): Whether `mp_prefetch` has processes started. Without them this process evaluates
        everything: to look at a few elements, or at the state.
    part (Part | tuple[int, int] | str | None): Rows of every batch that are delivered here, where
        several hosts read one pipeline: `(3, 64)` are those of the fourth of 64. `batch` makes
        global batches; states know nothing of parts, and any part goes on from the state of any
        other.
    deal (Literal['even', 'lanes'] | Deal): Which rows are whose: those that follow one another,
        those of the same lanes, by an index, or a `Deal` that balances what rows cost. Batches are
        the same. Where rows are planned by keys and packed, the plan says what they cost; else each
        host evaluates all rows.
    guard (Guard): How hosts are compared, so that one with other files, another pipeline or a
        function with randomness of its own is an error on all of them: before the first batch,
        every 128 batches and at the end. With `"auto"` by the store of JAX or PyTorch, if the part
        is of `gm.jax.part_for` or `gm.torch.part` and there are several processes; else not. A
        folder that all hosts see serves as well, `(folder, host, hosts)` where the part does not
        say which host this is, and an object with `begin(part)`, `post(round, statement)` and
        `read(round)`. `None` compares nothing.
    guard_timeout (float): Seconds after which a host that has said nothing is an error.
    keys (str | PathLike | None): The folder of key files, which `make_keys` or `gristmill index
        --keys` has written: by them a host plans which elements the rows of all hosts are made of,
        and evaluates those of its own alone.
    record_keys (bool): Whether key files that are not there yet are written while everything is
        evaluated: without a part, or by the host that has the first row. The next start plans by
        them.
    on_failed_element (Literal['error', 'pad']): What becomes of an element that fails after rows
        were planned of it, by keys or by indices: with `"pad"` it is padding where it would be,
        counted and named in the report, and the plan stays what it is. Where all elements are
        evaluated it changes nothing.
    failed_element_limit (int | None): The most that become padding; no limit by default.
    metrics (str | int | None): Where `GET /metrics` is answered with the figures of the pass while
        it lives, as OpenMetrics text for Prometheus: `"127.0.0.1:9464"`, or a port alone, which
        nobody but this machine reaches; 0 is a free one, which `metrics_address` tells. Other users
        of this machine are answered with `"everybody@"` in front.
    record (str | PathLike | None): A file in which the pass is recorded while it runs, which
        `Report.from_record` and `gristmill report` read back, also where the process was killed. A
        recording that is there is kept as `NAME.1.ENDING`.
    trace (str | PathLike | None): A file to which the pass is written as a trace for Perfetto and
        Chrome, compressed if it ends in `.gz`.
    top (bool): Let people of this user on this machine look at the pass with `gristmill top`.
        `GRISTMILL_TOP=1` in the environment does the same for every pass.

Returns:
    The pass: an iterator, and a context manager that closes it.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    WorkerError: Worker processes cannot be started."#
    };
    (signature MapDataset.loader) => {
        concat!(r#"loader($self, *, threads=0, buffer=2, writable=False, accept_changes=False, workers=True, part=None, deal='even', guard='auto', guard_timeout=600.0, keys=None, record_keys=False, on_failed_element='error', failed_element_limit=None, metrics=None, record=None, trace=None, top=False)"#, "\n--\n\n", docs!(MapDataset.loader))
    };
    (MapDataset.explain) => {
        r#"Explains the pipeline: its stages, which of them run in parallel, what they hold in memory, what comes out.

The first elements are read for it, in this process.

Args:
    threads (int): The threads of the `loader` whose memory is estimated.
    buffer (int): Its buffer."#
    };
    (signature MapDataset.explain) => {
        concat!(r#"explain($self, *, threads=0, buffer=2)"#, "\n--\n\n", docs!(MapDataset.explain))
    };
    (MapDataset.element_spec) => {
        r#"The shapes and dtypes of the first element, which is read for it: a tree like it.

Arrays are `ArraySpec`s, anything else is its type. A list or tuple of things that are alike is one with a
single entry.

Raises:
    ConfigError: The dataset has no element."#
    };
    (signature MapDataset.element_spec) => {
        concat!(r#"element_spec($self)"#, "\n--\n\n", docs!(MapDataset.element_spec))
    };
    (MapDataset.apply) => {
        r#"Calls a function with this dataset and returns what it makes of it, so that stages of one's own stand in a
chain.

Args:
    transform (Callable[[MapDataset[Any]], Any]): A function of a dataset."#
    };
    (signature MapDataset.apply) => {
        concat!(r#"apply($self, transform)"#, "\n--\n\n", docs!(MapDataset.apply))
    };
    (IterDataset.from_file) => {
        r#"Builds the pipeline of a file in YAML, TOML or JSON.

Args:
    path (str | PathLike): The file; paths in it start at its folder.

Raises:
    ConfigError: Something in it is not understood: the message names line and key.
    IoError: A file cannot be opened or read."#
    };
    (signature IterDataset.from_file) => {
        concat!(r#"from_file(path)"#, "\n--\n\n", docs!(IterDataset.from_file))
    };
    (IterDataset.jsonl) => {
        r#"Reads the records of JSON Lines files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams:
dicts of arrays, numbers, text and lists.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.jsonl`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The columns to read, all of them by default.
    repeated_names (Literal['last', 'error']): What becomes of a record in which an object has a
        name twice, among the columns that are read: the last value stands, and the report counts
        such records, or it is a bad record.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    lanes (int | None): How many compressed files are read at a time, one record of each in turn,
        file `k` in lane `k` modulo `lanes`; it is part of the data's order. One stream by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature IterDataset.jsonl) => {
        concat!(r#"jsonl(paths, *, columns=None, repeated_names='last', index_cache=None, lanes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(IterDataset.jsonl))
    };
    (IterDataset.lines) => {
        r#"Reads the lines of text files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams: dicts
with one `column` of text, without line ends.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.txt`) or URLs of any of these; one or a list.
    column (str): The name of the column of text.
    blank_lines (bool): Whether lines of nothing but white space are records, too; only of files
        that are not compressed.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    lanes (int | None): How many compressed files are read at a time, one record of each in turn,
        file `k` in lane `k` modulo `lanes`; it is part of the data's order. One stream by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature IterDataset.lines) => {
        concat!(r#"lines(paths, *, column='text', blank_lines=False, index_cache=None, lanes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(IterDataset.lines))
    };
    (IterDataset.csv) => {
        r#"Reads the records of CSV files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams: dicts
of numbers and text, a field for each column.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.csv`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The columns to read, all of them by default.
    delimiter (str | None): One character; found in the first records if it is not given.
    quote (str): The character around fields that hold delimiters, `"` by default; empty text for
        none.
    header (bool | None): Whether the first record of each file names the columns; so it does by
        default, unless `names` are given.
    names (str | Sequence[str] | None): The names of the columns, if the files do not have them.
    types (Mapping[str, str] | None): Types of columns: `"str"`, `"bool"`, `"int64"`, `"float32"`
        and so on. Those of others are inferred.
    nulls (str | Sequence[str] | None): Fields that stand for `None`.
    infer_rows (int): Records by which the types of columns are inferred.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    lanes (int | None): How many compressed files are read at a time, one record of each in turn,
        file `k` in lane `k` modulo `lanes`; it is part of the data's order. One stream by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature IterDataset.csv) => {
        concat!(r#"csv(paths, *, columns=None, delimiter=None, quote='"', header=None, names=None, types=None, nulls=None, infer_rows=1000, index_cache=None, lanes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(IterDataset.csv))
    };
    (IterDataset.tfrecord) => {
        r#"Reads the records of TFRecord files in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as streams.

Without `field`, `examples` and `sequence_examples` a record is `bytes`; with any of them it is a dict.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.tfrecord`) or URLs of any of these; one or a list.
    field (str | None): The name under which the bytes of a record are put into a dict, which native
        stages take; plain `bytes` by default.
    examples (bool | Mapping[str, str | Mapping[str, Any]] | None): Parse records as
        `tf.train.Example`s: `True`, or features as `parse_example` declares them.
    sequence_examples (bool | Mapping[str, Mapping[str, str | Mapping[str, Any]]] | None): Parse
        records as `tf.train.SequenceExample`s: `True`, or `context` and `sequences` as
        `parse_sequence_example` declares them.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    lanes (int | None): How many compressed files are read at a time, one record of each in turn,
        file `k` in lane `k` modulo `lanes`; it is part of the data's order. One stream by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature IterDataset.tfrecord) => {
        concat!(r#"tfrecord(paths, *, field=None, examples=None, sequence_examples=None, index_cache=None, lanes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(IterDataset.tfrecord))
    };
    (IterDataset.webdataset) => {
        r#"Reads the samples of WebDataset's tar shards in order; compressed ones (`.gz`, `.zst`, `.lz4`) are read as
streams: dicts of `__key__` and a field for each extension.

Args:
    paths (str | PathLike | Sequence[str | PathLike]): Files, folders, globs, ranges of shards
        (`train-{000..127}.tar`) or URLs of any of these; one or a list.
    columns (str | Sequence[str] | None): The extensions to read, all of them by default.
    decode (bool): Decode fields by their extension: text, numbers, what JSON holds, arrays of
        `.npy`, images (`uint8`, height × width × channels). Without it they are bytes.
    url (bool): Add the path of the shard as the column `__url__`.
    index_cache (str | PathLike | None): Place of the positions of the records: `"beside"` the file,
        `"off"`, or a folder. `"beside"` by default.
    lanes (int | None): How many compressed files are read at a time, one record of each in turn,
        file `k` in lane `k` modulo `lanes`; it is part of the data's order. One stream by default.
    on_bad_shard (Literal['error', 'skip'] | None): Policy for a shard that cannot be opened:
        `"error"` ends the run, `"skip"` leaves the shard out and logs a warning. By default, the
        policy for bad records of `to_iter` in a pipeline file, or `"error"`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    IoError: A file cannot be opened or read.
    DataError: A record is damaged; raised where the record is read."#
    };
    (signature IterDataset.webdataset) => {
        concat!(r#"webdataset(paths, *, columns=None, decode=False, url=False, index_cache=None, lanes=None, on_bad_shard=None)"#, "\n--\n\n", docs!(IterDataset.webdataset))
    };
    (IterDataset.source) => {
        r#"Takes a stream written in Python: each `iter(source)` starts a pass.

A pass with `get_state` and `set_state` is restored by them: its state is what JSON can hold. Without them it is
read again up to the element that comes next. An array that the stream keeps a reference to is copied, unless it
is read-only.

Args:
    source (Iterable[Any]): An iterable that can be iterated over anew.
    epochs (int | None): Number of epochs of a stream with `set_epoch`, such as a shuffled
        `IterableDataset` of Hugging Face: `set_epoch(0)`, `set_epoch(1)`, … is called before each.
        By default the source is read once, and `repeat` reads it in the same order each time.

Raises:
    TypeError: It is none, or `epochs` is given and it has no `set_epoch`.
    ValueError: `epochs` is 0."#
    };
    (signature IterDataset.source) => {
        concat!(r#"source(source, *, epochs=None)"#, "\n--\n\n", docs!(IterDataset.source))
    };
    (IterDataset.zip) => {
        r#"Makes tuples of one element of each of several streams.

Args:
    datasets (Sequence[IterDataset[Any]]): The streams.
    strict (bool): Whether it is an error if one part ends before the others; else it ends with the
        shortest.

Raises:
    DataError: One ended before the others."#
    };
    (signature IterDataset.zip) => {
        concat!(r#"zip(datasets, *, strict=True)"#, "\n--\n\n", docs!(IterDataset.zip))
    };
    (IterDataset.mix) => {
        r#"Takes elements of several streams in proportion to the weights, until one ends; in Grain's order.

Args:
    datasets (Sequence[IterDataset[Any]]): The streams.
    weights (Sequence[float] | None): A number for each part, all alike by default.

Raises:
    ConfigError: There are other numbers of weights than of streams, or one is not above 0."#
    };
    (signature IterDataset.mix) => {
        concat!(r#"mix(datasets, weights=None)"#, "\n--\n\n", docs!(IterDataset.mix))
    };
    (IterDataset.interleave) => {
        r#"Takes one element of each of `cycle_length` streams in turn; one that ends makes room for the next.

Args:
    datasets (Sequence[IterDataset[Any]] | MapDataset[IterDataset[Any]]): A list of streams, or a
        `MapDataset` whose elements are streams, made when their turn comes.
    cycle_length (int): Streams that are open at a time.

Raises:
    ConfigError: `cycle_length` is 0."#
    };
    (signature IterDataset.interleave) => {
        concat!(r#"interleave(datasets, cycle_length)"#, "\n--\n\n", docs!(IterDataset.interleave))
    };
    (IterDataset.seed) => {
        r#"Sets the seed from which random stages behind it derive theirs, unless they are given their own.

Args:
    seed (int): From 0 to 2^32 - 1.

Raises:
    OverflowError: It is none of these numbers."#
    };
    (signature IterDataset.seed) => {
        concat!(r#"seed($self, seed)"#, "\n--\n\n", docs!(IterDataset.seed))
    };
    (IterDataset.window_shuffle) => {
        r#"Puts the elements of each window of the stream in a random order; Grain's order.

A window is held in memory, and read again at a resume.

Args:
    window_size (int): Elements in a window; the last may be smaller.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed`
        before it.

Raises:
    ConfigError: The window is empty, or there is no seed."#
    };
    (signature IterDataset.window_shuffle) => {
        concat!(r#"window_shuffle($self, window_size, seed=None)"#, "\n--\n\n", docs!(IterDataset.window_shuffle))
    };
    (IterDataset.repeat) => {
        r#"Gives the whole stream several times, or without end; every epoch is the same.

Args:
    num_epochs (int | None): How many epochs; without end by default.

Raises:
    ConfigError: It is 0."#
    };
    (signature IterDataset.repeat) => {
        concat!(r#"repeat($self, num_epochs=None)"#, "\n--\n\n", docs!(IterDataset.repeat))
    };
    (IterDataset.limit) => {
        r#"Ends behind the first `count` elements.

Args:
    count (int): How many elements.

Raises:
    ConfigError: It is 0."#
    };
    (signature IterDataset.limit) => {
        concat!(r#"limit($self, count)"#, "\n--\n\n", docs!(IterDataset.limit))
    };
    (IterDataset.take) => {
        r#"Ends behind the first `count` elements: `limit` by the name that other libraries have for it.

Args:
    count (int): How many elements.

Raises:
    ConfigError: It is 0."#
    };
    (signature IterDataset.take) => {
        concat!(r#"take($self, count)"#, "\n--\n\n", docs!(IterDataset.take))
    };
    (IterDataset.skip) => {
        r#"Leaves out the first `count` elements.

They are evaluated, once in each pass. In front of `to_iter_dataset` a slice, `ds[count:]`, leaves them out at
no cost.

Args:
    count (int): How many elements; 0 for none.

Raises:
    OverflowError: It is below 0."#
    };
    (signature IterDataset.skip) => {
        concat!(r#"skip($self, count)"#, "\n--\n\n", docs!(IterDataset.skip))
    };
    (IterDataset.enumerate) => {
        r#"Puts its number in this stream beside each element, also behind a resume.

Args:
    start (int): The first number.
    column (str): Where the number goes, in elements that are dicts; without it an element becomes a
        tuple of the number and the element.

Raises:
    DataError: There is a column of that name already."#
    };
    (signature IterDataset.enumerate) => {
        concat!(r#"enumerate($self, start=0, *, column=None)"#, "\n--\n\n", docs!(IterDataset.enumerate))
    };
    (IterDataset.skip_bad_records) => {
        r#"Leaves out records that the stages before it cannot use.

They are counted in the report and in the state, and the first few are logged. It goes behind a stream of files,
or behind the last stage that looks at each element on its own; in front of stages that join elements.

Args:
    limit (int | None): The most that are left out in all; no limit by default.
    consecutive (int | None): The most that are left out in a row; no limit by default.

Raises:
    DataError: There were more of them, raised where it happens."#
    };
    (signature IterDataset.skip_bad_records) => {
        concat!(r#"skip_bad_records($self, limit=None, consecutive=None)"#, "\n--\n\n", docs!(IterDataset.skip_bad_records))
    };
    (IterDataset.cache) => {
        r#"Keeps every element in memory for the next epoch of a `repeat` behind it."#
    };
    (signature IterDataset.cache) => {
        concat!(r#"cache($self)"#, "\n--\n\n", docs!(IterDataset.cache))
    };
    (IterDataset.map) => {
        r#"Applies a function to every element. What it returns is the element, `None` too.

An array that the function keeps a reference to is copied, unless it is read-only; so are dicts, lists and
byte arrays that it keeps. What nobody else refers to stays where it is.

One thread iterates over a stream without random access; all threads of the loader apply the function.

Args:
    transform (Callable[[Any], Any] | Map): A function of an element, or an object with a method
        `map`.

Raises:
    TypeError: It is neither."#
    };
    (signature IterDataset.map) => {
        concat!(r#"map($self, transform)"#, "\n--\n\n", docs!(IterDataset.map))
    };
    (IterDataset.map_with_index) => {
        r#"Applies a function to every element and its number in this stream, from 0 on.

Args:
    transform (Callable[[int, Any], Any] | MapWithIndex): A function of the number and the element,
        or an object with a method `map_with_index`.

Raises:
    TypeError: It is neither."#
    };
    (signature IterDataset.map_with_index) => {
        concat!(r#"map_with_index($self, transform)"#, "\n--\n\n", docs!(IterDataset.map_with_index))
    };
    (IterDataset.random_map) => {
        r#"Applies a function to every element and random numbers that belong to its place in this stream; Grain's
numbers.

They are the same for any number of threads and workers, and after a resume. The generator is used again for the
next element: do not keep it.

Args:
    transform (Callable[[Any, np.random.Generator], Any] | RandomMap): A function of the element and
        a `numpy.random.Generator`, or an object with a method `random_map`.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default one that is derived from the `seed`
        in front of it.

Raises:
    ConfigError: There is no seed: neither here nor in front of it."#
    };
    (signature IterDataset.random_map) => {
        concat!(r#"random_map($self, transform, *, seed=None)"#, "\n--\n\n", docs!(IterDataset.random_map))
    };
    (IterDataset.filter) => {
        r#"Keeps the elements of which a function, or natively a condition on a column, holds.

Filters straight behind a dataset of random access are watched together, with the thresholds that were given
last; what they count is part of the state.

Args:
    transform (Callable[[Any], object] | Filter | None): A function of an element that returns
        something true for those to keep, or an object with a method `filter`.
    column (str | None): The column that a native condition is about; of the conditions below those
        that are given must all hold.
    min_length (int | None): The least length: bytes of text, rows of an array.
    max_length (int | None): The greatest length: bytes of text, rows of an array.
    min (float | None): The least number.
    max (float | None): The greatest number.
    equals (str | None): The text itself.
    warn (float | None): The share of 1000 elements in a row from which on `logging` hears of it
        under the name `gristmill`, at most once a minute; `None` for never. Only with a function.
    thresholds (float | None): `raise`, which Python can only pass as `**{"raise": 0.99}`: the share
        from which on it is an error, no share by default. Only with a function.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: More elements were dropped than the threshold `raise` allows."#
    };
    (signature IterDataset.filter) => {
        concat!(r#"filter($self, transform=None, /, *, column=None, min_length=None, max_length=None, min=None, max=None, equals=None, warn=0.9, **thresholds)"#, "\n--\n\n", docs!(IterDataset.filter))
    };
    (IterDataset.flat_map) => {
        r#"Replaces every element by what a function makes of it: none, one or many.

Args:
    transform (Callable[[Any], Iterable[Any]] | FlatMap): A function of an element that returns
        elements, or an object with a method `flat_map`."#
    };
    (signature IterDataset.flat_map) => {
        concat!(r#"flat_map($self, transform)"#, "\n--\n\n", docs!(IterDataset.flat_map))
    };
    (IterDataset.drop_none) => {
        r#"Leaves out elements that are `None`."#
    };
    (signature IterDataset.drop_none) => {
        concat!(r#"drop_none($self)"#, "\n--\n\n", docs!(IterDataset.drop_none))
    };
    (IterDataset.batch) => {
        r#"Stacks consecutive elements into batches.

The leaves of dicts, lists, tuples and dataclasses gain a dimension, as NumPy arrays; text of native sources
becomes a list.

Args:
    batch_size (int): Elements in a batch.
    drop_remainder (bool): Leave out the last elements if they do not fill a batch;
        `remainder="drop"` by Grain's name.
    batch_fn (Callable[[list[Any]], Any] | None): Makes the batch of a list of elements, in place of
        stacking them.
    remainder (Literal['keep', 'drop', 'pad'] | None): What becomes of the last elements if they do
        not fill a batch: they are a smaller one (`"keep"`, the default), are left out, or are
        filled up to `batch_size`. With `"pad"` every batch has a column of truth values that says
        which rows are real; elements are dicts of arrays then.
    pad_value (float | None): The number in every padded array, 0 by default; only with
        `remainder="pad"`.
    mask (str | None): The name of the column of truth values, `batch_mask` by default.

Raises:
    ConfigError: `batch_size` is 0, or options contradict each other.
    ValueError: Elements differ in structure or shape: the message says where."#
    };
    (signature IterDataset.batch) => {
        concat!(r#"batch($self, batch_size, drop_remainder=False, batch_fn=None, *, remainder=None, pad_value=None, mask=None)"#, "\n--\n\n", docs!(IterDataset.batch))
    };
    (IterDataset.rebatch) => {
        r#"Cuts batches anew into so many rows; what lies within one batch is not copied.

Args:
    batch_size (int): Rows of a batch.
    remainder (Literal['keep', 'drop']): What becomes of the last rows if they do not fill a batch:
        they are a smaller one, or are left out.

Raises:
    ConfigError: `batch_size` is 0.
    DataError: Arrays of a batch differ in their number of rows."#
    };
    (signature IterDataset.rebatch) => {
        concat!(r#"rebatch($self, batch_size, *, remainder='keep')"#, "\n--\n\n", docs!(IterDataset.rebatch))
    };
    (IterDataset.tokenise) => {
        r#"Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.

One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the place of their
text, which goes unless `keep_text` is true.

Args:
    tokenizer (str | PathLike): The path of the `tokenizer.json`.
    column (str | None): The column of text, which becomes `tokens`. One of `column` and `columns`
        is needed.
    columns (str | Sequence[str] | None): Several columns of text, which become `<column>_tokens`
        each.
    into (str | Sequence[str] | None): Other names for the columns of ids, in the order of the
        columns.
    keep_text (bool): Whether the text stays in the element beside its ids, which else take its
        place.
    prepend_bos (str | int | None): A token before each text, by its name in the vocabulary or its
        id.
    append_eos (str | int | None): A token after each text, by its name or its id.
    max_len (int | None): Tokens per text at most, those two included; no limit by default.
    overflow (Literal['truncate', 'chunk', 'error']): What becomes of longer texts: the beginning is
        kept, they are cut into several elements, or it is an error.
    special_in_text (bool): Whether a special token that is written out in a text becomes that
        token. By default it is text like any other.
    engine (Literal['auto', 'fast', 'compat']): The fast engine, the compatible engine, or the fast
        engine if both agree.

Raises:
    ConfigError: There is no such column or token, or the file is no tokenizer.
    IoError: The file cannot be read."#
    };
    (signature IterDataset.tokenise) => {
        concat!(r#"tokenise($self, *, tokenizer, column=None, columns=None, into=None, keep_text=False, prepend_bos=None, append_eos=None, max_len=None, overflow='truncate', special_in_text=False, engine='auto')"#, "\n--\n\n", docs!(IterDataset.tokenise))
    };
    (IterDataset.parse_example) => {
        r#"Turns records of bytes into the features of the `tf.train.Example` that each of them is.

Elements are `bytes`, or dicts in which `column` holds them, whose place the features take.

Args:
    features (bool | Mapping[str, str | Mapping[str, Any]]): `{"label": {"dtype": "int64", "shape":
        [], "default": 0}, "ids": "int64"}` declares them. A dtype is `int64`, `float32`, `bytes` or
        `str`; without a shape the number of values varies. `True` infers them: numbers as arrays of
        one dimension, one string as `bytes`, several as a list.
    column (str): The column that holds the bytes; `record` by default.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A record is no `Example`, or lacks a feature."#
    };
    (signature IterDataset.parse_example) => {
        concat!(r#"parse_example($self, features=True, *, column='record')"#, "\n--\n\n", docs!(IterDataset.parse_example))
    };
    (IterDataset.parse_sequence_example) => {
        r#"Turns records of bytes into the features of the `tf.train.SequenceExample` that each of them is.

Without both declarations everything is inferred.

Args:
    context (Mapping[str, str | Mapping[str, Any]] | None): Features of the whole, as
        `parse_example` declares them.
    sequences (Mapping[str, str | Mapping[str, Any]] | None): Features of each step. Those with a
        shape become arrays of shape `[time, …]`, others lists with an array for each step; one that
        may be missing says `"allow_missing": True`.
    column (str): The column that holds the bytes; `record` by default.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A record is no `SequenceExample`, or lacks a feature."#
    };
    (signature IterDataset.parse_sequence_example) => {
        concat!(r#"parse_sequence_example($self, *, context=None, sequences=None, column='record')"#, "\n--\n\n", docs!(IterDataset.parse_sequence_example))
    };
    (IterDataset.select_columns) => {
        r#"Keeps only these columns, in this order.

Args:
    columns (str | Sequence[str]): A name, or a list of names.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature IterDataset.select_columns) => {
        concat!(r#"select_columns($self, columns)"#, "\n--\n\n", docs!(IterDataset.select_columns))
    };
    (IterDataset.drop_columns) => {
        r#"Keeps all but these columns.

Args:
    columns (str | Sequence[str]): A name, or a list of names.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature IterDataset.drop_columns) => {
        concat!(r#"drop_columns($self, columns)"#, "\n--\n\n", docs!(IterDataset.drop_columns))
    };
    (IterDataset.packed_columns) => {
        r#"Adds labels, `cu_seqlens` and positions of padding to packed rows, or to batches of them.

Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within each row; `batch` stacks
it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the B·T cells of the batch, which
`flash_attn_varlen_func` expects. With a `part`, use it before `batch`.

Args:
    feature (str): The packed column. Its segment ids and positions are columns, too.
    padding_positions (Literal['zero', 'restart', 'continue']): The positions of padding: `"zero"`,
        as packing writes them; `"restart"`, from 0 in each run of padding, like a segment; or
        `"continue"`, after the segment before it.
    labels (Literal['unshifted', 'shifted'] | None): Adds `labels`, int64 and of the shape of the
        tokens. `"unshifted"`: the label of a token is the token itself, for models that shift, such
        as Hugging Face's. `"shifted"`: it is the next token. Padding has -100, and so has the first
        token of a segment if unshifted, the last if shifted.
    cu_seqlens (bool): Adds `cu_seqlens`, int32: the place in the flattened rows at which each
        segment begins, and the number of cells. Adds `max_seqlen`, int32: the length of the longest
        segment. A run of padding is a segment; with `padding_positions="continue"`, padding belongs
        to the segment before it.
    max_segments (int | None): The fixed number of segments of `cu_seqlens`, some of length 0. By
        default there are no segments of length 0, and rows with different numbers of segments
        cannot be stacked.

Raises:
    ConfigError: An argument is impossible, or none is given.
    DataError: There are no segment ids, a column has the name of one that is added, or a row has
        more segments than `max_segments`."#
    };
    (signature IterDataset.packed_columns) => {
        concat!(r#"packed_columns($self, feature='tokens', *, padding_positions='zero', labels=None, cu_seqlens=False, max_segments=None)"#, "\n--\n\n", docs!(IterDataset.packed_columns))
    };
    (IterDataset.rename) => {
        r#"Gives columns other names: `rename(text="document")`.

Args:
    names (Mapping[str, str] | None): Old names and the new ones, for names that are no words of
        Python.
    more (str): The same as keyword arguments.

Raises:
    ConfigError: An argument is impossible, or a column is not there."#
    };
    (signature IterDataset.rename) => {
        concat!(r#"rename($self, names=None, /, **more)"#, "\n--\n\n", docs!(IterDataset.rename))
    };
    (IterDataset.first_fit_pack) => {
        r#"Packs sequences into rows, each into the first of `num_packing_bins` that has room; Grain's rows.

Args:
    length (Mapping[str, int]): The columns to pack, and the cells of a row that each has:
        `{"tokens": 1024}`. A row has the columns, and of each `_segment_ids` (1, 2, …; 0 is
        padding) and `_positions` (from 0 in each segment).
    num_packing_bins (int): Rows that are filled at a time: they come out together, when an element
        fits into none of them.
    seed (int): The seed of the order in which the rows of a group come out.
    shuffle_bins (bool): Whether they come out in a random order. Without it the last rows of each
        group hold the most padding.
    shuffle_bins_group_by_feature (str | None): A column by whose mean rows stay apart when they are
        shuffled: with the number of the epoch, epochs do.
    max_sequences_per_bin (int | None): The most sequences in a row; no limit by default.
    over_long (Literal['error', 'split', 'drop']): What becomes of a sequence that is longer than a
        row: it is an error, is split, or is left out and counted.
    padding (Mapping[str, float] | None): Numbers for the cells without a token, by column; 0 by
        default.
    align (Mapping[str, int] | None): Sequences of a column start at multiples of this number of
        cells; the gaps have segment id 0.
    meta_features (str | Sequence[str] | None): Columns without segment ids and positions. Of those
        that are not in `length` a row has the list of its sequences' values. Columns that are named
        neither here nor in `length` are left out, and a warning names them once.
    names (Literal['grain', 'maxtext']): The names of the output columns: Grain's, or MaxText's
        `inputs`, `inputs_segmentation`, `inputs_position` and `targets`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A sequence is longer than a row, or an array is not like that of the first element."#
    };
    (signature IterDataset.first_fit_pack) => {
        concat!(r#"first_fit_pack($self, *, length, num_packing_bins, seed=0, shuffle_bins=True, shuffle_bins_group_by_feature=None, max_sequences_per_bin=None, over_long='error', padding=None, align=None, meta_features=None, names='grain')"#, "\n--\n\n", docs!(IterDataset.first_fit_pack))
    };
    (IterDataset.best_fit_pack) => {
        r#"Packs sequences into rows, each into the fullest of `num_packing_bins` that has room; Grain's rows.

Args:
    length (Mapping[str, int]): The columns to pack, and the cells of a row that each has:
        `{"tokens": 1024}`. A row has the columns, and of each `_segment_ids` (1, 2, …; 0 is
        padding) and `_positions` (from 0 in each segment).
    num_packing_bins (int): Rows that are filled at a time: they come out together, when an element
        fits into none of them.
    seed (int): The seed of the order in which the rows of a group come out.
    shuffle_bins (bool): Whether they come out in a random order. Without it the last rows of each
        group hold the most padding.
    shuffle_bins_group_by_feature (str | None): A column by whose mean rows stay apart when they are
        shuffled: with the number of the epoch, epochs do.
    max_sequences_per_bin (int | None): The most sequences in a row; no limit by default.
    over_long (Literal['error', 'split', 'drop']): What becomes of a sequence that is longer than a
        row: it is an error, is split, or is left out and counted.
    padding (Mapping[str, float] | None): Numbers for the cells without a token, by column; 0 by
        default.
    align (Mapping[str, int] | None): Sequences of a column start at multiples of this number of
        cells; the gaps have segment id 0.
    meta_features (str | Sequence[str] | None): Columns without segment ids and positions. Of those
        that are not in `length` a row has the list of its sequences' values. Columns that are named
        neither here nor in `length` are left out, and a warning names them once.
    names (Literal['grain', 'maxtext']): The names of the output columns: Grain's, or MaxText's
        `inputs`, `inputs_segmentation`, `inputs_position` and `targets`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A sequence is longer than a row, or an array is not like that of the first element."#
    };
    (signature IterDataset.best_fit_pack) => {
        concat!(r#"best_fit_pack($self, *, length, num_packing_bins, seed=0, shuffle_bins=True, shuffle_bins_group_by_feature=None, max_sequences_per_bin=None, over_long='error', padding=None, align=None, meta_features=None, names='grain')"#, "\n--\n\n", docs!(IterDataset.best_fit_pack))
    };
    (IterDataset.window_pack) => {
        r#"Packs sequences into rows that are filled from a window of them, almost completely.

Args:
    length (Mapping[str, int]): The columns to pack, and the cells of a row that each has:
        `{"tokens": 1024}`. A row has the columns, and of each `_segment_ids` (1, 2, …; 0 is
        padding) and `_positions` (from 0 in each segment).
    window (int | None): Sequences that are looked ahead, which are held in memory. `1024` by
        default.
    max_sequences_per_bin (int | None): The most sequences in a row; no limit by default.
    over_long (Literal['error', 'split', 'drop']): What becomes of a sequence that is longer than a
        row: it is an error, is split, or is left out and counted.
    padding (Mapping[str, float] | None): Numbers for the cells without a token, by column; 0 by
        default.
    align (Mapping[str, int] | None): Sequences of a column start at multiples of this number of
        cells; the gaps have segment id 0.
    meta_features (str | Sequence[str] | None): Columns without segment ids and positions. Of those
        that are not in `length` a row has the list of its sequences' values. Columns that are named
        neither here nor in `length` are left out, and a warning names them once.
    names (Literal['grain', 'maxtext']): The names of the output columns: Grain's, or MaxText's
        `inputs`, `inputs_segmentation`, `inputs_position` and `targets`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A sequence is longer than a row, or an array is not like that of the first element."#
    };
    (signature IterDataset.window_pack) => {
        concat!(r#"window_pack($self, *, length, window=None, max_sequences_per_bin=None, over_long='error', padding=None, align=None, meta_features=None, names='grain')"#, "\n--\n\n", docs!(IterDataset.window_pack))
    };
    (IterDataset.concat_then_split_pack) => {
        r#"Puts sequences one behind the other and cuts them into rows; Grain's rows.

Args:
    length (Mapping[str, int]): The columns to pack, and the cells of a row that each has:
        `{"tokens": 1024}`. A row has the columns, and of each `_segment_ids` (1, 2, …; 0 is
        padding) and `_positions` (from 0 in each segment).
    split_full_length_features (bool): Whether a sequence that fills a row alone is cut like any
        other, or becomes a separate row.
    positions (Literal['restart', 'continue']): Start of the positions of a sequence that continues
        in the next row: at 0, or after the last position.
    bos_handling (Literal['do_nothing', 'replace_first_token_with_bos']): Whether the first token of
        every sequence, and of every piece that continues one, is replaced.
    bos_features (str | Sequence[str] | None): The columns in which the first token is replaced.
    bos_token_id (int | None): The token that takes its place.
    padding (Mapping[str, float] | None): Numbers for the cells without a token, by column; 0 by
        default.
    meta_features (str | Sequence[str] | None): Columns without segment ids and positions. Of those
        that are not in `length` a row has the list of its sequences' values. Columns that are named
        neither here nor in `length` are left out, and a warning names them once.
    names (Literal['grain', 'maxtext']): The names of the output columns: Grain's, or MaxText's
        `inputs`, `inputs_segmentation`, `inputs_position` and `targets`.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: A sequence is longer than a row, or an array is not like that of the first element."#
    };
    (signature IterDataset.concat_then_split_pack) => {
        concat!(r#"concat_then_split_pack($self, *, length, split_full_length_features=True, positions='restart', bos_handling='do_nothing', bos_features=None, bos_token_id=None, padding=None, meta_features=None, names='grain')"#, "\n--\n\n", docs!(IterDataset.concat_then_split_pack))
    };
    (IterDataset.length_buckets) => {
        r#"Makes batches of sequences of nearly one length, padded to the length of their bucket.

Args:
    features (str | Sequence[str]): The columns to pad; the longest column of an element gives its
        length.
    boundaries (Sequence[int]): The lengths of the buckets, rising.
    batch (int | Mapping[str, int | Sequence[int]]): Elements in a batch: a number, `{"per_bucket":
        [64, 32]}`, or `{"tokens": 32768}` for the number with at most that many cells.
    padding (Mapping[str, float] | None): Numbers for the cells after the end of a sequence, by
        column; 0 by default.
    window (int | None): The most elements that are held. When the oldest would have to wait longer,
        its batch comes out short. `8192` by default.
    remainder (Literal['keep', 'drop', 'pad']): What becomes of batches that are not full: they come
        out as they are, are left out, or are filled up with rows of padding.
    drop_over_long (bool): Whether elements longer than the last boundary are left out and counted;
        else they are an error.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    DataError: An element is longer than the last boundary."#
    };
    (signature IterDataset.length_buckets) => {
        concat!(r#"length_buckets($self, *, features, boundaries, batch, padding=None, window=None, remainder='keep', drop_over_long=False)"#, "\n--\n\n", docs!(IterDataset.length_buckets))
    };
    (IterDataset.mp_prefetch) => {
        r#"Has everything in front of this evaluated by worker processes, under a budget of memory; the elements stay
the same.

Native pipelines take one process with threads; Python functions go to several, by value if they are of a script
or a notebook. What comes behind this runs here; but functions and filters straight behind compressed files that are
read as `lanes` belong to those, and run where they are read.

A stream without random access is iterated over here, in order. Workers apply the functions of its `map`,
`map_with_index`, `random_map` and `filter` to chunks of elements that they are sent, unless a call takes less than
20 µs; `flat_map` runs here.

Args:
    options (MpOptions | int | WorkerOptions | None): `MpOptions`, Grain's, or a number of workers;
        the fields of `MpOptions` may be given here one by one.
    worker_init_fn (Callable[[int, int], object] | None): Called once in each worker that runs
        Python functions, with its number and how many there are.
    num_workers (int | None): Worker processes; 0 evaluates on threads of this process. By default
        one with a thread for every core where all stages are native, else one for every core at the
        start, and as many as pay then.
    workers (int | Literal['auto']): The same under another name.
    per_worker_buffer_size (int): Elements, or batches, kept ready for each worker.
    max_workers (int | None): Begin with one process, and let tuning find out whether up to so many
        pay.
    threads_per_worker (int | None): Threads that evaluate in each worker. Where neither this nor a
        number of workers is given, there are more where functions wait and let others have the
        interpreter meanwhile: then several threads call them at once, as with Grain's read threads;
        1 rules that out.
    ram_budget (int | str | None): Bytes, or text such as `"2GiB"`, that shared memory and the
        private memory of all workers take together at most; a quarter of what is available.
    worker_heap (int | str | None): Bytes of private memory of each worker; see `MpOptions`.
    max_element (int | str | None): Bytes that one element or batch may have; a quarter of the
        shared memory.
    deadline (float | None): Seconds that a range of elements may take before its worker counts as
        hanging; `None` for ever.
    retries (int): How many workers a range may kill before the element that does it is sought.
    on_poison (Literal['error', 'skip']): What becomes of an element that kills every worker: it
        ends the run, or is left out and counted in the report.
    tune (bool): Whether the number of threads at work, and how far they work ahead, follow what the
        consumer needs.

Raises:
    ConfigError: The options contradict each other, or do not fit into the budget."#
    };
    (signature IterDataset.mp_prefetch) => {
        concat!(r#"mp_prefetch($self, options=None, worker_init_fn=None, *, num_workers=None, workers='auto', per_worker_buffer_size=1, max_workers=None, threads_per_worker=None, ram_budget=None, worker_heap=None, max_element=None, deadline=300.0, retries=3, on_poison='error', tune=True)"#, "\n--\n\n", docs!(IterDataset.mp_prefetch))
    };
    (IterDataset.loader) => {
        r#"Starts a pass.

Args:
    threads (int | Literal['auto']): Threads for the elementwise part, beside one for the rest. With
        0 everything runs when it is asked for. With `"auto"` there is one for each core at first,
        and their number and how far they are ahead follow what the loop needs: up to 256 if
        elements mostly wait for a disk or a network. Functions that hold the interpreter's lock
        while they compute gain by `mp_prefetch` instead. The elements are the same.
    buffer (int): Elements or batches that are kept ready ahead of the consumer, where there are
        threads.
    writable (bool): Hand out native arrays that may be written to: as they are where nobody else
        views their memory, else as a copy. Arrays that Python functions made are handed on as they
        are.
    accept_changes (bool): Accept a state of another pipeline in `set_state`: a file was withdrawn,
        or an argument has changed. Positions are taken as they are; the change is logged, and
        stands in the report and in all later states under `accepted_changes`. Stages after
        `to_iter` that hold positions must be as before.
    workers (bool): Whether `mp_prefetch` has processes started. Without them this process evaluates
        everything: to look at a few elements, or at the state.
    part (Part | tuple[int, int] | str | None): Rows of every batch that are delivered here, where
        several hosts read one pipeline: `(3, 64)` are those of the fourth of 64. `batch` makes
        global batches; states know nothing of parts, and any part goes on from the state of any
        other.
    deal (Literal['even', 'lanes'] | Deal): Which rows are whose: those that follow one another,
        those of the same lanes, by an index, or a `Deal` that balances what rows cost. Batches are
        the same. Where rows are planned by keys and packed, the plan says what they cost; else each
        host evaluates all rows.
    guard (Guard): How hosts are compared, so that one with other files, another pipeline or a
        function with randomness of its own is an error on all of them: before the first batch,
        every 128 batches and at the end. With `"auto"` by the store of JAX or PyTorch, if the part
        is of `gm.jax.part_for` or `gm.torch.part` and there are several processes; else not. A
        folder that all hosts see serves as well, `(folder, host, hosts)` where the part does not
        say which host this is, and an object with `begin(part)`, `post(round, statement)` and
        `read(round)`. `None` compares nothing.
    guard_timeout (float): Seconds after which a host that has said nothing is an error.
    keys (str | PathLike | None): The folder of key files, which `make_keys` or `gristmill index
        --keys` has written: by them a host plans which elements the rows of all hosts are made of,
        and evaluates those of its own alone.
    record_keys (bool): Whether key files that are not there yet are written while everything is
        evaluated: without a part, or by the host that has the first row. The next start plans by
        them.
    on_failed_element (Literal['error', 'pad']): What becomes of an element that fails after rows
        were planned of it, by keys or by indices: with `"pad"` it is padding where it would be,
        counted and named in the report, and the plan stays what it is. Where all elements are
        evaluated it changes nothing.
    failed_element_limit (int | None): The most that become padding; no limit by default.
    metrics (str | int | None): Where `GET /metrics` is answered with the figures of the pass while
        it lives, as OpenMetrics text for Prometheus: `"127.0.0.1:9464"`, or a port alone, which
        nobody but this machine reaches; 0 is a free one, which `metrics_address` tells. Other users
        of this machine are answered with `"everybody@"` in front.
    record (str | PathLike | None): A file in which the pass is recorded while it runs, which
        `Report.from_record` and `gristmill report` read back, also where the process was killed. A
        recording that is there is kept as `NAME.1.ENDING`.
    trace (str | PathLike | None): A file to which the pass is written as a trace for Perfetto and
        Chrome, compressed if it ends in `.gz`.
    top (bool): Let people of this user on this machine look at the pass with `gristmill top`.
        `GRISTMILL_TOP=1` in the environment does the same for every pass.

Returns:
    The pass: an iterator, and a context manager that closes it.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    WorkerError: Worker processes cannot be started."#
    };
    (signature IterDataset.loader) => {
        concat!(r#"loader($self, *, threads=0, buffer=2, writable=False, accept_changes=False, workers=True, part=None, deal='even', guard='auto', guard_timeout=600.0, keys=None, record_keys=False, on_failed_element='error', failed_element_limit=None, metrics=None, record=None, trace=None, top=False)"#, "\n--\n\n", docs!(IterDataset.loader))
    };
    (IterDataset.make_keys) => {
        r#"Makes the keys by which several hosts plan this pipeline: what filters keep, and how long elements are.

Each record is evaluated once, by all cores. Keys that are there are not made again; where it was interrupted, it goes on.

Args:
    folder (str | PathLike): The folder for the key files, one for each source.

Returns:
    Of each source `file`, `source`, `records`, `elements`, `bytes`, and `was_there`.

Raises:
    ConfigError: Keys would not help: indices alone say which rows are whose, or a stage decides by
        more than keys."#
    };
    (signature IterDataset.make_keys) => {
        concat!(r#"make_keys($self, folder)"#, "\n--\n\n", docs!(IterDataset.make_keys))
    };
    (IterDataset.explain) => {
        r#"Explains the pipeline: its stages, which of them run in parallel, what they hold in memory, what comes out.

The first elements are read for it, in this process.

Args:
    threads (int): The threads of the `loader` whose memory is estimated.
    buffer (int): Its buffer."#
    };
    (signature IterDataset.explain) => {
        concat!(r#"explain($self, *, threads=0, buffer=2)"#, "\n--\n\n", docs!(IterDataset.explain))
    };
    (IterDataset.element_spec) => {
        r#"The shapes and dtypes of the first element, which is read for it: a tree like it.

Arrays are `ArraySpec`s, anything else is its type. A list or tuple of things that are alike is one with a
single entry.

Raises:
    ConfigError: The dataset has no element."#
    };
    (signature IterDataset.element_spec) => {
        concat!(r#"element_spec($self)"#, "\n--\n\n", docs!(IterDataset.element_spec))
    };
    (IterDataset.apply) => {
        r#"Calls a function with this dataset and returns what it makes of it, so that stages of one's own stand in a
chain.

Args:
    transform (Callable[[IterDataset[Any]], Any]): A function of a dataset."#
    };
    (signature IterDataset.apply) => {
        concat!(r#"apply($self, transform)"#, "\n--\n\n", docs!(IterDataset.apply))
    };
    (Part.listed) => {
        r#"Rows of these numbers, in this order: what the devices of one process hold of a sharded array.

Args:
    rows (Sequence[int]): The numbers.
    global_batch (int): Rows of every global batch.

Raises:
    ConfigError: There are none, or one that such a batch does not have."#
    };
    (signature Part.listed) => {
        concat!(r#"listed(rows, global_batch)"#, "\n--\n\n", docs!(Part.listed))
    };
    (Part.rows) => {
        r#"The numbers of its rows in a global batch.

Args:
    global_batch (int): Rows of the batch.

Raises:
    ConfigError: They do not divide, or the part was listed for another number."#
    };
    (signature Part.rows) => {
        concat!(r#"rows($self, global_batch)"#, "\n--\n\n", docs!(Part.rows))
    };
    (Cost.attention) => {
        r#"The cost of a layer of a transformer, in `d_model` floating-point operations of its forward pass: 24 · `d_model`
a token, and 2 times the squared lengths, or 4 times where attention is not causal.

Args:
    d_model (int): The width of the model.
    window (int | None): How many tokens a token sees to a side, itself among them; all of its
        sequence by default.
    causal (bool): Whether a token sees those up to itself alone.
    segments (str | None): A column of segment ids, as for `Cost`.
    lengths (str | None): A column of lengths, as for `Cost`.

Raises:
    ConfigError: Both columns are given."#
    };
    (signature Cost.attention) => {
        concat!(r#"attention(d_model, *, window=None, causal=True, segments=None, lengths=None)"#, "\n--\n\n", docs!(Cost.attention))
    };
    (Cost.column) => {
        r#"The cost that stands in a column, one integer a row: patches of images, frames of sound.

Args:
    name (str): The column."#
    };
    (signature Cost.column) => {
        concat!(r#"column(name)"#, "\n--\n\n", docs!(Cost.column))
    };
    (Deal.balanced) => {
        r#"Rows that take all ranks equally long: heavy rows in the first micro-steps, light ones in the last, and in each of them
as evenly over ranks as it goes.

Args:
    cost (Cost): The cost of a row.
    micro_steps (int): Steps into which each rank cuts its rows, one behind the other."#
    };
    (signature Deal.balanced) => {
        concat!(r#"balanced(cost, micro_steps=1)"#, "\n--\n\n", docs!(Deal.balanced))
    };
    (Deal.shadow) => {
        r#"Rows that follow one another, while the report says what a balanced deal would save.

Args:
    cost (Cost): The cost of a row.
    micro_steps (int): Steps into which each rank cuts its rows, one behind the other."#
    };
    (signature Deal.shadow) => {
        concat!(r#"shadow(cost, micro_steps=1)"#, "\n--\n\n", docs!(Deal.shadow))
    };
    (DatasetIterator.get_state) => {
        r#"Says where the consumer is, whatever was read ahead: positions, which JSON can hold."#
    };
    (signature DatasetIterator.get_state) => {
        concat!(r#"get_state($self)"#, "\n--\n\n", docs!(DatasetIterator.get_state))
    };
    (DatasetIterator.set_state) => {
        r#"Goes to where a state was taken.

Args:
    state (Mapping[str, Any] | str | bytes): What `get_state` returned, or its JSON.

Raises:
    StateError: It is of another pipeline, or no state: the message names the first stage that
        differs."#
    };
    (signature DatasetIterator.set_state) => {
        concat!(r#"set_state($self, state)"#, "\n--\n\n", docs!(DatasetIterator.set_state))
    };
    (DatasetIterator.start_prefetch) => {
        r#"Begins to read ahead, before the first `next`.

With threads a pass has begun when it was started, and without them nobody could: there is nothing to do, and it
can be said of any pass."#
    };
    (signature DatasetIterator.start_prefetch) => {
        concat!(r#"start_prefetch($self)"#, "\n--\n\n", docs!(DatasetIterator.start_prefetch))
    };
    (DatasetIterator.repart) => {
        r#"Delivers the rows of another part from the next batch on, without a restart: where hosts have come or gone.

Args:
    part (Part | tuple[int, int] | str): The part, as for `loader`.

Raises:
    ConfigError: There is no such part; the present one stays."#
    };
    (signature DatasetIterator.repart) => {
        concat!(r#"repart($self, part)"#, "\n--\n\n", docs!(DatasetIterator.repart))
    };
    (DatasetIterator.back) => {
        r#"Gives the last batches back: they are delivered again, after a step that was not committed.

Args:
    count (int): How many; 2 at most, of those since the start or a `set_state`.

Raises:
    StateError: There are not so many."#
    };
    (signature DatasetIterator.back) => {
        concat!(r#"back($self, count=1)"#, "\n--\n\n", docs!(DatasetIterator.back))
    };
    (DatasetIterator.part) => {
        r#"The part of every batch that is delivered, from the next batch on; `None` where all of it is."#
    };
    (signature DatasetIterator.part) => {
        concat!(r#"part($self)"#, "\n--\n\n", docs!(DatasetIterator.part))
    };
    (DatasetIterator.rows) => {
        r#"Numbers of the rows of its global batch that the last batch is; `None` before it, and without a part."#
    };
    (signature DatasetIterator.rows) => {
        concat!(r#"rows($self)"#, "\n--\n\n", docs!(DatasetIterator.rows))
    };
    (DatasetIterator.save) => {
        r#"Saves the state by Orbax's protocol of objects that save themselves: see `gristmill.orbax`.

Args:
    directory (Any): Where to, as Orbax says it."#
    };
    (signature DatasetIterator.save) => {
        concat!(r#"save($self, directory)"#, "\n--\n\n", docs!(DatasetIterator.save))
    };
    (DatasetIterator.load) => {
        r#"Goes to a state that `save` wrote.

Args:
    directory (Any): Where it is, as Orbax says it.

Raises:
    StateError: It is not there, or of another pipeline."#
    };
    (signature DatasetIterator.load) => {
        concat!(r#"load($self, directory)"#, "\n--\n\n", docs!(DatasetIterator.load))
    };
    (DatasetIterator.report) => {
        r#"Says where the time went so far."#
    };
    (signature DatasetIterator.report) => {
        concat!(r#"report($self)"#, "\n--\n\n", docs!(DatasetIterator.report))
    };
    (DatasetIterator.metrics_address) => {
        r#"The address at which `GET /metrics` is answered, such as `127.0.0.1:9464`, if `loader(metrics=…)` asked for it."#
    };
    (signature DatasetIterator.metrics_address) => {
        concat!(r#"metrics_address($self)"#, "\n--\n\n", docs!(DatasetIterator.metrics_address))
    };
    (DatasetIterator.close) => {
        r#"Ends the threads and lets go of everything that was read ahead."#
    };
    (signature DatasetIterator.close) => {
        concat!(r#"close($self)"#, "\n--\n\n", docs!(DatasetIterator.close))
    };
    (Report.from_record) => {
        r#"Reads what `loader(record=…)` or `gristmill run --record` has written, also of a run that was killed or still goes on: the report
is as of the last time that it was written.

Args:
    path (str | PathLike): The recording.

Raises:
    DataError: It is no recording, or damaged; the error says at which byte.
    IoError: It cannot be read."#
    };
    (signature Report.from_record) => {
        concat!(r#"from_record(path)"#, "\n--\n\n", docs!(Report.from_record))
    };
    (Report.to_html) => {
        r#"Gives a page of HTML that needs nothing else: what happened when, and why the consumer waited.

Args:
    path (str | PathLike | None): A file to write it to as well."#
    };
    (signature Report.to_html) => {
        concat!(r#"to_html($self, path=None)"#, "\n--\n\n", docs!(Report.to_html))
    };
    (Report.to_svg) => {
        r#"Gives the ribbon of that page by itself: a picture of what happened when, or nothing where nothing was delivered."#
    };
    (signature Report.to_svg) => {
        concat!(r#"to_svg($self)"#, "\n--\n\n", docs!(Report.to_svg))
    };
    (Report.as_dict) => {
        r#"Gives every number of the report."#
    };
    (signature Report.as_dict) => {
        concat!(r#"as_dict($self)"#, "\n--\n\n", docs!(Report.as_dict))
    };
    (Report.metrics) => {
        r#"Gives figures under flat names that stay, for dashboards: see `gristmill.metrics`. Notes whose names are the same once they are flat are added up."#
    };
    (signature Report.metrics) => {
        concat!(r#"metrics($self)"#, "\n--\n\n", docs!(Report.metrics))
    };
    (Explanation.as_dict) => {
        r#"Gives stages, memory in bytes, fingerprint and the spec of the first element."#
    };
    (signature Explanation.as_dict) => {
        concat!(r#"as_dict($self)"#, "\n--\n\n", docs!(Explanation.as_dict))
    };
    (sink) => {
        r#"Opens a folder, which is made if it is not there, to write shards of a format into.

All shards have the same columns, in formats that have columns: those of the first 1,024 records, or 8 MiB of them.

Args:
    folder (str | PathLike): The folder, or its URL.
    format (str): The format of the shards: `jsonl`, `parquet`, `array_record`, `tfrecord`, `arrow`,
        `hugging_face`, `webdataset`, `mds`, `npy`, `safetensors`, `tokens` or `megatron`.
    compression (str | None): `none`, `zstd:LEVEL`, `gzip:LEVEL`, `brotli:QUALITY`, `lz4` or
        `snappy`, as far as the format has it.
    shard_bytes (int | None): A shard ends behind the record with which its values have so many
        bytes in memory; 256 MiB by default.
    shard_records (int | None): A shard ends behind so many records; no limit by default.
    group (int | None): Records that are encoded together, in formats that have such a thing.
    prefix (str | None): The beginning of the names of shards, `prefix-00000`, …; `shard` by
        default.
    threads (int | None): Threads that encode and compress, each a shard at a time; all cores by
        default.
    memory (int | None): Bytes of elements that wait at most; 1 GiB by default.
    resume (bool): Continue a folder that holds shards behind them; without it, such a folder is
        refused.
    column (str | None): The column of token ids that is written, for token files.
    token_type (Literal['uint16', 'uint32'] | None): The type of ids in token files.
    bare (bool): Write token files without a header.
    byte_stream_split (bool): Split floats by bytes, for Parquet of activations and features, which
        takes a tenth less room so.
    schema (dict[str, Any] | None): Declares some or all columns: `{"score": "float64", "ids":
        "int32[_]", "tags": {"list": "text"}}` for Parquet, Arrow and Hugging Face, `{"score":
        "float64", "image": "jpeg"}` in the encodings of MDS, `{"x": "float32[2, 3]"}` for NumPy and
        safetensors. Numbers of a declared column may come as another type: whole ones have to fit,
        others are rounded.
    sequences (Sequence[str] | None): The columns that are sequences in TFRecord and ArrayRecord:
        records are `tf.train.SequenceExample`s then, with a step for each item of a list or row of
        an array.

Raises:
    ConfigError: Options or the folder do not fit.
    StateError: The folder was begun with other options."#
    };
    (signature sink) => {
        concat!(r#"sink(folder, format='jsonl', *, compression=None, shard_bytes=None, shard_records=None, group=None, prefix=None, threads=None, memory=None, resume=False, column=None, token_type=None, bare=False, byte_stream_split=False, schema=None, sequences=None)"#, "\n--\n\n", docs!(sink))
    };
    (Sink.records) => {
        r#"Records so far, with those that were there already: a job that is resumed goes on with this one."#
    };
    (signature Sink.records) => {
        concat!(r#"records($self)"#, "\n--\n\n", docs!(Sink.records))
    };
    (Sink.state) => {
        r#"The state that was given with the last record that was there already, or `None`."#
    };
    (signature Sink.state) => {
        concat!(r#"state($self)"#, "\n--\n\n", docs!(Sink.state))
    };
    (Sink.complete) => {
        r#"Whether everything was there already."#
    };
    (signature Sink.complete) => {
        concat!(r#"complete($self)"#, "\n--\n\n", docs!(Sink.complete))
    };
    (Sink.write) => {
        r#"Writes an element.

Arrays are copied, unless they are read-only views of the memory of another object, as those of JAX are:
then that object is kept, and nothing may write to its memory.

Args:
    element (Mapping[str, Any]): A dict of arrays, numbers, text and bytes.
    state (Any): What JSON can hold, or a function that returns it. That of the last record of a
        shard is kept: see `Sink.state`.

Raises:
    DataError: This or an earlier element cannot be written: the message says which record.
    IoError: The folder cannot be written to."#
    };
    (signature Sink.write) => {
        concat!(r#"write($self, element, *, state=None)"#, "\n--\n\n", docs!(Sink.write))
    };
    (Sink.write_batch) => {
        r#"Writes each row of a batch.

Args:
    batch (Mapping[str, Any]): A dict of arrays; those of a row lack their leading dimension.

Raises:
    DataError: This or an earlier element cannot be written: the message says which record.
    IoError: The folder cannot be written to."#
    };
    (signature Sink.write_batch) => {
        concat!(r#"write_batch($self, batch)"#, "\n--\n\n", docs!(Sink.write_batch))
    };
    (Sink.write_all) => {
        r#"Writes all elements of an iterator.

Args:
    elements (Iterable[Mapping[str, Any]]): The elements. An iterator with `get_state` and
        `set_state`, as a loader is, goes on where the folder ends.

Raises:
    DataError: This or an earlier element cannot be written: the message says which record.
    IoError: The folder cannot be written to.
    ValueError: The folder holds records, and nothing says where in these elements they end."#
    };
    (signature Sink.write_all) => {
        concat!(r#"write_all($self, elements)"#, "\n--\n\n", docs!(Sink.write_all))
    };
    (Sink.finish) => {
        r#"Writes what is left, waits until all is on the disk, and says that there is nothing to come."#
    };
    (signature Sink.finish) => {
        concat!(r#"finish($self)"#, "\n--\n\n", docs!(Sink.finish))
    };
    (Sink.stop) => {
        r#"Waits until the shards that are whole are on the disk, and leaves it at that."#
    };
    (signature Sink.stop) => {
        concat!(r#"stop($self)"#, "\n--\n\n", docs!(Sink.stop))
    };
    (SinkReport.as_dict) => {
        r#"Gives every number of the report; `wait_share` is the share of the time that writing waited for memory."#
    };
    (signature SinkReport.as_dict) => {
        concat!(r#"as_dict($self)"#, "\n--\n\n", docs!(SinkReport.as_dict))
    };
    (Metrics.of) => {
        r#"Computes what the steps of a loop say.

Args:
    steps (Sequence[tuple[float, float, float, float, int]]): Of each step: when its batch was asked
        for and arrived, when the device could begin and was done, all in seconds since the start of
        the loop, and how many samples it had.
    wall (float): Seconds that the loop took.
    exclude_first (int): Steps at the start that do not count.

Returns:
    The metrics; `None` if no step is left without the excluded ones.

Raises:
    ValueError: A time is negative."#
    };
    (signature Metrics.of) => {
        concat!(r#"of(steps, wall, exclude_first=1)"#, "\n--\n\n", docs!(Metrics.of))
    };
    (Metrics.verdict) => {
        r#"What they mean, in a sentence."#
    };
    (signature Metrics.verdict) => {
        concat!(r#"verdict($self)"#, "\n--\n\n", docs!(Metrics.verdict))
    };
    (Metrics.beside) => {
        r#"Adds `au_synth`, the speed as a share of that of another loop.

Args:
    resident (Metrics): The metrics of the same loop over one batch that stays in memory."#
    };
    (signature Metrics.beside) => {
        concat!(r#"beside($self, resident)"#, "\n--\n\n", docs!(Metrics.beside))
    };
    (Metrics.as_dict) => {
        r#"Gives every number."#
    };
    (signature Metrics.as_dict) => {
        concat!(r#"as_dict($self)"#, "\n--\n\n", docs!(Metrics.as_dict))
    };
    (TfRecordReader.seek) => {
        r#"Goes to a record.

Args:
    byte (int): Where it begins, in what is decompressed.

Raises:
    ValueError: None begins there."#
    };
    (signature TfRecordReader.seek) => {
        concat!(r#"seek($self, byte)"#, "\n--\n\n", docs!(TfRecordReader.seek))
    };
    (TfRecordReader.tell) => {
        r#"Says where the next record begins, in what is decompressed."#
    };
    (signature TfRecordReader.tell) => {
        concat!(r#"tell($self)"#, "\n--\n\n", docs!(TfRecordReader.tell))
    };
}
