//! Plans over keys: sequences per second that a host plans, beside the packer's plan over bare lengths, and bytes read.
//!
//! `cargo bench -p benches --bench plan [-- NAME …]`. Sequences have log-normal lengths with mean 600 and sigma 1, at
//! most 4096, and are packed into rows of 4096. A batch has 4096 rows, of which a host makes one.
//! - `rate` plans an epoch of 1 Mi sequences, in turns with the `WindowPacker` over a list of their lengths: CPU time
//!   of the thread, the best of five rounds each. A pass that makes all rows runs once, unless `alone` is given.
//! - `reads` counts the bytes of the elements that some of 64 hosts evaluate. Keys come from a file, or from the
//!   lengths of a mapped source, of which planning reads no cells.
//! - `pages` measures the pages that these hosts bring into memory from a Megatron data set, opened by default and with
//!   `Access::Random`. Its sequences have mean 16,384, in rows of 65,536, 64 per batch.
//! - `seen` runs `gristmill plan` over a mix of two Megatron data sets of 1 Mi sequences each, two epochs: CPU time of
//!   the thread, the best of five rounds. Needs `--features cli`.
//! - `write` records the keys of a prefix that makes the tokens of each sequence. A pass over that prefix is measured
//!   in turns: the best of five rounds each, wall time on all cores.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gristmill::dataset::Remainder;
use gristmill::dataset::map::{RandomAccess, Source, SourceFacts};
use gristmill::element::{Buffer, DType, Name, Ragged, RaggedColumn};
use gristmill::keys::{KeyFolder, KeySource, Keyed, Keys, Recompute};
use gristmill::pack::{
    BinPackOptions, ConcatPackOptions, Feature, Packing, RowSpec, WindowOptions, WindowPackOptions, WindowPacker,
};
use gristmill::part::Part;
use gristmill::prelude::*;
use gristmill::source::{Access, Megatron};
use gristmill::{Array, BoxIter, BoxMap, Element, Error, Executor, Loader, Result};

#[path = "support/cached.rs"]
mod cached;
#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/lengths.rs"]
mod lengths;
#[path = "support/wanted.rs"]
mod wanted;

/// Cells of a row, and rows of a batch.
const ROW: usize = 4096;
const BATCH: usize = 4096;
/// Rows of a batch in the pass that makes all rows.
const SMALL_BATCH: usize = 64;
/// Sequences of an epoch.
const SEQUENCES: usize = 1 << 20;
const ROUNDS: usize = 5;
/// Mean tokens of a sequence, and tokens per second of a job.
const MEAN: f64 = 600.0;
const GLOBAL_RATE: f64 = 10e6;

/// Sequences that view a single piece of memory.
struct Sequences {
    lens: Vec<usize>,
    memory: Buffer,
    is_mapped: bool,
    /// Bytes of the sequences that were read.
    read: Arc<AtomicU64>,
}

impl RandomAccess for Sequences {
    type Record = Element;

    fn len(&self) -> u64 {
        self.lens.len() as u64
    }

    fn read(&self, index: u64) -> Result<Element> {
        let bytes = 4 * self.lens[index as usize];
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        let memory = self.memory.slice(0..bytes).unwrap_or(Buffer::EMPTY);
        Ok(Element::new().with("tokens", Array::new(DType::I32, &[bytes / 4], memory)?))
    }

    /// Returns the lengths and places of sequences without reading their bytes.
    fn read_ragged(&self, indices: &[u64], _: &[Name]) -> Option<Ragged> {
        let mut column = RaggedColumn::new(DType::I32, &[], indices.len());
        let memory = column.add_memory(self.memory.clone());
        for (row, index) in indices.iter().enumerate() {
            column.place(row, memory, 0, self.lens[*index as usize])?;
        }
        Ragged::new(indices.len()).with_column(column).ok()
    }

    fn facts(&self) -> SourceFacts {
        let facts = SourceFacts::new("sequences", format!("{} sequences", self.lens.len()));
        SourceFacts { is_native: true, is_mapped: self.is_mapped, ..facts }
    }
}

/// The order in which sequences are packed.
#[derive(Clone, Copy)]
enum Order {
    Stored,
    Shuffled,
}

/// The stage that packs.
#[derive(Clone, Copy)]
enum Pack {
    Window,
    FirstFit,
    Concat,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    order: Order,
    pack: Pack,
    is_mapped: bool,
}

