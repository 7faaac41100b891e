//! Packing kernels on the standard case: log-normal lengths with mean 220, at most 1024, into rows of 1024.
//!
//! `cargo bench -p benches --bench pack`. CPU time of the calling thread if the system reports it, else wall time. An
//! iteration packs 16,384 sequences (13 MB of tokens, more than a core's cache) and writes values, segment ids and
//! positions.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gristmill::dataset::map::Source;
use gristmill::pack::{
    BinPackOptions, ConcatPackOptions, Feature, Fit, GroupOptions, GroupPacker, PackStats, Packing, Placed, RowSpec,
    WindowOptions, WindowPackOptions, WindowPacker,
};
use gristmill::{Array, DatasetIterator, Element, IterDataset, IterDatasetExt, MapDatasetExt, Runtime};

#[path = "support/cpu_time.rs"]
mod cpu_time;
#[path = "support/lengths.rs"]
mod lengths;

use cpu_time::CpuTime;

const ROW: usize = 1024;
const SEQUENCES: usize = 1 << 14;

/// The sequences of the standard case, concatenated.
struct Stream {
    tokens: Vec<i32>,
    lens: Vec<usize>,
}

impl Stream {
    fn new() -> Self {
        let lens = lengths::log_normal(SEQUENCES, 220.0, 1.0, ROW);
        Self { tokens: (0..lens.iter().sum::<usize>() as i32).collect(), lens }
    }

    fn sequences(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.tokens.as_slice();
        self.lens.iter().map(move |&len| {
            let (sequence, after) = rest.split_at(len);
            rest = after;
            bytemuck::cast_slice(sequence)
        })
    }
}

/// Prints the share of real tokens, unless the benchmark was filtered out.
fn print_share(name: &str, stats: PackStats) {
    if let Some(share) = stats.real_token_share() {
        eprintln!("{name}: {:.3} % real tokens", 100.0 * share);
    }
}

fn groups(c: &mut Criterion<CpuTime>) {
    let stream = Stream::new();
    let mut group = c.benchmark_group("group");
    group.throughput(Throughput::Elements(SEQUENCES as u64));
    for (name, fit) in [("first_fit", Fit::First), ("best_fit", Fit::Best)] {
        for bins in [16, 64, 1024] {
            let options = GroupOptions { fit, ..GroupOptions::new(bins) };
            let mut packer = GroupPacker::new(&[Feature::new("tokens", ROW)], options).unwrap();
            group.bench_function(BenchmarkId::new(name, bins), |b| {
                b.iter(|| {
                    for sequence in stream.sequences() {
                        if packer.push(&[sequence]).unwrap() == Placed::Full {
                            black_box(packer.finish());
                            packer.push(&[sequence]).unwrap();
                        }
                    }
                });
            });
            print_share(&format!("{name} {bins}"), packer.stats());
        }
    }
    group.finish();
}

/// Measures planning alone: its rows are written like those of the other packers.
fn window(c: &mut Criterion<CpuTime>) {
    let lens = lengths::log_normal(SEQUENCES, 220.0, 1.0, ROW);
    let mut group = c.benchmark_group("window_plan");
    group.throughput(Throughput::Elements(SEQUENCES as u64));
    for window in [256, 1024, 4096] {
        let options = WindowOptions { window, ..WindowOptions::default() };
        let mut packer = WindowPacker::new(&[Feature::new("tokens", ROW)], options).unwrap();
        group.bench_function(BenchmarkId::from_parameter(window), |b| {
            b.iter(|| {
                for len in &lens {
                    packer.push(&[*len]).unwrap();
                    while packer.is_full() {
                        black_box(packer.next_row(false));
                    }
                }
            });
        });
        print_share(&format!("window {window}"), packer.stats());
    }
    group.finish();
}

/// Measures the stages, from elements in memory to rows as elements.
fn stages(c: &mut Criterion<CpuTime>) {
    let stream = Stream::new();
    let element =
        |sequence| Element::new().with("tokens", Array::from_vec(bytemuck::cast_slice::<u8, i32>(sequence).to_vec()));
    let elements: Vec<Element> = stream.sequences().map(element).collect();
    let source = || Source::new(elements.clone()).to_iter();
    let rows = || RowSpec::new([("tokens", ROW)]);
    let bins = || BinPackOptions::new(rows(), 64);
    let pipelines = [
        ("none", source().boxed()),
        ("first_fit", source().first_fit_pack(bins()).boxed()),
        ("best_fit", source().best_fit_pack(bins()).boxed()),
        ("window", source().window_pack(WindowPackOptions::new(rows())).boxed()),
        ("concat_then_split", source().concat_then_split_pack(ConcatPackOptions::new(rows())).boxed()),
    ];
    let mut group = c.benchmark_group("stage");
    group.throughput(Throughput::Elements(SEQUENCES as u64));
    for (name, pipeline) in pipelines {
        group.bench_function(name, |b| {
            b.iter(|| {
                let run = Runtime::inline();
                let (mut iter, mut cx) = (pipeline.iter(&run).unwrap(), run.cx());
                while let Some(row) = iter.next(&mut cx).unwrap() {
                    black_box(row);
                }
            });
        });
    }
    group.finish();
}

/// Measures the limit: all bytes written without packing, sequence after sequence, into a ring of 64 rows.
fn limit(c: &mut Criterion<CpuTime>) {
    let stream = Stream::new();
    let mut group = c.benchmark_group("limit");
    group.throughput(Throughput::Elements(SEQUENCES as u64));
    let mut planes = vec![0i32; 3 * 64 * ROW];
    group.bench_function("hand_written", |b| {
        b.iter(|| {
            let (values, rest) = planes.split_at_mut(64 * ROW);
            let (ids, positions) = rest.split_at_mut(64 * ROW);
            let mut at = 0;
            for sequence in stream.sequences() {
                let sequence: &[i32] = bytemuck::cast_slice(sequence);
                let range = at..at + sequence.len();
                values[range.clone()].copy_from_slice(sequence);
                ids[range.clone()].fill(at as i32);
                positions[range].iter_mut().zip(0..).for_each(|(place, position)| *place = position);
                at = (at + sequence.len()) % (63 * ROW);
            }
            black_box(&mut planes);
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime).measurement_time(std::time::Duration::from_secs(2));
    targets = groups, window, stages, limit
}
criterion_main!(benches);
