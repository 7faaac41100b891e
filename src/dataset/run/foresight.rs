//! Announcements of the indices that a pass requests next.

use std::ops::Range;
use std::sync::Arc;

use super::upcoming::Upcoming;
use crate::dataset::stage::Stage;

/// Announces the next indices of a pass over `0..len`, step by step.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    wanted: Arc<()>,
    /// End of the announced indices.
    told: u64,
    /// Index of the pass at which the next announcement is due.
    again: u64,
    /// True if a source is remote. Remote sources measure their look-ahead from the consumer's position.
    far: bool,
}

/// Maximum number of indices per announcement. If no source is remote, the maximum grows by [`TIMES`] indices per index
/// that the pass has read since the last announcement.
const MOST: u64 = 1024;
const TIMES: u64 = 4;
/// Number of indices between announcements.
const EVERY: u64 = 64;

impl Foresight {
    /// Returns the foresight of a pass over `dataset`, or `None` if no source uses announcements.
    pub(crate) fn of(dataset: &dyn Stage) -> Option<Self> {
        dataset.looks_ahead().map(|_| Self { far: dataset.any_reads_far(), ..Self::default() })
    }

    /// Resets the announcements, because the pass moves to another position.
    pub(crate) fn forget(&mut self) {
        *self = Self { far: self.far, ..Self::default() };
    }

    /// Announces all indices of a range before it is dispatched. Evaluators read them before the pass reaches them.
    ///
    /// Announces no indices after the range. Sources measure their look-ahead from the indices already read. The range
    /// and a look-ahead after it would exceed their space.
    pub(crate) fn hand_out(&mut self, dataset: &dyn Stage, range: &Range<u64>) {
        if !self.far {
            // Earlier indices are announced already, or the pass starts here.
            self.told = self.told.max(range.start);
            self.tell_until(dataset, range.end);
        }
    }

    /// Records that the pass over `dataset`, which has `len` indices, has reached index `at`. Announces more indices if
    /// due.
    #[inline]
    pub(crate) fn tell(&mut self, dataset: &dyn Stage, at: u64, len: u64) {
        if at >= self.again {
            self.tell_more(dataset, at, len);
        }
    }

    fn tell_more(&mut self, dataset: &dyn Stage, at: u64, len: u64) {
        let gone = at.saturating_add(EVERY).saturating_sub(self.again);
        self.again = at.saturating_add(EVERY);
        self.told = self.told.max(at);
        let furthest = dataset.looks_ahead().unwrap_or(0);
        let most = if self.far { MOST } else { gone.saturating_mul(TIMES).saturating_add(MOST) };
        self.tell_until(dataset, len.min(at.saturating_add(furthest)).min(self.told.saturating_add(most)));
    }