impl Case {
    fn pipeline(&self, lens: &[usize], batch: usize, read: &Arc<AtomicU64>) -> BoxIter<Element> {
        let memory = Buffer::from_vec((0..ROW as i32).collect::<Vec<_>>());
        let (lens, read, is_mapped) = (lens.to_vec(), read.clone(), self.is_mapped);
        let source = Source::new(Sequences { lens, memory, is_mapped, read });
        let ordered: BoxMap<Element> = match self.order {
            Order::Stored => source.boxed(),
            Order::Shuffled => source.shuffle(7).boxed(),
        };
        let (ordered, rows) = (ordered.to_iter(), RowSpec::new([("tokens", ROW)]));
        match self.pack {
            Pack::Window => {
                ordered.window_pack(WindowPackOptions::new(rows)).batch_with(batch, Remainder::Drop).boxed()
            }
            Pack::FirstFit => {
                ordered.first_fit_pack(BinPackOptions::new(rows, 64)).batch_with(batch, Remainder::Drop).boxed()
            }
            Pack::Concat => {
                ordered.concat_then_split_pack(ConcatPackOptions::new(rows)).batch_with(batch, Remainder::Drop).boxed()
            }
        }
    }
}

/// A key source that records missing keys into a folder.
#[derive(Clone)]
struct Recorder(KeyFolder);

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl KeySource for Recorder {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        self.0.record(&**keyed, |_| ())?;
        self.0.find(keyed)
    }
}

/// Returns a loader of a host's part, with keys from a file or from the lengths of a mapped source.
fn host(case: &Case, ds: BoxIter<Element>, part: Part, folder: &Path) -> Result<Loader<BoxIter<Element>>> {
    let loader = ds.loader().part(part);
    if case.is_mapped {
        return loader.keys(Recompute).build();
    }
    loader.keys(Recorder(KeyFolder::new(folder))).build()
}

/// Returns the CPU seconds of `work`.
fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = cpu_clock::on_core();
    work()?;
    Ok((cpu_clock::on_core() - start).as_secs_f64())
}

/// Plans rows from a list of lengths, without any other work.
fn bare(lens: &[usize]) -> Result<()> {
    let mut packer = WindowPacker::new(&[Feature::new("tokens", ROW)], WindowOptions::default())?;
    for len in lens {
        packer.push(&[*len])?;
        while packer.is_full() {
            black_box(packer.next_row(false));
        }
    }
    Ok(())
}

fn rate(lens: &[usize], folder: &Path) -> Result<()> {
    let case = |name, order, pack, is_mapped| Case { name, order, pack, is_mapped };
    let cases = [
        case("key file, in order, window", Order::Stored, Pack::Window, false),
        case("key file, in order, first fit", Order::Stored, Pack::FirstFit, false),
        case("key file, in order, concat", Order::Stored, Pack::Concat, false),
        case("key file, shuffled, window", Order::Shuffled, Pack::Window, false),
        case("lengths of the source, in order, window", Order::Stored, Pack::Window, true),
        case("lengths of the source, shuffled, window", Order::Shuffled, Pack::Window, true),
    ];
    // For profiling the planning alone.
    let is_alone = std::env::args().any(|arg| arg == "alone");
    for case in cases.iter().filter(|case| wanted::wanted("rate") || wanted::wanted(case.name)) {
        let read = Arc::default();
        let (mut limits, mut plans, mut passes) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            limits.push(seconds(|| bare(lens))?);
            let mut planned = host(case, case.pipeline(lens, BATCH, &read), Part::of(3, BATCH), folder)?;
            plans.push(seconds(|| planned.try_for_each(|batch| batch.map(drop)))?);
            if round == 0 && !is_alone {
                let mut all = case.pipeline(lens, SMALL_BATCH, &read).loader().build()?;
                passes.push(seconds(|| all.try_for_each(|batch| batch.map(drop)))?);
            }
        }
        let best = |times: &[f64]| lens.len() as f64 / times.iter().copied().fold(f64::MAX, f64::min);
        let (limit, plan, pass) = (best(&limits), best(&plans), best(&passes));
        println!(
            "{:<42} {:>6.2} M/s, the packer's own plan {:.1} M/s, of it {:.0} %; a pass over all {:.2} M/s; 10 M tokens/s take {:.2} % of a core",
            case.name,
            plan / 1e6,
            limit / 1e6,
            100.0 * plan / limit,
            if is_alone { f64::NAN } else { pass / 1e6 },
            100.0 * GLOBAL_RATE / MEAN / plan
        );
    }
    Ok(())
}

