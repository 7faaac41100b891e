//! `gristmill explain`: what a pipeline file means, without running it to the end.

use std::path::PathBuf;

use gristmill::checkpoint::fingerprint;
use gristmill::dataset::Role;
use gristmill::spec::Pipeline;
use gristmill::{ElementSpec, IterDataset, Result, Stage};
use serde::Serialize;

use crate::format::{bytes, cut};
use crate::{Outcome, output};

/// Shows the stages of a pipeline file: which run in parallel, what they hold in memory, what comes out.
///
/// Reads as many records as the first batch needs.
#[derive(clap::Args)]
#[command(after_help = crate::EXIT_CODES)]
pub(crate) struct Args {
    /// The pipeline file
    pipeline: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Explanation {
    name: Option<String>,
    fingerprint: String,
    executor: Option<String>,
    stages: Vec<Row>,
    /// Path, and dtype with shape or the kind of value; `None` if the pipeline is empty.
    element_spec: Option<Vec<(String, String)>>,
    element_bytes: Option<usize>,
    /// What the stages that know it may hold together.
    memory_bytes: u64,
    /// Stateful stages that do not know what they may hold: it depends on the data.
    memory_unknown: Vec<String>,
    /// Batches that wait in the buffer, all together.
    buffer_bytes: Option<usize>,
}

#[derive(Serialize)]
struct Row {
    id: usize,
    name: String,
    params: String,
    role: &'static str,
    /// Whether it runs on any number of threads.
    parallel: bool,
    memory_bytes: Option<u64>,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let pipeline = Pipeline::from_file(&args.pipeline)?;
    let dataset = pipeline.build()?;
    let stage: &dyn Stage = &dataset;
    let stages = rows(stage);
    let first = dataset.clone().loader().build()?.next().transpose()?;
    let spec = |e| ElementSpec::of(e).leaves().map(|(path, leaf)| (path.to_owned(), leaf.to_string())).collect();
    let element_bytes = first.as_ref().map(gristmill::Element::nbytes);
    // The loader's default.
    let buffer = pipeline.settings().buffer.unwrap_or(2);
    let unknown = |row: &&Row| row.memory_bytes.is_none() && row.role == Role::Stateful.as_str();
    let explanation = Explanation {
        memory_unknown: stages.iter().filter(unknown).map(|row| row.name.clone()).collect(),
        buffer_bytes: element_bytes.map(|size| size.saturating_mul(buffer)),
        name: pipeline.settings().name.clone(),
        fingerprint: fingerprint(stage),
        executor: pipeline.settings().executor.map(|e| e.to_string()),
        memory_bytes: stages.iter().filter_map(|row| row.memory_bytes).sum(),
        stages,
        element_spec: first.as_ref().map(spec),
        element_bytes,
    };
    if args.json {
        output::json(&explanation);
    } else {
        output::data(&text(&explanation));
    }
    Ok(Outcome::Done)
}

fn rows(pipeline: &dyn Stage) -> Vec<Row> {
    let mut rows = Vec::new();
    pipeline.walk(&mut |id, stage| {
        let role = stage.role();
        rows.push(Row {
            id,
            name: stage.name().into(),
            params: stage.params(),
            role: role.as_str(),
            parallel: role < Role::Stateful && !has_stateful(stage),
            memory_bytes: stage.memory_bytes(),
        });
    });
    rows
}

/// Whether anything before `stage` is stateful: then it runs behind that, on its thread.
fn has_stateful(stage: &dyn Stage) -> bool {
    stage.parents().iter().any(|p| p.role() == Role::Stateful || has_stateful(*p))
}

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
    text += &format!("memory       stages {}", bytes(e.memory_bytes));
    if !e.memory_unknown.is_empty() {
        text += &format!(", and the data held by {}", cut(&e.memory_unknown.join(", "), 50));
    }
    text += "\n";
    if let (Some(batch), Some(buffer)) = (e.element_bytes, e.buffer_bytes) {
        let count = buffer / batch.max(1);
        text += &format!("buffer       {count} batches of {}: {}\n", bytes(batch as u64), bytes(buffer as u64));
    }
    match &e.element_spec {
        None => text += "element      none: the pipeline is empty\n",
        Some(leaves) => {
            for (i, (path, leaf)) in leaves.iter().enumerate() {
                text += &format!("{:<12} {path:<28} {leaf}\n", if i == 0 { "element" } else { "" });
            }
        }
    }
    text
}

impl Row {
    fn cells(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.name.clone(),
            cut(&self.params, 36),
            self.role.to_owned(),
            if self.parallel { "on any thread" } else { "in order" }.to_owned(),
            self.memory_bytes.map_or_else(|| "–".to_owned(), bytes),
        ]
    }
}
