//! gristmill against the machine's limits, measured in one run, so that every figure is a ratio.
//!
//! `cargo bench -p benches --bench limits --all-features [-- NAME …]`. CPU time of one thread (wall time if the system
//! does not report CPU time). A limit and the figure compared with it are measured in turns, nine rounds each; the
//! result is the median.

use std::cell::Cell;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill::dataset::Remainder;
use gristmill::dataset::map::{RandomAccess, Range, Source};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::rng::IndexShuffle;
use gristmill::source::{IndexCache, Jsonl, Lines, RandomCrops, TokenLayout, TokenType, Tokens};
use gristmill::text::{TextEncoder, Tokenise, TokeniseMap, TokeniseOptions, Tokenizer};
use gristmill::{
    DatasetIterator, Error, IterDataset, IterDatasetExt, Load, MapDataset, MapDatasetExt, Result, Runtime,
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

/// Returns the CPU seconds of `work`.
fn clock(work: impl FnOnce()) -> f64 {
    let start = on_core();
    work();
    (on_core() - start).as_secs_f64()
}

/// Runs both in turns after an unmeasured run each. Returns the median CPU seconds of each.
fn turns(mut limit: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    limit();
    ours();
    medians(&(0..ROUNDS).map(|_| (clock(&mut limit), clock(&mut ours))).collect::<Vec<_>>())
}

fn medians(rounds: &[(f64, f64)]) -> (f64, f64) {
    let (mut limits, mut ours): (Vec<_>, Vec<_>) = rounds.iter().copied().unzip();
    (median(&mut limits), median(&mut ours))
}

/// Prints a line: name, our rate per CPU second, and its share of the limit's rate.
fn line(name: &str, unit: &str, work: f64, (limit_s, ours_s): (f64, f64), limit: &str) {
    let (ours, best) = (work / ours_s, work / limit_s);
    println!("{name:<40} {ours:>8.2} {unit:<9} {:>6.1} % of {limit} ({best:.2})", 100.0 * ours / best);
}

/// Prints a line for paired measurements: the share is the median of the pairs' shares.
fn paired_line(name: &str, unit: &str, work: f64, pairs: &[(f64, f64)], limit: &str) {
    let ([low, middle, high], (limit_s, ours_s)) = (shares(pairs), medians(pairs));
    let (ours, best) = (work / ours_s, work / limit_s);
    println!(
        "{name:<40} {ours:>8.2} {unit:<9} {middle:>6.1} % of {limit} ({best:.2}), quartiles {low:.1} to {high:.1} %"
    );
}

/// A bench that measures and prints. It writes its files to the folder.
type Bench = fn(&Path) -> Result<()>;

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("gristmill-limits-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(e, &folder))?;
    let benches: [(&str, Bench); 7] = [
        ("records", records),
        ("report", report_cost),
        ("recording", recording),
        ("text", text),
        ("crops", crops),
        ("open", open_lines),
        ("shuffle", shuffle),
    ];
    let result = benches.iter().filter(|(name, _)| wanted(name)).try_for_each(|(_, bench)| bench(&folder));
    std::fs::remove_dir_all(&folder).map_err(|e| Error::io(e, &folder))?;
    result
}

const RECORD: usize = 2048;
const BATCH: usize = 32;

/// Sums and stacks 2 KiB records from memory, 32 at a time: a typed pipeline against a hand-written loop.
fn records(_: &Path) -> Result<()> {
    let records = Records(Arc::new((0..8192u32).map(|i| [i as u8; RECORD]).collect()));
    let work = (records.0.len() * RECORD) as f64 / 1e9;
    let by_hand = || {
        for chunk in records.0.chunks_exact(BATCH) {
            let mut batch = Vec::with_capacity(BATCH * RECORD);
            let mut sums = Vec::with_capacity(BATCH);
            for record in chunk {
                sums.push(sum(record));
                batch.extend_from_slice(record);
            }
            black_box((batch, sums));
        }
    };
    let ours = || {
        let summed = Source::new(records.clone()).map(|(all, at)| (sum(&all[at]), all, at));
        for batch in summed.to_iter().batch_with_fn(BATCH, Remainder::Drop, stack).loader().build().unwrap() {
            black_box(batch.unwrap());
        }
    };
    line("records: typed pipeline, 2 KiB", "GB/s", work, turns(by_hand, ours), "a loop by hand");
    Ok(())
}

type All = Arc<Vec<[u8; RECORD]>>;

#[derive(Clone)]
struct Records(All);

impl RandomAccess for Records {
    type Record = (All, usize);
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read(&self, index: u64) -> Result<Self::Record> {
        Ok((self.0.clone(), index as usize))
    }
}

fn sum(record: &[u8; RECORD]) -> u64 {
    record.iter().map(|&b| u64::from(b)).sum()
}

fn stack(items: Vec<(u64, All, usize)>) -> Result<(Vec<u8>, Vec<u64>)> {
    let mut batch = Vec::with_capacity(items.len() * RECORD);
    let mut sums = Vec::with_capacity(items.len());
    for (sum, all, at) in items {
        sums.push(sum);
        batch.extend_from_slice(&all[at]);
    }
    Ok((batch, sums))
}

/// Runs a pipeline with and without the measurements for the wait report.
fn report_cost(_: &Path) -> Result<()> {
    let records = Records(Arc::new((0..8192u32).map(|i| [i as u8; RECORD]).collect()));
    let work = records.0.len() as f64 / 1e6;
    let pipeline = || {
        let summed = Source::new(records.clone()).map(|(all, at)| (sum(&all[at]), all, at)).map(|x| x);
        summed.to_iter().batch_with_fn(BATCH, Remainder::Drop, stack)
    };
    let without = || {
        let run = Runtime::inline();
        let (mut iter, mut cx) = (pipeline().iter(&run).unwrap(), run.cx());
        while let Some(batch) = iter.next(&mut cx).unwrap() {
            black_box(batch);
        }
    };
    let with = || pipeline().loader().build().unwrap().for_each(|batch| drop(black_box(batch.unwrap())));
    // Many short turns, compared in pairs: the difference is smaller than the variation of the machine's speed.
    let pairs = pairs(401, || Ok(clock(without)), || Ok(clock(with)))?;
    paired_line("report: with its measurements", "M rec/s", work, &pairs, "the same without");
    Ok(())
}

/// Runs a pipeline with and without recording every batch and chunk. The batches have a few kilobytes, so there are
/// more of them per second than any training step takes.
fn recording(_: &Path) -> Result<()> {
    let records = Records(Arc::new((0..8192u32).map(|i| [i as u8; RECORD]).collect()));
    let work = records.0.len() as f64 / 1e6;
    let run = |keep: bool| {
        let summed = Source::new(records.clone()).map(|(all, at)| (sum(&all[at]), all, at)).map(|x| x);
        let loader = summed.to_iter().batch_with_fn(BATCH, Remainder::Drop, stack).loader().keep_records(keep);
        loader.build().unwrap().for_each(|batch| drop(black_box(batch.unwrap())));
    };
    let pairs = pairs(401, || Ok(clock(|| run(false))), || Ok(clock(|| run(true))))?;
    paired_line("recording: with records", "M rec/s", work, &pairs, "the same without");
    Ok(())
}

/// Runs JSONL → text → ids → packed rows → batch on one thread, against the tokenizer alone on equal texts: on the real
/// texts, which the tokenizer has not cached, and on a long corpus of their sentences in another order.
fn text(folder: &Path) -> Result<()> {
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared"));
    let (corpus, vocabulary) = (shared.join("data/corpus-sample.jsonl"), shared.join("tokenizers/gpt2.tokenizer.json"));
    let Ok(lines) = std::fs::read_to_string(&corpus) else {
        println!("text: skipped, {} is not there", corpus.display());
        return Ok(());
    };
    let texts: Vec<String> = lines.lines().map(text_of).collect();
    let (warm, cold) = texts.split_at(texts.len() * 2 / 5);
    let bench = |name, warm: &[String], texts: &[String]| text_of_corpus(name, folder, &vocabulary, warm, texts);
    bench("text: real, unseen, 2 MB", warm, cold)?;
    bench("text: its sentences, 24 MB", &[], &rearranged(&texts, 24 << 20))
}

/// Measures both sides in turns. Every round begins with a new tokenizer for each side, warmed by the texts of `warm`
/// only. The sides alternate in going first.
fn text_of_corpus(name: &str, folder: &Path, vocabulary: &Path, warm: &[String], texts: &[String]) -> Result<()> {
    let measured = folder.join("measured.jsonl");
    let lines: Vec<String> = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string()).collect();
    std::fs::write(&measured, lines.join("\n")).map_err(|e| Error::io(e, &measured))?;
    let bytes = texts.iter().map(String::len).sum::<usize>() as f64;
    let warmed = || -> Result<Tokenizer> {
        let tokenizer = Tokenizer::from_file(vocabulary)?;
        let mut ids = Vec::new();
        warm.iter().try_for_each(|text| tokenizer.encode_into(text, &mut ids))?;
        Ok(tokenizer)
    };
    let tokens = Cell::new(0);
    let alone = || -> Result<f64> {
        let tokenizer = warmed()?;
        let mut ids = Vec::new();
        let mut count = 0;
        let start = on_core();
        for text in texts {
            ids.clear();
            tokenizer.encode_into(text, &mut ids)?;
            count += black_box(&ids).len();
        }
        let took = (on_core() - start).as_secs_f64();
        tokens.set(count);
        Ok(took)
    };
    let pipeline = |window: usize| -> Result<f64> {
        let encoder = TextEncoder::new(warmed()?, &TokeniseOptions::default())?;
        let rows =
            WindowPackOptions::new(RowSpec::new([("text_tokens", 1024)])).over_long(gristmill::pack::OverLong::Split);
        let rows = rows.window(window);
        let jsonl = Jsonl::options().columns(["text"]).cache(IndexCache::Off).open(&measured)?;
        let ids = Source::new(jsonl).tokenise_with(Tokenise::column(encoder, "text").named(["text_tokens"]));
        let start = on_core();
        for batch in ids.to_iter().window_pack(rows).batch(8).loader().build()? {
            black_box(batch?);
        }
        Ok((on_core() - start).as_secs_f64())
    };
    println!("{name:<40} {:.1} MB", bytes / 1e6);
    // The default window, and a smaller window that leaves more of the CPU cache to the tokenizer.
    for window in [1024, 256] {
        let rounds = pairs(2 * ROUNDS + 1, alone, || pipeline(window))?;
        let name = format!("  to packed batches, window of {window}");
        paired_line(&name, "M tok/s", tokens.get() as f64 / 1e6, &rounds, "the engine alone");
    }
    Ok(())
}

