//! A prefix in two parts. The executor evaluates the front; the thread that reads the stream evaluates later stages.
//!
//! The cut changes no element, no fingerprint and no state. All stages keep their places before the border.

use std::sync::{Arc, Mutex};

use crate::cx::{Cx, StageId};
use crate::dataset::map::{Many, MapDataset};
use crate::dataset::node::{Indices, Node};
use crate::dataset::run::chunks::Roots;
use crate::dataset::stage::{Stage, stage_after};
use crate::error::Result;
use crate::exec::Runtime;
use crate::sync::Locked;

/// Front of a prefix: a dataset under the name of its last stage.
pub(crate) struct Cut<D: MapDataset> {
    front: Arc<D>,
    /// Elements of the front in order, during a pass.
    pass: Option<Mutex<Roots<D>>>,
}

impl<D: MapDataset> Cut<D> {
    pub(crate) fn new(front: D) -> Self {
        Self { front: Arc::new(front), pass: None }
    }
}

/// Forwards the facts of the front except its columns and records: later stages receive elements.
impl<D: MapDataset> Stage for Cut<D> {
    fn node(&self) -> Node<'_> {
        let front = self.front.node();
        let indices = match front.indices {
            // During a pass, the evaluator of the front announces the next elements.
            _ if self.pass.is_some() => Indices::Unknown,
            Indices::ByElement => Indices::Kept,
            indices => indices,
        };
        Node { is_cut: true, has_columns: false, indices, source: None, ..front }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.front.parents()
    }
}

impl<D: MapDataset<Item: Send + 'static> + 'static> MapDataset for Cut<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.front.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some(pass) = &self.pass else { return self.front.get(index, cx) };
        let mut pass = pass.locked();
        if pass.position() != index {
            pass.seek(index)?;
        }
        pass.next_of_element(cx).unwrap_or(Ok(None))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        match &self.pass {
            None => self.front.get_many(indices, cx),
            Some(_) => Many::one_by_one(indices, |index| self.get(index, cx)),
        }
    }

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        // Workers evaluate only the front, and identify it by the border after it.
        let roots = Roots::new(self.front.clone(), None, run, stage_after(&[&self.front]));
        let pass = |roots: Roots<D>| Some(Mutex::new(roots.waiting_at(border)));
        Some(roots.map(|roots| Self { front: self.front.clone(), pass: pass(roots) }))
    }
}

