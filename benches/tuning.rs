//! Tuning on line against fixed settings: pipelines of sixteen shapes. Eight are started from the worst setting there is, and eight
//! as `MpOptions::auto()` and `Executor::Auto` start: a user's source that waits 2, 5 or 40 ms, and, with the feature `parquet`, a
//! shuffled file whose decoded row groups take eight times the cache.
//!
//! `cargo bench -p benches --bench tuning [-- NAME …]`. Of each shape, settings of a grid are run for a moment each; then it runs
//! from one thread and a window of one range until nothing has changed for a while, 30 s at most. The two are measured in
//! turns, tuned and the best of the grid, so that what the machine does meanwhile changes both.
//!
//! Wall time, several threads and processes: it wants a calm machine (`uptime`).

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::report::WorkersReport;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, BoxIter, Element, Executor, IterDataset, Load, Loader, MapDataset, Result};
use serde::{Deserialize, Serialize};

#[cfg(feature = "parquet")]
#[path = "support/parquet_file.rs"]
mod parquet_file;
#[path = "support/process_cpu.rs"]
mod process_cpu;

use process_cpu::own_cpu_s;

/// Each setting of the grid runs so long, after as long again in which it gets going.
const FIXED: Duration = Duration::from_millis(800);
/// Tuning takes so long at most, and is over when nothing has changed for so long.
const TUNING: Duration = Duration::from_secs(30);
const SETTLED: Duration = Duration::from_secs(7);
/// Turns of the tuned one and the best fixed one, and how long each is; before each, the other one has got as far ahead as it
/// may, and no longer takes cores.
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
    /// What the consumer does with an element, after so many seconds.
    step: fn(f64) -> Duration,
    /// Threads to try.
    threads: &'static [usize],
    how: How,
}

/// Who evaluates, and where tuning begins.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// A worker, from one thread and a window of one range.
    Worst,
    /// A worker with the options as they are by default.
    Worker,
    /// Threads of this process.
    Threads,
}

/// What an element costs.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Work {
    /// Microseconds for which a core is busy.
    compute: u64,
    /// Microseconds of waiting.
    wait: u64,
    /// One in a hundred waits so many times as long.
    tail: u64,
    /// Bytes, which lie ready.
    bytes: usize,
    /// Elements that are made: they begin with 1 KiB, and double after every so many, until they have `bytes`.
    doubling: u64,
    /// Whether it is a batch of rows of a shuffled Parquet file, and nothing of this.
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
        // Fed by 2.5 threads.
        Shape {
            name: "consumer",
            work: Work { wait: 5000, ..NOTHING },
            step: |_| Duration::from_millis(2),
            threads: MANY,
            how: How::Worst,
        },
        // At first threads, then cores are the limit.
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
        // The consumer wants ten times as much after eight seconds.
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

/// Keeps a core busy: who waits for one takes longer.
#[inline(never)]
fn spin(rounds: u64) -> u64 {
    (0..rounds).fold(1u64, |x, i| black_box(x.rotate_left(5) ^ i))
}

/// As many as take so many microseconds where nothing else runs; measured once, so that every run does the same.
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

/// What was measured of a setting.
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
    /// Consumes for some time, as one does so many seconds after the start.
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
        let here =
            WorkersReport { threads_per_worker: report.threads, decisions: report.decisions, ..Default::default() };
        report.workers.unwrap_or(here)
    }

    /// Waits until the workers have nothing more to do.
    fn rest(&mut self) {
        for _ in 0..50 {
            let before = self.cpu_s();
            std::thread::sleep(Duration::from_millis(100));
            if self.cpu_s() - before < 0.01 {
                return;
            }
        }
    }

    /// Of workers and this process.
    fn cpu_s(&mut self) -> f64 {
        self.workers().workers.iter().map(|worker| worker.cpu_s).sum::<f64>() + own_cpu_s()
    }
}

/// A run that starts with `threads` and `window`; of a pipeline that grows, behind that if nothing is tuned.
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

/// Behind every change that its consumer makes.
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
        // What lay ready does not count.
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

/// Runs until nothing has changed for a while; returns when that began.
fn tune<D: IterDataset<Item = Element> + 'static>(run: &mut Run<'_, D>) -> Result<f64> {
    let (begin, mut decisions, mut changed_s) = (Instant::now(), 0, 0.0);
    loop {
        run.go(Duration::from_millis(500), begin.elapsed().as_secs_f64())?;
        let (now, elapsed) = (run.workers().decisions.len(), begin.elapsed());
        if now > decisions {
            (decisions, changed_s) = (now, elapsed.as_secs_f64());
        }
        // No earlier than the consumer has changed what it wants.
        let settled = elapsed.as_secs_f64() - changed_s > SETTLED.as_secs_f64() && elapsed > 2 * SETTLED;
        if settled || elapsed > TUNING {
            return Ok(changed_s);
        }
    }
}

/// The one with the median rate.
fn middle(mut all: Vec<Measured>) -> Measured {
    all.sort_by(|a, b| f64::total_cmp(&a.rate(), &b.rate()));
    all[all.len() / 2]
}
