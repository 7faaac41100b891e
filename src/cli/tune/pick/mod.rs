//! The choice of settings, by a run.

mod page;
mod write;

use std::time::Duration;

use self::write::{Change, Setting};
use super::Args;
use crate::Result;
use crate::cli::bench::usage::busy;
use crate::cli::{Outcome, output};
use crate::cpu::Cpu;
use crate::spec::Pipeline;

pub(super) fn pick(args: &Args, pipeline: &Pipeline) -> Result<Outcome> {
    use crate::workers::{PickLimits, pick_performance_config};
    if args.write {
        // Checked before the time is spent.
        Change::check(&args.pipeline)?;
    }
    let mut limits = PickLimits::new()
        .time(Duration::from_secs_f64(args.seconds))
        .step(args.step.time().unwrap_or_default())
        .max_buffer_size(args.max_buffer.into());
    if let Some(bytes) = args.ram {
        limits = limits.ram_budget(bytes);
    }
    if let Some(threads) = args.max_threads {
        limits = limits.max_threads(threads.into());
    }
    let before = Cpu::now();
    let config = pick_performance_config(|pipeline: Pipeline| pipeline.build(), pipeline.clone(), &limits)?;
    let others = before.zip(Cpu::now()).and_then(|(before, now)| now.others_since(before));
    let settings = [
        Setting("workers", config.workers.to_string()),
        Setting("threads_per_worker", config.threads_per_worker.to_string()),
        Setting("ram_budget", write::mebibytes(config.ram_budget)),
        Setting("buffer", config.buffer.to_string()),
    ];
    let change = Change::new(pipeline, &args.pipeline, &settings)?;
    let written = if args.write { change.write(&args.pipeline) } else { Ok(()) };
    let is_written = args.write && written.is_ok();
    let found = serde_json::json!({"plan": config, "executor": change.added(), "written": is_written});
    output::either(args.json, &found, || text(&config, &change, args));
    args.html.iter().try_for_each(|file| output::page(file, &page::page(&config, args)))?;
    others.and_then(busy).iter().for_each(|warning| output::warn(warning));
    // The result is printed even if the file cannot be written.
    written?;
    if args.write {
        output::say(&format!("written to {}", args.pipeline.display()));
    } else {
        let rerun = format!("{} tune {} --write", output::program(), output::shell_word(&args.pipeline));
        output::say(&format!("nothing is changed; `{rerun}` puts it in"));
    }
    Ok(Outcome::Done)
}

fn text(config: &crate::workers::PerformanceConfig, change: &Change, args: &Args) -> String {
    use crate::cli::format::{bytes, count, percent};
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "plan       {} of {} · window {} · buffer {} of {}\n",
        plural(config.workers, "worker"),
        plural(config.threads_per_worker, "thread"),
        plural(config.window, "range"),
        plural(config.buffer, "batch").replace("batchs", "batches"),
        bytes(config.batch_bytes)
    );
    text += &output::wrapped(
        &format!(
            "memory     {} for workers: {} of heap ({} used) and {} of shared memory ({} used); the rest for batches",
            bytes(config.ram_budget),
            bytes(config.worker_heap_bytes),
            bytes(config.heap_used_bytes),
            bytes(config.slab_bytes),
            bytes(config.slab_used_bytes)
        ),
        11,
    );
    for (i, decision) in config.decisions.iter().enumerate() {
        text += &output::wrapped(&format!("{}{decision}", if i == 0 { "decisions  " } else { "           " }), 13);
    }
    if config.decisions.is_empty() {
        text += "decisions  none: one thread is enough\n";
    }
    let (start, chosen) = (&config.start, &config.chosen);
    let gain = match chosen.batches_per_s / start.batches_per_s.max(f64::MIN_POSITIVE) {
        gain if chosen.threads == start.threads || !gain.is_finite() => String::new(),
        gain => format!(" ({:+.0} %)", 100.0 * (gain - 1.0)),
    };
    let step =
        args.step.time().map_or_else(String::new, |step| format!(" with a step of {:.1} ms", step.as_secs_f64() * 1e3));
    text += &output::wrapped(
        &format!(
            "gain       {} → {} batches/s{gain}, {} → {}{step}; the consumer waited {} → {} of the time",
            count(start.batches_per_s),
            count(chosen.batches_per_s),
            plural(start.threads, "thread"),
            chosen.threads,
            percent(start.wait_share),
            percent(chosen.wait_share)
        ),
        11,
    );
    text + "\n" + &change.to_string()
}
