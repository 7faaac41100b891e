//! `gristmill demo`: generates text and packs it into batches, with this binary alone.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::demo::{END_OF_TEXT, TOKENIZER_JSON, corpus};
use crate::spec::Pipeline;
use crate::{Error, Result};
use serde::Serialize;

use crate::cli::consume::{Plan, Stopped, Summary, consume};
use crate::cli::format::bytes;
use crate::cli::how::How;
use crate::cli::saved::States;
use crate::cli::step_time::StepTime;
use crate::cli::{OUTPUT, Outcome, examples, output};

/// Generates text, packs it into batches and reports; needs nothing else
///
/// Writes its corpus, its tokenizer and its pipeline file into one folder, from which everything can be run again.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill demo"
    "gristmill demo --mb 16 --threads 2 --step-time 6ms --html"
    "gristmill demo --print-pipeline > pipeline.yaml"
))]
pub(crate) struct Args {
    /// Megabytes of text
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    mb: u64,
    /// Folder to write
    #[arg(long, value_name = "DIR", default_value = "gristmill-demo")]
    folder: PathBuf,
    #[command(flatten)]
    step: StepTime,
    /// Print the pipeline file and do nothing else
    #[arg(long)]
    print_pipeline: bool,
    #[command(flatten)]
    how: How<true>,
    /// Write a page that shows what happened when [default: report.html in --folder]
    ///
    /// The page is HTML in one file, with the reasons why the consumer waited. FILE.svg is its ribbon alone.
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = OUTPUT)]
    html: Option<Option<PathBuf>>,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

const CORPUS: &str = "corpus.jsonl";
const TOKENIZER: &str = "demo.tokenizer.json";
const PIPELINE: &str = "pipeline.yaml";
/// Schema in the folder of the pipeline file, which refers to it. The schema needs no download and matches this build.
const SCHEMA: &str = "pipeline.schema.json";
const SEED: u64 = 42;

fn pipeline_text() -> String {
    format!(
        "\
# Text to packed batches: run it with `gristmill run {PIPELINE}`.
# Paths start at the folder of this file. Change anything: unknown keys and values are errors.
name: demo
source:
  jsonl: {{paths: [{CORPUS}], columns: [text]}}
stages:
  - shuffle: {{seed: {SEED}}}
  - tokenise: {{tokenizer: {TOKENIZER}, column: text, append_eos: \"{END_OF_TEXT}\"}}
  - window_pack: {{length: {{tokens: 1024}}, over_long: split}}
  - batch: {{batch_size: 32, remainder: drop}}
executor: {{buffer: 4}}
checkpoint: {{folder: checkpoints}}
"
    )
}

#[derive(Serialize)]
struct DemoSummary<'a> {
    folder: &'a Path,
    pipeline: &'a Path,
    documents: u64,
    corpus_bytes: u64,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    if args.print_pipeline {
        output::data(&pipeline_text());
        return Ok(Outcome::Done);
    }
    let written = write(args)?;
    let html = args.html.clone().map(|asked| asked.unwrap_or_else(|| args.folder.join("report.html")));
    // Checked before the run: an unwritable file would waste it.
    html.iter().try_for_each(|file| crate::store::check_writable(file))?;
    let file = args.folder.join(PIPELINE);
    let pipeline = Pipeline::from_file(&file)?;
    let (dataset, indices) = pipeline.build_counted()?;
    let plan = Plan {
        indices,
        steps: None,
        step_time: args.step.time().unwrap_or_default(),
        states: States::new(args.folder.join("checkpoints")),
        save_at_end: false,
        save_if_interrupted: true,
        every: None,
        resume: None,
    };
    let summary = consume(args.how.loader(dataset, &pipeline)?, plan)?;
    if args.json {
        let (documents, corpus_bytes) = (written.documents, written.bytes);
        output::json(&DemoSummary {
            folder: &args.folder,
            pipeline: &file,
            documents,
            corpus_bytes,
            summary: &summary,
        });
    } else {
        summary.print();
        output::data(&next_steps(args));
    }
    html.iter().try_for_each(|html| summary.write_html(html, &file))?;
    Ok(if summary.stopped == Stopped::Interrupted { Outcome::Interrupted } else { Outcome::Done })
}

fn write(args: &Args) -> Result<corpus::Written> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).map_err(|e| Error::io(e, folder))?;
    let start = Instant::now();
    let corpus = folder.join(CORPUS);
    let written = File::create(&corpus)
        .and_then(|mut file| corpus::write_jsonl(&mut file, args.mb * 1_000_000, SEED))
        .map_err(|e| Error::io(e, &corpus))?;
    let pipeline = format!("# yaml-language-server: $schema={SCHEMA}\n{}", pipeline_text());
    let schema = crate::spec::schema();
    for (name, content) in [(TOKENIZER, TOKENIZER_JSON), (SCHEMA, schema.as_bytes()), (PIPELINE, pipeline.as_bytes())] {
        crate::store::replace(&folder.join(name), content)?;
    }
    output::say(&format!(
        "{}: {} documents, {} of text, a tokenizer and {PIPELINE}, written in {:.1} s",
        folder.display(),
        written.documents,
        bytes(written.bytes),
        start.elapsed().as_secs_f64()
    ));
    Ok(written)
}

fn next_steps(args: &Args) -> String {
    let gristmill = output::program();
    let path = |name: &str| output::shell_word(&args.folder.join(name));
    let (pipeline, corpus, tokenizer) = (path(PIPELINE), path(CORPUS), path(TOKENIZER));
    format!(
        "
what to try next
  # the same order hash on one thread of this process, and in two worker processes
  {gristmill} run {pipeline} --inline
  {gristmill} run {pipeline} --workers 2 --ram 1GiB
  # stop after 100 batches, then go on: again the same
  {gristmill} run {pipeline} --steps 100
  {gristmill} run {pipeline} --resume
  # what the pipeline file means, and what is in the corpus
  {gristmill} explain {pipeline}
  {gristmill} inspect {corpus}
  # what padding would have cost
  {gristmill} analyze-padding {corpus} --tokenizer {tokenizer}
"
    )
}
