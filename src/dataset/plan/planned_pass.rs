//! Passes over plans that make no elements: the members of each batch, for the lineage of rows.

use std::sync::Arc;

use super::{Content, Make, PlanOf, PlannedRows, Planning, Span, StandIn};
use crate::cx::Cx;
use crate::dataset::IterDataset;
use crate::dataset::iter::{DatasetIterator, Dealt, PartPassOf};
use crate::edits::RunEdits;
use crate::error::{Error, Result};
use crate::exec::{PlansOnly, Runtime};
use crate::keys::{KeySource, Keyed, Keys, Recompute};
use crate::part::{BatchContents, Part};

/// The plan of a delivered element: the members of each of its rows.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct PlannedBatch {
    pub(crate) rows: PlannedRows,
    /// The cells of each row's members, if requested and if the row is packed.
    pub(crate) spans: Vec<Option<Vec<Span>>>,
    /// True for a single element before any batch of the stream. Its records may be rows of a batch of the prefix.
    pub(crate) is_element: bool,
    /// The contents of the batch in place of its rows, if they are counted.
    pub(crate) contents: Option<Box<BatchContents>>,
}

impl PlannedBatch {
    /// Creates the plan of a batch of `rows`, which `make` would make. Includes the cells of members if `spans` is true.
    ///
    /// # Errors
    /// Errors of [`Make::spans`].
    pub(super) fn new<T>(rows: PlannedRows, make: &dyn Make<T>, spans: bool) -> Result<Self> {
        let count = if spans { rows.len() } else { 0 };
        let spans = (0..count).map(|row| make.spans(&rows.recipe(row))).collect::<Result<_>>()?;
        Ok(Self { rows, spans, is_element: false, contents: None })
    }

    /// Creates the plan of a batch of which only `contents` are known.
    pub(super) fn counted(contents: BatchContents) -> Self {
        let (rows, contents) = (PlannedRows::default(), Some(Box::new(contents)));
        Self { rows, spans: Vec::new(), is_element: false, contents }
    }

    /// Returns the digest of the plan: see [`PlannedRows::digest`].
    pub(crate) fn digest(&self) -> u128 {
        self.rows.digest()
    }
}

/// A pass that plans the elements of the stream `D` and makes none. Has the states of a pass over the stream.
pub(crate) struct PlannedPass<D: IterDataset> {
    inner: Inner<D>,
    plans: Arc<PlansOnly>,
}

enum Inner<D: IterDataset> {
    /// A stream that ends in batches.
    Batches(PartPassOf<D>),
    /// A stream of single elements or rows.
    Elements(PlanOf<D>),
}

impl<D: IterDataset> PlannedPass<D> {
    /// Starts a pass at the beginning of a run with `edits`. Keys that `keys` lacks are computed: their records are
    /// evaluated.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the stream has no plan. The message contains the reason.
    pub(crate) fn start(dataset: &D, keys: Option<Arc<dyn KeySource>>, edits: Arc<RunEdits>) -> Result<Self> {
        let plans = Arc::new(PlansOnly::default());
        let run = Runtime::inline()
            .with_keys(Some(Arc::new(OrRecompute(keys))))
            .with_edits(edits)
            .only_planning(plans.clone());
        if let Some(pass) = dataset.iter_part(&run, &Part::whole())? {
            return Ok(Self { inner: Inner::Batches(pass), plans });
        }
        match Planning::plan(dataset, &[], &run)? {
            Some(plan) => Ok(Self { inner: Inner::Elements(plan), plans }),
            None => Err(untraced(run.unplanned())),
        }
    }

    /// Plans the next delivered element. Returns `None` at the end. With `spans`, the plan contains the cells of members.
    ///
    /// # Errors
    /// Errors of the plan.
    pub(crate) fn next(&mut self, spans: bool, cx: &mut Cx) -> Result<Option<PlannedBatch>> {
        self.plans.set_spans(spans);
        let plan = match &mut self.inner {
            Inner::Batches(pass) => {
                return match pass.next(cx)? {
                    Some(Dealt::Planned(batch)) => Ok(Some(batch)),
                    Some(_) => Err(untraced(None)),
                    None => Ok(None),
                };
            }
            Inner::Elements(plan) => plan,
        };
        let Some(item) = plan.pass.next(cx)? else { return Ok(None) };
        let mut rows = PlannedRows::default();
        rows.add(&item);
        let is_element = matches!(item, StandIn(Content::Element { .. }));
        Ok(Some(PlannedBatch { is_element, ..PlannedBatch::new(rows, &*plan.make, spans)? }))
    }

    /// Returns the index after the furthest index that was read at each border since the last call. Borders after the last
    /// that was read are left out.
    pub(crate) fn take_read(&self) -> Vec<u64> {
        self.plans.take_read()
    }

    /// Returns the position after the last planned element.
    pub(crate) fn state(&self) -> <D::Iter as DatasetIterator>::State {
        match &self.inner {
            Inner::Batches(pass) => pass.state(),
            Inner::Elements(plan) => plan.pass.state(),
        }
    }

    /// Moves to `state`, a state of any pass over the stream.
    ///
    /// # Errors
    /// Errors of [`DatasetIterator::restore`].
    pub(crate) fn restore(&mut self, state: <D::Iter as DatasetIterator>::State, cx: &mut Cx) -> Result<()> {
        match &mut self.inner {
            Inner::Batches(pass) => pass.restore(state, cx),
            Inner::Elements(plan) => plan.pass.restore(state, cx),
        }
    }
}

/// Returns the error for a stream without a plan.
#[cold]
fn untraced(why: Option<&str>) -> Error {
    let why = why.unwrap_or("no stage makes batches from single rows");
    Error::config(format!("the records of its rows are unknown: {why}")).help(
        "records are found if sources have random access, and if stages after `to_iter` filter, map, pack, mix, shuffle or batch; \
         `gristmill convert` writes streams to files with random access",
    )
}

/// Keys of a source, computed if the source has none.
#[derive(Debug)]
struct OrRecompute(Option<Arc<dyn KeySource>>);

impl KeySource for OrRecompute {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        // A recorder of keys would record the keys of this plan.
        let kept = self.0.as_ref().filter(|kept| kept.recorder().is_none());
        match kept.map(|kept| kept.find(keyed)).transpose()?.flatten() {
            Some(keys) => Ok(Some(keys)),
            None => Recompute.find(keyed),
        }
    }
}
