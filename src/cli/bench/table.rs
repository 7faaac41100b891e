//! Results of a whole measurement: tables, hashes and warnings.

use std::path::{Path, PathBuf};

use crate::element::OrderHash;
use crate::{Error, Part, Result};
use serde::Serialize;

use super::baseline::Baseline;
use super::columns::{Column, DEVICE, REST, SPEED};
use super::device::Kind;
use super::point::Measured;
use super::row::{Failed, Figures, Row};
use super::sweep::{Point, label};
use super::usage::busy;
use super::{Args, measure::Run};
use crate::cli::format::{grouped, percent};
use crate::cli::output;

/// Share by which a run must be slower than the median of its row to be reported.
const SLOWER: f64 = 0.1;

/// Results of a whole measurement.
#[derive(Serialize)]
pub(super) struct Bench {
    pipeline: PathBuf,
    version: &'static str,
    cores: usize,
    kernel: Option<String>,
    warmup: u64,
    steps: u64,
    runs: u64,
    consumer: Option<Kind>,
    /// Delivered part of every batch; `None` for whole batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// Step time of the emulated accelerator.
    step_ms: Option<f64>,
    pub(super) rows: Vec<Row>,
    pub(super) warnings: Vec<String>,
}

impl Bench {
    /// Makes a measurement of the given part of batches, without rows.
    pub(super) fn new(args: &Args, part: Option<&Part>) -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            pipeline: args.pipeline.clone(),
            version: env!("CARGO_PKG_VERSION"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.map(|text| text.trim().to_owned()),
            warmup: args.warmup,
            steps: args.steps,
            runs: args.runs,
            consumer: args.consumer.clone().or(args.step.time().map(|_| Kind::Emulated)),
            part: part.map(Part::to_string),
            step_ms: args.step.time().map(|step| step.as_secs_f64() * 1e3),
            rows: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds the row of a point. Returns the error if the point has no figures.
    pub(super) fn add(
        &mut self,
        point: &Point,
        measured: Result<Measured>,
        baseline: Option<&Baseline>,
    ) -> Option<Error> {
        let mut resident = None;
        let nothing = || Error::config("nothing was measured");
        let figures = measured.and_then(|mut measured| {
            resident = measured.resident.take();
            Figures::new(measured).ok_or_else(nothing)
        });
        let (figures, error) = match figures {
            Ok(figures) => (Some(figures), None),
            Err(error) => (None, Some(error)),
        };
        let failed = error.as_ref().map(Failed::new);
        let mut row = Row { data: point.data(), settings: point.0.clone(), figures, error: failed, baseline: None };
        row.baseline = baseline.and_then(|baseline| baseline.change(&row));
        // Rows with the same data share the loop over batches in memory.
        let headroom = |row: &Row| row.figures.as_ref().and_then(|figures| figures.further.resident.clone());
        let resident = resident.or_else(|| self.rows.iter().filter(|other| other.data == row.data).find_map(headroom));
        let rows = self.rows.iter().filter(|other| other.data == row.data).find_map(|row| row.figures.as_ref()?.rows);
        if let Some(figures) = &mut row.figures {
            figures.rows = figures.rows.or(rows);
            resident.into_iter().for_each(|resident| figures.beside(resident));
        }
        self.rows.push(row);
        error
    }

    /// Returns true if nothing was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.figures.is_none())
    }

    /// Adds the warnings after the last row. `baseline` is the file that the rows were compared with.
    pub(super) fn finish(&mut self, baseline: Option<&Path>) {
        let others = self.rows.iter().filter_map(|row| row.figures.as_ref()?.others_cpu_share);
        self.warnings.extend(others.max_by(f64::total_cmp).and_then(busy));
        for (row, figures) in self.rows.iter().filter_map(|row| Some((row, row.figures.as_ref()?))) {
            let name = if row.settings.is_empty() { String::new() } else { label(&row.settings) + ": " };
            let median = figures.rate.batches_per_s.p50;
            let slow = |run: &Run| run.batches_per_s() < (1.0 - SLOWER) * median;
            if let Some((i, run)) = figures.runs.iter().enumerate().find(|(_, run)| slow(run)) {
                let slower = percent(1.0 - run.batches_per_s() / median);
                self.warnings.push(format!("{name}run {} was {slower} slower than the median", i + 1));
            }
            if figures.rate.too_short {
                self.warnings.push(format!(
                    "{name}no rate is given: the {} batches after the warm-up contain no whole period of the pipeline; repeat the \
                     data (`repeat`) to get more batches",
                    figures.runs.iter().map(|run| run.next_s.len()).max().unwrap_or_default()
                ));
            }
            if let Some(burst) = figures.rate.burst {
                let periods: usize = figures.runs.iter().filter_map(|run| run.periods).sum();
                self.warnings.push(format!(
                    "{name}batches come about {burst:.0} at a time; the rate covers {periods} whole periods"
                ));
            }
            if figures.batches < self.warmup + self.steps {
                let (got, asked) = (figures.batches, self.warmup + self.steps);
                self.warnings.push(format!("{name}the pipeline ends after {got} of {asked} batches"));
            }
            let Some(file) = baseline.map(Path::display) else { continue };
            match row.baseline {
                None => self.warnings.push(format!("{name}{file} has no figures for these settings")),
                Some(change) if change.same_batches == Some(false) => {
                    self.warnings.push(format!("{name}{file} has another order hash"));
                }
                Some(_) => {}
            }
        }
    }

