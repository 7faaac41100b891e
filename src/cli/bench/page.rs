//! A page with charts of the rows and of earlier measurements.

use super::baseline::Baseline;
use super::row::{Best, Figures, Row};
use super::table::Bench;
use crate::cli::format::{bytes, count, percent, time};
use crate::report::html::{Chart, Document, Line, Powers, Scale};

/// Maximum number of bars for the steps of a run.
const STEPS: usize = 400;
/// Height of a lane in pixels, if a line has several lanes.
const LANE: u32 = 13;

/// Makes the page of a measurement. `earlier` contains the measurements to compare with, oldest first.
pub(super) fn page(bench: &Bench, earlier: &[Baseline]) -> String {
    let mut page = Document::new(&headline(bench), &lead(bench, earlier), &bench.footer());
    page.chart("Batches per second", &rates(bench, earlier));
    page.chart("How long next() took", &times(bench));
    page.chart("Time in next() at each step", &steps(bench));
    page.chart("Time of the accelerator", &devices(bench));
    page.chart("Peak memory", &memory(bench));
    let (head, cells) = bench.wide();
    page.table("In figures", &head, &cells);
    page.list("Warnings", &bench.warnings);
    page.finish(bench.facts())
}

/// Returns the rows that have figures, with their figures.
fn measured(bench: &Bench) -> impl Iterator<Item = (&Row, &Figures)> {
    bench.rows.iter().filter_map(|row| Some((row, row.figures.as_ref()?)))
}

fn headline(bench: &Bench) -> String {
    let best = measured(bench).max_by(|(_, a), (_, b)| a.rate.batches_per_s.mean.total_cmp(&b.rate.batches_per_s.mean));
    let Some((row, figures)) = best else { return "Nothing was measured".to_owned() };
    let rate = format!("{} batches/s", count(figures.rate.batches_per_s.mean));
    match (bench.rows.len(), bench.groups().len()) {
        (1, _) => rate,
        (_, 1) => format!("{rate} with {}", bench.name(row)),
        // Rates of rows with different batches are not comparable.
        (rows, _) => format!("{rows} settings, measured"),
    }
}

fn lead(bench: &Bench, earlier: &[Baseline]) -> String {
    let changes = bench.rows.iter().filter_map(|row| Some((row, row.baseline?)));
    let changed = changes.max_by(|(_, a), (_, b)| a.change.abs().total_cmp(&b.change.abs()));
    if let (Some((row, change)), Some(last)) = (changed, earlier.last()) {
        let of = if bench.rows.len() > 1 { format!("{}: ", bench.name(row)) } else { String::new() };
        return format!("{of}{} against {}", change.cell(), last.name());
    }
    let as_good = measured(bench).filter(|(row, _)| Best::of(&bench.rows, row) == Some(Best::AsGood));
    let names: Vec<String> = as_good.map(|(row, _)| bench.name(row)).collect();
    match (names.is_empty(), bench.rows.len()) {
        (false, _) => format!("Equally fast, within the variation between runs: {}", names.join(", ")),
        (true, 1) => String::new(),
        (true, _) => "Every other setting is slower by more than the variation between runs".to_owned(),
    }
}

/// Makes a chart with one line per row. A row without figures shows its error.
fn lines(bench: &Bench, mut line: impl FnMut(&Row, &Figures) -> Option<Line>) -> Chart {
    let mut chart = Chart::default();
    for row in &bench.rows {
        let drawn = match (&row.figures, &row.error) {
            (Some(figures), _) => line(row, figures),
            (None, Some(error)) => Some(Line::new(bench.name(row), format!("failed: {}", error.message))),
            (None, None) => None,
        };
        drawn.into_iter().for_each(|drawn| chart.line(drawn));
    }
    chart
}

fn rates(bench: &Bench, earlier: &[Baseline]) -> Chart {
    let now = measured(bench).map(|(_, figures)| {
        let rate = figures.rate.batches_per_s;
        rate.max.max(rate.mean + rate.std_dev.unwrap_or(0.0)).max(figures.headroom_batches_per_s.unwrap_or(0.0))
    });
    let before = earlier.iter().flat_map(|before| bench.rows.iter().filter_map(|row| Some(before.rate(row)?.mean)));
    let scale = Scale::to(now.chain(before).fold(0.0, f64::max));
    let mut chart = lines(bench, |row, figures| {
        let rate = figures.rate.batches_per_s;
        let spread = rate.std_dev.map_or_else(String::new, |spread| format!(" ± {}", count(spread)));
        let change = row.baseline.map_or_else(String::new, |change| format!(" · {}", change.cell()));
        let mut line = Line::new(bench.name(row), format!("{}{spread}/s{change}", count(rate.mean)));
        let lanes = earlier.len() + 1;
        if lanes > 1 {
            line = line.high(LANE * lanes as u32 + 4);
        }
        // A small gap between lanes.
        let lane = |at: usize| (at as f64 / lanes as f64, (at as f64 + 0.86) / lanes as f64);
        for (at, before) in earlier.iter().enumerate() {
            let Some(before) = before.rate(row) else { continue };
            line = line.lane("start", (0.0, scale.at(before.mean)), lane(at));
            line = whisker(line, scale, before.mean, before.std_dev, lane(at));
        }
        let own = lane(earlier.len());
        line = line.lane("reader", (0.0, scale.at(rate.mean)), own);
        line = whisker(line, scale, rate.mean, rate.std_dev, own);
        Some(match figures.headroom_batches_per_s {
            Some(most) => line.mark("evaluation", scale.at(most), own),
            None => line,
        })
    });
    chart.axis(&scale.ticks(count), "batches/s");
    let mut names = vec![("reader", "this measurement".to_owned())];
    if !earlier.is_empty() {
        let files: Vec<String> = earlier.iter().map(Baseline::name).collect();
        names.insert(0, ("start", files.join(", ")));
    }
    if measured(bench).any(|(_, figures)| figures.rate.batches_per_s.std_dev.is_some()) {
        names.push(("ink", "one standard deviation".to_owned()));
    }
    if measured(bench).any(|(_, figures)| figures.headroom_batches_per_s.is_some()) {
        names.push(("evaluation", "limit: the loop over batches in memory".to_owned()));
    }
    chart.legend(&names.iter().map(|(class, name)| (*class, name.as_str())).collect::<Vec<_>>());
    chart
}

