//! All rows together: the table for people, and what they say about each other.

use std::path::PathBuf;

use gristmill::Error;
use serde::Serialize;

use super::row::{Figures, Row};
use super::sweep::label;
use super::{Args, measure::Run};
use crate::format::{bytes, count, percent};
use crate::output;

/// Others that used more of the machine than this are told of.
const BUSY: f64 = 0.1;
/// A run slower than the median of its row by this is told of.
const SLOWER: f64 = 0.1;

/// A whole measurement.
#[derive(Serialize)]
pub(super) struct Bench {
    pipeline: PathBuf,
    version: &'static str,
    cores: usize,
    kernel: Option<String>,
    warmup: u64,
    steps: u64,
    runs: u64,
    step_ms: Option<f64>,
    #[serde(skip)]
    pub(super) points: usize,
    pub(super) rows: Vec<Row>,
    pub(super) warnings: Vec<String>,
}

impl Bench {
    pub(super) fn new(args: &Args, points: usize) -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            pipeline: args.pipeline.clone(),
            version: env!("CARGO_PKG_VERSION"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.map(|text| text.trim().to_owned()),
            warmup: args.warmup,
            steps: args.steps,
            runs: args.runs,
            step_ms: args.step_ms.map(|step| step.as_secs_f64() * 1e3),
            points,
            rows: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds the warnings, once all rows are there.
    pub(super) fn finish(&mut self) {
        for (row, figures) in self.rows.iter().filter_map(|row| Some((row, row.figures.as_ref()?))) {
            let name = if row.settings.is_empty() { String::new() } else { label(&row.settings) + ": " };
            if let Some(share) = figures.others_cpu_share.filter(|&share| share > BUSY) {
                let share = percent(share);
                self.warnings
                    .push(format!("{name}others used {share} of all cores meanwhile; measure again on a quiet machine"));
            }
            let median = figures.batches_per_s.p50;
            let slow = |run: &Run| run.batches_per_s() < (1.0 - SLOWER) * median;
            if let Some((i, run)) = figures.runs.iter().enumerate().find(|(_, run)| slow(run)) {
                let slower = percent(1.0 - run.batches_per_s() / median);
                self.warnings.push(format!("{name}run {} was {slower} slower than the median", i + 1));
            }
            if figures.batches < self.warmup + self.steps {
                let (got, asked) = (figures.batches, self.warmup + self.steps);
                self.warnings.push(format!("{name}the pipeline ends after {got} of {asked} batches"));
            }
        }
    }

    /// Rows that have figures and deliver the same, in groups.
    pub(super) fn groups(&self) -> Vec<Vec<(&Row, &Figures)>> {
        let mut groups: Vec<Vec<(&Row, &Figures)>> = Vec::new();
        for row in &self.rows {
            let Some(figures) = &row.figures else { continue };
            match groups.iter_mut().find(|group| group[0].0.data == row.data) {
                Some(group) => group.push((row, figures)),
                None => groups.push(vec![(row, figures)]),
            }
        }
        groups
    }

    /// An error if two runs that should have delivered the same did not.
    pub(super) fn mismatch(&self) -> Option<Error> {
        for group in self.groups() {
            let (first_row, first) = group[0];
            for (row, figures) in &group {
                for (i, run) in figures.runs.iter().enumerate() {
                    if (run.order_hash, run.batches) == (first.order_hash, first.batches) {
                        continue;
                    }
                    let told = |row: &Row, number, run: &Run| {
                        let name = if row.settings.is_empty() { String::new() } else { label(&row.settings) + " " };
                        format!("{name}run {number}: {} after {} batches", run.order_hash, run.batches)
                    };
                    let message = format!(
                        "the same pipeline delivered different batches: {}; {}",
                        told(first_row, 1, &first.runs[0]),
                        told(row, i + 1, run)
                    );
                    return Some(Error::data(message).help(
                        "a function or a source that is not the same each time; `run --steps N --order-hash` finds where",
                    ));
                }
            }
        }
        None
    }

    /// How much faster the best row of its group is.
    pub(super) fn best(&self, row: &Row) -> Option<f64> {
        let rate = row.figures.as_ref()?.batches_per_s.mean;
        let rates = self.rows.iter().filter(|other| other.data == row.data).filter_map(|other| other.figures.as_ref());
        rates.map(|figures| figures.batches_per_s.mean / rate).max_by(f64::total_cmp)
    }

    pub(super) fn text(&self) -> String {
        let mut text = output::table(&self.head(&SPEED), &self.cells(&SPEED), &[]);
        text += "\n";
        text += &output::table(&self.head(&REST), &self.cells(&REST), &[]);
        for (row, error) in self.rows.iter().filter_map(|row| Some((row, row.error.as_ref()?))) {
            let help = error.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
            text += &output::wrapped(&format!("\n✗ {}: {}{help}", self.name(row), error.message), 2);
        }
        text += "\n";
        text += &self.hashes();
        let kernel = self.kernel.as_ref().map_or_else(String::new, |kernel| format!(" · kernel {kernel}"));
        let step = self.step_ms.map_or_else(String::new, |ms| format!(" · step {ms} ms"));
        text += &format!(
            "{} cores{kernel} · {} runs of {} + {} batches{step}\n",
            self.cores, self.runs, self.warmup, self.steps
        );
        text
    }

    fn hashes(&self) -> String {
        let groups = self.groups();
        let line = |group: &Vec<(&Row, &Figures)>| {
            let (row, figures) = group[0];
            let same = match group.len() {
                _ if self.mismatch().is_some() => "NOT the same".to_owned(),
                1 => "every run".to_owned(),
                n => format!("the same for all {n} rows"),
            };
            let of = if groups.len() > 1 { format!("{}: ", label(&row.data)) } else { String::new() };
            output::wrapped(&format!("order hash {of}{} ({same}, {} batches)", figures.order_hash, figures.batches), 2)
        };
        groups.iter().map(line).collect()
    }

    /// What a row is called where its settings have no columns.
    pub(super) fn name(&self, row: &Row) -> String {
        match &row.figures {
            _ if !row.settings.is_empty() => label(&row.settings),
            Some(figures) => figures.executor.clone(),
            None => self.pipeline.display().to_string(),
        }
    }

    fn shown<'c>(&'c self, columns: &'c [Column]) -> impl Iterator<Item = &'c Column> {
        columns.iter().filter(|c| !c.optional || self.rows.iter().any(|row| !(c.cell)(self, row).is_empty()))
    }

    fn head<'c>(&'c self, columns: &'c [Column]) -> Vec<&'c str> {
        let keys = self.rows.first().map_or(&[][..], |row| &row.settings).iter().map(|(key, _)| key.as_str());
        let keys: Vec<&str> = if self.rows.iter().all(|row| row.settings.is_empty()) { vec![""] } else { keys.collect() };
        keys.into_iter().chain(self.shown(columns).map(|column| column.head)).collect()
    }

    fn cells(&self, columns: &[Column]) -> Vec<Vec<String>> {
        let cells = |row: &Row| {
            let settings: Vec<String> = match row.settings.is_empty() {
                true => vec![self.name(row)],
                false => row.settings.iter().map(|(_, value)| value.clone()).collect(),
            };
            let cells = self.shown(columns).map(|column| {
                let failed = row.figures.is_none() && column.head == columns[0].head;
                if failed { "failed".to_owned() } else { (column.cell)(self, row) }
            });
            settings.into_iter().chain(cells).collect()
        };
        self.rows.iter().map(cells).collect()
    }

    /// Heads and rows of one wide table.
    pub(super) fn wide(&self) -> (Vec<&str>, Vec<Vec<String>>) {
        let rest = |columns: &[Column], row: usize| self.cells(columns).swap_remove(row).split_off(self.settings());
        let rows = (0..self.rows.len()).map(|row| [self.cells(&SPEED).swap_remove(row), rest(&REST, row)].concat());
        (self.head(&SPEED).into_iter().chain(self.head(&REST).split_off(self.settings())).collect(), rows.collect())
    }

    /// Columns in front of the figures.
    fn settings(&self) -> usize {
        self.rows.first().map_or(1, |row| row.settings.len().max(1))
    }
}

/// A column of figures; empty where there is none.
struct Column {
    head: &'static str,
    /// Left out if it is empty everywhere.
    optional: bool,
    cell: fn(&Bench, &Row) -> String,
}

const fn always(head: &'static str, cell: fn(&Bench, &Row) -> String) -> Column {
    Column { head, optional: false, cell }
}

const fn optional(head: &'static str, cell: fn(&Bench, &Row) -> String) -> Column {
    Column { head, optional: true, cell }
}

fn some(row: &Row, f: impl Fn(&Figures) -> Option<String>) -> String {
    row.figures.as_ref().and_then(f).unwrap_or_default()
}

fn ms(row: &Row, f: impl Fn(&Figures) -> f64) -> String {
    some(row, |figures| {
        let ms = f(figures);
        Some(if ms < 0.095 { format!("{ms:.3}") } else { format!("{ms:.*}", if ms < 9.95 { 2 } else { 1 }) })
    })
}

const SPEED: [Column; 8] = [
    always("batches/s", |_, row| {
        some(row, |f| {
            let rate = f.batches_per_s;
            let sd = rate.std_dev.map_or_else(String::new, |sd| format!(" ± {}", count(sd)));
            Some(count(rate.mean) + &sd)
        })
    }),
    optional("CV", |_, row| some(row, |f| f.batches_per_s.cv.map(percent))),
    always("next() p50", |_, row| ms(row, |f| f.next_ms.p50)),
    always("p90", |_, row| ms(row, |f| f.next_ms.p90)),
    always("p99", |_, row| ms(row, |f| f.next_ms.p99)),
    always("max ms", |_, row| ms(row, |f| f.next_ms.max)),
    optional("first batch", |_, row| some(row, |f| Some(format!("{:.2} s", f.first_batch_s.mean)))),
    optional("best is", |bench, row| {
        if bench.rows.len() < 2 {
            return String::new();
        }
        bench.best(row).map_or_else(String::new, |best| if best > 1.0 { format!("{best:.2}×") } else { "▶ this".into() })
    }),
];

const REST: [Column; 7] = [
    optional("tokens/s", |_, row| some(row, |f| f.tokens_per_s.map(count))),
    optional("real", |_, row| some(row, |f| f.real_token_share.map(percent))),
    always("MB/s", |_, row| some(row, |f| Some(count(f.bytes_per_s / 1e6)))),
    optional("peak RAM", |_, row| some(row, |f| f.peak.map(|peak| bytes(peak.used_bytes)))),
    optional("accelerator", |_, row| some(row, |f| f.accelerator.map(|a| percent(a.utilisation)))),
    optional("stall", |_, row| some(row, |f| f.accelerator.map(|a| percent(a.stall)))),
    optional("headspace", |_, row| {
        some(row, |f| {
            f.headspace().map(|gain| if gain < 10.0 { format!("+{}", percent(gain)) } else { format!("{:.0}×", 1.0 + gain) })
        })
    }),
];
