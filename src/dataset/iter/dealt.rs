//! Passes over a part of the rows of every batch, and the reasons why a pipeline has no such pass.

use std::sync::Arc;

use super::{DatasetIterator, IterDataset};
use crate::dataset::PlannedBatch;
use crate::dataset::stage::{Role, Stage};
use crate::error::Error;
use crate::exec::Runtime;
use crate::keys::{KeyRecorder, Recompute};
#[cfg(any(feature = "cli", feature = "python"))]
use crate::keys::{Keyed, MarkedLanes, Wanted};
use crate::part::{Deal, Gain, Part, RowNumbers};

/// A batch of a [`PartPass`].
#[derive(Clone, Debug)]
pub enum Dealt<T> {
    /// The part's rows of a global batch, their numbers, and the plan's facts about the batch.
    Own(T, RowNumbers, BatchPlan),
    /// A whole global batch, from which the part's rows are yet to be taken, and the plan's facts about it. Used if the
    /// batch was not made from indices alone.
    Whole(T, BatchPlan),
    /// The plan of a global batch whose elements are not made: see `PlannedPass`.
    #[doc(hidden)]
    Planned(PlannedBatch),
}

/// Facts about a global batch that was planned from keys; empty for other batches.
#[derive(Clone, Debug, Default)]
pub struct BatchPlan {
    /// Digest of the plan of all rows; equal on all hosts.
    pub(crate) digest: Option<u128>,
    /// Costs of all rows, if the part's rows are yet to be taken by cost.
    pub(crate) costs: Option<Vec<u64>>,
    /// Gain of the balanced deal, if rows are dealt by cost.
    pub(crate) gain: Option<Gain>,
}

impl<T> Dealt<T> {
    /// Wraps a whole batch that was not planned.
    pub(crate) fn whole(batch: T) -> Self {
        Self::Whole(batch, BatchPlan::default())
    }

    /// Replaces the batch by the result of `change`.
    ///
    /// # Errors
    /// The error of `change`.
    pub fn try_map<U>(self, change: impl FnOnce(T) -> crate::Result<U>) -> crate::Result<Dealt<U>> {
        Ok(match self {
            Self::Own(batch, rows, plan) => Dealt::Own(change(batch)?, rows, plan),
            Self::Whole(batch, plan) => Dealt::Whole(change(batch)?, plan),
            Self::Planned(plan) => Dealt::Planned(plan),
        })
    }

    /// Returns the digest of the plan of all rows, if the batch was planned from keys.
    pub(crate) fn plan_digest(&self) -> Option<u128> {
        match self {
            Self::Own(_, _, plan) | Self::Whole(_, plan) => plan.digest,
            Self::Planned(plan) => Some(plan.digest()),
        }
    }

    /// Returns the batch.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the batch was planned, but not made.
    pub(crate) fn batch(self) -> crate::Result<T> {
        match self {
            Self::Own(batch, ..) | Self::Whole(batch, _) => Ok(batch),
            Self::Planned(_) => Err(unmade()),
        }
    }
}

/// Returns the error for the plan of a batch in place of the batch.
#[cold]
pub(crate) fn unmade() -> Error {
    Error::state("a batch was planned, but not made")
}

/// A pass over the rows of a part. Has the states of a pass over all rows.
pub type PartPass<T, S> = Box<dyn DatasetIterator<Item = Dealt<T>, State = S>>;

/// Pass over a part that a stream `D` starts.
pub type PartPassOf<D> = PartPass<<D as IterDataset>::Item, <<D as IterDataset>::Iter as DatasetIterator>::State>;

/// Returns the error for an element that was dropped after its row was assigned. Other hosts rely on the assignment.
#[cold]
pub(crate) fn left_out() -> Error {
    Error::data("the element was dropped, but its row was already assigned to a host").help(
        "turn the failure into an error, or put a `filter` before the batch; each host then evaluates all elements",
    )
}

