//! A point of a sweep, measured in this process or in a separate process. A crash there leaves the other points intact.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Args;
use super::device::Device;
use super::digest::{self, Digested};
use super::headroom;
use super::measure::{self, Feed, Run, Shape};
use super::sweep::{Point, label};
use super::usage::{Memory, Watch};
use crate::cli::how::{How, options};
use crate::cli::progress::Steps;
use crate::cli::{interrupt, output, own};
use crate::cpu::Cpu;
use crate::spec::{Pipeline, nearest};
use crate::{Error, ErrorKind, Result};

/// Results of the runs of a point.
#[derive(Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) executor: String,
    pub(super) runs: Vec<Run>,
    pub(super) peak: Option<Memory>,
    pub(super) others_cpu_share: Option<f64>,
    /// Run over batches in memory, if requested and if the pipeline yields batches.
    pub(super) resident: Option<Run>,
    /// Digest of the batches and rows, if requested.
    pub(super) digested: Option<Digested>,
}

/// Additional passes beside the runs. Points with equal data need each pass once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    /// Whether to run the loop over batches in memory.
    pub(super) headroom: bool,
    /// Whether to compute the digest of rows.
    pub(super) digest: bool,
}

impl Beside {
    /// Returns the marks that follow the number of a point.
    fn marks(self) -> String {
        [(self.headroom, "+"), (self.digest, "#")].iter().filter(|(asked, _)| *asked).map(|(_, mark)| *mark).collect()
    }

    fn of(marks: &str) -> Self {
        Self { headroom: marks.contains('+'), digest: marks.contains('#') }
    }
}

/// Error of a point, sent from its process to the parent.
#[derive(Serialize, Deserialize)]
struct Failure {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
}

/// Environment variable with the point that a process measures and its additional passes: `3`, `3+`, `3#` or `3+#`.
const POINT: &str = "GRISTMILL_BENCH_POINT";
/// Interval between two checks for the end of the child process.
const LOOK: Duration = Duration::from_millis(10);

/// Returns the point that this process was started for, if there is one.
pub(super) fn of_this_process() -> Option<(usize, Beside)> {
    let text = std::env::var(POINT).ok()?;
    let number = text.trim_end_matches(['+', '#']);
    Some((number.parse().ok()?, Beside::of(&text[number.len()..])))
}

/// Measures a point and prints the result for the parent process.
pub(super) fn answer(args: &Args, pipeline: &Pipeline, points: &[Point], asked: (usize, Beside)) {
    let (number, beside) = asked;
    let measured = match points.get(number) {
        Some(point) => here(args, pipeline, point, &of(number, points), beside),
        None => Err(Error::config(format!("there is no point {number}"))),
    };
    output::json(&measured.map_err(|error| Failure {
        kind: error.kind(),
        message: error.to_string(),
        help: error.help_text().map(str::to_owned),
    }));
}

/// Returns the position of a point, such as `2 of 9`.
pub(super) fn of(number: usize, points: &[Point]) -> String {
    format!("{} of {}", number + 1, points.len())
}

/// Measures a point in a separate process.
///
/// # Errors
/// Errors of the point; [`ErrorKind::Worker`] if its process dies, for example out of memory.
pub(super) fn apart(number: usize, beside: Beside) -> Result<Measured> {
    let mut command = own::command()?;
    command.env(POINT, format!("{number}{}", beside.marks()));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let worker = |what: String| Error::new(ErrorKind::Worker, what);
    let mut child = command.spawn().map_err(|e| worker(format!("its process cannot be started: {e}")))?;
    let mut stdout = child.stdout.take();
    // Read on a thread: neither process would end if the pipe filled up.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.as_mut().map(|stdout| stdout.read_to_string(&mut text));
        read.transpose().map(|_| text)
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if interrupt::asked() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
            }
            // Polled: the end of a process and a signal cannot be awaited together.
            Ok(None) => std::thread::sleep(LOOK),
            Err(e) => return Err(worker(format!("its process cannot be waited for: {e}"))),
        }
    };
    let text = reader.join().ok().and_then(std::io::Result::ok).unwrap_or_default();
    // Ctrl-C in the terminal ends both processes.
    if interrupt::asked() {
        return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
    }
    match serde_json::from_str::<std::result::Result<Measured, Failure>>(&text) {
        Ok(Ok(measured)) => Ok(measured),
        Ok(Err(Failure { kind, message, help })) => {
            let error = Error::new(kind, message);
            Err(if let Some(help) = help { error.help(help) } else { error })
        }
        Err(_) => Err(worker(format!("its process died: {status}"))
            .help("its output is above; if memory ran out, use a smaller batch or buffer")),
    }
}

