//! Segments of a run with edits: each has its own hosts and threads, and begins at the state of the segment before it.

use std::fmt::Debug;

use gristmill::keys::Recompute;
use gristmill::part::Part;
use gristmill::{BoxIter, Checkpoint, Element, LoaderBuilder};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Rows of a batch, as their cells.
pub(crate) type Rows = Vec<Vec<i32>>;

/// Returns the rows of a batch.
pub(crate) fn cells(batch: &Element) -> Rows {
    let array = batch.array("t").unwrap();
    let width = array.shape().iter().product::<usize>() / array.shape()[0];
    array.as_slice::<i32>().unwrap().chunks(width).map(<[i32]>::to_vec).collect()
}

/// Returns the rows of all batches.
pub(crate) fn all(loader: LoaderBuilder<BoxIter<Element>>) -> Vec<Rows> {
    loader.build().unwrap().map(|batch| cells(&batch.unwrap())).collect()
}

/// The executor of a segment.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) parts: usize,
    /// 0 for the thread of the consumer.
    pub(crate) threads: usize,
    /// True if rows are planned from keys.
    pub(crate) is_planned: bool,
}

/// Runs `count` batches from `state` on, once for each part, and compares them with the `expected` rows of each batch.
/// Returns the state of all parts, after a conversion to JSON and back.
pub(crate) fn segment(
    build: impl Fn() -> LoaderBuilder<BoxIter<Element>>,
    how: How,
    state: Option<&Checkpoint>,
    count: u64,
    expected: impl Fn(u64) -> Option<Rows>,
    edits: &impl Debug,
) -> Result<Checkpoint, TestCaseError> {
    let How { parts, threads, is_planned } = how;
    let delivered = state.map_or(0, |state| state.delivered);
    let mut states = Vec::new();
    for index in 0..parts {
        let loader = build().part(Part::of(index, parts));
        let loader = if is_planned { loader.keys(Recompute) } else { loader };
        let loader = if threads > 0 { loader.threads(threads) } else { loader };
        let loader = state.into_iter().cloned().fold(loader, |loader, state| loader.resume(state));
        let mut loader = loader.build()?;
        for number in delivered..delivered + count {
            let batch = loader.next().transpose()?;
            let own = expected(number).map(|rows| {
                let share = rows.len() / parts;
                rows[index * share..(index + 1) * share].to_vec()
            });
            prop_assert_eq!(batch.as_ref().map(cells), own, "batch {} of {:?}", number, edits);
        }
        states.push(loader.state()?);
    }
    let json: Vec<_> = states.iter().map(Checkpoint::to_json).collect();
    prop_assert!(json.iter().all(|state| *state == json[0]), "{:?}", json);
    Ok(Checkpoint::from_json(&json[0])?)
}
