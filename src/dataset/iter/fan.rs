//! The elementwise prefix after a `flat_map`: each record is a list of elements.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stream::border_stage;
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::BoxMap;
use crate::dataset::facts::Facts;
use crate::dataset::map::{Each, MapDataset, Mapped};
use crate::dataset::memory::{Held, Memory};
use crate::dataset::node::{Describe, Node, Work};
use crate::dataset::plan::{Border, Chain, Measure, PieceMaker, Plan, PlanOf, Planning, StandIn};
use crate::dataset::run::chunks::Roots;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::prefix::{Prefix, PrefixOptions, StreamState};
use crate::dataset::run::skipping::BadRecords;
use crate::dataset::run::thresholds::FilterThresholds;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// A stage of a [`FanStream`]: makes a record's list of elements, from its single element or its previous list.
pub type FanOut<D, U> = Mapped<D, FanFn<<D as MapDataset>::Item, U>>;

/// Function of [`FanOut`]: returns the list of a record's elements.
#[doc(hidden)]
pub struct FanFn<T, U> {
    each: Arc<dyn Fn(T) -> Result<Vec<U>> + Send + Sync>,
    name: &'static str,
    role: Role,
}

impl<T, U> FanFn<T, U> {
    fn new(name: &'static str, role: Role, each: impl Fn(T) -> Result<Vec<U>> + Send + Sync + 'static) -> Self {
        Self { each: Arc::new(each), name, role }
    }
}

impl<D: MapDataset, U> FanOut<D, U> {
    pub(crate) fn flat_map(parent: D, each: impl Fn(D::Item) -> Result<Vec<U>> + Send + Sync + 'static) -> Self {
        Self::new(parent, |_| FanFn::new("flat_map", Role::FanOut, each))
    }
}

impl<T, U> Facts for FanFn<T, U> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn role(&self) -> Role {
        self.role
    }
}

impl<T, U> Each<T> for FanFn<T, U> {
    type Out = Vec<U>;

    fn apply(&self, _: u64, element: T) -> Result<Option<Vec<U>>> {
        (self.each)(element).map(Some)
    }

    fn count(&self, made: &[Vec<U>]) -> u64 {
        made.iter().map(|pieces| pieces.len() as u64).sum()
    }

    fn again(&self) -> Option<Self> {
        Some(Self { each: self.each.clone(), ..*self })
    }
}

/// A [`Stream`](super::Stream) in which every element has become any number of pieces: see its `flat_map`.
///
/// Yields the pieces one by one. Its methods still run on any thread or worker of the executor. A bad record is skipped
/// or reported as a whole, with all its pieces.
#[must_use = "datasets are lazy and do nothing until read"]
pub struct FanStream<D> {
    dataset: Arc<D>,
    options: PrefixOptions,
    stage: StageId,
}

