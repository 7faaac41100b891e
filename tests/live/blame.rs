//! Faults are put into pipelines at random, and the report says which it was: its cause, the stage, and the element where it was one's.
//!
//! Each sleep here stands for work of a stage, of the consumer or of a store.
#![cfg(all(feature = "workers", feature = "http", feature = "formats", target_os = "linux"))]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::objects::{Server, Trouble};
use gristmill::dataset::map::{Range, Source};
use gristmill::report::{Cause, Change};
use gristmill::source::Npy;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, Element, Executor, IterDataset, IterDatasetExt, Load, Loader, MapDatasetExt, Report, Result};
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;

/// Elements of a pass, and what each takes in a stage that nothing is wrong with.
const LEN: i64 = 320;
const USUAL: Duration = Duration::from_micros(50);

/// Stages of the pipeline that take time: two in front of the border, and one behind it.
const STAGES: [usize; 3] = [2, 3, 6];

/// What is wrong with `range → shuffle → map → map → to_iter → limit → map → batch`.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Fault {
    /// One element takes so many milliseconds in the map of this stage.
    Element { stage: usize, value: i64, ms: u64 },
    /// All elements take so many microseconds in the map of this stage.
    Stage { stage: usize, us: u64 },
    /// The worker dies at this element, the first time.
    Death { value: i64, once: PathBuf },
    /// The step of the consumer takes long: it waits for nothing.
    Step { us: u64 },
    /// The consumer holds so many elements from one on for a while, and with them all memory.
    Leases { from: usize, ms: u64 },
    /// A request to a store breaks off after so many blocks.
    Cut { blocks: usize },
    /// A store sends so many bytes a second.
    Slow { bytes: u64 },
    /// The budget has memory for few elements at a time, which take so many microseconds each, and most threads wait for it.
    Memory { us: u64 },
}

impl Fault {
    /// Time that value `x` takes in the map of `stage`.
    fn time(&self, stage: usize, x: i64) -> Duration {
        match *self {
            Self::Element { stage: at, value, ms } if at == stage && value == x => Duration::from_millis(ms),
            Self::Stage { stage: at, us } if at == stage => Duration::from_micros(us),
            _ if stage == 6 => Duration::ZERO,
            _ => USUAL,
        }
    }

    /// Does what becomes of value `x` in the map of `stage`.
    fn pass(&self, stage: usize, x: i64) -> i64 {
        if let Self::Death { value, once } = self
            && (stage, x) == (2, *value)
            && std::fs::File::create_new(once).is_ok()
        {
            std::process::abort();
        }
        let time = self.time(stage, x);
        if !time.is_zero() {
            // The fault.
            std::thread::sleep(time);
        }
        x
    }

    /// Whether `report` says it.
    fn is_found(&self, report: &Report) -> bool {
        let longest = report.waits.longest_waits.first();
        let longest_is = |cause| longest.is_some_and(|wait| wait.cause == cause);
        match *self {
            Self::Element { stage: 6, .. } => longest_is(Cause::Reader),
            Self::Element { stage, value, .. } => {
                let record = format!("record {value} of range");
                longest_is(Cause::HeadOfLine)
                    && longest
                        .is_some_and(|wait| wait.suspect.record.as_ref() == Some(&record) && wait.stage == Some(stage))
            }
            Self::Stage { stage, .. } => {
                report.waits.why.first().is_some_and(|why| why.stage == Some(stage))
                    && report.verdict.stage == Some(stage)
            }
            Self::Death { .. } => longest_is(Cause::Death),
            Self::Step { .. } => {
                report.waits.steady_wait_share < 0.1 && ["consumer", "start-up"].contains(&&*report.verdict.bottleneck)
            }
            Self::Leases { .. } => longest_is(Cause::Leases),
            Self::Cut { .. } => {
                let retried = longest.and_then(|wait| wait.store).is_some_and(|used| used.retries > 0);
                longest_is(Cause::Store) && retried
            }
            Self::Slow { .. } => {
                report.waits.why.first().is_some_and(|why| why.cause == Cause::Store && why.stage == Some(0))
                    && report.verdict.bottleneck == "store"
            }
            Self::Memory { .. } => {
                report
                    .waits
                    .why
                    .iter()
                    .find(|why| why.cause != Cause::Start)
                    .is_some_and(|why| why.cause == Cause::Memory)
                    && report.verdict.bottleneck == "memory"
                    && matches!(report.verdict.advice[0].change, Change::Budget(_))
            }
        }
    }
}