/// Prints the rate of recording keys, beside the rate of the prefix alone.
fn write(lens: &[usize], folder: &Path) -> Result<()> {
    let all: Vec<i64> = lens.iter().map(|&len| len as i64).collect();
    let sequence = |len: i64| {
        let tokens: Vec<i32> = (0..len as i32).map(|at| at.wrapping_mul(at ^ len as i32)).collect();
        Element::new().with("tokens", Array::from_vec(tokens))
    };
    let prefix = || Source::new(all.clone()).map(sequence).to_iter();
    let rows = || WindowPackOptions::new(RowSpec::new([("tokens", ROW)]));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut recorded, mut passed) = (f64::INFINITY, f64::INFINITY);
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let folder = folder.join(format!("write-{round}"));
        let batches = prefix().window_pack(rows()).batch_with(BATCH, Remainder::Drop);
        drop(batches.loader().part(Part::of(0, BATCH)).keys(Recorder(KeyFolder::new(folder))).build()?);
        recorded = recorded.min(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        for element in prefix().loader().executor(Executor::Threads(cores)).build()? {
            black_box(element?);
        }
        passed = passed.min(begun.elapsed().as_secs_f64());
    }
    let rate = |seconds: f64| lens.len() as f64 / seconds / 1e6;
    println!("keys recorded {:.2} M/s, the prefix alone {:.2} M/s, {cores} cores", rate(recorded), rate(passed));
    Ok(())
}

/// Prints the share of the payload that one of 64 hosts reads.
fn reads(lens: &[usize], folder: &Path) -> Result<()> {
    const HOSTS: usize = 64;
    let lens = &lens[..lens.len() / 4];
    let cases = [
        ("window, key file", Pack::Window, false),
        ("concat, key file", Pack::Concat, false),
        ("window, lengths of the source", Pack::Window, true),
        ("concat, lengths of the source", Pack::Concat, true),
    ];
    for (name, pack, is_mapped) in cases {
        let case = Case { name, order: Order::Shuffled, pack, is_mapped };
        let read: Arc<AtomicU64> = Arc::default();
        let mut bytes = Vec::new();
        for index in [0, 21, 63] {
            let mut host = host(&case, case.pipeline(lens, BATCH, &read), Part::of(index, HOSTS), folder)?;
            // The first host has recorded the keys.
            read.store(0, Ordering::Relaxed);
            host.try_for_each(|batch| batch.map(drop))?;
            bytes.push(read.load(Ordering::Relaxed));
        }
        let total = 4.0 * lens.iter().sum::<usize>() as f64;
        let share = |bytes: f64| HOSTS as f64 * bytes / total;
        let most = bytes.iter().max().copied().unwrap_or_default();
        println!(
            "{name}: a host of {HOSTS} reads {:.3} / {HOSTS} of the bytes, the most {:.3} / {HOSTS}",
            share(bytes.iter().sum::<u64>() as f64 / bytes.len() as f64),
            share(most as f64)
        );
    }
    Ok(())
}

/// Writes Megatron's pair of files, with sequences of the given lengths.
fn write_megatron(base: &Path, lens: &[usize]) -> Result<PathBuf> {
    let data = base.with_extension("bin");
    let mut out = BufWriter::new(File::create(&data).map_err(|e| Error::io(e, &data))?);
    let (mut counts, mut starts, mut start) = (Vec::new(), Vec::new(), 0u64);
    for &len in lens {
        let ids: Vec<i32> = (0..len as i32).collect();
        out.write_all(bytemuck::cast_slice(&ids)).map_err(|e| Error::io(e, &data))?;
        counts.push(len as u32);
        starts.push(start);
        start += 4 * len as u64;
    }
    out.flush().map_err(|e| Error::io(e, &data))?;
    let count = lens.len() as u64;
    let documents: Vec<u64> = (0..=count).collect();
    let (counts, starts, documents): (&[u8], &[u8], &[u8]) =
        (bytemuck::cast_slice(&counts), bytemuck::cast_slice(&starts), bytemuck::cast_slice(&documents));
    let head = [&b"MMIDIDX\0\0"[..], &1u64.to_le_bytes(), &[4], &count.to_le_bytes(), &(count + 1).to_le_bytes()];
    let index = base.with_extension("idx");
    std::fs::write(&index, [head.concat().as_slice(), counts, starts, documents].concat())
        .map_err(|e| Error::io(e, &index))?;
    Ok(data)
}

