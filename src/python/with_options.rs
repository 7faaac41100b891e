//! Functions whose keyword arguments are described options: `loader`, `mp_prefetch` and `store_options`. Signatures and docstrings follow from the
//! descriptions.

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple, PyType};

use super::arguments;
use super::described::{annotation, fill, in_python, kept, literal, words};
use super::error::OrRaise;
use crate::spec::RunOptions;
use crate::spec::arguments::{Arg, Kind};
use crate::spec::node::{Field, Node, Tree};
use crate::spec::settings::Store;
use crate::spec::values::Decode;
use crate::store::StoreOptions;

/// A parameter that Python states otherwise than the description of the run option, or that is no run option.
struct Own {
    name: &'static str,
    default: &'static str,
    annotation: &'static str,
    /// Empty if the description of the option applies.
    doc: &'static str,
}

const fn own(name: &'static str, default: &'static str, annotation: &'static str, doc: &'static str) -> Own {
    Own { name, default, annotation, doc }
}

const LOADER: &[Own] = &[
    own(
        "threads",
        "0",
        "int | Literal[\"auto\"]",
        "Threads for the elementwise stages, in addition to a thread for the other stages. 0 evaluates in the thread of the consumer. \
         `\"auto\"` starts with a thread for each core and tunes their number and the number of prefetched elements. The limit is 256 \
         threads, which suits elements that wait for a disk or a network. `mp_prefetch` suits Python functions that compute.",
    ),
    own(
        "writable",
        "False",
        "bool",
        "Return native arrays as writable. An array is copied if others view its memory. Arrays from Python functions are returned \
         unchanged.",
    ),
    own(
        "accept_changes",
        "False",
        "bool",
        "Accept a state of another pipeline in `set_state`, for example after a file was withdrawn or an argument was changed. Positions \
         are taken as they are. The change is logged, and appears in the report and in all later states as `accepted_changes`. Stages \
         after `to_iter` that hold positions must be unchanged.",
    ),
    own(
        "workers",
        "True",
        "bool",
        "Whether `mp_prefetch` starts processes. With `False`, this process evaluates everything, for example to look at a few elements \
         or at the state.",
    ),
    own(
        "part",
        "None",
        "Part | tuple[int, int] | str | None",
        "Part of the rows of each batch to deliver, such as `(3, 64)` for the fourth of 64 hosts. By default, all rows. A state does not \
         depend on the part, so any part can continue from it.",
    ),
    own(
        "deal",
        "'even'",
        "Literal[\"even\", \"lanes\"] | Deal",
        "How rows are dealt among parts: consecutive rows, rows by the index of their lane, or a `Deal` that balances their costs. Costs \
         follow from the plan if rows are planned by keys and packed. Otherwise each host evaluates all rows.",
    ),
    own(
        "guard",
        "'auto'",
        "Guard",
        "How hosts compare their data: before the first batch, every 128 batches and at the end. A host that reads other data, or \
         another pipeline, stops all of them. `\"auto\"` uses the store of JAX or PyTorch if the part comes from `gm.jax.part_for` or \
         `gm.torch.part` and there are several processes. Otherwise, give a folder that all hosts see, `(folder, host, hosts)` if the \
         part does not determine the host, or an object with `begin(part)`, `post(round, statement)` and `read(round)`. `None` compares \
         nothing.",
    ),
    own(
        "keys",
        "None",
        "str | PathLike[str] | None",
        "Folder of key files, by which a host plans the rows of all hosts and evaluates only its own. `make_keys` and \
         `gristmill index --keys` write them.",
    ),
    own(
        "metrics",
        "None",
        "str | int | None",
        "Address at which `GET /metrics` returns the figures of the pass as OpenMetrics text for Prometheus, such as `\"127.0.0.1:9464\"`. A \
         port alone is reached from this machine only; 0 takes a free port, which `metrics_address` returns. Other users of this machine \
         are refused, unless the address begins with `\"everybody@\"`.",
    ),
];

