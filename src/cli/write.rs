//! Common parts of the commands that write shards: destination, options, progress, and Ctrl-C.

use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Instant;

use crate::dataset::run::skipping::SKIPPED;
use crate::sink::{Compression, Schema, Sink, SinkFormat, SinkOptions, SinkReport};
use crate::source::TokenType;
use crate::spec::Data;
use crate::{Error, Executor, Load, Report, Result, place};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::cli::bad::Skipped;
use crate::cli::format::{count, grouped};
use crate::cli::how::{memory, threads};
use crate::cli::progress::Written;
use crate::cli::{Outcome, interrupt, output};
use crate::report::TokenCount;

/// Where shards go, and how they are written.
#[derive(clap::Args)]
#[command(next_help_heading = "Shards")]
pub(crate) struct Shards {
    /// Folder of the shards, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Bytes of values in a shard, before they are encoded
    ///
    /// A shard ends after the record that reaches the size.
    #[arg(long, value_name = "BYTES", value_parser = some_memory, default_value = "256MiB")]
    shard_size: u64,
    /// Maximum number of records in a shard
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    shard_records: Option<u64>,
    /// What names of shards begin with
    #[arg(long, value_name = "NAME", default_value = "shard")]
    prefix: String,
    /// none, zstd:LEVEL, gzip:LEVEL, brotli:QUALITY, lz4 or snappy [default: that of the format]
    #[arg(long, value_name = "CODEC")]
    compression: Option<Compression>,
    /// Records encoded together, in formats that have groups
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    group: Option<u64>,
    /// Type of token ids [default: uint16, or uint32 if a tokenizer has more ids]
    #[arg(long, value_name = "TYPE", value_parser = token_type())]
    ids: Option<TokenType>,
    /// Write token files without a header, as nanoGPT reads them
    #[arg(long)]
    bare: bool,
    /// Parquet: encode floating-point numbers byte by byte
    ///
    /// It compresses activations and features.
    #[arg(long)]
    byte_stream_split: bool,
    /// Types of columns, as JSON or a file of it: {"score": "float64"}
    ///
    /// It applies to formats with columns. The other columns have the types of the first records.
    #[arg(long, value_name = "JSON", value_parser = schema)]
    schema: Option<Schema>,
    /// Threads that read, and as many that encode [default: all cores]
    ///
    /// `auto` tunes their number.
    #[arg(long, value_name = "N|auto", value_parser = threads)]
    threads: Option<Executor>,
    /// Memory of records that wait to be encoded
    #[arg(long, value_name = "BYTES", value_parser = memory, default_value = "1GiB")]
    ram: u64,
    /// Continue after the last shard in the folder
    #[arg(long)]
    resume: bool,
}

/// Result of a write.
pub(crate) struct Ended {
    report: SinkReport,
    interrupted: bool,
    tokens: Option<Tokens>,
    skipped: Skipped,
}

/// Token ids that this run wrote.
#[derive(Serialize)]
struct Tokens {
    tokens: u64,
    tokens_per_s: f64,
}

/// Figures that a command prints as JSON.
#[derive(Serialize)]
struct Summary<'a> {
    stopped: &'static str,
    folder: &'a Path,
    report: &'a SinkReport,
    #[serde(flatten)]
    tokens: Option<&'a Tokens>,
    skipped: &'a Skipped,
}

/// Returns the number of bad records that a pass has skipped.
fn bad_records(of_pipeline: &Report) -> u64 {
    of_pipeline.notes.iter().filter(|(what, _)| what == SKIPPED).map(|(_, count)| count).sum()
}

/// Adds the verdict of the pipeline if the sink does not limit the run. A run that is too short has no verdict.
fn judged(mut report: SinkReport, of_pipeline: &Report) -> SinkReport {
    if report.bottleneck == "producer" {
        report.verdict = match &*of_pipeline.verdict.bottleneck {
            "none" => String::new(),
            "consumer" => "handing records to the sink limits the run: one thread does it".to_owned(),
            _ => of_pipeline.verdict.text.clone(),
        };
    }
    report
}