/// Writes Megatron's pair of files, with sequences of the given lengths and without ids: a hole takes their place.
#[cfg(feature = "cli")]
fn write_empty_megatron(base: &Path, lens: &[usize]) -> Result<()> {
    let data = write_megatron(base, &[])?;
    let ids: usize = lens.iter().sum();
    let hole = File::options().write(true).open(&data).and_then(|file| file.set_len(4 * ids as u64));
    hole.map_err(|e| Error::io(e, &data))?;
    let starts: Vec<u64> = lens
        .iter()
        .scan(0, |start, len| {
            let before = *start;
            *start += 4 * *len as u64;
            Some(before)
        })
        .collect();
    let counts: Vec<u32> = lens.iter().map(|len| *len as u32).collect();
    let (count, documents) = (lens.len() as u64, (0..=lens.len() as u64).collect::<Vec<_>>());
    let head = [&b"MMIDIDX\0\0"[..], &1u64.to_le_bytes(), &[4], &count.to_le_bytes(), &(count + 1).to_le_bytes()];
    let parts: [&[u8]; 3] =
        [bytemuck::cast_slice(&counts), bytemuck::cast_slice(&starts), bytemuck::cast_slice(&documents)];
    let index = base.with_extension("idx");
    std::fs::write(&index, [head.concat().as_slice(), &parts.concat()].concat()).map_err(|e| Error::io(e, &index))
}

/// Prints the rate at which `gristmill plan` counts the contents of a run.
#[cfg(feature = "cli")]
fn seen(lens: &[usize], folder: &Path) -> Result<()> {
    for name in ["web", "books"] {
        write_empty_megatron(&folder.join(name), lens)?;
    }
    let part = |name: &str| {
        format!(
            "{{source: {{megatron: {{paths: [{name}]}}}}, stages: [{{shuffle: {{seed: 1}}}}, {{repeat: {{num_epochs: 2}}}}]}}"
        )
    };
    let text = format!(
        "source: {{mix: {{names: [web, books], parts: [{}, {}]}}}}\nstages: [to_iter, {{window_pack: {{length: {{tokens: {ROW}}}}}}}, {{batch: {{batch_size: {BATCH}}}}}]\n",
        part("web"),
        part("books")
    );
    let file = folder.join("seen.yaml");
    std::fs::write(&file, text).map_err(|e| Error::io(e, &file))?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let arguments = [Path::new("gristmill"), Path::new("plan"), &file, Path::new("--json")];
        let run = || gristmill::cli::main(arguments.map(Into::into));
        best = best.min(seconds(|| {
            assert_eq!(run(), 0);
            Ok(())
        })?);
    }
    println!("`gristmill plan`, a mix of two, shuffled: {:.2} M documents/s", 4.0 * lens.len() as f64 / best / 1e6);
    Ok(())
}

/// Prints the share of a Megatron data set that one of 64 hosts brings into memory, with lengths from the index.
fn pages(folder: &Path) -> Result<()> {
    const HOSTS: usize = 64;
    const ROW: usize = 65_536;
    if !cached::is_known() {
        println!("pages: skipped, there is no fincore or no dd");
        return Ok(());
    }
    let lens = lengths::log_normal(8192, 16_384.0, 1.0, ROW);
    let base = folder.join("pages");
    let data = write_megatron(&base, &lens)?;
    let total = 4.0 * lens.iter().sum::<usize>() as f64;
    let cases = [5, 40, 63].map(|index| [(index, Access::Normal), (index, Access::Random)]);
    for (index, access) in cases.into_iter().flatten() {
        cached::forget(&data)?;
        let source = Source::new(Megatron::options().access(access).open(&base)?);
        let rows = WindowPackOptions::new(RowSpec::new([("tokens", ROW)]));
        let ds = source.shuffle(7).to_iter().window_pack(rows).batch_with(HOSTS, Remainder::Drop);
        let before = cached::cached_bytes(&data)?;
        ds.loader().part(Part::of(index, HOSTS)).build()?.try_for_each(|batch| batch.map(drop))?;
        let read = (cached::cached_bytes(&data)? - before) as f64;
        println!(
            "Megatron, window, lengths of the index, {access:?}: host {index} of {HOSTS} brings {:.3} / {HOSTS} of the bytes into memory, in pages",
            HOSTS as f64 * read / total
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("gristmill-bench-plan-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let lens = lengths::log_normal(SEQUENCES, MEAN, 1.0, ROW);
    let run = || {
        rate(&lens, &folder)?;
        if wanted::wanted("reads") {
            reads(&lens, &folder)?;
        }
        if wanted::wanted("pages") {
            pages(&folder)?;
        }
        #[cfg(feature = "cli")]
        if wanted::wanted("seen") {
            seen(&lens, &folder)?;
        }
        if wanted::wanted("write") {
            write(&lens, &folder)?;
        }
        Ok(())
    };
    let ran = run();
    std::fs::remove_dir_all(&folder)?;
    ran
}
