//! A job that extracts activations: does it wait for the sink that writes them?
//!
//! `cargo bench -p benches --bench sink --no-default-features --features compress,parquet [-- STEPS]`. Every step of
//! 5.7 s makes 14 layers of `[4, 512, 896]` `f32`, 102.8 MB, and writes them. The same run also measures the job's
//! former method: gzip at level 9, Python's default, on the thread of the job. Steps have the job's duration, but their
//! number is reduced to `STEPS`, 4 by default; 0 skips the job. A step sleeps for the rest of its time. At the end a
//! single shard is written at full speed.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use gristmill::sink::{Compression, Sink, SinkFormat, SinkOptions};
use gristmill::{Array, DType, Element, Result};

#[path = "support/random.rs"]
mod random;

use random::Random;

const LAYERS: usize = 14;
const SHAPE: [usize; 3] = [4, 512, 896];
const STEP: Duration = Duration::from_millis(5700);

fn main() -> Result<()> {
    let steps = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(4);
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    if steps > 0 {
        job(steps, dir.path())?;
    }
    let layers: Vec<Element> = (0..4).map(activations).collect();
    one_shard("parquet, bytes split, zstd:3", &parquet(3, true), &layers, dir.path())?;
    let documents: Vec<Element> = (0..100_000).map(document).collect();
    for compression in [Compression::Zstd(3), Compression::Zstd(9), Compression::Gzip(6), Compression::Lz4] {
        let options = Sink::options(SinkFormat::Jsonl).compression(compression);
        one_shard(&format!("jsonl, {compression}"), &options, &documents, dir.path())?;
    }
    Ok(())
}

fn parquet(level: i32, split: bool) -> SinkOptions {
    Sink::options(SinkFormat::Parquet).compression(Compression::Zstd(level)).byte_stream_split(split).group(1)
}

/// Runs the job with each method of writing.
fn job(steps: u64, folder: &Path) -> Result<()> {
    println!("{:<34} {:>10} {:>10} {:>9} {:>9} {:>10}", "", "in write", "of a step", "MB/step", "ratio", "CPU s/step");
    let gzip = before(1);
    println!("{}", gzip.line("gzip:9, in the job itself"));
    for (name, options) in
        [("parquet, bytes split, zstd:1", parquet(1, true)), ("parquet, bytes split, zstd:3", parquet(3, true))]
    {
        let row = sink(options, &folder.join(name), steps)?;
        println!("{}", row.line(name));
        assert!(row.bytes <= gzip.bytes, "{name} takes more than gzip");
        assert!(row.in_write < 0.01, "{name}: the job waited {:.2} % of the time", row.in_write * 100.0);
    }
    let row = sink(parquet(3, false), &folder.join("plain"), 1)?;
    println!("{}", row.line("parquet, bytes as they are, zstd:3"));
    Ok(())
}

/// Writes all elements into a single shard at full speed, with one thread and with all.
fn one_shard(name: &str, options: &SinkOptions, elements: &[Element], folder: &Path) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut alone = 0.0;
    for threads in [1, cores] {
        let start = Instant::now();
        let options = options.clone().threads(threads).shard_bytes(u64::MAX);
        let mut sink = options.open(folder.join(format!("{name}-{threads}")))?;
        elements.iter().try_for_each(|element| sink.write(element.clone()))?;
        let report = sink.finish()?;
        let rate = report.bytes_in as f64 / 1e6 / start.elapsed().as_secs_f64();
        alone = if threads == 1 { rate } else { alone };
        let (times, ratio) = (rate / alone, report.bytes_in as f64 / report.bytes_out as f64);
        println!(
            "one shard, {name:<28} {threads:>3} threads: {rate:>8.1} MB/s, {times:.2} times that of one, ratio {ratio:.3}"
        );
    }
    Ok(())
}

/// Cost of a method of writing.
struct Row {
    seconds: f64,
    /// Share of the wall time.
    in_write: f64,
    /// Bytes per step.
    bytes: f64,
    cpu: f64,
}

