//! Text of the report about workers.

use super::format::{bytes, time};
use crate::exec::WorkersReport;

/// Describes the start-up of workers, if its time was measured.
pub(super) fn startup(workers: &WorkersReport) -> Option<String> {
    let time = |seconds: f64| time(seconds * 1e6);
    (workers.started_s > 0.0).then(|| {
        format!(
            "the first worker was ready after {}, including {} to build its pipeline",
            time(workers.started_s),
            time(workers.built_s)
        )
    })
}

/// Returns the lines on workers, with rates over `wall_s` seconds.
pub(super) fn lines(workers: &WorkersReport, wall_s: f64) -> Vec<String> {
    let per_s = if wall_s > 0.0 { workers.handed_over_bytes as f64 / wall_s } else { 0.0 };
    // Never broken across lines, so that a search finds it.
    let copies = format!(" · {} parts copied", workers.copies).replace(' ', "\u{a0}");
    let copies = if workers.copies > 0 { copies } else { String::new() };
    let size = |n: u64| bytes(n as f64);
    let mut lines = vec![format!(
        "budget {} · shared {} ({} used at most) · handed over {}/s{copies} · {} replaced",
        size(workers.ram_budget),
        size(workers.slab_bytes),
        size(workers.slab_high_water_bytes),
        bytes(per_s),
        workers.replaced
    )];
    lines.extend(workers.workers.iter().map(|worker| {
        // This process does not limit the heap of a worker on another machine.
        let (place, limit) = match &worker.host {
            Some(host) => (format!(" on {host}"), String::new()),
            None => (String::new(), format!(" of {}", size(worker.heap_limit_bytes))),
        };
        format!(
            "worker {} (pid {}{place}): CPU {:.1} s · heap {}{limit} · {} tasks",
            worker.number,
            worker.pid,
            worker.cpu_s,
            size(worker.heap_bytes),
            worker.tasks
        )
    }));
    lines.extend(workers.links.iter().map(|link| {
        let (host, raw, wire) = (&link.host, size(link.raw_bytes), size(link.wire_bytes));
        format!("from {host}: {raw} raw, {wire} on the wire: {}", link.why)
    }));
    lines.extend(workers.pool.map(|pool| {
        let share = 100.0 * pool.kept as f64 / pool.answers.max(1) as f64;
        format!(
            "shared pool: {} results, {} ({share:.0} %) kept from requests of another trainer",
            pool.answers, pool.kept
        )
    }));
    let decisions = workers.decisions.iter().rev().take(5).rev();
    lines.extend(decisions.map(|decision| format!("tuned at {decision}")));
    lines
}
