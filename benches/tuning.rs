//! Online tuning against fixed settings, for pipelines of sixteen shapes. Eight start from the worst possible setting.
//! Eight start as `MpOptions::auto()` and `Executor::Auto` do: custom sources that wait 2, 5 or 40 ms and, with the
//! feature `parquet`, shuffled files whose decoded row groups take eight times the cache.
//!
//! `cargo bench -p benches --bench tuning [-- NAME …]`. For each shape, the bench runs every setting of a grid briefly.
//! Then it tunes from one thread and a window of one range until nothing changes for a while, at most 30 s. Finally the
//! tuned pipeline and the best fixed setting run in turns, so that other load on the machine affects both.
//!
//! Wall time with several threads and processes: needs an otherwise idle machine (`uptime`).

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::report::WorkersReport;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, BoxIter, Element, Executor, IterDataset, IterDatasetExt, Load, Loader, MapDatasetExt, Result};
use serde::{Deserialize, Serialize};

#[cfg(feature = "parquet")]
#[path = "support/parquet_file.rs"]
mod parquet_file;
#[path = "support/process_cpu.rs"]
mod process_cpu;

use process_cpu::own_cpu_s;

/// Measured time of each setting of the grid, after a warm-up of equal length.
const FIXED: Duration = Duration::from_millis(800);
/// Maximum duration of tuning, and the time without changes after which tuning has settled.
const TUNING: Duration = Duration::from_secs(30);
const SETTLED: Duration = Duration::from_secs(7);
/// Number and length of turns of the tuned and the best fixed pipeline. Before each turn the other pipeline fills its
/// buffers, so that it uses no cores during the turn.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_millis(800);

fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    println!("{:<15} {:>7} {:>12} {:>12}  {:<28} CPU", "shape", "reached", "tuned /s", "best /s", "threads × window");
    let shapes = shapes();
    let mut wanted =
        shapes.iter().filter(|shape| names.is_empty() || names.iter().any(|name| shape.name.contains(name)));
    wanted.try_for_each(run)
}

/// A pipeline and its consumer.
struct Shape {
    name: &'static str,
    work: Work,
    /// Time that the consumer spends on an element, by seconds since the start.
    step: fn(f64) -> Duration,
    /// Numbers of threads to try.
    threads: &'static [usize],
    how: How,
}

/// Evaluator, and starting point of tuning.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// A worker that starts with one thread and a window of one range.
    Worst,
    /// A worker with default options.
    Worker,
    /// Threads of this process.
    Threads,
}

/// Cost of an element.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Work {
    /// Microseconds of computation.
    compute: u64,
    /// Microseconds of waiting.
    wait: u64,
    /// Factor on the waiting time of one element in a hundred.
    tail: u64,
    /// Bytes of the element, prepared in advance.
    bytes: usize,
    /// If not 0, elements are allocated: their size starts at 1 KiB and doubles after every `doubling` elements, up to
    /// `bytes`.
    doubling: u64,
    /// Whether the element is a batch of a shuffled Parquet file; the other fields are then unused.
    parquet: bool,
}

const NOTHING: Work = Work { compute: 0, wait: 0, tail: 1, bytes: 1024, doubling: 0, parquet: false };

fn at_once(_: f64) -> Duration {
    Duration::ZERO
}

