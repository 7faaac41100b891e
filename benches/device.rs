//! Transfers to devices, on every plugin that `GRISTMILL_PJRT_PLUGIN` names (paths separated as in `PATH`):
//!
//!     GRISTMILL_PJRT_PLUGIN=PATH[:PATH …] cargo bench -p benches --features pjrt --bench device [-- keep]
//!
//! With `keep` the C library retains freed memory (`gristmill::device::keep_freed_memory`).
//!
//! Wall time, medians. A limit and the figure compared with it are measured in turns. Page faults are of the whole
//! process.

use std::hint::black_box;
use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::device::{Client, Device, DevicePut, Placement, Plugin, PutOptions, Staging, keep_freed_memory};
use gristmill::{Array, Batch, Buffer, DType, Element, Load, MapDatasetExt, Result};

const MIB: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a batch of one array that starts `offset` bytes after a page boundary.
fn batch(shape: &[usize], offset: usize) -> Batch {
    let len = 4 * shape.iter().product::<usize>();
    let memory = Buffer::from_vec(vec![1u8; len + 2 * 4096]);
    let start = memory.as_bytes().as_ptr().align_offset(4096) + offset;
    let data = memory.slice(start..start + len).expect("inside");
    Element::new().with("tokens", Array::new(DType::I32, shape, data).expect("as long as needed"))
}

