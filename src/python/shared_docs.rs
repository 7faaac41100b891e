//! Docstrings of methods that `MapDataset` and `IterDataset` share. The docstrings of `loader` and `mp_prefetch` begin with the signature, because
//! these methods take keyword arguments as a dict.

macro_rules! shared_docs {
    (map) => {
        r#"Applies a function to every element. The returned value is the element, also if it is `None`.

A writable array, dict, list or byte array is copied if the function keeps a reference to it. Other values stay
in place.

In a stream without random access, one thread iterates, and all threads of the loader apply the function.

Args:
    transform (Callable[[Any], Any] | Map): A function of an element, or an object with a method `map`.

Raises:
    TypeError: The transform is neither."#
    };
    (map_with_index) => {
        r#"Applies a function to every element and its index. The index of a `MapDataset` continues over epochs. In a
stream it counts from 0.

Args:
    transform (Callable[[int, Any], Any] | MapWithIndex): A function of the index and the element, or an object with
        a method `map_with_index`.

Raises:
    TypeError: The transform is neither."#
    };
    (random_map) => {
        r#"Applies a function to every element and random numbers; Grain's numbers.

The numbers belong to the index of the element, or to its position in a stream. Threads, workers and a resume do
not change them. The generator is used again for the next element: do not keep it.

Args:
    transform (Callable[[Any, np.random.Generator], Any] | RandomMap): A function of the element and a
        `numpy.random.Generator`, or an object with a method `random_map`.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default, it is derived from the `seed` before it.

Raises:
    ConfigError: There is no seed, neither here nor in a `seed` before the stage."#
    };
    (mp_prefetch) => {
        r#"mp_prefetch($self, options=None, worker_init_fn=None, *, num_workers=None, workers='auto',
    per_worker_buffer_size=1, max_workers=None, threads_per_worker=None, ram_budget=None, worker_heap=None,
    max_element=None, deadline=300.0, retries=3, on_poison='error', tune=True)
--

Has everything in front of this evaluated by worker processes, under a budget of memory; the elements stay the
same.

Native pipelines take one process with threads; Python functions go to several, by value if they are of a script
or a notebook. What comes behind this runs here; but functions and filters straight behind compressed files that
are read as `lanes` belong to those, and run where they are read.

A stream without random access is iterated over here, in order. Workers apply the functions of its `map`,
`map_with_index`, `random_map` and `filter` to chunks of elements that they are sent, unless a call takes less
than 20 µs; `flat_map` runs here.

Args:
    options (MpOptions | int | WorkerOptions | None): `MpOptions`, Grain's, or a number of workers; the fields
        of `MpOptions` may be given here one by one.
    worker_init_fn (Callable[[int, int], object] | None): Called once in each worker that runs Python functions,
        with its number and how many there are.
    num_workers (int | None): Worker processes; 0 evaluates on threads of this process. By default one with a
        thread for every core where all stages are native, else one for every core at the start, and as many as
        pay then.
    workers (int | Literal["auto"]): The same under another name.
    per_worker_buffer_size (int): Elements, or batches, kept ready for each worker.
    max_workers (int | None): Begin with one process, and let tuning find out whether up to so many pay.
    threads_per_worker (int | None): Threads that evaluate in each worker. Where neither this nor a number of
        workers is given, there are more where functions wait and let others have the interpreter meanwhile:
        then several threads call them at once, as with Grain's read threads; 1 rules that out.
    ram_budget (int | str | None): Bytes, or text such as `"2GiB"`, that shared memory and the private memory of
        all workers take together at most; a quarter of what is available.
    worker_heap (int | str | None): Bytes of private memory of each worker; see `MpOptions`.
    max_element (int | str | None): Bytes that one element or batch may have; a quarter of the shared memory.
    deadline (float | None): Seconds that a range of elements may take before its worker counts as hanging;
        `None` for ever.
    retries (int): How many workers a range may kill before the element that does it is sought.
    on_poison (Literal["error", "skip"]): What becomes of an element that kills every worker: it ends the run,
        or is left out and counted in the report.
    tune (bool): Whether the number of threads at work, and how far they work ahead, follow what the consumer
        needs.

Raises:
    ConfigError: The options contradict each other, or do not fit into the budget."#
    };
    (loader) => {
        r#"loader($self, *, threads=0, buffer=2, writable=False, accept_changes=False, workers=True, part=None,
    deal='even', guard='auto', guard_timeout=600.0, keys=None, record_keys=False, on_failed_element='error',
    failed_element_limit=None, metrics=None, record=None, trace=None, top=False)
--

Starts a pass over one epoch.

