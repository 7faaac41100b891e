//! Which stage worked when: rows of stages, columns of time, the darker the busier.

use std::fmt::Write;

use super::super::{Place, Report};
use super::columns::Columns;
use super::svg::{HEIGHT, WIDTH, escaped, number, stretched};

/// Columns of the map, and rows: the stages that worked most.
const COLUMNS: usize = 120;
const ROWS: usize = 16;

/// The map, where more than one stage worked.
pub(super) fn section(report: &Report, columns: &Columns) -> String {
    let mut worked: Vec<_> = report.stages.iter().filter(|stage| stage.self_s > 0.001 * report.wall_s).collect();
    worked.sort_by(|a, b| b.self_s.total_cmp(&a.self_s));
    worked.truncate(ROWS);
    worked.sort_by_key(|stage| std::cmp::Reverse(stage.id));
    if worked.len() < 2 || columns.all.is_empty() {
        return String::new();
    }
    let mut out = "<section><h2>Which stage worked when</h2><div class=\"rows\">".to_owned();
    for stage in worked {
        let hands = if stage.place == Place::Threads { report.threads.max(1) as f64 } else { 1.0 };
        let group = columns.all.len().div_ceil(COLUMNS);
        let means = columns.all.chunks(group).map(|group| {
            group.iter().map(|column| column.work.get(stage.id).copied().unwrap_or(0.0)).sum::<f64>()
                / group.len() as f64
                / hands
        });
        let shares: Vec<f64> = means.collect();
        let _ = write!(
            out,
            "<div class=\"track\" style=\"--h:20px\"><div class=\"name\">{}</div><div class=\"plot\">{}</div><div class=\"detail\">{:.0} % of {}</div></div>",
            escaped(&stage.name),
            stretched(&stage.name, &cells(&shares)),
            100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64,
            match (stage.place, hands as usize) {
                (Place::Consumer, _) => "your thread".to_owned(),
                (Place::Suffix, _) | (_, 1) => "one thread".to_owned(),
                (_, hands) => format!("{hands} threads"),
            }
        );
    }
    out + "</div></section>\n"
}

/// A cell for each share that can be seen; those that go on alike are one.
fn cells(shares: &[f64]) -> String {
    let width = WIDTH / shares.len().max(1) as f64;
    let level = |share: f64| (share.clamp(0.0, 1.0) * 20.0).round() as u32;
    let (mut out, mut at) = (String::new(), 0);
    while at < shares.len() {
        let alike = shares[at..].iter().take_while(|share| level(**share) == level(shares[at])).count();
        if level(shares[at]) > 0 {
            let opacity = f64::from(level(shares[at])) / 20.0;
            let (x, w) = (number(at as f64 * width), number(alike as f64 * width));
            let _ = write!(out, "<path class=\"heat\" opacity=\"{opacity}\" d=\"M{x} 0h{w}v{HEIGHT}h-{w}z\"/>");
        }
        at += alike;
    }
    out
}
