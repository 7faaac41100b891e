//! `gristmill analyze-padding`: measures the compute spent on padding, and recommends a packing.

mod page;

use std::path::PathBuf;

use crate::pack::{Outcome as Padding, Strategy, compare};
use crate::{Error, Result};
use serde::Serialize;

use crate::cli::format::{count, grouped, percent, plural};
use crate::cli::layout::Layout;
use crate::cli::lengths::{self, Lengths};
use crate::cli::{OUTPUT, Outcome, examples, output, tokenise};

/// Shows what padding costs on your documents, and what removes it
///
/// Text is measured in tokens of --tokenizer; without one, a token is taken to be 4 bytes. Columns of ids are measured as they are.
///
/// The column "attn FLOPs" is the attention over whole rows, without a mask for segments, relative to padding to the maximum.
#[derive(clap::Args)]
#[cfg_attr(test, derive(Default))]
#[command(after_long_help = examples!(
    "gristmill analyze-padding corpus.jsonl --tokenizer tokenizer.json --seq-len 2048"
    "gristmill analyze-padding data/*.parquet --column input_ids --html padding.html"
))]
pub(crate) struct Args {
    /// Files, globs or folders of documents; `-` is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Tokens in a row
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    seq_len: u32,
    /// Rows in a batch
    #[arg(long, value_name = "B", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// File of a tokenizer: tokenizer.json, .tiktoken or a SentencePiece model
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Column of text or ids [default: the first that holds either]
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Read only the first N documents
    #[arg(long, value_name = "N")]
    docs: Option<u64>,
    #[command(flatten)]
    layout: Layout,
    /// Write a page with charts
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Analysis {
    column: String,
    unit: &'static str,
    seq_len: usize,
    batch: usize,
    documents: u64,
    tokens: u64,
    #[serde(flatten)]
    quantiles: Quantiles,
    longer_than_seq_len: u64,
    histogram: Vec<Bar>,
    strategies: Vec<Padding>,
    recommendation: String,
    #[serde(skip)]
    are_files: bool,
    /// Lines of a pipeline file with the recommended packing.
    yaml: String,
}

/// Quantiles of the documents' lengths.
#[derive(Serialize)]
struct Quantiles {
    median: u32,
    p90: u32,
    p99: u32,
    max: u32,
}

/// Number of documents with `from` to `to` tokens.
#[derive(Serialize)]
struct Bar {
    from: u32,
    /// Upper end; `None` for no upper end.
    to: Option<u32>,
    documents: u64,
}

impl Bar {
    fn range(&self) -> String {
        if let Some(to) = self.to { format!("{}–{to}", self.from) } else { format!("from {}", self.from) }
    }
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    // Checked before measuring: an unwritable file would waste the work.
    args.html.iter().try_for_each(|file| crate::store::check_writable(file))?;
    let tokenizer = args.tokenizer.as_deref().map(tokenise::load).transpose()?;
    let measured =
        lengths::measure(&args.data, args.layout.of(&args.data)?, args.column.as_deref(), tokenizer, args.docs)?;
    let analysis = Analysis::new(measured, args)?;
    output::either(args.json, &analysis, || analysis.text());
    match &args.html {
        Some(file) => output::page(file, &analysis.page()).map(|()| Outcome::Done),
        None => Ok(Outcome::Done),
    }
}

/// Columns of the table of strategies.
const HEAD: [&str; 7] = ["strategy", "padding", "docs split", "docs truncated", "tokens lost", "batches", "attn FLOPs"];

impl Analysis {
    fn new(measured: Lengths, args: &Args) -> Result<Self> {
        let (seq_len, batch) = (args.seq_len, args.batch);
        let Lengths { column, unit, ids, are_files, lengths } = measured;
        if lengths.is_empty() {
            return Err(Error::data("there are no documents to analyse"));
        }
        let strategies = compare(&lengths, seq_len as usize, batch as usize)?;
        let (recommendation, yaml) = match are_files {
            true => (WHOLE_FILES.to_owned(), crops(args)),
            false => recommendation(&strategies, &ids, args),
        };
        let mut sorted = lengths;
        sorted.sort_unstable();
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        Ok(Self {
            column,
            unit,
            seq_len: seq_len as usize,
            batch: batch as usize,
            documents: sorted.len() as u64,
            tokens: sorted.iter().map(|&l| u64::from(l)).sum(),
            quantiles: Quantiles { median: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) },
            longer_than_seq_len: (sorted.len() - sorted.partition_point(|&l| l <= seq_len)) as u64,
            histogram: histogram(&sorted, seq_len),
            recommendation,
            yaml,
            are_files,
            strategies,
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} · {} {} in column `{}`\nmedian {} · p90 {} · p99 {} · max {} · {} are longer than {}\n\n",
            plural(self.documents, "document"),
            count(self.tokens as f64),
            self.unit,
            self.column,
            self.quantiles.median,
            self.quantiles.p90,
            self.quantiles.p99,
            self.quantiles.max,
            percent(self.longer_than_seq_len as f64 / self.documents as f64),
            self.seq_len
        );
        let most = self.histogram.iter().map(|b| b.documents).max().unwrap_or(1).max(1);
        for bar in &self.histogram {
            let range = bar.range();
            let width = (bar.documents * 40).div_ceil(most) as usize;
            let share = percent(bar.documents as f64 / self.documents as f64);
            text += &format!("{range:>15}  {} {share}\n", "▇".repeat(width));
        }
        // The table gives no advice if documents are whole files.
        if !self.are_files {
            text.push('\n');
            text += &output::table(&HEAD, &self.rows(), &[]);
        }
        text += &output::wrapped(&format!("\n▶ {}", self.recommendation), 2);
        text += &self.yaml;
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        self.strategies.iter().map(|o| self.row(o)).collect()
    }

