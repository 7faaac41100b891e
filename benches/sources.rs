//! Rates of opening and reading files, each beside the limit of the machine.
//!
//! `cargo bench -p benches --bench sources --features compress,csv,parquet [-- NAME …]`. CPU time of one thread;
//! opening is measured in wall time on all of rayon's threads. Median of seven rounds.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use gristmill::dataset::map::RandomAccess;
#[cfg(feature = "csv")]
use gristmill::dataset::map::Source;
use gristmill::source::{IndexCache, Jsonl, TokenLayout, TokenType, Tokens};
use gristmill::{Cx, MapDataset, MapDatasetExt, Result};
#[cfg(feature = "csv")]
use gristmill::{DatasetIterator, IterDataset, Runtime};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/median.rs"]
mod median;
#[path = "support/wanted.rs"]
mod wanted;

#[path = "support/serde_element.rs"]
mod serde_element;

use cpu_clock::on_core;
use median::seconds;
use wanted::wanted;

/// Returns the CPU seconds of `work` on this thread.
fn cpu(work: impl FnMut()) -> f64 {
    seconds(7, on_core, work)
}

fn wall(work: impl FnMut()) -> f64 {
    let start = Instant::now();
    seconds(7, || start.elapsed(), work)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    if wanted("jsonl") {
        jsonl(dir.path())?;
    }
    #[cfg(feature = "csv")]
    if wanted("csv") {
        csv(dir.path())?;
    }
    if wanted("crops") {
        crops(dir.path())?;
    }
    #[cfg(feature = "compress")]
    if wanted("stream") {
        stream(dir.path())?;
    }
    Ok(())
}

/// Appends a record of about 600 bytes of English-like text, with an escape about every 50 bytes.
fn record(i: u64, out: &mut String) {
    const WORDS: [&str; 24] = [
        "the",
        "miller",
        "ground",
        "barley",
        "between",
        "two",
        "stones",
        "and",
        "water",
        "turned",
        "again",
        "while",
        "his",
        "daughter",
        "carried",
        "sacks",
        "of",
        "flour",
        "down",
        "to",
        "market",
        "\\n",
        "he",
        "\\\"slowly\\\"",
    ];
    let _ = write!(out, "{{\"id\": {i}, \"text\": \"");
    let mut state = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..96 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let _ = write!(out, "{} ", WORDS[(state % 24) as usize]);
    }
    out.push_str("\", \"url\": \"https://example.org/a\"}\n");
}

fn jsonl(dir: &Path) -> Result<()> {
    let (path, lines) = (dir.join("million.jsonl"), 1_000_000u64);
    let mut text = String::new();
    (0..lines).for_each(|i| record(i, &mut text));
    std::fs::write(&path, &text).expect("room for 700 MB");
    let bytes = text.len() as f64;
    println!("a million lines, {:.0} MB, in the page cache", bytes / 1e6);

    let open = |cache: &IndexCache| Jsonl::options().columns(["text"]).cache(cache.clone()).open(&path);
    let built = wall(|| drop(black_box(open(&IndexCache::Off).expect("a file"))));
    let count = wall(|| {
        black_box(memchr::memchr_iter(b'\n', text.as_bytes()).count());
    });
    println!(
        "open, index built                {:>8.1} ms     {:>6.2} GB/s; counting line ends on one thread {:.2}",
        built * 1e3,
        bytes / built / 1e9,
        bytes / count / 1e9
    );
    let cache = IndexCache::Folder(dir.join("cache"));
    open(&cache)?;
    let cached = wall(|| drop(black_box(open(&cache).expect("a file"))));
    println!("open, index cached               {:>8.1} ms", cached * 1e3);

    let source = open(&cache)?;
    let sample = 100_000u64;
    let sampled = bytes * sample as f64 / lines as f64;
    let in_order = cpu(|| (0..sample).for_each(|i| drop(black_box(source.read(i)))));
    println!(
        "read one text column, in order   {:>8.2} GB/s   {:>6.0} ns a record",
        sampled / in_order / 1e9,
        in_order * 1e9 / sample as f64
    );
    let stride = 611_953;
    let shuffled = cpu(|| (0..sample).for_each(|i| drop(black_box(source.read(i * stride % lines)))));
    println!(
        "read one text column, shuffled   {:>8.2} GB/s   {:>6.0} ns a record",
        sampled / shuffled / 1e9,
        shuffled * 1e9 / sample as f64
    );
    let all = Jsonl::options().cache(cache).open(&path)?;
    let whole = cpu(|| (0..sample).for_each(|i| drop(black_box(all.read(i)))));
    println!(
        "read all columns, in order       {:>8.2} GB/s   {:>6.0} ns a record",
        sampled / whole / 1e9,
        whole * 1e9 / sample as f64
    );
    let rows: Vec<&str> = text.lines().take(sample as usize).collect();
    let serde = cpu(|| {
        for row in &rows {
            let value: serde_json::Value = serde_json::from_str(row).expect("valid");
            black_box(value["text"].as_str());
        }
    });
    println!("serde_json::Value, for comparison{:>8.2} GB/s", sampled / serde / 1e9);
    assert!(rows.iter().take(100).zip(0..).all(|(row, i)| all.read(i).is_ok_and(|e| e == serde_element::element(row))));
    let same = cpu(|| rows.iter().for_each(|row| drop(black_box(serde_element::element(row)))));
    println!(
        "serde_json into the same elements{:>8.2} GB/s; all columns are read at {:.0} % of that rate",
        sampled / same / 1e9,
        100.0 * same / whole
    );
    Ok(())
}

