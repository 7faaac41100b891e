//! Facts of a pass that is the run of a command.

use super::WorkersReport;
use crate::cx::Recorder;

/// Returns whether a command only drains the pass, and the share of all cores used by other programs since its start.
/// The share is `None` for a pass without a command, because ranks of a job may share a machine.
pub(super) fn facts(recorder: &Recorder, workers: Option<&WorkersReport>) -> (bool, Option<f64>) {
    let Some(command) = recorder.command() else { return (false, None) };
    let alive = workers.into_iter().flat_map(|workers| &workers.workers).map(|worker| worker.cpu_s).sum();
    let now = command.cpu.and_then(|_| crate::cpu::Cpu::now());
    let others = command.cpu.zip(now).and_then(|(before, now)| now.with(alive).others_since(before));
    (command.is_drained, others)
}
