//! `gristmill plan`: plans a run by keys alone, and prints what the run will see.

mod check;
mod figures;
mod keys;
mod page;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use self::check::Condition;
use self::figures::{Counts, Figures};
use self::keys::KeysOfPlan;
use crate::cli::progress::Counter;
use crate::cli::{OUTPUT, Outcome, examples, output};
use crate::cx::Recorder;
use crate::dataset::iter::edited_stages;
use crate::dataset::{IterDataset, RunContents, SourceOfRun, Stage};
use crate::edits::RunEdits;
use crate::element::Element;
use crate::exec::{Executor, Runtime};
use crate::keys::KeySource;
use crate::part::{Balance, Cost, Deal};
use crate::report::counts_as_tokens;
use crate::spec::{Pipeline, RunOptions};
use crate::{Edits, Result};
use serde::Serialize;

/// Shows what a run will see: shares by tokens, epochs, padding, stragglers
///
/// Plans the batches by keys, without reading the elements of the run. Keys are the lengths of the documents; `gristmill index --keys` makes
/// them once, otherwise they are computed during the plan, which reads every record. The figures of a plan are the figures of the run.
///
/// A source has the name of its component, if a mix names its parts. Batches are numbered from 0. Two pipeline files are compared.
///
/// Figures of --fail-if: batches, bytes_per_host, documents, longest_run, padding, price, requests_per_host, split, straggler_balanced,
/// straggler_even and tokens of the run; documents, end, epochs, first_repeat, share, token_share and tokens of a source, as in `epochs.books`.
/// Without a name, every source is checked.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill plan pipeline.yaml --batches 200000 --parts 64"
    "gristmill plan pipeline.yaml --batches 200000 --sample 1% --html plan.html"
    "gristmill plan old.yaml new.yaml --batches 200000"
    "gristmill plan pipeline.yaml --batches 200000 --fail-if 'epochs.books > 4' --fail-if 'padding > 1%'"
))]
pub(crate) struct Args {
    /// The pipeline file, or two to compare
    #[arg(required = true, num_args = 1..=2)]
    pipelines: Vec<PathBuf>,
    /// Plan the first N batches [default: all, until the pipeline ends]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batches: Option<u64>,
    /// Hosts or ranks that divide the rows of each batch
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    parts: u32,
    /// Costs of rows, for the slowest part of a balanced deal [default: as in the pipeline file, or `balanced: {d_model: 4096}`]
    #[arg(long, value_name = "DEAL")]
    deal: Option<String>,
    /// Changes of the batches [default: as in the pipeline file]
    #[arg(long, value_name = "FILE")]
    edits: Option<String>,
    /// Compute the keys of this share of the records only, and estimate the rest
    ///
    /// At least 1000 records of each source are read. Sources with a file of keys are exact. The error is stated with the figures.
    #[arg(long, value_name = "SHARE", value_parser = keys::share)]
    sample: Option<f64>,
    /// Price of 1000 requests to stores
    #[arg(long, value_name = "PRICE")]
    price_per_1000_requests: Option<f64>,
    /// Exit with 1 if a figure meets this condition, and print the figure; may be given several times
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Condition>)]
    fail_if: Vec<Condition>,
    /// Write a page with charts
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// Settings of a plan.
struct Settings {
    batches: Option<u64>,
    parts: usize,
    balance: Balance,
    price: Option<f64>,
    edits: Edits,
}

/// Width of the layers that determine the costs of rows by default.
const D_MODEL: usize = 4096;

/// A plan of a pipeline file.
#[derive(Serialize)]
struct Planned {
    pipeline: PathBuf,
    #[serde(flatten)]
    figures: Figures,
    /// Figures that meet a condition, with their names and the condition.
    failed: Vec<(String, f64, String)>,
}

/// Seed of samples: estimates of equal arguments are equal.
const SEED: u64 = 0;

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    // Checked before planning: an unwritable file would waste the work.
    args.html.iter().try_for_each(|file| crate::store::check_writable(file))?;
    let plans = args.pipelines.iter().map(|file| of_file(file, args)).collect::<Result<Vec<_>>>()?;
    match plans.as_slice() {
        [plan] if args.json => output::json(plan),
        plans if args.json => output::json(&serde_json::json!({ "plans": plans })),
        [one, other] => output::data(&page::table(one, other)),
        plans => plans.iter().for_each(|plan| output::data(&plan.figures.text())),
    }
    args.html.iter().try_for_each(|file| output::page(file, &page::page(&plans)))?;
    let failed = plans.iter().flat_map(|plan| plan.failed.iter().map(move |failed| (&plan.pipeline, failed)));
    let mut outcome = Outcome::Done;
    for (pipeline, (name, figure, condition)) in failed {
        output::always(&format!("failed: {name} is {figure:.6} in {}, and `{condition}`", pipeline.display()));
        outcome = Outcome::Found;
    }
    Ok(outcome)
}