/// Returns the pipeline of the file with the parameters of a point.
fn changed(pipeline: &Pipeline, data: &[(String, String)]) -> Result<Pipeline> {
    data.iter().try_fold(pipeline.clone(), |pipeline, (key, value)| pipeline.with(key, value))
}

/// Checks that a point of the sweep has valid settings. A wrong value fails only its row; a wrong name fails all points.
///
/// # Errors
/// The error of the first point if no point has valid settings.
pub(super) fn check_some(how: &How<false>, pipeline: &Pipeline, points: &[Point]) -> Result<()> {
    let check = |point: &Point| changed(pipeline, &point.parameters()).and_then(|_| how.with(&point.0)).map(drop);
    let mut errors = Vec::new();
    for point in points {
        match check(point) {
            Ok(()) => return Ok(()),
            Err(error) => errors.push(error),
        }
    }
    let slip = |(key, _): (String, String)| nearest(&key, options()).map(|name| (key, name));
    match points.iter().flat_map(Point::parameters).find_map(slip) {
        Some((key, name)) => Err(Error::config(format!("`{key}` is no setting, and no parameter of the pipeline"))
            .help(format!("did you mean --sweep {name}=…?"))),
        None => errors.into_iter().next().map_or(Ok(()), Err),
    }
}

/// Measures all runs of a point in this process.
pub(super) fn here(args: &Args, pipeline: &Pipeline, point: &Point, of: &str, beside: Beside) -> Result<Measured> {
    let device = Device::new(args.consumer.as_ref(), args.step.time())?;
    let shape = Shape { warmup: args.warmup, steps: args.steps, device: &device, goes_on: !device.is_some() };
    let pipeline = changed(pipeline, &point.parameters())?;
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
    let others_cpu_share = cpu.zip(Cpu::now()).and_then(|(before, now)| now.others_since(before));
    let peak = watch.finish();
    let resident = if beside.headroom { headroom::run(pipeline.build()?, shape)? } else { None };
    let again = || digest::run(&mut how.loader(pipeline.build()?, &pipeline)?.build()?, shape);
    let digested = beside.digest.then(again).transpose()?;
    Ok(Measured { executor, runs, peak, others_cpu_share, resident, digested })
}

fn measure_run(
    shape: Shape<'_>,
    pipeline: &Pipeline,
    how: &How<false>,
    steps: &Steps,
    executor: &mut String,
) -> Result<Run> {
    let dataset = pipeline.build()?;
    let started = Instant::now();
    let mut loader = how.loader(dataset, pipeline)?.build()?;
    let run = measure::run(started, &mut Feed::of(&mut loader), shape, |batches| steps.show(batches))?;
    *executor = loader.report().execution.executor;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_beside_crosses() {
        for (headroom, digest) in [(false, false), (true, false), (false, true), (true, true)] {
            let beside = Beside { headroom, digest };
            assert_eq!(Beside::of(&beside.marks()), beside);
        }
    }

    #[test]
    fn a_failure_crosses_with_its_kind_and_help() {
        let failure = Failure { kind: ErrorKind::Config, message: "no".into(), help: Some("yes".into()) };
        let text = serde_json::to_string(&Err::<Measured, _>(failure)).unwrap();
        let back = serde_json::from_str::<std::result::Result<Measured, Failure>>(&text).unwrap();
        let Failure { kind, message, help } = back.err().unwrap();
        assert_eq!((kind, message.as_str(), help.as_deref()), (ErrorKind::Config, "no", Some("yes")));
    }
}