const PROCESSES: &[Own] = &[
    own(
        "num_workers",
        "None",
        "int | None",
        "Worker processes; 0 evaluates on threads of this process. By default, a native pipeline has one process with a thread for each \
         core. Other pipelines start with a process for each core, and tuning finds the number.",
    ),
    own("workers", "'auto'", "int | Literal[\"auto\"]", "Alias of `num_workers`."),
    own("per_worker_buffer_size", "1", "int", "Elements or batches kept ready for each worker process."),
    own(
        "max_workers",
        "None",
        "int | None",
        "Maximum number of worker processes if it is tuned. The run starts with one process.",
    ),
    own(
        "threads_per_worker",
        "None",
        "int | None",
        "Threads of each worker process. By default, a pipeline with Python functions starts with one thread. If the number of workers \
         is not given either, more threads follow if the functions wait and release the interpreter's lock. Several threads then call a \
         function at once, as Grain's read threads do; 1 prevents that.",
    ),
    own(
        "ram_budget",
        "None",
        "int | str | None",
        "Maximum of shared memory and private memory of all workers together, a quarter of the available memory by default. It does not \
         limit shared memory that functions map themselves, such as `mmap.mmap(-1, n)`, nor processes that they start, each of which may \
         have the private memory of a worker. A warning reports an excess. It does not include what this process holds: the elements of \
         a batch, a window or rows that are being packed.",
    ),
    own(
        "deadline",
        "300.0",
        "float | None",
        "Seconds after which a worker process counts as hanging; `None` sets no limit. The start of a worker is not included. It may take \
         20 s, and once 5 s more if the process that forks workers does not answer.",
    ),
];

/// Parameters of `mp_prefetch` before the keyword arguments.
const POSITIONAL: &[Own] = &[
    own(
        "options",
        "None",
        "MpOptions | int | WorkerOptions | None",
        "`MpOptions`, Grain's options, or a number of workers. Fields of `MpOptions` may also be given as keyword arguments.",
    ),
    own(
        "worker_init_fn",
        "None",
        "Callable[[int, int], object] | None",
        "Called once in each worker process that runs Python functions, with its number and the number of workers.",
    ),
];

/// A keyword argument, in Python's terms.
struct Keyword {
    name: &'static str,
    default: String,
    annotation: String,
    doc: String,
}

impl Keyword {
    fn of(own: &Own) -> Self {
        let mut keyword = RunOptions::option(own.name).filter(|_| own.doc.is_empty()).map_or_else(
            || Self { name: own.name, default: String::new(), annotation: String::new(), doc: own.doc.to_owned() },
            Self::described,
        );
        (keyword.default, keyword.annotation) = (own.default.to_owned(), own.annotation.to_owned());
        keyword
    }

    /// Makes the keyword argument of a run option. Its description ends with the default, which may be a value or a phrase.
    fn described(option: &'static Arg) -> Self {
        let (doc, annotation) = (in_python(&option.doc(), &words(&option.kind)), annotation(&option.kind));
        let end = |text: &str| text.find("]").map(|end| text[..end].to_owned());
        let stated = doc.split_once("[default: ").and_then(|(_, rest)| end(rest));
        match stated.filter(|value| !value.contains(' ')) {
            Some(value) => {
                let doc = doc.replace(&format!(" [default: {value}]"), "");
                Self { name: option.name, default: literal(&value).replace('"', "'"), annotation, doc }
            }
            None if matches!(option.kind, Kind::Bool) => {
                Self { name: option.name, default: "False".to_owned(), annotation, doc }
            }
            None => Self { name: option.name, default: "None".to_owned(), annotation: annotation + " | None", doc },
        }
    }
}

/// Makes a keyword argument that leaves the option open by default.
fn open(option: &'static Arg) -> Keyword {
    let doc = in_python(&option.doc(), &words(&option.kind));
    Keyword { name: option.name, default: "None".to_owned(), annotation: annotation(&option.kind) + " | None", doc }
}

/// Returns the keyword arguments: `own` first, in this order, then the other `options`.
fn keywords(own: &[Own], options: impl Iterator<Item = &'static Arg>) -> Vec<Keyword> {
    let others = options.filter(|option| own.iter().all(|own| own.name != option.name));
    own.iter().map(Keyword::of).chain(others.map(Keyword::described)).collect()
}

