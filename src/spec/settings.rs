//! The parts of a pipeline file that do not change the data: options of a run, and the folders of checkpoints and stores.

use std::path::PathBuf;

use super::arguments::{About, Arg, Arguments, Kind, arguments, read};
use super::decode::Fields;
use super::node::Node;
use super::registry::{Source, Stages};
use super::run::{Limit, RunOptions};
use super::values::{Amount, AtLeast, Decode, Given, decode_as};
use crate::error::Result;
use crate::store::{Described, Field, StoreOptions};
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
        /// Name of the pipeline. It has no effect.
        name: Option<String>,
        /// Options of the run, which never change the data. By default, `gristmill run` starts a worker process with a thread for every
        /// core.
        executor: Option<RunOptions>,
        /// Checkpoints of the run: a folder, or `folder` and `every`.
        checkpoint: Option<CheckpointSettings>,
        /// Options for reading from object stores and web servers: the folder of the cache, or the keys of `store`.
        store: Option<Store>,
        /// Source of the elements, or a combination of several sources.
        pub(super) source: Given<Source>,
        /// Stages in order, each a name with its arguments. The main argument may be given alone: `batch: 32`.
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

/// Options of reading stores.
#[derive(Clone)]
pub(crate) struct Store(pub(crate) StoreOptions);

/// Descriptions of the options of stores, as arguments.
static STORE_ARGS: [Arg; StoreOptions::DESCRIBED.len()] = {
    const fn arg(Described { name, doc, field }: &Described) -> Arg {
        match field {
            Field::Folder(_) => Arg::new::<Option<PathBuf>>(name, None, doc),
            Field::Bytes(_) => Arg::new::<Option<Amount>>(name, None, doc),
            Field::Count(..) => Arg::new::<Option<AtLeast<1>>>(name, None, doc),
            Field::Seconds(_) => Arg::new::<Option<Limit>>(name, None, doc),
        }
    }
    let (mut args, mut at) = ([arg(&StoreOptions::DESCRIBED[0]); StoreOptions::DESCRIBED.len()], 1);
    while at < args.len() {
        args[at] = arg(&StoreOptions::DESCRIBED[at]);
        at += 1;
    }
    args
};

impl Store {
    pub(crate) const ABOUT: About = About { args: &STORE_ARGS, main: Some("cache_dir"), ..About::NONE };
}

impl Decode for Store {
    const KIND: Kind = Kind::Section(&Self::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::of(node, &Self::ABOUT)?;
        let mut options = StoreOptions::from_env();
        for Described { name, field, .. } in StoreOptions::DESCRIBED {
            let Some(value) = fields.node(name) else { continue };
            match field {
                Field::Folder(field) => *field(&mut options) = Some(PathBuf::decode(value)?),
                Field::Bytes(field) => *field(&mut options) = Amount::decode(value)?.into(),
                Field::Count(field, most) => {
                    let AtLeast::<1>(count) = AtLeast::decode(value)?;
                    let fits = u32::try_from(count).ok().filter(|count| *count <= most);
                    *field(&mut options) =
                        fits.ok_or_else(|| value.error(format!("is {count}, and must be at most {most}")))?;
                }
                Field::Seconds(field) => *field(&mut options) = Limit::decode(value)?.0,
            }
        }
        fields.finish()?;
        Ok(Self(options))
    }
}

arguments! {
    pub(super) struct CheckpointArgs(folder) {
        /// Folder for checkpoints.
        folder: PathBuf,
        /// Number of batches between checkpoints. By default, a checkpoint is saved at the end, and if the run is interrupted.
        every: Option<AtLeast<1>>,
    }
}

decode_as!(CheckpointSettings, Kind::Section(&CheckpointArgs::ABOUT), |node| {
    let CheckpointArgs { folder, every } = read(node)?;
    Ok(Self { folder, every: every.map(|count| count.0) })
});
