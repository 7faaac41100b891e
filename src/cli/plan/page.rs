//! The figures of a plan as a page.

use super::Planned;
use super::figures::Figures;
use super::table::HEAD;
use crate::cli::format::{grouped, percent};
use crate::report::html::{Chart, Document, Line, Scale};

/// Returns a page with the figures of a plan.
pub(super) fn page(Planned { pipeline, figures }: &Planned) -> String {
    let mut page = Document::new("What this run will see", &figures.headline(), &pipeline.display().to_string());
    page.chart("Shares of the sources", &shares(figures));
    page.table("Sources", &HEAD, &figures.rows());
    page.list("Warnings", &figures.warnings);
    let facts: Vec<String> = figures.facts().into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
    page.list("Further figures", &facts);
    page.finish([])
}

/// Draws the share of each source by documents, and by tokens below.
fn shares(figures: &Figures) -> Chart {
    let scale = Scale::exactly(1.0);
    let mut chart = Chart::default();
    for source in &figures.sources {
        let detail = format!("{} documents · {:.2} epochs", grouped(source.documents), source.epochs);
        let mut line = Line::new(&source.name, detail).lane("ready", (0.0, scale.at(source.share)), (0.05, 0.45));
        if let Some(tokens) = source.token_share {
            line = line.lane("evaluation", (0.0, scale.at(tokens)), (0.55, 0.95));
        }
        chart.line(line);
    }
    chart.axis(&scale.ticks(percent), "of all sources");
    chart.legend(&[("ready", "share by documents"), ("evaluation", "share by tokens")]);
    chart
}
