//! `gristmill explain`: describes a pipeline file without running it to the end.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::checkpoint::fingerprint;
use crate::dataset::iter::plan_in_words;
use crate::dataset::{Role, Sample, StageMemory, estimate};
use crate::report::{remark, remedy};
use crate::spec::Pipeline;
use crate::{Deal, Element, ElementSpec, Executor, IterDataset, Load, Part, Result, Runtime, Stage};
use serde::Serialize;

use crate::cli::format::{bytes, cut, grouped};
use crate::cli::{Outcome, examples, output};

/// Shows the stages of a pipeline file, their memory and the elements they make
///
/// Reads as many records as the first batch needs, and for the memory of stages that hold elements a few more: sizes are
/// those of the first 64 elements in front of each.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill explain pipeline.yaml"
))]
pub(crate) struct Args {
    /// The pipeline file
    pipeline: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stages of a pipeline, their memory and the first element. `Display` formats the text for people.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    name: Option<String>,
    fingerprint: String,
    executor: Option<String>,
    stages: Vec<Row>,
    /// Leaves of the first element: path, and dtype with shape or the kind of value. `None` if the pipeline is empty.
    element_spec: Option<Vec<(String, String)>>,
    element_bytes: Option<usize>,
    /// Maximum bytes that the stages hold together, without the stages in `memory_unknown`.
    memory_bytes: u64,
    /// Whether `memory_bytes` depends on sizes measured on the first few elements.
    memory_measured: bool,
    /// Stateful stages whose memory is unknown.
    memory_unknown: Vec<String>,
    /// Remarks on how well the order mixes, unless it is a full shuffle.
    /// Also names sources that are expensive to read in the order of the pipeline.
    notes: Vec<String>,
    /// Work of each of several hosts that take parts of the batches, in words.
    hosts: String,
    /// Number of threads that hold per-thread memory.
    threads: usize,
    /// Total bytes of the batches in the buffer.
    buffer_bytes: Option<usize>,
    /// Maximum bytes of the blocks of stores; 0 if the pipeline reads from no store.
    store_bytes: u64,
    /// Sum of stages, buffer and blocks.
    total_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    id: usize,
    name: String,
    params: String,
    role: &'static str,
    /// Whether the stage runs on any number of threads.
    parallel: bool,
    /// Maximum bytes that the stage holds; `None` if unknown.
    memory_bytes: Option<u64>,
    /// Whether `memory_bytes` depends on sizes measured on the first few elements.
    memory_measured: bool,
}

/// First element of a pipeline.
pub(crate) struct First {
    /// Leaves: path, and dtype with shape or the kind of value.
    pub(crate) leaves: Vec<(String, String)>,
    pub(crate) nbytes: usize,
}

impl First {
    fn of(element: &Element) -> Self {
        let leaves =
            ElementSpec::of(element).leaves().map(|(path, leaf)| (path.to_owned(), leaf.to_string())).collect();
        Self { leaves, nbytes: element.nbytes() }
    }
}

/// Number of batches that a loader keeps ready by default.
const BUFFER: usize = 2;

pub(super) fn main(args: &Args) -> Result<Outcome> {
    let pipeline = Pipeline::from_file(&args.pipeline)?;
    let dataset = pipeline.build()?;
    let settings = pipeline.settings();
    let threads = match settings.run.executor().unwrap_or_else(Executor::all_cores) {
        Executor::Threads(threads) => threads,
        Executor::Auto => std::thread::available_parallelism().map_or(1, usize::from),
        Executor::Inline => 1,
    };
    let first = dataset.clone().loader().build()?.next().transpose()?;
    let explanation = Explanation {
        name: settings.name.clone(),
        executor: settings.run.executor().map(|e| e.to_string()),
        ..Explanation::new(&dataset, first.as_ref().map(First::of), threads, settings.run.buffer().unwrap_or(BUFFER))?
    };
    output::either(args.json, &explanation, || explanation.to_string());
    Ok(Outcome::Done)
}

impl Explanation {
    /// Explains a pipeline with this first element, run by `threads` threads with `buffer` batches kept ready.
    ///
    /// # Errors
    /// An error if a stage cannot work.
    pub(crate) fn new<D: IterDataset>(
        dataset: &D,
        first: Option<First>,
        threads: usize,
        buffer: usize,
    ) -> Result<Self> {
        let pipeline: &dyn Stage = dataset;
        let by_rows = dataset.iter_part(&Runtime::inline(), &Part::whole())?.is_some();
        let (element_spec, element_bytes) = first.map(|first| (first.leaves, first.nbytes)).unzip();
        let buffer_bytes = element_bytes.map(|size| size.saturating_mul(buffer));
        let stages = rows(pipeline, threads);
        let store_bytes = crate::store::memory().map_or(0, |(_, most)| most);
        let memory_bytes = stages.iter().filter_map(|row| row.memory_bytes).sum();
        Ok(Self {
            name: None,
            fingerprint: fingerprint(pipeline),
            executor: None,
            memory_unknown: stages.iter().filter(|row| row.is_unknown()).map(|row| row.name.clone()).collect(),
            memory_measured: stages.iter().any(|row| row.memory_measured),
            memory_bytes,
            notes: orders(pipeline),
            hosts: plan_in_words(dataset, by_rows, &Deal::Even),
            threads,
            buffer_bytes,
            store_bytes,
            total_bytes: memory_bytes + buffer_bytes.unwrap_or(0) as u64 + store_bytes,
            stages,
            element_spec,
            element_bytes,
        })
    }
}

