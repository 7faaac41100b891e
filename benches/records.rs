//! Read rates of records of bytes, beside copying the bytes from memory in equal order.
//!
//! `cargo bench -p benches --bench records --no-default-features --features array_record,tf_record [-- NAME …]`. CPU
//! time of one thread, median of five rounds. The files are in the page cache.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use gristmill::dataset::map::{RandomAccess, Source};
use gristmill::source::{ArrayRecord, ArrayRecordWriter, Compression, IndexCache, TfRecord};
use gristmill::{Executor, Load, MapDatasetExt, Result};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/median.rs"]
mod median;
#[path = "support/wanted.rs"]
mod wanted;

use cpu_clock::on_core;
use median::seconds;
use wanted::wanted;

/// Returns the CPU seconds of `work` on this thread.
fn cpu(work: impl FnMut()) -> f64 {
    seconds(5, on_core, work)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    if wanted("array_record") {
        array_record(dir.path())?;
    }
    if wanted("tfrecord") {
        tfrecord(dir.path())?;
    }
    Ok(())
}

/// Returns `len` letters in words, which zstd compresses to about a half.
fn record(i: u64, len: usize) -> Vec<u8> {
    let mut state = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b"etaoin shrdlu cmfwyp"[(state % 20) as usize]
    };
    (0..len).map(letter).collect()
}

/// Returns `sample` scattered indices below `len`, without repeats if `sample` is at most `len`.
fn shuffled(len: u64, sample: u64) -> Vec<u64> {
    (0..sample).map(|i| (i * 611_953) % len).collect()
}

/// Returns the nanoseconds to read a record, and to copy its bytes from an equal place of a block of memory.
fn beside_memcpy(source: &impl RandomAccess<Record = gristmill::Buffer>, order: &[u64], size: usize) -> (f64, f64) {
    let read = cpu(|| order.iter().for_each(|&i| drop(black_box(source.read(i)))));
    let memory = vec![1u8; size * source.len() as usize];
    let copy = cpu(|| {
        for &i in order {
            let from = size * i as usize;
            drop(black_box(memory[from..from + size].to_vec()));
        }
    });
    (read * 1e9 / order.len() as f64, copy * 1e9 / order.len() as f64)
}

/// Returns the nanoseconds per record of a shuffled inline pass over the first 300,000 records, including the opening.
fn pass(path: &Path) -> f64 {
    let mut read = 0;
    let took = cpu(|| {
        let source = Source::new(ArrayRecord::open(path).expect("a file of this bench"));
        let loader = source.shuffle(1).to_iter().loader().executor(Executor::Inline).build().expect("a seed");
        read = loader.take(300_000).map(|record| drop(black_box(record.expect("a good record")))).count();
    });
    took * 1e9 / read as f64
}

fn array_record(dir: &Path) -> Result<()> {
    println!("ArrayRecord, 1 KiB a record, shuffled");
    let write = |name: String, records: u64, group: u64, compression| -> Result<PathBuf> {
        let path = dir.join(name);
        let mut writer = ArrayRecordWriter::options().group_size(group).compression(compression).create(&path)?;
        (0..records).try_for_each(|i| writer.write(&record(i, 1024)))?;
        writer.finish()?;
        Ok(path)
    };
    for (name, compression) in [("uncompressed", Compression::None), ("zstd:3", Compression::Zstd(3))] {
        for (records, group) in [(1_000, 1), (1_000_000, 1), (1_000_000, 64)] {
            let path = write(format!("{name}-{records}-{group}.array_record"), records, group, compression)?;
            let source = ArrayRecord::open(&path)?;
            let order = shuffled(records, 100_000);
            let (read, copy) = beside_memcpy(&source, &order, 1024);
            println!(
                "{name:<13} {records:>8} records, {group:>2} a chunk {read:>8.0} ns  {:>6.2} M/s   copying {copy:>5.0} ns",
                1e3 / read
            );
            let chunks = cpu(|| order.chunks(64).for_each(|chunk| drop(black_box(source.read_many(chunk)))));
            println!("{:>43} by 64    {:>8.0} ns", "", chunks * 1e9 / order.len() as f64);
            let ordered: Vec<u64> = (0..records.min(100_000)).collect();
            let together = cpu(|| drop(black_box(source.read_many(&ordered))));
            println!("{:>43} in order {:>8.0} ns", "", together * 1e9 / ordered.len() as f64);
            let pass = pass(&path);
            println!("{:>43} a pass   {pass:>8.0} ns {:>6.0} k/s", "", 1e6 / pass);
            let opened = cpu(|| drop(black_box(ArrayRecord::open(&path))));
            println!("{:>43} open     {:>8.2} ms", "", opened * 1e3);
            std::fs::remove_file(path).expect("a file of this bench");
        }
    }
    Ok(())
}

fn tfrecord(dir: &Path) -> Result<()> {
    println!("TFRecord, both checksums of each record");
    for (size, records) in [(1 << 10, 400_000u64), (16 << 10, 25_000), (1 << 20, 400)] {
        let path = dir.join("a.tfrecord");
        let bytes: Vec<u8> = (0..records).flat_map(|i| TfRecord::framed(&record(i, size))).collect();
        std::fs::write(&path, &bytes).expect("room for 400 MB");
        drop(bytes);
        let open = || TfRecord::options().cache(IndexCache::Off).open(&path);
        let source = open()?;
        for (name, order) in [("in order", (0..records).collect()), ("shuffled", shuffled(records, records))] {
            let (read, copy) = beside_memcpy(&source, &order, size);
            println!(
                "{size:>8} bytes, {name} {:>7.2} GB/s {read:>9.0} ns   copying {:>6.2} GB/s",
                size as f64 / read,
                size as f64 / copy
            );
        }
        let opened = cpu(|| drop(black_box(open())));
        println!("{size:>8} bytes, open     {:>7.2} ms", opened * 1e3);
    }
    Ok(())
}
