//! The comparison of a run log with the plan of its run.

use std::sync::Arc;

use serde::Serialize;

use super::log::{Line, RunLog};
use super::replay::Replay;
use super::writer::and_plan;
use crate::dataset::IterDataset;
use crate::error::{Error, Result};
use crate::keys::KeySource;

/// The result of an [`audit`] without differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Audited {
    /// Number of planned batches.
    pub batches: u64,
    /// Number of compared positions.
    pub positions: u64,
    /// Number of compared digests. A run writes digests if its rows were planned from keys.
    pub digests: u64,
}

/// Plans the whole run of `log`, whose pipeline is `dataset`, and compares all positions and digests with the log.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the batches of the first difference, [`ErrorKind::State`](crate::ErrorKind::State) if a
/// source file or a stage has changed since the run.
pub fn audit<D: IterDataset>(dataset: &D, log: &RunLog, keys: Option<Arc<dyn KeySource>>) -> Result<Audited> {
    let mut replay = Replay::start(dataset, log, keys)?;
    let mut audited = Audited::default();
    for pair in log.lines().windows(2) {
        let [from, to] = pair else { continue };
        between(&mut replay, from, to, &mut audited)?;
    }
    Ok(audited)
}

/// Plans the batches between two positions, and compares the second.
fn between<D: IterDataset>(replay: &mut Replay<'_, D>, from: &Line, to: &Line, audited: &mut Audited) -> Result<()> {
    let (first, end) = (from.entry.at_batch, to.entry.at_batch);
    let differs = |what: &str| {
        let text = format!("batches {first} to {end} of the run differ from their plan: {what}");
        Err(Error::data(text).help("the data, the keys or a function has changed since the run"))
    };
    replay.restore(from)?;
    let mut plans = 0;
    while replay.next() < end {
        match replay.plan(false)? {
            Some(batch) => plans = and_plan(plans, batch.digest()),
            None => return differs(&format!("the stream ends after {} batches", replay.next())),
        }
    }
    audited.batches += end - first;
    let plan = format!("{plans:032x}");
    if let Some(logged) = &to.entry.plan {
        if *logged != plan {
            return differs(&format!("the digest is {plan} and was {logged}"));
        }
        audited.digests += 1;
    }
    let state = replay.checkpoint()?.state;
    if state != to.entry.state {
        return differs(&format!("the position is {state} and was {}", to.entry.state));
    }
    audited.positions += 1;
    Ok(())
}