    fn row(&self, o: &Padding) -> Vec<String> {
        let share = |n: u64, of: u64| if n == 0 { "–".to_owned() } else { percent(n as f64 / of as f64) };
        vec![
            o.strategy.label().to_owned(),
            percent(o.padding_share),
            share(o.split, self.documents),
            share(o.truncated, self.documents),
            share(o.tokens_lost, self.tokens.max(1)),
            grouped(o.batches),
            format!("{:.2}×", o.attention_cost),
        ]
    }
}

/// Counts documents by length: a bar for each doubling up to the row length, and a bar for longer documents.
fn histogram(sorted: &[u32], seq_len: u32) -> Vec<Bar> {
    let mut bars = Vec::new();
    let (mut from, mut start) = (0, 0);
    let mut push = |from: u32, to: Option<u32>, start: &mut usize| {
        let end = to.map_or(sorted.len(), |to| sorted.partition_point(|&l| l <= to));
        bars.push(Bar { from, to, documents: (end - *start) as u64 });
        *start = end;
    };
    let edges = (0..7).rev().map(|halvings| seq_len >> halvings).filter(|&edge| edge > 0);
    for to in edges {
        push(from, Some(to), &mut start);
        from = to.saturating_add(1);
    }
    push(from, None, &mut start);
    bars
}

const WHOLE_FILES: &str = "each file counts as one document, as token files hold no ends of documents: `crops` cuts rows out of them without padding";

/// Returns the source that cuts rows out of token files, as written in a pipeline file.
fn crops(args: &Args) -> String {
    let paths: Vec<_> = args.data.iter().map(|path| path.display().to_string()).collect();
    let (paths, seq_len, batch) = (serde_json::json!(paths), args.seq_len, args.batch);
    format!("source: {{crops: {{paths: {paths}, seq_len: {seq_len}}}}}\nstages:\n  - batch: {{batch_size: {batch}}}\n")
}

/// Returns the strategy with the least padding that does not cut documents that fit into a row.
/// The result contains its description and the stages for a pipeline file.
fn recommendation(outcomes: &[Padding], ids: &str, args: &Args) -> (String, String) {
    let by = |strategy| outcomes.iter().find(|o: &&Padding| o.strategy == strategy);
    let (Some(padded), Some(window), Some(best)) =
        (by(Strategy::PadToMax), by(Strategy::WindowBestFit), by(Strategy::BestFit))
    else {
        return <(String, String)>::default();
    };
    if padded.padding_share < 0.02 {
        let text = format!("padding is only {}: nothing to gain by packing", percent(padded.padding_share));
        return (text, String::new());
    }
    let chosen = if window.padding_share <= best.padding_share { window } else { best };
    let (name, bins) = match chosen.strategy {
        Strategy::WindowBestFit => ("window_pack", ""),
        _ => ("best_fit_pack", ", num_packing_bins: 64"),
    };
    let is_plain = ids.starts_with(|c: char| c.is_ascii_alphabetic())
        && ids.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let ids = if is_plain { ids.to_owned() } else { serde_json::json!(ids).to_string() };
    let (seq_len, batch) = (args.seq_len, args.batch);
    let yaml = format!(
        "  - {name}: {{length: {{{ids}: {seq_len}}}{bins}, over_long: split}}\n  - batch: {{batch_size: {batch}}}\n"
    );
    let text = format!(
        "{name}: padding {} → {}, {:.1}× fewer batches; splits only documents longer than a row",
        percent(padded.padding_share),
        percent(chosen.padding_share),
        padded.batches as f64 / chosen.batches.max(1) as f64
    );
    (text, yaml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_cover_every_document_once() {
        let sorted = [0, 1, 16, 17, 1024, 1025, 9000];
        let bars = histogram(&sorted, 1024);
        assert_eq!(bars.iter().map(|b| b.documents).collect::<Vec<_>>(), [3, 1, 0, 0, 0, 0, 1, 2]);
        assert_eq!((bars[0].from, bars[0].to, bars.last().unwrap().from), (0, Some(16), 1025));
        assert_eq!(histogram(&[1, 2], 1).len(), 2);
    }
}
