//! Columns of the tables.

use super::change::Change;
use super::row::{Best, Figures, Row};
use crate::cli::format::{bytes, count, percent, time};
use crate::consumer::Metrics;

/// Column of figures. A cell is empty if its row has no such figure.
pub(super) struct Column {
    pub(super) head: &'static str,
    /// Whether the column is left out if all its cells are empty.
    pub(super) optional: bool,
    pub(super) cell: fn(&[Row], &Row) -> String,
}

const fn always(head: &'static str, cell: fn(&[Row], &Row) -> String) -> Column {
    Column { head, optional: false, cell }
}

const fn optional(head: &'static str, cell: fn(&[Row], &Row) -> String) -> Column {
    Column { head, optional: true, cell }
}

fn some(row: &Row, f: impl Fn(&Figures) -> Option<String>) -> String {
    row.figures.as_ref().and_then(f).unwrap_or_default()
}

fn ms(row: &Row, f: impl Fn(&Figures) -> f64) -> String {
    some(row, |figures| Some(ms_text(f(figures))))
}

fn ms_text(ms: f64) -> String {
    if ms < 0.095 { format!("{ms:.3}") } else { format!("{ms:.*}", if ms < 9.95 { 2 } else { 1 }) }
}

/// Formats a rate: with one decimal from 1 to 1000, otherwise as a count.
fn rate_text(rate: f64) -> String {
    if (1.0..1000.0).contains(&rate) { format!("{rate:.1}") } else { count(rate) }
}

/// Columns for speed.
pub(super) const SPEED: [Column; 9] = [
    always("batches/s", |_, row| {
        some(row, |f| {
            if f.rate.too_short {
                return Some("–".to_owned());
            }
            let rate = f.rate.batches_per_s;
            let sd = rate.std_dev.map_or_else(String::new, |sd| format!(" ± {}", rate_text(sd)));
            Some(rate_text(rate.mean) + &sd)
        })
    }),
    optional("CV", |_, row| some(row, |f| f.rate.batches_per_s.cv.filter(|_| !f.rate.too_short).map(percent))),
    always("p50 ms", |_, row| ms(row, |f| f.next_ms.p50)),
    always("p90", |_, row| ms(row, |f| f.next_ms.p90)),
    always("p99", |_, row| ms(row, |f| f.next_ms.p99)),
    always("max", |_, row| ms(row, |f| f.next_ms.max)),
    optional("first batch", |_, row| some(row, |f| Some(format!("{:.2} s", f.first_batch_s.mean)))),
    optional("baseline", |_, row| row.baseline.map_or_else(String::new, Change::cell)),
    optional("vs fastest", |rows, row| match Best::of(rows, row).filter(|_| rows.len() > 1) {
        None => String::new(),
        Some(Best::This) => "fastest".to_owned(),
        Some(Best::AsGood) => "equal, ±".to_owned(),
        Some(Best::Faster(times)) => format!("{times:.2}× slower"),
    }),
];

/// Columns for the delivered data, memory and headroom.
pub(super) const REST: [Column; 7] = [
    always("steps", |_, row| {
        some(row, |f| Some(count(f.runs.iter().map(|run| run.next_s.len()).sum::<usize>() as f64)))
    }),
    optional("sd ms", |_, row| some(row, |f| f.next_ms.std_dev.map(ms_text))),
    optional("tokens/s", |_, row| some(row, |f| f.tokens.tokens_per_s.filter(|_| !f.rate.too_short).map(count))),
    optional("real", |_, row| some(row, |f| f.tokens.real_token_share.map(percent))),
    always("MiB/s", |_, row| {
        some(row, |f| Some(if f.rate.too_short { "–".to_owned() } else { count(f.bytes_per_s / f64::from(1 << 20)) }))
    }),
    optional("peak RAM", |_, row| some(row, |f| f.peak.map(|peak| bytes(peak.used_bytes)))),
    optional("headroom", |_, row| {
        some(row, |f| {
            f.headroom()
                .map(|gain| if gain < 10.0 { format!("+{}", percent(gain)) } else { format!("{:.0}×", 1.0 + gain) })
        })
    }),
];

fn metric(row: &Row, cell: impl Fn(&Metrics) -> Option<String>) -> String {
    row.accelerator().and_then(cell).unwrap_or_default()
}

/// Columns for the use of the device; empty without a device.
pub(super) const DEVICE: [Column; 8] = [
    optional("AU", |_, row| metric(row, |m| Some(percent(m.utilisation)))),
    optional("step", |_, row| metric(row, |m| Some(time(m.step_ms * 1e3)))),
    optional("stall", |_, row| metric(row, |m| Some(percent(m.stall)))),
    optional("input-bound", |_, row| metric(row, |m| Some(percent(m.input_bound_share)))),
    optional("next() > 50 µs", |_, row| metric(row, |m| Some(percent(m.next_over_50_us)))),
    optional("> 1 ms", |_, row| metric(row, |m| Some(percent(m.next_over_1_ms)))),
    optional("samples/s", |_, row| metric(row, |m| m.samples_per_s.map(count))),
    optional("relative speed", |_, row| metric(row, |m| m.relative_speed.map(percent))),
];