    /// Returns the rows with figures, grouped by data.
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

    /// Returns an error if two passes over the same data delivered different batches.
    pub(super) fn mismatch(&self) -> Option<Error> {
        for group in self.groups() {
            let (first_row, first) = group[0];
            for (row, figures) in &group {
                for (name, order_hash, batches) in figures.passes() {
                    if (order_hash, batches) == (first.order_hash, first.batches) {
                        continue;
                    }
                    let told = |row: &Row, name: &str, order_hash: OrderHash, batches: u64| {
                        let of = if row.settings.is_empty() { String::new() } else { label(&row.settings) + " " };
                        format!("{of}{name}: {order_hash} after {batches} batches")
                    };
                    let message = format!(
                        "one pipeline delivered different batches: {}; {}",
                        told(first_row, "run 1", first.order_hash, first.batches),
                        told(row, &name, order_hash, batches)
                    );
                    return Some(Error::data(message).help(
                        "a function or a source is not deterministic; `run --steps N --order-hash` finds the position",
                    ));
                }
            }
        }
        None
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if !self.is_empty() {
            text += &output::table(&self.head(&SPEED), &self.cells(&SPEED), &[]);
            text += "\n";
            text += &output::table(&self.head(&REST), &self.cells(&REST), &[]);
        }
        if self.rows.iter().any(|row| row.accelerator().is_some()) {
            text += "\n";
            text += &output::table(&self.head(&DEVICE), &self.cells(&DEVICE), &[]);
        }
        for (row, error) in self.rows.iter().filter_map(|row| Some((row, row.error.as_ref()?))) {
            let help = error.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
            text += &output::wrapped(&format!("\n✗ {}: {}{help}", self.name(row), error.message), 2);
        }
        text += "\n";
        text += &self.hashes();
        text += &self.verdict();
        text += &output::wrapped(&(self.footer() + " · p50 to max: milliseconds in next()"), 2);
        text
    }

