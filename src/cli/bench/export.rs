//! Export of the rows to CSV, JSON or Markdown.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

use super::row::{Figures, Row};
use super::sweep::label;
use super::table::Bench;

/// Parses a file name whose extension is csv, json or md.
pub(super) fn file(text: &str) -> std::result::Result<PathBuf, String> {
    match Path::new(text).extension().and_then(|ending| ending.to_str()) {
        Some("csv" | "json" | "md") => Ok(text.into()),
        _ => Err("it must end in .csv, .json or .md".into()),
    }
}

pub(super) fn write(bench: &Bench, file: &Path) -> Result<()> {
    let text = match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => serde_json::to_string_pretty(bench).map_err(Error::user)? + "\n",
        Some("md") => markdown(bench),
        _ => csv(bench),
    };
    crate::store::replace(file, text.as_bytes())
}

/// Column of the CSV file: its name and its cell.
type Column = (&'static str, fn(&Figures) -> Option<f64>);

/// Numeric columns of the CSV file. Names contain the unit; figures are not rounded.
const COLUMNS: [Column; 28] = [
    ("runs", |f| Some(f.runs.len() as f64)),
    ("batches_per_run", |f| Some(f.batches as f64)),
    ("batches_per_s_mean", |f| Some(f.rate.batches_per_s.mean)),
    ("batches_per_s_std_dev", |f| f.rate.batches_per_s.std_dev),
    ("batches_per_s_cv", |f| f.rate.batches_per_s.cv),
    ("next_ms_mean", |f| Some(f.next_ms.mean)),
    ("next_ms_std_dev", |f| f.next_ms.std_dev),
    ("next_ms_cv", |f| f.next_ms.cv),
    ("next_ms_min", |f| Some(f.next_ms.min)),
    ("next_ms_p50", |f| Some(f.next_ms.p50)),
    ("next_ms_p90", |f| Some(f.next_ms.p90)),
    ("next_ms_p99", |f| Some(f.next_ms.p99)),
    ("next_ms_max", |f| Some(f.next_ms.max)),
    ("first_batch_s_mean", |f| Some(f.first_batch_s.mean)),
    ("first_batch_s_max", |f| Some(f.first_batch_s.max)),
    ("tokens_per_s", |f| f.tokens.tokens_per_s),
    ("real_token_share", |f| f.tokens.real_token_share),
    ("bytes_per_s", |f| Some(f.bytes_per_s)),
    ("peak_used_bytes", |f| f.peak.map(|peak| peak.used_bytes as f64)),
    ("peak_with_files_bytes", |f| f.peak.map(|peak| peak.with_files_bytes as f64)),
    ("accelerator_utilisation", |f| f.accelerator.as_ref().map(|a| a.utilisation)),
    ("stall_share", |f| f.accelerator.as_ref().map(|a| a.stall)),
    ("input_bound_share", |f| f.accelerator.as_ref().map(|a| a.input_bound_share)),
    ("samples_per_s", |f| f.accelerator.as_ref().and_then(|a| a.samples_per_s)),
    ("relative_speed", |f| f.accelerator.as_ref().and_then(|a| a.relative_speed)),
    ("headroom_batches_per_s", |f| f.headroom_batches_per_s),
    ("headroom_gain", Figures::headroom),
    ("others_cpu_share", |f| f.others_cpu_share),
];

fn csv(bench: &Bench) -> String {
    let keys = bench.rows.first().map_or(&[][..], |row| &row.settings).iter().map(|(key, _)| quoted(key));
    let names = COLUMNS.iter().map(|(name, _)| (*name).to_owned());
    let rest = ["baseline_change", "baseline_beyond_noise", "order_hash", "row_digest", "error"].map(str::to_owned);
    let head = keys.chain(["executor".to_owned()]).chain(names).chain(rest);
    let mut text = head.collect::<Vec<_>>().join(",") + "\n";
    for row in &bench.rows {
        text += &(csv_row(row).join(",") + "\n");
    }
    text
}

fn csv_row(row: &Row) -> Vec<String> {
    let figures = row.figures.as_ref();
    let mut cells: Vec<String> = row.settings.iter().map(|(_, value)| quoted(value)).collect();
    cells.push(figures.map_or_else(String::new, |f| quoted(&f.executor)));
    cells.extend(COLUMNS.iter().map(|(_, cell)| figures.and_then(cell).map_or_else(String::new, |x| x.to_string())));
    cells.push(row.baseline.map_or_else(String::new, |change| change.change.to_string()));
    let beyond = row.baseline.and_then(|change| change.beyond_noise);
    cells.push(beyond.map_or_else(String::new, |beyond| beyond.to_string()));
    cells.push(figures.map_or_else(String::new, |f| f.order_hash.to_string()));
    cells.push(figures.and_then(|f| f.rows).map_or_else(String::new, |rows| rows.digest.to_string()));
    cells.push(row.error.as_ref().map_or_else(String::new, |error| quoted(&error.message)));
    cells
}

/// Quotes a cell as in RFC 4180 if it contains a comma, a quote or a line break.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn markdown(bench: &Bench) -> String {
    let (head, rows) = bench.wide();
    let line = |cells: Vec<String>| {
        format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let mut text = line(head.iter().map(|&head| head.to_owned()).collect());
    text += &line(vec!["---:".to_owned(); head.len()]);
    text.extend(rows.into_iter().map(line));
    for (row, error) in bench.rows.iter().filter_map(|row| Some((row, row.error.as_ref()?))) {
        text += &format!("\n{} failed: {}\n", bench.name(row), error.message);
    }
    for group in bench.groups() {
        let (row, figures) = group[0];
        let of = if row.data.is_empty() { String::new() } else { format!(" of {}", label(&row.data)) };
        text += &format!("\nOrder hash{of}: `{}` ({} batches)\n", figures.order_hash, figures.batches);
        if let Some(rows) = figures.rows {
            text += &format!("\nRow digest{of}: `{}` ({} rows)\n", rows.digest, rows.count);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_how_to_write() {
        assert!(file("a/b.csv").is_ok() && file("b.json").is_ok() && file("b.md").is_ok());
        assert!(file("b.txt").is_err() && file("csv").is_err());
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(quoted("1.5"), "1.5");
        assert_eq!(quoted("{a: 1, b: \"c\"}"), "\"{a: 1, b: \"\"c\"\"}\"");
    }
}
