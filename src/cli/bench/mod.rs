//! `gristmill bench`: how fast a pipeline is, under which settings; and that they all deliver the same.

mod baseline;
mod change;
mod columns;
mod device;
mod export;
mod headspace;
mod measure;
mod row;
mod sweep;
mod table;
pub(crate) mod usage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::spec::Pipeline;
use crate::{Error, ErrorKind, Result};

use self::baseline::Baseline;
use self::device::{Device, Kind};
use self::measure::{Run, Shape};
use self::row::{Failed, Figures, Row};
use self::sweep::{Point, Sweep, label};
use self::table::Bench;
use self::usage::{Cpu, Watch};
use crate::cli::how::How;
use crate::cli::progress::Steps;
use crate::cli::step_time::step_time;
use crate::cli::{Outcome, interrupt, output};

/// Measures how fast a pipeline delivers, and checks that every setting delivers the same.
///
/// Each run starts anew, takes the batches of the warm-up, then those that are measured, and reads every byte of them for
/// the order hash. Rows that differ only in who evaluates the pipeline must have the same hash: if not, the exit code is 1.
/// A point of the sweep that cannot run is a row that says why.
#[derive(clap::Args)]
#[command(after_help = crate::cli::EXIT_CODES)]
pub(crate) struct Args {
    /// The pipeline file
    pipeline: PathBuf,
    /// Batches of each run that are not measured; also --exclude-first, as MLPerf Storage calls it
    #[arg(long, alias = "exclude-first", value_name = "N", default_value_t = 20)]
    warmup: u64,
    /// Batches of each run that are measured
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Runs of each row
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// Try every value: of workers, threads_per_worker, ram, threads, inline, buffer, or of a parameter in the file
    /// (batch_size, tokenise.max_len, stages[1].tokenise.max_len). Several sweeps give all combinations
    #[arg(long = "sweep", value_name = "KEY=A,B,C", value_parser = Sweep::parse)]
    sweeps: Vec<Sweep>,
    /// What takes the batches, and whether it waits: `emulated`, an accelerator that sleeps for --step-time, as that of MLPerf
    /// Storage does; `pjrt:PATH`, the first device of the PJRT plugin in that file, to which they are sent [default: emulated
    /// if there is a --step-time]
    #[arg(long, value_name = "WHAT", value_parser = Kind::parse)]
    consumer: Option<Kind>,
    /// What the accelerator takes for a batch: 5ms, 0.3s, 800us. On a device this is emulated behind the transfer, which is real;
    /// without it, the transfer is the step
    #[arg(long, alias = "step-ms", value_name = "TIME", value_parser = step_time)]
    step_time: Option<Duration>,
    /// Also run the same loop over batches in memory: the most that a perfect pipeline could gain
    #[arg(long)]
    headspace: bool,
    /// Compare with an earlier measurement, which `--output FILE.json` wrote: per row the change of batches/s, with an arrow where
    /// it is more than the standard deviations of both
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    /// Write the rows to a file as well; its ending says how: .csv, .json or .md
    #[arg(long, short, value_name = "FILE", value_parser = export::file)]
    output: Vec<PathBuf>,
    /// Print one JSON object, with the time of every step, instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    interrupt::listen();
    let device = Device::new(args.consumer.as_ref(), args.step_time)?;
    let shape = Shape { warmup: args.warmup, steps: args.steps, device: &device };
    let pipeline = Pipeline::from_file(&args.pipeline)?;
    let points = Point::all(&args.sweeps)?;
    // Before anything is measured: it may not be one.
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut bench = Bench::new(args, points.len());
    let mut first_error = None;
    let mut interrupted = false;
    for (i, point) in points.into_iter().enumerate() {
        let of = format!("{} of {}", i + 1, bench.points);
        let (figures, error) = match measure_point(args, shape, &pipeline, &point, &of) {
            Ok(figures) => (Some(figures), None),
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                interrupted = true;
                break;
            }
            Err(error) => {
                let failed = Failed::new(&error);
                first_error.get_or_insert(error);
                (None, Some(failed))
            }
        };
        let mut row = Row { data: point.data(), settings: point.0, figures, error, baseline: None };
        row.baseline = baseline.as_ref().and_then(|baseline| baseline.change(&row));
        bench.rows.push(row);
    }
    if args.headspace && !interrupted {
        interrupted = add_headspace(shape, &pipeline, &mut bench)?;
    }
    bench.finish(args.baseline.as_deref());
    for file in &args.output {
        export::write(&bench, file)?;
    }
    if args.json {
        output::json(&bench);
    } else {
        output::data(&bench.text());
    }
    bench.warnings.iter().for_each(|warning| output::warn(warning));
    match (bench.mismatch(), first_error) {
        (Some(error), _) => Err(error),
        _ if interrupted => Ok(Outcome::Interrupted),
        // A point that fails is a row; if none is left, nothing was measured.
        (None, Some(error)) if bench.rows.iter().all(|row| row.figures.is_none()) => Err(error),
        _ => Ok(Outcome::Done),
    }
}

/// The file's pipeline with the parameters of a point.
fn changed(pipeline: &Pipeline, data: &[(String, String)]) -> Result<Pipeline> {
    data.iter().try_fold(pipeline.clone(), |pipeline, (key, value)| pipeline.with(key, value))
}

/// All runs of one point.
fn measure_point(args: &Args, shape: Shape<'_>, pipeline: &Pipeline, point: &Point, of: &str) -> Result<Figures> {
    let pipeline = changed(pipeline, &point.data())?;
    let how = args.how.with(&point.0)?;
    let (watch, cpu) = (Watch::start(), Cpu::now());
    let mut executor = String::new();
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        let settings = if point.0.is_empty() { String::new() } else { format!(" · {}", label(&point.0)) };
        let what = format!("{of}{settings} · run {number} of {}", args.runs);
        let steps = Steps::new(&what, shape.all());
        let run = measure_run(shape, &pipeline, &how, &steps, &mut executor);
        steps.finish();
        runs.push(run?);
    }
    let others = cpu.zip(Cpu::now()).and_then(|(before, now)| now.others_since(before));
    let nothing = || Error::config("nothing was measured");
    Figures::new(executor, runs, watch.finish(), others).ok_or_else(nothing)
}

fn measure_run(shape: Shape<'_>, pipeline: &Pipeline, how: &How, steps: &Steps, executor: &mut String) -> Result<Run> {
    let dataset = pipeline.build()?;
    let started = Instant::now();
    let mut loader = how.loader(dataset, pipeline)?.build()?;
    let run = measure::run(started, &mut loader, shape, |batches| steps.show(batches))?;
    *executor = loader.report().executor;
    Ok(run)
}

/// Once for each set of parameters that change the data. True if somebody interrupted.
fn add_headspace(shape: Shape<'_>, pipeline: &Pipeline, bench: &mut Bench) -> Result<bool> {
    for i in 0..bench.rows.len() {
        let data = bench.rows[i].data.clone();
        if bench.rows[..i].iter().any(|before| before.data == data && before.figures.is_some()) {
            continue;
        }
        let measured = changed(pipeline, &data).and_then(|pipeline| headspace::run(pipeline.build()?, shape));
        match measured {
            Ok(resident) => bench.rows.iter_mut().filter(|row| row.data == data).for_each(|row| {
                row.figures.iter_mut().for_each(|figures| figures.beside(resident.as_ref()));
            }),
            Err(error) if error.kind() == ErrorKind::Cancelled => return Ok(true),
            // The row of this point says why.
            Err(_) if bench.rows[i].figures.is_none() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
