//! The analysis as a page with charts.

use super::{Analysis, HEAD, Padding};
use crate::cli::format::{count, grouped, percent};
use crate::report::html::{Chart, Document, Line, Scale};

impl Analysis {
    /// Makes a page with the lengths of the documents, and the result of each strategy.
    pub(super) fn page(&self) -> String {
        let padded = self.strategies.first().map_or(0.0, |first| first.padding_share);
        let headline = format!("Padding would take {} of all cells", percent(padded));
        let figures = format!(
            "{} documents · {} {} in column {} · rows of {} tokens, {} in a batch",
            grouped(self.documents),
            count(self.tokens as f64),
            self.unit,
            self.column,
            grouped(self.seq_len as u64),
            self.batch
        );
        let mut page = Document::new(&headline, &self.recommendation, &figures);
        page.chart("Documents by length", &self.lengths());
        page.chart("Tokens and padding", &self.cells());
        page.chart("Cost of attention", &self.attention());
        page.table("In figures", &HEAD, &self.rows());
        page.finish([])
    }

    /// Draws the documents by length, with a column for each doubling.
    fn lengths(&self) -> Chart {
        let most = self.histogram.iter().map(|bar| bar.documents).max().unwrap_or(1).max(1) as f64;
        let scale = Scale::to(most);
        let heights: Vec<f64> = self.histogram.iter().map(|bar| scale.at(bar.documents as f64)).collect();
        // Documents longer than a row have another colour.
        let (fit, long) = heights.split_at(heights.len().saturating_sub(1));
        let fit: Vec<f64> = fit.iter().copied().chain([0.0]).collect();
        let long: Vec<f64> = std::iter::repeat_n(0.0, fit.len() - 1).chain(long.iter().copied()).collect();
        let detail = format!(
            "median {} · p90 {} · p99 {} · longest {}",
            grouped(self.quantiles.median.into()),
            grouped(self.quantiles.p90.into()),
            grouped(self.quantiles.p99.into()),
            grouped(self.quantiles.max.into())
        );
        let mut chart = Chart::default();
        chart.line(
            Line::new("documents", detail)
                .high(150)
                .scale(scale.ticks(count))
                .columns("ready", &fit)
                .columns("evaluation", &long),
        );
        let each = 1.0 / self.histogram.len().max(1) as f64;
        let middle = |at: usize| (at as f64 + 0.5) * each;
        chart.axis(
            &self.histogram.iter().enumerate().map(|(at, bar)| (middle(at), bar.range())).collect::<Vec<_>>(),
            self.unit,
        );
        let share = percent(self.longer_than_seq_len as f64 / self.documents.max(1) as f64);
        chart.legend(&[("ready", "fits into a row"), ("evaluation", &format!("longer than a row: {share}"))]);
        chart
    }

    /// Draws the cells of all batches by content, and the tokens that are cut off. The widest bar fills the chart.
    fn cells(&self) -> Chart {
        let row = (self.seq_len * self.batch) as f64;
        let kept = |o: &Padding| (self.tokens.saturating_sub(o.tokens_lost)) as f64;
        let cells = |o: &Padding| match o.padding_share {
            // Batches of length buckets are smaller than other batches.
            share if share < 1.0 => kept(o) / (1.0 - share),
            _ => o.batches as f64 * row,
        };
        let most = self.strategies.iter().map(|o| cells(o) + o.tokens_lost as f64).fold(0.0, f64::max);
        let scale = Scale::exactly(most);
        let mut chart = Chart::default();
        for o in &self.strategies {
            let (kept, cells, lost) = (scale.at(kept(o)), scale.at(cells(o)), scale.at(o.tokens_lost as f64));
            let detail = format!("{} padding · {} batches", percent(o.padding_share), grouped(o.batches));
            chart.line(Line::new(o.strategy.label(), detail).bar("ready", 0.0, kept).bar("queue", kept, cells).bar(
                "head",
                cells,
                cells + lost,
            ));
        }
        chart.axis(&scale.ticks(count), "cells");
        chart.legend(&[("ready", "tokens"), ("queue", "padding"), ("head", "tokens that are cut off and lost")]);
        chart
    }

