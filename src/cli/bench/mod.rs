//! `gristmill bench`: measures the speed of a pipeline under several settings, and compares the delivered batches.

mod baseline;
mod bursts;
mod change;
mod columns;
mod device;
mod digest;
mod export;
mod headroom;
mod measure;
mod page;
mod point;
mod row;
mod sweep;
mod table;
pub(crate) mod usage;

use std::path::PathBuf;

use crate::spec::Pipeline;
use crate::{Error, ErrorKind, Result};

use self::baseline::Baseline;
use self::device::{Device, Kind};
use self::point::Beside;
use self::sweep::{Point, Sweep};
use self::table::Bench;
use crate::cli::how::How;
use crate::cli::step_time::StepTime;
use crate::cli::{OUTPUT, Outcome, examples, interrupt, output};

/// Measures how fast a pipeline delivers, over settings and runs
///
/// Each run starts anew, takes the batches of the warm-up, then those that are measured, and reads every byte of them for
/// the order hash. Rows that differ only in who evaluates the pipeline must have the same hash: if not, the exit code is 1.
/// The row digest, which adds up over parts (`gristmill hash`), is made in one more pass, which is not measured.
/// Every point of a sweep has a process of its own: a point that cannot run, or dies of memory, is a row with the reason.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill bench pipeline.yaml"
    "gristmill bench pipeline.yaml --sweep threads=1,2,4 --sweep batch_size=8,32"
    "gristmill bench pipeline.yaml --step-time 5ms --output now.json --baseline before.json"
))]
pub(crate) struct Args {
    /// The pipeline file
    pipeline: PathBuf,
    /// Batches of each run that are not measured
    ///
    /// MLPerf Storage calls it --exclude-first, which is accepted, too.
    #[arg(long, alias = "exclude-first", value_name = "N", default_value_t = 20)]
    warmup: u64,
    /// Minimum number of measured batches per run
    ///
    /// A run lasts at least half a second, and at least as long as its first batch. If batches arrive in bursts, it covers whole periods.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Runs of each row
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// Measure each value of a setting
    ///
    /// KEY is an option of a run, such as threads, workers or ram, or a parameter of the pipeline file: batch_size, tokenise.max_len,
    /// stages[1].tokenise.max_len. Several sweeps give all combinations.
    #[arg(long = "sweep", value_name = "KEY=A,B,C", value_parser = Sweep::parse)]
    sweeps: Vec<Sweep>,
    /// What takes the batches: `emulated` or `pjrt:PATH` [default: emulated if there is a --step-time]
    ///
    /// `emulated` is an accelerator that sleeps for --step-time, as that of MLPerf Storage. `pjrt:PATH` is the first device of the PJRT plugin
    /// in that file, to which batches are sent.
    #[arg(long, value_name = "WHAT", value_parser = Kind::parse)]
    consumer: Option<Kind>,
    #[command(flatten)]
    step: StepTime,
    /// Also measure the same loop over batches in memory
    ///
    /// It is the most that a perfect pipeline could gain.
    #[arg(long)]
    headroom: bool,
    /// Compare with rows that --output wrote earlier, as JSON
    ///
    /// Each row has the change of batches/s, with an arrow if it exceeds both standard deviations. The last of several files is compared
    /// with, and --html draws all.
    #[arg(long, value_name = "FILE")]
    baseline: Vec<PathBuf>,
    #[command(flatten)]
    how: How<false>,
    /// Write the rows to a file as well: .csv, .json or .md
    #[arg(long, short, value_name = "FILE", value_parser = export::file, help_heading = OUTPUT)]
    output: Vec<PathBuf>,
    /// Write a page with charts of the rows, beside those of --baseline
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Print one JSON object, with the time of every step, instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    Device::check(args.consumer.as_ref(), args.step.time())?;
    let pipeline = Pipeline::from_file(&args.pipeline)?;
    let points = Point::all(&args.sweeps)?;
    point::check_some(&args.how, &pipeline, &points)?;
    if let Some(asked) = point::of_this_process() {
        point::answer(args, &pipeline, &points, asked);
        return Ok(Outcome::Done);
    }
    // Checked before measuring: a baseline may be invalid, and an output file may not be writable.
    let earlier = args.baseline.iter().map(|file| Baseline::read(file)).collect::<Result<Vec<_>>>()?;
    args.output.iter().chain(&args.html).try_for_each(|file| crate::store::check_writable(file))?;
    if points.len() > 1 {
        // Finished rows are printed after an interrupt. A single point has no finished rows, and ends at once.
        interrupt::listen();
    }
    let mut bench = Bench::new(args, args.how.options(&pipeline).part());
    let mut errors = Vec::new();
    let mut interrupted = false;
    for (number, point) in points.iter().enumerate() {
        let is_first = !bench.rows.iter().any(|row| row.has_figures_of(point));
        let beside = Beside { headroom: args.headroom && is_first, digest: is_first };
        let measured = match points.len() {
            1 => point::here(args, &pipeline, point, &point::of(number, &points), beside),
            // A separate process per point: a crash leaves the others intact, and no point inherits used memory.
            _ => point::apart(number, beside),
        };
        match measured {
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                interrupted = true;
                break;
            }
            measured => errors.extend(bench.add(point, measured, earlier.last())),
        }
        if points.len() > 1 {
            // Finished rows survive a later crash. A failed write is reported at the end.
            args.output.iter().for_each(|file| drop(export::write(&bench, file)));
        }
    }
    bench.finish(earlier.last().map(|baseline| &*baseline.file));
    tell(args, &bench)?;
    args.html.iter().try_for_each(|file| output::page(file, &page::page(&bench, &earlier)))?;
    match bench.mismatch() {
        Some(error) => Err(error),
        None if interrupted => Ok(Outcome::Interrupted),
        // A failed point is a row. The command fails if all points failed.
        None if bench.is_empty() => Err(failed(errors)),
        None => Ok(Outcome::Done),
    }
}

/// Prints the rows before writing them, so that they are visible if writing fails.
fn tell(args: &Args, bench: &Bench) -> Result<()> {
    if args.json {
        output::json(bench);
    } else if !bench.is_empty() || bench.rows.len() > 1 {
        output::data(&bench.text());
    }
    bench.warnings.iter().for_each(|warning| output::warn(warning));
    args.output.iter().try_for_each(|file| export::write(bench, file))
}

/// Makes the error of a sweep in which every point failed: their common error, or a reference to the rows.
fn failed(mut errors: Vec<Error>) -> Error {
    let first = if errors.is_empty() { Error::config("nothing was measured") } else { errors.swap_remove(0) };
    match errors.iter().all(|error| error.message() == first.message()) {
        true => first,
        false => Error::new(first.kind(), "no point of the sweep could be measured").help("each row has its reason"),
    }
}