/// Returns the error for a run of `dataset` that keys do not determine. The message names the cause.
#[cold]
pub(crate) fn without_plan<D: IterDataset>(dataset: &D, run: &Runtime) -> Error {
    let pipeline: &dyn Stage = dataset;
    let batched = whole(pipeline, pipeline.count() - 1, false);
    let why = run.unplanned().map(str::to_owned).or(batched).unwrap_or_else(|| NO_ROWS.to_owned());
    Error::config(format!("the run cannot be planned without reading its data: {why}")).help(
        "stages that see the elements belong before packing, and sources need random access: `gristmill convert` writes such files; \
         `gristmill run` counts by reading everything",
    )
}

/// Describes how a host evaluates a part of the batches of `dataset`, dealt by `deal`. `by_rows` is true if the host
/// evaluates only its own rows.
pub(crate) fn plan_in_words<D: IterDataset>(dataset: &D, by_rows: bool, deal: &Deal) -> String {
    let pipeline: &dyn Stage = dataset;
    match (by_rows, whole(pipeline, pipeline.count() - 1, false)) {
        (true, Some(_)) if *deal == Deal::Lanes => {
            "plans all rows from an index of lanes, owns the rows of the same lanes in each batch, and evaluates only its own".to_owned()
        }
        (true, None) => "evaluates only its own rows: indices determine them".to_owned(),
        (true, Some(why)) => format!("plans all rows from keys ({why}) and evaluates only its own"),
        (false, why) => {
            let by_cost = deal.balance().is_some();
            // True if the reason already explains why keys would not help.
            let is_told = why.as_deref() == Some(NO_BATCH) || (by_cost && why.is_none());
            let why = why.unwrap_or_else(|| match by_cost {
                true => "rows are dealt by cost".to_owned(),
                false => "a function makes its batches".to_owned(),
            });
            let help = match without_keys(dataset, deal) {
                None => "; with `keys` it would evaluate only its own".to_owned(),
                Some(_) if is_told => String::new(),
                Some(_) if by_cost && without_keys(dataset, &Deal::Even).is_none() => {
                    "; rows are dealt by costs that keys do not contain".to_owned()
                }
                Some(why) => format!("; keys do not help: {why}"),
            };
            format!("evaluates all elements and takes its rows: {why}{help}")
        }
    }
}

/// Reason for a pipeline of single elements.
const NO_BATCH: &str = "it does not end in `batch`";

