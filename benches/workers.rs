//! Worker processes against the machine's limits, measured in one run, so that every figure is a ratio.
//!
//! `cargo bench -p benches --bench workers [-- NAME …]`. A limit and the figure compared with it are measured in turns;
//! the result is the median.
//!
//! Several threads and processes are involved, so the bench measures wall time and needs an otherwise idle machine
//! (`uptime`). Hand-over is also given as CPU time of the busiest thread. That thread limits the rate if every thread
//! has a core, and other load hardly affects its CPU time.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{
    Array, Element, Error, IterDataset, IterDatasetExt, Load, Loader, LoaderBuilder, MapDatasetExt, Result,
};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/wanted.rs"]
mod wanted;

use cpu_clock::on_core;
use pairs::{median, pairs, shares};
use wanted::wanted;

const ROUNDS: usize = 9;
const MIB: usize = 1 << 20;

/// Runs both in turns after an unmeasured run each. Both return seconds, of which the median is returned.
fn turns(mut limit: impl FnMut() -> f64, mut ours: impl FnMut() -> f64) -> (f64, f64) {
    limit();
    ours();
    let (mut limits, mut figures): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| (limit(), ours())).unzip();
    (median(&mut limits), median(&mut figures))
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Prints a line: our rate and the limit's rate per second, and the share.
fn rate(name: &str, unit: &str, work: f64, (limit_s, ours_s): (f64, f64), limit: &str) {
    let (ours, best) = (work / ours_s, work / limit_s);
    println!("{name:<44} {ours:>8.2} {unit:<8} {:>6.1} % of {limit} ({best:.2})", 100.0 * ours / best);
}

/// Prints a line: the limit's CPU time as a share of the CPU time of the busiest threads.
fn busiest(limit_s: f64, mut threads: Vec<(String, f64)>) {
    threads.sort_by(|a, b| f64::total_cmp(&b.1, &a.1));
    let share = |s: f64| 100.0 * limit_s / s;
    let all: Vec<String> = threads.iter().take(4).map(|(name, s)| format!("{name} {:.0} %", share(*s))).collect();
    println!("    in CPU time of the thread: {}", all.join(", "));
}

/// Prints a line: our time and the limit's time.
fn time(name: &str, (limit_s, ours_s): (f64, f64), limit: &str) {
    println!("{name:<44} {:>8.1} us        {limit}: {:.1} us", 1e6 * ours_s, 1e6 * limit_s);
}

/// A bench that measures and prints.
type Bench = fn() -> Result<()>;

fn main() -> Result<()> {
    let benches: [(&str, Bench); 7] = [
        ("batches", batches),
        ("elements", elements),
        ("round-trip", round_trip),
        ("start", start),
        ("state", state),
        ("first", first),
        ("telemetry", telemetry),
    ];
    benches.iter().filter(|(name, _)| wanted(name)).try_for_each(|(_, bench)| bench())
}

/// A single worker, without tuning: the measured settings must not change.
fn options() -> MpOptions {
    MpOptions::auto().workers(1).ram_budget(1 << 30).worker_heap(256 << 20).tune(false)
}

/// Elements of `bytes` bytes, prepared in the worker: only the hand-over remains.
fn ready(bytes: usize) -> Result<impl IterDataset<Item = Element>> {
    let array = Array::from_vec((0..bytes as u64 / 8).collect::<Vec<u64>>());
    Ok(Range::new(0, i64::MAX).map(move |_| Element::new().with("x", array.clone())).to_iter())
}

/// Takes elements of an endless pipeline. The first `unmeasured` elements, prepared before the turn, do not count.
/// Returns the wall time, and adds the CPU time of every thread to `cpu`.
fn take<D: IterDataset<Item = Element> + 'static>(
    loader: &mut Loader<D>,
    unmeasured: usize,
    measured: usize,
    touch: impl Fn(&Element),
    cpu: &mut BTreeMap<String, f64>,
) -> f64 {
    let pull = |loader: &mut Loader<D>, n| {
        loader.by_ref().take(n).for_each(|element| touch(&element.expect("the pipeline has no errors")));
    };
    pull(loader, unmeasured);
    let before = threads_cpu_s(loader);
    let wall = seconds(|| pull(loader, measured));
    for (name, after) in threads_cpu_s(loader) {
        *cpu.entry(name.clone()).or_default() += after - before.get(&name).copied().unwrap_or(0.0);
    }
    wall
}

/// Hands elements over in turns with `copy`, and prints the comparison.
fn hand_over(
    name: &str,
    (unit, work): (&str, f64),
    copy: &mut dyn FnMut(),
    loader: &mut Loader<impl IterDataset<Item = Element> + 'static>,
    each: usize,
    touch: fn(&Element),
) {
    let (mut copying, mut threads) = (0.0, BTreeMap::new());
    let limit = || {
        let before = on_core();
        let wall = seconds(&mut *copy);
        copying += (on_core() - before).as_secs_f64();
        wall
    };
    let times = turns(limit, || take(loader, each / 2, each, touch, &mut threads));
    rate(name, unit, work, times, "memcpy");
    busiest(copying, threads.into_iter().collect());
}