impl<D, T> FanStream<D>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    /// Makes the stream of `dataset`, in which each element is a list.
    #[cfg(feature = "python")]
    pub(crate) fn of(dataset: D, bad: BadRecords, thresholds: FilterThresholds) -> Self {
        Self::with_options(Arc::new(dataset), PrefixOptions { bad, thresholds })
    }

    pub(super) fn with_options(dataset: Arc<D>, options: PrefixOptions) -> Self {
        let stage = stage_after(&[&dataset]);
        Self { dataset, options, stage }
    }

    fn prefix<U: Send + 'static>(
        self,
        name: &'static str,
        role: Role,
        each: impl Fn(Vec<T>) -> Result<Vec<U>> + Send + Sync + 'static,
    ) -> FanStream<FanOut<Arc<D>, U>> {
        FanStream::with_options(Arc::new(Mapped::new(self.dataset, |_| FanFn::new(name, role, each))), self.options)
    }

    /// Applies `f` to every element, in parallel if the executor has threads.
    pub fn map<U, F>(self, f: F) -> FanStream<FanOut<Arc<D>, U>>
    where
        U: Send + 'static,
        F: Fn(T) -> U + Send + Sync + 'static,
    {
        self.prefix("map", Role::Elementwise, move |pieces| Ok(pieces.into_iter().map(&f).collect()))
    }

    /// Applies `f`, which may fail, to every element, in parallel if the executor has threads.
    pub fn try_map<U, F>(self, f: F) -> FanStream<FanOut<Arc<D>, U>>
    where
        U: Send + 'static,
        F: Fn(T) -> Result<U> + Send + Sync + 'static,
    {
        self.prefix("map", Role::Elementwise, move |pieces| pieces.into_iter().map(&f).collect())
    }

    /// Keeps the elements for which `predicate` holds, in parallel if the executor has threads.
    pub fn filter<P>(self, predicate: P) -> FanStream<FanOut<Arc<D>, T>>
    where
        P: Fn(&T) -> bool + Send + Sync + 'static,
    {
        self.prefix("filter", Role::MayDrop, move |mut pieces| {
            pieces.retain(&predicate);
            Ok(pieces)
        })
    }

    /// Replaces every element by the elements that `f` returns, if any, in parallel if the executor has threads.
    pub fn flat_map<C, F>(self, f: F) -> FanStream<FanOut<Arc<D>, C::Item>>
    where
        C: IntoIterator<Item: Send + 'static>,
        F: Fn(T) -> C + Send + Sync + 'static,
    {
        self.prefix("flat_map", Role::FanOut, move |pieces| Ok(pieces.into_iter().flat_map(&f).collect()))
    }

    /// [`flat_map`](Self::flat_map) with a function that may fail. An error of `f` replaces all pieces of its record.
    pub fn try_flat_map<C, F>(self, f: F) -> FanStream<FanOut<Arc<D>, C::Item>>
    where
        C: IntoIterator<Item: Send + 'static>,
        F: Fn(T) -> Result<C> + Send + Sync + 'static,
    {
        self.prefix("flat_map", Role::FanOut, move |pieces| {
            let mut out = Vec::with_capacity(pieces.len());
            for piece in pieces {
                out.extend(f(piece)?);
            }
            Ok(out)
        })
    }

    /// Sets the policy for records that the stages before the border cannot use, as
    /// [`Stream::on_bad_record`](super::Stream::on_bad_record).
    pub fn on_bad_record(mut self, policy: BadRecords) -> Self {
        self.options.bad = policy;
        self
    }

    /// Sets the shares of vanished records that cause a warning or an error, as
    /// [`Stream::filter_thresholds`](super::Stream::filter_thresholds). A record vanishes if it yields no element.
    pub fn filter_thresholds(mut self, thresholds: FilterThresholds) -> Self {
        self.options.thresholds = thresholds;
        self
    }
}

border_stage!(FanStream, Some(Memory::elements(Held::NONE, Held::Pieces)));

impl<D, T> IterDataset for FanStream<D>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    type Item = T;
    type Iter = FanStreamIter<D, T>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let prefix = Prefix::new(Roots::new(self.dataset.clone(), None, run, self.stage)?, self.options);
        let prefix = prefix.recording(run, self.stage).excluding(&self.dataset, run, self.stage);
        Ok(FanStreamIter { prefix, pieces: Vec::new().into_iter(), given: 0, stage: self.stage })
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let Some(keys) = planning.keys(&self.dataset, Measure::list())? else { return Ok(None) };
        planning.record(self.stage, &keys, Measure::<Vec<T>>::list());
        let chains = vec![Chain::of_many(planning.next_border(), BoxMap::new(self.dataset.clone()))];
        let border = Border { dataset: &self.dataset, keys, stage: self.stage, planning };
        let prefix = Prefix::new(border.stand_ins::<Vec<StandIn>>()?, self.options);
        let prefix = prefix.excluding(&self.dataset, &planning.run, self.stage);
        let pass = FanStreamIter { prefix, pieces: Vec::new().into_iter(), given: 0, stage: self.stage };
        Ok(Some(Plan { pass: Box::new(pass), make: Box::new(PieceMaker::new(border)?), single: true, chains }))
    }
}

/// A pass over a [`FanStream`].
#[doc(hidden)]
pub struct FanStreamIter<D: MapDataset, T> {
    prefix: Prefix<D>,
    pieces: std::vec::IntoIter<T>,
    /// Yielded pieces of the current record; 0 between records.
    given: u64,
    stage: StageId,
}

/// Position of a [`FanStreamIter`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FanState {
    /// The stream's position before the record whose pieces are being yielded.
    #[serde(alias = "parent")]
    pub stream: StreamState,
    /// Yielded pieces of this record.
    pub given: u64,
}

