//! Indices at which a record comes, in all epochs: the way from its source through all shuffles, slices and mixes.

use super::node::{Comes, Indices, Period, Records, address};
use super::stage::Stage;

/// Largest number of epochs in which a record is searched.
const MOST_EPOCHS: u64 = 1 << 16;

/// The stages between a source and the dataset that reads it.
pub(super) struct Route<'a> {
    /// The memory address of the source.
    pub(super) source: usize,
    /// Number of records of the source.
    len: u64,
    /// The stages after the source, in order, each with the number of its parent on the way.
    stages: Vec<(&'a dyn Stage, usize)>,
}

/// The reason why the indices of a record are unknown.
pub(crate) const NO_ROUTE: &str = "a stage before `to_iter` moves elements to unknown indices";

impl<'a> Route<'a> {
    /// Returns the routes from all sources of `dataset`. Returns `None` if a source has no records.
    pub(super) fn all(dataset: &'a dyn Stage) -> Option<Vec<Self>> {
        let mut routes = Vec::new();
        descend(dataset, &mut Vec::new(), &mut routes)?;
        Some(routes)
    }

    /// Adds all indices below `limit` at which `record` comes to `indices`. Returns `None` if they are unknown.
    pub(super) fn indices(&self, record: u64, limit: u64, indices: &mut Vec<u64>) -> Option<()> {
        if record < self.len { self.of(&self.stages, record, limit, indices) } else { Some(()) }
    }

    /// Adds all indices below `limit` to which `stages` move `record`.
    fn of(&self, stages: &[(&dyn Stage, usize)], record: u64, limit: u64, indices: &mut Vec<u64>) -> Option<()> {
        // If all epochs of a stage are equal, earlier stages are read up to the end of its first epoch.
        let Some(last) = stages.iter().rposition(|(stage, _)| period(*stage).is_some()) else {
            return in_epochs(stages, self.len, &[record], limit, indices);
        };
        let (before, after) = stages.split_at(last);
        let (Some((same, after)), mut before_it, mut first) = (after.split_first(), Vec::new(), Vec::new()) else {
            return Some(());
        };
        let period = period(same.0)?;
        self.of(before, record, period.parent, &mut before_it)?;
        for index in before_it {
            match rise(&[*same], index) {
                Comes::At(index) => first.push(index),
                Comes::Never => {}
                Comes::Unknown => return None,
            }
        }
        in_epochs(after, period.len, &first, limit, indices)
    }
}

/// Adds all indices below `limit` to which `stages` move elements: the elements `first` in each epoch of `len`.
fn in_epochs(
    stages: &[(&dyn Stage, usize)],
    len: u64,
    first: &[u64],
    limit: u64,
    indices: &mut Vec<u64>,
) -> Option<()> {
    let mut lower = 0;
    if first.is_empty() || len == 0 {
        return Some(());
    }
    for epoch in 0..MOST_EPOCHS {
        let start = len.checked_mul(epoch);
        lower = start.and_then(|start| lower_of(stages, start)).unwrap_or(0).max(lower);
        let Some(start) = start.filter(|_| lower < limit) else { return Some(()) };
        for first in first {
            match rise(stages, start.saturating_add(*first)) {
                Comes::At(index) if index < limit => indices.push(index),
                Comes::At(_) | Comes::Never => {}
                Comes::Unknown => return None,
            }
        }
    }
    None
}

/// Returns the index to which `stages` move an element.
fn rise(stages: &[(&dyn Stage, usize)], index: u64) -> Comes {
    let mut index = index;
    for (stage, parent) in stages {
        match stage.node().indices {
            Indices::Moved(moves) => match moves.comes_to(*parent, index) {
                Comes::At(at) => index = at,
                other => return other,
            },
            Indices::Kept | Indices::ByElement => {}
            Indices::Unknown => return Comes::Unknown,
        }
    }
    Comes::At(index)
}

/// Returns an index at or before all indices to which `stages` move elements from `index` on.
fn lower_of(stages: &[(&dyn Stage, usize)], index: u64) -> Option<u64> {
    stages.iter().try_fold(index, |index, (stage, parent)| match stage.node().indices {
        Indices::Moved(moves) => moves.lower(*parent, index),
        Indices::Kept | Indices::ByElement => Some(index),
        Indices::Unknown => None,
    })
}

fn period(stage: &dyn Stage) -> Option<Period> {
    if let Indices::Moved(moves) = stage.node().indices { moves.period() } else { None }
}

