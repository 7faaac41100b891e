//! The figures of a plan as text.

use super::figures::{Figures, Source};
use crate::cli::format::{bytes, count, grouped, percent, plural, time};
use crate::cli::output;

/// Columns of the table of sources.
pub(super) const HEAD: [&str; 8] =
    ["source", "of documents", "of tokens", "documents", "tokens", "epochs", "first repeat", "ends"];

impl Figures {
    /// Returns the figures as text.
    pub(super) fn text(&self) -> String {
        let mut text = self.headline() + "\n";
        text += &format!(
            "planned {} in {}, {}/s\n\n",
            plural(self.amounts.documents, "document"),
            time(self.seconds * 1e6),
            count(self.documents_per_s)
        );
        text += &output::table(&HEAD, &self.rows(), &[]);
        for warning in &self.warnings {
            text += &output::wrapped(&format!("! {warning}"), 2);
        }
        text.push('\n');
        for (name, figure) in self.facts() {
            text += &output::wrapped(&format!("{name:<11} {figure}"), 12);
        }
        text
    }

    /// Returns the amounts of the whole run in a line.
    pub(super) fn headline(&self) -> String {
        let end = if self.amounts.has_ended { ", then the pipeline ends" } else { "" };
        let batches = if self.amounts.batches == 1 { "batch" } else { "batches" };
        let each = self.amounts.rows as f64 / self.amounts.batches.max(1) as f64;
        let mut text = format!("{} {batches} of {} rows{end}", grouped(self.amounts.batches), count(each));
        if let (Some(tokens), Some(padding)) = (self.amounts.tokens, self.amounts.padding_share) {
            text += &format!(" · {} tokens · {} padding", count(tokens as f64), percent(padding));
        }
        text + &format!(" · {} of documents split", percent(self.amounts.split_share))
    }

    /// Returns the rows of the table of sources.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        self.sources.iter().map(row).collect()
    }

    /// Returns further figures with their names.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if let Some(straggler) = self.straggler {
            let text = format!(
                "the slowest of {} parts has {:.2} of the mean cost dealt evenly, {:.2} balanced",
                self.parts, straggler.even, straggler.balanced
            );
            facts.push(("stragglers", text));
        }
        let each = if self.parts > 1 { format!(" by each of {} hosts", self.parts) } else { String::new() };
        if let Some(read) = self.reads.bytes_per_host {
            facts.push(("reads", format!("{}{each}", bytes(read))));
        }
        if let Some(requests) = self.reads.requests_per_host {
            let price = self.reads.price.map_or_else(String::new, |price| format!(", {price:.2} for all"));
            facts.push(("requests", format!("at most {} to stores{each}{price}", grouped(requests))));
        }
        if let Some(run) = &self.longest_run {
            facts.push(("longest run", format!("{} in a row from {} alone", plural(run.rows, "row"), run.source)));
        }
        if let Some(error) = self.error {
            let worst = self.sources.iter().filter_map(|source| source.error).fold(error, f64::max);
            let text = format!(
                "lengths of a sample: amounts of the run ± {}, of a source at most ± {}, in 95 of 100 cases",
                percent(error),
                percent(worst)
            );
            facts.push(("estimate", text));
        }
        if !self.keys_computed.is_empty() {
            let text = "computed during the plan; `gristmill index --keys` makes them once";
            facts.push(("keys", text.to_owned()));
        }
        facts
    }
}

fn row(source: &Source) -> Vec<String> {
    let dash = || "–".to_owned();
    let batch = |batch: Option<u64>| batch.map_or_else(dash, |batch| format!("batch {}", grouped(batch)));
    vec![
        source.name.clone(),
        percent(source.share),
        source.token_share.map_or_else(dash, percent),
        grouped(source.documents),
        source.tokens.map_or_else(dash, grouped),
        format!("{:.2}", source.epochs),
        batch(source.first_repeat),
        batch(source.end),
    ]
}
