use std::sync::Arc;

use super::fan::{FanOut, FanStream};
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::BoxMap;
use crate::dataset::map::{Filter, Map, MapDataset, MapDatasetExt, TryMap};
use crate::dataset::node::{Describe, Node, Work};
use crate::dataset::plan::{
    Border, Chain, ChainRecorder, ElementMaker, Measure, Plan, PlanOf, Planning, PrefixKeys, StandIn,
};
use crate::dataset::run::chunks::Roots;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::prefix::{Prefix, PrefixOptions, StreamState};
use crate::dataset::run::skipping::BadRecords;
use crate::dataset::run::thresholds::FilterThresholds;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::element::{Name, Ragged};
use crate::error::Result;
use crate::exec::Runtime;

/// One epoch of a [`MapDataset`] in index order: see [`MapDatasetExt::to_iter`](crate::MapDatasetExt::to_iter).
///
/// Its own `map`, `filter` and `flat_map` stay before the border. The executor evaluates them chunk by chunk, on any
/// of its threads or workers, and restores the order.
#[must_use = "datasets are lazy and do nothing until read"]
pub struct Stream<D> {
    pub(super) dataset: Arc<D>,
    pub(super) options: PrefixOptions,
    pub(super) stage: StageId,
}

impl<D: MapDataset + 'static> Stream<D> {
    pub(in crate::dataset) fn new(dataset: Arc<D>) -> Self {
        Self::with_options(dataset, PrefixOptions::default())
    }

    fn with_options(dataset: Arc<D>, options: PrefixOptions) -> Self {
        let stage = stage_after(&[&dataset]);
        Self { dataset, options, stage }
    }

    /// Adds a stage before the border. The border keeps its options.
    pub(crate) fn prefix<E: MapDataset + 'static>(self, stage: impl FnOnce(Arc<D>) -> E) -> Stream<E> {
        Stream::with_options(Arc::new(stage(self.dataset)), self.options)
    }

    /// Adds a stage before the border that makes many elements from each element.
    pub(crate) fn fan<E, T>(self, stage: impl FnOnce(Arc<D>) -> E) -> FanStream<E>
    where
        E: MapDataset<Item = Vec<T>> + 'static,
        T: Send + 'static,
    {
        FanStream::with_options(Arc::new(stage(self.dataset)), self.options)
    }

    /// Applies `f` to every element, in parallel if the executor has threads.
    pub fn map<U, F>(self, f: F) -> Stream<Map<Arc<D>, F>>
    where
        U: Send + 'static,
        F: Fn(D::Item) -> U + Send + Sync + 'static,
    {
        self.prefix(|dataset| dataset.map(f))
    }

    /// Applies `f`, which may fail, to every element, in parallel if the executor has threads.
    pub fn try_map<U, F>(self, f: F) -> Stream<TryMap<Arc<D>, F>>
    where
        U: Send + 'static,
        F: Fn(D::Item) -> Result<U> + Send + Sync + 'static,
    {
        self.prefix(|dataset| dataset.try_map(f))
    }

    /// Keeps the elements for which `predicate` holds, in parallel if the executor has threads.
    ///
    /// Thresholds apply to the total share that this and earlier filters drop: see
    /// [`filter_thresholds`](Self::filter_thresholds).
    pub fn filter<P>(self, predicate: P) -> Stream<Filter<Arc<D>, P>>
    where
        P: Fn(&D::Item) -> bool + Send + Sync + 'static,
    {
        self.prefix(|dataset| dataset.filter(predicate))
    }

    /// Replaces every element by the elements that `f` returns, if any, in parallel if the executor has threads.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(0, 4).to_iter().flat_map(|x| vec![x; x as usize]).filter(|x| *x != 2);
    /// assert_eq!(ds.collect()?, [1, 3, 3, 3]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn flat_map<C, F>(self, f: F) -> FanStream<FanOut<Arc<D>, C::Item>>
    where
        C: IntoIterator<Item: Send + 'static>,
        F: Fn(D::Item) -> C + Send + Sync + 'static,
    {
        self.try_flat_map(move |element| Ok(f(element)))
    }

    /// [`flat_map`](Self::flat_map) with a function that may fail. An error of `f` replaces all pieces of its element.
    pub fn try_flat_map<C, F>(self, f: F) -> FanStream<FanOut<Arc<D>, C::Item>>
    where
        C: IntoIterator<Item: Send + 'static>,
        F: Fn(D::Item) -> Result<C> + Send + Sync + 'static,
    {
        self.fan(|dataset| FanOut::flat_map(dataset, move |element| Ok(f(element)?.into_iter().collect())))
    }

    setters! {
        /// Sets the policy for records that stages before the border cannot use. Includes stages that are added later.
        ///
        /// Every executor skips the same records. Skipped records count as dropped for the thresholds.
        /// ```
        /// use gristmill::{Error, dataset::{iter::BadRecords, map::Range}, prelude::*};
        /// let ds = Range::new(0, 5).try_map(|x| if x % 2 == 1 { Err(Error::data("odd")) } else { Ok(x) }).to_iter();
        /// assert_eq!(ds.on_bad_record(BadRecords::Skip { limit: Some(2), consecutive: None }).collect()?, [0, 2, 4]);
        /// # Ok::<(), gristmill::Error>(())
        /// ```
        pub on_bad_record(policy: BadRecords) => options.bad = policy;

        /// Sets the shares of dropped elements that cause a warning or an error. Includes stages that are added later.
        pub filter_thresholds(thresholds: FilterThresholds) => options.thresholds = thresholds;
    }
}