/// Adds the routes from the sources of `stage` to the dataset that reads them. `above` are the stages after it, last stage first.
fn descend<'a>(
    stage: &'a dyn Stage,
    above: &mut Vec<(&'a dyn Stage, usize)>,
    routes: &mut Vec<Route<'a>>,
) -> Option<()> {
    if let Some(source) = stage.node().source {
        let (len, stages) = (source.records()?, above.iter().rev().copied().collect());
        routes.push(Route { source: address::<dyn Records>(source), len, stages });
        return Some(());
    }
    for (number, parent) in stage.parents().into_iter().enumerate() {
        above.push((stage, number));
        descend(parent, above, routes)?;
        above.pop();
    }
    (!stage.parents().is_empty()).then_some(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::dataset::map::{Concatenate, Mix, Range};
    use crate::dataset::run::upcoming::Upcoming;
    use crate::dataset::{BoxMap, MapDataset, MapDatasetExt};
    use crate::rng::Schedule;

    fn orders(ds: BoxMap<i64>, ops: &[(u8, u64)]) -> BoxMap<i64> {
        ops.iter().fold(ds, |ds, &(op, n)| match op {
            _ if !(2..400).contains(&ds.len()) => ds,
            0 => ds.shuffle(n as u32).boxed(),
            1 => ds.window_shuffle(n + 1, 3).boxed(),
            2 => ds.slice_step(.., -1 - n as i64 % 2).boxed(),
            3 => ds.slice_step(1.., 1 + n as i64 % 3).boxed(),
            4 => ds.repeat(1 + n % 4).boxed(),
            5 => ds.repeat(1 + n % 4).reseed_each_epoch(false).boxed(),
            _ => ds.shard(n % 2, 2).boxed(),
        })
    }

    fn ops() -> impl Strategy<Value = Vec<(u8, u64)>> {
        prop::collection::vec((0..7u8, 0..9u64), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(4), ..ProptestConfig::default() })]

        /// Each record is found at all of its indices: the inverse equals a scan of all indices.
        #[test]
        fn the_inverse_is_the_scan(
            lens in prop::collection::vec(2..30i64, 1..4),
            each in prop::collection::vec(ops(), 4),
            kind in 0..4u8,
            limit in 0..150u64,
        ) {
            let parents: Vec<_> =
                lens.iter().zip(&each).map(|(len, ops)| orders(Range::new(0, *len).boxed(), ops)).collect();
            prop_assume!(parents.iter().all(|ds| (1..400).contains(&ds.len())));
            let weights = [0.3, 1.0, 2.5];
            let ds = match kind {
                0 => parents[0].clone(),
                1 => Concatenate::new(parents).boxed(),
                2 => Mix::new(parents).weights(&weights[..lens.len()]).boxed(),
                _ => {
                    let (first, then) = (vec![1.0; lens.len()], weights[..lens.len()].to_vec());
                    Mix::new(parents).schedule(Schedule::new(first).then(7, then)).boxed()
                }
            };
            let ds = orders(ds, &each[3]);
            let indices: Vec<u64> = (0..limit).collect();
            let mut expected: HashMap<(usize, u64), Vec<u64>> = HashMap::new();
            for found in Upcoming::follow(&indices, |next| (&ds as &dyn Stage).will_read(next)) {
                expected.entry((found.source, found.record)).or_default().push(u64::from(found.place));
            }
            for route in Route::all(&ds).unwrap() {
                for record in 0..route.len {
                    let mut indices = Vec::new();
                    if route.indices(record, limit, &mut indices).is_some() {
                        let expected = expected.entry((route.source, record)).or_default();
                        expected.sort_unstable();
                        indices.sort_unstable();
                        prop_assert_eq!(&indices, &*expected, "record {}", record);
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_orders_have_no_inverse() {
        let indices = |ds: &dyn Stage, record| {
            let (route, mut indices) = (Route::all(ds).unwrap().remove(0), Vec::new());
            route.indices(record, 18, &mut indices).map(|()| indices)
        };
        assert_eq!(indices(&Range::new(0, 9).select_indices([1, 1]), 1), None);
        assert_eq!(
            indices(&Range::new(0, 4).repeat(2).reseed_each_epoch(false).repeat(9), 1),
            Some(vec![1, 5, 9, 13, 17])
        );
        // A record that is cut off is at no index.
        assert_eq!(indices(&Range::new(0, 9).slice(..3), 5), Some(vec![]));
        // Epochs of the shuffle are not epochs of the source: each record comes once, at any of the first 18 indices.
        assert_eq!(indices(&Range::new(0, 9).repeat(2).shuffle(1), 3).map(|indices| indices.len()), Some(2));
        assert_eq!(indices(&Range::new(0, 9).repeat(None).shuffle(1), 3), None);
        assert_eq!(indices(&Range::new(0, 9), 9), Some(vec![]));
    }
}