/// Returns documents made of randomly drawn sentences of `texts`, with similar lengths.
fn rearranged(texts: &[String], bytes: usize) -> Vec<String> {
    let sentences: Vec<&str> = texts.iter().flat_map(|text| text.split_inclusive(". ")).collect();
    let mut state = 1u64;
    let mut draw = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let (mut documents, mut left) = (Vec::new(), bytes);
    while left > 0 {
        let len = texts[draw(texts.len())].len();
        let mut document = String::with_capacity(2 * len);
        while document.len() < len {
            document.push_str(sentences[draw(sentences.len())]);
        }
        left = left.saturating_sub(document.len());
        documents.push(document);
    }
    documents
}

fn text_of(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).expect("the sample is JSON");
    value["text"].as_str().expect("every line has a text").to_owned()
}

/// Ids per crop, and crops per batch.
const CROP: usize = 1024;
const CROPS: usize = 256;

/// Measures random crops of 1024 `u16` ids, widened to `i32`, against memcpy of the output: single crops, and batches,
/// for which a hand-written loop is measured too.
fn crops(folder: &Path) -> Result<()> {
    let path = folder.join("tokens.bin");
    let ids: Vec<u16> = (0..100_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) as u16).collect();
    std::fs::write(&path, bytemuck::cast_slice(&ids)).map_err(|e| Error::io(e, &path))?;
    let crops = Tokens::open(&path, TokenLayout::Bare(TokenType::U16))?.random_crops(CROP, 7);
    single_crops(&crops);
    stacked_crops(&crops, &ids);
    Ok(())
}

