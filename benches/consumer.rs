//! Does the device wait? Emulated accelerators fed from files with the shapes of MLPerf Storage's training workloads, and from
//! a producer that needs 80 % of the step's time.
//!
//! `cargo bench -p benches --bench consumer --features compress [-- NAME …]`. An accelerator is a sleep, as in MLPerf Storage; AU is counted as there, see
//! [`Metrics`]. What differs from there, all of it printed too:
//! - sizes of samples, batches and step times are the published ones; there are fewer files, and they are read again and again.
//!   They lie in the page cache, where MLPerf asks for five times the memory: it is the loader that is measured, not the disk;
//! - samples of unet3d are `.npz` as there; those of the other two are TFRecord there, here rows of `.npy` (no frame and no
//!   checksum is read) and `.npz` (a checksum over all of it is);
//! - one accelerator, one epoch without end, and so many steps.
//!
//! Each is run inline, with a thread for every core, and in a worker process as it is by default. Wall time: it wants a
//! machine with a core to spare, though a sleeping accelerator takes none.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gristmill::consumer::{Emulated, Metrics, feed};
use gristmill::dataset::map::Range;
use gristmill::workers::MpOptions;
use gristmill::{Array, BoxIter, Element, Error, IterDataset, Load, MapDataset, Result};
use serde::{Deserialize, Serialize};

#[path = "support/mlperf.rs"]
mod mlperf;
#[path = "support/random.rs"]
mod random;

use mlperf::{WORKLOADS, Workload};

/// Steps that do not count: what MLPerf leaves out.
const EXCLUDED: usize = 1;
/// At least so many steps count, and for so long.
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

/// What a pipeline is made of, in this process and in workers.
#[derive(Clone, Serialize, Deserialize)]
enum Made {
    /// Of the workload with this number, from a folder.
    Files(usize, PathBuf),
    /// Batches that each keep the producer for so many microseconds: busy, or waiting.
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

/// Who evaluates it.
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

    /// What steps of `step` see of the pipeline.
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

/// 4 ms of producing for every step of 5.
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
            // Nothing runs ahead of the step: shown for comparison.
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