    fn attention(&self) -> Chart {
        let scale = Scale::to(self.strategies.iter().map(|o| o.attention_cost).fold(0.0, f64::max));
        let mut chart = Chart::default();
        for o in &self.strategies {
            let detail = format!("{:.2}×", o.attention_cost);
            chart.line(Line::new(o.strategy.label(), detail).bar("work", 0.0, scale.at(o.attention_cost)));
        }
        chart.axis(&scale.ticks(|cost| format!("{cost:.1}×")), "of padding to the maximum");
        chart
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Args, Lengths};
    use super::*;

    fn args(len: u32) -> Args {
        let folder = vec!["tokens".into()];
        Args { data: folder, seq_len: len, batch: 4, ..Args::default() }
    }

    fn measured(column: &str, are_files: bool, lengths: Vec<u32>) -> Lengths {
        Lengths { column: column.to_owned(), unit: "tokens", ids: column.to_owned(), are_files, lengths }
    }

    #[test]
    fn what_is_recommended_can_be_pasted() {
        let lengths = || (1..200).map(|n| n % 97 + 1).collect();
        let of = |column, are_files| Analysis::new(measured(column, are_files, lengths()), &args(64)).unwrap();
        let stages = |ids| {
            format!("  - window_pack: {{length: {{{ids}: 64}}, over_long: split}}\n  - batch: {{batch_size: 4}}\n")
        };
        assert_eq!(of("input_ids", false).yaml, stages("input_ids"));
        assert_eq!(of("a b", false).yaml, stages("\"a b\""));
        let whole = of("tokens", true);
        let crops = "source: {crops: {paths: [\"tokens\"], seq_len: 64}}\nstages:\n  - batch: {batch_size: 4}\n";
        assert_eq!(whole.yaml, crops);
        assert!(whole.text().contains("token files hold no ends of documents") && !whole.text().contains("attn FLOPs"));
        let pipeline =
            format!("source: {{memory: {{records: [{{input_ids: [1, 2]}}]}}}}\nstages:\n{}", stages("input_ids"));
        crate::spec::Pipeline::from_text(pipeline, crate::spec::Format::Yaml, ".").unwrap();
    }

    fn analysis(lengths: Vec<u32>) -> Analysis {
        of_rows(lengths, 64)
    }

    fn of_rows(lengths: Vec<u32>, len: u32) -> Analysis {
        Analysis::new(measured("<text>", false, lengths), &args(len)).unwrap()
    }

    #[test]
    fn the_page_says_what_the_text_says() {
        let analysis = analysis((1..200).map(|n| n % 97 + 1).collect());
        let page = analysis.page();
        let padded = percent(analysis.strategies[0].padding_share);
        assert!(page.contains(&format!("<h1>Padding would take {padded} of all cells</h1>")), "{page}");
        for strategy in &analysis.strategies {
            assert!(page.matches(&format!(">{}<", strategy.strategy.label())).count() >= 3, "{page}");
        }
        assert!(page.contains("&lt;text&gt;") && !page.contains("<text>"), "{page}");
        assert!(page.contains("lost") && page.contains("33–64") && page.len() < 64 << 10, "{page}");
    }

    #[test]
    fn odd_documents_have_a_page_too() {
        for (lengths, len) in [(vec![0], 64), (vec![1], 64), (vec![u32::MAX / 2], 1 << 20), (vec![0; 100], 64)] {
            let page = of_rows(lengths.clone(), len).page();
            assert!(
                page.ends_with("</html>\n") && !page.contains("NaN") && !page.contains("inf"),
                "{lengths:?}: {page}"
            );
        }
    }
}