impl<D, T> DatasetIterator for FanStreamIter<D, T>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    type Item = T;
    type State = FanState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<T>> {
        loop {
            if let Some(piece) = self.pieces.next() {
                self.given = if self.pieces.len() == 0 { 0 } else { self.given + 1 };
                cx.set_element(None);
                cx.produced(self.stage, 1, 0);
                return Ok(Some(piece));
            }
            match self.prefix.next(cx, Vec::is_empty)? {
                Some(pieces) => self.pieces = pieces.into_iter(),
                None => return Ok(None),
            }
        }
    }

    fn state(&self) -> FanState {
        let stream = if self.given == 0 { self.prefix.state() } else { self.prefix.before };
        FanState { stream, given: self.given }
    }

    fn restore(&mut self, state: FanState, cx: &mut Cx) -> Result<()> {
        self.pieces = Vec::new().into_iter();
        self.given = 0;
        self.prefix.restore(state.stream, cx).map_err(|e| cx.blame(self.stage, "to_iter", e))?;
        if state.given == 0 {
            return Ok(());
        }
        let pieces = self.prefix.next(cx, Vec::is_empty)?.filter(|_| self.prefix.before == state.stream);
        let given = usize::try_from(state.given).unwrap_or(usize::MAX);
        match pieces {
            // States of Grain may be after the last piece.
            Some(pieces) if pieces.len() >= given => {
                self.pieces = pieces.into_iter();
                self.pieces.by_ref().take(given).for_each(drop);
                self.given = if self.pieces.len() == 0 { 0 } else { state.given };
                Ok(())
            }
            _ => {
                let text =
                    format!("{given} pieces of element {} were yielded, but it now has fewer", state.stream.next_index);
                let error = Error::state(text).help("the data or a function has changed since the checkpoint");
                Err(cx.blame(self.stage, "to_iter", error))
            }
        }
    }
}

debug_name!(FanFn<T, U>);

debug_as!(<D> FanStream<D>, |self, f| {
    f.debug_struct("FanStream").field("options", &self.options).finish_non_exhaustive()
});
debug_name!(FanStreamIter<D: MapDataset, T>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{IterDatasetExt, MapDatasetExt};

    #[test]
    fn stays_in_front_of_the_border() {
        let fan = Range::new(0, 60).to_iter().flat_map(|x| (0..x % 4).map(move |i| 10 * x + i).collect::<Vec<_>>());
        let ds = fan.map(|x| x + 1).filter(|x| x % 3 != 0).flat_map(|x| [x, -x]);
        let naive: Vec<i64> = (0..60)
            .flat_map(|x| (0..x % 4).map(move |i| 10 * x + i + 1))
            .filter(|x| x % 3 != 0)
            .flat_map(|x| [x, -x])
            .collect();
        assert_eq!(laws::check(&ds), naive);
        let lines = (&ds as &dyn Stage).lines();
        assert_eq!(lines[1..], ["flat_map", "map", "filter", "flat_map", "to_iter"]);
    }

    #[test]
    fn a_bad_record_goes_with_all_its_pieces() {
        let bad = |x: i64| if x == 12 { Err(Error::data("twelve")) } else { Ok(x) };
        let fan = || Range::new(0, 3).to_iter().flat_map(|x| vec![10 * x, 10 * x + 1, 10 * x + 2]).try_map(bad);
        let skipping = fan().on_bad_record(BadRecords::Skip { limit: Some(1), consecutive: None });
        assert_eq!(laws::check(&skipping), [0, 1, 2, 20, 21, 22]);
        let error = fan().collect().unwrap_err();
        assert_eq!(error.to_string(), "stage 2 map: element 1: twelve");
        let fails = Range::new(0, 3).to_iter().try_flat_map(|x| if x == 1 { Err(Error::data("one")) } else { Ok([x]) });
        assert_eq!(fails.collect().unwrap_err().to_string(), "stage 1 flat_map: element 1: one");
    }

    #[test]
    fn records_that_become_nothing_have_vanished() {
        let thresholds = FilterThresholds { warn: None, raise: Some(0.5) };
        let ds = Range::new(0, 3000).to_iter().flat_map(|x| if x % 2 == 0 { vec![x, x] } else { Vec::new() });
        let error = ds.filter_thresholds(thresholds).collect().unwrap_err();
        assert!(error.message().starts_with("50.0 % of the last 1000"), "{error}");
    }

    #[test]
    fn a_record_that_has_shrunk_since_is_a_state_error() {
        let ds = Range::new(0, 3).to_iter().flat_map(|x| vec![x; 2]);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let state = FanState { given: 3, ..iter.state() };
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
}
