//! The parts of a pipeline file that do not change the data: who runs it, where checkpoints go.

use std::path::PathBuf;
use std::time::Duration;

use super::arguments::{Arguments, Kind, arguments, words};
use super::deal::Dealt;
use super::decode::Fields;
use super::node::{Node, Tree};
use super::registry::{Source, Stages};
use super::values::{Amount, AtLeast, Decode, Given};
use crate::error::Result;
use crate::exec::{Executor, FailedElements};
use crate::part::{Deal, Part};
use crate::store::StoreOptions;
use crate::units::check_budget;
pub use crate::units::parse_bytes;

/// Settings of a pipeline file besides its source and stages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// `name`.
    pub name: Option<String>,
    /// `executor: {threads: 2}`, `executor: {threads: auto}` or `executor: inline`, if it is given.
    pub executor: Option<Executor>,
    /// `executor: {workers: 1}`: worker processes.
    pub workers: Option<usize>,
    /// `executor: {max_workers: 2}`: worker processes at most, where their number is tuned.
    pub max_workers: Option<usize>,
    /// `executor: {threads_per_worker: 2}`.
    pub threads_per_worker: Option<usize>,
    /// `executor: {ram_budget: 2GiB}`: bytes for worker processes and what they share with this one.
    pub ram_budget: Option<u64>,
    /// `executor: {buffer: 2}`: batches kept ready.
    pub buffer: Option<usize>,
    /// `executor: {part: {index: 3, count: 64}}`: the rows of every batch that are delivered.
    pub part: Option<Part>,
    /// `executor: {keys: folder}`: where key files are, as it is written; relative to the folder of the pipeline file.
    pub keys: Option<PathBuf>,
    /// `executor: {record_keys: true}`: whether key files that are not there are written while everything is evaluated.
    pub record_keys: bool,
    /// `executor: {guard: FOLDER}`: a folder over which hosts are compared.
    pub guard: Option<PathBuf>,
    /// `executor: {deal: {balanced: {d_model: 4096}}}`: how the rows of every batch are dealt among parts.
    pub deal: Option<Deal>,
    /// `executor: {on_failed_element: pad, failed_element_limit: 10}`: what becomes of elements that fail after rows were planned of them.
    pub failed_elements: Option<FailedElements>,
    /// `checkpoint`, if it is given.
    pub checkpoint: Option<CheckpointSettings>,
    /// `store: {cache_dir: cache, cache_size: 100GiB}`, if it is given: how stores are read; folders as they are written.
    pub store: Option<StoreOptions>,
}

/// `checkpoint: {folder: checkpoints, every: 100}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointSettings {
    /// As it is written; relative to the folder of the pipeline file.
    pub folder: PathBuf,
    /// Batches between two checkpoints; without it, one at the end and one when the run is interrupted.
    pub every: Option<u64>,
}

arguments! {
    /// The whole file.
    pub(super) struct FileArgs {
        /// A name for people; it changes nothing.
        name: Option<String>,
        /// Who evaluates the pipeline; it never changes the data. Without it, `gristmill run` starts a worker process with a thread for
        /// every core.
        executor: Option<Executors>,
        /// Where runs save their state: a folder, or `folder` and `every`.
        checkpoint: Option<CheckpointSettings>,
        /// How files of object stores and web servers are read: a folder for blocks, or the keys of `store`.
        store: Option<Store>,
        /// One source, or a combination of several.
        pub(super) source: Given<Source>,
        /// Stages in their order, each its name with its arguments; where one argument says all, it stands alone: `batch: 32`.
        pub(super) stages: Option<Given<Stages>>,
    }
}

impl FileArgs {
    pub(super) fn of(root: &Node) -> Result<Self> {
        let fields = Fields::new(root)?;
        let args = Self::read(&fields)?;
        fields.finish()?;
        Ok(args)
    }
}

impl Settings {
    pub(super) fn of(file: &FileArgs) -> Self {
        let executors = file.executor.clone().unwrap_or_default();
        Self {
            name: file.name.clone(),
            executor: executors.executor,
            workers: executors.workers,
            max_workers: executors.max_workers,
            threads_per_worker: executors.threads_per_worker,
            ram_budget: executors.ram_budget,
            buffer: executors.buffer,
            part: executors.part,
            keys: executors.keys,
            record_keys: executors.record_keys,
            guard: executors.guard,
            deal: executors.deal,
            failed_elements: executors.failed_elements,
            checkpoint: file.checkpoint.clone(),
            store: file.store.as_ref().map(|store| store.0.clone()),
        }
    }
}