impl Row {
    fn line(&self, name: &str) -> String {
        let raw = (LAYERS * SHAPE.iter().product::<usize>() * 4) as f64;
        format!(
            "{name:<34} {:>8.1}ms {:>8.2} % {:>9.1} {:>9.3} {:>10.2}",
            self.seconds * 1e3,
            self.in_write * 100.0,
            self.bytes / 1e6,
            raw / self.bytes,
            self.cpu
        )
    }
}

/// Runs the job with a sink.
fn sink(options: SinkOptions, folder: &Path, steps: u64) -> Result<Row> {
    let mut sink = options.open(folder)?;
    let (start, mut in_write) = (Instant::now(), Duration::ZERO);
    for step in 0..steps {
        let begin = Instant::now();
        let element = activations(step);
        std::thread::sleep(STEP.saturating_sub(begin.elapsed()));
        let writing = Instant::now();
        sink.write(element)?;
        in_write += writing.elapsed();
    }
    let wall = start.elapsed();
    let report = sink.finish()?;
    Ok(Row {
        seconds: in_write.as_secs_f64() / steps as f64,
        in_write: in_write.as_secs_f64() / wall.as_secs_f64(),
        bytes: report.bytes_out as f64 / steps as f64,
        cpu: report.work.encode_s / steps as f64,
    })
}

/// Runs the job with its former method: it waits until everything is compressed.
fn before(steps: u64) -> Row {
    let (mut in_write, mut bytes) = (Duration::ZERO, 0);
    for step in 0..steps {
        let element = activations(step);
        let writing = Instant::now();
        let mut out = GzEncoder::new(Vec::new(), flate2::Compression::new(9));
        for layer in 0..LAYERS {
            out.write_all(element.array(&name(layer)).expect("it is there").bytes()).expect("memory takes it");
        }
        bytes += out.finish().expect("memory takes it").len();
        in_write += writing.elapsed();
    }
    let seconds = in_write.as_secs_f64() / steps as f64;
    Row {
        seconds,
        in_write: seconds / (STEP.as_secs_f64() + seconds),
        bytes: bytes as f64 / steps as f64,
        cpu: seconds,
    }
}

fn name(layer: usize) -> String {
    format!("layer_{layer:02}")
}

/// Returns values like a residual stream: channels differ in scale, a few channels are many times larger, tails are
/// heavy, and deeper layers have larger values.
fn activations(step: u64) -> Element {
    let mut element = Element::with_capacity(LAYERS);
    for layer in 0..LAYERS {
        let mut random = Random(step.wrapping_mul(31).wrapping_add(layer as u64) | 1 << 40);
        let mut normal = || random.normal() as f32;
        let channels: Vec<(f32, f32)> = (0..SHAPE[2])
            .map(|channel| {
                let scale = (0.5 * normal()).exp() * (1.0 + layer as f32 * 0.3);
                let outlier = if channel % 223 == 7 { 40.0 } else { 0.0 };
                (scale, outlier + 0.2 * normal())
            })
            .collect();
        let mut array = Array::builder(DType::F32, &SHAPE).expect("it fits in memory");
        for row in array.as_mut_slice::<f32>().chunks_exact_mut(SHAPE[2]) {
            // The scale of a token makes the tails of all values heavier than a Gaussian's.
            let size = (0.4 * normal()).exp();
            for (value, (scale, mean)) in row.iter_mut().zip(&channels) {
                *value = mean + scale * size * normal();
            }
        }
        element.insert(name(layer), array.freeze());
    }
    element
}

/// Returns a text of about 2 KB with a few frequent words.
fn document(number: u64) -> Element {
    let mut random = Random(number | 1 << 50);
    let mut text = String::with_capacity(2048);
    for _ in 0..300 {
        let word = (random.normal().abs() * 1500.0) as u64;
        // The number of a word determines its letters.
        let letters =
            (0..3 + word % 6).map(|at| char::from(b'a' + (word.wrapping_mul(2_654_435_761) >> (4 * at)) as u8 % 26));
        text.extend(letters.chain([' ']));
    }
    Element::new().with("id", Array::scalar(number as i64)).with("text", text.as_str())
}