/// Measures batches of 16 MiB and 1 MiB, read or ignored by the consumer. The limit is a thread that copies equal bytes
/// to several places in turn, like the extents of the slab.
fn batches() -> Result<()> {
    for (bytes, each) in [(16 * MIB, 64), (MIB, 1024)] {
        let from = vec![1u8; bytes];
        let mut places = vec![vec![2u8; bytes]; 8];
        let mut copy = || (0..each).for_each(|i| black_box(&mut places[i % 8]).copy_from_slice(black_box(&from)));
        for threads in [1, 2] {
            let mut loader = mp_prefetch(ready, bytes, options().threads_per_worker(threads))?.build()?;
            for (what, touch) in [("not looked at", skip as fn(&Element)), ("every byte read", sum)] {
                let name = format!("batches: {} MiB, {threads} threads, {what}", bytes / MIB);
                let work = ("GB/s", (bytes * each) as f64 / 1e9);
                hand_over(&name, work, &mut copy, &mut loader, each, touch);
            }
        }
    }
    Ok(())
}

fn skip(_: &Element) {}

fn sum(element: &Element) {
    let words = element.array("x").and_then(|x| x.as_slice::<u64>()).expect("they are there");
    black_box(words.iter().fold(0, |sum, word| u64::wrapping_add(sum, *word)));
}

/// Measures elements of 1 KiB, against copying them one by one.
fn elements() -> Result<()> {
    const EACH: usize = 400_000;
    let from = vec![1u8; 1024];
    let mut places = vec![2u8; 64 * MIB];
    let mut copy = || {
        for i in 0..EACH {
            let at = 1024 * (i % (64 << 10));
            black_box(&mut places[at..at + 1024]).copy_from_slice(black_box(&from));
        }
    };
    for threads in [1, 2] {
        let mut loader = mp_prefetch(ready, 1024, options().threads_per_worker(threads))?.build()?;
        let name = format!("elements: 1 KiB, {threads} threads");
        hand_over(&name, ("M/s", EACH as f64 / 1e6), &mut copy, &mut loader, EACH, skip);
    }
    Ok(())
}

fn epochs_of_one(epochs: u64) -> Result<impl IterDataset<Item = i64>> {
    Ok(Range::new(0, 1).to_iter().repeat(Some(epochs)))
}

/// Measures epochs of a single element, each requested after the previous has arrived: a task to the worker, its
/// answer, and the step to the thread of the stateful stages. The limit is a byte to another thread and back.
fn round_trip() -> Result<()> {
    const EACH: usize = 2000;
    let epochs = ((ROUNDS + 2) * EACH) as u64;
    let mut loader = mp_prefetch(epochs_of_one, epochs, options().threads_per_worker(1))?.build()?;
    let (mut here, mut there) = UnixStream::pair().expect("two sockets");
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
    });
    let mut socket = || {
        seconds(|| {
            for _ in 0..EACH {
                here.write_all(&[1]).expect("the other thread listens");
                here.read_exact(&mut [0]).expect("and answers");
            }
        }) / EACH as f64
    };
    let ours = || seconds(|| loader.by_ref().take(EACH).for_each(|element| assert!(element.is_ok()))) / EACH as f64;
    time("round trip: a task and its answer", turns(&mut socket, ours), "a byte over a socket and back");
    drop(here);
    echo.join().expect("it ends with its socket");
    Ok(())
}

fn small(len: i64) -> Result<impl IterDataset<Item = i64>> {
    Ok(Range::new(0, len).to_iter())
}

/// Measures the time to the first element: process, pipeline and task. The limit is the start of a program without
/// work.
fn start() -> Result<()> {
    let nothing = || seconds(|| assert!(std::process::Command::new("true").status().is_ok()));
    let ours = || to_first(mp_prefetch(small, 100, options()).expect("it is a pipeline"));
    time("start: a worker and its first element", turns(nothing, ours), "`true`, run");
    Ok(())
}

/// Returns the seconds until the first element. The shutdown does not count.
fn to_first<D: IterDataset + 'static>(builder: LoaderBuilder<D>) -> f64 {
    let start = Instant::now();
    let mut loader = builder.build().expect("it starts");
    black_box(loader.next().expect("an element").expect("no error"));
    start.elapsed().as_secs_f64()
}

fn packed(len: i64) -> Result<impl IterDataset<Item = Element>> {
    let tokens = |x: i64| Element::new().with("tokens", Array::from_vec(vec![x as i32; 1 + (x % 300) as usize]));
    let rows = WindowPackOptions::new(RowSpec::new([("tokens", 1024)]));
    Ok(Range::new(0, len)
        .seed(1)
        .shuffle(None)
        .map(tokens)
        .to_iter()
        .window_shuffle(100, None)
        .window_pack(rows)
        .batch(8))
}

