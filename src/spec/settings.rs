//! The parts of a pipeline file that do not change the data: who runs it, where checkpoints go.

use std::path::PathBuf;
use std::time::Duration;

use super::decode::{Decode, Fields};
use super::node::{Node, Tree};
use crate::error::Result;
use crate::exec::Executor;
use crate::store::StoreOptions;
use crate::units::check_budget;
pub use crate::units::parse_bytes;

/// What a pipeline file says besides its source and stages.
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

impl Settings {
    pub(super) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let mut settings = Self {
            name: fields.optional("name")?,
            executor: None,
            workers: None,
            max_workers: None,
            threads_per_worker: None,
            ram_budget: None,
            buffer: None,
            checkpoint: None,
            store: None,
        };
        if let Some(node) = fields.node("executor") {
            settings.decode_executor(node)?;
        }
        settings.checkpoint = fields.node("checkpoint").map(CheckpointSettings::decode).transpose()?;
        settings.store = fields.node("store").map(store).transpose()?;
        Ok(settings)
    }

    fn decode_executor(&mut self, node: &Node) -> Result<()> {
        if let Tree::Str(word) = &node.value {
            self.executor = match word.as_str() {
                "inline" => Some(Executor::Inline),
                _ => {
                    return Err(node
                        .error(format!("`{word}` is no executor"))
                        .help("`executor: inline`, `executor: {threads: 2}` or `executor: {workers: 1}`"));
                }
            };
            return Ok(());
        }
        let fields = Fields::new(node)?;
        let count = |key: &'static str, least| fields.at_least(key, least).map(|n| n.map(|n| n as usize));
        let threads = match fields.node("threads") {
            Some(Node { value: Tree::Str(word), .. }) if word.as_str() == "auto" => Some(Executor::Auto),
            _ => count("threads", 1)?.map(Executor::Threads),
        };
        let inline = fields.or("inline", false)?.then_some(Executor::Inline);
        self.buffer = count("buffer", 1)?;
        self.workers = count("workers", 0)?;
        self.max_workers = count("max_workers", 1)?;
        self.threads_per_worker = count("threads_per_worker", 1)?;
        self.ram_budget = fields.node("ram_budget").map(budget).transpose()?;
        fields.finish()?;
        let in_workers =
            self.workers.or(self.max_workers).or(self.threads_per_worker).is_some() || self.ram_budget.is_some();
        if usize::from(threads.is_some()) + usize::from(inline.is_some()) + usize::from(in_workers) > 1 {
            return Err(fields.error("`inline`, `threads` and what is about workers exclude each other"));
        }
        if self.workers.is_some() && self.max_workers.is_some() {
            return Err(fields
                .error("`workers` and `max_workers` exclude each other")
                .help("`max_workers` leaves their number to tuning"));
        }
        self.executor = threads.or(inline);
        Ok(())
    }
}

/// `store: {cache_dir: cache, cache_size: 100GiB, memory: 1GiB, requests: 32, attempts: 10, timeout: 180, stall: 20}`.
fn store(node: &Node) -> Result<StoreOptions> {
    let fields = Fields::with_short(node, Some("cache_dir"))?;
    let mut options = StoreOptions::from_env();
    let amount = |key: &'static str| fields.node(key).map(bytes).transpose();
    let seconds = |key: &'static str| -> Result<Option<Duration>> {
        let Some(node) = fields.node(key) else { return Ok(None) };
        let time = Duration::try_from_secs_f64(f64::decode(node)?);
        time.map(Some).map_err(|_| node.error("needs a number of seconds"))
    };
    if let Some(folder) = fields.optional::<String>("cache_dir")? {
        options = options.cache_dir(folder);
    }
    if let Some(bytes) = amount("cache_size")? {
        options = options.cache_bytes(bytes);
    }
    if let Some(bytes) = amount("memory")? {
        options = options.memory_bytes(bytes);
    }
    if let Some(count) = fields.at_least("requests", 1)? {
        options = options.requests(usize::try_from(count).unwrap_or(usize::MAX));
    }
    if let Some(count) = fields.at_least("attempts", 1)? {
        options = options.attempts(u32::try_from(count).unwrap_or(u32::MAX));
    }
    if let Some(time) = seconds("timeout")? {
        options = options.timeout(time);
    }
    if let Some(time) = seconds("stall")? {
        options = options.stall(time);
    }
    fields.finish()?;
    Ok(options)
}

fn budget(node: &Node) -> Result<u64> {
    let bytes = bytes(node)?;
    check_budget(bytes).map_err(|e| node.error(e.message()).help(e.help_text().unwrap_or_default()))?;
    Ok(bytes)
}

fn bytes(node: &Node) -> Result<u64> {
    match &node.value {
        Tree::Str(text) => parse_bytes(text)
            .ok_or_else(|| node.error(format!("`{text}` is no amount of memory")).help("such as 512MiB or 2GiB")),
        _ => u64::decode(node),
    }
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