/// Sends an endless stream of a few reused batches, which cost nothing to make.
fn put(
    device: &Device,
    batches: Vec<Batch>,
    options: PutOptions,
) -> Result<impl Iterator<Item = Result<gristmill::device::DeviceBatch>>> {
    let ds = Range::new(0, 1 << 40).map(move |i| batches[i as usize % batches.len()].clone()).to_iter();
    DevicePut::new(ds.loader().build()?, Placement::on(device), options)
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn micros(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Measures a whole `next`, beside the plugin's call alone.
fn latency(device: &Device) -> Result<()> {
    for (name, staging) in [("in place", Staging::WhereNeeded), ("through a slot", Staging::Always)] {
        let one = batch(&[32, 1024], 0);
        let mut stream = put(device, vec![one.clone()], PutOptions::default().depth(1).staging(staging))?;
        let array = one.array("tokens")?;
        let (mut nexts, mut calls) = (Vec::new(), Vec::new());
        let mut before = 0;
        for round in 0..2200 {
            if round == 200 {
                nexts.clear();
                calls.clear();
                before = page_faults();
            }
            let mut sent = None;
            nexts.push(micros(|| stream.next().transpose().map(|batch| sent = batch))?);
            sent.expect("endless").wait(PATIENCE)?;
            let mut buffer = None;
            calls.push(micros(|| device.put(array).map(|sent| buffer = Some(sent)))?);
            buffer.expect("sent").ready()?.wait()?;
        }
        let faults = (page_faults() - before) as f64 / nexts.len() as f64;
        let (next, call) = (median(&mut nexts), median(&mut calls));
        println!(
            "[32,1024] int32, {name}: next() {next:.1} µs, of which the plugin's call {call:.1}; p99 {:.1}; page faults per \
             batch {faults:.1}",
            nexts[nexts.len() * 99 / 100]
        );
    }
    Ok(())
}

/// Measures batches of 8 MiB, each waited for, against memcpy of 8 MiB and against the plugin's call alone, in blocks
/// in turns. All write to memory that was used before. The number of target places is the number of batches in flight
/// plus one.
fn throughput(device: &Device) -> Result<()> {
    let shape = [2 * MIB / 1024, 1024];
    let sources: Vec<Batch> = (0..4).map(|_| batch(&shape, 0)).collect();
    let source = |round: usize| sources[round % sources.len()].array("tokens");
    let mut targets = vec![vec![1u8; 8 * MIB]; 3];
    let mut memcpy = |round: usize| {
        black_box(&mut targets[round % 3]).copy_from_slice(source(round)?.bytes());
        Ok(())
    };
    // Keeps as many buffers alive as the stream does.
    let mut held = None;
    let mut alone = |round: usize| held.insert(device.put(source(round)?)?).ready()?.wait();
    for (name, options) in [
        ("in place", PutOptions::default()),
        ("through a slot", PutOptions::default().staging(Staging::Always)),
        ("viewed", PutOptions::default().zero_copy(true)),
    ] {
        if name == "viewed" && device.client().platform() != "cpu" {
            continue;
        }
        let mut stream = put(device, sources.clone(), options)?;
        let next = |_: usize| stream.next().expect("endless")?.wait(PATIENCE);
        let [memcpy, alone, next] = turns([&mut memcpy, &mut alone, &mut { next }])?;
        let share = |other: &Block| 100.0 * next.rate / other.rate;
        match name {
            "viewed" => println!("8 MiB, viewed: {:.1} µs", 8.0 * MIB as f64 / 1e3 / next.rate),
            _ => println!(
                "8 MiB, {name}: {:.1} GB/s, {:.0} % of memcpy ({:.1}), {:.0} % of the plugin alone ({:.1}); \
                 page faults per batch {:.1}, of the plugin alone {:.1}",
                next.rate,
                share(&memcpy),
                memcpy.rate,
                share(&alone),
                alone.rate,
                next.faults,
                alone.faults,
            ),
        }
    }
    Ok(())
}

/// Result of a block of 8 MiB batches: GB/s, and page faults per batch.
#[derive(Clone, Copy)]
struct Block {
    rate: f64,
    faults: f64,
}

/// Runs blocks of three kinds of work in turns and returns the median block of each.
fn turns(mut works: [&mut dyn FnMut(usize) -> Result<()>; 3]) -> Result<[Block; 3]> {
    const ROUNDS: usize = 25;
    let mut blocks = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..9 {
        for (work, blocks) in works.iter_mut().zip(&mut blocks) {
            // Warm-up: excludes effects of the previous turn.
            (0..5).try_for_each(&mut *work)?;
            let before = page_faults();
            let took = micros(|| (0..ROUNDS).try_for_each(work))?;
            let rate = (ROUNDS * 8 * MIB) as f64 / 1e3 / took;
            blocks.push(Block { rate, faults: (page_faults() - before) as f64 / ROUNDS as f64 });
        }
    }
    Ok(blocks.map(|blocks| {
        let of = |field: fn(&Block) -> f64| median(&mut blocks.iter().map(field).collect::<Vec<_>>());
        Block { rate: of(|block| block.rate), faults: of(|block| block.faults) }
    }))
}

/// Returns the minor page faults of this process so far.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').nth(7).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

/// Prints whether a buffer views the host's memory, by transfer mode and alignment of that memory.
fn semantics(device: &Device) -> Result<()> {
    for zero_copy in [false, true] {
        for offset in [4, 16, 32, 64, 0] {
            let one = batch(&[32, 1024], offset);
            let host = one.array("tokens")?.bytes().as_ptr().addr();
            let options = PutOptions::default().zero_copy(zero_copy);
            let sent = put(device, vec![one], options)?.next().expect("endless")?;
            sent.wait(PATIENCE)?;
            let buffer = sent.array("tokens")?.buffer();
            let how = if buffer.address()? == host { "views it" } else { "lies elsewhere" };
            let boundary = if offset == 0 { 4096 } else { offset };
            println!("zero_copy {zero_copy}, memory at a multiple of {boundary}: the buffer {how}");
        }
    }
    Ok(())
}

fn measure(client: &Client) -> Result<()> {
    let device = client.device(0)?;
    println!("\n{client:?}");
    latency(&device)?;
    throughput(&device)?;
    if client.platform() == "cpu" { semantics(&device) } else { Ok(()) }
}

fn main() -> Result<()> {
    if std::env::args().any(|arg| arg == "keep") {
        println!("what is freed is kept: {}", keep_freed_memory());
    }
    let Some(paths) = std::env::var_os("GRISTMILL_PJRT_PLUGIN") else {
        println!("skipped: GRISTMILL_PJRT_PLUGIN names no plugin");
        return Ok(());
    };
    std::env::split_paths(&paths).try_for_each(|path| measure(&Plugin::load(path)?.client()?))
}
