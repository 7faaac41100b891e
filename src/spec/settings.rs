//! The parts of a pipeline file that do not change the data: options of a run, and the folders of checkpoints and stores.

use std::path::PathBuf;

use super::arguments::{Arguments, Kind, arguments};
use super::decode::Fields;
use super::node::Node;
use super::registry::{Source, Stages};
use super::run::{RunOptions, Seconds};
use super::values::{Amount, AtLeast, Decode, Given};
use crate::error::Result;
use crate::store::StoreOptions;
pub use crate::units::parse_bytes;

/// Settings of a pipeline file besides its source and stages.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// `name`.
    pub name: Option<String>,
    /// `executor`: options of a run. Folders and files are as written; [`Pipeline::run_options`](super::Pipeline::run_options) has them
    /// below the folder of the pipeline file.
    pub run: RunOptions,
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
        executor: Option<RunOptions>,
        /// Where runs save their state: a folder, or `folder` and `every`.
        checkpoint: Option<CheckpointSettings>,
        /// How files of object stores and web servers are read: a folder for blocks, or the keys of `store`.
        store: Option<Store>,
        /// One source, or a combination of several.
        pub(super) source: Given<Source>,
        /// Stages in their order, each a name with arguments. The main argument may be given alone: `batch: 32`.
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
        Self {
            name: file.name.clone(),
            run: file.executor.clone().unwrap_or_default(),
            checkpoint: file.checkpoint.clone(),
            store: file.store.as_ref().map(|store| store.0.clone()),
        }
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

arguments! {
    pub(super) struct CheckpointArgs(folder) {
        /// Folder of the saved state.
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