/// Numbers that look like chance, the same each time: SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as usize % end
    }
}

/// Who evaluates.
#[derive(Clone, Copy, Debug)]
enum By {
    Threads,
    Workers,
}

/// The fault of this number, and who evaluates its pipeline.
fn fault(number: usize, folder: &std::path::Path) -> (Fault, By) {
    let mut draw = Draw(number as u64);
    let by = if draw.below(3) == 0 { By::Workers } else { By::Threads };
    // Not among the first, which are start-up.
    let value = |draw: &mut Draw| {
        let place = 60 + draw.below(200) as u64;
        let order = Range::new(0, LEN).shuffle(7).collect().unwrap();
        order[place as usize]
    };
    let fault = match number % 11 {
        0..3 => {
            Fault::Element { stage: STAGES[draw.below(3)], value: value(&mut draw), ms: 40 + draw.below(60) as u64 }
        }
        3 | 4 => match STAGES[draw.below(3)] {
            // Of the others, several work at a time.
            6 => Fault::Stage { stage: 6, us: 1000 + draw.below(500) as u64 },
            stage => Fault::Stage { stage, us: 3500 + draw.below(1500) as u64 },
        },
        5 => Fault::Death { value: value(&mut draw), once: folder.join(format!("{number}.died")) },
        6 => Fault::Step { us: 8000 + draw.below(4000) as u64 },
        7 => Fault::Leases { from: 40 + draw.below(20), ms: 50 + draw.below(10) as u64 },
        8 => Fault::Cut { blocks: 8 + draw.below(12) },
        9 => Fault::Slow { bytes: (10 + draw.below(10) as u64) * MIB },
        _ => Fault::Memory { us: 3000 + draw.below(2000) as u64 },
    };
    let by = if matches!(fault, Fault::Death { .. } | Fault::Leases { .. } | Fault::Memory { .. }) {
        By::Workers
    } else {
        by
    };
    (fault, by)
}

fn pipeline(fault: Fault) -> Result<impl IterDataset<Item = Vec<i64>>> {
    if let Fault::Death { .. } = fault {
        // As where files are opened: a worker in the place of another takes a while.
        std::thread::sleep(Duration::from_millis(30));
    }
    let fault = Arc::new(fault);
    let map = |stage: usize| {
        let fault = fault.clone();
        move |x| fault.pass(stage, x)
    };
    let ds = Range::new(0, LEN).shuffle(7).map(map(2)).map(map(3)).to_iter();
    Ok(ds.limit(LEN as u64).map(map(6)).batch(4))
}

/// Large elements, many of which do not fit into shared memory at a time.
fn large(_: ()) -> Result<impl IterDataset<Item = Element>> {
    elements(64 << 10, 2 * USUAL)
}

/// Elements of which hardly two fit into it, and that take so many microseconds.
fn huge(us: u64) -> Result<impl IterDataset<Item = Element>> {
    elements(200 << 10, Duration::from_micros(us))
}

/// Elements of so many numbers, each of which takes so long.
fn elements(numbers: usize, time: Duration) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        // The work of an element.
        std::thread::sleep(time);
        Element::new().with("x", Array::from_vec(vec![x; numbers]))
    };
    Ok(Range::new(0, 100).map(element).to_iter())
}

/// Two processes of two threads, or one with so little memory that a few of the large elements take all.
fn options(processes: usize) -> MpOptions {
    let budget = if processes == 1 { 74 } else { 256 };
    MpOptions::auto().workers(processes).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(budget * MIB)
}

/// Has every batch taken by `step`, and says where the time went.
fn taken<D: IterDataset + 'static>(mut loader: Loader<D>, mut step: impl FnMut(usize, D::Item)) -> Report {
    for (number, batch) in loader.by_ref().enumerate() {
        step(number, batch.unwrap());
    }
    loader.report()
}