/// Returns the reason why keys cannot determine the elements of rows that are dealt by `deal`; `None` if keys can.
fn without_keys<D: IterDataset>(dataset: &D, deal: &Deal) -> Option<String> {
    let run = Runtime::inline().with_keys(Some(Arc::new(Recompute))).with_deal(deal.clone());
    match dataset.iter_part(&run, &Part::whole()) {
        Ok(Some(_)) => None,
        Ok(None) => Some(run.unplanned().unwrap_or(NO_ROWS).to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns true if keys can determine the elements of the rows of `dataset`, dealt by `deal`. If keys cannot, every
/// host evaluates all elements.
pub(crate) fn keys_help<D: IterDataset>(dataset: &D, deal: &Deal) -> bool {
    *deal == Deal::Lanes || without_keys(dataset, deal).is_none()
}

/// Returns the sets of keys from which hosts would plan `dataset`, without duplicates: see [`keys`](crate::keys).
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if keys would not help. The message names the cause.
#[cfg(any(feature = "cli", feature = "python"))]
pub(crate) fn keyed_by<D: IterDataset>(dataset: &D) -> crate::Result<Vec<Arc<dyn Keyed>>> {
    let wanted = Wanted::default();
    let run = Runtime::inline().with_keys(Some(Arc::new(wanted.clone())));
    let planned = dataset.iter_part(&run, &Part::whole())?.is_some();
    let keyed = wanted.take();
    if !planned || keyed.is_empty() {
        let host = plan_in_words(dataset, planned, &Deal::Even);
        return Err(Error::config(format!("keys would not help: each of several hosts {host}")));
    }
    Ok(keyed)
}

/// Returns the lanes whose index hosts need to deal the rows of `dataset`, without duplicates.
///
/// # Errors
/// As [`IterDataset::iter_part`].
#[cfg(any(feature = "cli", feature = "python"))]
pub(crate) fn lanes_of<D: IterDataset>(dataset: &D) -> crate::Result<Vec<Arc<dyn MarkedLanes>>> {
    let wanted = Wanted::default();
    let run = Runtime::inline().with_keys(Some(Arc::new(wanted.clone()))).with_deal(Deal::Lanes);
    dataset.iter_part(&run, &Part::whole())?;
    Ok(wanted.take_lanes())
}

/// Returns the error for a pipeline whose rows cannot be dealt by lanes.
#[cold]
pub(crate) fn not_by_lanes<D: IterDataset>(dataset: &D, run: &Runtime) -> Error {
    let mut lanes = false;
    (dataset as &dyn Stage).walk(&mut |_, stage| lanes |= stage.name() == "lanes");
    let why = match run.unplanned() {
        Some(why) if lanes => why,
        _ if lanes => NO_ROWS,
        _ => "the pipeline has no lanes",
    };
    Error::config(format!("rows cannot be dealt by lanes: {why}")).help(
        "`gristmill index --keys PIPELINE.yaml`, or `make_keys`, writes an index of lanes to the folder of keys, for pipelines with \
         `batch` after `lanes`; without `deal: lanes`, every host evaluates all elements",
    )
}

/// Makes the passes of `run` note keys to `recorder`, if hosts could plan `dataset` from these keys.
///
/// # Errors
/// Errors of key files that exist and cannot be read.
pub(crate) fn note_keys<D: IterDataset>(
    dataset: &D,
    run: Runtime,
    recorder: &Arc<KeyRecorder>,
) -> crate::Result<Runtime> {
    let planned = Runtime::inline().with_keys(Some(recorder.clone())).recording_keys();
    if dataset.iter_part(&planned, &Part::whole())?.is_some() {
        return Ok(run.recording_keys_with(&planned));
    }
    recorder.refuse(planned.unplanned().unwrap_or(NO_ROWS));
    Ok(run)
}

/// Reason for a pipeline without a more specific reason.
const NO_ROWS: &str = "no stage builds batches from single rows";

/// Returns the reason why indices alone do not determine the elements of rows; `None` if they do. The reason names
/// `stage`, whose id is `id`, or an earlier stage.
fn whole(stage: &dyn Stage, id: usize, batched: bool) -> Option<String> {
    let decides =
        |id: usize, stage: &dyn Stage| format!("{} (stage {id}) depends on the elements themselves", stage.name());
    match (stage.name(), stage.parents().as_slice()) {
        ("limit" | "skip" | "repeat" | "seed", [parent]) => whole(*parent, id - 1, batched),
        ("batch", [parent]) => whole(*parent, id - 1, true),
        ("to_iter", _) if !batched => Some(NO_BATCH.to_owned()),
        ("to_iter", _) if stage.params().contains("bad_records") => {
            Some(format!("to_iter (stage {id}) skips bad records"))
        }
        ("to_iter", [parent]) => {
            let mut drops = None;
            let first = id - parent.count();
            parent.walk(&mut |id, stage| {
                if stage.may_drop() && drops.is_none() {
                    drops = Some(format!("{} (stage {}) drops elements", stage.name(), first + id));
                }
            });
            drops
        }
        _ => Some(read_in_order(stage, id).unwrap_or_else(|| decides(id, stage))),
    }
}

/// Remedy that lets each host read only its own lanes.
const BY_LANES: &str =
    "; or `gristmill index --keys` makes an index of its lanes, and with `deal: lanes` each host reads only its own";

/// Names the first stream without random access among `stage`, whose id is `id`, and the stages before it.
///
/// The assignment of rows depends on the end of each stream. The end, and positions to resume from, are known only
/// after the stream was read.
fn read_in_order(stage: &dyn Stage, id: usize) -> Option<String> {
    match (stage.name(), stage.role(), stage.parents().as_slice()) {
        ("to_iter", ..) => None,
        ("lanes", ..) | (_, Role::Source, []) => Some(format!(
            "{} (stage {id}) is read in order, so every host reads all of it; `gristmill convert` writes its elements to files with \
             random access, from which each host reads only its own{}",
            stage.name(),
            if stage.name() == "lanes" { BY_LANES } else { "" }
        )),
        _ => stage.parents_by_id(id).into_iter().find_map(|(id, parent)| read_in_order(parent, id)),
    }
}