arguments! {
    pub(super) struct ExecutorArgs {
        /// Threads of this process, or `auto`.
        threads: Option<Threads>,
        /// One thread, and nothing ahead of the consumer.
        inline: bool = false,
        /// Batches kept ready for the consumer, 2 at first.
        buffer: Option<AtLeast<1>>,
        /// Worker processes; 0 for none.
        workers: Option<AtLeast<0>>,
        /// Worker processes at most, where their number is tuned.
        max_workers: Option<AtLeast<1>>,
        /// Threads of each worker process.
        threads_per_worker: Option<AtLeast<1>>,
        /// Memory for worker processes and what they share with this one: `2GiB`.
        ram_budget: Option<Budget>,
        /// Rows of every batch that are delivered here, where several hosts read it; all of them at first.
        part: Option<Share>,
        /// The folder of key files, by which a host plans what is not its own; it is `NAME.keys` beside the pipeline file, if that is there.
        keys: Option<PathBuf>,
        /// Whether key files that are not there are written while everything is evaluated: without a part, or by the host of the first.
        record_keys: bool = false,
        /// A folder that all of those hosts see, in which each says what it reads: one that reads something else stops all of them.
        guard: Option<PathBuf>,
        /// How the rows of a batch are dealt among the parts: `even`, in runs, `lanes`, by an index of these, or by what they
        /// cost; without a part it changes nothing.
        deal: Option<Dealt>,
        /// Whether an element that fails after rows were planned of it ends the run, or becomes padding, and is counted in the report; where all
        /// elements are evaluated it changes nothing.
        on_failed_element: Option<OnFailed>,
        /// The most elements that become padding; no limit by default.
        failed_element_limit: Option<u64>,
    }
}

/// Whether elements that fail become padding.
#[derive(Clone, Copy)]
struct OnFailed(bool);

words!(OnFailed { "error" => OnFailed(false), "pad" => OnFailed(true) });

arguments! {
    pub(super) struct ShareArgs {
        /// This one of them, from 0 on.
        index: AtLeast<0>,
        /// Equal parts of each batch.
        count: AtLeast<1>,
    }
}

/// A part of every batch.
struct Share(Part);

impl Decode for Share {
    const KIND: Kind = Kind::Section(&ShareArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::new(node)?;
        let args = ShareArgs::read(&fields)?;
        fields.finish()?;
        // Whether there is one of that number is checked where the pass is started.
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Self(Part::of(number(args.index.0), number(args.count.0))))
    }
}

/// A number of threads, or `auto`.
struct Threads(Executor);

impl Decode for Threads {
    const KIND: Kind = Kind::Either(&[AtLeast::<1>::KIND, Kind::Words(&["auto"])]);

    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::Str(word) if word.as_str() == "auto" => Ok(Self(Executor::Auto)),
            _ => AtLeast::<1>::decode(node).map(|AtLeast(count)| Self(Executor::Threads(count as usize))),
        }
    }
}

/// The executor as the file describes it.
#[derive(Clone, Default)]
struct Executors {
    executor: Option<Executor>,
    workers: Option<usize>,
    max_workers: Option<usize>,
    threads_per_worker: Option<usize>,
    ram_budget: Option<u64>,
    buffer: Option<usize>,
    part: Option<Part>,
    keys: Option<PathBuf>,
    record_keys: bool,
    guard: Option<PathBuf>,
    deal: Option<Deal>,
    failed_elements: Option<FailedElements>,
}

impl Decode for Executors {
    const KIND: Kind = Kind::Either(&[Kind::Words(&["inline"]), Kind::Section(&ExecutorArgs::ABOUT)]);

    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::Str(word) if word.as_str() == "inline" => {
                Ok(Self { executor: Some(Executor::Inline), ..Self::default() })
            }
            Tree::Str(word) => Err(node
                .error(format!("`{word}` is no executor"))
                .help("`executor: inline`, `executor: {threads: 2}` or `executor: {workers: 1}`")),
            _ => Self::of(&Fields::new(node)?),
        }
    }
}