/// Returns the signature and the docstring of a function. `receiver` is `self`, if it is a method.
fn text(name: &str, receiver: &str, positional: &[Own], doc: &str, keywords: &[Keyword], ends: &str) -> String {
    let positional: Vec<_> = positional.iter().map(Keyword::of).collect();
    let stated = |all: &[Keyword]| all.iter().map(|k| format!("{}={}, ", k.name, k.default)).collect::<String>();
    let (before, after) = (stated(&positional), stated(keywords));
    let mut text = format!("{name}({receiver}{before}*, {})\n--\n\n", after.trim_end_matches(", "));
    for paragraph in doc.split("\n\n") {
        fill(&mut text, "", "", paragraph);
        text += "\n";
    }
    text += "Args:\n";
    for Keyword { name, annotation, doc, .. } in positional.iter().chain(keywords) {
        fill(&mut text, "    ", &format!("{name} ({annotation}):"), doc);
    }
    text + ends
}

/// Adds `loader` and `mp_prefetch` to the `classes`, as methods that call `_loader` and `_mp_prefetch`, and `store_options` to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>, classes: [&Bound<'_, PyType>; 2]) -> PyResult<()> {
    let of_pass = RunOptions::all().filter(|o| !RunOptions::is_of_processes(o.name) && o.name != "inline");
    let loader = text(
        "loader",
        "self, ",
        &[],
        "Starts a pass over one epoch.",
        &keywords(LOADER, of_pass),
        "\nReturns:\n    The pass: an iterator, and a context manager that closes it.\n\nRaises:\n    \
         ConfigError: An argument is invalid, or a column does not exist.\n    \
         WorkerError: Worker processes cannot be started.\n",
    );
    let mp_prefetch = text(
        "mp_prefetch",
        "self, ",
        POSITIONAL,
        "Evaluates all stages before it in worker processes, within a memory budget. The elements do not change.\n\n\
         A native pipeline takes one process with threads. Python functions run in several processes; functions of a script or a \
         notebook are sent by value. Stages after `mp_prefetch` run in this process. Functions and filters that directly \
         follow a compressed source with `lanes` run in the workers, too.\n\n\
         This process reads a stream without random access, in order. Workers apply the functions of its `map`, `map_with_index`, \
         `random_map`, `filter` and `flat_map` to chunks of elements, unless a call takes less than 20 µs.",
        &keywords(PROCESSES, RunOptions::processes()),
        "\nRaises:\n    ConfigError: The options contradict each other, or do not fit the budget.\n",
    );
    for class in classes {
        for (name, own, text) in [("loader", "_loader", &loader), ("mp_prefetch", "_mp_prefetch", &mp_prefetch)] {
            let call = move |args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>| {
                let dataset = args.get_item(0)?;
                dataset.call_method(own, args.get_slice(1, args.len()), kwargs).map(Bound::unbind)
            };
            let function = PyCFunction::new_closure(class.py(), Some(kept(name)?), Some(kept(text)?), call)?;
            class.setattr(name, function)?;
        }
    }
    let text = text(
        "store_options",
        "",
        &[],
        "Sets how this process and its workers read `s3://`, `gs://`, `az://` and `https://` from now on.\n\n\
         No option changes an element. Options that are not given keep their values. The options are environment variables, \
         `GRISTMILL_STORE_CACHE_DIR` and so on, which may also be set before the program starts.",
        &Store::ABOUT.args.iter().map(open).collect::<Vec<_>>(),
        "\nRaises:\n    ConfigError: A value is invalid.\n",
    );
    let call = |_: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>| kwargs.map_or(Ok(()), set_store_options);
    module
        .add("store_options", PyCFunction::new_closure(module.py(), Some(c"store_options"), Some(kept(&text)?), call)?)
}

/// Sets the environment variables of options.
fn set_store_options(given: &Bound<'_, PyDict>) -> PyResult<()> {
    let (py, mut fields) = (given.py(), Vec::new());
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        let key: String = name.extract()?;
        let mut value = Node::new(arguments::value(&value, 0)?, 0, 0);
        value.set_paths(key.clone());
        fields.push(Field { key, line: 0, value });
    }
    let Store(mut options) = Store::decode(&Node::new(Tree::Map(fields), 0, 0)).or_raise(py)?;
    let environment = py.import("os")?.getattr("environ")?;
    for option in StoreOptions::DESCRIBED {
        if given.get_item(option.name)?.is_some_and(|value| !value.is_none()) {
            environment.set_item(option.variable(), option.field.text(&mut options))?;
        }
    }
    Ok(())
}
