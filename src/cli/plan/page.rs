//! The figures of plans as a page, and side by side.

use super::Planned;
use super::figures::{Figures, Source};
use super::table::HEAD;
use crate::cli::format::{count, grouped, percent};
use crate::cli::output;
use crate::report::html::{Chart, Document, Line, Scale};

/// Returns a page with the figures of one or two plans.
pub(super) fn page(plans: &[Planned]) -> String {
    let names: Vec<String> = plans.iter().map(|plan| plan.pipeline.display().to_string()).collect();
    let lead = plans.first().map_or_else(String::new, |plan| plan.figures.headline());
    let mut page = Document::new("What this run will see", &lead, &names.join(" · "));
    for (Planned { figures, .. }, name) in plans.iter().zip(&names) {
        let of = |heading: &str| if plans.len() > 1 { format!("{heading}: {name}") } else { heading.to_owned() };
        page.chart(&of("Shares of the sources"), &shares(figures));
        page.table(&of("Sources"), &HEAD, &figures.rows());
        page.list(&of("Warnings"), &figures.warnings);
        let facts: Vec<String> = figures.facts().into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        page.list(&of("Further figures"), &facts);
    }
    if let [one, other] = plans {
        page.table("Compared", &["figure", &names[0], &names[1]], &compared(&one.figures, &other.figures));
    }
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

/// Returns the two plans as a table, with the warnings of each.
pub(super) fn table(one: &Planned, other: &Planned) -> String {
    let names = [one, other].map(|plan| plan.pipeline.display().to_string());
    let mut text = output::table(&["figure", &names[0], &names[1]], &compared(&one.figures, &other.figures), &[]);
    for (plan, name) in [one, other].into_iter().zip(&names) {
        let warnings = plan.figures.warnings.iter();
        warnings.for_each(|warning| text += &output::wrapped(&format!("! {name}: {warning}"), 2));
    }
    text
}

/// Returns a row for each figure: its name, and its values in both plans.
fn compared(one: &Figures, other: &Figures) -> Vec<Vec<String>> {
    let plans = [one, other];
    let dash = || "–".to_owned();
    let mut rows = Vec::new();
    let mut add = |name: String, figure: &dyn Fn(&Figures) -> Option<String>| {
        let values = plans.map(figure);
        if values.iter().any(Option::is_some) {
            rows.push([vec![name], values.map(|value| value.unwrap_or_else(dash)).to_vec()].concat());
        }
    };
    add("batches".into(), &|plan| Some(grouped(plan.amounts.batches)));
    add("documents".into(), &|plan| Some(grouped(plan.amounts.documents)));
    add("tokens".into(), &|plan| plan.amounts.tokens.map(grouped));
    add("padding".into(), &|plan| plan.amounts.padding_share.map(percent));
    add("documents split".into(), &|plan| Some(percent(plan.amounts.split_share)));
    add("straggler, even".into(), &|plan| Some(format!("{:.2}", plan.straggler?.even)));
    add("straggler, balanced".into(), &|plan| Some(format!("{:.2}", plan.straggler?.balanced)));
    add("longest run of rows".into(), &|plan| Some(grouped(plan.longest_run.as_ref()?.rows)));
    add("bytes of a host".into(), &|plan| Some(count(plan.reads.bytes_per_host? as f64)));
    let mut names: Vec<&str> = Vec::new();
    for source in plans.iter().flat_map(|plan| &plan.sources) {
        if !names.contains(&source.name.as_str()) {
            names.push(&source.name);
        }
    }
    for name in names {
        let of = |plan: &Figures, figure: &dyn Fn(&Source) -> Option<String>| {
            plan.sources.iter().find(|source| source.name == name).and_then(figure)
        };
        add(format!("{name}: of documents"), &|plan| of(plan, &|source| Some(percent(source.share))));
        add(format!("{name}: of tokens"), &|plan| of(plan, &|source| source.token_share.map(percent)));
        add(format!("{name}: epochs"), &|plan| of(plan, &|source| Some(format!("{:.2}", source.epochs))));
        add(format!("{name}: first repeat"), &|plan| of(plan, &|source| source.first_repeat.map(grouped)));
        add(format!("{name}: ends"), &|plan| of(plan, &|source| source.end.map(grouped)));
    }
    rows
}