#[cfg(feature = "csv")]
fn csv(dir: &Path) -> Result<()> {
    use gristmill::source::Csv;
    let (path, records) = (dir.join("a.csv"), 500_000u64);
    let mut text = "id,score,name,text\n".to_owned();
    for i in 0..records {
        let _ = writeln!(text, "{i},{}.5,name {i},\"oat, or \"\"rye\"\" {i}\"", i % 97);
    }
    std::fs::write(&path, &text).expect("room for 25 MB");
    let bytes = text.len() as f64;
    let options = || Csv::options().cache(IndexCache::Off);
    let opened = wall(|| drop(black_box(options().open(&path).expect("a file"))));
    let source = options().open(&path)?;
    let read = cpu(|| (0..records).for_each(|i| drop(black_box(source.read(i)))));
    let split = cpu(|| {
        let mut records = ::csv::Reader::from_reader(text.as_bytes());
        let mut record = ::csv::StringRecord::new();
        while records.read_record(black_box(&mut record)).expect("in order") {}
    });
    let made = cpu(|| {
        for record in ::csv::Reader::from_reader(text.as_bytes()).into_deserialize::<(i64, f64, String, String)>() {
            black_box(record.expect("in order"));
        }
    });
    let ds = Source::new(options().open(&path)?).to_iter().batch(256);
    let batched = cpu(|| {
        let run = Runtime::inline();
        let (mut iter, mut cx) = (ds.iter(&run).expect("a pass"), run.cx());
        while let Some(batch) = iter.next(&mut cx).expect("a batch") {
            drop(black_box(batch));
        }
    });
    println!("csv, {records} records of 4 columns, {:.0} MB", bytes / 1e6);
    println!("open, index built                {:>8.1} ms     {:>6.2} GB/s", opened * 1e3, bytes / opened / 1e9);
    println!(
        "read all columns, in order       {:>8.2} GB/s   {:>6.0} ns a record",
        bytes / read / 1e9,
        read * 1e9 / records as f64
    );
    println!(
        "in batches of 256                {:>8.2} GB/s   {:>6.0} ns a record",
        bytes / batched / 1e9,
        batched * 1e9 / records as f64
    );
    println!(
        "the csv crate, split alone       {:>8.2} GB/s; into numbers and strings {:.2} GB/s",
        bytes / split / 1e9,
        bytes / made / 1e9
    );
    Ok(())
}

fn crops(dir: &Path) -> Result<()> {
    let path = dir.join("train.bin");
    let ids: Vec<u8> = (0..200_000_000u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) as u16).to_le_bytes()).collect();
    std::fs::write(&path, &ids).expect("room for 400 MB");
    let tokens = Tokens::open(&path, TokenLayout::Bare(TokenType::U16))?;
    for seq_len in [1024, 4096] {
        let n = (1u64 << 28) / seq_len as u64 / 4;
        let bytes = n as f64 * seq_len as f64 * 4.0;
        let (ds, mut cx) = (tokens.random_crops(seq_len, 7), Cx::default());
        let random = cpu(|| (0..n).for_each(|i| drop(black_box(ds.get(i, &mut cx)))));
        let stored = tokens.random_crops(seq_len, 7).as_stored(true);
        let views = cpu(|| (0..n).for_each(|i| drop(black_box(stored.get(i, &mut cx)))));
        let (from, mut to) = (vec![1u8; seq_len * 4], vec![0u8; seq_len * 4]);
        let copy = cpu(|| (0..n).for_each(|_| black_box(&mut to).copy_from_slice(black_box(&from))));
        println!(
            "random crops of {seq_len} as i32        {:>8.2} GB/s out, {:.0} ns each; views {:.0} ns; a copy in cache {:.1} GB/s",
            bytes / random / 1e9,
            random * 1e9 / n as f64,
            views * 1e9 / n as f64,
            bytes / copy / 1e9
        );
    }
    Ok(())
}

#[cfg(feature = "compress")]
fn stream(dir: &Path) -> Result<()> {
    use gristmill::source::StreamOptions;
    use gristmill::{DatasetIterator, IterDataset, Runtime};
    let mut text = String::new();
    (0..100_000).for_each(|i| record(i, &mut text));
    let path = dir.join("a.jsonl.zst");
    std::fs::write(&path, zstd::encode_all(text.as_bytes(), 3).expect("memory")).expect("room");
    let packed = std::fs::read(&path).expect("written above");
    let ds = StreamOptions::new().columns(["text"]).jsonl(&path)?;
    let ours = cpu(|| {
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).expect("a file"), Cx::default());
        while let Some(record) = iter.next(&mut cx).expect("valid") {
            black_box(record);
        }
    });
    let limit = cpu(|| drop(black_box(zstd::decode_all(packed.as_slice()))));
    let gb = text.len() as f64 / 1e9;
    println!("zst stream, one text column      {:>8.2} GB/s   decompressing alone {:.2}", gb / ours, gb / limit);
    Ok(())
}