fn single_crops(crops: &RandomCrops) {
    const COUNT: usize = 20_000;
    let work = (COUNT * CROP * 4) as f64 / 1e9;
    let from = vec![1u8; COUNT * CROP * 4];
    let copy = || {
        for chunk in from.chunks_exact(CROP * 4) {
            black_box(chunk.to_vec());
        }
    };
    let mut cx = gristmill::Cx::default();
    let mut indices = 0u64..;
    let ours = || {
        for index in indices.by_ref().take(COUNT) {
            black_box(crops.get(index, &mut cx).unwrap());
        }
    };
    line("crops: random, 1024 u16 to i32", "GB/s", work, turns(copy, ours), "memcpy of the output");
}

/// Measures batches of crops. Copies and the hand-written loop alternate between two buffers, like a consumer that
/// releases a batch after it has received the next batch.
fn stacked_crops(crops: &RandomCrops, ids: &[u16]) {
    const BATCHES: usize = 64;
    const PAIRS: usize = 61;
    let work = (BATCHES * CROPS * CROP * 4) as f64 / 1e9;
    let from = vec![1i32; BATCHES * CROPS * CROP];
    let mut buffers = [vec![1i32; CROPS * CROP], vec![1i32; CROPS * CROP]];
    let mut copied = buffers.clone();
    let mut copy = || {
        for (at, source) in from.chunks_exact(CROPS * CROP).enumerate() {
            copied[at % 2].copy_from_slice(source);
            black_box(&copied);
        }
    };
    let mut indices = 0u64..;
    let places = IndexShuffle::new((ids.len() - CROP) as u64, 42, 4).unwrap();
    let mut by_hand = || {
        for (at, first) in indices.by_ref().step_by(CROPS).take(BATCHES).enumerate() {
            for (row, index) in buffers[at % 2].chunks_exact_mut(CROP).zip(first..) {
                let from = places.get(index) as usize;
                row.iter_mut().zip(&ids[from..from + CROP]).for_each(|(out, &id)| *out = id.into());
            }
            black_box(&buffers);
        }
    };
    let mut cx = gristmill::Cx::default();
    let mut indices = 0u64..;
    let mut ours = || {
        let mut kept = None;
        for first in indices.by_ref().step_by(CROPS).take(BATCHES) {
            let indices: Vec<u64> = (first..).take(CROPS).collect();
            kept = black_box(crops.bulk().unwrap().get_stacked(&indices, &mut cx));
        }
        drop(kept);
    };
    let rounds = pairs(PAIRS, || Ok(clock(&mut copy)), || Ok(clock(&mut by_hand))).unwrap();
    paired_line("crops: batches of 256, by hand", "GB/s", work, &rounds, "memcpy of the output");
    let rounds = pairs(PAIRS, || Ok(clock(&mut copy)), || Ok(clock(&mut ours))).unwrap();
    paired_line("crops: batches of 256", "GB/s", work, &rounds, "memcpy of the output");
}