/// A run with that fault.
fn run(fault: &Fault, by: By) -> Report {
    match *fault {
        Fault::Leases { from, ms } => {
            let held = Arc::new(Mutex::new(Vec::new()));
            taken(mp_prefetch(large, (), options(1)).unwrap().build().unwrap(), |number, element| {
                if number == from {
                    let held = held.clone();
                    std::thread::spawn(move || {
                        // The fault: memory that is held for a while.
                        std::thread::sleep(Duration::from_millis(ms));
                        held.lock().unwrap().clear();
                    });
                }
                if (from..from + 20).contains(&number) {
                    held.lock().unwrap().push(element);
                }
            })
        }
        Fault::Memory { us } => {
            let options = options(1).threads_per_worker(8);
            taken(mp_prefetch(huge, us, options).unwrap().build().unwrap(), |_, _| {})
        }
        Fault::Cut { .. } | Fault::Slow { .. } => {
            let (server, rows) = (Server::start(), 30_usize);
            let shape = [rows, 16 << 10];
            let mut bytes = Vec::new();
            let mut writer = gristmill::source::NpyWriter::options().rows(rows as u64).write_to(&mut bytes).unwrap();
            for row in 0..shape[0] as i64 {
                writer.write(&Element::new().with("data", Array::from_vec(vec![row; shape[1]]))).unwrap();
            }
            writer.finish().unwrap();
            let source = Npy::open(server.put("rows.npy", bytes)).unwrap();
            match *fault {
                Fault::Cut { blocks } => server.trouble([Trouble::Cut(blocks * (128 << 10))]),
                Fault::Slow { bytes } => server.limit(Some(bytes)),
                _ => {}
            }
            let slow = |row: Element| {
                // The usual work of an element.
                std::thread::sleep(USUAL);
                row
            };
            let ds = Source::new(source).map(slow).to_iter().batch(2);
            taken(ds.loader().executor(Executor::Threads(3)).build().unwrap(), |_, _| {})
        }
        _ => {
            let pause = if let Fault::Step { us } = fault { Duration::from_micros(*us) } else { Duration::ZERO };
            // The consumer's step, which may be the fault.
            let step = |_, _| std::thread::sleep(pause);
            match by {
                By::Threads => {
                    let ds = pipeline(fault.clone()).unwrap();
                    taken(ds.loader().executor(Executor::Threads(4)).build().unwrap(), step)
                }
                By::Workers => {
                    let processes = if let Fault::Death { .. } = fault { 1 } else { 2 };
                    taken(mp_prefetch(pipeline, fault.clone(), options(processes)).unwrap().build().unwrap(), step)
                }
            }
        }
    }
}

/// Checks that the shares add to the wait within a hundredth.
fn adds_up(report: &Report) {
    let (sum, waited) = (report.waits.why.iter().map(|why| why.share).sum::<f64>(), report.waits.consumer_wait_share);
    assert!((sum - waited).abs() <= 0.01 * waited.max(0.05), "{sum} of {waited}: {report}");
    // The table, the first line and the causes are sums of the same parts.
    for stage in &report.stages {
        let own: f64 = report.waits.why.iter().filter(|why| why.stage == Some(stage.id)).map(|why| why.share).sum();
        assert!((own - stage.wait_share).abs() < 1e-9, "{own} is not {}: {report}", stage.wait_share);
    }
    let stages: f64 = report.stages.iter().map(|stage| stage.wait_share).sum();
    let told = report.waits.startup_share + report.waits.handover_share + report.waits.aside_share + stages;
    assert!((told - sum).abs() < 1e-9, "{told} is not {sum}: {report}");
}

/// Faults, two of each kind, and how many pipelines run at a time: they mostly sleep.
const FAULTS: usize = 22;
const AT_A_TIME: usize = 3;

#[test]
fn faults_are_found() {
    let (next, missed, folder) = (AtomicUsize::new(0), Mutex::new(Vec::new()), tempfile::tempdir().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= FAULTS {
                        return;
                    }
                    let (fault, by) = fault(number, folder.path());
                    let report = run(&fault, by);
                    adds_up(&report);
                    if !fault.is_found(&report) {
                        let (longest, why) = (report.waits.longest_waits.first(), report.waits.why.iter().take(3));
                        let told = format!(
                            "{number} {fault:?} by {by:?}: {longest:?}\n{:?}\n{:?}",
                            why.collect::<Vec<_>>(),
                            report.verdict.text
                        );
                        missed.lock().unwrap().push(told);
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    eprintln!("{} of {FAULTS} are not found", missed.len());
    assert!(20 * missed.len() <= FAULTS, "{} of {FAULTS} are not found:\n{}", missed.len(), missed.join("\n\n"));
}