    /// Describes the machine and the measurement in a single line.
    pub(super) fn footer(&self) -> String {
        let kernel = self.kernel.as_ref().map_or_else(String::new, |kernel| format!(" · kernel {kernel}"));
        let step = self.step_ms.map_or_else(String::new, |ms| format!(" · step {ms} ms"));
        format!(
            "{} cores{kernel} · {} of {} + {} batches{step}",
            self.cores,
            if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) },
            self.warmup,
            self.steps
        )
    }

    /// Returns the pipeline and its hashes, one per line.
    pub(super) fn facts(&self) -> Vec<String> {
        let lines = self.hashes();
        let lines = lines.lines().map(|line| line.trim().to_owned());
        std::iter::once(self.pipeline.display().to_string()).chain(lines).collect()
    }

    /// Describes the use of the device by the row with the highest utilisation.
    fn verdict(&self) -> String {
        let rows = self.rows.iter().filter_map(|row| Some((row, row.accelerator()?)));
        let best = rows.max_by(|(_, a), (_, b)| a.utilisation.total_cmp(&b.utilisation));
        let name = |row: &Row| if self.rows.len() > 1 { format!("{}: ", self.name(row)) } else { String::new() };
        best.map_or_else(String::new, |(row, metrics)| {
            output::wrapped(&format!("VERDICT  {}{}", name(row), metrics.verdict()), 9)
        })
    }

    fn hashes(&self) -> String {
        let groups = self.groups();
        let line = |group: &Vec<(&Row, &Figures)>| {
            let (row, figures) = group[0];
            let same = match group.len() {
                _ if self.mismatch().is_some() => "NOT equal".to_owned(),
                1 => "every run".to_owned(),
                n => format!("equal for all {n} rows"),
            };
            let of = if groups.len() > 1 { format!("{}: ", label(&row.data)) } else { String::new() };
            output::wrapped(&format!("order hash {of}{} ({same}, {} batches)", figures.order_hash, figures.batches), 2)
        };
        groups.iter().map(line).chain(groups.iter().filter_map(|group| self.digest(group, groups.len()))).collect()
    }

    /// Returns the line with the row digest of a group. `groups` is the number of groups.
    fn digest(&self, group: &[(&Row, &Figures)], groups: usize) -> Option<String> {
        let (row, figures) = group[0];
        let rows = figures.rows?;
        let of = if groups > 1 { format!("{}: ", label(&row.data)) } else { String::new() };
        let part = self.part.as_ref().map_or_else(String::new, |part| format!(", part {part}"));
        let text = format!("row digest {of}{} ({} rows{part})", rows.digest, grouped(rows.count));
        Some(output::wrapped(&text, 2))
    }

    /// Returns a name for a row: its settings, its executor, or the pipeline.
    pub(super) fn name(&self, row: &Row) -> String {
        match &row.figures {
            _ if !row.settings.is_empty() => label(&row.settings),
            Some(figures) => figures.executor.clone(),
            None => self.pipeline.display().to_string(),
        }
    }

    fn shown<'c>(&'c self, columns: &'c [Column]) -> impl Iterator<Item = &'c Column> {
        columns.iter().filter(|c| !c.optional || self.rows.iter().any(|row| !(c.cell)(&self.rows, row).is_empty()))
    }

    fn head<'c>(&'c self, columns: &'c [Column]) -> Vec<&'c str> {
        let keys = self.rows.first().map_or(&[][..], |row| &row.settings).iter().map(|(key, _)| key.as_str());
        let keys: Vec<&str> =
            if self.rows.iter().all(|row| row.settings.is_empty()) { vec![""] } else { keys.collect() };
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
                if failed { "failed".to_owned() } else { (column.cell)(&self.rows, row) }
            });
            settings.into_iter().chain(cells).collect()
        };
        self.rows.iter().map(cells).collect()
    }

    /// Returns the headings and rows of a single table with all columns.
    pub(super) fn wide(&self) -> (Vec<&str>, Vec<Vec<String>>) {
        let cells = |columns: &[Column], row: usize| self.cells(columns).swap_remove(row).split_off(self.settings());
        let row = |row| [self.cells(&SPEED).swap_remove(row), cells(&REST, row), cells(&DEVICE, row)].concat();
        let head = |columns| self.head(columns).split_off(self.settings());
        let heads = [self.head(&SPEED), head(&REST), head(&DEVICE)].concat();
        (heads, (0..self.rows.len()).map(row).collect())
    }

    /// Returns the number of columns to the left of the figures.
    fn settings(&self) -> usize {
        self.rows.first().map_or(1, |row| row.settings.len().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::Run;
    use super::super::row::Best;
    use super::*;
    use crate::{Element, ErrorKind};
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn row(workers: &str, batch: &str, delivered: i64) -> Row {
        let mut run = Run { batches: 1, wall_s: 0.5, next_s: vec![0.25], ..Run::default() };
        run.order_hash.update(&Element::new().with("index", crate::Array::scalar(delivered)));
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let runs = vec![run.clone(), run];
        let measured = Measured {
            executor: "inline".into(),
            runs,
            peak: None,
            others_cpu_share: Some(0.5),
            resident: None,
            digested: None,
        };
        let figures = Figures::new(measured);
        let data = vec![pair("batch", batch)];
        Row {
            settings: vec![pair("workers", workers), pair("batch", batch)],
            data,
            figures,
            error: None,
            baseline: None,
        }
    }

    fn bench(rows: Vec<Row>) -> Bench {
        let args = Cli::parse_from(["bench", "p.yaml", "--warmup", "0", "--steps", "1"]).args;
        let mut bench = Bench::new(&args, None);
        bench.rows = rows;
        bench.finish(None);
        bench
    }

    #[test]
    fn rows_that_deliver_something_else_are_found() {
        let good = bench(vec![row("0", "8", 1), row("1", "8", 1), row("0", "16", 2), row("1", "16", 2)]);
        assert!(good.mismatch().is_none());
        let text = good.text();
        assert!(text.contains("order hash batch=16: ") && text.contains("equal for all 2 rows"), "{text}");
        let bad = bench(vec![row("0", "8", 1), row("0", "16", 2), row("1", "8", 3)]);
        let error = bad.mismatch().unwrap();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(
            error.message().contains("workers=0 batch=8 run 1: ")
                && error.message().contains("workers=1 batch=8 run 1")
        );
        assert!(bad.text().contains("NOT equal"));
        let mut second = row("0", "8", 1);
        if let Some(figures) = &mut second.figures {
            figures.runs[1].order_hash = crate::element::OrderHash::default();
        }
        assert!(bench(vec![second]).mismatch().unwrap().message().contains("run 2"));
    }

    #[test]
    fn failed_rows_say_why_and_the_busy_machine_is_told_once() {
        let failed = Failed::new(&Error::config("no room").help("more"));
        let failed = Row { figures: None, error: Some(failed), ..row("9", "8", 0) };
        let bench = bench(vec![row("0", "8", 1), row("1", "8", 1), failed]);
        assert_eq!(bench.warnings.iter().filter(|warning| warning.contains("up to 50.0 % of all cores")).count(), 1);
        let text = bench.text();
        assert!(text.contains("failed") && text.contains("✗ workers=9 batch=8: no room (more)"), "{text}");
        assert_eq!(Best::of(&bench.rows, &bench.rows[2]), None);
        let (head, rows) = bench.wide();
        assert!(rows.iter().all(|row| row.len() == head.len()));
    }
}