/// Implements [`Stage`] for a border: a stream of `dataset` with `options`, and its memory.
macro_rules! border_stage {
    ($stream:ident, $memory:expr) => {
        impl<D: MapDataset<Item: 'static>> Stage for $stream<D> {
            fn node(&self) -> Node<'_> {
                Node {
                    describe: self,
                    work: Work::Border,
                    memory: $memory,
                    #[cfg(all(feature = "workers", target_os = "linux"))]
                    crossing: Some(|stage| {
                        let check = crate::dataset::run::remote::check_crossing::<D::Item>;
                        stage.parents().into_iter().try_for_each(check)
                    }),
                    ..Node::new("to_iter", Role::Order)
                }
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                vec![&self.dataset]
            }
        }

        impl<D> Describe for $stream<D> {
            fn params(&self) -> String {
                self.options.params()
            }
            fn check(&self) -> Result<()> {
                self.options.thresholds.check()
            }
        }
    };
}
pub(super) use border_stage;

border_stage!(Stream, None);

impl<D> IterDataset for Stream<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    type Item = D::Item;
    type Iter = StreamIter<D>;

    fn iter(&self, run: &Runtime) -> Result<StreamIter<D>> {
        let roots = Roots::new(self.dataset.clone(), None, run, self.stage)?;
        let prefix = Prefix::new(roots, self.options).recording(run, self.stage);
        Ok(StreamIter { prefix: prefix.excluding(&self.dataset, run, self.stage), stage: self.stage })
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let is_by_index = self.options.bad == BadRecords::Error && !(&*self.dataset as &dyn Stage).may_drop();
        let needs_no_keys = planning.run.plans_only().is_some() && !planning.run.has_census();
        if needs_no_keys && planning.names.is_empty() && is_by_index {
            let keys = PrefixKeys::of_indices(&self.dataset);
            let border = Border { dataset: &self.dataset, keys, stage: self.stage, planning };
            return self.plan_by(border, None).map(Some);
        }
        let Some(keys) = planning.keys(&self.dataset, Measure::element())? else { return Ok(None) };
        let recorder = planning.record(self.stage, &keys, Measure::<D::Item>::element());
        self.plan_by(Border { dataset: &self.dataset, keys, stage: self.stage, planning }, recorder).map(Some)
    }
}

impl<D> Stream<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    /// Starts a plan without keys. Each index is a single element.
    pub(super) fn plan_indices(&self, run: &Runtime) -> Result<PlanOf<Self>> {
        let keys = PrefixKeys::of_indices(&self.dataset);
        Planning::start(run, &[], |planning| {
            self.plan_by(Border { dataset: &self.dataset, keys, stage: self.stage, planning }, None)
        })
    }

    /// Starts a plan from the keys of the border.
    fn plan_by(&self, border: Border<'_, D>, recorder: Option<Arc<ChainRecorder>>) -> Result<PlanOf<Self>> {
        let chains = vec![Chain::new(border.planning.next_border(), BoxMap::new(self.dataset.clone()), recorder)];
        let roots = border.stand_ins::<StandIn>()?.planned();
        let prefix = Prefix::new(roots, self.options).excluding(&self.dataset, &border.planning.run, self.stage);
        let pass = StreamIter { prefix, stage: self.stage };
        Ok(Plan { pass: Box::new(pass), make: Box::new(ElementMaker::new(border)?), single: true, chains })
    }
}

/// A pass over a [`Stream`].
#[doc(hidden)]
pub struct StreamIter<D: MapDataset> {
    prefix: Prefix<D>,
    stage: StageId,
}

impl<D> DatasetIterator for StreamIter<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    type Item = D::Item;
    type State = StreamState;

    #[inline]
    fn next(&mut self, cx: &mut Cx) -> Result<Option<D::Item>> {
        let next = self.prefix.next(cx, |_| false)?;
        if next.is_some() {
            self.prefix.identify(cx);
            cx.produced(self.stage, 1, 0);
        }
        Ok(next)
    }

    fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let rows = self.prefix.next_ragged(names, cx)?;
        cx.produced(self.stage, rows.len() as u64, 0);
        Some(rows)
    }

    fn pass_ragged(&mut self, rows: usize) {
        self.prefix.pass_ragged(rows as u64);
    }

    fn state(&self) -> StreamState {
        self.prefix.state()
    }

    fn restore(&mut self, state: StreamState, cx: &mut Cx) -> Result<()> {
        self.prefix.restore(state, cx).map_err(|e| cx.blame(self.stage, "to_iter", e))
    }
}

