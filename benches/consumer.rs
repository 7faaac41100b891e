//! Does the device wait? Feeds emulated accelerators from files like those of MLPerf Storage's training workloads, and
//! from a producer that needs 80 % of the step time.
//!
//! `cargo bench -p benches --bench consumer --features compress [-- NAME …]`. An accelerator is a sleep, as in MLPerf
//! Storage, and AU is computed alike: see [`Metrics`]. Differences from MLPerf Storage, all of which are printed:
//! - Sample sizes, batch sizes and step times are the published values, but there are fewer files, read repeatedly.
//!   They are in the page cache, so the bench measures the loader and not the disk. MLPerf requires data of five times
//!   the memory.
//! - Samples of unet3d are `.npz`, as in MLPerf. The other workloads use TFRecord there, and here rows of `.npy`
//!   (without frame and checksum) and `.npz` (with a checksum over all bytes).
//! - There is one accelerator, one endless epoch, and a fixed number of steps.
//!
//! Each workload runs inline, with a thread per core, and in a worker process with default options. Measures wall time
//! and needs a machine with a spare core, although a sleeping accelerator uses none.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gristmill::consumer::{Emulated, Metrics, feed};
use gristmill::dataset::map::Range;
use gristmill::workers::MpOptions;
use gristmill::{Array, BoxIter, Element, Error, IterDatasetExt, Load, MapDatasetExt, Result};
use serde::{Deserialize, Serialize};

#[path = "support/mlperf.rs"]
mod mlperf;
#[path = "support/random.rs"]
mod random;

use mlperf::{WORKLOADS, Workload};

/// Steps at the start that are excluded, as in MLPerf.
const EXCLUDED: usize = 1;
/// Minimum number of measured steps, and minimum seconds of measurement.
const STEPS: f64 = 20.0;
const TIME: f64 = 3.0;

fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str()));
    for workload in WORKLOADS.iter().filter(|workload| wanted(workload.name)) {
        from_files(workload)?;
    }
    if wanted("producer") {
        produced()?;
    }
    Ok(())
}

/// Description of a pipeline, for this process and for workers.
#[derive(Clone, Serialize, Deserialize)]
enum Made {
    /// Samples of the workload with this number, from a folder.
    Files(usize, PathBuf),
    /// Batches that each occupy the producer for `us` microseconds, computing or waiting.
    Produced { us: u64, busy: bool },
}

fn pipeline(made: Made) -> Result<BoxIter<Element>> {
    match made {
        Made::Files(number, folder) => {
            let workload = WORKLOADS.get(number).ok_or_else(|| Error::config("no such workload"))?;
            Ok(workload.samples(&folder)?.to_iter().batch(workload.batch_size).boxed())
        }
        Made::Produced { us, busy } => {
            let batch = Array::builder(gristmill::DType::I32, &[32, 1024])?.freeze();
            let produce = move |_: i64| {
                let (start, time) = (Instant::now(), Duration::from_micros(us));
                while busy && start.elapsed() < time {
                    std::hint::spin_loop();
                }
                std::thread::sleep(time.saturating_sub(start.elapsed()));
                Element::new().with("tokens", batch.clone())
            };
            Ok(Range::new(0, i64::MAX / 2).map(produce).to_iter().boxed())
        }
    }
}

/// Evaluator of the pipeline.
#[derive(Clone, Copy)]
enum By {
    Inline,
    Threads,
    Worker,
}

impl By {
    const ALL: [Self; 3] = [Self::Inline, Self::Threads, Self::Worker];

    fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Threads => "a thread a core",
            Self::Worker => "a worker",
        }
    }

    /// Returns the metrics of a consumer with steps of `step`.
    fn run(self, made: &Made, step: Duration) -> Result<Metrics> {
        let loader = pipeline(made.clone())?.loader();
        let loader = match self {
            Self::Inline => loader,
            Self::Threads => loader.threads(std::thread::available_parallelism().map_or(1, usize::from)),
            Self::Worker => loader.mp_prefetch(pipeline, made, MpOptions::auto())?,
        };
        let steps = (TIME / step.as_secs_f64()).max(STEPS) as usize + EXCLUDED;
        let rows = |batch: &Element| batch.num_rows().map_or(1, |rows| rows as u64);
        let timeline = feed(loader.build()?.take(steps), &mut Emulated::new(step), 0, rows)?;
        Metrics::of(&timeline, EXCLUDED).ok_or_else(|| Error::data("the pipeline ended early"))
    }
}

fn from_files(workload: &'static Workload) -> Result<()> {
    let Workload { name, files, published_files, samples_per_file, batch_size, .. } = workload;
    let folder = tempfile::tempdir().map_err(|e| Error::io(e, std::env::temp_dir()))?;
    let bytes = workload.write(folder.path())?;
    println!(
        "{name}: {files} files of {published_files}, {samples_per_file} samples each, {:.2} GB, batches of {batch_size}",
        bytes as f64 / 1e9
    );
    let number = WORKLOADS.iter().position(|other| other.name == *name).unwrap_or_default();
    let made = Made::Files(number, folder.path().to_owned());
    for (accelerator, step) in [("A100", workload.a100_s), ("H100", workload.h100_s)] {
        for by in By::ALL {
            let metrics = by.run(&made, Duration::from_secs_f64(step))?;
            let rate = metrics.samples_per_s.unwrap_or_default() * workload.sample_bytes / 1e6;
            line(accelerator, by, step, &metrics, workload.asked, &format!("{rate:.0} MB/s"));
        }
    }
    Ok(())
}

/// Runs a producer that takes 4 ms per step of 5 ms.
fn produced() -> Result<()> {
    println!("producer: batches of [32, 1024] int32 that take 4 ms each: 80 % of the step");
    for busy in [false, true] {
        for by in By::ALL {
            let metrics = by.run(&Made::Produced { us: 4000, busy }, Duration::from_millis(5))?;
            line(if busy { "busy" } else { "waiting" }, by, 5e-3, &metrics, 0.99, "");
        }
    }
    Ok(())
}

fn line(what: &str, by: By, step_s: f64, metrics: &Metrics, asked: f64, more: &str) {
    let percent = |share: f64| 100.0 * share;
    println!(
        "    {what:<8} {:<16} AU {:>5.1} % ({} {:.0})  stall {:>5.1} %  next() p50 {:>8.1} p99 {:>9.1} us, {:>5.1} % over 50 us  \
         step {:.2} of {:.2} ms  {} steps {more}",
        by.name(),
        percent(metrics.utilisation),
        match by {
            // Nothing is prefetched: shown for comparison.
            By::Inline => "not held to",
            _ if metrics.utilisation >= asked => "reaches",
            _ => "MISSES",
        },
        percent(asked),
        percent(metrics.stall),
        metrics.next_p50_us,
        metrics.next_p99_us,
        percent(metrics.next_over_50_us),
        metrics.step_ms,
        1e3 * step_s,
        metrics.steps,
    );
}
