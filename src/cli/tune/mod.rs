//! `gristmill tune`: finds settings for a pipeline, and explains them.

#[cfg(all(feature = "workers", target_os = "linux"))]
mod pick;

use std::path::PathBuf;

use crate::Result;
use crate::spec::Pipeline;

#[cfg(all(feature = "workers", target_os = "linux"))]
use self::pick::pick;
use crate::cli::how::memory;
use crate::cli::step_time::StepTime;
use crate::cli::{OUTPUT, Outcome, examples, output};

/// Finds the number of threads and the memory that a pipeline needs
///
/// Runs it for a moment. A quarter of the time goes to one thread, half to tuning, the last quarter to the choice. Nothing that is tuned
/// changes a batch.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill tune pipeline.yaml --step-time 50ms"
    "gristmill tune pipeline.yaml --ram 4GiB --write"
))]
pub(crate) struct Args {
    /// The pipeline file
    pipeline: PathBuf,
    /// Memory of worker processes and of batches kept ready, such as 4GiB [default: a quarter of what is available]
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    ram: Option<u64>,
    /// Seconds to run
    #[arg(long, value_name = "S", default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    #[command(flatten)]
    step: StepTime,
    /// Maximum number of threads [default: one per core, up to 256 if elements mostly wait]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_threads: Option<u16>,
    /// Maximum number of batches kept ready
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    max_buffer: u16,
    /// Put the choice into the pipeline file, as its `executor`
    #[arg(long, help_heading = OUTPUT)]
    write: bool,
    /// Write a page with charts of the choice
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().ok().filter(|seconds| (0.05..=86_400.0).contains(seconds));
    number.ok_or_else(|| "a number of seconds is needed, 0.05 or more".to_owned())
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let pipeline = Pipeline::from_file(&args.pipeline)?;
    args.html.iter().try_for_each(|file| crate::store::check_writable(file))?;
    // Checked before the time is spent: a pipeline that cannot be built cannot be tuned.
    drop(pipeline.build()?);
    output::say(&format!("{}: running for {} s", args.pipeline.display(), args.seconds));
    pick(args, &pipeline)
}

#[cfg(not(all(feature = "workers", target_os = "linux")))]
fn pick(_: &Args, _: &Pipeline) -> Result<Outcome> {
    Err(crate::Error::unsupported("this build has no worker processes to tune")
        .help("they need Linux and the feature `workers`; `gristmill bench --sweep threads=1,2,4` works everywhere"))
}