/// Measures the state of a pipeline that holds hundreds of sequences, in the middle of a run.
fn state() -> Result<()> {
    const EACH: usize = 200;
    let mut loader = mp_prefetch(packed, 1_000_000, options())?.build()?;
    loader.by_ref().take(20).try_for_each(|batch| batch.map(drop))?;
    let json = loader.state()?.to_json();
    let copy = || seconds(|| (0..EACH).for_each(|_| drop(black_box(json.clone())))) / EACH as f64;
    let ours = || seconds(|| (0..EACH).for_each(|_| drop(black_box(loader.state().expect("a state"))))) / EACH as f64;
    let text = format!("a copy of its {} bytes of JSON", json.len());
    time("state: of a pipeline that packs", turns(copy, ours), &text);
    Ok(())
}

fn shuffled(_: ()) -> Result<impl IterDataset<Item = Vec<i64>>> {
    Ok(Range::new(0, 1_000_000_000).seed(1).shuffle(None).map(|x| x * 2).to_iter().batch(32))
}

/// Measures the first batch of 10^9 shuffled elements, in this process and from a worker.
fn first() -> Result<()> {
    let inline = || to_first(shuffled(()).expect("it is a pipeline").loader());
    let ours = || to_first(mp_prefetch(shuffled, (), options()).expect("it is a pipeline"));
    time("first: batch of 10^9 shuffled, in a worker", turns(inline, ours), "in process");
    Ok(())
}

/// Takes about 5 us. Never inlined: copies of a loop at different addresses may differ in speed.
#[inline(never)]
fn work(x: i64) -> i64 {
    (0..5000).fold(x, |x, i| black_box(x.rotate_left(5) ^ i))
}

fn working(_: ()) -> Result<impl IterDataset<Item = i64>> {
    Ok(Range::new(0, i64::MAX).map(work).map(work).map(work).to_iter())
}

/// Measures CPU time of the worker per element, with and without counters, which only the worker updates.
fn telemetry() -> Result<()> {
    const EACH: usize = 1_000;
    let run = |counted: bool| {
        let options = options().threads_per_worker(1).counted(counted);
        let mut loader = mp_prefetch(working, (), options)?.build()?;
        loader.by_ref().take(EACH / 2).try_for_each(|x| x.map(drop))?;
        // Called only once: a report makes the worker send its counts, which is not part of counting.
        let pid =
            loader.report().workers.and_then(|report| Some(report.workers.first()?.pid)).expect("it has a worker");
        pin(pid);
        let mut before = at_rest(pid);
        Ok::<_, Error>(move || {
            loader.by_ref().take(EACH).for_each(|x| assert!(x.is_ok()));
            let after = at_rest(pid);
            after - std::mem::replace(&mut before, after)
        })
    };
    // Many short turns: the difference is smaller than the variation of the machine's speed. Turns are added up,
    // because each evaluates only a few ranges, one more or less.
    let (mut without, mut with) = (run(false)?, run(true)?);
    let mut block = || {
        let turns = pairs(48, || Ok(without()), || Ok(with()))?;
        Ok::<_, Error>(turns.into_iter().fold((0.0, 0.0), |sum, turn| (sum.0 + turn.0, sum.1 + turn.1)))
    };
    let blocks = (0..21).map(|_| block()).collect::<Result<Vec<_>>>()?;
    let [low, middle, high] = shares(&blocks);
    println!("telemetry: elements of 15 us, counted: {middle:.1} % of the same uncounted ({low:.1} to {high:.1})");
    Ok(())
}

/// Pins all threads of a process to the last core: cores may differ in speed.
fn pin(pid: u32) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut last = rustix::thread::CpuSet::new();
    last.set(cores - 1);
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let id = thread.file_name().to_str().and_then(|id| rustix::process::Pid::from_raw(id.parse().ok()?));
        let _ = rustix::thread::sched_setaffinity(id, &last);
    }
}

/// Returns the CPU seconds of the process once it has prefetched to its limit. Between two such moments a worker
/// evaluates exactly the number of elements taken.
fn at_rest(pid: u32) -> f64 {
    let mut before = threads_s(&format!("/proc/{pid}/task")).values().sum::<f64>();
    loop {
        std::thread::sleep(Duration::from_millis(10));
        let after = threads_s(&format!("/proc/{pid}/task")).values().sum::<f64>();
        if after - before < 0.000_5 {
            return after;
        }
        before = after;
    }
}

/// Returns the CPU seconds of each thread of a process, by name.
fn threads_s(tasks: &str) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for thread in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
        let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let ns = read("schedstat").split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
        *all.entry(read("comm").trim().to_owned()).or_default() += ns.unwrap_or(0.0) * 1e-9;
    }
    all
}

/// Returns the CPU seconds of each worker and of each thread of this process, by name.
fn threads_cpu_s<D: IterDataset + 'static>(loader: &mut Loader<D>) -> BTreeMap<String, f64> {
    let workers = loader.report().workers.expect("it has a worker").workers;
    let mut all = threads_s("/proc/self/task");
    all.extend(workers.iter().map(|w| (format!("worker {}", w.number), w.cpu_s)));
    all
}