Args:
    threads (int | Literal["auto"]): Threads for the elementwise part, beside one for the rest. With 0
        everything runs when it is asked for. With `"auto"` there is one for each core at first, and their
        number and how far they are ahead follow what the loop needs: up to 256 if elements mostly wait for a
        disk or a network. Functions that hold the interpreter's lock while they compute gain by `mp_prefetch`
        instead. The elements are the same.
    buffer (int): Elements or batches that are kept ready ahead of the consumer, where there are threads.
    writable (bool): Hand out native arrays that may be written to: as they are where nobody else views their
        memory, else as a copy. Arrays that Python functions made are handed on as they are.
    accept_changes (bool): Accept a state of another pipeline in `set_state`: a file was withdrawn, or an
        argument has changed. Positions are taken as they are; the change is logged, and stands in the report
        and in all later states under `accepted_changes`. Stages after `to_iter` that hold positions must be as
        before.
    workers (bool): Whether `mp_prefetch` has processes started. Without them this process evaluates everything:
        to look at a few elements, or at the state.
    part (Part | tuple[int, int] | str | None): Rows of every batch that are delivered here, where several hosts
        read one pipeline: `(3, 64)` are those of the fourth of 64. `batch` makes global batches; states know
        nothing of parts, and any part goes on from the state of any other.
    deal (Literal["even", "lanes"] | Deal): Which rows are whose: those that follow one another, those of the
        same lanes, by an index, or a `Deal` that balances what rows cost. Batches are the same. Where rows are
        planned by keys and packed, the plan says what they cost; else each host evaluates all rows.
    guard (Guard): How hosts are compared, so that one with other files, another pipeline or a function with
        randomness of its own is an error on all of them: before the first batch, every 128 batches and at the
        end. With `"auto"` by the store of JAX or PyTorch, if the part is of `gm.jax.part_for` or
        `gm.torch.part` and there are several processes; else not. A folder that all hosts see serves as well,
        `(folder, host, hosts)` where the part does not say which host this is, and an object with
        `begin(part)`, `post(round, statement)` and `read(round)`. `None` compares nothing.
    guard_timeout (float): Seconds after which a host that has said nothing is an error.
    keys (str | PathLike[str] | None): The folder of key files, which `make_keys` or `gristmill index --keys`
        has written: by them a host plans which elements the rows of all hosts are made of, and evaluates those
        of its own alone.
    record_keys (bool): Whether key files that are not there yet are written while everything is evaluated:
        without a part, or by the host that has the first row. The next start plans by them.
    on_failed_element (Literal["error", "pad"]): What becomes of an element that fails after rows were planned
        of it, by keys or by indices: with `"pad"` it is padding where it would be, counted and named in the
        report, and the plan stays what it is. Where all elements are evaluated it changes nothing.
    failed_element_limit (int | None): The most that become padding; no limit by default.
    metrics (str | int | None): Where `GET /metrics` is answered with the figures of the pass while it lives, as
        OpenMetrics text for Prometheus: `"127.0.0.1:9464"`, or a port alone, which nobody but this machine
        reaches; 0 is a free one, which `metrics_address` tells. Other users of this machine are answered with
        `"everybody@"` in front.
    record (str | PathLike[str] | None): A file in which the pass is recorded while it runs, which
        `Report.from_record` and `gristmill report` read back, also where the process was killed. A recording
        that is there is kept as `NAME.1.ENDING`.
    trace (str | PathLike[str] | None): A file to which the pass is written as a trace for Perfetto and Chrome,
        compressed if it ends in `.gz`.
    top (bool): Let people of this user on this machine look at the pass with `gristmill top`. `GRISTMILL_TOP=1`
        in the environment does the same for every pass.

Returns:
    The pass: an iterator, and a context manager that closes it.

Raises:
    ConfigError: An argument is impossible, or a column is not there.
    WorkerError: Worker processes cannot be started."#
    };
    (explain) => {
        r#"Explains the pipeline: its stages, their memory, the parallel stages, and the first element.

The first elements are read for it, in this process.

Args:
    threads (int): The threads of the `loader` whose memory is estimated.
    buffer (int): The buffer of the loader."#
    };
    (element_spec) => {
        r#"Shapes and dtypes of the first element, which is read for it, as a tree with the structure of the element.

The spec of an array is an `ArraySpec`. The spec of another value is its type. A list or tuple of equal specs
has one entry.

Raises:
    ConfigError: The dataset has no element."#
    };
    (apply) => {
        r#"Calls a function with this dataset and returns its result, so that custom stages fit in a chain.

Args:
    transform (Callable[[MapDataset | IterDataset], Any]): A function of a dataset."#
    };
}
pub(super) use shared_docs;