fn of_file(file: &Path, args: &Args) -> Result<Planned> {
    let pipeline = Pipeline::from_file(file)?;
    let dataset = pipeline.build()?;
    let settings = Settings {
        batches: args.batches,
        parts: args.parts as usize,
        balance: balance(args.deal.as_deref(), &pipeline)?,
        price: args.price_per_1000_requests,
        edits: match &args.edits {
            Some(file) => RunOptions::from_texts([("edits", file.as_str())])?.edits()?,
            None => pipeline.run_options().edits()?,
        },
    };
    let keys = KeysOfPlan::new(pipeline.keys());
    let keys = match args.sample {
        Some(share) => keys.of_sample(share, SEED),
        None => keys,
    };
    let mut progress = Counter::new("documents");
    let figures = plan(&dataset, &settings, keys, |documents| progress.show(documents));
    progress.finish();
    let (figures, mut failed) = (figures?, Vec::new());
    for condition in &args.fail_if {
        let met = condition.met_by(&figures)?;
        failed.extend(met.into_iter().map(|(name, figure)| (name, figure, condition.to_string())));
    }
    Ok(Planned { pipeline: file.to_owned(), figures, failed })
}

/// Returns the costs of rows of the given deal, or of the deal in the pipeline file.
fn balance(deal: Option<&str>, pipeline: &Pipeline) -> Result<Balance> {
    let costs = || Balance::new(Cost::attention(D_MODEL, None, true));
    let deal = match deal {
        None => pipeline.run_options().deal().cloned(),
        Some("balanced" | "even") => None,
        Some(text) => RunOptions::from_texts([("deal", text)])?.deal().cloned(),
    };
    Ok(match deal {
        Some(Deal::Balanced(balance) | Deal::Shadow(balance)) => balance,
        _ => costs(),
    })
}

/// Plans a run of `dataset`. Passes the number of documents so far to `progress` now and then.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if keys do not determine the rows; errors of the keys.
fn plan<D: IterDataset<Item = Element>>(
    dataset: &D,
    settings: &Settings,
    keys: KeysOfPlan,
    mut progress: impl FnMut(u64),
) -> Result<Figures> {
    let pipeline: &dyn Stage = dataset;
    pipeline.check_all()?;
    let start = Instant::now();
    let recorder = Recorder::without_records(pipeline.count());
    let keys = Arc::new(keys);
    let run = Runtime::new(Executor::Inline, Some(recorder.clone()))?;
    let edits = Arc::new(RunEdits::new(settings.edits.clone(), edited_stages(pipeline, &settings.edits)?));
    let run = run.with_keys(Some(keys.clone() as Arc<dyn KeySource>)).with_edits(edits);
    // The costs of rows matter for parts alone.
    let cost = (settings.parts > 1).then(|| settings.balance.cost.clone());
    let mut contents = RunContents::plan(dataset, run, counts_as_tokens, cost)?;
    let (mut counts, mut records) = (Counts::default(), Vec::new());
    while settings.batches.is_none_or(|most| counts.batches() < most) {
        let Some(batch) = contents.batch(counts.batches())? else {
            counts.end();
            break;
        };
        if batch.sources.len() > records.len() {
            records = records_of(&contents.sources(pipeline));
        }
        counts.add(&batch, &records, settings)?;
        progress(counts.documents());
    }
    contents.flush();
    Ok(Figures::new(counts, &contents.sources(pipeline), pipeline, &recorder, settings, &keys, start.elapsed()))
}

/// Returns the number of records of each source, by the number of the source in a census.
fn records_of(sources: &[(Option<usize>, SourceOfRun)]) -> Vec<u64> {
    let mut records = vec![0; sources.iter().filter_map(|(number, _)| *number).max().map_or(0, |most| most + 1)];
    sources.iter().for_each(|(number, source)| number.iter().for_each(|&number| records[number] = source.records));
    records
}