/// Parses an amount of memory of at least one byte.
fn some_memory(text: &str) -> std::result::Result<u64, String> {
    match memory(text)? {
        0 => Err("a shard of 0 bytes holds no record: give 1MiB or more".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Makes a parser that accepts the types of token ids.
fn token_type() -> impl TypedValueParser<Value = TokenType> {
    PossibleValuesParser::new(["uint16", "uint32"])
        .map(|name| if name == "uint16" { TokenType::U16 } else { TokenType::U32 })
}

/// Parses a schema, or reads it from a file.
fn schema(text: &str) -> Result<Schema> {
    if text.trim_start().starts_with(['{', '[']) {
        return text.parse();
    }
    let read = crate::regular::read_text(Path::new(text))?;
    read.parse().map_err(|e: Error| e.path(text))
}

impl Shards {
    /// Returns true if the type of token ids was chosen.
    pub(crate) fn chooses_ids(&self) -> bool {
        self.ids.is_some()
    }

    /// Writes `data` to its end, or until an interrupt. Counts tokens if `is_text`.
    /// `told` adds the remedy to errors in the data.
    ///
    /// # Errors
    /// Errors of the pipeline and of the sink. Published shards remain valid.
    pub(crate) fn write(
        &self,
        options: SinkOptions,
        data: Data,
        told: impl Fn(Error) -> Error + Copy,
        is_text: bool,
    ) -> Result<Ended> {
        let start = Instant::now();
        let mut tokens = TokenCount::default();
        let mut skipped = Skipped { records: 0, shards: data.skipped() };
        let pipeline = data.stream().loader().executor(self.threads.unwrap_or_else(Executor::all_cores)).command(true);
        let (mut sink, mut loader) = Sink::of_pipeline(options, &self.out, pipeline)?;
        if self.resume && sink.records() > 0 {
            output::say(&format!(
                "continuing after {} records in {}",
                sink.records(),
                place::shown(&self.out).display()
            ));
        }
        interrupt::listen();
        let mut progress = Written::new(sink.records());
        let written: Result<(SinkReport, bool)> = loop {
            let next = if sink.is_complete() { Poll::Ready(None) } else { interrupt::next(&mut loader) };
            let written = match next {
                Poll::Pending => {
                    skipped.records = bad_records(&loader.report());
                    // The loader's threads may wait for a store that does not respond; they end with the process.
                    std::mem::forget(loader);
                    break sink.stop().map(|report| (report, true));
                }
                Poll::Ready(None) => {
                    let finished = sink.finish_pipeline(&loader);
                    let of_pipeline = loader.report();
                    skipped.records = bad_records(&of_pipeline);
                    break finished.map(|report| (judged(report, &of_pipeline), false));
                }
                Poll::Ready(Some(element)) => element.map_err(told).and_then(|element| {
                    if is_text {
                        tokens.add(&element);
                    }
                    sink.write_of(element, &loader)
                }),
            };
            match written {
                Ok(()) => progress.show(sink.records(), || sink.bytes_in()),
                Err(error) => break Err(error),
            }
        };
        progress.finish();
        let (report, interrupted) = written?;
        let tokens_per_s = tokens.real as f64 / start.elapsed().as_secs_f64().max(1e-9);
        let tokens = is_text.then_some(Tokens { tokens: tokens.real, tokens_per_s });
        Ok(Ended { report, interrupted, tokens, skipped })
    }

    /// Returns the sink options that these arguments choose.
    pub(crate) fn options(&self, format: SinkFormat) -> SinkOptions {
        let mut options = Sink::options(format).shard_bytes(self.shard_size).prefix(&self.prefix);
        if let Some(records) = self.shard_records {
            options = options.shard_records(records);
        }
        if let Some(compression) = self.compression {
            options = options.compression(compression);
        }
        if let Some(records) = self.group {
            options = options.group(records);
        }
        if let Some(Executor::Threads(threads)) = self.threads {
            options = options.threads(threads);
        }
        if let Some(token) = self.ids {
            options = options.token_type(token);
        }
        if let Some(schema) = &self.schema {
            options = options.schema(schema.clone());
        }
        options.bare(self.bare).byte_stream_split(self.byte_stream_split).memory(self.ram).resume(self.resume)
    }

    /// Prints the result of a write.
    pub(crate) fn tell(&self, written: &Ended, json: bool) -> Outcome {
        let stopped = if written.interrupted { "interrupted" } else { "end" };
        if json {
            let tokens = written.tokens.as_ref();
            let Ended { report, skipped, .. } = written;
            output::json(&Summary { stopped, folder: &place::shown(&self.out), report, tokens, skipped });
        } else {
            output::data(&output::wrapped(&written.report.to_string(), 9));
            output::data(&written.skipped.text());
            if let Some(Tokens { tokens, tokens_per_s }) = &written.tokens {
                output::data(&format!("{} tokens · {}/s\n", grouped(*tokens), count(*tokens_per_s)));
            }
        }
        if written.interrupted {
            output::say(&format!(
                "interrupted: {} records are in {}; run the command with --resume to continue after them",
                written.report.records,
                place::shown(&self.out).display()
            ));
            return Outcome::Interrupted;
        }
        Outcome::Done
    }
}
