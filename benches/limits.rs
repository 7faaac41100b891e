//! gristmill against the machine's limits, in one run, so that every figure is a ratio.
//!
//! `cargo bench --bench limits --all-features [-- NAME …]`. CPU time of one thread (wall time where the system does not
//! tell it). A limit and what is held against it take turns, seven rounds of each; the figure is the median.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill::cx::StageId;
use gristmill::dataset::map::{RandomAccess, Source};
use gristmill::element::Stack;
use gristmill::text::Tokenizer;
use gristmill::{Cx, DatasetIterator, Element, Executor, IterDataset, MapDataset, Result, Runtime, Value};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/lengths.rs"]
mod lengths;

use cpu_clock::on_core;

const ROUNDS: usize = 7;

/// Runs the two in turns; returns the median seconds of each.
fn turns(mut limit: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    let clock = |work: &mut dyn FnMut()| {
        let start = on_core();
        work();
        (on_core() - start).as_secs_f64()
    };
    limit();
    ours();
    let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (clock(&mut limit), clock(&mut ours))).collect();
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    (median(|r| r.0), median(|r| r.1))
}

/// One line: what, ours, the limit, and their ratio as throughput.
fn line(name: &str, unit: &str, work: f64, (limit_s, ours_s): (f64, f64), limit: &str) {
    let (ours, best) = (work / ours_s, work / limit_s);
    println!("{name:<44} {ours:>9.2} {unit:<10} {:>6.1} % of {limit} ({best:.2})", 100.0 * ours / best);
}

fn wanted(name: &str) -> bool {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    names.is_empty() || names.iter().any(|n| name.contains(n.as_str()))
}

fn main() -> Result<()> {
    if wanted("records") {
        records();
    }
    if wanted("report") {
        report_cost()?;
    }
    if wanted("text") {
        text()?;
    }
    if wanted("crops") {
        crops()?;
    }
    Ok(())
}

/// 2 KiB records from memory, summed and stacked 32 at a time: a typed pipeline against the loop one writes by hand.
fn records() {
    const RECORD: usize = 2048;
    const BATCH: usize = 32;
    let records: Arc<Vec<[u8; RECORD]>> = Arc::new((0..8192u32).map(|i| [i as u8; RECORD]).collect());
    let (by_hand, ours) = (records.clone(), records.clone());
    let limit = move || {
        for chunk in by_hand.chunks_exact(BATCH) {
            let mut batch = Vec::with_capacity(BATCH * RECORD);
            let mut sums = Vec::with_capacity(BATCH);
            for record in chunk {
                sums.push(sum(record));
                batch.extend_from_slice(record);
            }
            black_box((batch, sums));
        }
    };
    let run = move || {
        let pipeline = Source::new(Shared(ours.clone())).map(|record| (sum(&record.0[record.1]), record)).to_iter();
        let pipeline = pipeline.batch_with(BATCH, stack_records);
        for batch in pipeline.loader().build().unwrap() {
            black_box(batch.unwrap());
        }
    };
    let work = (records.len() * RECORD) as f64 / 1e9;
    line("records: typed pipeline, 2 KiB", "GB/s", work, turns(limit, run), "a hand-written loop");
}

type Record = (Arc<Vec<[u8; 2048]>>, usize);

struct Shared(Arc<Vec<[u8; 2048]>>);

impl RandomAccess for Shared {
    type Record = Record;
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read(&self, index: u64) -> Result<Record> {
        Ok((self.0.clone(), index as usize))
    }
}

fn sum(record: &[u8; 2048]) -> u64 {
    bytemuck::cast_slice::<u8, u32>(record).iter().map(|&w| u64::from(w)).sum()
}

fn stack_records(items: Vec<(u64, Record)>) -> Result<(Vec<u8>, Vec<u64>)> {
    let mut batch = Vec::with_capacity(items.len() * 2048);
    let mut sums = Vec::with_capacity(items.len());
    for (sum, (records, at)) in items {
        sums.push(sum);
        batch.extend_from_slice(&records[at]);
    }
    Ok((batch, sums))
}