fn rows(pipeline: &dyn Stage, threads: usize) -> Vec<Row> {
    let mut memory = estimate(pipeline, threads).into_iter();
    let mut rows = Vec::new();
    pipeline.walk_in_order(&mut |stage, in_order| {
        let id = rows.len();
        let role = stage.role();
        let StageMemory { bytes: memory_bytes, measured: memory_measured, .. } = memory.next().unwrap_or_default();
        rows.push(Row {
            id,
            name: stage.name().into(),
            params: stage.params(),
            role: role.as_str(),
            parallel: !in_order,
            memory_bytes,
            memory_measured,
        });
    });
    rows
}

/// Returns remarks on how well the order mixes, and on shuffled sources that decode records repeatedly.
/// Remarks on sources contain the cost and the remedy.
fn orders(pipeline: &dyn Stage) -> Vec<String> {
    let mut notes = Vec::new();
    let mut shuffled = Vec::new();
    pipeline.walk(&mut |id, stage| {
        if let Some(cost) = stage.node().source.and_then(|source| source.if_shuffled()) {
            shuffled.push((id, stage.name(), cost));
        }
        if let Some(mixing) = stage.node().describe.mixing() {
            notes.push(format!("{} (stage {id}): {mixing}", stage.name()));
        }
        notes.extend(remark(id, stage));
        if stage.name() == "shuffle" {
            let within = id + 1 - stage.count();
            for (id, name, cost) in shuffled.extract_if(.., |(source, ..)| *source >= within) {
                notes.push(format!(
                    "{name} (stage {id}): {} units of about {} records are {} decoded, of which {} are kept: in random \
                     order each is decoded about {:.0} times an epoch, by worker processes more often; {}",
                    grouped(cost.units),
                    grouped(cost.records),
                    bytes(cost.bytes),
                    bytes(cost.budget),
                    cost.times,
                    remedy()
                ));
            }
        }
    });
    notes
}

display_as!(Explanation, |self, f| f.write_str(&text(self)));

fn text(e: &Explanation) -> String {
    let mut text = String::new();
    if let Some(name) = &e.name {
        text += &format!("{name}\n\n");
    }
    let rows: Vec<Vec<String>> = e.stages.iter().map(Row::cells).collect();
    text += &output::table(&["id", "stage", "arguments", "role", "runs", "memory"], &rows, &[1, 2, 3, 4]);
    text += &format!("\nfingerprint  {}\n", e.fingerprint);
    if let Some(executor) = &e.executor {
        text += &format!("executor     {executor}\n");
    }
    text += &memory(e);
    text += &output::wrapped(&format!("hosts        each of several {}", e.hosts), 13);
    for note in &e.notes {
        text += &output::wrapped(&format!("note         {note}"), 13);
    }
    if let Some(leaves) = &e.element_spec {
        for (i, (path, leaf)) in leaves.iter().enumerate() {
            text += &format!("{:<12} {path:<28} {leaf}\n", if i == 0 { "element" } else { "" });
        }
    } else {
        text += "element      none: the pipeline is empty\n"
    }
    text
}

/// Describes the maximum memory, its parts, and the parts that are not counted.
fn memory(e: &Explanation) -> String {
    let about = if e.memory_measured { "about " } else { "" };
    let mut text = format!("memory       {about}{}: stages {}", bytes(e.total_bytes), bytes(e.memory_bytes));
    if let (Some(batch), Some(buffer)) = (e.element_bytes, e.buffer_bytes) {
        let count = buffer / batch.max(1);
        text += &format!(", buffer {} ({count} batches of {})", bytes(buffer as u64), bytes(batch as u64));
    }
    if e.store_bytes > 0 {
        text += &format!(", blocks of stores {}", bytes(e.store_bytes));
    }
    text += "\n";
    if !e.memory_unknown.is_empty() {
        text += &format!("             and the data held by {}\n", cut(&e.memory_unknown.join(", "), 60));
    }
    if e.memory_measured {
        text += &format!(
            "             ~ by the first {} elements; without tokenizers, mapped files and what threads work on\n",
            Sample::MOST
        );
    }
    text
}

impl Row {
    /// Returns true if the stage may hold data of unknown size.
    fn is_unknown(&self) -> bool {
        self.memory_bytes.is_none() && (self.memory_measured || self.role == Role::Stateful.as_str())
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.name.clone(),
            cut(&self.params, 36),
            self.role.to_owned(),
            if self.parallel { "on any thread" } else { "in order" }.to_owned(),
            self.memory(),
        ]
    }
    /// Formats the memory of the stage. `~` marks a measured size.
    fn memory(&self) -> String {
        match self.memory_bytes {
            _ if self.is_unknown() => "unknown".to_owned(),
            None | Some(0) => "–".to_owned(),
            Some(size) if self.memory_measured => format!("~{}", bytes(size)),
            Some(size) => bytes(size),
        }
    }
}
