//! The parts of a pipeline file that do not change the data: who runs it, where checkpoints go.

use std::path::PathBuf;

use super::decode::{Decode, Fields};
use super::node::{Node, Tree};
use crate::error::Result;
use crate::exec::Executor;

/// What a pipeline file says besides its source and stages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// `name`.
    pub name: Option<String>,
    /// `executor: {threads: 2}` or `executor: inline`, if it is given.
    pub executor: Option<Executor>,
    /// `executor: {buffer: 2}`: batches kept ready.
    pub buffer: Option<usize>,
    /// `checkpoint`, if it is given.
    pub checkpoint: Option<CheckpointSettings>,
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

impl Settings {
    pub(super) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let name = fields.optional("name")?;
        let (executor, buffer) = match fields.node("executor") {
            Some(node) => executor(node)?,
            None => (None, None),
        };
        let checkpoint = fields.node("checkpoint").map(CheckpointSettings::decode).transpose()?;
        Ok(Self { name, executor, buffer, checkpoint })
    }
}

fn executor(node: &Node) -> Result<(Option<Executor>, Option<usize>)> {
    if let Tree::Str(word) = &node.value {
        return match word.as_str() {
            "inline" => Ok((Some(Executor::Inline), None)),
            _ => Err(node
                .error(format!("`{word}` is no executor"))
                .help("`executor: inline`, or `executor: {threads: 2}`")),
        };
    }
    let fields = Fields::new(node)?;
    let threads = fields.at_least("threads", 1)?.map(|n| Executor::Threads(n as usize));
    let inline = fields.or("inline", false)?.then_some(Executor::Inline);
    let buffer = fields.at_least("buffer", 1)?.map(|n| n as usize);
    fields.finish()?;
    if threads.is_some() && inline.is_some() {
        return Err(fields.error("`threads` and `inline` exclude each other"));
    }
    Ok((threads.or(inline), buffer))
}

impl CheckpointSettings {
    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::with_short(node, Some("folder"))?;
        let folder = PathBuf::from(String::decode(fields.required_node("folder")?)?);
        let every = fields.at_least("every", 1)?;
        fields.finish()?;
        Ok(Self { folder, every })
    }
}