fn shapes() -> Vec<Shape> {
    const CORES: &[usize] = &[1, 2, 4];
    const MANY: &[usize] = &[1, 4, 16, 64];
    const BEYOND: &[usize] = &[2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
    let source = |name, ms: u64, how| Shape {
        name,
        work: Work { wait: 1000 * ms, ..NOTHING },
        step: at_once,
        threads: BEYOND,
        how,
    };
    let parquet =
        |name, how| Shape { name, work: Work { parquet: true, ..NOTHING }, step: at_once, threads: &[1, 2, 4, 8], how };
    let mut shapes = vec![
        Shape { name: "cpu", work: Work { compute: 1000, ..NOTHING }, step: at_once, threads: CORES, how: How::Worst },
        Shape { name: "io", work: Work { wait: 10_000, ..NOTHING }, step: at_once, threads: MANY, how: How::Worst },
        Shape {
            name: "hand-over",
            work: Work { bytes: 1 << 20, ..NOTHING },
            step: at_once,
            threads: CORES,
            how: How::Worst,
        },
        // 2.5 threads are enough to feed the consumer.
        Shape {
            name: "consumer",
            work: Work { wait: 5000, ..NOTHING },
            step: |_| Duration::from_millis(2),
            threads: MANY,
            how: How::Worst,
        },
        // The limit is at first the number of threads, then the number of cores.
        Shape {
            name: "two",
            work: Work { compute: 500, wait: 4500, ..NOTHING },
            step: at_once,
            threads: MANY,
            how: How::Worst,
        },
        Shape {
            name: "tail",
            work: Work { wait: 1000, tail: 100, ..NOTHING },
            step: at_once,
            threads: MANY,
            how: How::Worst,
        },
        // After eight seconds the consumer becomes ten times faster.
        Shape {
            name: "phase",
            work: Work { wait: 5000, ..NOTHING },
            step: |at_s| Duration::from_millis(if at_s < 8.0 { 10 } else { 1 }),
            threads: MANY,
            how: How::Worst,
        },
        Shape {
            name: "growing",
            work: Work { bytes: 4 << 20, doubling: 300, ..NOTHING },
            step: at_once,
            threads: CORES,
            how: How::Worst,
        },
        source("worker 2 ms", 2, How::Worker),
        source("worker 5 ms", 5, How::Worker),
        source("worker 40 ms", 40, How::Worker),
        source("threads 2 ms", 2, How::Threads),
        source("threads 5 ms", 5, How::Threads),
        source("threads 40 ms", 40, How::Threads),
    ];
    if cfg!(feature = "parquet") {
        shapes.extend([parquet("parquet worker", How::Worker), parquet("parquet threads", How::Threads)]);
    }
    shapes
}

fn pipeline((work, from, rounds): (Work, u64, u64)) -> Result<BoxIter<Element>> {
    #[cfg(feature = "parquet")]
    if work.parquet {
        return parquet_file::shuffled();
    }
    let ready = Array::from_vec(vec![1u8; work.bytes]);
    let element = move |x: i64| {
        black_box(spin(rounds));
        let x = x as u64 + from;
        let times = if x % 100 == 37 { work.tail } else { 1 };
        if work.wait > 0 {
            std::thread::sleep(Duration::from_micros(work.wait * times));
        }
        let array = match x.checked_div(work.doubling) {
            Some(doublings) => Array::from_vec(vec![x as u8; work.bytes.min(1024 << doublings.min(30))]),
            None => ready.clone(),
        };
        Element::new().with("x", array)
    };
    Ok(Range::new(0, i64::MAX / 2).map(element).to_iter().boxed())
}

/// Computes for `rounds` rounds. Waiting for a core adds to its duration.
#[inline(never)]
fn spin(rounds: u64) -> u64 {
    (0..rounds).fold(1u64, |x, i| black_box(x.rotate_left(5) ^ i))
}

/// Returns the rounds of [`spin`] that take `us` microseconds on an idle core. Calibrated once, so that all runs agree.
fn rounds(us: u64) -> u64 {
    static PER_US: OnceLock<f64> = OnceLock::new();
    let once = || {
        let start = Instant::now();
        black_box(spin(20_000));
        start.elapsed().as_secs_f64() * 1e6
    };
    let per_us = PER_US.get_or_init(|| 20_000.0 / (0..100).map(|_| once()).fold(f64::INFINITY, f64::min));
    (per_us * us as f64) as u64
}

/// Measurement of a setting.
#[derive(Clone, Copy, Default)]
struct Measured {
    elements: f64,
    wall_s: f64,
    cpu_s: f64,
}

impl Measured {
    fn rate(self) -> f64 {
        self.elements / self.wall_s
    }

    fn cores(self) -> f64 {
        self.cpu_s / self.wall_s
    }
}

/// A loader and its consumer.
struct Run<'a, D: IterDataset + 'static> {
    shape: &'a Shape,
    loader: Loader<D>,
}

impl<D: IterDataset<Item = Element> + 'static> Run<'_, D> {
    /// Consumes for `time`, as the consumer does `at_s` seconds after the start.
    fn go(&mut self, time: Duration, at_s: f64) -> Result<Measured> {
        let (cpu, start, mut elements) = (self.cpu_s(), Instant::now(), 0.0);
        while start.elapsed() < time {
            black_box(self.loader.next().transpose()?);
            let step = (self.shape.step)(at_s + start.elapsed().as_secs_f64());
            if !step.is_zero() {
                std::thread::sleep(step);
            }
            elements += 1.0;
        }
        Ok(Measured { elements, wall_s: start.elapsed().as_secs_f64(), cpu_s: self.cpu_s() - cpu })
    }

    fn workers(&mut self) -> WorkersReport {
        let report = self.loader.report();
        let here = WorkersReport {
            threads_per_worker: report.execution.threads,
            decisions: report.decisions,
            ..Default::default()
        };
        report.workers.unwrap_or(here)
    }

    /// Waits until the workers are idle.
    fn rest(&mut self) {
        for _ in 0..50 {
            let before = self.cpu_s();
            std::thread::sleep(Duration::from_millis(100));
            if self.cpu_s() - before < 0.01 {
                return;
            }
        }
    }

    /// Returns the CPU seconds of the workers and this process.
    fn cpu_s(&mut self) -> f64 {
        self.workers().workers.iter().map(|worker| worker.cpu_s).sum::<f64>() + own_cpu_s()
    }
}

/// Starts a run with `threads` and `window`. An untuned run of a growing pipeline starts after its growth.
fn start(
    shape: &Shape,
    threads: usize,
    window: usize,
    tuned: bool,
) -> Result<Run<'_, impl IterDataset<Item = Element> + 'static + use<>>> {
    let most = shape.threads.last().copied().unwrap_or(1);
    let from = if tuned { 0 } else { 13 * shape.work.doubling };
    let cfg = (shape.work, from, rounds(shape.work.compute));
    let options = match (shape.how, tuned) {
        (How::Threads, _) => {
            let executor = if tuned { Executor::Auto } else { Executor::Threads(threads) };
            return Ok(Run { shape, loader: pipeline(cfg)?.loader().executor(executor).build()? });
        }
        (How::Worker, true) => MpOptions::auto(),
        (_, true) => MpOptions::auto().threads_per_worker(most).start_threads(threads).start_window(window),
        (_, false) => MpOptions::auto().threads_per_worker(threads).start_window(window).tune(false),
    };
    Ok(Run { shape, loader: mp_prefetch(pipeline, cfg, options.ram_budget(4 << 30))?.build()? })
}

/// Seconds since the start after all changes of the consumer.
const LATE: f64 = 1e9;

fn run(shape: &Shape) -> Result<()> {
    let mut best = (Measured::default(), 1, 1);
    let mut grid = Vec::new();
    for &threads in shape.threads {
        let windows: &[usize] = match shape.how {
            How::Threads => &[0],
            How::Worker => &[1024],
            How::Worst => &[1, 16, 256],
        };
        for &window in windows {
            let mut run = start(shape, threads, window, false)?;
            run.go(FIXED, LATE)?;
            let measured = run.go(FIXED, LATE)?;
            grid.push((measured, threads, window));
            if best.0.elements == 0.0 || measured.rate() > best.0.rate() {
                best = (measured, threads, window);
            }
        }
    }
    let mut tuned = start(shape, 1, 1, true)?;
    let settled_s = tune(&mut tuned)?;
    let mut fixed = start(shape, best.1, best.2, false)?;
    fixed.go(FIXED, LATE)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        // Consumes the prepared elements first: they do not count.
        fixed.rest();
        tuned.go(TURN / 4, LATE)?;
        ours.push(tuned.go(TURN, LATE)?);
        tuned.rest();
        fixed.go(TURN / 4, LATE)?;
        theirs.push(fixed.go(TURN, LATE)?);
    }
    let (ours, theirs) = (middle(ours), middle(theirs));
    let now = tuned.workers();
    let setting = format!("{} × {}, best {} × {}", now.threads_per_worker, now.window, best.1, best.2);
    println!(
        "{:<15} {:>5.1} % {:>12.1} {:>12.1}  {:<28} {:.2} cores, best {:.2}; {} decisions in {:.0} s",
        shape.name,
        100.0 * ours.rate() / theirs.rate(),
        ours.rate(),
        theirs.rate(),
        setting,
        ours.cores(),
        theirs.cores(),
        now.decisions.len(),
        settled_s,
    );
    for (measured, threads, window) in grid {
        let rate = measured.rate();
        println!("    fixed {threads:>2} × {window:<3} {rate:>10.1}/s, {:.2} cores", measured.cores());
    }
    now.decisions.iter().for_each(|decision| println!("    {decision}"));
    Ok(())
}

/// Runs until nothing has changed for a while. Returns the time of the last change.
fn tune<D: IterDataset<Item = Element> + 'static>(run: &mut Run<'_, D>) -> Result<f64> {
    let (begin, mut decisions, mut changed_s) = (Instant::now(), 0, 0.0);
    loop {
        run.go(Duration::from_millis(500), begin.elapsed().as_secs_f64())?;
        let (now, elapsed) = (run.workers().decisions.len(), begin.elapsed());
        if now > decisions {
            (decisions, changed_s) = (now, elapsed.as_secs_f64());
        }
        // The consumer's change of speed must be over.
        let settled = elapsed.as_secs_f64() - changed_s > SETTLED.as_secs_f64() && elapsed > 2 * SETTLED;
        if settled || elapsed > TUNING {
            return Ok(changed_s);
        }
    }
}

/// Returns the measurement with the median rate.
fn middle(mut all: Vec<Measured>) -> Measured {
    all.sort_by(|a, b| f64::total_cmp(&a.rate(), &b.rate()));
    all[all.len() / 2]
}