debug_as!(<D: MapDataset> Cut<D>, |self, f| f.debug_struct("Cut").finish_non_exhaustive());

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{ThreadId, current};

    use serde_json::to_value;

    use super::*;
    use crate::checkpoint::{Identity, fingerprint};
    use crate::dataset::iter::laws;
    use crate::dataset::map::{MapDatasetExt, Range};
    use crate::dataset::{BoxIter, BoxMap, DatasetIterator, IterDataset, IterDatasetExt, Record, index_of};
    use crate::exec::Executor;
    use crate::spec::columns::NamedFn;

    fn front() -> BoxMap<i64> {
        Range::new(0, 40).map(|x| 3 * x).boxed()
    }

    /// Adds the stages after the cut. All of them are before the border.
    fn back(ds: BoxMap<i64>) -> BoxIter<i64> {
        let odd = NamedFn::filter("filter", String::new(), |x| Ok(x % 2 == 1));
        let ds = NamedFn::map("map", String::new(), |x: i64| Ok(x + 1)).after(odd.after(ds).boxed()).boxed();
        ds.to_iter().flat_map(|x| vec![x; (x % 3) as usize]).boxed()
    }

    #[test]
    fn where_a_prefix_is_cut_is_seen_by_nothing_but_who_evaluates_it() {
        let (whole, cut) = (back(front()), back(Cut::new(front()).boxed()));
        let elements = laws::check(&whole);
        assert_eq!(laws::check(&cut), elements);
        assert_eq!(fingerprint(&whole), fingerprint(&cut));
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let run = Runtime::new(executor, None).unwrap();
            let (mut cx, mut passes) = (run.cx(), [&whole, &cut].map(|ds| ds.iter(&run).unwrap()));
            for at in 0..=elements.len() {
                let states = [&passes[0], &passes[1]].map(|pass| to_value(pass.state()).unwrap());
                assert_eq!(states[0], states[1]);
                let mut resumed = cut.iter(&run).unwrap();
                resumed.restore(passes[0].state(), &mut cx).unwrap();
                let rest: Vec<i64> = std::iter::from_fn(|| resumed.next(&mut cx).unwrap()).collect();
                assert_eq!(rest, elements[at..]);
                for pass in &mut passes {
                    pass.next(&mut cx).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_cut_keeps_the_places_of_records() {
        let (ds, record) = (Range::new(0, 40).shuffle(1), Record::new("range", 7));
        let index = index_of(&ds, &record, 0);
        assert!(index.is_some());
        assert_eq!(index_of(&Cut::new(ds).map(|x| x), &record, 0), index);
    }

    #[test]
    fn behind_the_cut_the_reader_evaluates() {
        let reader = current().id();
        let threads = move |id: ThreadId| if id == reader { 1_000 } else { 1 };
        let ds = Cut::new(Range::new(0, 30).map(move |_| threads(current().id()))).boxed();
        let counted = NamedFn::map("map", String::new(), move |x: i32| Ok((x, threads(current().id()))));
        let run = Runtime::new(Executor::Threads(2), None).unwrap();
        let mut pass = counted.after(ds).boxed().to_iter().iter(&run).unwrap();
        let seen: Vec<_> = std::iter::from_fn(|| pass.next(&mut run.cx()).unwrap()).collect();
        assert_eq!(seen, vec![(1, 1_000); 30]);
    }

    #[test]
    fn an_error_in_front_of_the_cut_takes_only_its_own_element() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let bad = |x| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            if x == 3 { Err(crate::Error::data("three")) } else { Ok(x) }
        };
        let ds = NamedFn::map("map", String::new(), |x: i64| Ok(x))
            .after(Cut::new(Range::new(0, 6).try_map(bad)).boxed())
            .boxed()
            .to_iter();
        let mut pass = ds.iter(&Runtime::inline()).unwrap();
        let seen: Vec<_> = (0..6).map(|_| pass.next(&mut Cx::default()).map_err(|e| e.to_string())).collect();
        assert_eq!(seen[2..5], [Ok(Some(2)), Err("stage 1 map: element 3: three".to_owned()), Ok(Some(4))]);
        assert_eq!(CALLS.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn checkpoints_of_when_a_cut_was_seen_are_read() {
        let ds = back(Cut::new(front()).boxed());
        let run = Runtime::inline();
        let mut pass = ds.iter(&run).unwrap();
        for _ in 0..7 {
            pass.next(&mut run.cx()).unwrap();
        }
        let mut old = Identity::of(&ds).at(7, &pass.state()).unwrap();
        old.pipeline = ["range(0, 40, 1)", "map", "to_iter", "filter", "map", "flat_map"].map(String::from).into();
        assert_eq!(old.pipeline[0], (&ds as &dyn Stage).lines()[0]);
        old.check(&Identity::of(&ds)).unwrap();
        assert!(old.check(&Identity::of(&back(front()))).is_err(), "a pipeline without a cut never wrote such a one");
        // In these versions, filters and flat maps had separate states.
        let stream = serde_json::json!({"next_index": 9, "dropped": 4, "skipped": 0, "in_a_row": 0});
        let filtered = serde_json::json!({"parent": stream, "seen": 9, "dropped": 4});
        let restored = |state: serde_json::Value| {
            let mut pass = ds.iter(&run).unwrap();
            pass.restore(serde_json::from_value(state).unwrap(), &mut run.cx()).unwrap();
            std::iter::from_fn(|| pass.next(&mut run.cx()).unwrap()).collect::<Vec<_>>()
        };
        let now = restored(serde_json::json!({"stream": stream, "given": 0}));
        assert_eq!(restored(serde_json::json!({"parent": filtered, "given": 0})), now);
    }
}