/// Adds a thin line over one standard deviation in both directions, in the middle of a lane.
fn whisker(line: Line, scale: Scale, mean: f64, spread: Option<f64>, (top, bottom): (f64, f64)) -> Line {
    let Some(spread) = spread else { return line };
    let (middle, thin) = ((top + bottom) / 2.0, (bottom - top) * 0.06);
    line.lane("ink", (scale.at(mean - spread), scale.at(mean + spread)), (middle - thin, middle + thin))
}

fn times(bench: &Bench) -> Chart {
    let us = |ms: f64| ms * 1e3;
    let scale = Powers::to(measured(bench).map(|(_, figures)| us(figures.next_ms.max)).fold(0.0, f64::max));
    let mut chart = lines(bench, |row, figures| {
        let next = figures.next_ms;
        let detail = format!("p50 {} · p99 {}", time(us(next.p50)), time(us(next.p99)));
        let [p50, p90, p99, max] = [next.p50, next.p90, next.p99, next.max].map(|ms| scale.at(us(ms)));
        Some(
            Line::new(bench.name(row), detail)
                .lane("busy", (p99, max), (0.3, 0.7))
                .lane("work", (p50, p99), (0.18, 0.82))
                .mark("ink", p50, (0.0, 1.0))
                .mark("paper", p90, (0.18, 0.82))
                .mark("evaluation", max, (0.18, 0.82)),
        )
    });
    chart.axis(&scale.ticks(time), "time of a call");
    chart.legend(&[("ink", "median"), ("work", "median to p99, with a thin line at p90"), ("evaluation", "longest")]);
    chart
}

/// Draws the step times of the first run of each row, on a common scale.
fn steps(bench: &Bench) -> Chart {
    let firsts = || measured(bench).filter_map(|(row, figures)| Some((row, figures.runs.first()?)));
    let longest = firsts().flat_map(|(_, run)| run.next_s.iter().copied()).fold(0.0, f64::max);
    // A logarithmic scale, so that short steps remain visible beside long steps.
    let powers = Powers::to(longest * 1e6);
    let count = firsts().map(|(_, run)| run.next_s.len()).max().unwrap_or(0);
    let mut chart = lines(bench, |row, figures| {
        let steps = &figures.runs.first()?.next_s;
        let most = steps.iter().copied().fold(0.0, f64::max);
        let group = steps.len().div_ceil(STEPS).max(1);
        let of = |group: &[f64]| group.iter().copied().fold(0.0, f64::max);
        let heights: Vec<f64> = steps.chunks(group).map(|group| powers.at(of(group) * 1e6)).collect();
        let line = Line::new(bench.name(row), format!("longest {}", time(most * 1e6)));
        Some(line.high(72).scale(powers.ticks(time)).bars("work", &heights))
    });
    let scale = Scale::exactly(count as f64);
    chart.axis(&scale.ticks(|step| format!("{step:.0}")), "step");
    chart
}

fn devices(bench: &Bench) -> Chart {
    if bench.rows.iter().all(|row| row.accelerator().is_none()) {
        return Chart::default();
    }
    let mut chart = lines(bench, |row, figures| {
        let device = figures.accelerator.as_ref()?;
        let detail = format!("{} used · waited {}", percent(device.utilisation), percent(device.stall));
        let (used, stalled) = (device.utilisation, device.utilisation + device.stall);
        Some(Line::new(bench.name(row), detail).bar("ready", 0.0, used).bar("evaluation", used, stalled))
    });
    chart.axis(&Scale::exactly(1.0).ticks(|share| format!("{:.0} %", 100.0 * share)), "of the time");
    chart.legend(&[("ready", "computed"), ("evaluation", "waited for the input")]);
    chart
}

fn memory(bench: &Bench) -> Chart {
    let scale = Scale::to(
        measured(bench).filter_map(|(_, figures)| Some(figures.peak?.with_files_bytes as f64)).fold(0.0, f64::max),
    );
    if measured(bench).all(|(_, figures)| figures.peak.is_none()) {
        return Chart::default();
    }
    let mut chart = lines(bench, |row, figures| {
        let peak = figures.peak?;
        let (used, files) = (peak.used_bytes as f64, peak.with_files_bytes as f64);
        Some(Line::new(bench.name(row), bytes(peak.used_bytes)).bar("memory", 0.0, scale.at(used)).bar(
            "busy",
            scale.at(used),
            scale.at(files),
        ))
    });
    chart.axis(&scale.ticks_of_bytes(), "memory");
    chart.legend(&[("memory", "of the processes"), ("busy", "mapped files, which the system can take back")]);
    chart
}