debug_as!(<D> Stream<D>, |self, f| f.debug_struct("Stream").field("options", &self.options).finish_non_exhaustive());
debug_name!(StreamIter<D: MapDataset>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IterDatasetExt;
    use crate::cx::Recorder;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::exec::Executor;
    use crate::{Error, ErrorKind};

    /// Returns a stream in which every tenth record is bad.
    fn tenths(len: i64) -> Stream<impl MapDataset<Item = i64>> {
        Range::new(0, len)
            .to_iter()
            .try_map(|x| if x % 10 == 3 { Err(Error::data(format!("{x} is bad"))) } else { Ok(x) })
    }

    #[test]
    fn bad_records_are_skipped_by_every_executor_alike() {
        let ds = tenths(100).on_bad_record(BadRecords::skip()).map(|x| 2 * x).filter(|x| x % 3 != 0);
        let expected: Vec<i64> = (0..100).filter(|x| x % 10 != 3).map(|x| 2 * x).filter(|x| x % 3 != 0).collect();
        assert_eq!(laws::check(&ds), expected);
        assert_eq!(label(&ds), "to_iter(bad_records=skip)");
    }

    fn label(stage: &dyn Stage) -> String {
        crate::dataset::label(stage)
    }

    #[test]
    fn the_limit_counts_over_a_resume_and_the_report_counts_too() {
        let ds = tenths(100).on_bad_record(BadRecords::Skip { limit: Some(4), consecutive: None });
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let recorder = Recorder::new(3);
            let run = Runtime::new(executor, Some(recorder.clone())).unwrap();
            let (mut first, mut cx) = (ds.iter(&run).unwrap(), run.cx());
            for _ in 0..25 {
                first.next(&mut cx).unwrap().unwrap();
            }
            assert_eq!(recorder.notes(), [("bad records skipped".to_owned(), 3)]);
            let mut resumed = ds.iter(&run).unwrap();
            resumed.restore(first.state(), &mut cx).unwrap();
            for iter in [&mut first, &mut resumed] {
                let error = std::iter::from_fn(|| iter.next(&mut cx).transpose()).find_map(Result::err).unwrap();
                let text =
                    "stage 1 map: element 43: 43 is bad; 4 bad records were skipped before it, which is the limit";
                assert_eq!(error.to_string(), text);
                assert_eq!(iter.next(&mut cx).unwrap(), Some(44));
            }
        }
    }

    #[test]
    fn so_many_in_a_row_end_the_run_and_old_states_have_none() {
        let ten =
            |x| if (20..30).contains(&x) || x % 10 == 3 { Err(Error::data(format!("{x} is bad"))) } else { Ok(x) };
        let ds = |consecutive| {
            let ds = Range::new(0, 100).to_iter().try_map(ten);
            ds.on_bad_record(BadRecords::Skip { limit: None, consecutive: Some(consecutive) })
        };
        assert_eq!(laws::check(&ds(10)).len(), 81);
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let run = Runtime::new(executor, None).unwrap();
            let (mut iter, mut cx) = (ds(9).iter(&run).unwrap(), run.cx());
            let error = std::iter::from_fn(|| iter.next(&mut cx).transpose()).find_map(Result::err).unwrap();
            let text = "29 is bad; 9 bad records in a row were skipped before it, which is the limit";
            assert_eq!(error.message(), text);
            assert_eq!(iter.next(&mut cx).unwrap(), Some(30));
        }
        let old: StreamState = serde_json::from_str(r#"{"next_index": 5, "dropped": 1, "skipped": 1}"#).unwrap();
        assert_eq!(old, StreamState { next_index: 5, dropped: 1, skipped: 1, in_a_row: 0 });
        let (run, wrong) = (Runtime::inline(), StreamState { next_index: 5, in_a_row: 1, ..Default::default() });
        assert_eq!(ds(9).iter(&run).unwrap().restore(wrong, &mut run.cx()).unwrap_err().kind(), ErrorKind::State);
    }

    #[test]
    fn only_data_errors_are_skipped() {
        let ds = Range::new(0, 5).try_map(|x| if x == 3 { Err(Error::config("no")) } else { Ok(x) }).to_iter();
        let error = ds.on_bad_record(BadRecords::skip()).collect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }

    #[test]
    fn what_is_dropped_before_the_border_is_watched() {
        let thresholds = FilterThresholds { warn: None, raise: Some(0.8) };
        let ds = Range::new(0, 5000).filter(|x| *x < 2000 || x % 10 == 0).to_iter().filter_thresholds(thresholds);
        assert_eq!(label(&ds), "to_iter(raise=0.8)");
        let error = ds.collect().unwrap_err();
        assert!(error.message().starts_with("90.0 % of the last 1000 elements were dropped"), "{error}");
        let half = Range::new(0, 5000).filter(|x| x % 2 == 0).to_iter().filter_thresholds(thresholds);
        assert_eq!(laws::check(&half).len(), 2500);
    }

    #[test]
    fn a_state_out_of_range_is_refused() {
        let ds = Range::new(0, 5).to_iter();
        for state in [
            StreamState { next_index: 6, ..Default::default() },
            StreamState { next_index: 2, dropped: 3, ..Default::default() },
        ] {
            let mut iter = ds.iter(&Runtime::inline()).unwrap();
            assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
        }
    }
}
