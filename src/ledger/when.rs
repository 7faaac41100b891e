//! The batches of a logged run in which records were.
//!
//! Orders have inverses, so the indices of a record are known in every epoch. The lines of the log show the batches that
//! can hold an index, and only these batches are planned.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::log::RunLog;
use super::replay::Replay;
use crate::dataset::{IterDataset, RecordSet, Segment, Tracer};
use crate::error::Result;
use crate::keys::KeySource;

/// A place of a record in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Seen {
    /// Number of the batch, from 0.
    pub step: u64,
    /// Number of the row in the global batch.
    pub row: u64,
    /// The part of the row, with its cells.
    pub segment: Segment,
}

/// The result of a [`search`].
pub(crate) struct Search {
    pub(crate) seen: Vec<Seen>,
    /// Number of searched batches.
    pub(crate) batches: u64,
    /// The reason if all batches were searched.
    pub(crate) why_all: Option<&'static str>,
}

/// Returns every place of `records` in the batches `steps` of the run of `log`, whose pipeline is `dataset`. A record is the stage id of its
/// source, and its number in the source.
///
/// Plans the batches that can hold the records: about 1,000 batches for each read of a record, and a single batch if
/// nothing but `batch` follows the random-access stages. Plans all of the batches if a stage moves elements to unknown
/// places. Records without keys are evaluated if rows depend on lengths or on dropped elements.
///
/// # Errors
/// As [`which`](super::which).
pub fn when<D: IterDataset>(
    dataset: &D,
    log: &RunLog,
    records: &HashSet<(usize, u64)>,
    steps: Range<u64>,
    keys: Option<Arc<dyn KeySource>>,
) -> Result<Vec<Seen>> {
    search(dataset, log, records, steps, keys).map(|search| search.seen)
}

/// Like [`when`], with the number of searched batches.
///
/// # Errors
/// As [`when`].
pub(crate) fn search<D: IterDataset>(
    dataset: &D,
    log: &RunLog,
    records: &RecordSet,
    steps: Range<u64>,
    keys: Option<Arc<dyn KeySource>>,
) -> Result<Search> {
    let (mut replay, tracer) = (Replay::start(dataset, log, keys)?, Tracer::new(dataset));
    let mut search = Search { seen: Vec::new(), batches: 0, why_all: None };
    if steps.is_empty() {
        return Ok(search);
    }
    let stretches = match stretches(&mut replay, &tracer, log, records, &steps)? {
        Ok(stretches) => stretches,
        Err(why) => {
            search.why_all = Some(why);
            vec![steps]
        }
    };
    for steps in stretches {
        search.batches += steps.end - steps.start;
        scan(&mut replay, &tracer, records, steps, &mut search.seen)?;
    }
    Ok(search)
}

/// Adds every place of `records` in the batches `steps`, and plans all of these.
pub(super) fn scan<D: IterDataset>(
    replay: &mut Replay<'_, D>,
    tracer: &Tracer<'_>,
    records: &RecordSet,
    steps: Range<u64>,
    seen: &mut Vec<Seen>,
) -> Result<()> {
    replay.go_to(steps.start)?;
    // Most of several batches have no record, so their cells are not computed.
    let is_likely = steps.end - steps.start == 1;
    while replay.next() < steps.end {
        let (step, before) = (replay.next(), replay.state());
        let Some(mut batch) = replay.plan(is_likely)? else { break };
        if !is_likely {
            if !tracer.has(&batch, records) {
                continue;
            }
            match replay.plan_again(before)? {
                Some(again) => batch = again,
                None => break,
            }
        }
        for row in tracer.rows_with(&batch, records) {
            let found = row.segments.into_iter().filter(|segment| records.contains(&(segment.stage, segment.index)));
            seen.extend(found.map(|segment| Seen { step, row: row.row, segment }));
        }
    }
    Ok(())
}

/// Returns the batches of `steps` that can hold one of `records`, as ranges in order. The inner error is the reason if all
/// of them can.
fn stretches<D: IterDataset>(
    replay: &mut Replay<'_, D>,
    tracer: &Tracer<'_>,
    log: &RunLog,
    records: &RecordSet,
    steps: &Range<u64>,
) -> Result<std::result::Result<Vec<Range<u64>>, &'static str>> {
    let Some(last) = log.lines().len().checked_sub(1) else { return Ok(Err("the run log has no line")) };
    let mut furthest = Furthest::default();
    // Elements that were read before the end of the log, of stages that hold some, too.
    let mut limits = Vec::new();
    for border in 0..tracer.borders() {
        let next = match replay.positions() {
            Ok(positions) => positions.at(last, border),
            Err(why) => return Ok(Err(why)),
        };
        limits.push(furthest.read(replay, log, last, border)?.max(next).saturating_add(1));
    }
    let indices = match tracer.indices(records, &limits) {
        Ok(indices) => indices,
        Err(why) => return Ok(Err(why)),
    };
    let mut stretches = Vec::with_capacity(indices.len());
    for (border, index) in indices {
        let Ok(positions) = replay.positions() else { continue };
        let mut line = positions.line_before(border, index);
        if let Some(batch) = positions.batch_of(line, index, replay.edits()) {
            stretches.push(batch..batch + 1);
            continue;
        }
        while line > 0 && furthest.read(replay, log, line, border)? > index {
            line -= 1;
        }
        stretches.extend(replay.positions().map(|positions| positions.batches(line, border, index, log.batches())));
    }
    // The log ends here, and the run may go on.
    stretches.push(log.batches()..steps.end);
    Ok(Ok(merged(stretches, steps)))
}

/// Returns the parts of `stretches` inside of `steps`, in order and without overlap.
fn merged(mut stretches: Vec<Range<u64>>, steps: &Range<u64>) -> Vec<Range<u64>> {
    stretches.sort_unstable_by_key(|stretch| stretch.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for stretch in stretches {
        let stretch = stretch.start.max(steps.start)..stretch.end.min(steps.end);
        match all.last_mut() {
            _ if stretch.is_empty() => {}
            Some(last) if stretch.start <= last.end => last.end = last.end.max(stretch.end),
            _ => all.push(stretch),
        }
    }
    all
}

/// The furthest index that stages have read at logged positions.
#[derive(Default)]
struct Furthest(BTreeMap<usize, Vec<u64>>);

impl Furthest {
    /// Returns an index of a border before which lie all elements that stages have read before line number `line`. The index
    /// is 0 if stages hold no elements. Otherwise, the position is restored and a batch is planned.
    fn read<D: IterDataset>(
        &mut self,
        replay: &mut Replay<'_, D>,
        log: &RunLog,
        line: usize,
        border: usize,
    ) -> Result<u64> {
        if replay.positions().is_ok_and(|positions| positions.is_direct) {
            return Ok(0);
        }
        let read = match self.0.entry(line) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(place) => place.insert(replay.furthest(&log.lines()[line])?),
        };
        Ok(read.get(border).copied().unwrap_or(0))
    }
}