impl Executors {
    fn of(fields: &Fields<'_>) -> Result<Self> {
        let args = ExecutorArgs::read(fields)?;
        fields.finish()?;
        let in_workers = args.workers.is_some()
            || args.max_workers.is_some()
            || args.threads_per_worker.is_some()
            || args.ram_budget.is_some();
        if usize::from(args.threads.is_some()) + usize::from(args.inline) + usize::from(in_workers) > 1 {
            return Err(fields.error("`inline`, `threads` and what is about workers exclude each other"));
        }
        if args.workers.is_some() && args.max_workers.is_some() {
            return Err(fields
                .error("`workers` and `max_workers` exclude each other")
                .help("`max_workers` leaves their number to tuning"));
        }
        let (on_failed, limit) = (args.on_failed_element.map(|OnFailed(pads)| pads), args.failed_element_limit);
        let failed_elements = match (on_failed, limit) {
            (None, None) => None,
            (pads, limit) => Some(
                FailedElements::chosen(pads.unwrap_or_default(), limit)
                    .map_err(|e| fields.error(e.message()).help(e.help_text().unwrap_or_default()))?,
            ),
        };
        Ok(Self {
            failed_elements,
            executor: args.threads.map(|threads| threads.0).or(args.inline.then_some(Executor::Inline)),
            workers: args.workers.map(|count| count.0 as usize),
            max_workers: args.max_workers.map(|count| count.0 as usize),
            threads_per_worker: args.threads_per_worker.map(|count| count.0 as usize),
            ram_budget: args.ram_budget.map(|budget| budget.0),
            buffer: args.buffer.map(|count| count.0 as usize),
            part: args.part.map(|share| share.0),
            keys: args.keys,
            record_keys: args.record_keys,
            guard: args.guard,
            deal: args.deal.map(|dealt| dealt.0),
        })
    }
}

/// Bytes for worker processes.
struct Budget(u64);

impl Decode for Budget {
    const KIND: Kind = Kind::Memory;

    fn decode(node: &Node) -> Result<Self> {
        let bytes = Amount::decode(node)?.into();
        check_budget(bytes).map_err(|e| node.error(e.message()).help(e.help_text().unwrap_or_default()))?;
        Ok(Self(bytes))
    }
}

arguments! {
    pub(super) struct StoreArgs(cache_dir) {
        /// A folder on a local disk where blocks are kept.
        cache_dir: Option<PathBuf>,
        /// How much of it they may take, 10 GiB by default.
        cache_size: Option<Amount>,
        /// How much is kept in memory by each process, 256 MiB by default.
        memory: Option<Amount>,
        /// Requests at a time, 64 by default.
        requests: Option<AtLeast<1>>,
        /// How often a request is made before it fails, 10 times by default.
        attempts: Option<AtLeast<1>>,
        /// Seconds that a request may take with all its attempts, 180 by default.
        timeout: Option<Seconds>,
        /// Seconds without a byte after which a request is made again, 20 by default.
        stall: Option<Seconds>,
    }
}

/// Options of reading stores.
struct Store(StoreOptions);

impl Decode for Store {
    const KIND: Kind = Kind::Section(&StoreArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::of(node, &StoreArgs::ABOUT)?;
        let args = StoreArgs::read(&fields)?;
        fields.finish()?;
        let mut options = StoreOptions::from_env();
        if let Some(folder) = args.cache_dir {
            options = options.cache_dir(folder);
        }
        if let Some(bytes) = args.cache_size {
            options = options.cache_bytes(bytes.into());
        }
        if let Some(bytes) = args.memory {
            options = options.memory_bytes(bytes.into());
        }
        if let Some(AtLeast(count)) = args.requests {
            options = options.requests(usize::try_from(count).unwrap_or(usize::MAX));
        }
        if let Some(AtLeast(count)) = args.attempts {
            options = options.attempts(u32::try_from(count).unwrap_or(u32::MAX));
        }
        if let Some(Seconds(time)) = args.timeout {
            options = options.timeout(time);
        }
        if let Some(Seconds(time)) = args.stall {
            options = options.stall(time);
        }
        Ok(Self(options))
    }
}

struct Seconds(Duration);

impl Decode for Seconds {
    const KIND: Kind = Kind::Seconds;

    fn decode(node: &Node) -> Result<Self> {
        let time = Duration::try_from_secs_f64(f64::decode(node)?);
        time.map(Self).map_err(|_| node.error("needs a number of seconds"))
    }
}

arguments! {
    pub(super) struct CheckpointArgs(folder) {
        /// Where the state is saved.
        folder: PathBuf,
        /// Batches between two states; without it one is saved at the end, and when the run is interrupted.
        every: Option<AtLeast<1>>,
    }
}

impl Decode for CheckpointSettings {
    const KIND: Kind = Kind::Section(&CheckpointArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::of(node, &CheckpointArgs::ABOUT)?;
        let CheckpointArgs { folder, every } = CheckpointArgs::read(&fields)?;
        fields.finish()?;
        Ok(Self { folder, every: every.map(|count| count.0) })
    }
}
