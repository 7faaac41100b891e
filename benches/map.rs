//! Cost of an index through a map dataset: CPU time per element, beside a hand-written loop.
//!
//! `cargo bench -p benches --bench map [-- NAME]`. An iteration reads 2^16 consecutive indices of epoch 0, with a
//! context that counts nothing. `counted` runs the pipeline in the inline loader, with counters and sampled clock.
//! `alone` reads single indices, `together` reads 1024 indices per call.

use std::hint::black_box;

use criterion::measurement::Measurement;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use gristmill::dataset::map::{Concatenate, Mix, Range};
use gristmill::rng::IndexShuffle;
use gristmill::{Cx, Load, MapDataset, MapDatasetExt};

#[path = "support/cpu_time.rs"]
mod cpu_time;

use cpu_time::CpuTime;

const READS: u64 = 1 << 16;
const CHUNK: usize = 1024;
const MILLION: i64 = 1_000_000;

/// Reads the first indices of `ds`.
fn reads<M: Measurement>(group: &mut BenchmarkGroup<'_, M>, name: &str, ds: impl MapDataset<Item = i64>) {
    let mut cx = Cx::default();
    group.bench_function(name, |b| {
        b.iter(|| {
            for index in 0..READS {
                black_box(ds.get(index, &mut cx).unwrap());
            }
        });
    });
}

/// Reads the first indices of `ds` in chunks.
fn reads_together<M: Measurement>(group: &mut BenchmarkGroup<'_, M>, name: &str, ds: impl MapDataset<Item = i64>) {
    let mut cx = Cx::default();
    group.bench_function(name, |b| {
        b.iter(|| {
            for start in (0..READS).step_by(CHUNK) {
                let indices: Vec<u64> = (start..start + CHUNK as u64).collect();
                black_box(ds.get_many(&indices, &mut cx));
            }
        });
    });
}

fn order(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("order");
    group.throughput(Throughput::Elements(READS));
    let by_hand = IndexShuffle::new(MILLION as u64 - 1, 42, 4).unwrap();
    group.bench_function("shuffle by hand", |b| {
        b.iter(|| {
            (0..READS).for_each(|i| {
                black_box(by_hand.get(i) as i64 * 3);
            })
        });
    });
    reads(&mut group, "range.map", Range::new(0, MILLION).map(|x| x * 3));
    for (name, len) in [("10^4", 10_000), ("10^6", MILLION), ("10^12", 1_000_000_000_000)] {
        reads(&mut group, &format!("range.shuffle.map {name}"), Range::new(0, len).shuffle(42).map(|x| x * 3));
    }
    let repeated = Range::new(0, 1 << 14).shuffle(42).repeat(None).slice(1 << 14..);
    reads(&mut group, "shuffle, later epochs", repeated);
    for window in [10, 1000, 100_000] {
        reads(&mut group, &format!("window_shuffle {window}"), Range::new(0, MILLION).window_shuffle(window, 42));
    }
    reads(&mut group, "slice by 3", Range::new(0, MILLION).slice_step(1.., 3));
    let parts = |n| (0..n).map(|_| Range::new(0, MILLION)).collect::<Vec<_>>();
    for n in [4, 64] {
        reads(&mut group, &format!("concatenate {n}"), Concatenate::new(parts(n)));
        reads(&mut group, &format!("mix {n}"), Mix::new(parts(n)));
    }
    group.finish();
}

fn elements(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("elements");
    group.throughput(Throughput::Elements(READS));
    let range = || Range::new(0, MILLION);
    reads(&mut group, "map_with_index", range().map_with_index(|i, x| x + i.in_epoch as i64));
    reads(&mut group, "random_map, 1 word", range().random_map(1, |x, rng| x ^ rng.random_raw() as i64));
    reads(
        &mut group,
        "random_map, 4 words",
        range().random_map(1, |x, rng| (0..4).fold(x, |x, _| x ^ rng.random_raw() as i64)),
    );
    reads(&mut group, "flat_map 4 of 4", range().flat_map(4, |x| [x; 4]));
    reads(&mut group, "zip", range().zip(range()).map(|(a, b)| a + b));
    reads(&mut group, "boxed", range().boxed().map(|x| x * 3));
    group.bench_function("shuffle.map, counted", |b| {
        b.iter(|| {
            let ds = range().slice(..READS as i64).shuffle(42).map(|x| x * 3).to_iter();
            ds.loader().build().unwrap().for_each(|x| {
                black_box(x.unwrap());
            });
        });
    });
    group.finish();
}

/// Reads each pipeline by single indices and in chunks, with known types and with a box after every stage.
fn chunks(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("chunks");
    group.throughput(Throughput::Elements(READS));
    let range = || Range::new(0, MILLION);
    let shuffled = || range().shuffle(42).map(|x| x * 3);
    let hidden = || range().boxed().shuffle(42).boxed().map(|x| x * 3).boxed();
    let dropping = || range().filter(|x| x % 4 != 0).map(|x| x * 3);
    let mixed = || Mix::new(vec![range().boxed(), range().boxed(), range().boxed()]);
    let drawn = || range().random_map(1, |x, rng| x ^ rng.random_raw() as i64);
    reads(&mut group, "range.map, alone", range().map(|x| x * 3));
    reads_together(&mut group, "range.map, together", range().map(|x| x * 3));
    reads(&mut group, "range.shuffle.map, alone", shuffled());
    reads_together(&mut group, "range.shuffle.map, together", shuffled());
    reads(&mut group, "boxed range.shuffle.map, alone", hidden());
    reads_together(&mut group, "boxed range.shuffle.map, together", hidden());
    reads(&mut group, "range.filter.map, alone", dropping());
    reads_together(&mut group, "range.filter.map, together", dropping());
    reads(&mut group, "boxed mix of 3, alone", mixed());
    reads_together(&mut group, "boxed mix of 3, together", mixed());
    reads(&mut group, "random_map, alone", drawn());
    reads_together(&mut group, "random_map, together", drawn());
    group.bench_function("boxed range.shuffle.map.batch, counted", |b| {
        b.iter(|| {
            let ds = hidden().slice(..READS as i64).to_iter().batch(256);
            ds.loader().build().unwrap().for_each(|x| {
                black_box(x.unwrap());
            });
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime).measurement_time(std::time::Duration::from_secs(1));
    targets = order, elements, chunks
}
criterion_main!(benches);
