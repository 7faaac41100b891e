//! The report of a sink: its work and its bottleneck.

use std::time::Duration;

use serde::Serialize;

use super::crew::Work;
use super::manifest::Manifest;
use super::options::SinkOptions;
use crate::report::format::{count, percent};
use crate::units::Bytes;

/// The report of a [`Sink`](super::Sink) since it was opened.
#[derive(Clone, Debug, Serialize)]
pub struct SinkReport {
    /// Name of the format.
    pub format: &'static str,
    /// Compression of the shards.
    pub compression: String,
    /// Number of shards in the folder.
    pub shards: u64,
    /// Number of records in the folder.
    pub records: u64,
    /// Records in the folder when the sink was opened; `None` if the folder was not resumed.
    pub resumed: Option<u64>,
    /// Bytes of the received values.
    pub bytes_in: u64,
    /// Bytes of the files written from these values.
    pub bytes_out: u64,
    /// `bytes_in` divided by `bytes_out`; 0 if nothing is written yet.
    pub ratio: f64,
    /// Time of the run.
    #[serde(flatten)]
    pub times: SinkTimes,
    /// Million bytes received per second of `wall_s`.
    pub mb_per_s: f64,
    /// Work of the encoding threads.
    #[serde(flatten)]
    pub work: SinkWork,
    /// Most bytes that waited at any time.
    pub peak_bytes: u64,
    /// Limit of the bytes that may wait.
    pub budget_bytes: u64,
    /// Bottleneck: `producer`, `encoding`, `disk` or `memory`.
    pub bottleneck: &'static str,
    /// Description of the bottleneck, with a remedy.
    pub verdict: String,
}

/// Times of a sink.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SinkTimes {
    /// Seconds from opening to the last element.
    pub producing_s: f64,
    /// Seconds from opening until all data was on the disk.
    pub wall_s: f64,
    /// Seconds that [`write`](super::Sink::write) waited for room in memory.
    pub wait_s: f64,
    /// `wait_s` as a share of `producing_s`.
    pub wait_share: f64,
}

/// Work of the encoding threads of a sink.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SinkWork {
    /// Number of encoding threads.
    pub threads: usize,
    /// Seconds spent on encoding and compressing, in all threads together.
    pub encode_s: f64,
    /// Seconds spent on bringing files to the disk and naming them, in all threads together.
    pub publish_s: f64,
}

/// Input of a report.
pub(super) struct Figures<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) work: Work,
    pub(super) options: &'a SinkOptions,
    pub(super) resumed: Option<u64>,
    pub(super) bytes_before: u64,
    pub(super) producing: Duration,
    pub(super) whole: Duration,
    pub(super) waited: Duration,
    pub(super) bytes_in: u64,
    pub(super) most: u64,
    pub(super) budget: u64,
}

/// Share of wait time below which the sink is not the bottleneck.
const KEEPS_UP: f64 = 0.02;
/// Share of their time from which threads count as busy.
const BUSY: f64 = 0.7;

impl SinkReport {
    pub(super) fn new(figures: Figures<'_>) -> Self {
        let Figures { manifest, work, options, .. } = figures;
        let bytes_out = manifest.bytes().saturating_sub(figures.bytes_before);
        let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let (producing_s, wall_s) = (figures.producing.as_secs_f64(), figures.whole.as_secs_f64());
        let wait_s = figures.waited.as_secs_f64();
        let report = Self {
            format: options.format.as_str(),
            compression: options.compression.to_string(),
            shards: manifest.shards.len() as u64,
            records: manifest.records,
            resumed: figures.resumed,
            bytes_in: figures.bytes_in,
            bytes_out,
            ratio: over(figures.bytes_in as f64, bytes_out as f64),
            times: SinkTimes { producing_s, wall_s, wait_s, wait_share: over(wait_s, producing_s) },
            mb_per_s: over(figures.bytes_in as f64 / 1e6, wall_s),
            work: SinkWork {
                threads: work.threads,
                encode_s: work.encoding.as_secs_f64(),
                publish_s: work.publishing.as_secs_f64(),
            },
            peak_bytes: figures.most,
            budget_bytes: figures.budget,
            bottleneck: "producer",
            verdict: String::new(),
        };
        report.judged()
    }

    /// Sets the bottleneck and the verdict from the figures.
    pub(super) fn judged(mut self) -> Self {
        let SinkWork { threads, encode_s, publish_s } = self.work;
        let SinkTimes { wall_s, wait_share, .. } = self.times;
        let of_threads = |seconds: f64| seconds / (wall_s * threads.max(1) as f64).max(1e-9);
        let (encoding, publishing) = (of_threads(encode_s), of_threads(publish_s));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let waited = percent(wait_share);
        (self.bottleneck, self.verdict) = if wait_share < KEEPS_UP {
            (
                "producer",
                format!("the producer of the records limits the run: it waited for the sink {waited} of the time"),
            )
        } else if encoding >= BUSY {
            let more = if threads < cores {
                format!("threads {threads} → {cores}")
            } else {
                "a lower level of compression, or a cheaper format".to_owned()
            };
            let busy = percent(encoding);
            ("encoding", format!("encoding limits the run: threads were busy {busy}, writing waited {waited}; {more}"))
        } else if publishing > encoding {
            (
                "disk",
                format!("the disk limits the run: threads waited {} for it, writing {waited}", percent(publishing)),
            )
        } else {
            let text = "memory limits the run: threads were idle while writing waited";
            ("memory", format!("{text} {waited}; more memory, or smaller shards: a thread works on one at a time"))
        };
        self
    }
}

/// Formats a number with its noun: `1 shard`, `3 shards`.
pub(super) fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number as f64), if number == 1 { "" } else { "s" })
}

display_as!(SinkReport, |self, f| {
    let threads = plural(self.work.threads as u64, "thread");
    writeln!(
        f,
        "{:.1} s · {} in {} of {} ({})",
        self.times.wall_s,
        plural(self.records, "record"),
        plural(self.shards, "shard"),
        self.format,
        self.compression
    )?;
    if let Some(resumed) = self.resumed {
        let were = if resumed == 1 { "was" } else { "were" };
        writeln!(f, "{} {were} there already", plural(resumed, "record"))?;
    }
    writeln!(
        f,
        "{} of values in memory · {} written · ratio {:.2} · {}/s · {threads} · {} of {} waited at most",
        Bytes(self.bytes_in),
        Bytes(self.bytes_out),
        self.ratio,
        Bytes((self.mb_per_s * 1e6) as u64),
        Bytes(self.peak_bytes),
        Bytes(self.budget_bytes)
    )?;
    if self.verdict.is_empty() { Ok(()) } else { write!(f, "VERDICT  {}", self.verdict) }
});
