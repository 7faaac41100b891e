//! The choice as a page with charts.

use crate::cli::format::{bytes, count, percent, plural, time};
use crate::cli::tune::Args;
use crate::report::html::{Chart, Document, Line, Scale, turned};
use crate::workers::{Measured, PerformanceConfig};

/// Columns of the time axis.
const COLUMNS: usize = 240;

/// Makes a page with the choice, its gain, the search, and the memory.
pub(super) fn page(config: &PerformanceConfig, args: &Args) -> String {
    let (start, chosen) = (&config.start, &config.chosen);
    let headline = format!(
        "{} with {}: {} batches/s",
        plural(config.workers as u64, "worker"),
        plural(config.threads_per_worker as u64, "thread"),
        count(chosen.batches_per_s)
    );
    let gain = chosen.batches_per_s / start.batches_per_s;
    let lead = match gain.is_finite() && chosen.threads != start.threads {
        true => format!("{gain:.1} times as fast as with one thread"),
        false => "One thread is enough".to_owned(),
    };
    let step = args.step.time().map_or_else(String::new, |step| format!(" · step {}", time(step.as_secs_f64() * 1e6)));
    let figures = format!(
        "{} s of {} · {} ready, of {} each{step}",
        args.seconds,
        args.pipeline.display(),
        plural(config.buffer as u64, "batch").replace("batchs", "batches"),
        bytes(config.batch_bytes)
    );
    let mut page = Document::new(&headline, &lead, &figures);
    page.chart("Gain", &brings(config));
    page.chart("How it was found", &found(config, args.seconds));
    let told: Vec<String> = config.decisions.iter().map(|decision| format!("at {decision}")).collect();
    page.list("Decisions", &told);
    page.chart("Where memory goes", &memory(config));
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    page.finish([plural(cores, "core")])
}

fn brings(config: &PerformanceConfig) -> Chart {
    let both = [("with one thread", &config.start), ("as chosen", &config.chosen)];
    let scale = Scale::to(both.iter().map(|(_, measured)| measured.batches_per_s).fold(0.0, f64::max));
    let mut chart = Chart::default();
    for (name, Measured { batches_per_s, wait_share, .. }) in both {
        let detail = format!("{}/s · waited {}", count(*batches_per_s), percent(*wait_share));
        chart.line(Line::new(name, detail).high(30).bar("reader", 0.0, scale.at(*batches_per_s)));
    }
    chart.axis(&scale.ticks(count), "batches/s");
    chart
}

fn found(config: &PerformanceConfig, seconds: f64) -> Chart {
    let last = config.decisions.last().map_or(0.0, |decision| decision.at_s);
    let scale = Scale::exactly(seconds.max(last));
    let mut chart = Chart::default();
    for knob in turned(&config.decisions, COLUMNS, |at_s| scale.at(at_s)) {
        let scale = knob.scale();
        let line = Line::new(knob.name, knob.detail).high(40).scale(scale).bars("knob", &knob.heights);
        chart.line(knob.changes.iter().fold(line, |line, at| line.mark("ink", *at, (0.0, 1.0))));
    }
    chart.axis(&scale.ticks(|at| format!("{at} s")), "time of the search");
    chart
}

/// Draws the parts of the budget: the limit of each part, and its use.
fn memory(config: &PerformanceConfig) -> Chart {
    let heaps = config.worker_heap_bytes.saturating_mul(config.workers as u64);
    let used = config.heap_used_bytes.saturating_mul(config.workers as u64);
    let ready = config.batch_bytes.saturating_mul(config.buffer as u64);
    let parts = [
        ("heaps of workers", heaps, used),
        ("shared memory", config.slab_bytes, config.slab_used_bytes),
        ("batches ready", ready, ready),
    ];
    let most = parts.iter().map(|(_, size, _)| *size).max().unwrap_or(0).max(config.ram_budget) as f64;
    let scale = Scale::to(most);
    let budget = scale.at(config.ram_budget as f64);
    let mut chart = Chart::default();
    for (name, size, used) in parts {
        let detail = if used == size { bytes(size) } else { format!("{} · {} used", bytes(size), bytes(used)) };
        chart.line(
            Line::new(name, detail)
                .bar("busy", 0.0, scale.at(size as f64))
                .bar("memory", 0.0, scale.at(used as f64))
                .mark("ink", budget, (0.0, 1.0)),
        );
    }
    chart.axis(&scale.ticks_of_bytes(), "memory");
    let budget = format!("the budget of workers, {}", bytes(config.ram_budget));
    chart.legend(&[("memory", "used at most"), ("busy", "may be used"), ("ink", &budget)]);
    chart
}