    fn tell_until(&mut self, dataset: &dyn Stage, end: u64) {
        let indices: Vec<u64> = (self.told..end).collect();
        if !indices.is_empty() {
            self.told = end;
            dataset.will_read(Upcoming::new(&indices, &Arc::downgrade(&self.wanted)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Result;
    use crate::dataset::map::{
        Concatenate, Mix, RandomAccess, Range as Numbers, Select, SelectionMap, Source, SourceFacts,
    };
    use crate::dataset::run::upcoming::FURTHEST;
    use crate::dataset::{BoxMap, Remainder};
    use crate::{Cx, MapDataset, MapDatasetExt};

    /// Records that remember the announced indices and the indices read.
    #[derive(Clone, Default)]
    struct Far(Arc<Mutex<(Vec<u64>, Vec<u64>)>>);

    impl RandomAccess for Far {
        type Record = u64;
        fn len(&self) -> u64 {
            20
        }
        fn read(&self, index: u64) -> Result<u64> {
            self.0.lock().unwrap().1.push(index);
            Ok(index)
        }
        fn facts(&self) -> SourceFacts {
            SourceFacts { reads_far: true, ..SourceFacts::new("source", "20 records") }
        }
        fn will_read(&self, next: Upcoming<'_>) {
            self.0.lock().unwrap().0.extend(next.indices());
        }
    }

    /// Checks that the source reads exactly the announced indices.
    fn foreseen(name: &str, indices: &[u64], put: impl Fn(Source<Far>) -> BoxMap<u64>) {
        let far = Far::default();
        let dataset = put(Source::new(far.clone()));
        (&dataset as &dyn Stage).will_read(Upcoming::new(indices, &Arc::downgrade(&Arc::default())));
        assert!(far.0.lock().unwrap().1.is_empty(), "{name} reads what it is told of");
        dataset.get_many(indices, &mut Cx::default());
        let (told, read) = std::mem::take(&mut *far.0.lock().unwrap());
        assert_eq!(told, read, "{name}");
        assert!(!read.is_empty(), "{name}");
    }

    #[test]
    fn stages_say_what_they_will_read() {
        let all: Vec<u64> = (0..50).collect();
        let some = [3, 1, 17, 44];
        for indices in [&all[..], &some] {
            foreseen("source", indices, |ds| ds.boxed());
            foreseen("shuffle", indices, |ds| ds.seed(1).shuffle(None).boxed());
            foreseen("window_shuffle", indices, |ds| ds.window_shuffle(6, 1).boxed());
            foreseen("slice", indices, |ds| ds.slice_step(.., -2).boxed());
            foreseen("shard", indices, |ds| ds.shard(1, 3).boxed());
            foreseen("select_indices", indices, |ds| ds.select_indices([4, 9, 9]).boxed());
            foreseen("repeat", indices, |ds| ds.repeat(2).boxed());
            foreseen("repeat", indices, |ds| ds.shuffle(3).repeat(None).reseed_each_epoch(false).boxed());
            foreseen("map", indices, |ds| {
                ds.map(|x| x + 1).try_map(Ok).filter(|x| x % 3 > 0).slots().map(|_| 0).boxed()
            });
            foreseen("random_map", indices, |ds| ds.random_map(1, |x, _| x).map_with_index(|_, x| x).boxed());
            foreseen("batch", indices, |ds| ds.batch(3).map(|batch| batch.len() as u64).boxed());
            foreseen("batch", indices, |ds| ds.batch_with(3, Remainder::Drop).map(|batch| batch[0]).boxed());
            foreseen("zip", indices, |ds| Numbers::new(0, 20).zip(ds).map(|(_, x)| x).boxed());
            let own = || Numbers::new(0, 30).map(|x| x as u64).boxed();
            foreseen("concatenate", indices, |ds| Concatenate::new(vec![own(), ds.boxed()]).boxed());
            foreseen("mix", indices, |ds| Mix::new(vec![own(), ds.boxed()]).boxed());
            let map = (40, |i| ((i % 2) as usize, i / 2));
            assert_eq!(map.len(), 40);
            foreseen("select", indices, |ds| Select::new(vec![own(), ds.boxed()], map).boxed());
        }
    }

    #[test]
    fn a_stage_looks_ahead_in_elements_of_its_own() {
        let far = || Source::new(Far::default());
        let ahead = |dataset: &dyn Stage| dataset.looks_ahead();
        assert_eq!(ahead(&far().shuffle(1).map(|x| x)), Some(FURTHEST));
        assert_eq!(ahead(&far().batch(64)), Some(FURTHEST / 64));
        assert_eq!(ahead(&far().batch(1 << 20)), Some(1));
        assert_eq!(ahead(&far().flat_map(4, |x| vec![x])), Some(4 * FURTHEST));
        assert_eq!(ahead(&Numbers::new(0, 9).zip(far())), Some(FURTHEST));
        assert_eq!(ahead(&Numbers::new(0, 9).shuffle(1)), None);
    }

    #[test]
    fn an_element_of_many_is_told_of_once() {
        let far = Far::default();
        let dataset = Source::new(far.clone()).flat_map(4, |x| vec![x; 3]);
        let indices: Vec<u64> = (6..15).collect();
        (&dataset as &dyn Stage).will_read(Upcoming::new(&indices, &Arc::downgrade(&Arc::default())));
        assert_eq!(far.0.lock().unwrap().0, [1, 2, 3]);
    }

    #[test]
    fn a_pass_tells_of_each_once_and_never_too_much() {
        let far = Far::default();
        let dataset = Source::new(far.clone()).repeat(None);
        let mut foresight = Foresight::of(&dataset).unwrap();
        let mut most = 0;
        for at in 0..3 * FURTHEST {
            foresight.tell(&dataset, at, 3 * FURTHEST);
            most = most.max(foresight.told - at);
        }
        assert!(most > FURTHEST - EVERY && most <= FURTHEST, "{most}");
        let told = std::mem::take(&mut far.0.lock().unwrap().0);
        assert!(told.into_iter().eq((0..3 * FURTHEST).map(|at| at % 20)));
        // After a reset, announcements start again.
        foresight.forget();
        foresight.tell(&dataset, 7, 9);
        assert_eq!(far.0.lock().unwrap().0, [7, 8]);
        assert!(Foresight::of(&Numbers::new(0, 9)).is_none());
    }

    /// Local records that remember the announced indices.
    #[derive(Clone, Default)]
    struct Near(Arc<Mutex<Vec<u64>>>);

    impl RandomAccess for Near {
        type Record = u64;
        fn len(&self) -> u64 {
            u64::MAX
        }
        fn read(&self, index: u64) -> Result<u64> {
            Ok(index)
        }
        fn looks_ahead(&self) -> Option<u64> {
            Some(100)
        }
        fn will_read(&self, next: Upcoming<'_>) {
            self.0.lock().unwrap().extend(next.indices());
        }
    }

    #[test]
    fn of_a_pass_that_begins_late_nothing_before_it_is_told() {
        let near = Near::default();
        let dataset = Source::new(near.clone());
        let (mut foresight, from) = (Foresight::of(&dataset).unwrap(), 1 << 40);
        foresight.hand_out(&dataset, &(from..from + 3));
        foresight.hand_out(&dataset, &(from + 3..from + 5));
        assert_eq!(*near.0.lock().unwrap(), [from, from + 1, from + 2, from + 3, from + 4]);
    }
}
