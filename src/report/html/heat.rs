//! Heat maps of a run: the work of each stage over time, and the fill of the buffer over time. Darker cells have larger values.

use std::fmt::Write;

use super::super::format::percent;
use super::super::{Place, Report};
use super::columns::{Column, Columns};
use super::row::{self, Row};
use super::svg::{HEIGHT, WIDTH, number};
use super::tracks::RUN;
use crate::cx::{Fill, LEVELS};

/// Columns of a map, and maximum rows: the stages that worked most.
const COLUMNS: usize = 120;
const ROWS: usize = 16;

/// Returns the map of the buffer, a row per range of filled places; empty without a buffer or without looks at it.
pub(super) fn buffer(report: &Report, columns: &Columns) -> String {
    let capacity = u32::try_from(report.picture.capacity).unwrap_or(u32::MAX);
    let levels: Vec<usize> = (0..=Fill::level(capacity)).rev().collect();
    let seen: f64 = columns.looks.iter().sum();
    if capacity == 0 || seen <= 0.0 {
        return String::new();
    }
    let mut out = "<section><h2>Batches ready when the loop called next()</h2><div class=\"rows tight\">".to_owned();
    for level in levels {
        // The top row includes the levels above the capacity.
        let is_top = level == Fill::level(capacity);
        let at = |levels: &[f64; LEVELS]| levels[level..].iter().take(if is_top { LEVELS } else { 1 }).sum::<f64>();
        let of = |column: &Column| at(&column.fill);
        let (least, most) = Fill::places(level);
        let name = match (least, if is_top { capacity } else { most }) {
            (0, _) => "none".to_owned(),
            (least, most) if least >= most => most.to_string(),
            (least, most) => format!("{least}–{most}"),
        };
        let share = at(&columns.looks) / seen;
        let class = if level == 0 { "heat" } else { "ready" };
        row(&mut out, &name, &cells(class, &means(columns, of)), &percent(share), 15);
    }
    out + &axis(columns, "ready") + "</div></section>\n"
}

/// Returns the time axis below a map, and the meaning of its shades.
fn axis(columns: &Columns, class: &str) -> String {
    let shade =
        |share: f64| format!("<li><i class=\"{class}\" style=\"opacity:{share}\"></i>{:.0} %</li>", 100.0 * share);
    let shades: String = [0.25, 0.5, 1.0].map(shade).concat();
    row::axis(&super::tracks::axis(columns.span()), RUN)
        + &format!("<ul class=\"legend\"><li>share of the time</li>{shades}</ul>")
}

/// Writes a row of a map.
fn row(out: &mut String, name: &str, cells: &str, detail: &str, height: u32) {
    *out += &Row { name, detail, height, scale: &[], shapes: cells }.markup();
}

/// Returns the means of a figure over the columns of a map.
fn means(columns: &Columns, of: impl Fn(&Column) -> f64) -> Vec<f64> {
    let group = columns.all.len().div_ceil(COLUMNS);
    columns.all.chunks(group).map(|group| group.iter().map(&of).sum::<f64>() / group.len() as f64).collect()
}

/// Returns the map of stages; empty if fewer than two worked.
pub(super) fn stages(report: &Report, columns: &Columns) -> String {
    let mut worked: Vec<_> = report.stages.iter().filter(|stage| stage.work.self_s > 0.001 * report.wall_s).collect();
    worked.sort_by(|a, b| b.work.self_s.total_cmp(&a.work.self_s));
    worked.truncate(ROWS);
    worked.sort_by_key(|stage| std::cmp::Reverse(stage.id));
    if worked.len() < 2 || columns.all.is_empty() {
        return String::new();
    }
    let mut out = "<section><h2>Which stage worked when</h2><div class=\"rows\">".to_owned();
    for stage in worked {
        let hands = if stage.place == Place::Threads { report.execution.threads.max(1) as f64 } else { 1.0 };
        let shares = means(columns, |column| column.work.get(stage.id).copied().unwrap_or(0.0) / hands);
        let whose = match (stage.place, hands as usize) {
            (Place::Consumer, _) => "your thread".to_owned(),
            (Place::Suffix, _) | (_, 1) => "one thread".to_owned(),
            (_, hands) => format!("{hands} threads"),
        };
        let mean = 100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        row(&mut out, &stage.name, &cells("heat", &shares), &format!("{mean:.0} % of {whose}"), 20);
    }
    out + &axis(columns, "heat") + "</div></section>\n"
}

/// Returns a cell for each visible share. Neighbouring cells of equal level are merged.
fn cells(class: &str, shares: &[f64]) -> String {
    let width = WIDTH / shares.len().max(1) as f64;
    let level = |share: f64| (share.clamp(0.0, 1.0) * 20.0).round() as u32;
    let (mut out, mut at) = (String::new(), 0);
    while at < shares.len() {
        let alike = shares[at..].iter().take_while(|share| level(**share) == level(shares[at])).count();
        if level(shares[at]) > 0 {
            let opacity = f64::from(level(shares[at])) / 20.0;
            let (x, w) = (number(at as f64 * width), number(alike as f64 * width));
            let _ = write!(out, "<path class=\"{class}\" opacity=\"{opacity}\" d=\"M{x} 0h{w}v{HEIGHT}h-{w}z\"/>");
        }
        at += alike;
    }
    out
}