/// Opens a file of a million lines without a cached index, which is then built, and with a cached index.
fn open_lines(folder: &Path) -> Result<()> {
    const LINES: usize = 1_000_000;
    let path = folder.join("lines.txt");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).map_err(|e| Error::io(e, &path))?);
    for i in 0..LINES {
        writeln!(file, "{i}: {}", "x".repeat(i % 120)).map_err(|e| Error::io(e, &path))?;
    }
    file.flush().map_err(|e| Error::io(e, &path))?;
    drop(file);
    let count = || {
        let bytes = std::fs::read(&path).unwrap();
        black_box(memchr::memchr_iter(b'\n', &bytes).count());
    };
    let clock = |work: &dyn Fn()| {
        let start = std::time::Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    let cold = || drop(black_box(Lines::options().cache(IndexCache::Off).open(&path).unwrap()));
    let cached = || drop(black_box(Lines::open(&path).unwrap()));
    cached();
    let (count, cold, cached) = (clock(&count), clock(&cold), clock(&cached));
    println!(
        "open: a million lines (wall time)        cold {cold:.1} ms, cached {cached:.2} ms, reading and counting {count:.1} ms"
    );
    Ok(())
}

/// Reads shuffled indices of 10^12 elements, against the permutation function alone.
fn shuffle(_: &Path) -> Result<()> {
    const INDICES: u64 = 1_000_000;
    let permutation = IndexShuffle::new(1_000_000_000_000 - 1, 42, 4)?;
    let ds = Range::new(0, 1_000_000_000_000).shuffle(42);
    let mut cx = gristmill::Cx::default();
    let kernel = || {
        black_box((0..INDICES).map(|i| permutation.get(i)).fold(0, u64::wrapping_add));
    };
    let dataset = || {
        let mut sum = 0i64;
        for i in 0..INDICES {
            sum = sum.wrapping_add(ds.get(i, &mut cx).unwrap().unwrap());
        }
        black_box(sum);
    };
    let work = INDICES as f64 / 1e6;
    line("shuffle: 10^12 elements", "M idx/s", work, turns(kernel, dataset), "the permutation alone");
    Ok(())
}
