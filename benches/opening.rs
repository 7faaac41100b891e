//! Time to open a folder of a thousand shards, for the first time and again.
//!
//! `cargo bench -p benches --bench opening --no-default-features --features array_record,tf_record [-- NAME …]`. Wall
//! time, median of nine, beside mapping and unmapping the files one by one. The files are in the page cache.

use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

use gristmill::Result;
use gristmill::dataset::map::RandomAccess;
use gristmill::source::{Access, ArrayRecord, ArrayRecordWriter, IndexCache, Jsonl, Mapping, TfRecord};

#[path = "support/median.rs"]
mod median;
#[path = "support/wanted.rs"]
mod wanted;

use median::seconds;
use wanted::wanted;

const SHARDS: usize = 1000;

fn main() -> Result<()> {
    println!("{SHARDS} shards              first     after it     mapping alone");
    folder("jsonl-1MiB", write_lines, |dir| Ok(Jsonl::open(dir)?.len()))?;
    folder("jsonl-1MiB-searched", write_lines, |dir| Ok(Jsonl::options().cache(IndexCache::Off).open(dir)?.len()))?;
    folder("jsonl-9MiB", write_long_lines, |dir| Ok(Jsonl::open(dir)?.len()))?;
    folder("array_record", write_array_record, |dir| Ok(ArrayRecord::open(dir)?.len()))?;
    folder("tfrecord-1MiB", write_tf_record, |dir| Ok(TfRecord::open(dir)?.len()))
}

/// Returns the milliseconds of wall time of `work`.
fn ms(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn median(work: impl FnMut()) -> f64 {
    let start = Instant::now();
    seconds(9, || start.elapsed(), work) * 1e3
}

fn folder(name: &str, write: fn(&Path) -> Result<()>, open: fn(&Path) -> Result<u64>) -> Result<()> {
    if !wanted(name) {
        return Ok(());
    }
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    let mut paths = Vec::new();
    for shard in 0..SHARDS {
        paths.push(dir.path().join(format!("{shard:05}.{}", name.split('-').next().unwrap_or(name))));
        write(&paths[shard])?;
    }
    let first = ms(|| drop(black_box(open(dir.path()))));
    let records = open(dir.path())?;
    let after = median(|| drop(black_box(open(dir.path()))));
    let alone = median(|| paths.iter().for_each(|path| drop(black_box(Mapping::open(path, Access::Normal)))));
    println!("{name:<16} {first:>9.1} ms {after:>9.1} ms {alone:>14.1} ms   {records} records");
    Ok(())
}

fn write_lines(path: &Path) -> Result<()> {
    let line = format!("{{\"text\": \"{}\"}}\n", "x".repeat(1011));
    std::fs::write(path, line.repeat(1024)).expect("room for 1 GiB");
    Ok(())
}

/// Writes a file large enough for its index to be cached. The file is mostly holes, because its contents are not read.
fn write_long_lines(path: &Path) -> Result<()> {
    let mut file = std::fs::File::create(path).expect("a file of this bench");
    let write = |file: &mut std::fs::File| {
        file.write_all("{\"a\": 1}\n".repeat(1000).as_bytes())?;
        file.seek(SeekFrom::Start(9 << 20))?;
        file.write_all(b"\n")
    };
    write(&mut file).expect("room for a few pages");
    Ok(())
}

fn write_array_record(path: &Path) -> Result<()> {
    let mut writer = ArrayRecordWriter::options().create(path)?;
    (0..100).try_for_each(|_| writer.write(&[7; 1000]))?;
    writer.finish().map(drop)
}

fn write_tf_record(path: &Path) -> Result<()> {
    std::fs::write(path, TfRecord::framed(&[7; 1008]).repeat(1024)).expect("room for 1 GiB");
    Ok(())
}
